"""Workloads that become available, with the statuses a real controller manager writes."""

from datetime import UTC, datetime
from typing import Final

import pytest

from tests.cluster.control_plane.recorded_requests import steps
from wharfinger.cluster.control_plane.controllers.workloads import (
    HASH_LABEL,
    REPLICA_SETS,
    REVISION,
    reconcile_daemon_set,
    reconcile_deployment,
    reconcile_replica_set,
    reconcile_stateful_set,
    seconds_left,
    template_hash,
)
from wharfinger.cluster.control_plane.controllers.writes import Create, Delete, Patch, Plan
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.formats.merge_patch import merge_patch

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
KEY: Final = ObjectKey(ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True), "n", "web")
TEMPLATE: Final[JsonObject] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "a", "image": "1"}]},
}
OTHER: Final[JsonObject] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "2"}]}}


def workload(
    *, annotations: JsonObject | None = None, template: JsonObject = TEMPLATE, **spec: JsonValue
) -> JsonObject:
    metadata: JsonObject = {
        "name": "web",
        "namespace": "n",
        "uid": "u",
        "generation": 3,
        "annotations": annotations or {},
    }
    whole: JsonObject = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": whole, "status": {}}


def replica_set(template: JsonObject = TEMPLATE, *, revision: int = 1, replicas: int = 2, ready: int = 2) -> JsonObject:
    """A set as it is stored, its controller having seen it."""
    digest = template_hash(template)
    metadata: JsonObject = {
        "name": f"web-{digest}",
        "namespace": "n",
        "uid": f"uid-{digest}",
        "generation": 1,
        "labels": {HASH_LABEL: digest},
        "annotations": {REVISION: str(revision)},
    }
    status: JsonObject = {
        "replicas": replicas,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": 1,
    }
    return {"metadata": metadata, "spec": {"replicas": replicas}, "status": status}


def status_after(plan: Plan, obj: JsonObject) -> JsonObject:
    """The status the plan's write leaves."""
    writes = [write for write in plan.writes if isinstance(write, Patch) and write.subresource == "status"]
    assert len(writes) <= 1
    patched = merge_patch(obj, writes[0].patch) if writes else obj
    return find_object(patched, "status")


def conditions_of(status: JsonObject) -> dict[str, tuple[str, str]]:
    return {
        find_str(one, "type"): (find_str(one, "status"), find_str(one, "reason"))
        for one in find_list(status, "conditions")
    }


@pytest.mark.parametrize(
    ("annotations", "age_s", "left"),
    [
        ({}, 0, 0.0),
        ({"wharfinger.dev/ready-after": "5"}, 0, 5.0),
        ({"wharfinger.dev/ready-after": "5"}, 7, 0.0),
        ({"wharfinger.dev/ready-after": "0.5"}, 0.2, 0.3),
        ({"wharfinger.dev/ready-after": "soon"}, 0, 0.0),
        ({"wharfinger.dev/ready-after": "inf"}, 0, 0.0),
        ({"wharfinger.dev/ready-after": "nan"}, 0, 0.0),
        ({"wharfinger.dev/ready-after": "-3"}, 0, 0.0),
        ({"wharfinger.dev/never-ready": "true"}, 9, None),
        ({"wharfinger.dev/never-ready": "false"}, 9, 0.0),
    ],
)
def test_delays(annotations: JsonObject, age_s: float, left: float | None) -> None:
    assert seconds_left({"metadata": {"annotations": annotations}}, age_s) == left


