from typing import Final

from tests.control_plane.support.bench import (
    DEFINITIONS,
    DRY_RUN,
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
from tests.control_plane.support.samples import SCHEMA, definition
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.options import DeleteOptions, FieldValidation, WriteOptions
from wharfinger.control_plane.verbs.updating import replace, same
from wharfinger.formats.json.value import JsonObject, find, find_list, find_object, find_str

HOLD: Final = "example.com/hold"


def put(backend: Backend, kind: Served, obj: JsonObject, subresource: str = "") -> JsonObject:
    namespace = "default" if kind.kind.namespaced else ""
    return replace(backend, kind, namespace, find_str(obj, "metadata", "name"), subresource, obj, OPTIONS).obj


def version(obj: JsonObject) -> int:
    return int(find_str(obj, "metadata", "resourceVersion"))


def generation(obj: JsonObject) -> object:
    return find(obj, "metadata", "generation")


def test_a_replaced_object_keeps_its_identity() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    old = made(backend, maps, thing(maps, data={"x": "1"}))

    result = replace(backend, maps, "default", "a", "", thing(maps, data={"y": "2"}), OPTIONS)

    assert not result.created
    assert result.obj["data"] == {"y": "2"}
    assert version(result.obj) > version(old)
    assert find(result.obj, "metadata", "uid") == find(old, "metadata", "uid")
    assert find(result.obj, "metadata", "creationTimestamp") == find(old, "metadata", "creationTimestamp")


def test_an_update_of_an_old_version_is_a_conflict() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    read = made(backend, maps, thing(maps))
    put(backend, maps, changed(read, data={"x": "1"}))

    with refused(409, "Conflict", "the object has been modified; please apply your changes to the latest version"):
        put(backend, maps, changed(read, data={"x": "2"}))
    assert find(backend.get(maps, "default", "a"), "data", "x") == "1"


def test_an_update_without_changes_is_not_stored() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    old = made(backend, maps, thing(maps, data={"x": "1"}))

    assert put(backend, maps, thing(maps, data={"x": "1"})) is old
    assert backend.storage.revision == version(old)


def test_times_of_managed_fields_are_no_change() -> None:
    first: JsonObject = {"metadata": {"managedFields": [{"manager": "m", "time": "1"}]}}
    second: JsonObject = {"metadata": {"managedFields": [{"manager": "m", "time": "2"}]}}
    assert same(first, second)
    assert not same(first, {"metadata": {"managedFields": [{"manager": "n", "time": "1"}]}})


def test_booleans_and_numbers_are_different_values() -> None:
    assert not same({"spec": {"x": 1}}, {"spec": {"x": True}})
    assert same({"spec": {"x": 1}}, {"spec": {"x": 1.0}})


def test_updates_of_custom_objects_need_a_resource_version() -> None:
    backend = new_backend()
    kind = widgets(backend)
    made(backend, kind, thing(kind))

    with refused(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update"):
        put(backend, kind, thing(kind, spec={"size": 2}))


def test_updates_of_some_built_in_kinds_need_a_resource_version() -> None:
    backend = new_backend()
    leases = served(backend, "coordination.k8s.io", "v1", "leases")
    made(backend, leases, thing(leases))

    with refused(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update"):
        put(backend, leases, thing(leases, spec={"holderIdentity": "b"}))


def test_an_update_of_a_missing_object_is_refused_or_creates_it() -> None:
    backend = new_backend()
    maps, roles = config_maps(backend), served(backend, "rbac.authorization.k8s.io", "v1", "roles")

    with refused(404, "NotFound", 'configmaps "a" not found'):
        put(backend, maps, thing(maps))
    result = replace(backend, roles, "default", "a", "", thing(roles, metadata={"resourceVersion": "3"}), OPTIONS)
    assert result.created
    assert backend.get(roles, "default", "a") == result.obj


def test_an_update_of_status_creates_no_object() -> None:
    backend = new_backend()
    services = served(backend, "", "v1", "services")
    with refused(404, "NotFound"):
        put(backend, services, thing(services), "status")


def test_the_uid_of_another_object_is_a_conflict() -> None:
    backend = new_backend()
    maps, nodes = config_maps(backend), served(backend, "", "v1", "nodes")
    made(backend, maps, thing(maps))
    made(backend, nodes, thing(nodes), namespace="")

    with refused(409, "Conflict", "Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Pre"):
        put(backend, maps, thing(maps, metadata={"uid": "former"}))
    with refused(409, "Conflict", "Key: /registry/minions/a, ResourceVersion: 0"):
        put(backend, nodes, thing(nodes, metadata={"uid": "former"}))


def test_a_name_that_differs_from_the_path_is_refused() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    with refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"):
        replace(backend, maps, "default", "a", "", thing(maps, "b"), OPTIONS)


def test_the_generation_grows_only_with_the_spec() -> None:
    backend = new_backend()
    kind = deployments(backend)
    old = made(backend, kind, deployment(kind))

    labelled = put(backend, kind, changed(old, {"labels": {"x": "y"}, "generation": 40}))
    reported = put(backend, kind, changed(labelled, status={"replicas": 1}), "status")
    scaled = put(backend, kind, changed(reported, spec={**find_object(reported, "spec"), "replicas": 5}))

    assert [generation(obj) for obj in (old, labelled, reported, scaled)] == [1, 1, 1, 2]


def test_some_kinds_have_no_generation() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps))
    assert generation(put(backend, maps, thing(maps, metadata={"generation": 3}, data={"x": ""}))) is None


def test_a_status_without_the_subresource_counts_for_the_generation() -> None:
    backend = new_backend()
    kind = widgets(backend)
    old = made(backend, kind, thing(kind))

    assert generation(put(backend, kind, changed(old, status={"ready": True}))) == 2


def test_a_write_to_the_main_resource_keeps_the_status() -> None:
    backend = new_backend()
    kind = deployments(backend)
    old = put(backend, kind, changed(made(backend, kind, deployment(kind)), status={"replicas": 3}), "status")

    without = {name: value for name, value in old.items() if name != "status"}
    new = put(backend, kind, changed(without, {"labels": {"x": "y"}}))
    again = put(backend, kind, changed(new, {"labels": {"x": "z"}}, status={"replicas": 9}))

    assert new["status"] == again["status"] == {"replicas": 3}


def test_a_write_to_status_keeps_everything_else() -> None:
    backend = new_backend()
    kind = deployments(backend)
    old = made(backend, kind, deployment(kind, replicas=1))
    asked = changed(
        {**old, "spec": {**find_object(old, "spec"), "replicas": 8}},
        {"labels": {"no": "no"}, "annotations": {"seen": "yes"}},
        status={"replicas": 1},
    )

    new = put(backend, kind, asked, "status")

    assert new["spec"] == old["spec"]
    assert new["status"] == {"replicas": 1}
    assert find(new, "metadata", "labels") is None
    assert find(new, "metadata", "annotations") == {"seen": "yes"}
    assert find(new, "metadata", "managedFields", 1, "subresource") == "status"


def test_a_write_to_status_of_a_custom_kind_keeps_metadata() -> None:
    backend = new_backend()
    kind = widgets(backend, subresources={"status": {}})
    old = made(backend, kind, thing(kind, spec={"size": 1}))
    asked = changed(old, {"annotations": {"no": "no"}}, spec={"size": 2}, status={"ready": True})

    new = put(backend, kind, asked, "status")
    emptied = put(backend, kind, {name: value for name, value in new.items() if name != "status"}, "status")

    assert (new["spec"], new["status"]) == ({"size": 1}, {"ready": True})
    assert find(new, "metadata", "annotations") is None
    assert "status" not in emptied


def test_removing_the_last_finalizer_removes_the_object() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps, metadata={"finalizers": [HOLD]}))
    marked = delete(backend, maps, "default", "a", DeleteOptions())

    kept = put(backend, maps, changed(marked, data={"x": "1"}))
    gone = put(backend, maps, changed(kept, {"finalizers": None}))

    assert find(gone, "metadata", "resourceVersion") == find(kept, "metadata", "resourceVersion")
    assert find_list(gone, "metadata", "finalizers") == []
    assert backend.get(maps, "default", "a") is None
    assert backend.storage.revision == version(kept) + 1


