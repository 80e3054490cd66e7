"""The hooks of one started package: what they watch, what waits to be told to them, and what they see when they run.

The story. A package's hooks begin with `open_package_hooks`: every ``kubernetes`` binding gets a monitor, and the body begins
once all of them have listed. Nothing is told yet: each binding is first *synchronised* (its hook is shown everything there is)
and then unlocked. From then on an event becomes an :class:`Occurrence` in the inbox of its hook and queue, and whoever opened
the hooks is told that there is something to do; a run takes what has gathered, with snapshots read at that moment, and what it
took is forgotten only when the run succeeded (spec hook-protocol §2.2, §2.3, §2.6).

Invariants: an inbox holds at most MAX_WAITING occurrences, of which the oldest give way, counted and logged; a run that failed
sees the same occurrences again, and those that came meanwhile; occurrences of version 0 hooks are told one at a time; the
monitors of a package share one nursery, and need at most MAX_WATCHES watches from the start.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from wharfinger.cluster.client import ClusterClient
from wharfinger.formats.json_value import JsonObject
from wharfinger.hooks import contexts
from wharfinger.hooks.config import KubernetesBinding, ScheduleBinding
from wharfinger.hooks.discovery import Hook
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.filters import Filters
from wharfinger.hooks.monitor import Monitor, MonitorEvent, open_monitors
from wharfinger.hooks.monitor_sources import watches

log = logging.getLogger(__name__)

MAX_WAITING: Final = 10_000
MAX_WATCHES: Final = 256
"""Of all hooks of a package together."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something to tell a hook: an event of a kubernetes binding, or (None) a tick of a schedule."""

    binding: KubernetesBinding | ScheduleBinding
    event: MonitorEvent | None


@dataclass(slots=True)
class Inbox:
    """What waits for one hook in one queue."""

    hook: Hook
    queue: str
    waiting: deque[Occurrence] = field(default_factory=deque)
    lost: int = 0

    def add(self, occurrence: Occurrence) -> None:
        """Something more to tell; the oldest gives way where there is too much."""
        if len(self.waiting) >= MAX_WAITING:
            self.waiting.popleft()
            self.lost += 1
            if self.lost == 1:
                log.warning("%s: more than %d events wait in queue %s; the oldest are dropped, snapshots stay complete",
                            self.hook.name, MAX_WAITING, self.queue)  # fmt: skip
        self.waiting.append(occurrence)

    def offered(self) -> tuple[Occurrence, ...]:
        """What the next run is told: everything, or for a version 0 hook the first."""
        return tuple(self.waiting) if self.hook.config.version != "v0" else tuple(self.waiting)[:1]

    def told(self, occurrences: Sequence[Occurrence]) -> None:
        """The hook has dealt with these; what gave way meanwhile is gone already."""
        for occurrence in occurrences:
            if self.waiting and self.waiting[0] is occurrence:
                self.waiting.popleft()


