from tests.control_plane.support.bench import DEFINITIONS, OPTIONS, changed, made, new_backend, served, thing, widgets
from tests.control_plane.support.samples import NOW, SCHEMA, definition
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.catalog.custom_kinds import CLEANUP_FINALIZER
from wharfinger.control_plane.controllers.server.definitions import DEFINITIONS as DEFINITION_OBJECTS
from wharfinger.control_plane.service import assemble
from wharfinger.control_plane.storage.interface import Change, ChangeType, Key
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.options import DeleteOptions
from wharfinger.control_plane.verbs.updating import replace
from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_object, find_str

NAME = "widgets.example.com"
HOLD: JsonObject = {"finalizers": ["example.com/hold"]}
CLEANUP: JsonObject = {"finalizers": [CLEANUP_FINALIZER]}


def current(backend: Backend) -> JsonObject:
    found = backend.get(served(backend, *DEFINITIONS), "", NAME)
    assert found is not None
    return found


def conditions(backend: Backend) -> dict[str, str]:
    return {
        find_str(item, "type"): find_str(item, "reason")
        for item in find_list(current(backend), "status", "conditions")
        if find(item, "status") == "True"
    }


def update(backend: Backend, obj: JsonObject) -> JsonObject:
    return replace(backend, served(backend, *DEFINITIONS), "", NAME, "", obj, OPTIONS).obj


def remove(backend: Backend) -> None:
    delete(backend, served(backend, *DEFINITIONS), "", NAME, DeleteOptions())


def release(backend: Backend, name: str) -> None:
    kind = served(backend, "example.com", "v1", "widgets")
    obj = as_object(backend.get(kind, "default", name), name)
    replace(backend, kind, "default", name, "", changed(obj, {"finalizers": None}), OPTIONS)


def serves(backend: Backend, version: str = "v1") -> bool:
    return backend.catalog.find("example.com", version, "widgets") is not None


def test_a_created_definition_is_served_and_established_at_once() -> None:
    backend = new_backend()

    answer = made(backend, served(backend, *DEFINITIONS), definition(), namespace="")

    assert serves(backend)
    assert find(answer, "status", "conditions") is None
    assert conditions(backend) == {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}
    assert find(current(backend), "status", "acceptedNames", "kind") == "Widget"
    assert find(current(backend), "metadata", "generation") == 1


def test_the_server_manages_the_status_of_definitions() -> None:
    backend = new_backend()
    widgets(backend)

    entries = find_list(current(backend), "metadata", "managedFields")
    assert {find_str(item, "manager"): find_str(item, "subresource") for item in entries} == {
        "tester": "",
        "kube-apiserver": "status",
    }


def test_an_unchanged_status_is_not_written() -> None:
    backend = new_backend()
    widgets(backend)
    generation, revision = backend.catalog.generation, backend.storage.revision

    update(backend, changed(current(backend), {"labels": {"x": "y"}}))

    assert backend.storage.revision == revision + 1
    assert backend.catalog.generation == generation


