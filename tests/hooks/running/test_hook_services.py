"""The start and the stop of the hooks of packages. A start that fails or is cancelled leaves nothing behind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.cluster.support.clusters import memory_cluster
from tests.hooks.support.hooked import WATCHING, hook
from tests.hooks.support.python_filters import PythonFilters
from tests.hooks.support.watching import obj, settle, value_filters, write
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.hook_services import HookServices, open_hook_services
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
WATCHES = hook(WATCHING)
FILTERED = hook(WATCHING.replace("queue: q", "queue: q, jqFilter: value"))
RINGS = hook("{configVersion: v1, schedule: [{name: often, crontab: '* * * * *'}]}", "hooks/b.sh")
UNKNOWN = hook("{configVersion: v1, kubernetes: [{kind: Unheard}]}", "hooks/c.sh")


@dataclass
class Told:
    """The services for hooks, and the recorded calls of the callbacks ``on_event`` and ``on_tick``."""

    services: HookServices
    client: HttpClusterClient
    filters: PythonFilters
    events: list[str] = field(default_factory=list)
    ticks: list[str] = field(default_factory=list)

    async def unlocked(self, package: str) -> PackageHooks:
        """Start two hooks for a package, and unlock the monitor of the hook that watches objects."""
        opened = await self.services.start(package, (WATCHES, RINGS), namespace="default")
        opened.monitor(WATCHES, WATCHES.config.kubernetes[0]).unlock()
        return opened


@asynccontextmanager
async def open_services() -> AsyncIterator[Told]:
    events: list[str] = []
    ticks: list[str] = []
    began = trio.current_time()

    def now() -> datetime:
        return EPOCH + timedelta(seconds=trio.current_time() - began)

    def on_event(opened: PackageHooks, box: Inbox) -> None:
        events.append(f"{opened.package} {box.hook.name} {box.queue}")

    filters = value_filters()
    async with (
        memory_cluster() as client,
        open_shared_watches(client) as watches,
        open_hook_services(client, watches, filters, now, UTC) as services,
    ):
        services.listen(on_event, ticks.append)
        yield Told(services, client, filters, events, ticks)


async def test_started_package_receives_events_and_ticks_until_it_is_stopped(autojump_clock: MockClock) -> None:
    async with open_services() as told:
        opened = await told.unlocked("p")
        assert told.services.started() == {"p"}
        assert told.services.with_schedules() == ()
        await write(told.client, obj("a"))
        await settle()
        assert told.events == ["p hooks/a.sh q"]
        await trio.sleep(61)
        assert told.ticks == []
        told.services.start_schedules(opened)
        assert told.services.with_schedules() == (opened,)
        await trio.sleep(61)
        assert told.ticks == ["* * * * *"]
        clock = told.services.schedules()
        assert (clock.crontabs, clock.ticks) == (1, 1)
        await told.services.stop("p")
        assert told.services.started() == frozenset()
        assert told.services.with_schedules() == ()
        await write(told.client, obj("b"))
        await trio.sleep(61)
        assert told.events == ["p hooks/a.sh q"]
        assert told.ticks == ["* * * * *"]
        await told.services.stop("p")
        await told.services.stop("never heard of")


async def test_second_start_replaces_the_first(autojump_clock: MockClock) -> None:
    async with open_services() as told:
        first = await told.unlocked("p")
        second = await told.unlocked("p")
        assert first is not second
        await write(told.client, obj("a"))
        await settle()
        assert told.events == ["p hooks/a.sh q"]


async def test_stopping_one_package_does_not_affect_another(autojump_clock: MockClock) -> None:
    async with open_services() as told:
        await told.unlocked("p")
        await told.unlocked("r")
        await told.services.stop("p")
        await write(told.client, obj("a"))
        await settle()
        assert told.events == ["r hooks/a.sh q"]


async def test_packages_with_equal_bindings_share_the_watch(autojump_clock: MockClock) -> None:
    async with open_services() as told:
        await told.unlocked("p")
        await told.unlocked("r")
        (shared,) = told.services.watches()
        assert shared.subscribers == 2
        await told.services.stop("p")
        (shared,) = told.services.watches()
        assert shared.subscribers == 1
        await told.services.stop("r")
        assert told.services.watches() == ()


async def test_failed_start_reports_its_reason_and_leaves_nothing_started(autojump_clock: MockClock) -> None:
    async with open_services() as told:
        with pytest.raises(HookError, match="Unheard") as caught:
            await told.services.start("p", (WATCHES, UNKNOWN), namespace=None)
        assert caught.value.transient
        assert told.services.started() == frozenset()
        await told.unlocked("p")


async def test_cancelled_start_leaves_nothing_started(autojump_clock: MockClock) -> None:
    async with open_services() as told:
        await write(told.client, obj("a", v="1"))
        told.filters.gate = trio.Event()
        with trio.move_on_after(5) as patience:
            await told.services.start("p", (FILTERED,), namespace="default")
        assert patience.cancelled_caught
        await settle()
        assert told.services.started() == frozenset()
        told.filters.gate = None
        opened = await told.services.start("p", (FILTERED,), namespace="default")
        assert len(opened.all_snapshots(FILTERED)["maps"]) == 1


async def test_stopped_start_is_a_transient_failure(autojump_clock: MockClock) -> None:
    async with open_services() as told:
        await write(told.client, obj("a", v="1"))
        told.filters.gate = trio.Event()
        failures: list[HookError] = []

        async def start() -> None:
            with pytest.raises(HookError, match="stopped before they had started") as caught:
                await told.services.start("p", (FILTERED,), namespace="default")
            failures.append(caught.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(start)
            await trio.testing.wait_all_tasks_blocked()
            assert told.services.started() == {"p"}
            await told.services.stop("p")
        assert [failure.transient for failure in failures] == [True]
        assert told.services.started() == frozenset()


async def test_start_after_close_is_refused(autojump_clock: MockClock) -> None:
    async with open_services() as told:
        await told.unlocked("p")
        told.services.close()
        with pytest.raises(HookError, match="the daemon is stopping") as caught:
            await told.services.start("r", (WATCHES,), namespace=None)
        assert caught.value.transient
        assert told.services.started() == {"p"}


async def test_start_before_listen_is_a_defect() -> None:
    async with (
        memory_cluster() as client,
        open_shared_watches(client) as watches,
        open_hook_services(client, watches, value_filters(), lambda: EPOCH, UTC) as services,
    ):
        services.tick("* * * * *")  # no hook is bound to this crontab
        with pytest.raises(AssertionError, match="the hooks of p were started before `listen` was called"):
            await services.start("p", (WATCHES,), namespace="default")
        assert not services.started()


async def test_exception_of_a_callback_is_raised(autojump_clock: MockClock) -> None:
    def broken(_opened: PackageHooks, _box: Inbox) -> None:
        raise KeyError("a defect")

    async def ends() -> None:
        async with (
            memory_cluster() as client,
            open_shared_watches(client) as watches,
            open_hook_services(client, watches, value_filters(), lambda: EPOCH, UTC) as services,
        ):
            services.listen(broken, lambda _crontab: None)
            opened = await services.start("p", (WATCHES,), namespace="default")
            opened.monitor(WATCHES, WATCHES.config.kubernetes[0]).unlock()
            await write(client, obj("a"))
            await trio.sleep(60)

    with pytest.RaisesGroup(pytest.RaisesExc(KeyError, match="a defect"), flatten_subgroups=True):
        await ends()
