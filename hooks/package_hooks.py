"""The hooks of one started package: what they watch, what waits to be told to them, and what they see when they run.

The story. A package's hooks begin with `open_package_hooks`: every ``kubernetes`` binding gets a monitor, and the body begins
once all of them have listed. Nothing is told yet: each binding is first *synchronised* (its hook is shown everything there is)
and then unlocked. From then on an event becomes an :class:`Occurrence` in the inbox of its hook and queue, and whoever opened
the hooks is told that there is something to do; a run takes what has gathered, with snapshots read at that moment, and what it
took is forgotten only when the run succeeded (spec hook-protocol §2.2, §2.3, §2.6).

Invariants: an inbox holds at most MAX_WAITING occurrences, of which the oldest give way, counted and logged; a run that failed
sees the same occurrences again, and those that came meanwhile; occurrences of version 0 hooks are told one at a time.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from wharfinger.cluster.client import ClusterClient
from wharfinger.formats.json_value import JsonObject
from wharfinger.hooks import contexts
from wharfinger.hooks.config import KubernetesBinding, ScheduleBinding
from wharfinger.hooks.discovery import Hook
from wharfinger.hooks.filters import Filters
from wharfinger.hooks.monitor import Monitor, MonitorEvent, open_monitor

log = logging.getLogger(__name__)

MAX_WAITING: Final = 10_000


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

    def __init__(self, package: str, hooks: tuple[Hook, ...]) -> None:
        self.package = package
        self.hooks = hooks
        self.inboxes: dict[tuple[str, str], Inbox] = {}
        self.synchronized: set[tuple[str, str, int]] = set()
        self._monitors: dict[tuple[str, int], Monitor] = {}

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
        """The monitor of a binding."""
        return self._monitors[hook.name, hook.config.kubernetes.index(binding)]

    def all_snapshots(self, hook: Hook) -> dict[str, tuple[JsonObject, ...]]:
        """Snapshots of every kubernetes binding of a hook; of bindings with one name, the first."""
        return self.snapshots(hook, (binding.name for binding in hook.config.kubernetes))

    def snapshots(self, hook: Hook, names: Iterable[str]) -> dict[str, tuple[JsonObject, ...]]:
        """Snapshots of the named bindings as they are now."""
        wanted = dict.fromkeys(names)
        found: dict[str, tuple[JsonObject, ...]] = dict.fromkeys(wanted, ())
        for binding in reversed(hook.config.kubernetes):
            if binding.name in wanted:
                found[binding.name] = self.monitor(hook, binding).snapshot()
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
        return contexts.synchronization(binding, self.monitor(hook, binding).snapshot(), snapshots)


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
    block. Raises HookError or ClusterError where a binding cannot be followed.
    """
    opened = PackageHooks(package, hooks)

    def emitter(hook: Hook, binding: KubernetesBinding) -> Callable[[MonitorEvent], None]:
        def emit(event: MonitorEvent) -> None:
            box = opened.inbox(hook, binding.queue)
            box.add(Occurrence(binding, event))
            on_event(opened, box)

        return emit

    async with AsyncExitStack() as stack:
        for hook in hooks:
            for number, binding in enumerate(hook.config.kubernetes):
                opened._monitors[hook.name, number] = await stack.enter_async_context(  # noqa: SLF001 - its own maker
                    open_monitor(
                        client, filters, binding, hook=hook.name, namespace=namespace, emit=emitter(hook, binding)
                    )
                )
        for monitor in opened._monitors.values():  # noqa: SLF001
            await monitor.wait_listed()
        yield opened
