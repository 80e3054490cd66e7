"""The life of a namespace: furnished, emptied, let go; conditions as a real controller manager writes them."""

from datetime import UTC, datetime
from typing import Final

from tests.cluster.control_plane.recorded_requests import steps
from wharfinger.cluster.control_plane.controllers.namespaces import (
    LOOK_AGAIN_S,
    ROOT_CA,
    reconcile_active,
    reconcile_terminating,
)
from wharfinger.cluster.control_plane.controllers.writes import NOTHING, Create, Delete, Patch, Plan
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject, JsonValue, as_object, find, find_list, find_object

NAMESPACE: Final = ObjectKey(ResourceType("", "v1", "Namespace", "namespaces", namespaced=False), "", "n")
CONFIG_MAPS: Final = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


def namespace(*finalizers: str) -> JsonObject:
    metadata: JsonObject = {"name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return {
        "metadata": metadata,
        "spec": {"finalizers": list[JsonValue](finalizers)},
        "status": {"phase": "Terminating"},
    }


def content(name: str, *finalizers: str, deleted: bool = False) -> tuple[ObjectKey, JsonObject]:
    metadata: JsonObject = {"name": name, "uid": f"uid-{name}", "finalizers": list[JsonValue](finalizers)}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return ObjectKey(CONFIG_MAPS, "n", name), {"metadata": metadata}


def test_furniture() -> None:
    plan = reconcile_active(namespace(), has_account=False, has_root_ca=False, root_ca="PEM")
    account, root_ca = plan.writes
    assert isinstance(account, Create)
    assert account.obj == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "n"},
    }
    assert isinstance(root_ca, Create)
    assert find(root_ca.obj, "metadata", "name") == ROOT_CA
    assert root_ca.obj["data"] == {"ca.crt": "PEM"}
    assert reconcile_active(namespace(), has_account=True, has_root_ca=True, root_ca="PEM") == NOTHING


def test_an_empty_namespace_is_let_go_as_recorded() -> None:
    recorded = as_object(steps("30-namespace-lifecycle-b")[6].response, "namespace")
    before = namespace("kubernetes", "tr.example.com/own")
    status, finalize = reconcile_terminating(NAMESPACE, before, [], NOW).writes
    assert finalize == Patch(NAMESPACE, {"spec": {"finalizers": ["tr.example.com/own"]}}, "finalize")
    assert isinstance(status, Patch)
    assert status.subresource == "status"
    told = [
        as_object(one, "condition") | {"lastTransitionTime": "$time"}
        for one in find_list(status.patch, "status", "conditions")
    ]
    assert told == find_list(recorded, "status", "conditions")


def test_content_is_deleted_before_anything_is_said() -> None:
    plan = reconcile_terminating(NAMESPACE, namespace("kubernetes"), [content("a"), content("b", deleted=True)], NOW)
    assert plan == Plan((Delete(content("a")[0], "uid-a"),), LOOK_AGAIN_S)


def test_what_remains_is_said() -> None:
    held = [content("a", "x/y", deleted=True), content("b", "x/y", deleted=True), content("c", deleted=True)]
    plan = reconcile_terminating(NAMESPACE, namespace("kubernetes"), held, NOW)
    (status,) = plan.writes
    assert isinstance(status, Patch)
    said = {
        find(one, "type"): find(one, "message") for one in find_list(find_object(status.patch, "status"), "conditions")
    }
    assert said["NamespaceContentRemaining"] == "Some resources are remaining: configmaps. has 3 resource instances"
    assert said["NamespaceFinalizersRemaining"] == (
        "Some content in the namespace has finalizers remaining: x/y in 2 resource instances"
    )
    assert plan.again_s == LOOK_AGAIN_S


def test_a_namespace_that_others_hold_is_not_ours() -> None:
    assert reconcile_terminating(NAMESPACE, namespace("other"), [content("a")], NOW) == NOTHING