def test_an_object_being_deleted_accepts_no_new_finalizers() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps, metadata={"finalizers": [HOLD]}))
    marked = delete(backend, maps, "default", "a", DeleteOptions())

    with refused(422, "Invalid", "no new finalizers can be added if the object is being deleted"):
        put(backend, maps, changed(marked, {"finalizers": [HOLD, "example.com/more"]}))
    unmarked = put(backend, maps, changed(marked, {"deletionTimestamp": None}, data={"x": ""}))
    assert find(unmarked, "metadata", "deletionTimestamp") == find(marked, "metadata", "deletionTimestamp")


def test_dry_runs_change_nothing() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    old = made(backend, maps, thing(maps, metadata={"finalizers": [HOLD]}))

    new = replace(backend, maps, "default", "a", "", changed(old, data={"x": "1"}), DRY_RUN).obj
    assert new["data"] == {"x": "1"}
    assert backend.get(maps, "default", "a") == old

    marked = delete(backend, maps, "default", "a", DeleteOptions())
    replace(backend, maps, "default", "a", "", changed(marked, {"finalizers": None}), DRY_RUN)
    assert backend.get(maps, "default", "a") == marked


def test_unknown_fields_give_warnings() -> None:
    backend = new_backend()
    kind = widgets(backend)
    body = changed(made(backend, kind, thing(kind)), spec={"sise": 1})

    assert replace(backend, kind, "default", "a", "", body, OPTIONS).warnings == ('unknown field "spec.sise"',)
    strict = WriteOptions("tester", validation=FieldValidation.STRICT)
    with refused(400, "BadRequest", "strict decoding error"):
        replace(backend, kind, "default", "a", "", body, strict)


