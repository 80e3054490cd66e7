"""The state of a monitor: whether it is settled, its checksum, and its shared watch."""

from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import key
from tests.cluster.support.clusters import memory_cluster
from tests.hooks.support.bindings import binding
from tests.hooks.support.watching import MODIFIED, VALUE, obj, settle, value_filters, watching, write
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.hooks.config.bindings import KubernetesBinding
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.watching.monitor import Monitor, open_monitors
from wharfinger.hooks.watching.monitor_core import MonitorEvent


async def test_monitor_is_settled_once_all_seen_changes_are_reported(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        filters = value_filters()
        async with watching(client, VALUE, filters) as watched:
            seen = [watched.monitor.settled]
            await watched.monitor.wait_listed()
            seen.append(watched.monitor.settled)
            watched.monitor.unlock()
            seen.append(watched.monitor.settled)
            filters.gate = trio.Event()
            await write(client, obj("a", v="1"))
            await settle()
            seen.append(watched.monitor.settled)
            filters.gate.set()
            await settle()
            assert [*seen, watched.monitor.settled] == [False, False, True, False, True]
        async with watching(client, binding(kind="Unheard")) as watched:
            with pytest.raises(HookError):
                await watched.monitor.wait_listed()
            watched.monitor.unlock()
            assert not watched.monitor.settled


async def test_checksum_changes_with_the_binding_and_its_objects(autojump_clock: MockClock) -> None:
    async def checksum_of(changed: KubernetesBinding, namespace: str | None = None) -> str:
        async with watching(client, changed, namespace=namespace) as watched:
            await watched.monitor.wait_listed()
            return watched.monitor.checksum()

    async with memory_cluster() as client:
        await write(client, obj("a", v="1"), obj("b", v="2"))
        before = await checksum_of(VALUE)
        whole = replace(VALUE, jq_filter="")
        before_whole = await checksum_of(whole)
        assert before.startswith("sha256:")
        assert await checksum_of(replace(VALUE, queue="other", allow_failure=True)) == before
        await write(client, obj("a", v="1", w="unseen"))
        assert await checksum_of(VALUE) == before
        assert await checksum_of(whole) != before_whole
        others = [
            await checksum_of(replace(VALUE, name="x")),
            await checksum_of(replace(VALUE, keep_full_objects=False)),
            await checksum_of(replace(VALUE, names=("a", "b"))),
            await checksum_of(replace(VALUE, namespaces=None)),
            await checksum_of(VALUE, namespace="default"),
        ]
        await write(client, obj("a", v="2"))
        others.append(await checksum_of(VALUE))
        await client.delete(key("a"))
        others.append(await checksum_of(VALUE))
        assert len({before, *others}) == 8


async def test_monitors_of_the_same_objects_share_one_watch(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_shared_watches(client) as watches:
        await write(client, obj("a", v="1"))
        told: list[MonitorEvent] = []
        monitors = [
            Monitor(client, watches, value_filters(), wanted, hook="h", namespace=None, emit=told.append)
            for wanted in (VALUE, replace(VALUE, jq_filter=""), replace(VALUE, resynchronization_s=60.0))
        ]
        async with open_monitors(monitors):
            for monitor in monitors:
                await monitor.wait_listed()
                monitor.unlock()
            (shared,) = watches.statistics()
            assert (shared.subscribers, shared.objects) == (3, 1)
            await write(client, obj("a", v="2"))
            await settle()
            assert [event.verb for event in told] == [MODIFIED] * 3
            await trio.sleep(200)
            (shared,) = watches.statistics()
            assert shared.lists >= 4
            assert len(told) == 3, "a list without changes causes no events"
        assert watches.statistics() == ()
