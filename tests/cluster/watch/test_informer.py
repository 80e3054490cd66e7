"""The informer with the real client, on the control plane in memory and on servers that fail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.faulty_transport import (
    Answer,
    FaultyTransport,
    Hang,
    Reply,
    Script,
    event,
    json_reply,
    status_reply,
)
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import ApiError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.watch.informer import LIST_PATIENCE_S, Informer, open_informer, wait_listed
from wharfinger.cluster.watch.object_cache import ObjectChange
from wharfinger.control_plane.service import open_control_plane
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError
from wharfinger.kube.resource import ObjectKey, ResourceType

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)


def config_map(name: str, version: str = "", **data: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default", "labels": {"app": name[0]}}
    if version:
        metadata |= {"resourceVersion": version, "uid": "u"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data}}


def key(name: str) -> ObjectKey:
    return ObjectKey(CONFIG_MAP, "default", name)


class Cut(httpx.AsyncBaseTransport):
    """A transport whose network can be cut. A cut also breaks the open streams."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner = inner
        self.down = False
        self._broken = trio.Event()

    def cut(self) -> None:
        self.down = True
        self._broken.set()
        self._broken = trio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            await trio.lowlevel.checkpoint()
            raise httpx.ConnectError("connection refused")
        response = await self.inner.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        return httpx.Response(
            response.status_code, headers=response.headers, stream=CutStream(response.stream, self._broken)
        )


class CutStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, broken: trio.Event) -> None:
        self._inner = inner
        self._broken = broken

    async def __aiter__(self) -> AsyncIterator[bytes]:
        iterator = self._inner.__aiter__()
        while True:
            chunk = await self._next(iterator)
            if chunk is None:
                return
            yield chunk

    async def _next(self, iterator: AsyncIterator[bytes]) -> bytes | None:
        result: list[bytes | None] = []

        async def read(scope: trio.CancelScope) -> None:
            result.append(await anext(iterator, None))
            scope.cancel()

        async def watch_cable(scope: trio.CancelScope) -> None:
            await self._broken.wait()
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, nursery.cancel_scope)
            nursery.start_soon(watch_cable, nursery.cancel_scope)
        if not result:
            raise httpx.ReadError("connection reset by peer")
        return result[0]

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def in_memory() -> AsyncIterator[tuple[HttpClusterClient, HttpClusterClient, Cut]]:
    """Open two clients of one control plane. The network of the first client can be cut."""
    async with open_control_plane(simulate=False) as control_plane:
        cut = Cut(control_plane.transport())
        connection = Connection("http://control-plane.invalid")
        async with (
            open_client(connection, transport=cut) as ours,
            open_client(connection, transport=control_plane.transport()) as other,
        ):
            yield ours, other, cut


async def informed(informer: Informer, name: str, *, value: str = "") -> None:
    """Wait until the informer sees this ConfigMap with ``data.v`` equal to ``value``, or its deletion if ``value`` is "-"."""
    with informer.changes() as changes:
        while True:
            obj = informer.get(key(name))
            if (value == "-" and obj is None) or (obj is not None and obj.get("data") == {"v": value}):
                return
            await changes.wait()


async def test_an_informer_lists_and_then_follows(autojump_clock: MockClock) -> None:
    async with in_memory() as (ours, other, _):
        await other.create(config_map("a", v="1"))
        async with open_informer(ours, CONFIG_MAP) as informer:
            await informer.wait_synced()
            assert [one.name for one in informer.objects() if one.namespace == "default"] == ["a"]
            await other.create(config_map("b", v="1"))
            await informed(informer, "b", value="1")
            await other.apply(config_map("b", v="2"), field_manager="x", force=True)
            await informed(informer, "b", value="2")
            await other.delete(key("b"))
            await informed(informer, "b", value="-")
            statistics = informer.statistics()
            assert (statistics.phase, statistics.synced, statistics.last_error) == ("watching", True, "")
            assert (statistics.lists, statistics.watches, statistics.failures) == (1, 1, 0)
            assert statistics.events >= 3


