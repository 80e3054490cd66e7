"""The hooks of all started packages. One task for each package runs its monitors, from `start` to `stop`. A monitor follows the
objects of one kubernetes binding (:mod:`wharfinger.hooks.watching.monitor`).

Starting a package waits for the first list of each watch that its bindings need, and fails if one of these lists fails. If a
start is cancelled, no monitor of the package keeps running. Stopping waits until everything that belongs to the package has
ended. All packages share the schedules, which have one clock, and the watches: packages that watch the same objects share one
watch.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import partial
from typing import TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.object_stream import SharedWatchStatistics
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks, open_package_hooks
from wharfinger.hooks.watching.filters import Filters
from wharfinger.hooks.watching.schedules import Schedules, ScheduleStatistics, open_schedules

log = logging.getLogger(__name__)

OnEvent: TypeAlias = Callable[[PackageHooks, Inbox], None]
"""A callback that gets the inbox of a hook after an occurrence (an event or a tick) was added to it."""
OnTick: TypeAlias = Callable[[str], None]
"""A callback that gets a crontab each time it is due."""


@dataclass(slots=True)
class _Service:
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    decided: trio.Event = field(default_factory=trio.Event)
    ended: trio.Event = field(default_factory=trio.Event)
    hooks: PackageHooks | None = None
    error: Exception | None = None


class HookServices:
    """The hooks of all started packages; `open_hook_services` makes the only instance."""

    def __init__(
        self,
        client: ClusterClient,
        watches: SharedWatches,
        filters: Filters,
        nursery: trio.Nursery,
        schedules: Schedules,
    ) -> None:
        """Initialize the services; only `open_hook_services` calls this, because it owns the nursery."""
        self._client = client
        self._watches = watches
        self._filters = filters
        self._nursery = nursery
        self._schedules = schedules
        self._on_event: OnEvent | None = None
        self._on_tick: OnTick | None = None
        self._services: dict[str, _Service] = {}
        self._closing = False
        self._scheduled: set[str] = set()

    def listen(self, on_event: OnEvent, on_tick: OnTick) -> None:
        """Set the callbacks for events of all hooks, and for schedules that are due.

        Call this before the first start. The callbacks must not block.
        """
        self._on_event, self._on_tick = on_event, on_tick

    async def start(self, package: str, hooks: tuple[Hook, ...], *, namespace: str | None) -> PackageHooks:
        """Start the monitors of a package's bindings; return once they have listed their objects. Raises HookError or
        ClusterError; in that case, no monitor of the package runs.
        """
        if self._on_event is None:
            raise AssertionError(f"the hooks of {package} were started before `listen` was called")
        await self.stop(package)
        if self._closing:
            raise HookError("hooks", f"the hooks of {package} are not started: the daemon is stopping", transient=True)
        service = self._services[package] = _Service()
        serve = partial(self._serve, package, hooks, namespace, service, self._on_event)
        self._nursery.start_soon(serve, name=f"hooks of {package}")
        try:
            await service.decided.wait()
        except trio.Cancelled:
            service.scope.cancel(reason="the start was cancelled")
            raise
        if service.error is not None:
            raise service.error
        if service.hooks is None:
            raise HookError("hooks", f"the hooks of {package} were stopped before they had started", transient=True)
        return service.hooks

    def start_schedules(self, hooks: PackageHooks) -> None:
        """Start the schedules of a package."""
        self._scheduled.add(hooks.package)
        for crontab in hooks.crontabs():
            self._schedules.add(hooks.package, crontab)

    async def stop(self, package: str) -> None:
        """Stop the schedules and the watches of a package's hooks, and wait until the watches have ended. Do nothing for an
        unknown package.
        """
        self._schedules.remove(package)
        self._scheduled.discard(package)
        service = self._services.get(package)
        if service is not None:
            service.scope.cancel(reason="the package's hooks are stopped")
            await service.ended.wait()

    def close(self) -> None:
        """Refuse to start the hooks of further packages. `open_hook_services` calls this at its end."""
        self._closing = True

    def with_schedules(self) -> tuple[PackageHooks, ...]:
        """Return the hooks of the packages whose schedules were started, sorted by the package's name."""
        found = (self._services[name].hooks for name in sorted(self._scheduled & self._services.keys()))
        return tuple(hooks for hooks in found if hooks is not None)

    def tick(self, crontab: str) -> None:
        """Report the tick of a crontab to the callback that `listen` has set."""
        if self._on_tick is not None:
            self._on_tick(crontab)

    def started(self) -> frozenset[str]:
        """Return the packages whose hooks are started, or are starting."""
        return frozenset(self._services)

    def watches(self) -> tuple[SharedWatchStatistics, ...]:
        """Return the statistics of the watches of all packages."""
        return self._watches.statistics()

    def schedules(self) -> ScheduleStatistics:
        """Return the statistics of the schedules of all packages."""
        return self._schedules.statistics()

    async def _serve(
        self, package: str, hooks: tuple[Hook, ...], namespace: str | None, service: _Service, on_event: OnEvent
    ) -> None:
        try:
            with service.scope:
                async with open_package_hooks(
                    package,
                    hooks,
                    self._client,
                    self._watches,
                    self._filters,
                    namespace=namespace,
                    on_event=on_event,
                ) as opened:
                    service.hooks = opened
                    service.decided.set()
                    await trio.sleep_forever()
        except* Exception as group:
            error = _single(group)
            if service.decided.is_set():
                raise
            service.error = error
        finally:
            if self._services.get(package) is service:
                del self._services[package]
            service.decided.set()
            service.ended.set()


@asynccontextmanager
async def open_hook_services(
    client: ClusterClient,
    watches: SharedWatches,
    filters: Filters,
    now: Callable[[], datetime],
    zone: tzinfo,
) -> AsyncIterator[HookServices]:
    """Yield hook services while the body runs, and stop them all at its end. Call `HookServices.listen` before
    `HookServices.start`.

    ``watches`` are shared with the rest of the daemon, and outlast these services.
    """

    def tick(crontab: str) -> None:
        services.tick(crontab)  # a schedule is due only after a package was started

    async with open_schedules(tick, now, zone) as schedules, trio.open_nursery() as nursery:
        services = HookServices(client, watches, filters, nursery, schedules)
        yield services
        services.close()
        nursery.cancel_scope.cancel()


def _single(group: ExceptionGroup[Exception]) -> Exception:
    """Return the only exception of a group; return a group of several exceptions unchanged."""
    error: Exception = group
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
