from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.api.core.quotas.usage import (
    added,
    calculated,
    in_scope,
    increase,
    matching_resources,
    plus,
    pod_amounts,
    unspecified,
    usage,
)
from wharfinger.formats.json.value import JsonObject, JsonValue

NOW = datetime(2026, 11, 21, 4, tzinfo=UTC)


def pod(*resources: JsonObject, **spec: JsonValue) -> JsonObject:
    containers: list[JsonValue] = [{"name": f"c{number}", "resources": item} for number, item in enumerate(resources)]
    return {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": containers, **spec}}


@pytest.mark.parametrize(
    ("resource", "names"),
    [
        ("pods", ["count/pods", "cpu", "hugepages-2Mi", "limits.cpu", "pods", "requests.example.com/gpu"]),
        ("services", ["services", "services.nodeports"]),
        ("persistentvolumeclaims", ["gold.storageclass.storage.k8s.io/requests.storage", "requests.storage"]),
        ("configmaps", ["configmaps", "count/configmaps"]),
        ("deployments.apps", ["count/deployments.apps"]),
        ("secrets", []),
    ],
)
def test_each_kind_counts_matching_quota_resources(resource: str, names: list[str]) -> None:
    hard = (
        "cpu limits.cpu pods count/pods hugepages-2Mi requests.example.com/gpu services services.nodeports requests.storage "
        "gold.storageclass.storage.k8s.io/requests.storage configmaps count/configmaps count/deployments.apps"
    )
    assert matching_resources(resource, hard.split()) == sorted(names)


def test_pods_use_requests_limits_and_overhead() -> None:
    asked: JsonObject = {"requests": {"cpu": "100m", "memory": "1Gi", "example.com/gpu": "1"}, "limits": {"cpu": "1"}}
    used = usage("pods", pod(asked, asked, overhead={"cpu": "50m"}), NOW)

    assert (used["requests.cpu"], used["limits.cpu"], used["memory"]) == ("250m", "2050m", "2Gi")
    assert used["requests.example.com/gpu"] == "2"


def test_finished_pods_use_no_compute_resources() -> None:
    assert usage("pods", {**pod(), "status": {"phase": "Succeeded"}}, NOW) == {"count/pods": "1"}
    gone: JsonObject = {"deletionTimestamp": "2026-11-21T03:00:00Z", "deletionGracePeriodSeconds": 30}
    assert usage("pods", {**pod(), "metadata": gone}, NOW) == {"count/pods": "1"}


def test_pod_level_resources_take_precedence() -> None:
    found = pod_amounts(pod({"requests": {"cpu": "1"}}, resources={"requests": {"cpu": "3"}}), "requests")

    assert found == {"cpu": "3"}


@pytest.mark.parametrize(
    ("spec", "ports", "balanced"),
    [
        ({"type": "NodePort", "ports": [{}, {}]}, "2", "0"),
        ({"type": "LoadBalancer", "ports": [{}, {}]}, "2", "1"),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [{"nodePort": 1}, {}]}, "1", "1"),
        ({"type": "ClusterIP", "ports": [{}]}, "0", "0"),
    ],
)
def test_services_use_node_ports_and_load_balancers(spec: JsonObject, ports: str, balanced: str) -> None:
    used = usage("services", {"spec": spec}, NOW)

    assert (used["services.nodeports"], used["services.loadbalancers"]) == (ports, balanced)


