"""The simulation of Pods: when and where they run, and the annotations that change this."""

import pytest
import trio
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import (
    conditions_of,
    key,
    listed,
    look,
    obj,
    open_cluster,
    pod,
    settle,
    workload,
)
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.formats.json.value import JsonObject, JsonValue, find


async def seen(client: ClusterClient, name: str = "p") -> JsonObject:
    found = await look(client, "v1", "Pod", name)
    assert found is not None
    return found


async def test_a_pod_without_a_controller_runs_after_a_delay(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(pod("p"))
        await trio.sleep(1)
        assert find(await seen(client), "status", "phase") == "Pending"
        assert find(await seen(client), "spec", "nodeName") is None
        await settle()
        found = await seen(client)
        assert (find(found, "status", "phase"), find(found, "spec", "nodeName")) == ("Running", "simulated")
        assert conditions_of(found)["Ready"] == ("True", None)


@pytest.mark.parametrize(
    ("annotations", "restart", "phase", "state"),
    [
        ({"crash-loop": "true"}, "Always", "Running", {"waiting": "CrashLoopBackOff"}),
        ({"image-pull-failure": "true"}, "Always", "Pending", {"waiting": "ImagePullBackOff"}),
        ({"exit-code": "3"}, "Never", "Failed", {"terminated": "Error"}),
        ({"fail": "true"}, "Never", "Failed", {"terminated": "Error"}),
        ({"exit-code": "0"}, "Never", "Succeeded", {"terminated": "Completed"}),
        ({"fail": "true"}, "OnFailure", "Running", {"waiting": "CrashLoopBackOff"}),
        ({"never-ready": "true"}, "Always", "Running", {"running": None}),
        ({"ready-after": "no number"}, "Always", "Running", {"running": None}),
        ({"never-scheduled": "true"}, "Always", "Pending", {}),
    ],
)
async def test_simulation_annotations_determine_phase_and_state(
    annotations: JsonObject, restart: str, phase: str, state: dict[str, JsonValue], autojump_clock: MockClock
) -> None:
    async with open_cluster() as client:
        given: JsonObject = {f"wharfinger.dev/{name}": value for name, value in annotations.items()}
        await client.create(pod("p", given, restartPolicy=restart))
        await trio.sleep(1)
        found = await seen(client)
        assert find(found, "status", "phase") == phase
        for name, reason in state.items():
            assert find(found, "status", "containerStatuses", 0, "state", name, "reason") == reason
        ready = "never-ready" not in annotations and state.keys() == {"running"}
        assert conditions_of(found).get("Ready", ("False",))[0] == ("True" if ready else "False")


async def test_a_helm_hook_runs_at_once_and_a_crash_loop_restarts(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(pod("hook", {"helm.sh/hook": "test"}, restartPolicy="Never"))
        await client.create(pod("p", {"wharfinger.dev/crash-loop": "true"}))
        await trio.sleep(100)
        assert find(await seen(client, "hook"), "status", "phase") == "Succeeded"
        assert find(await seen(client), "status", "containerStatuses", 0, "restartCount") == 4


async def test_a_pod_is_ignored_if_another_manager_reports_its_status(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(pod("p"))
        await client.merge_patch(
            await key(client, "v1", "Pod", "p"), {"status": {"message": "mine"}}, subresource="status"
        )
        await client.create(pod("elsewhere", nodeName="unknown"))
        await client.create(pod("gated", schedulingGates=[{"name": "example.com/gate"}]))
        await settle(10)
        for name in ("p", "elsewhere", "gated"):
            assert find(await seen(client, name), "status", "phase") == "Pending"


async def test_init_containers_finish_sidecars_run_and_gates_block_readiness(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        initial: list[JsonValue] = [
            {"name": "first", "image": "i"},
            {"name": "beside", "image": "i", "restartPolicy": "Always"},
        ]
        await client.create(pod("p", initContainers=initial, readinessGates=[{"conditionType": "example.com/open"}]))
        await settle()
        found = await seen(client)
        states = [find(found, "status", "initContainerStatuses", number, "state") for number in range(2)]
        assert [list(state or {}) for state in states if isinstance(state, dict)] == [["terminated"], ["running"]]
        assert conditions_of(found)["Ready"] == ("False", "ReadinessGatesNotReady")


async def test_a_pod_waits_for_a_node_that_fits(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(obj("v1", "Node", "one", "", spec={"unschedulable": True}))
        await client.create(pod("p"))
        await settle(3)
        found = await seen(client)
        assert conditions_of(found)["PodScheduled"] == ("False", "Unschedulable")
        await client.merge_patch(await key(client, "v1", "Node", "one", ""), {"spec": {"unschedulable": None}})
        await settle()
        assert find(await seen(client), "spec", "nodeName") == "one"


async def test_a_simulation_annotation_can_be_removed(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("Deployment", "web", annotations={"wharfinger.dev/never-ready": "true"}))
        await settle()
        (found,) = await listed(client, "v1", "Pod")
        assert conditions_of(found)["Ready"][0] == "False"
        where = await key(client, "apps/v1", "Deployment", "web")
        await client.merge_patch(where, {"metadata": {"annotations": {"wharfinger.dev/never-ready": None}}})
        await settle()
        (found,) = await listed(client, "v1", "Pod")
        assert conditions_of(found)["Ready"][0] == "True"