async def test_the_heartbeat_shows_the_action_and_the_last_answer(autojump_clock: MockClock) -> None:
    async with in_memory() as (ours, other, cut), open_informer(ours, CONFIG_MAP, jitter=lambda: 0.0) as informer:
        await other.create(config_map("a", v="1"))
        await informed(informer, "a", value="1")
        (sign,) = ours.heartbeats.signs()
        assert (str(sign.followed), sign.action, sign.is_stale) == ("ConfigMap", "watching", False)
        cut.cut()
        await trio.sleep(3600)
        (sign,) = ours.heartbeats.signs()
        assert sign.heard_s_ago is not None
        assert sign.heard_s_ago >= 3600
        assert not sign.is_stale, "an unreachable server does not make the watch stale"
        assert sign.action in {"pausing", "listing"}
    assert ours.heartbeats.signs() == ()


async def test_namespace_and_label_selector_limit_the_objects(autojump_clock: MockClock) -> None:
    async with in_memory() as (ours, other, _):
        await other.create(config_map("a", v="1"))
        async with open_informer(ours, CONFIG_MAP, "default", "app=b") as informer:
            await informer.wait_synced()
            assert dict(informer.objects()) == {}
            await other.create(config_map("c", v="1"))
            await other.create(config_map("b", v="1"))
            await informed(informer, "b", value="1")
            assert list(informer.objects()) == [key("b")]


async def test_a_field_selector_limits_the_objects(autojump_clock: MockClock) -> None:
    async with in_memory() as (ours, other, _):
        await other.create(config_map("a", v="1"))
        await other.create(config_map("b", v="1"))
        async with open_informer(ours, CONFIG_MAP, "default", field_selector="metadata.name=b") as informer:
            await informer.wait_synced()
            assert list(informer.objects()) == [key("b")]
            await other.apply(config_map("a", v="2"), field_manager="x", force=True)
            await other.apply(config_map("b", v="2"), field_manager="x", force=True)
            await informed(informer, "b", value="2")
            assert list(informer.objects()) == [key("b")]


async def test_an_informer_survives_an_outage_of_the_server(autojump_clock: MockClock) -> None:
    async with in_memory() as (ours, other, cut):
        await other.create(config_map("a", v="1"))
        await other.create(config_map("b", v="1"))
        async with open_informer(ours, CONFIG_MAP, "default") as informer:
            await informer.wait_synced()
            await wait_all_tasks_blocked()
            cut.cut()
            await trio.sleep(300)
            statistics = informer.statistics()
            assert statistics.failures_in_a_row > 3
            assert "connection refused" in statistics.last_error
            assert set(informer.objects()) == {key("a"), key("b")}
            await other.delete(key("a"))
            await other.apply(config_map("b", v="2"), field_manager="x", force=True)
            cut.down = False
            await informed(informer, "a", value="-")
            await informed(informer, "b", value="2")
            await other.create(config_map("c", v="1"))
            await informed(informer, "c", value="1")
            assert informer.statistics().last_error == ""
            assert informer.statistics().failures_in_a_row == 0


async def test_an_informer_may_start_without_a_server(autojump_clock: MockClock) -> None:
    async with in_memory() as (ours, other, cut):
        await other.create(config_map("a", v="1"))
        cut.down = True
        async with open_informer(ours, CONFIG_MAP, "default") as informer:
            with trio.move_on_after(60) as scope:
                await informer.wait_synced()
            assert scope.cancelled_caught
            cut.down = False
            await informer.wait_synced()
            assert list(informer.objects()) == [key("a")]