class PackageHooks:
    """Made by `open_package_hooks`."""

    def __init__(
        self,
        package: str,
        hooks: tuple[Hook, ...],
        client: ClusterClient,
        filters: Filters,
        *,
        namespace: str | None,
        on_event: Callable[["PackageHooks", Inbox], None],
    ) -> None:
        """Parameters as for `open_package_hooks`, which follows the monitors."""
        self.package = package
        self.hooks = hooks
        self.inboxes: dict[tuple[str, str], Inbox] = {}
        self.synchronized: set[tuple[str, str, int]] = set()
        self._on_event = on_event
        self._monitors = {
            (hook.name, number): Monitor(
                client, filters, binding, hook=hook.name, namespace=namespace, emit=self._emitter(hook, binding)
            )
            for hook in hooks
            for number, binding in enumerate(hook.config.kubernetes)
        }

    def monitors(self) -> tuple[Monitor, ...]:
        """All of them, in the order of hooks and bindings."""
        return tuple(self._monitors.values())

    def inbox(self, hook: Hook, queue: str) -> Inbox:
        """The inbox of a hook in a queue."""
        return self.inboxes.setdefault((hook.name, queue), Inbox(hook, queue))

    def tick(self, crontab: str) -> tuple[Inbox, ...]:
        """A time has come: tell every schedule binding of exactly that crontab; the inboxes that have something now."""
        rung: list[Inbox] = []
        for hook in self.hooks:
            for binding in hook.config.schedules:
                if binding.crontab == crontab:
                    box = self.inbox(hook, binding.queue)
                    box.add(Occurrence(binding, None))
                    rung.append(box)
        return tuple(rung)

    def crontabs(self) -> tuple[str, ...]:
        """Every crontab its hooks are bound to, sorted."""
        return tuple(sorted({binding.crontab for hook in self.hooks for binding in hook.config.schedules}))

    def monitor(self, hook: Hook, binding: KubernetesBinding) -> Monitor:
        """The monitor of a binding: of this very one, since a hook may have two that are equal."""
        number = next(number for number, one in enumerate(hook.config.kubernetes) if one is binding)
        return self._monitors[hook.name, number]

    def all_snapshots(self, hook: Hook) -> dict[str, tuple[JsonObject, ...]]:
        """Snapshots of every kubernetes binding of a hook; of bindings with one name, the first."""
        return self.snapshots(hook, (binding.name for binding in hook.config.kubernetes))

    def snapshots(self, hook: Hook, names: Iterable[str]) -> dict[str, tuple[JsonObject, ...]]:
        """Snapshots of the named bindings as they are now."""
        wanted = dict.fromkeys(names)
        found: dict[str, tuple[JsonObject, ...]] = dict.fromkeys(wanted, ())
        for number, binding in reversed([*enumerate(hook.config.kubernetes)]):
            if binding.name in wanted:
                found[binding.name] = self._monitors[hook.name, number].snapshot()
        return found

    def contexts(self, hook: Hook, occurrences: Sequence[Occurrence]) -> tuple[JsonObject, ...]:
        """What a run is told about these occurrences; each binding is read once, so that one run sees one state."""
        names = {name for occurrence in occurrences for name in occurrence.binding.include_snapshots_from}
        read = self.snapshots(hook, sorted(names))
        return contexts.combined(
            [
                _context(occurrence, _picked(read, occurrence.binding.include_snapshots_from))
                for occurrence in occurrences
            ]
        )

    def synchronization(self, hook: Hook, binding: KubernetesBinding) -> JsonObject:
        """What the first run for a binding is told."""
        snapshots = self.snapshots(hook, binding.include_snapshots_from)
        return contexts.synchronization(binding, self.monitor(hook, binding).synchronize(), snapshots)

    def _emitter(self, hook: Hook, binding: KubernetesBinding) -> Callable[[MonitorEvent], None]:
        def emit(event: MonitorEvent) -> None:
            box = self.inbox(hook, binding.queue)
            box.add(Occurrence(binding, event))
            self._on_event(self, box)

        return emit


def _context(occurrence: Occurrence, snapshots: Mapping[str, tuple[JsonObject, ...]]) -> JsonObject:
    binding = occurrence.binding
    if isinstance(binding, ScheduleBinding):
        return contexts.schedule(binding, snapshots)
    if occurrence.event is None:
        raise AssertionError(f"binding {binding.name}: an occurrence of a kubernetes binding without its event")
    return contexts.event(binding, occurrence.event.verb, occurrence.event.item, snapshots)


def _picked(read: Mapping[str, tuple[JsonObject, ...]], names: Sequence[str]) -> Mapping[str, tuple[JsonObject, ...]]:
    return {name: read[name] for name in names}


@asynccontextmanager
async def open_package_hooks(
    package: str,
    hooks: tuple[Hook, ...],
    client: ClusterClient,
    filters: Filters,
    *,
    namespace: str | None,
    on_event: Callable[[PackageHooks, Inbox], None],
) -> AsyncIterator[PackageHooks]:
    """Follow what the hooks watch while the body runs; it begins once everything is listed.

    ``namespace``: an Application's hooks see only its own. ``on_event`` is told of an inbox with something new; it must not
    block. Raises HookError where a binding cannot be followed, or the package wants too many watches.
    """
    wanted = sum(watches(binding, namespace) for hook in hooks for binding in hook.config.kubernetes)
    if wanted > MAX_WATCHES:
        raise HookError(
            "hooks",
            f"those of {package} need {wanted} watches, one for each kubernetes binding, namespace and name, and a package may "
            f"have {MAX_WATCHES}; select with labels instead of names, or split the package",
        )
    opened = PackageHooks(package, hooks, client, filters.of(package), namespace=namespace, on_event=on_event)
    failure: HookError | None = None
    async with open_monitors(opened.monitors()):
        try:
            for monitor in opened.monitors():
                await monitor.wait_listed()
        except HookError as error:
            failure = error
        else:
            yield opened
    if failure is not None:
        raise failure  # here, where no nursery wraps it into a group
