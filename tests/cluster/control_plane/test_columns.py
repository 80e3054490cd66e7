import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.control_plane.samples import NOW
from wharfinger.cluster.control_plane import columns as c
from wharfinger.cluster.control_plane.builtin_kinds import BUILTIN_KINDS
from wharfinger.formats.json_value import JsonObject, JsonValue

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
FIELDS = ("metadata", "spec", "status", "data", "roleRef", "involvedObject", "webhooks")


@pytest.mark.parametrize(
    ("cell", "obj", "shown"),
    [
        (c.text("a", "b"), {"a": {"b": "x"}}, "x"),
        (c.text("a", "b"), {}, "<none>"),
        (c.text("a", default=""), {"a": ""}, ""),
        (c.number("a"), {"a": 3}, 3),
        (c.number("a"), {"a": "3"}, 0),
        (c.count("a", "b"), {"a": [1, 2], "b": {"x": 1}}, 3),
        (c.ratio(("a",), ("b",)), {"a": 1, "b": 2}, "1/2"),
        (c.since("t"), {"t": "2026-11-21T03:58:00Z"}, "2m"),
        (c.since("t"), {}, "<unknown>"),
        (c.containers("name", "t"), {"t": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}, "a,b"),
        (c.containers("name"), {}, "<none>"),
        (c.selector("s"), {"s": {"matchLabels": {"b": "2", "a": "1"}}}, "a=1,b=2"),
        (c.selector("s"), {"s": {"a": "1"}}, "a=1"),
        (c.selector("s"), {}, "<none>"),
        (c.job_status, {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, "Complete"),
        (c.job_status, {"status": {"conditions": [{"type": "Complete", "status": "False"}]}}, "Running"),
        (c.job_status, {"metadata": {"deletionTimestamp": "t"}}, "Terminating"),
        (c.job_completions, {"spec": {"completions": 3}, "status": {"succeeded": 1}}, "1/3"),
        (c.job_completions, {"spec": {"parallelism": 2}}, "0/1 of 2"),
        (c.job_completions, {}, "0/1"),
        (c.job_duration, {"status": {"startTime": "2026-11-21T03:59:50Z"}}, "10s"),
        (
            c.job_duration,
            {"status": {"startTime": "2026-11-21T03:00:00Z", "completionTime": "2026-11-21T03:00:05Z"}},
            "5s",
        ),
        (c.job_duration, {}, ""),
        (c.pod_ready, {"spec": {"containers": [{}, {}]}, "status": {"containerStatuses": [{"ready": True}]}}, "1/2"),
        (c.pod_status, {"status": {"phase": "Running"}}, "Running"),
        (c.pod_status, {"status": {"phase": "Failed", "reason": "Evicted"}}, "Evicted"),
        (
            c.pod_status,
            {"status": {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}},
            "ImagePullBackOff",
        ),
        (c.pod_status, {"metadata": {"deletionTimestamp": "t"}}, "Terminating"),
        (c.pod_status, {}, "Unknown"),
        (c.pod_restarts, {"status": {"containerStatuses": [{"restartCount": 2}, {"restartCount": 1}]}}, 3),
        (
            c.service_ports,
            {"spec": {"ports": [{"port": 80}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]}},
            "80/TCP,53:30053/UDP",
        ),
        (c.service_external, {"spec": {"externalIPs": ["1.2.3.4"]}}, "1.2.3.4"),
        (c.service_external, {"spec": {"type": "ExternalName", "externalName": "x.example"}}, "x.example"),
        (c.service_external, {"spec": {"type": "LoadBalancer"}}, "<pending>"),
        (
            c.service_external,
            {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"hostname": "h"}]}}},
            "h",
        ),
        (c.service_external, {}, "<none>"),
        (c.ingress_hosts, {"spec": {"rules": [{"host": "a.example"}, {}]}}, "a.example,*"),
        (c.ingress_hosts, {}, "*"),
        (c.ingress_address, {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}, "1.2.3.4"),
        (c.ingress_ports, {"spec": {"tls": [{}]}}, "80, 443"),
        (c.role_ref, {"roleRef": {"kind": "Role", "name": "r"}}, "Role/r"),
        (c.access_modes("m"), {"m": ["ReadWriteOnce", "Odd"]}, "RWO,Odd"),
        (c.access_modes("m"), {}, ""),
        (c.event_object, {"involvedObject": {"kind": "Pod", "name": "p"}}, "pod/p"),
        (c.event_last_seen, {"lastTimestamp": "2026-11-21T03:59:59Z"}, "1s"),
        (c.event_last_seen, {"metadata": {"creationTimestamp": "2026-11-21T03:59:58Z"}}, "2s"),
        (c.node_status, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Ready"),
        (c.node_status, {"spec": {"unschedulable": True}}, "NotReady,SchedulingDisabled"),
        (c.node_roles, {"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}}, "worker"),
        (c.node_roles, {}, "<none>"),
        (c.cron_suspended, {"spec": {"suspend": True}}, "True"),
        (c.cron_active, {"status": {"active": [{}]}}, 1),
        (c.cron_last, {"status": {"lastScheduleTime": "2026-11-21T03:59:00Z"}}, "60s"),
        (c.cron_last, {}, "<none>"),
        (c.scale_target, {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}}}, "Deployment/d"),
    ],
)
def test_cells(cell: c.Cell, obj: JsonObject, shown: JsonValue) -> None:
    assert cell(obj, NOW) == shown


def test_selectors_with_expressions() -> None:
    value: JsonObject = {
        "matchLabels": {"a": "1"},
        "matchExpressions": [
            {"key": "b", "operator": "In", "values": ["x", "y"]},
            {"key": "c", "operator": "NotIn", "values": ["x"]},
            {"key": "d", "operator": "Exists"},
            {"key": "e", "operator": "DoesNotExist"},
        ],
    }

    assert c.format_selector(value) == "a=1,b in (x,y),c notin (x),d,!e"


@given(st.dictionaries(st.sampled_from(FIELDS), st.dictionaries(st.text(max_size=5), VALUES, max_size=3)))
def test_no_cell_of_any_kind_fails(obj: dict[str, JsonValue]) -> None:
    for kind in BUILTIN_KINDS:
        for column in kind.versions[0].columns:
            column.cell(obj, NOW)