async def test_a_late_first_list_is_reported_every_few_seconds(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_memory() as (ours, _, cut):
        cut.down = True
        async with open_informer(ours, CONFIG_MAP, "default") as informer, trio.open_nursery() as nursery:
            nursery.start_soon(wait_listed, informer)
            await trio.sleep(3 * LIST_PATIENCE_S + 1)
            said = [message for message in caplog.messages if message.startswith("cannot list ConfigMap: ")]
            assert len(said) == 3
            cut.down = False


async def test_every_change_is_reported_although_little_is_stored(autojump_clock: MockClock) -> None:
    told: list[tuple[str, str, JsonValue]] = []

    def note(change: ObjectChange) -> None:
        told.append((str(change.type), change.key.name, None if change.object is None else change.object["data"]))

    def keep(obj: JsonObject) -> JsonObject:
        return {"metadata": obj["metadata"]}

    async with in_memory() as (ours, other, cut):
        await other.create(config_map("a", v="1"))
        await other.create(config_map("b", v="1"))
        async with open_informer(ours, CONFIG_MAP, "default", keep=keep, on_change=note) as informer:
            await informer.wait_synced()
            await other.apply(config_map("a", v="2"), field_manager="x", force=True)
            await other.apply(config_map("a", v="3"), field_manager="x", force=True)
            await other.delete(key("a"))
            await wait_all_tasks_blocked()
            cut.cut()
            await trio.sleep(5)
            await other.delete(key("b"))
            cut.down = False
            await trio.sleep(60)
            assert dict(informer.objects()) == {}
    assert told == [
        ("ADDED", "a", {"v": "1"}),
        ("ADDED", "b", {"v": "1"}),
        ("MODIFIED", "a", {"v": "2"}),
        ("MODIFIED", "a", {"v": "3"}),
        ("DELETED", "a", {"v": "3"}),
        ("DELETED", "b", None),
    ]


# -- scripted servers


def listing(*items: JsonObject, version: str) -> Reply:
    values: list[JsonValue] = list(items)
    return json_reply({"kind": "ConfigMapList", "metadata": {"resourceVersion": version}, "items": values})


class Plan:
    """A script with answers to lists and answers to watches.

    When no answers are left, further watches stay open without events.
    """

    def __init__(self, lists: list[Answer], watches: list[Answer]) -> None:
        self.lists = lists
        self.watches = watches
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> Answer:
        if "watch" not in request.url.params:
            self.asked.append("list")
            return self.lists.pop(0)
        self.asked.append("watch " + request.url.params["resourceVersion"])
        return self.watches.pop(0) if self.watches else Reply(200, [Hang()])


@asynccontextmanager
async def informer_of(script: Script) -> AsyncIterator[Informer]:
    transport = FaultyTransport(script)
    async with open_client(Connection("http://api.example"), transport=transport) as client:
        typed: ClusterClient = client
        async with open_informer(typed, CONFIG_MAP, jitter=lambda: 0.0) as informer:
            yield informer
    assert transport.open_streams == 0


async def test_a_410_lists_again_and_reports_deletions(autojump_clock: MockClock) -> None:
    gone = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    plan = Plan(
        [listing(config_map("a", "1"), config_map("b", "2"), version="5"), listing(config_map("b", "7"), version="9")],
        [Reply(200, [gone])],
    )
    async with informer_of(plan) as informer:
        with informer.changes() as changes:
            await informer.wait_synced()
            assert await changes.wait() == {key("a"), key("b")}
            assert await changes.wait() == {key("a"), key("b")}
        await wait_all_tasks_blocked()
        assert plan.asked == ["list", "watch 5", "list", "watch 9"]
        assert informer.statistics().failures == 0


async def test_a_request_for_a_fresh_list_replaces_a_silent_watch(autojump_clock: MockClock) -> None:
    lists = [listing(config_map(name, "1"), version=f"{number}") for number, name in enumerate("abcd", 5)]
    plan = Plan([lists[0], status_reply(500, "InternalError", "no"), *lists[1:]], [])
    async with informer_of(plan) as informer:
        await wait_listed(informer, fresh_s=5.0)
        await wait_all_tasks_blocked()
        assert plan.asked == ["list", "watch 5"]
        await trio.sleep(10)
        await wait_listed(informer)
        assert len(plan.asked) == 2, "no fresh list was requested"
        await wait_listed(informer, fresh_s=5.0)
        assert set(informer.objects()) == {key("b")}
        await wait_all_tasks_blocked()
        assert plan.asked[2:] == ["list", "list", "watch 6"]
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(informer.list_anew)
        assert set(informer.objects()) <= {key("c"), key("d")}
        await wait_all_tasks_blocked()
        assert plan.asked[-1].startswith("watch")
        assert informer.statistics().failures == 1


async def test_bookmarks_advance_the_revision_and_broken_streams_resume_there(autojump_clock: MockClock) -> None:
    bookmark = event("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": "20"}})
    plan = Plan(
        [listing(version="5"), listing(config_map("b", "21"), version="30")],
        [
            Reply(200, [event("ADDED", config_map("a", "6")), httpx.ReadError("reset")]),
            Reply(200, [bookmark]),
            Reply(200, [b'{"type":"ADDED","obj']),
            status_reply(500, "InternalError", "etcd"),
            Reply(200, [b"garbage\n"]),
        ],
    )
    async with informer_of(plan) as informer:
        await trio.sleep(20)
        assert plan.asked == ["list", "watch 5", "watch 6", "watch 20", "watch 20", "list", "watch 30", "watch 30"]
        assert list(informer.objects()) == [key("b")]
        assert informer.statistics().failures == 4
        assert informer.statistics().last_error == ""


