"""Functions that watch objects until they have a certain state."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import config_map, key, widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import FaultyTransport, status_reply
from tests.cluster.support.release_requests import deployment, objects_of
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.watch.object_waits import Laggards, WaitReport, wait_gone, wait_ready
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey


async def widget(client: ClusterClient, name: str, status: JsonObject) -> ObjectKey:
    """Create or update a Widget with this status, and return its key."""
    await client.apply(widget_crd(), field_manager="test")
    found = ObjectKey(await client.resource_type("example.test/v1", "Widget"), "default", name)
    metadata: JsonObject = {"name": name, "namespace": "default"}
    await client.apply({"apiVersion": "example.test/v1", "kind": "Widget", "metadata": metadata}, field_manager="test")
    await client.merge_patch(found, {"status": status}, subresource="status")
    return found


def ready(status: str, reason: str = "") -> JsonObject:
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason}]}


async def test_a_wait_for_nothing_returns_at_once(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        assert (await wait_ready(client, [])).done
        assert (await wait_gone(client, {})).done
        assert (await wait_gone(client, {key("a"): "u"})).done


async def test_a_wait_ends_with_the_last_ready_object_and_reports_laggards(autojump_clock: MockClock) -> None:
    told: list[dict[str, str]] = []

    def progress(laggards: Laggards) -> None:
        told.append({one.name: state.message for one, state in laggards.items()})

    async with memory_cluster() as client:
        one = await widget(client, "one", ready("False", "Starting"))
        reports: list[WaitReport] = []

        async def wait() -> None:
            reports.append(await wait_ready(client, [one, key("a")], progress=progress))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            assert told[-1] == {"one": "Starting", "a": "not there"}
            await client.create(config_map("a"))
            await wait_all_tasks_blocked()
            assert told[-1] == {"one": "Starting"}
            await client.create(config_map("another"))
            await widget(client, "one", ready("True"))
        assert reports[0].done
        assert reports[0].states == {one: Current(), key("a"): Current()}
        assert told[-1] == {}


async def test_a_failure_ends_the_wait_at_once(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        stalled = await widget(
            client, "one", {"conditions": [{"type": "Stalled", "status": "True", "reason": "Stuck"}]}
        )
        report = await wait_ready(client, [stalled, key("never")])
        assert not report.done
        assert report.failed == {stalled: Failed("Stuck")}
        assert isinstance(report.laggards[key("never")], InProgress)


async def test_the_caller_sets_the_deadline(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        with pytest.raises(trio.TooSlowError), trio.fail_after(100):
            await wait_ready(client, [key("never")])


async def test_a_wait_for_deletion_identifies_the_object_by_its_uid(autojump_clock: MockClock) -> None:
    told: list[str] = []
    async with memory_cluster() as client:
        uid = find_str(await client.create(config_map("a")), "metadata", "uid")

        def progress(laggards: Laggards) -> None:
            told.extend(state.message for state in laggards.values())

        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                assert (await wait_gone(client, {key("a"): uid}, progress=progress)).done

            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            assert told == ["still there"]
            await client.delete(key("a"))
            await client.create(config_map("a"))
        assert (await wait_gone(client, {key("a"): uid})).done


async def test_a_deployment_becomes_available(autojump_clock: MockClock) -> None:
    """The simulator writes the same statuses as a real rollout, step by step."""
    told: list[str] = []

    def progress(laggards: Laggards) -> None:
        told.extend(state.message for state in laggards.values())

    async with memory_cluster(simulate=True) as client:
        (wanted,) = objects_of(deployment("web"))
        annotations: JsonObject = {"wharfinger.dev/ready-after": "30"}
        wanted["metadata"] = {"name": "web", "namespace": "default", "annotations": annotations}
        await client.apply(wanted, field_manager="test")
        web = ObjectKey(await client.resource_type("apps/v1", "Deployment"), "default", "web")
        with trio.fail_after(300):
            report = await wait_ready(client, [web], progress=progress)
        assert report.states == {web: Current()}
        assert "0 of 1 replicas available" in told


async def test_a_failed_lookup_is_reported_with_its_reason(autojump_clock: MockClock) -> None:
    told: list[str] = []

    def progress(laggards: Laggards) -> None:
        told.extend(state.message for state in laggards.values())

    transport = FaultyTransport(lambda _: status_reply(403, "Forbidden", "configmaps is forbidden"))
    async with open_client(Connection("http://api.example"), transport=transport) as client:
        with trio.move_on_after(10):
            await wait_ready(client, [key("a")], progress=progress)
    assert told == ["not looked up yet: list ConfigMap in default: configmaps is forbidden (403 Forbidden)"]
