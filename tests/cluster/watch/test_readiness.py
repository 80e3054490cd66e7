"""Readiness: when an object of each kind counts as ready."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.watch.readiness import (
    Current,
    Failed,
    InProgress,
    Readiness,
    condition_words,
    lacks_status,
    readiness,
    unsettled,
)
from wharfinger.formats.json.value import JsonObject, JsonValue

OK = Current()


def obj(
    kind: str,
    spec: JsonObject | None = None,
    status: JsonObject | None = None,
    api: str = "apps/v1",
    generation: int = 2,
) -> JsonObject:
    metadata: JsonObject = {"name": "x", "generation": generation}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec or {}, "status": status or {}}


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> JsonValue:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def seen(**status: JsonValue) -> JsonObject:
    return {"observedGeneration": 2, **status}


def with_conditions(*conditions: JsonValue, **status: JsonValue) -> JsonObject:
    return seen(conditions=[*conditions], **status)


FULL: JsonObject = seen(replicas=3, updatedReplicas=3, availableReplicas=3, readyReplicas=3, currentReplicas=3)
QUOTA = condition("ReplicaFailure", message="exceeded quota")
LATE = condition("Progressing", "False", "ProgressDeadlineExceeded", "has timed out progressing.")

CASES: list[tuple[JsonObject, Readiness]] = [
    # Deployment
    (obj("Deployment", {"replicas": 3}, FULL), OK),
    (obj("Deployment", {"replicas": 0}, seen()), OK),
    (obj("Deployment", {}, {}), InProgress("not observed by its controller yet")),
    (obj("Deployment", {}, {"observedGeneration": 1}), InProgress("generation 2 is not observed yet")),
    (obj("Deployment", {"replicas": 3}, {**FULL, "updatedReplicas": 1}), InProgress("1 of 3 replicas updated")),
    (obj("Deployment", {"replicas": 3}, {**FULL, "replicas": 4}), InProgress("1 old replicas still exist")),
    (obj("Deployment", {"replicas": 3}, {**FULL, "availableReplicas": 2}), InProgress("2 of 3 replicas available")),
    (obj("Deployment", {}, with_conditions(QUOTA)), InProgress("0 of 1 replicas updated: exceeded quota")),
    (
        obj("Deployment", {"replicas": 2}, with_conditions(condition("Progressing", reason="ReplicaSetUpdated"))),
        InProgress("0 of 2 replicas updated", at_work=True),
    ),
    (
        obj("Deployment", {"replicas": 2}, with_conditions(condition("Progressing", reason="NewReplicaSetAvailable"))),
        InProgress("0 of 2 replicas updated"),
    ),
    (obj("Deployment", {}, with_conditions(LATE)), Failed("has timed out progressing.")),
    (obj("Deployment", {"replicas": 3, "paused": True}, FULL), InProgress("paused")),
    # CronJob, autoscaler, volume, Ingress
    (obj("CronJob", {"suspend": True}, {}, "batch/v1"), OK),
    (obj("HorizontalPodAutoscaler", {}, with_conditions(condition("AbleToScale")), "autoscaling/v2"), OK),
    (obj("HorizontalPodAutoscaler", {}, {}, "autoscaling/v2"), OK),
    (
        obj(
            "HorizontalPodAutoscaler",
            {},
            with_conditions(condition("ScalingActive", "False", "NoMetrics")),
            "autoscaling/v2",
        ),
        OK,
    ),
    (
        obj(
            "HorizontalPodAutoscaler",
            {},
            with_conditions(condition("AbleToScale", "False", "FailedGetScale", "no such deployment")),
            "autoscaling/v2",
        ),
        InProgress("FailedGetScale: no such deployment"),
    ),
    (
        obj("HorizontalPodAutoscaler", {}, {"observedGeneration": 1}, "autoscaling/v2"),
        InProgress("generation 2 is not observed yet"),
    ),
    (obj("PersistentVolume", {}, {"phase": "Bound"}, "v1"), OK),
    (obj("PersistentVolume", {}, {"phase": "Available"}, "v1"), OK),
    (obj("PersistentVolume", {}, {"phase": "Pending"}, "v1"), InProgress("not available yet")),
    (obj("PersistentVolume", {}, {}, "v1"), InProgress("not available yet")),
    (obj("PersistentVolume", {}, {"phase": "Failed", "message": "no plugin"}, "v1"), Failed("no plugin")),
    (obj("PersistentVolume", {}, {"phase": "Failed"}, "v1"), Failed("it could not be reclaimed")),
    (obj("Ingress", {}, {"loadBalancer": {}}, "networking.k8s.io/v1"), OK),
    (
        obj("StatefulSet", {"replicas": 2}, {**FULL, "currentRevision": "a", "updateRevision": "a"}),
        InProgress("1 replica more than wanted"),
    ),
    (obj("ReplicaSet", {"replicas": 2}, FULL), InProgress("1 replica more than wanted")),
    # StatefulSet
    (obj("StatefulSet", {"replicas": 3}, {**FULL, "currentRevision": "a", "updateRevision": "a"}), OK),
    (
        obj(
            "StatefulSet",
            {"replicas": 3},
            {**FULL, "updatedReplicas": 2, "currentRevision": "a", "updateRevision": "b"},
        ),
        InProgress("2 of 3 replicas updated, 3 old"),
    ),
    (obj("StatefulSet", {"replicas": 3}, {**FULL, "readyReplicas": 1}), InProgress("1 of 3 replicas ready")),
    (
        obj(
            "StatefulSet",
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            {**FULL, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"},
        ),
        OK,
    ),
    (
        obj(
            "StatefulSet",
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
            {**FULL, "updatedReplicas": 1},
        ),
        InProgress("1 of 2 replicas updated (partitioned)"),
    ),
    (
        obj(
            "StatefulSet",
            {"replicas": 3, "updateStrategy": {"type": "OnDelete"}},
            {**FULL, "currentRevision": "a", "updateRevision": "b"},
        ),
        OK,
    ),
    (obj("StatefulSet", {}, {}), InProgress("not observed by its controller yet")),
    (obj("StatefulSet", {}, {"observedGeneration": 1}), InProgress("generation 2 is not observed yet")),
    (obj("StatefulSet", {}, seen()), InProgress("0 of 1 replicas ready")),
    # DaemonSet
    (obj("DaemonSet", {}, seen(desiredNumberScheduled=2, updatedNumberScheduled=2, numberAvailable=2)), OK),
    (obj("DaemonSet", {}, seen(desiredNumberScheduled=0)), OK),
    (obj("DaemonSet", {}, seen()), InProgress("not scheduled yet")),
    (obj("DaemonSet", {}, {}), InProgress("not observed by its controller yet")),
    (obj("DaemonSet", {}, seen(desiredNumberScheduled=2, updatedNumberScheduled=1)), InProgress("1 of 2 pods updated")),
    (
        obj("DaemonSet", {}, seen(desiredNumberScheduled=2, updatedNumberScheduled=2, numberAvailable=1)),
        InProgress("1 of 2 pods available"),
    ),
    (
        obj("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, seen(desiredNumberScheduled=2, numberAvailable=2)),
        OK,
    ),
    # ReplicaSet
    (obj("ReplicaSet", {"replicas": 3}, FULL), OK),
    (obj("ReplicaSet", {}, with_conditions(QUOTA)), InProgress("0 of 1 replicas available: exceeded quota")),
    (obj("ReplicaSet", {}, {}), InProgress("not observed by its controller yet")),
    # Job
    (obj("Job", {}, {"conditions": [condition("Complete")]}, "batch/v1"), OK),
    (
        obj("Job", {}, {"conditions": [condition("Failed", message="backoff limit")]}, "batch/v1"),
        Failed("backoff limit"),
    ),
    (obj("Job", {}, {"conditions": [condition("Failed", reason="Dead")]}, "batch/v1"), Failed("Dead")),
    (obj("Job", {}, {"conditions": [condition("Failed")]}, "batch/v1"), Failed("the job failed")),
    (obj("Job", {"suspend": True}, {}, "batch/v1"), InProgress("suspended")),
    (
        obj("Job", {"completions": 2}, {"succeeded": 1, "active": 1}, "batch/v1"),
        InProgress("1 of 2 completions, 1 active, 0 failed"),
    ),
    # Pod
    (obj("Pod", {}, {"phase": "Running", "conditions": [condition("Ready")]}, "v1"), OK),
    (obj("Pod", {}, {"phase": "Succeeded"}, "v1"), OK),
    (obj("Pod", {}, {"phase": "Failed", "reason": "Evicted"}, "v1"), Failed("Evicted")),
    (obj("Pod", {}, {"phase": "Failed"}, "v1"), Failed("the pod failed")),
    (obj("Pod", {}, {}, "v1"), InProgress("not started, not ready yet")),
    (
        obj(
            "Pod",
            {},
            {"phase": "Pending", "conditions": [condition("PodScheduled", "False", message="no nodes")]},
            "v1",
        ),
        InProgress("no nodes"),
    ),
    (
        obj(
            "Pod",
            {},
            {
                "phase": "Pending",
                "containerStatuses": [
                    {"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}},
                    {"name": "b", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}},
                ],
            },
            "v1",
        ),
        InProgress("container b: ErrImagePull: not found"),
    ),
    (
        obj("Pod", {}, {"phase": "Running", "conditions": [condition("Ready", "False", message="unready: a")]}, "v1"),
        InProgress("unready: a"),
    ),
    # other kinds with their own rules
    (obj("PersistentVolumeClaim", {}, {"phase": "Bound"}, "v1"), OK),
    (obj("PersistentVolumeClaim", {}, {"phase": "Pending"}, "v1"), InProgress("not bound yet")),
    (obj("PersistentVolumeClaim", {}, {"phase": "Lost"}, "v1"), Failed("its volume is lost")),
    (obj("Service", {}, {}, "v1"), OK),
    (obj("Service", {"type": "LoadBalancer"}, {}, "v1"), InProgress("no address from the load balancer yet")),
    (obj("Service", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}, "v1"), OK),
    (obj("Namespace", {}, {}, "v1"), OK),
    (obj("Namespace", {}, {"phase": "Terminating"}, "v1"), InProgress("terminating")),
    (obj("ConfigMap", api="v1"), OK),
    (obj("PodDisruptionBudget", {}, seen(conditions=[condition("Ready", "False")]), "policy/v1"), OK),
    (
        obj("PodDisruptionBudget", {}, {"observedGeneration": 1}, "policy/v1"),
        InProgress("generation 2 is not observed yet"),
    ),
    (
        obj("CustomResourceDefinition", {}, {"conditions": [condition("Established")]}, "apiextensions.k8s.io/v1"),
        OK,
    ),
    (
        obj(
            "CustomResourceDefinition",
            {},
            {"conditions": [condition("NamesAccepted", "False", message="taken"), condition("Established", "False")]},
            "apiextensions.k8s.io/v1",
        ),
        Failed("taken"),
    ),
    (obj("CustomResourceDefinition", {}, {}, "apiextensions.k8s.io/v1"), InProgress("not established yet")),
    (obj("APIService", {}, {"conditions": [condition("Available")]}, "apiregistration.k8s.io/v1"), OK),
    (obj("APIService", {}, {}, "apiregistration.k8s.io/v1"), InProgress("not available yet")),
    # kstatus for everything else
    (obj("Widget", api="example/v1"), OK),
    (obj("Widget", {}, {"observedGeneration": 1}, "example/v1"), InProgress("generation 2 is not observed yet")),
    (obj("Widget", {}, with_conditions(condition("Ready")), "example/v1"), OK),
    (obj("Widget", {}, with_conditions(condition("Ready", "Unknown")), "example/v1"), InProgress("not ready")),
    (
        obj("Widget", {}, with_conditions(condition("Ready", "False", "Why", "because")), "example/v1"),
        InProgress("Why: because"),
    ),
    (
        obj("Widget", {}, with_conditions(condition("Reconciling", message="soon"), condition("Ready")), "example/v1"),
        InProgress("soon"),
    ),
    (obj("Widget", {}, with_conditions(condition("Stalled", reason="Stuck")), "example/v1"), Failed("Stuck")),
    (obj("Deployment", {}, with_conditions(condition("Ready", "False")), "example/v1"), InProgress("not ready")),
    # unexpected shapes
    (
        obj("Deployment", {"replicas": "3"}, FULL),
        InProgress("its status cannot be read: spec.replicas: expected an integer, found a string"),
    ),
    (
        obj("Widget", {}, {"conditions": 5}, "example/v1"),
        InProgress("its status cannot be read: status.conditions: expected a list, found an integer"),
    ),
]


@pytest.mark.parametrize(("what", "expected"), CASES)
def test_each_kind_has_its_readiness(what: JsonObject, expected: Readiness) -> None:
    assert readiness(what) == expected


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
def test_an_object_being_deleted_is_never_ready(kind: str) -> None:
    what = obj(kind, {"replicas": 3}, FULL)
    assert readiness(what) == OK
    what["metadata"] = {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert readiness(what) == InProgress("being deleted")


JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "True", "False", "Ready", "Running"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["conditions", "type", "status", "phase", "replicas", "state", "spec"]), inner
        )
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(["Deployment", "StatefulSet", "DaemonSet", "Job", "Pod", "Service", "Widget"]),
    st.sampled_from(["apps/v1", "v1", "batch/v1", "example/v1"]),
    JSON,
    JSON,
    JSON,
)
def test_any_object_has_a_readiness_without_an_exception(
    kind: str, api: str, metadata: JsonValue, spec: JsonValue, status: JsonValue
) -> None:
    state = readiness({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec, "status": status})
    assert isinstance(state, Current | InProgress | Failed)


def test_the_status_of_an_unsettled_object_is_ignored() -> None:
    assert unsettled(obj("Widget", {}, {"observedGeneration": 1}, "example.test/v1")) == InProgress(
        "generation 2 is not observed yet"
    )
    assert unsettled(obj("Widget", {}, seen(), "example.test/v1")) is None
    assert unsettled(obj("Widget", {}, {}, "example.test/v1")) is None
    assert unsettled({"metadata": {"deletionTimestamp": "now"}}) == InProgress("being deleted")
    strange = unsettled({"metadata": {"deletionTimestamp": 5}})
    assert strange is not None
    assert strange.message.startswith("its status cannot be read")


def test_the_message_of_a_condition_is_read() -> None:
    assert condition_words(obj("Widget", {}, with_conditions(condition("Ready", "False", "A", "b")))) == "A: b"
    assert condition_words(obj("Widget", {}, with_conditions(condition("Ready", "True", "A", "b")))) == ""
    assert condition_words(obj("Widget")) == ""
    assert condition_words(obj("Widget", {}, {"conditions": 5})) == ""


@pytest.mark.parametrize(
    ("api", "status", "lacking"),
    [
        ("example.test/v1", {}, True),
        ("gateway.networking.k8s.io/v1", {}, True),
        ("example.test/v1", {"phase": "x"}, False),
        ("v1", {}, False),
        ("rbac.authorization.k8s.io/v1", {}, False),
    ],
)
def test_only_custom_kinds_wait_for_a_status(api: str, status: JsonObject, lacking: bool) -> None:
    assert lacks_status(obj("Widget", {}, status, api)) is lacking
    assert lacks_status({"apiVersion": 5}) is False
