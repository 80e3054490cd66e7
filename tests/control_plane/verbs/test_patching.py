import pytest

from tests.control_plane.support.bench import (
    OPTIONS,
    changed,
    config_maps,
    deployment,
    deployments,
    made,
    new_backend,
    refused,
    served,
    thing,
    widgets,
)
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.intake import Written
from wharfinger.control_plane.verbs.options import DeleteOptions, FieldValidation, WriteOptions
from wharfinger.control_plane.verbs.patching import PatchType, patch, patched
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_list, find_str


def do(
    backend: Backend,
    kind: Served,
    type_: PatchType,
    body: JsonValue,
    options: WriteOptions = OPTIONS,
    subresource: str = "",
) -> Written:
    return patch(backend, kind, "default", "a", subresource, type_, encode_json(body), options)


def applier(manager: str, *, force: bool = False, dry_run: bool = False) -> WriteOptions:
    return WriteOptions(manager, dry_run=dry_run, force=force)


def test_a_json_patch_applies_its_operations() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps, data={"x": "1"}))
    operations: JsonValue = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "add", "path": "/data/y", "value": "2"},
        {"op": "remove", "path": "/data/x"},
    ]

    result = do(backend, maps, PatchType.JSON, operations)

    assert (result.created, result.obj["data"]) == (False, {"y": "2"})
    assert backend.get(maps, "default", "a") == result.obj


def test_a_failed_json_patch_changes_nothing() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    old = made(backend, maps, thing(maps, data={"x": "1"}))
    operations: JsonValue = [
        {"op": "add", "path": "/data/y", "value": "2"},
        {"op": "test", "path": "/data/x", "value": "no"},
    ]

    with refused(422, "Invalid", "the server rejected our request due to an error in our request"):
        do(backend, maps, PatchType.JSON, operations)
    assert backend.get(maps, "default", "a") == old


@pytest.mark.parametrize(
    ("type_", "body", "part"),
    [
        (PatchType.JSON, {"op": "remove"}, "error decoding patch"),
        (PatchType.JSON, [{"op": "nosuch", "path": "/data"}], ""),
        (PatchType.MERGE, ["x"], "error decoding patch: json: cannot unmarshal array into Go value"),
        (PatchType.STRATEGIC, "x", "json: cannot unmarshal string into Go value"),
        (PatchType.STRATEGIC, {"spec": {"template": {"spec": {"containers": [{"image": "i"}]}}}}, "name"),
        (
            PatchType.APPLY,
            [],
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array",
        ),
    ],
)
def test_invalid_patches_are_refused(type_: PatchType, body: JsonValue, part: str) -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind))

    with pytest.raises(StatusError) as caught:
        do(backend, kind, type_, body)
    assert caught.value.code in {400, 422, 500}
    assert part in caught.value.message


def test_a_merge_patch_sets_and_removes_fields() -> None:
    backend = new_backend()
    kind = widgets(backend)
    made(backend, kind, thing(kind, spec={"size": 1, "color": "red"}))

    result = do(backend, kind, PatchType.MERGE, {"spec": {"size": 2, "color": None}})

    assert result.obj["spec"] == {"size": 2}
    assert find(result.obj, "metadata", "generation") == 2


def test_a_strategic_merge_patch_merges_lists_by_key() -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind))
    added: JsonObject = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:1"}]}}}}

    obj = do(backend, kind, PatchType.STRATEGIC, added).obj

    containers = find_list(obj, "spec", "template", "spec", "containers")
    assert {find_str(item, "name") for item in containers} == {"main", "side"}


def test_a_merge_patch_replaces_lists() -> None:
    live: JsonObject = {"spec": {"items": [{"name": "a"}, {"name": "b"}]}}
    kind = config_maps(new_backend())

    assert patched(kind, PatchType.MERGE, live, b'{"spec":{"items":[{"name":"c"}]}}')[0] == {
        "spec": {"items": [{"name": "c"}]}
    }


