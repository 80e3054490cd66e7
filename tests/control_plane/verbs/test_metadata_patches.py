"""Patches of metadata only. The result is the same as if the whole object were decoded, defaulted and validated."""

import pytest
from msgspec.structs import replace

from tests.control_plane.support.bench import (
    DRY_RUN,
    OPTIONS,
    config_maps,
    deployment,
    deployments,
    made,
    new_backend,
    refused,
    served,
    thing,
)
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.verbs.metadata_patches import with_patched_metadata
from wharfinger.control_plane.verbs.options import FieldValidation, WriteOptions
from wharfinger.control_plane.verbs.patching import PatchType, patch, patched_object
from wharfinger.control_plane.verbs.reading import presented
from wharfinger.control_plane.verbs.updating import update
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json, encode_json, find, find_object

OTHER = WriteOptions("other")
OWNER: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": True}
CHANGES: dict[str, JsonObject] = {
    "nothing": {},
    "a label": {"labels": {"a": "1"}},
    "a label that was there": {"labels": {"app": "b"}},
    "no labels": {"labels": None},
    "one label less": {"labels": {"app": None}},
    "empty labels": {"labels": {}},
    "annotations": {"annotations": {"x/y": "z", "w": None}},
    "finalizers": {"finalizers": ["example.com/a"]},
    "no finalizers": {"finalizers": []},
    "an owner": {"ownerReferences": [OWNER]},
    "an owner twice": {"ownerReferences": [OWNER, OWNER]},
    "fields of the server": {"creationTimestamp": None, "generation": 7, "selfLink": "x"},
    "nulls inside": {"labels": {"a": None}, "annotations": None, "finalizers": None},
}


def pod(pods: Served) -> JsonObject:
    containers: list[JsonValue] = [
        {"name": "main", "image": "a:1", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "0.5"}}},
        {"name": "side", "image": "b", "env": [{"name": "A", "value": ""}]},
    ]
    return thing(pods, metadata={"labels": {"app": "a"}}, spec={"containers": containers, "volumes": [{"name": "v"}]})


def stored(backend: Backend, which: str) -> tuple[Served, JsonObject]:
    """Create an object of one of four kinds, and return its kind and the object."""
    match which:
        case "Pod":
            kind = served(backend, "", "v1", "pods")
            made(
                backend,
                served(backend, "", "v1", "serviceaccounts"),
                {**thing(kind, "default"), "kind": "ServiceAccount"},
            )
            return kind, made(backend, kind, pod(kind))
        case "ConfigMap":
            kind = config_maps(backend)
            return kind, made(backend, kind, thing(kind, metadata={"annotations": {"w": "1"}}, data={"x": ""}))
        case "Namespace":
            kind = served(backend, "", "v1", "namespaces")
            return kind, made(backend, kind, thing(kind), namespace="")
        case _:
            kind = deployments(backend)
            return kind, made(backend, kind, deployment(kind, metadata={"labels": {"app": "a"}}))


@pytest.mark.parametrize("which", ["Pod", "ConfigMap", "Namespace", "Deployment"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_metadata_patch_gives_the_result_of_the_common_path(which: str, change: str) -> None:
    backend = new_backend()
    kind, old = stored(backend, which)
    data = encode_json({"metadata": CHANGES[change]})
    live = presented(kind, old)
    options, others = replace(OTHER, warnings=[]), replace(OTHER, warnings=[])

    assert with_patched_metadata(kind, live, data) is not None
    whole = patched_object(kind, PatchType.MERGE, live, data, FieldValidation.STRICT).obj
    expected = update(backend, kind, old, whole, "", replace(others, dry_run=True), applied=False)
    found = patch(backend, kind, str(find(old, "metadata", "namespace") or ""), "a", "", PatchType.MERGE, data, options)

    metadata = find_object(found.obj, "metadata")
    expected_metadata: JsonObject = {
        **find_object(expected, "metadata"),
        "resourceVersion": metadata["resourceVersion"],
    }
    assert canonical_json(found.obj) == canonical_json({**expected, "metadata": expected_metadata})
    assert options.warnings == others.warnings


OTHERS: dict[str, bytes] = {
    "another member": b'{"metadata": {}, "data": {"x": "1"}}',
    "a member that seems equal, as true and 1 do": b'{"metadata": {}, "data": {"x": ""}}',
    "no metadata": b'{"apiVersion": "v1"}',
    "another kind": b'{"kind": "Secret", "metadata": {}}',
    "no object": b'{"metadata": null}',
    "a list": b"[]",
    "no JSON": b'{"metadata": {',
    "managed fields": b'{"metadata": {"managedFields": [{}]}}',
    "a member twice": b'{"metadata": {"labels": {"a": "1", "a": "2"}}}',
    "an unknown member": b'{"metadata": {"label": {"a": "1"}}}',
    "a wrong type": b'{"metadata": {"labels": {"a": 1}}}',
}


@pytest.mark.parametrize("which", OTHERS)
def test_other_patches_take_the_common_path(which: str) -> None:
    backend = new_backend()
    kind, old = stored(backend, "ConfigMap")
    assert with_patched_metadata(kind, old, OTHERS[which]) is None


def test_a_metadata_patch_leaves_other_members_unchanged() -> None:
    backend = new_backend()
    kind, old = stored(backend, "Pod")
    result = patch(backend, kind, "default", "a", "", PatchType.MERGE, b'{"metadata": {"labels": {"b": "c"}}}', OTHER)
    assert result.obj["spec"] is old["spec"]
    assert result.obj["status"] is old["status"]


def test_an_invalid_label_gives_one_error_and_one_warning() -> None:
    backend = new_backend()
    kind, _ = stored(backend, "Pod")
    options = replace(OTHER, warnings=[])
    body: JsonObject = {"metadata": {"labels": {"a": "-"}, "ownerReferences": [OWNER, OWNER]}}
    with refused(422, "Invalid", 'Pod "a" is invalid: metadata.labels: Invalid value: "-"'):
        patch(backend, kind, "default", "a", "", PatchType.MERGE, encode_json(body), options)
    assert len(options.warnings) == 1


def test_an_invalid_stored_node_name_is_refused() -> None:
    backend = new_backend()
    kind, old = stored(backend, "Pod")
    bound = {**old, "spec": {**find_object(old, "spec"), "nodeName": "a/b"}}  # a binding may set such a name
    backend.put(backend.key(kind, "default", "a"), bound)
    with refused(422, "Invalid", "spec.nodeName"):
        patch(backend, kind, "default", "a", "", PatchType.MERGE, b'{"metadata": {"labels": {"b": "c"}}}', OPTIONS)


@pytest.mark.parametrize(("member", "code"), [(b'"resourceVersion": "1"', 409), (b'"uid": "x"', 422)])
def test_a_different_resource_version_or_uid_is_refused(member: bytes, code: int) -> None:
    backend = new_backend()
    kind, _ = stored(backend, "Pod")
    with refused(code, "Conflict" if code == 409 else "Invalid"):
        patch(backend, kind, "default", "a", "", PatchType.MERGE, b'{"metadata": {%b}}' % member, DRY_RUN)
