"""Monitors of bindings, against a control plane in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import config_map, key
from tests.cluster.support.clusters import memory_cluster
from tests.hooks.support.bindings import binding
from tests.hooks.support.patience import PATIENT_FILTERS
from tests.hooks.support.watching import (
    ADDED,
    DELETED,
    HERE,
    MODIFIED,
    VALUE,
    obj,
    plain,
    settle,
    short,
    value_filters,
    watching,
    write,
)
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.api.raw_object import RawPage
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import find
from wharfinger.hooks.config.bindings import NamespaceSelector, WatchVerb
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.hooks.watching.monitor import LIST_FILTERS, PLAIN, Monitor, open_monitors
from wharfinger.hooks.watching.monitor_backlog import LIMIT
from wharfinger.hooks.watching.monitor_core import MonitorEvent
from wharfinger.kube.resource import ResourceType


async def test_snapshot_has_the_listed_objects_sorted(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(
            client, obj("b", v="2"), obj("a", v="1"), obj("c", "kube-public", v="3"), config_map("other", v="4")
        )
        async with watching(client, binding(jq_filter="value", labels="app=x")) as watched:
            assert watched.monitor.snapshot() == ()
            await watched.monitor.wait_listed()
            snapshot = watched.monitor.snapshot()
            assert snapshot is watched.monitor.snapshot()
            assert watched.shown() == ["1", "2", "3"]
            assert plain(snapshot[0])["object"] == await client.get(key("a"))
            watched.monitor.unlock()
            await settle()
            assert watched.take() == []


async def test_events_are_reported_in_order_after_unlock(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"))
        async with watching(client, VALUE) as watched:
            await watched.monitor.wait_listed()
            await write(client, obj("a", v="2"), obj("b", v="x"))
            await client.delete(key("a"))
            await settle()
            assert watched.take() == []
            assert watched.monitor.statistics().gathered == 3
            watched.monitor.unlock()
            assert watched.take() == [(MODIFIED, "2"), (ADDED, "x"), (DELETED, "2")]
            watched.monitor.unlock()
            await write(client, obj("b", v="y"))
            await settle()
            assert watched.take() == [(MODIFIED, "y")]
            assert watched.shown() == ["y"]


async def test_changes_shown_by_the_synchronization_are_not_events(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"))
        async with watching(client, VALUE) as watched:
            await watched.monitor.wait_listed()
            await write(client, obj("a", v="2"), obj("b", v="3"))
            await settle()
            assert watched.monitor.synchronize() == watched.monitor.snapshot()
            assert watched.shown() == ["2", "3"]
            await client.delete(key("b"))
            await settle()
            watched.monitor.unlock()
            assert watched.take() == [(DELETED, "3")]
            await write(client, obj("a", v="4"))
            await settle()
            assert watched.monitor.synchronize() == watched.monitor.snapshot()
            assert watched.shown() == ["4"]
            assert watched.take() == [(MODIFIED, "4")]


async def test_reading_a_snapshot_while_locked_drops_no_events(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"))
        async with watching(client, VALUE) as watched:
            await watched.monitor.wait_listed()
            assert [short(item) for item in watched.monitor.synchronize()] == ["1"]
            await client.delete(key("a"))
            await write(client, obj("n", v="9"))
            await settle()
            assert watched.shown() == ["9"]
            watched.monitor.unlock()
            assert watched.take() == [(DELETED, "1"), (ADDED, "9")]


class SlowLists(HttpClusterClient):
    """A client that needs a given time to list the objects of one namespace."""

    def __init__(self, client: HttpClusterClient, namespace: str, seconds: float) -> None:
        self.__dict__.update(client.__dict__)
        self._slow = (namespace, seconds)

    @asynccontextmanager
    async def raw_list(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        paged: bool = True,
        metadata_only: bool = False,
    ) -> AsyncIterator[AsyncIterator[RawPage]]:
        slow, seconds = self._slow
        await trio.sleep(seconds if namespace == slow else 0)
        async with super().raw_list(
            resource, namespace, label_selector=label_selector, field_selector=field_selector, paged=paged
        ) as pages:
            yield pages


async def test_object_deleted_during_another_list_is_not_in_the_snapshot(autojump_clock: MockClock) -> None:
    async with memory_cluster() as memory:
        client = SlowLists(memory, "kube-public", 5)
        await write(memory, obj("a", v="1"), obj("b", v="2"), obj("c", v="3"))
        wanted = binding(
            jq_filter="value", namespaces=NamespaceSelector(("default", "kube-public"), ""), labels="app=x"
        )
        async with watching(client, wanted) as watched:
            await trio.sleep(1)
            await memory.delete(key("a"))
            await memory.delete(key("b"))
            await write(memory, obj("b", v="4"))
            await trio.sleep(1)
            await watched.monitor.wait_listed()
            assert watched.shown() == ["4", "3"]
            watched.monitor.unlock()
            await settle()
            assert watched.take() == []


async def test_change_outside_the_filter_result_is_not_an_event(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"))
        async with watching(client, VALUE) as watched:
            await watched.monitor.wait_listed()
            watched.monitor.unlock()
            await write(client, obj("a", v="1", w="1"))
            await settle()
            assert watched.take() == []
            assert find(plain(watched.monitor.snapshot()[0]), "object", "data", "w") == "1"
            await client.delete(key("a"))
            await settle()
            assert watched.take() == [(DELETED, "1")]


async def test_without_a_filter_every_change_is_an_event(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"))
        async with watching(client, binding(namespaces=HERE, labels="app=x")) as watched:
            await watched.monitor.wait_listed()
            watched.monitor.unlock()
            await client.merge_patch(key("a"), {"metadata": {"annotations": {"x": "y"}}})
            await settle()
            (event,) = watched.events
            assert (event.verb, event.key.name) == (MODIFIED, "a")
            assert plain(event.item) == {"object": await client.get(key("a"))}


@pytest.mark.parametrize("verbs", [frozenset(), frozenset({ADDED}), frozenset({MODIFIED, DELETED})])
async def test_only_requested_verbs_are_reported(verbs: frozenset[WatchVerb], autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        wanted = binding(jq_filter="value", namespaces=HERE, labels="app=x", verbs=verbs)
        async with watching(client, wanted) as watched:
            await watched.monitor.wait_listed()
            await write(client, obj("a", v="1"), obj("a", v="2"))
            await settle()
            watched.monitor.unlock()
            await write(client, obj("b", v="1"))
            await client.delete(key("a"))
            await settle()
            told = [(ADDED, "1"), (MODIFIED, "2"), (ADDED, "1"), (DELETED, "2")]
            assert watched.take() == [one for one in told if one[0] in verbs]
            assert watched.shown() == ["1"]


async def test_items_omit_objects_with_keep_full_objects_disabled(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"))
        wanted = binding(jq_filter="value", keep_full_objects=False, namespaces=HERE, labels="app=x")
        async with watching(client, wanted) as watched:
            await watched.monitor.wait_listed()
            watched.monitor.unlock()
            await client.delete(key("a"))
            await settle()
            assert [(event.verb, plain(event.item)) for event in watched.events] == [(DELETED, {"filterResult": "1"})]


async def test_object_that_leaves_the_selector_is_reported_as_deleted(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"))
        async with watching(client, VALUE) as watched:
            await watched.monitor.wait_listed()
            watched.monitor.unlock()
            await client.merge_patch(key("a"), {"metadata": {"labels": {"app": "y"}}})
            await settle()
            await client.merge_patch(key("a"), {"metadata": {"labels": {"app": "x"}}})
            await settle()
            assert watched.take() == [(DELETED, "1"), (ADDED, "1")]


# -- load


async def test_concurrent_filters_of_a_list_are_limited(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, *(obj(f"c-{number:03}", v=f"{number:03}") for number in range(100)))
        filters = value_filters()
        async with watching(client, VALUE, filters) as watched:
            await watched.monitor.wait_listed()
            assert filters.most_at_once == LIST_FILTERS
            assert watched.shown() == [f"{number:03}" for number in range(100)]


async def test_changes_while_the_list_is_filtered_are_reported_later(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"), obj("b", v="1"))
        filters = value_filters()
        filters.gate = trio.Event()
        async with watching(client, VALUE, filters) as watched:
            await settle()
            await write(client, obj("a", v="2"), obj("c", v="3"))
            await client.delete(key("b"))
            await settle()
            filters.gate.set()
            await watched.monitor.wait_listed()
            await settle()
            watched.monitor.unlock()
            assert watched.take() == [(MODIFIED, "2"), (ADDED, "3"), (DELETED, "1")]


@pytest.mark.slow
async def test_burst_of_changes_is_reduced_and_ends_with_the_last_state(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="old"))
        filters = value_filters()
        async with watching(client, VALUE, filters) as watched:
            await watched.monitor.wait_listed()
            filters.gate = trio.Event()
            for number in range(LIMIT + 100):
                await client.merge_patch(key("a"), {"data": {"v": str(number)}})
            await settle()
            statistics = watched.monitor.statistics()
            assert statistics.inbox < LIMIT
            assert statistics.reduced > LIMIT - 10
            filters.gate.set()
            await settle()
            watched.monitor.unlock()
            told = watched.take()
            assert told[-1] == (MODIFIED, str(LIMIT + 99))
            assert {verb for verb, _ in told} == {MODIFIED}
            assert watched.shown() == [str(LIMIT + 99)]


async def test_changes_waiting_beyond_a_number_are_packed(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        filters = value_filters()
        async with watching(client, VALUE, filters) as watched:
            await watched.monitor.wait_listed()
            watched.monitor.unlock()
            filters.gate = trio.Event()
            names = [f"c-{number:03}" for number in range(PLAIN + 10)]
            await write(client, *(obj(name, v=name) for name in names))
            await settle()
            waiting = [seen for change in watched.monitor._inbox._changes if (seen := change.payload) is not None]
            assert [isinstance(seen.text, bytes) for seen in waiting] == [True] * PLAIN + [False] * 9
            filters.gate.set()
            await settle()
            assert watched.take() == [(ADDED, name) for name in names]


async def test_statistics_count_watches_objects_and_events(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, watching(client, VALUE) as watched:
        before = watched.monitor.statistics()
        assert (before.listed, before.locked, before.watches) == (False, True, 0)
        await watched.monitor.wait_listed()
        watched.monitor.unlock()
        for _ in range(2):
            await write(client, obj("a", v="1"), obj("a", v="2"))
            await client.delete(key("a"))
        await write(client, obj("b", v="1"))
        await settle()
        after = watched.monitor.statistics()
        assert (after.listed, after.locked, after.watches, after.objects) == (True, False, 1, 1)
        assert (after.added, after.modified, after.deleted, after.cleaned) == (3, 2, 2, 2)
        assert (after.inbox, after.gathered, after.dropped, after.last_error) == (0, 0, 0, "")


async def test_monitor_works_with_the_real_jq() -> None:
    program = "select(.data.v) | {n: .metadata.name, v: (.data.v | tonumber)}"
    told, heard = trio.open_memory_channel[MonitorEvent](10)
    async with (
        memory_cluster() as client,
        open_jq_pool(None, workers=2, limits=PATIENT_FILTERS) as filters,
        open_shared_watches(client) as watches,
    ):
        await write(client, obj("a", v="1"), obj("b"))
        wanted = binding(jq_filter=program, namespaces=HERE, labels="app=x", keep_full_objects=False)
        monitor = Monitor(client, watches, filters, wanted, hook="h", namespace=None, emit=told.send_nowait)
        async with open_monitors([monitor]):
            with trio.fail_after(60):
                await monitor.wait_listed()
                assert [short(item) for item in monitor.snapshot()] == [{"n": "a", "v": 1}, None]
                monitor.unlock()
                await write(client, obj("a", v="1.0", w="1"), obj("b", w="1"), obj("b", v="2"))
                event = await heard.receive()
                assert (event.verb, short(event.item)) == (MODIFIED, {"n": "b", "v": 2})
                await write(client, obj("a", v="x"))
                await client.delete(key("b"))
                event = await heard.receive()
                assert (event.verb, short(event.item)) == (DELETED, {"n": "b", "v": 2})
                assert "ConfigMap default/a" in monitor.statistics().last_error
                assert [plain(item) for item in monitor.snapshot()] == [{"filterResult": {"n": "a", "v": 1}}]
        wanted = binding(jq_filter=".a | (")
        monitor = Monitor(client, watches, filters, wanted, hook="h", namespace=None, emit=told.send_nowait)
        async with open_monitors([monitor]):
            with pytest.raises(HookError, match=r"binding watched: jq filter '\.a \| \('") as caught:
                await monitor.wait_listed()
            assert not caught.value.transient