@pytest.mark.parametrize("type_", [PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC])
def test_only_an_apply_creates_objects(type_: PatchType) -> None:
    backend = new_backend()
    with refused(404, "NotFound", 'configmaps "a" not found'):
        do(backend, config_maps(backend), type_, [] if type_ is PatchType.JSON else {})


def test_a_patch_with_another_resource_version_is_a_conflict() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    old = made(backend, maps, thing(maps))
    version = find_str(old, "metadata", "resourceVersion")

    with refused(409, "Conflict", "the object has been modified"):
        do(backend, maps, PatchType.MERGE, {"metadata": {"resourceVersion": "1"}, "data": {"x": "1"}})
    body: JsonObject = {"metadata": {"resourceVersion": version}, "data": {"x": "1"}}
    assert do(backend, maps, PatchType.MERGE, body).obj["data"] == {"x": "1"}


def test_a_patch_with_an_invalid_result_is_refused() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps))

    with refused(422, "Invalid", "cannot unmarshal number into Go struct field ConfigMap.data of type string"):
        do(backend, maps, PatchType.MERGE, {"data": {"x": 1}})
    with refused(422, "Invalid", "patch: Invalid value"):
        do(backend, maps, PatchType.MERGE, {"kind": "Secret"})
    with refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"):
        do(backend, maps, PatchType.MERGE, {"metadata": {"name": "b"}})
    with refused(422, "Invalid", "metadata.uid: Invalid value"):
        do(backend, maps, PatchType.MERGE, {"metadata": {"uid": "other"}})
    with refused(422, "Invalid"):
        do(backend, maps, PatchType.JSON, [{"op": "replace", "path": "", "value": 5}])


def test_unknown_fields_of_a_patch_cause_a_warning_or_an_error() -> None:
    backend = new_backend()
    kind = widgets(backend)
    made(backend, kind, thing(kind))
    body: JsonObject = {"spec": {"sise": 1}}

    assert do(backend, kind, PatchType.MERGE, body).warnings == ('unknown field "spec.sise"',)
    with refused(422, "Invalid", "strict decoding error"):
        do(backend, kind, PatchType.MERGE, body, WriteOptions("m", validation=FieldValidation.STRICT))


def test_a_patch_of_status_changes_only_the_status() -> None:
    backend = new_backend()
    kind = widgets(backend, subresources={"status": {}})
    made(backend, kind, thing(kind, spec={"size": 1}))
    body: JsonObject = {"spec": {"size": 2}, "status": {"ready": True}}

    through_status = do(backend, kind, PatchType.MERGE, body, subresource="status").obj
    through_main = do(backend, kind, PatchType.MERGE, {**body, "status": {"ready": False}}).obj

    assert (through_status["spec"], through_status["status"]) == ({"size": 1}, {"ready": True})
    assert (through_main["spec"], through_main["status"]) == ({"size": 2}, {"ready": True})


def test_a_patch_that_removes_the_last_finalizer_deletes_the_object() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps, metadata={"finalizers": ["example.com/hold"]}))
    delete(backend, maps, "default", "a", DeleteOptions())

    do(backend, maps, PatchType.MERGE, {"metadata": {"finalizers": None}})

    assert backend.get(maps, "default", "a") is None


def test_apply_creates_and_changes() -> None:
    backend = new_backend()
    maps = config_maps(backend)

    first = do(backend, maps, PatchType.APPLY, thing(maps, data={"x": "1", "y": "1"}), applier("one"))
    second = do(backend, maps, PatchType.APPLY, thing(maps, data={"x": "2"}), applier("one"))

    assert (first.created, second.created) == (True, False)
    assert second.obj["data"] == {"x": "2"}
    assert find(second.obj, "metadata", "managedFields", 0, "operation") == "Apply"


def test_an_apply_without_changes_is_not_stored() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    first = do(backend, maps, PatchType.APPLY, thing(maps, data={"x": "1"}), applier("one")).obj

    assert do(backend, maps, PatchType.APPLY, thing(maps, data={"x": "1"}), applier("one")).obj == first
    assert find(first, "metadata", "resourceVersion") == str(backend.storage.revision)


