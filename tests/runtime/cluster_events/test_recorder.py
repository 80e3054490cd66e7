"""The recorder with a control plane in memory: Events that are written, counted and dropped, and callers that never wait."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.release_bench import Clock, Faulty, cluster
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.formats.json.value import JsonObject, find, find_int, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.cluster_events import recorder as module
from wharfinger.runtime.cluster_events.reasons import EventReason
from wharfinger.runtime.cluster_events.recorder import (
    EVENT,
    MAX_NOTE_BYTES,
    Recorder,
    Subject,
    open_recorder,
    subject_of,
)
from wharfinger.runtime.cluster_events.series import BURST, FORGET_S, REFILL_S, UPDATE_S

CONFIG_MAPS = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
MODULE = Subject("wharfinger.dev/v1alpha1", "Module", "", "ingress", "u-1")


@asynccontextmanager
async def recording() -> AsyncIterator[tuple[Recorder, ClusterClient, Faulty, Clock, Subject]]:
    """Open a recorder. Yield it with its client, the transport of the client, its clock, and an object to record Events about."""
    clock = Clock()
    async with cluster() as (client, faulty), open_recorder(client, clock, "host_1") as recorder:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
        made = await client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "prod"}}
        )
        faulty.requests.clear()
        yield recorder, client, faulty, clock, subject_of(made)


async def written(client: ClusterClient, namespace: str = "prod") -> list[JsonObject]:
    return list((await client.list(EVENT, namespace)).items)


async def test_the_reporter_of_a_shard_names_it(autojump_clock: MockClock) -> None:
    async with (
        recording() as (_, client, _faulty, clock, subject),
        open_recorder(client, clock, "h", "blue") as recorder,
    ):
        recorder.record(subject, EventReason.MOVED, "shard red manages the package from now on")
        await trio.sleep(1)
        (event,) = await written(client)
        assert find_str(event, "reportingController") == "wharfinger/blue"


async def test_an_event_has_the_fields_that_kubectl_shows(autojump_clock: MockClock) -> None:
    async with recording() as (recorder, client, _faulty, _clock, subject):
        recorder.record(subject, EventReason.HOOK_FAILED, "hooks/a.sh:\n  exited   with 1")
        await trio.sleep(1)
        (event,) = await written(client)
        assert find(event, "regarding") == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "c",
            "namespace": "prod",
            "uid": subject.uid,
        }
        shown = [find_str(event, name) for name in ("reason", "type", "action", "note", "reportingController")]
        assert shown == ["HookFailed", "Warning", "RunHook", "hooks/a.sh: exited with 1", "wharfinger"]
        assert find_str(event, "reportingInstance") == "host_1"
        assert find_str(event, "eventTime") == "2026-01-01T00:00:00.000000Z"
        assert find(event, "series") is None
        (old,) = (await client.list(ResourceType("", "v1", "Event", "events", namespaced=True), "prod")).items
        assert find_str(old, "message") == "hooks/a.sh: exited with 1"


async def test_repetitions_are_one_event_with_a_count(autojump_clock: MockClock) -> None:
    async with recording() as (recorder, client, faulty, _clock, subject):
        for _ in range(3):
            recorder.record(subject, EventReason.FAILED, "x")
        await trio.sleep(1)
        assert [find_int(event, "series", "count") for event in await written(client)] == [3]
        for _ in range(600):
            recorder.record(subject, EventReason.FAILED, "x")
            await trio.sleep(0.1)
        await trio.sleep(UPDATE_S)
        (event,) = await written(client)
        assert find_int(event, "series", "count") == 603
        assert len(faulty.writes) <= 1 + 3
        await trio.sleep(FORGET_S)
        recorder.record(subject, EventReason.FAILED, "x")
        await trio.sleep(1)
        assert sorted(find_int(event, "series", "count") for event in await written(client)) == [0, 603]


async def test_an_object_without_a_namespace_has_its_events_in_default(autojump_clock: MockClock) -> None:
    async with recording() as (recorder, client, _faulty, _clock, subject):
        recorder.record(MODULE, EventReason.INSTALLED, "1", subject)
        await trio.sleep(1)
        (event,) = await written(client, "default")
        assert find(event, "metadata", "namespace") == "default"
        assert find(event, "regarding", "namespace") is None
        assert find_str(event, "related", "name") == "c"


async def test_different_events_about_one_object_are_limited(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with recording() as (recorder, client, _faulty, _clock, subject):
        for number in range(100):
            recorder.record(subject, EventReason.FAILED, f"number {number}")
        recorder.record(MODULE, EventReason.FAILED, "another object")
        await trio.sleep(30)
        assert len(await written(client)) == int(BURST)
        assert len(await written(client, "default")) == 1
        assert recorder.dropped == 100 - int(BURST)
        assert len(caplog.messages) == 1
        await trio.sleep(2 * REFILL_S)
        for number in range(10):
            recorder.record(subject, EventReason.FAILED, f"later {number}")
        await trio.sleep(30)
        assert len(await written(client)) == int(BURST) + 2


async def test_stored_series_are_bounded_and_expire(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SERIES", 8)
    async with recording() as (recorder, client, _faulty, _clock, _subject):
        for number in range(20):
            recorder.record(Subject("v1", "ConfigMap", "prod", f"c{number}", "u"), EventReason.FAILED, "x")
        await trio.sleep(FORGET_S + 10)
        assert (len(await written(client)), recorder.dropped) == (8, 12)
        for number in range(20, 24):
            recorder.record(Subject("v1", "ConfigMap", "prod", f"c{number}", "u"), EventReason.FAILED, "x")
        await trio.sleep(10)
        assert (len(await written(client)), recorder.dropped) == (12, 12)


async def test_a_hanging_server_delays_no_caller_and_gets_the_events_later(autojump_clock: MockClock) -> None:
    async with recording() as (recorder, client, faulty, _clock, subject):
        hanging = trio.Event()
        faulty.fault = lambda _: hanging
        begun = trio.current_time()
        for number in range(10):
            recorder.record(subject, EventReason.FAILED, f"number {number}")
        assert trio.current_time() == begun
        await trio.sleep(5)
        faulty.fault = lambda _: httpx.ConnectError("away")
        hanging.set()
        await trio.sleep(5)
        faulty.fault = lambda _: None
        await trio.sleep(60)
        assert len(await written(client)) == 10
        assert recorder.dropped == 0


async def test_a_refused_event_is_dropped_and_the_next_one_is_written(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with recording() as (recorder, client, faulty, _clock, subject):
        recorder.record(Subject("v1", "ConfigMap", "no-such-namespace", "c", "u"), EventReason.FAILED, "x")
        await trio.sleep(5)
        assert recorder.dropped == 1
        assert "an Event Failed about ConfigMap no-such-namespace/c was not written" in caplog.text
        body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}'
        faulty.fault = lambda _: httpx.Response(403, content=body, headers={"content-type": "application/json"})
        recorder.record(subject, EventReason.FAILED, "y")
        await trio.sleep(5)
        faulty.fault = lambda _: None
        assert recorder.dropped == 2
        recorder.record(subject, EventReason.FAILED, "z")
        await trio.sleep(5)
        assert [find_str(event, "note") for event in await written(client)] == ["z"]


async def test_an_expired_event_is_created_again(autojump_clock: MockClock) -> None:
    async with recording() as (recorder, client, _faulty, _clock, subject):
        recorder.record(subject, EventReason.FAILED, "x")
        await trio.sleep(5)
        (event,) = await written(client)
        await client.delete(ObjectKey(EVENT, "prod", find_str(event, "metadata", "name")))
        recorder.record(subject, EventReason.FAILED, "x")
        await trio.sleep(2 * UPDATE_S)
        (again,) = await written(client)
        assert find_str(again, "metadata", "name") != find_str(event, "metadata", "name")
        assert recorder.dropped == 0


async def test_an_update_with_a_conflict_is_repeated(autojump_clock: MockClock) -> None:
    async with recording() as (recorder, client, faulty, _clock, subject):
        recorder.record(subject, EventReason.FAILED, "x")
        await trio.sleep(5)
        body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"no","code":409}'
        refusals = [httpx.Response(409, content=body, headers={"content-type": "application/json"})]
        faulty.fault = lambda request: refusals.pop() if refusals and request.method == "PATCH" else None
        recorder.record(subject, EventReason.FAILED, "x")
        await trio.sleep(3 * UPDATE_S)
        (event,) = await written(client)
        assert (find_int(event, "series", "count"), refusals, recorder.dropped) == (2, [], 0)


async def test_a_long_text_is_truncated_to_the_servers_limit(autojump_clock: MockClock) -> None:
    async with recording() as (recorder, client, _faulty, _clock, subject):
        recorder.record(subject, EventReason.FAILED, "ä€" * 1000)
        await trio.sleep(5)
        (event,) = await written(client)
        assert MAX_NOTE_BYTES - 5 <= len(find_str(event, "note").encode()) <= MAX_NOTE_BYTES
        assert find_str(event, "note").endswith("…")
