"""Nodes that users create, and the rules that decide whether a Pod fits a node."""

import pytest
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import conditions_of, key, look, obj, open_cluster, settle
from wharfinger.control_plane.controllers.kubelet.nodes import affine_node, fits
from wharfinger.formats.json.value import JsonObject, JsonValue, find


async def test_a_node_becomes_ready(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        taint: JsonObject = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        await client.create(obj("v1", "Node", "one", "", spec={"taints": [taint]}))
        await settle()
        found = await look(client, "v1", "Node", "one")
        assert conditions_of(found)["Ready"] == ("True", "KubeletReady")
        assert find(found, "spec", "taints") is None
        assert find(found, "status", "capacity", "pods") == "110"
        await client.delete(await key(client, "v1", "Node", "one", ""))


READY: JsonObject = {"conditions": [{"type": "Ready", "status": "True"}]}
TAINT: JsonObject = {"key": "only", "value": "us", "effect": "NoSchedule"}


def node(**fields: JsonValue) -> JsonObject:
    return {"metadata": {"name": "n", "labels": {"disk": "fast"}}, "spec": fields, "status": READY}


@pytest.mark.parametrize(
    ("pod", "one", "found"),
    [
        ({}, node(), True),
        ({}, node(unschedulable=True), False),
        ({}, {"metadata": {"name": "n"}}, False),
        ({"nodeSelector": {"disk": "fast"}}, node(), True),
        ({"nodeSelector": {"disk": "slow"}}, node(), False),
        ({}, node(taints=[TAINT]), False),
        ({}, node(taints=[{**TAINT, "effect": "PreferNoSchedule"}]), True),
        ({"tolerations": [{"operator": "Exists"}]}, node(taints=[TAINT]), True),
        ({"tolerations": [{"key": "only", "value": "us"}]}, node(taints=[TAINT]), True),
        ({"tolerations": [{"key": "only", "value": "them"}]}, node(taints=[TAINT]), False),
        ({"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, node(taints=[TAINT]), False),
    ],
)
def test_a_pod_fits_nodes_by_selector_and_tolerations(pod: JsonObject, one: JsonObject, found: bool) -> None:
    assert fits({"spec": pod}, one) is found


def test_daemon_pods_fit_cordoned_and_unready_nodes() -> None:
    cordoned = node(unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    assert fits({"spec": {}}, cordoned, daemon=True)
    assert affine_node({"spec": {}}) == ""