def test_conflicts_between_appliers_name_manager_and_fields() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    do(backend, maps, PatchType.APPLY, thing(maps, data={"x": "1"}), applier("one"))
    other = thing(maps, data={"x": "2"})

    with pytest.raises(StatusError) as caught:
        do(backend, maps, PatchType.APPLY, other, applier("two"))
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert find_list(caught.value.body(), "details", "causes") == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.x"}
    ]
    assert do(backend, maps, PatchType.APPLY, other, applier("two", force=True)).obj["data"] == {"x": "2"}


def test_a_dry_run_of_an_apply_stores_nothing() -> None:
    backend = new_backend()
    maps = config_maps(backend)

    assert do(backend, maps, PatchType.APPLY, thing(maps), applier("one", dry_run=True)).created
    assert backend.get(maps, "default", "a") is None


def test_invalid_intents_are_refused() -> None:
    backend = new_backend()
    maps = config_maps(backend)

    with refused(400, "BadRequest", "metadata.managedFields must be nil"):
        do(backend, maps, PatchType.APPLY, thing(maps, metadata={"managedFields": [{}]}))
    with refused(400, "BadRequest", "invalid object type: apps/v1, Kind=ConfigMap"):
        do(backend, maps, PatchType.APPLY, {**thing(maps), "apiVersion": "apps/v1"})
    with refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"):
        do(backend, maps, PatchType.APPLY, thing(maps, "b"))
    with refused(400, "BadRequest", "does not match the namespace sent on the request"):
        do(backend, maps, PatchType.APPLY, thing(maps, metadata={"namespace": "other"}))
    with refused(404, "NotFound"):
        do(
            backend,
            served(backend, "", "v1", "pods"),
            PatchType.APPLY,
            thing(served(backend, "", "v1", "pods")),
            subresource="status",
        )


def test_an_apply_with_another_resource_version_is_a_conflict() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    conditional = thing(maps, metadata={"resourceVersion": "1"})

    assert do(
        new_backend(), maps, PatchType.APPLY, conditional
    ).created  # there is no stored object, so no other version
    obj = made(backend, maps, thing(maps))
    with refused(409, "Conflict", "the object has been modified"):
        do(backend, maps, PatchType.APPLY, conditional)
    version = find(obj, "metadata", "resourceVersion")
    new = do(backend, maps, PatchType.APPLY, changed(conditional, {"resourceVersion": version}, data={"x": ""}))
    assert new.obj["data"] == {"x": ""}


def test_an_apply_of_an_undeclared_field_is_refused() -> None:
    backend = new_backend()
    kind = widgets(backend)

    with refused(500, "", "field not declared in schema"):
        do(backend, kind, PatchType.APPLY, thing(kind, spec={"sise": 1}), applier("one"))


def test_an_apply_of_wrong_types_is_refused() -> None:
    backend = new_backend()
    kind = deployments(backend)
    twice: JsonValue = [{"name": "c", "image": "i"}, {"name": "c", "image": "j"}]
    obj = deployment(kind)
    obj["spec"] = {"template": {"spec": {"containers": twice}}}

    with pytest.raises(StatusError) as caught:
        do(backend, kind, PatchType.APPLY, obj, applier("one"))
    assert caught.value.code in {400, 500}


def test_an_apply_to_status_changes_only_the_status() -> None:
    backend = new_backend()
    kind = widgets(backend, subresources={"status": {}})

    main = do(backend, kind, PatchType.APPLY, thing(kind, spec={"size": 1}, status={"ready": True}), applier("one"))
    status = do(backend, kind, PatchType.APPLY, thing(kind, status={"ready": True}), applier("two"), "status")

    assert "status" not in main.obj
    assert (status.obj["spec"], status.obj["status"]) == ({"size": 1}, {"ready": True})
