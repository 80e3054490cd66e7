"""A stream of objects and its subscribers, with servers that misbehave."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import cast

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import CONFIG_MAP, NAMESPACE
from tests.cluster.support.faulty_transport import FaultyTransport, Hang, Reply, Until, event, status_reply
from tests.cluster.support.watch_script import Told, WatchScript, obj, page, watch
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import ApiError, UnreachableError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.api.http_errors import MalformedAnswerError
from wharfinger.cluster.api.raw_object import RawChange, RawEvent, RawObject, RawPage, read_raw_object
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.traffic.heartbeats import Heartbeats
from wharfinger.cluster.watch.object_stream import MIN_RELIST_S, ObjectStream, WatchTarget
from wharfinger.formats.json.value import JsonObject

EXPIRED = status_reply(410, "Expired", "the continue token is too old")
GONE: JsonObject = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
TARGET = WatchTarget(CONFIG_MAP, "default", "app=x", "metadata.name!=y")


@asynccontextmanager
async def stream_of(script: WatchScript) -> AsyncIterator[ObjectStream]:
    """Open a stream of a scripted server. At the end, check that no request is still open."""
    transport = FaultyTransport(script)
    async with open_client(Connection("http://api.example"), transport=transport) as client:
        async with trio.open_nursery() as nursery:
            stream = ObjectStream(client, TARGET, lambda: 0.0)
            nursery.start_soon(stream.run)
            yield stream
            nursery.cancel_scope.cancel()
        assert client.statistics()["watches"] == 0
    assert transport.open_streams == 0


def raw(name: str, version: int) -> RawObject:
    """Return a ConfigMap with this resource version as raw text."""
    return read_raw_object(json.dumps(obj(name, version)).encode(), CONFIG_MAP)


class Immediate:
    """A client with an endless watch. Once ``comes`` is set, the waiting read of the watch will return an event, even if it is
    cancelled before it continues.
    """

    def __init__(self, comes: trio.Event) -> None:
        self.comes = comes
        self.listed = RawPage((raw("a", 5),), "5")
        self.heartbeats = Heartbeats()

    def silence_limit(self, _resource: object) -> float:
        return 60.0

    @asynccontextmanager
    async def raw_list(self, *_: object, **__: object) -> AsyncIterator[AsyncIterator[RawPage]]:
        async def pages() -> AsyncGenerator[RawPage, None]:
            yield self.listed

        async with aclosing(pages()) as found:
            yield found

    @asynccontextmanager
    async def raw_watch(self, *_: object, **__: object) -> AsyncIterator[AsyncIterator[RawEvent]]:
        async def events() -> AsyncGenerator[RawEvent, None]:
            while True:
                await self.comes.wait()
                self.comes = trio.Event()
                yield RawEvent(WatchType.ADDED, raw("b", 6))

        async with aclosing(events()) as found:
            yield found


def slow(reply: Reply, until: trio.Event) -> Reply:
    """Return the same answer, delayed until an event is set."""
    return Reply(reply.status, [Until(until), *reply.chunks], reply.headers)


def test_targets_are_formatted() -> None:
    assert str(TARGET) == "ConfigMap in default (app=x, metadata.name!=y)"
    assert str(WatchTarget(NAMESPACE, "", "", "")) == "Namespace"


async def test_a_stream_requests_its_target_and_has_statistics(autojump_clock: MockClock) -> None:
    script = WatchScript([page(obj("a", 1), version=5)], [watch(("ADDED", obj("b", 6)), then=Hang())])
    async with stream_of(script) as stream:
        subscription = stream.join(Told(), None)
        await subscription.wait_first_list()
        await wait_all_tasks_blocked()
        statistics = stream.statistics()
    assert (statistics.resource, statistics.namespace) == (CONFIG_MAP, "default")
    assert (statistics.label_selector, statistics.field_selector) == ("app=x", "metadata.name!=y")
    assert (statistics.phase, statistics.subscribers, statistics.objects) == ("watching", 1, 2)
    assert (statistics.lists, statistics.watches, statistics.events, statistics.failures) == (1, 1, 1, 0)
    assert statistics.last_error == ""


# -- lists


async def test_pages_are_reported_as_they_arrive(autojump_clock: MockClock) -> None:
    more = trio.Event()
    script = WatchScript([page(obj("a", 1), version=5, token="t"), slow(page(obj("b", 2), version=5), more)])
    async with stream_of(script) as stream:
        told = Told()
        subscription = stream.join(told, None)
        await wait_all_tasks_blocked()
        assert (told.take(), subscription.listed) == (["ADDED a"], False)
        more.set()
        await subscription.wait_first_list()
        assert (told.take(), subscription.listed) == (["ADDED b"], True)
        await wait_all_tasks_blocked()
    assert script.asked == ["list limit", "list limit continue", "watch 5"]


async def test_a_list_that_expires_between_pages_is_restarted_without_duplicates(
    autojump_clock: MockClock,
) -> None:
    script = WatchScript(
        [
            page(obj("a", 1), obj("b", 2), version=5, token="t"),
            EXPIRED,
            page(obj("a", 1), version=6, token="t"),
            EXPIRED,
            page(obj("a", 1), obj("c", 3), version=7),
        ]
    )
    async with stream_of(script) as stream:
        told = Told()
        subscription = stream.join(told, None)
        with pytest.raises(ApiError, match="too old"):
            await subscription.wait_first_list()
        await trio.sleep(10)
        assert subscription.listed
        assert told.take() == ["ADDED a", "ADDED b", "ADDED c", "DELETED b?"]
        assert stream.statistics().failures == 0
    assert script.asked == ["list limit", "list limit continue"] * 2 + ["list", "watch 7"]


async def test_a_list_with_invalid_objects_is_a_failure(autojump_clock: MockClock) -> None:
    script = WatchScript([page({"metadata": {"name": ""}}, version=1), page(obj("a", 1), version=5)])
    async with stream_of(script) as stream:
        told = Told()
        subscription = stream.join(told, None)
        with pytest.raises(MalformedAnswerError, match=r"list ConfigMap in default: .* without metadata\.name"):
            await subscription.wait_first_list()
        assert "without metadata.name" in stream.statistics().last_error
        await trio.sleep(2)
        assert told.take() == ["ADDED a"]
        assert (stream.statistics().failures, stream.statistics().last_error) == (1, "")


# -- joining subscribers


async def test_subscribers_joining_at_once_share_a_list(autojump_clock: MockClock) -> None:
    script = WatchScript([page(obj("a", 1), version=5), page(obj("a", 1), version=6)])
    async with stream_of(script) as stream:
        told = [Told() for _ in range(6)]
        first = [stream.join(one, None) for one in told[:3]]
        for one in first:
            await one.wait_first_list()
        assert [one.take() for one in told[:3]] == [["ADDED a"]] * 3
        await wait_all_tasks_blocked()
        assert script.take() == ["list limit", "watch 5"]
        later = [stream.join(one, None) for one in told[3:]]
        for one in later:
            await one.wait_first_list()
        await wait_all_tasks_blocked()
        assert [one.take() for one in told] == [[]] * 3 + [["ADDED a"]] * 3
        assert script.take() == ["list limit", "watch 6"]


async def test_a_subscriber_joining_during_a_list_waits_for_the_next_list(autojump_clock: MockClock) -> None:
    more = trio.Event()
    script = WatchScript(
        [
            page(obj("a", 1), version=5, token="t"),
            slow(page(obj("b", 1), version=5), more),
            page(obj("a", 1), obj("b", 2), version=6),
        ]
    )
    async with stream_of(script) as stream:
        told, late = Told(), [Told(), Told()]
        stream.join(told, None)
        await wait_all_tasks_blocked()
        latecomers = [stream.join(one, None) for one in late]
        more.set()
        for one in latecomers:
            await one.wait_first_list()
        assert [one.take() for one in late] == [["ADDED a", "ADDED b"]] * 2
        assert told.take() == ["ADDED a", "ADDED b", "MODIFIED b"]
        await wait_all_tasks_blocked()
    assert script.asked == ["list limit", "list limit continue", "list limit", "watch 6"]


async def test_a_subscriber_joining_during_a_pause_starts_an_attempt_at_once(autojump_clock: MockClock) -> None:
    script = WatchScript(
        [status_reply(403, "Forbidden", "not yet"), status_reply(403, "Forbidden", "still not"), page(version=5)]
    )
    async with stream_of(script) as stream:
        one = stream.join(Told(), None)
        with pytest.raises(ApiError, match="not yet"):
            await one.wait_first_list()
        start = trio.current_time()
        two = stream.join(Told(), None)
        with pytest.raises(ApiError, match="still not"):
            await two.wait_first_list()
        assert trio.current_time() == start
        assert (one.listed, two.listed, stream.statistics().failures) == (False, False, 2)
        await trio.sleep(5)
        assert (one.listed, two.listed) == (True, True)
        with pytest.raises(ApiError, match="not yet"):
            await one.wait_first_list()


async def test_a_subscriber_may_join_while_others_are_notified(autojump_clock: MockClock) -> None:
    """A subscriber may join between two events that arrived together. It gets the second object from its own first list."""
    lines = event("ADDED", obj("a", 6)) + event("ADDED", obj("b", 7))
    script = WatchScript([page(version=5), page(obj("a", 6), obj("b", 7), version=7)], [Reply(200, [lines, Hang()])])
    async with stream_of(script) as stream:
        first, late = Told(), Told()

        def invite(change: RawChange) -> None:
            first(change)
            if change.key.name == "a":
                stream.join(late, None)

        stream.join(invite, None)
        await wait_all_tasks_blocked()
        assert (first.take(), late.take()) == (["ADDED a", "ADDED b"], ["ADDED a", "ADDED b"])
        assert stream.statistics().events == 1
    assert script.asked == ["list limit", "watch 5", "list limit", "watch 7"]


# -- leaving subscribers


async def test_a_subscriber_may_join_at_the_same_time_as_an_event() -> None:
    """A new subscriber ends the old watch. If an event of the old watch has arrived at that moment, the waiting read returns it
    although the read is cancelled. The event must be ignored.
    """
    comes = trio.Event()
    client = Immediate(comes)
    async with trio.open_nursery() as nursery:
        stream = ObjectStream(cast("ClusterClient", client), TARGET, lambda: 0.0)
        nursery.start_soon(stream.run)
        first, second = Told(), Told()
        await stream.join(first, None).wait_first_list()
        await wait_all_tasks_blocked()
        client.listed = RawPage((raw("a", 5), raw("b", 6)), "6")
        comes.set()
        await stream.join(second, None).wait_first_list()
        assert (first.take(), second.take()) == (["ADDED a", "ADDED b"], ["ADDED a", "ADDED b"])
        assert stream.statistics().events == 0
        nursery.cancel_scope.cancel()


async def test_a_subscriber_that_leaves_during_a_list_receives_no_more_of_it(autojump_clock: MockClock) -> None:
    more = trio.Event()
    script = WatchScript([page(obj("a", 1), version=5, token="t"), slow(page(obj("b", 2), version=5), more)])
    async with stream_of(script) as stream:
        stays, leaves = Told(), Told()
        stream.join(stays, None)
        leaving = stream.join(leaves, None)
        await wait_all_tasks_blocked()
        stream.leave(leaving)
        more.set()
        await wait_all_tasks_blocked()
        assert (stays.take(), leaves.take()) == (["ADDED a", "ADDED b"], ["ADDED a"])
        assert not stream.over


@pytest.mark.parametrize("chunks", [[Hang()], [b'{"items":[', Hang()]])
async def test_the_last_subscriber_ends_the_stream_whatever_is_in_progress(chunks: list[bytes | Hang]) -> None:
    script = WatchScript([Reply(200, chunks)])
    transport = FaultyTransport(script)
    async with open_client(Connection("http://api.example"), transport=transport) as client:
        stream = ObjectStream(client, TARGET, lambda: 0.0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.run)
            one, two = stream.join(Told(), None), stream.join(Told(), None)
            await wait_all_tasks_blocked()
            stream.leave(one)
            await wait_all_tasks_blocked()
            assert (stream.over, transport.open_streams) == (False, 1)
            stream.leave(two)
        assert (stream.over, transport.open_streams) == (True, 0)


async def test_a_stream_may_end_before_it_begins() -> None:
    script = WatchScript([])
    async with stream_of(script) as stream:
        stream.leave(stream.join(Told(), None))
        await wait_all_tasks_blocked()
    assert script.asked == []


# -- watches


async def test_a_410_lists_again_and_reports_differences(autojump_clock: MockClock) -> None:
    script = WatchScript(
        [
            page(obj("a", 1), obj("b", 2), obj("c", 3), version=5),
            page(obj("b", 2), obj("c", 8, "other"), obj("d", 9), version=9),
        ],
        [watch(("MODIFIED", obj("a", 6)), ("ERROR", GONE))],
    )
    async with stream_of(script) as stream:
        told = Told()
        await stream.join(told, None).wait_first_list()
        told.take()
        await wait_all_tasks_blocked()
        assert told.take() == ["MODIFIED a", "DELETED c?", "ADDED c", "ADDED d", "DELETED a?"]
        assert stream.statistics().failures == 0
    assert script.asked == ["list limit", "watch 5", "list limit", "watch 9"]


async def test_a_broken_watch_resumes_at_the_newest_revision(autojump_clock: MockClock) -> None:
    script = WatchScript(
        [page(obj("a", 1), version=5)],
        [
            watch(("MODIFIED", obj("a", 6)), ("BOOKMARK", obj("", 20)), then=httpx.ReadError("reset")),
            watch(("MODIFIED", obj("a", 21, "other")), ("DELETED", obj("a", 22, "other"))),
            Reply(200, [b"garbage\n"]),
        ],
    )
    async with stream_of(script) as stream:
        told = Told()
        await stream.join(told, None).wait_first_list()
        await wait_all_tasks_blocked()
        assert "reset" in stream.statistics().last_error
        await trio.sleep(10)
        assert told.take() == ["ADDED a", "MODIFIED a", "DELETED a?", "ADDED a", "DELETED a"]
        assert (stream.statistics().failures, stream.statistics().last_error) == (2, "")
    assert script.asked == ["list limit", "watch 5", "watch 20", "watch 22", "watch 22"]


async def test_a_server_that_drops_every_watch_is_not_requested_in_a_tight_loop(autojump_clock: MockClock) -> None:
    script = WatchScript([page(version=5)], [watch() for _ in range(1000)])
    async with stream_of(script) as stream:
        await stream.join(Told(), None).wait_first_list()
        await trio.sleep(600)
    assert 20 < len(script.asked) < 40


async def test_a_server_that_returns_with_another_history_is_accepted(autojump_clock: MockClock) -> None:
    refused = UnreachableError("no")
    script = WatchScript(
        [page(obj("a", 7), version=9), page(obj("b", 1), version=2)], [watch(then=httpx.ReadError(str(refused)))] * 2
    )
    async with stream_of(script) as stream:
        told = Told()
        stream.join(told, None)
        await trio.sleep(10)
        assert told.take() == ["ADDED a", "ADDED b", "DELETED a?"]
    assert script.asked == ["list limit", "watch 9", "watch 9", "list limit", "watch 2"]


# -- periodic lists


async def test_the_shortest_requested_relist_period_is_used(autojump_clock: MockClock) -> None:
    script = WatchScript([page(obj("a", 1), version=number) for number in range(5, 20)])
    script.lists[2] = page(obj("a", 2), version=7)
    script.lists[3] = page(obj("a", 2), version=8)
    async with stream_of(script) as stream:
        told = Told()
        stream.join(told, 100)
        never = stream.join(Told(), None)
        await trio.sleep(150)
        assert script.take() == ["list limit", "watch 5", "list limit", "watch 6"]
        often = stream.join(Told(), 10)
        await trio.sleep(15)
        assert script.take() == ["list limit", "watch 7", "list limit", "watch 8"]
        assert told.take() == ["ADDED a", "MODIFIED a"]
        stream.leave(often)
        stream.leave(never)
        await trio.sleep(50)  # the watch begun with the shorter period ends once more
        assert script.take() == ["list limit", "watch 9"]
        await trio.sleep(40)
        assert script.take() == []


async def test_a_relist_period_has_a_minimum(autojump_clock: MockClock) -> None:
    script = WatchScript([page(version=5) for _ in range(100)])
    async with stream_of(script) as stream:
        stream.join(Told(), 0.0)
        await trio.sleep(10 * MIN_RELIST_S + 0.5)
    assert script.asked.count("list limit") == 11


async def test_periodic_lists_continue_after_failures(autojump_clock: MockClock) -> None:
    script = WatchScript([page(version=5), status_reply(500, "InternalError", "etcd"), page(version=6)])
    async with stream_of(script) as stream:
        stream.join(Told(), 60)
        await trio.sleep(100)
        assert script.asked == ["list limit", "watch 5", "list limit", "list limit", "watch 6"]
        assert stream.statistics().failures == 1