def test_immutable_fields_cannot_be_changed() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    old = made(backend, maps, thing(maps, immutable=True, data={"x": "1"}))

    with refused(422, "Invalid", "data: Forbidden: field is immutable when `immutable` is set"):
        put(backend, maps, changed(old, data={"x": "2"}))


def test_a_namespace_is_finalized_before_it_is_removed() -> None:
    backend = new_backend()
    namespaces = served(backend, "", "v1", "namespaces")
    made(backend, namespaces, thing(namespaces, "n"), namespace="")
    kept = put(backend, namespaces, thing(namespaces, "n", {"labels": {"x": "y"}}, spec={"finalizers": []}))
    assert kept["spec"] == {"finalizers": ["kubernetes"]}

    other = put(backend, namespaces, changed(kept, spec={"finalizers": ["example.com/other"]}), "finalize")
    marked = delete(backend, namespaces, "", "n", DeleteOptions())
    reported = put(backend, namespaces, changed(marked, status={"phase": "Terminating", "conditions": []}), "status")
    assert other["spec"] == {"finalizers": ["example.com/other"]}
    assert backend.get(namespaces, "", "n") == reported

    gone = put(backend, namespaces, changed(reported, spec={"finalizers": []}), "finalize")

    assert gone["spec"] == {}
    assert backend.get(namespaces, "", "n") is None


def test_a_definition_keeps_its_earlier_storage_versions() -> None:
    backend = new_backend()
    definitions = served(backend, *DEFINITIONS)
    widgets(backend)
    body = definition(storage=False)
    find_list(body, "spec", "versions").append(
        {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    )

    version_now = find_str(backend.get(definitions, "", "widgets.example.com"), "metadata", "resourceVersion")
    new = put(backend, definitions, changed(body, {"resourceVersion": version_now}))

    assert find(new, "status", "storedVersions") == ["v1", "v2"]
