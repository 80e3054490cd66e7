import pytest

from tests.control_plane.support.bench import (
    DEFINITIONS,
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
from wharfinger.control_plane.verbs.deletion import delete, held_by
from wharfinger.control_plane.verbs.options import DeleteOptions
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str

NOTHING = DeleteOptions()
HOLD: JsonObject = {"finalizers": ["example.com/hold"]}


def test_an_object_without_finalizers_is_removed_at_once() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    uid = find_str(made(backend, maps, thing(maps)), "metadata", "uid")

    answer = delete(backend, maps, "default", "a", NOTHING)

    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    assert backend.get(maps, "default", "a") is None
    with refused(404, "NotFound", 'configmaps "a" not found'):
        delete(backend, maps, "default", "a", NOTHING)


def test_deletion_of_some_kinds_returns_the_object() -> None:
    backend = new_backend()
    accounts = served(backend, "", "v1", "serviceaccounts")
    made(backend, accounts, thing(accounts))

    answer = delete(backend, accounts, "default", "a", NOTHING)

    assert answer["kind"] == "ServiceAccount"
    assert find(answer, "metadata", "resourceVersion") == str(backend.storage.revision)
    assert backend.get(accounts, "default", "a") is None


def test_the_answer_to_a_deleted_pod_has_a_deletion_timestamp() -> None:
    backend = new_backend()
    pods = served(backend, "", "v1", "pods")
    made(backend, pods, thing(pods, spec={"containers": [{"name": "c", "image": "i"}]}))

    answer = delete(backend, pods, "default", "a", NOTHING)

    assert find(answer, "metadata", "deletionTimestamp") == "2026-11-21T04:00:00Z"
    assert find(answer, "metadata", "deletionGracePeriodSeconds") == 0
    assert backend.get(pods, "default", "a") is None


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_cannot_be_deleted(name: str) -> None:
    backend = new_backend()
    with refused(403, "Forbidden", "this namespace may not be deleted"):
        delete(backend, served(backend, "", "v1", "namespaces"), "", name, NOTHING)


def test_preconditions_must_match_the_object() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    obj = made(backend, maps, thing(maps))
    uid, version = find_str(obj, "metadata", "uid"), find_str(obj, "metadata", "resourceVersion")

    with refused(409, "Conflict", f"the UID in the precondition (other) does not match the UID in record ({uid})"):
        delete(backend, maps, "default", "a", DeleteOptions(uid="other"))
    with refused(409, "Conflict", "the ResourceVersion in the precondition (1) does not match the ResourceVersion in"):
        delete(backend, maps, "default", "a", DeleteOptions(uid=uid, resource_version="1"))
    assert backend.get(maps, "default", "a") == obj

    delete(backend, maps, "default", "a", DeleteOptions(uid=uid, resource_version=version))
    assert backend.get(maps, "default", "a") is None


def test_an_object_with_finalizers_is_not_removed() -> None:
    backend = new_backend()
    kind = deployments(backend)
    made(backend, kind, deployment(kind, metadata=HOLD))

    answer = delete(backend, kind, "default", "a", NOTHING)

    assert find(answer, "metadata", "deletionTimestamp") == "2026-11-21T04:00:00Z"
    assert find(answer, "metadata", "deletionGracePeriodSeconds") == 0
    assert find(answer, "metadata", "generation") == 2
    assert backend.get(kind, "default", "a") == answer


def test_a_second_delete_changes_nothing() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps, metadata=HOLD))
    first = delete(backend, maps, "default", "a", NOTHING)
    revision = backend.storage.revision

    assert delete(backend, maps, "default", "a", NOTHING) == first
    assert backend.storage.revision == revision
    assert find(first, "metadata", "generation") is None


@pytest.mark.parametrize(("policy", "finalizer"), [("Orphan", "orphan"), ("Foreground", "foregroundDeletion")])
def test_a_propagation_policy_sets_a_finalizer(policy: str, finalizer: str) -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps))

    answer = delete(backend, maps, "default", "a", DeleteOptions(propagation=policy))

    assert find_list(answer, "metadata", "finalizers") == [finalizer]
    assert find(answer, "metadata", "deletionTimestamp")


def test_another_policy_replaces_the_finalizer() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps, metadata=HOLD))
    delete(backend, maps, "default", "a", DeleteOptions(propagation="Orphan"))

    foreground = delete(backend, maps, "default", "a", DeleteOptions(propagation="Foreground"))
    background = delete(backend, maps, "default", "a", DeleteOptions(propagation="Background"))

    assert find_list(foreground, "metadata", "finalizers") == ["example.com/hold", "foregroundDeletion"]
    assert find_list(background, "metadata", "finalizers") == ["example.com/hold"]


def test_background_removes_the_finalizer_of_another_policy() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps))
    delete(backend, maps, "default", "a", DeleteOptions(propagation="Foreground"))

    assert delete(backend, maps, "default", "a", DeleteOptions(propagation="Background"))["kind"] == "Status"
    assert backend.get(maps, "default", "a") is None


def test_dry_runs_change_nothing() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps))
    made(backend, maps, thing(maps, "held", HOLD))
    revision = backend.storage.revision

    assert delete(backend, maps, "default", "a", DeleteOptions(dry_run=True))["status"] == "Success"
    marked = delete(backend, maps, "default", "held", DeleteOptions(dry_run=True))

    assert find(marked, "metadata", "deletionTimestamp")
    assert backend.storage.revision == revision


def test_a_namespace_with_its_finalizer_is_not_removed() -> None:
    backend = new_backend()
    namespaces = served(backend, "", "v1", "namespaces")
    made(backend, namespaces, thing(namespaces, "n"), namespace="")

    answer = delete(backend, namespaces, "", "n", NOTHING)

    assert find(answer, "status", "phase") == "Terminating"
    assert find(answer, "metadata", "deletionTimestamp")
    assert find(answer, "metadata", "deletionGracePeriodSeconds") is None
    assert backend.get(namespaces, "", "n") is not None


def test_a_definition_is_not_removed_at_once() -> None:
    backend = new_backend()
    kind, definitions = widgets(backend), served(backend, *DEFINITIONS)
    made(backend, kind, thing(kind, metadata=HOLD))

    answer = delete(backend, definitions, "", "widgets.example.com", NOTHING)

    assert find_list(answer, "metadata", "finalizers") == ["customresourcecleanup.apiextensions.k8s.io"]
    assert find_list(answer, "status", "conditions")[-1] == {
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": "2026-11-21T04:00:00Z",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }
    assert find(backend.get(kind, "default", "a"), "metadata", "deletionTimestamp")


def test_finalizers_prevent_removal() -> None:
    assert held_by("ConfigMap", {"metadata": {"finalizers": ["x/y"]}})
    assert not held_by("ConfigMap", {"metadata": {}, "spec": {"finalizers": ["kubernetes"]}})
    assert held_by("Namespace", {"spec": {"finalizers": ["kubernetes"]}})
    assert not held_by("Namespace", {"spec": {}})
    assert held_by("CustomResourceDefinition.apiextensions.k8s.io", {})
