import pytest

from tests.control_plane.support.samples import NOW
from wharfinger.control_plane.api.common.cells import Cell
from wharfinger.control_plane.api.core import cells as core
from wharfinger.formats.json.value import JsonObject, JsonValue

ADDRESSES: JsonValue = [{"ip": "10.0.0.1"}, {"ip": "::1"}]
BALANCED: JsonValue = {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]}}


@pytest.mark.parametrize(
    ("cell", "obj", "shown"),
    [
        (core.service_address, {"spec": {"clusterIPs": ["10.0.0.9"]}}, "10.0.0.9"),
        (core.service_address, {}, "<none>"),
        (core.service_ports, {"spec": {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 3}]}}, "80:3/TCP"),
        (core.service_ports, {}, "<none>"),
        (core.service_external, {"spec": {"type": "ClusterIP"}}, "<none>"),
        (core.service_external, {"spec": {"type": "NodePort", "externalIPs": ["1.1.1.1"]}}, "1.1.1.1"),
        (core.service_external, {"spec": {"type": "LoadBalancer"}}, "<pending>"),
        (core.service_external, {"spec": {"type": "LoadBalancer"}, "status": BALANCED}, "1.2.3.4,h"),
        (core.service_external, {"spec": {"type": "ExternalName", "externalName": "e"}}, "e"),
        (core.service_external, {}, "<unknown>"),
        (core.endpoint_addresses, {}, "<none>"),
        (core.endpoint_addresses, {"subsets": [{"addresses": ADDRESSES}]}, "10.0.0.1,::1"),
        (
            core.endpoint_addresses,
            {"subsets": [{"addresses": ADDRESSES, "ports": [{"port": 1}, {"port": 2}]}]},
            "10.0.0.1:1,[::1]:1,10.0.0.1:2 + 1 more...",
        ),
        (core.slice_ports, {"ports": [{"port": 80}, {"name": "b"}, {}]}, "80,b,*"),
        (core.slice_endpoints, {"endpoints": [{"addresses": ["a", "b"]}]}, "a,b"),
        (core.slice_endpoints, {}, "<unset>"),
        (core.node_status, {}, "Unknown"),
        (
            core.node_status,
            {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            "NotReady,SchedulingDisabled",
        ),
        (
            core.node_roles,
            {"metadata": {"labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}}},
            "a,b",
        ),
        (core.node_roles, {}, "<none>"),
        (core.node_kernel, {"status": {"nodeInfo": {"kernelVersion": "6", "architecture": "x"}}}, "6 (x)"),
        (core.node_kernel, {}, "<unknown>"),
        (core.volume_phase, {"metadata": {"deletionTimestamp": "t"}, "status": {"phase": "Bound"}}, "Terminating"),
        (
            core.volume_class,
            {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}},
            "x",
        ),
        (core.volume_class, {"spec": {"storageClassName": "y"}}, "y"),
        (core.volume_claim, {"spec": {"claimRef": {"namespace": "n", "name": "c"}}}, "n/c"),
        (core.volume_claim, {}, ""),
        (core.claim_capacity, {"spec": {"volumeName": "v"}}, "0"),
        (core.claim_capacity, {}, ""),
        (core.event_first, {"eventTime": "2026-11-21T03:58:00.000000Z"}, "2m"),
        (core.event_last, {"series": {"lastObservedTime": "2026-11-21T03:58:00.000000Z"}}, "2m"),
        (core.event_last, {"deprecatedLastTimestamp": "2026-11-21T03:58:00Z"}, "2m"),
        (core.event_count, {}, 1),
        (core.event_count, {"series": {"count": 4}}, 4),
        (core.event_object, {"regarding": {"kind": "Pod", "name": "p"}}, "pod/p"),
        (core.event_object, {"involvedObject": {"kind": "Pod"}}, "pod"),
        (core.event_subobject, {"regarding": {"fieldPath": "f"}}, "f"),
        (core.event_source, {"source": {"component": "c", "host": "h"}}, "c, h"),
        (core.event_source, {"reportingController": "c"}, "c"),
        (core.event_message, {"note": " n\n"}, "n"),
    ],
)
def test_cells_of_core_kinds_are_formatted(cell: Cell, obj: JsonObject, shown: JsonValue) -> None:
    assert cell(obj, NOW) == shown


def test_quota_cells_show_requests_or_limits() -> None:
    obj: JsonObject = {"status": {"hard": {"pods": "5", "limits.cpu": "2"}, "used": {"pods": "1"}}}

    assert core.quota(False, obj) == "pods: 1/5"
    assert core.quota(True, obj) == "limits.cpu: 0/2"


def test_cells_show_claim_modes_and_node_addresses() -> None:
    assert core.claim_modes({"spec": {"volumeName": "v"}}, "RWO") == "RWO"
    assert core.claim_modes({}, "RWO") == ""
    addresses: JsonValue = [{"type": "InternalIP", "address": "10.0.0.7"}]
    assert core.node_address("InternalIP", {"status": {"addresses": addresses}}) == "10.0.0.7"
    assert core.node_address("ExternalIP", {}) == "<none>"