def test_added_and_removed_versions_are_served_and_not_served() -> None:
    backend = new_backend()
    widgets(backend)
    body = definition()
    versions = find_list(body, "spec", "versions")
    versions.append({"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}})
    version = find(current(backend), "metadata", "resourceVersion")

    update(backend, changed(body, {"resourceVersion": version}))
    assert (serves(backend, "v1"), serves(backend, "v2")) == (True, True)

    now = current(backend)
    unserved = [{**as_object(item, "version"), "served": False} for item in versions[:1]]
    update(backend, changed(now, spec={**find_object(now, "spec"), "versions": [*unserved, *versions[1:]]}))
    assert (serves(backend, "v1"), serves(backend, "v2")) == (False, True)


def test_a_definition_without_instances_is_removed_at_once() -> None:
    backend = new_backend()
    kind = widgets(backend)
    made(backend, kind, thing(kind))
    delete(backend, kind, "default", "a", DeleteOptions())

    remove(backend)

    assert not serves(backend)
    assert backend.get(served(backend, *DEFINITIONS), "", NAME) is None


def test_instances_are_deleted_with_their_definition() -> None:
    backend = new_backend()
    kind = widgets(backend)
    made(backend, kind, thing(kind))
    made(backend, kind, thing(kind), namespace="kube-public")
    told: list[Change] = []
    backend.observe(told.append)

    remove(backend)

    assert backend.storage.list(kind.kind.collection) == ()
    deleted = [change.key.place for change in told if change.type is ChangeType.DELETED]
    assert sorted(deleted) == sorted(["default/a", "kube-public/a", f"/{NAME}", "/v1.example.com"])
    assert not serves(backend)


def test_a_definition_is_removed_with_its_last_instance() -> None:
    backend = new_backend()
    kind = widgets(backend)
    for name in ("a", "b"):
        made(backend, kind, thing(kind, name, HOLD))

    remove(backend)
    assert conditions(backend)["Terminating"] == "InstanceDeletionInProgress"
    release(backend, "a")
    assert serves(backend)
    assert find_list(current(backend), "metadata", "finalizers") == ["customresourcecleanup.apiextensions.k8s.io"]
    release(backend, "b")

    assert not serves(backend)
    assert backend.get(served(backend, *DEFINITIONS), "", NAME) is None


def test_a_definition_with_another_finalizer_is_not_removed() -> None:
    backend = new_backend()
    made(backend, served(backend, *DEFINITIONS), changed(definition(), HOLD), namespace="")
    kind = served(backend, "example.com", "v1", "widgets")
    made(backend, kind, thing(kind))

    remove(backend)

    assert backend.storage.list(kind.kind.collection) == ()
    assert find_list(current(backend), "metadata", "finalizers") == HOLD["finalizers"]
    assert serves(backend)
    update(backend, changed(current(backend), {"finalizers": None}))
    assert not serves(backend)


def test_instances_of_unserved_versions_are_deleted() -> None:
    backend = new_backend()
    kind = widgets(backend)
    made(backend, kind, thing(kind))
    now = current(backend)
    unserved = [{**as_object(item, "version"), "served": False} for item in find_list(now, "spec", "versions")]
    update(backend, changed(now, spec={**find_object(now, "spec"), "versions": list(unserved)}))
    assert not serves(backend)

    remove(backend)

    assert backend.storage.list(kind.kind.collection) == ()
    assert backend.get(served(backend, *DEFINITIONS), "", NAME) is None


def test_deletions_of_other_objects_are_ignored() -> None:
    backend = new_backend()
    kind = widgets(backend)
    made(backend, kind, thing(kind))
    before = current(backend)

    delete(backend, kind, "default", "a", DeleteOptions())

    assert current(backend) == before


def test_a_recreated_definition_is_served_again() -> None:
    backend = new_backend()
    widgets(backend)
    remove(backend)

    widgets(backend)

    assert serves(backend)
    assert set(conditions(backend)) == {"NamesAccepted", "Established"}


def test_load_serves_stored_definitions() -> None:
    storage = MemoryStorage()
    first = assemble(storage, lambda: NOW, None, None).backend
    widgets(first)

    second = assemble(storage, lambda: NOW, None, None).backend

    assert serves(second)
    assert backend_kinds(second) == backend_kinds(first)


def backend_kinds(backend: Backend) -> list[str]:
    return [kind.resource for kind in backend.catalog.kinds() if kind not in Catalog().kinds()]


def restarted(backend: Backend) -> Backend:
    """Return a new backend on the storage of ``backend``, as after a restart of the process."""
    return assemble(backend.storage, lambda: NOW, None, None).backend


def test_load_establishes_a_definition_that_was_only_created() -> None:
    before = new_backend()
    obj: JsonObject = definition()
    before.storage.put(Key(DEFINITION_OBJECTS, "", NAME), obj)

    backend = restarted(before)

    assert serves(backend)
    assert conditions(backend) == {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}
    revision = backend.storage.revision
    assert restarted(backend).storage.revision == revision


def test_load_completes_an_interrupted_deletion() -> None:
    before = new_backend()
    kind = widgets(before)
    made(before, kind, thing(kind, "free"))
    made(before, kind, thing(kind, "held", HOLD))
    marked = changed(current(before), {"deletionTimestamp": "2026-11-21T04:00:00Z", **CLEANUP})
    before.storage.put(Key(DEFINITION_OBJECTS, "", NAME), marked)

    backend = restarted(before)

    assert [find(item, "metadata", "name") for item in backend.storage.list(kind.kind.collection)] == ["held"]
    assert conditions(backend)["Terminating"] == "InstanceDeletionInProgress"
    release(backend, "held")
    assert not serves(backend)
    assert backend.storage.list(DEFINITION_OBJECTS) == ()