def test_claims_use_requested_or_allocated_storage() -> None:
    claim: JsonObject = {"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}}}
    used = usage("persistentvolumeclaims", claim, NOW)
    assert used["requests.storage"] == used["gold.storageclass.storage.k8s.io/requests.storage"] == "2"

    grown: JsonObject = {**claim, "status": {"allocatedResources": {"storage": "5"}}}
    assert usage("persistentvolumeclaims", grown, NOW)["requests.storage"] == "5"


@pytest.mark.parametrize(
    ("scope", "obj", "holds"),
    [
        ({"scopeName": "Terminating", "operator": "Exists"}, pod(activeDeadlineSeconds=5), True),
        ({"scopeName": "NotTerminating", "operator": "Exists"}, pod(), True),
        ({"scopeName": "BestEffort", "operator": "Exists"}, pod({}), True),
        ({"scopeName": "NotBestEffort", "operator": "Exists"}, pod({"limits": {"cpu": "1"}}), True),
        ({"scopeName": "BestEffort", "operator": "Exists"}, {**pod(), "status": {"qosClass": "Burstable"}}, False),
        ({"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}, pod(priorityClassName="a"), True),
        ({"scopeName": "PriorityClass", "operator": "NotIn", "values": ["a"]}, pod(), True),
        ({"scopeName": "PriorityClass", "operator": "DoesNotExist"}, pod(priorityClassName="a"), False),
        ({"scopeName": "PriorityClass", "operator": "Odd"}, pod(priorityClassName="a"), False),
        ({"scopeName": "Odd", "operator": "Exists"}, pod(), False),
        (
            {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"},
            pod(
                affinity={
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {"namespaces": ["a"]}}]
                    }
                }
            ),
            True,
        ),
        ({"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}, pod(), False),
    ],
)
def test_scopes_select_pods(scope: JsonObject, obj: JsonObject, holds: bool) -> None:
    quota: JsonObject = {"spec": {"scopeSelector": {"matchExpressions": [scope]}}}

    assert in_scope(quota, "pods", obj) is holds
    assert not in_scope(quota, "configmaps", obj)


def test_scopes_select_claims_by_attributes_class() -> None:
    quota: JsonObject = {"spec": {"scopes": ["VolumeAttributesClass"]}}

    assert in_scope(quota, "persistentvolumeclaims", {"spec": {"volumeAttributesClassName": "a"}})
    assert not in_scope(quota, "persistentvolumeclaims", {"spec": {}})
    assert in_scope({"spec": {}}, "configmaps", {})


def test_unspecified_resources_are_listed_by_container() -> None:
    silent = pod({}, {"requests": {"cpu": "1"}})

    assert unspecified(silent, ["requests.cpu", "limits.memory"]) == "limits.memory for: c0,c1; requests.cpu for: c0"
    assert unspecified(pod({}, resources={"limits": {"cpu": "1"}}), ["cpu"]) == ""


def test_amounts_are_added_and_subtracted() -> None:
    assert plus("0", "1Gi") == "1Gi"
    assert plus("512Mi", "512M") == "1024288Ki"
    assert added({"a": "1"}, {"a": "500m", "b": "1"}) == {"a": "1500m", "b": "1"}
    assert increase({"a": "3", "b": "1"}, {"a": "1", "b": "2", "c": "1"}) == {"a": "2", "b": "0", "c": "0"}


def test_usage_is_calculated_from_stored_objects() -> None:
    quota: JsonObject = {
        "metadata": {"namespace": "n"},
        "spec": {"hard": {"configmaps": "5", "pods": "1", "count/odd.example.com": "1"}},
    }
    stored: dict[str, list[JsonObject]] = {"configmaps": [{}, {}], "pods": [pod()]}

    used = calculated(
        quota,
        lambda _group, plural, _namespace: stored.get(plural, []),
        [("", "pods"), ("", "configmaps"), ("", "events"), ("", "secrets")],
        NOW,
    )

    assert used == {"configmaps": "2", "pods": "1"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@given(
    st.sampled_from(["pods", "services", "persistentvolumeclaims", "secrets"]),
    st.dictionaries(st.sampled_from(["spec", "status", "metadata"]), VALUES),
)
def test_arbitrary_objects_do_not_crash(resource: str, obj: dict[str, JsonValue]) -> None:
    usage(resource, obj, NOW)
    in_scope({"spec": {"scopes": ["BestEffort"]}}, resource, obj)