async def test_a_server_that_returns_empty_is_accepted(autojump_clock: MockClock) -> None:
    """A control plane in memory is empty after a restart, and its resource versions are lower than before."""
    async with in_memory() as (ours, other, cut):
        for number in range(5):
            await other.create(config_map(f"old-{number}", v="1"))
        async with open_informer(ours, CONFIG_MAP, "default") as informer:
            await informer.wait_synced()
            await wait_all_tasks_blocked()
            cut.cut()
            await trio.sleep(5)
            async with open_control_plane(simulate=False) as fresh:
                cut.inner = fresh.transport()
                cut.down = False
                async with open_client(Connection("http://fresh.invalid"), transport=fresh.transport()) as client:
                    await client.create(config_map("new", v="1"))
                    await informed(informer, "new", value="1")
                    assert list(informer.objects()) == [key("new")]


async def test_a_server_that_drops_every_watch_is_not_requested_in_a_tight_loop(autojump_clock: MockClock) -> None:
    plan = Plan([listing(version="5")], [Reply(200, []) for _ in range(1000)])
    async with informer_of(plan):
        await trio.sleep(600)
    assert 20 < len(plan.asked) < 40


async def test_failed_lists_are_retried(autojump_clock: MockClock) -> None:
    nameless = listing({"metadata": {"name": 5}}, version="4")
    plan = Plan([status_reply(403, "Forbidden", "not yet"), nameless, listing(config_map("a", "1"), version="5")], [])
    async with informer_of(plan) as informer:
        for _ in range(2):
            with pytest.raises(ApiError, match="not yet"):
                await informer.wait_first_list()
        await informer.wait_synced()
        assert plan.asked[:3] == ["list", "list", "list"]
        assert list(informer.objects()) == [key("a")]


async def test_a_wait_for_the_first_list_ends_with_it_or_with_its_error(autojump_clock: MockClock) -> None:
    async with informer_of(Plan([listing(config_map("a", "1"), version="5")], [])) as informer:
        await informer.wait_first_list()
        assert list(informer.objects()) == [key("a")]
    async with informer_of(Plan([listing({"metadata": {"name": 5}}, version="4")] * 9, [])) as informer:
        with pytest.raises(ShapeError, match="name"):
            await informer.wait_first_list()