def test_a_new_deployment_gets_a_replica_set() -> None:
    deployment = workload(annotations={"wharfinger.dev/ready-after": "5", "deployment.kubernetes.io/revision": "4"})
    create, status = reconcile_deployment(KEY, deployment, [], 0, NOW).writes
    digest = template_hash(TEMPLATE)
    assert isinstance(create, Create)
    assert create.obj["metadata"] == {
        "name": f"web-{digest}",
        "namespace": "n",
        "labels": {"a": "b", HASH_LABEL: digest},
        "annotations": {"wharfinger.dev/ready-after": "5", REVISION: "1"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "web",
                "uid": "u",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert create.obj["spec"] == {
        "replicas": 2,
        "selector": {"matchLabels": {"a": "b", HASH_LABEL: digest}},
        "template": TEMPLATE | {"metadata": {"labels": {"a": "b", HASH_LABEL: digest}}},
    }
    assert isinstance(status, Patch)
    assert find(status.patch, "metadata", "annotations") == {REVISION: "1"}
    assert find(status.patch, "status", "unavailableReplicas") == 2


def test_a_deployment_is_available_when_its_set_is() -> None:
    plan = reconcile_deployment(KEY, workload(), [replica_set()], 0, NOW)
    status = status_after(plan, workload())
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        "observedGeneration": 3,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
    }
    assert conditions_of(status) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert plan.again_s is None


def test_a_deployment_that_is_as_it_should_be_is_left_alone() -> None:
    first = reconcile_deployment(KEY, workload(), [replica_set()], 0, NOW)
    write = first.writes[0]
    assert isinstance(write, Patch)
    settled = as_object(merge_patch(workload(), write.patch), "deployment")
    assert reconcile_deployment(KEY, settled, [replica_set()], 100, NOW) == Plan()


def test_progress_and_its_deadline() -> None:
    deployment, waiting = workload(progressDeadlineSeconds=60), [replica_set(ready=0)]
    plan = reconcile_deployment(KEY, deployment, waiting, 10, NOW)
    assert plan.again_s == 50
    assert conditions_of(status_after(plan, deployment)) == {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("True", "ReplicaSetUpdated"),
    }
    late = reconcile_deployment(KEY, deployment, waiting, 60, NOW)
    assert late.again_s is None
    assert conditions_of(status_after(late, deployment))["Progressing"] == ("False", "ProgressDeadlineExceeded")


def test_a_new_template_replaces_the_set() -> None:
    old, deployment = replica_set(revision=3), workload(template=OTHER)
    create, scale, status = reconcile_deployment(KEY, deployment, [old], 0, NOW).writes
    assert isinstance(create, Create)
    assert find(create.obj, "metadata", "annotations", REVISION) == "4"
    assert scale == Patch(ObjectKey(REPLICA_SETS, "n", f"web-{template_hash(TEMPLATE)}"), {"spec": {"replicas": 0}})
    assert isinstance(status, Patch)
    assert find(status.patch, "metadata", "annotations") == {REVISION: "4"}


def test_an_old_template_gets_its_set_back_at_a_new_revision() -> None:
    sets = [replica_set(revision=1, replicas=0, ready=0), replica_set(OTHER, revision=2)]
    writes = reconcile_deployment(KEY, workload(), sets, 0, NOW).writes
    patched = [
        (write.key.name, write.patch)
        for write in writes
        if isinstance(write, Patch) and write.key.resource == REPLICA_SETS
    ]
    assert patched == [
        (f"web-{template_hash(TEMPLATE)}", {"metadata": {"annotations": {REVISION: "3"}}}),
        (f"web-{template_hash(TEMPLATE)}", {"spec": {"replicas": 2}}),
        (f"web-{template_hash(OTHER)}", {"spec": {"replicas": 0}}),
    ]
    renumbered = [replica_set(revision=3), replica_set(OTHER, revision=2, replicas=0, ready=0)]
    (status,) = reconcile_deployment(KEY, workload(), renumbered, 0, NOW).writes
    assert isinstance(status, Patch)
    assert find(status.patch, "metadata", "annotations", REVISION) == "3"


def test_empty_sets_over_the_limit_go_oldest_first() -> None:
    templates: list[JsonObject] = [
        {"spec": {"containers": [{"name": "a", "image": str(number)}]}} for number in range(4)
    ]
    old = [replica_set(one, revision=number + 1, replicas=0, ready=0) for number, one in enumerate(templates)]
    writes = reconcile_deployment(KEY, workload(revisionHistoryLimit=2), [*old, replica_set(revision=9)], 0, NOW).writes
    assert [write.uid for write in writes if isinstance(write, Delete)] == [
        f"uid-{template_hash(one)}" for one in templates[:2]
    ]


def test_a_paused_deployment_is_only_observed() -> None:
    assert reconcile_deployment(KEY, workload(paused=True), [], 0, NOW).writes == (
        Patch(KEY, {"status": {"observedGeneration": 3}}, "status"),
    )


def test_the_recorded_status_of_a_deployment_without_replicas() -> None:
    recorded = as_object(steps("12-strategic-deployment")[3].response, "deployment")
    created = as_object(steps("12-strategic-deployment")[2].response, "deployment")
    digest = template_hash(find(created, "spec", "template"))
    empty: JsonObject = {"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 1}
    mine: JsonObject = {"metadata": {"name": f"d-{digest}", "generation": 1, "labels": {HASH_LABEL: digest}}}
    sets = [mine | {"spec": {"replicas": 0}, "status": empty}]
    status = status_after(reconcile_deployment(KEY, created, sets, 0, NOW), created)
    told, expected = find_list(status, "conditions"), find_list(recorded, "status", "conditions")
    for one, other in zip(told, expected, strict=True):
        skipped = {"lastTransitionTime", "lastUpdateTime"}
        assert {name: value for name, value in as_object(one, "condition").items() if name not in skipped} == {
            name: str(value).replace("d-7bc7dfd5", f"d-{digest}")
            for name, value in as_object(other, "condition").items()
            if name not in skipped
        }
        assert as_object(one, "condition").keys() == as_object(other, "condition").keys()
    assert status | {"conditions": None} == find_object(recorded, "status") | {"conditions": None}


def test_the_recorded_status_of_a_replica_set_without_replicas() -> None:
    recorded = as_object(steps("32-generation-status-builtin")[2].response, "replica set")
    created = as_object(steps("32-generation-status-builtin")[1].response, "replica set")
    key = ObjectKey(REPLICA_SETS, "n", "r")
    assert status_after(reconcile_replica_set(key, created, 0), created) == recorded["status"]


def test_replica_sets_wait_for_their_time() -> None:
    key = ObjectKey(REPLICA_SETS, "n", "r")
    slow = workload(annotations={"wharfinger.dev/ready-after": "5"})
    plan = reconcile_replica_set(key, slow, 1)
    assert plan.again_s == 4
    assert status_after(plan, slow) == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "terminatingReplicas": 0,
        "observedGeneration": 3,
    }
    assert find(status_after(reconcile_replica_set(key, slow, 5), slow), "availableReplicas") == 2
    never = workload(annotations={"wharfinger.dev/never-ready": "true"})
    assert reconcile_replica_set(key, never, 1e9).again_s is None


def test_stateful_sets_have_claims_and_revisions() -> None:
    claim: JsonObject = {"metadata": {"name": "data", "labels": {"x": "y"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    stateful = workload(volumeClaimTemplates=[claim])
    plan = reconcile_stateful_set(KEY, stateful, frozenset({"data-web-0"}), 0)
    assert plan.writes[0] == Create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-web-1", "namespace": "n", "labels": {"x": "y", "a": "b"}},
            "spec": {"accessModes": ["ReadWriteOnce"]},
        }
    )
    revision = f"web-{template_hash(TEMPLATE)}"
    status = status_after(plan, stateful)
    assert status == {
        "observedGeneration": 3,
        "replicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }
    changed = workload(template=OTHER, annotations={"wharfinger.dev/ready-after": "5"}) | {"status": status}
    rolling = status_after(reconcile_stateful_set(KEY, changed, frozenset(), 0), changed)
    assert (rolling["currentRevision"], rolling["updateRevision"]) == (revision, f"web-{template_hash(OTHER)}")
    assert "readyReplicas" not in rolling
    halfway = changed | {"status": rolling}
    done = status_after(reconcile_stateful_set(KEY, halfway, frozenset(), 5), halfway)
    assert done["currentRevision"] == done["updateRevision"]


@pytest.mark.parametrize(("nodes", "wanted"), [(0, 1), (3, 3)])
def test_daemon_sets(nodes: int, wanted: int) -> None:
    assert status_after(reconcile_daemon_set(KEY, workload(), nodes, 0), workload()) == {
        "observedGeneration": 3,
        "currentNumberScheduled": wanted,
        "desiredNumberScheduled": wanted,
        "updatedNumberScheduled": wanted,
        "numberMisscheduled": 0,
        "numberReady": wanted,
        "numberAvailable": wanted,
    }
    slow = workload(annotations={"wharfinger.dev/ready-after": "5"})
    waiting = status_after(reconcile_daemon_set(KEY, slow, nodes, 0), slow)
    assert (waiting["numberReady"], waiting["numberUnavailable"]) == (0, wanted)
