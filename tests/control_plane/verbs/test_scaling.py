import pytest
from msgspec.structs import replace as replace_options

from tests.control_plane.support.bench import (
    DRY_RUN,
    OPTIONS,
    SCALE,
    changed,
    config_maps,
    deployment,
    deployments,
    made,
    new_backend,
    refused,
    thing,
    widgets,
)
from wharfinger.control_plane.kinds.kind import ScalePaths
from wharfinger.control_plane.verbs.patching import PatchType
from wharfinger.control_plane.verbs.scaling import get_scale, patch_scale, replace_scale
from wharfinger.control_plane.verbs.updating import replace
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_list, find_str

NAMED: JsonObject = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
PATHS = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")


def test_the_scale_of_a_deployment_shows_replicas_and_selector() -> None:
    backend = new_backend()
    kind = deployments(backend)
    obj = made(backend, kind, deployment(kind, replicas=3))

    assert get_scale(backend, kind, "default", "a") == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": find(obj, "metadata", "uid"),
            "resourceVersion": find(obj, "metadata", "resourceVersion"),
            "creationTimestamp": "2026-11-21T04:00:00Z",
        },
        "spec": {"replicas": 3},
        "status": {"replicas": 0, "selector": "app=a"},
    }


def test_scaling_is_an_update_of_the_object() -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind))

    scale = replace_scale(backend, kind, "default", "a", NAMED | {"spec": {"replicas": 4}}, OPTIONS)

    stored = backend.get(kind, "default", "a")
    assert find(scale, "spec", "replicas") == find(stored, "spec", "replicas") == 4
    assert find(stored, "metadata", "generation") == 2
    assert find(scale, "metadata", "resourceVersion") == str(backend.storage.revision)


def test_missing_replicas_are_zero() -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind, replicas=3))

    replace_scale(backend, kind, "default", "a", NAMED | {"spec": {}}, OPTIONS)

    assert find(backend.get(kind, "default", "a"), "spec", "replicas") == 0


def test_negative_replicas_are_refused() -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind))

    with refused(422, "Invalid", "spec.replicas: Invalid value: -1: must be greater than or equal to 0"):
        replace_scale(backend, kind, "default", "a", NAMED | {"spec": {"replicas": -1}}, OPTIONS)


def test_a_scale_of_an_old_version_is_a_conflict() -> None:
    backend = new_backend()
    kind = deployments(backend)
    read = get_scale(backend, kind, "default", find_str(made(backend, kind, deployment(kind)), "metadata", "name"))
    replace_scale(backend, kind, "default", "a", changed(read, spec={"replicas": 2}), OPTIONS)

    with refused(409, "Conflict", "the object has been modified"):
        replace_scale(backend, kind, "default", "a", changed(read, spec={"replicas": 3}), OPTIONS)


def test_a_dry_run_does_not_scale() -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind))

    scale = replace_scale(backend, kind, "default", "a", NAMED | {"spec": {"replicas": 7}}, DRY_RUN)

    assert find(scale, "spec", "replicas") == 7
    assert find(backend.get(kind, "default", "a"), "spec", "replicas") == 1


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        (PatchType.MERGE, {"spec": {"replicas": 6}}),
        (PatchType.STRATEGIC, {"spec": {"replicas": 6}}),
        (PatchType.JSON, [{"op": "replace", "path": "/spec/replicas", "value": 6}]),
    ],
)
def test_patches_of_a_scale_change_replicas(type_: PatchType, body: JsonValue) -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind))

    assert find(patch_scale(backend, kind, "default", "a", type_, encode_json(body), OPTIONS), "spec", "replicas") == 6


def test_a_scale_is_applied() -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind))
    intent = encode_json(NAMED | {"spec": {"replicas": 6}})
    with refused(409, "Conflict", "using autoscaling/v1: .spec.replicas"):
        patch_scale(backend, kind, "default", "a", PatchType.APPLY, intent, OPTIONS)
    forced = replace_options(OPTIONS, force=True)
    assert find(patch_scale(backend, kind, "default", "a", PatchType.APPLY, intent, forced), "spec", "replicas") == 6


def test_objects_without_a_scale_are_not_found() -> None:
    backend = new_backend()
    kind, maps = deployments(backend), config_maps(backend)
    made(backend, maps, thing(maps))

    with refused(404, "NotFound", 'deployments.apps "a" not found'):
        get_scale(backend, kind, "default", "a")
    with refused(404, "NotFound", 'deployments.apps "a" not found'):
        replace_scale(backend, kind, "default", "a", NAMED, OPTIONS)
    with refused(404, "NotFound", "the server could not find the requested resource"):
        get_scale(backend, maps, "default", "a")


def test_a_custom_kind_declares_the_paths_of_its_replicas() -> None:
    backend = new_backend()
    kind = widgets(backend, subresources={"status": {}, "scale": SCALE})
    obj = made(backend, kind, thing(kind))

    scale = replace_scale(backend, kind, "default", "a", NAMED | {"spec": {"replicas": 2}}, OPTIONS)
    stored = backend.get(kind, "default", "a")
    assert stored is not None
    assert (stored["spec"], scale["spec"]) == ({"replicas": 2}, {"replicas": 2})
    assert find(stored, "metadata", "uid") == find(obj, "metadata", "uid")

    replace(backend, kind, "default", "a", "status", changed(stored, status={"replicas": 1}), OPTIONS)
    assert find(get_scale(backend, kind, "default", "a"), "status") == {"replicas": 1}


def test_managed_fields_name_the_subresource() -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind))

    replace_scale(backend, kind, "default", "a", NAMED | {"spec": {"replicas": 4}}, OPTIONS)

    entries = find_list(backend.get(kind, "default", "a"), "metadata", "managedFields")
    assert [find(entry, "apiVersion") for entry in entries if find(entry, "subresource") == "scale"] == ["apps/v1"]
    assert [find(entry, "fieldsV1") for entry in entries if find(entry, "subresource") == "scale"] == [
        {"f:spec": {"f:replicas": {}}}
    ]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (NAMED | {"metadata": {"resourceVersion": 5}}, "cannot unmarshal number into Go struct field"),
        (NAMED | {"spec": {"replicas": "many"}}, "cannot unmarshal string into Go struct field"),
        ([], "couldn't get version/kind"),
        (None, "name must be provided"),
    ],
)
def test_a_body_of_another_type_is_refused(body: JsonValue, part: str) -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind))

    with refused(400, "BadRequest", part):
        replace_scale(backend, kind, "default", "a", body, OPTIONS)
    assert find(backend.get(kind, "default", "a"), "spec", "replicas") == 1


def test_replicas_below_a_scalar_cannot_be_set() -> None:
    backend = new_backend()
    anything: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    kind = widgets(backend, subresources={"scale": SCALE}, schema={"openAPIV3Schema": anything})
    key = backend.key(kind, "default", "a")
    backend.put(key, thing(kind, metadata={"namespace": "default"}, spec="text"))

    with refused(400, "BadRequest", ".spec.replicas cannot be set"):
        replace_scale(backend, kind, "default", "a", NAMED | {"spec": {"replicas": 1}}, OPTIONS)
