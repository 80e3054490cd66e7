"""The hooks of one started package: their monitors, the occurrences that wait for them, and the snapshots of their runs.
`open_package_hooks` starts a package's hooks: every ``kubernetes`` binding gets a monitor, and the body of the ``async with``
begins once all of them have listed their objects. At that time no event is reported yet. Each binding is first *synchronized*
(its hook is shown all objects), and then its monitor is unlocked. From then on each event of the monitor becomes an
:class:`Occurrence` in the inbox of its hook and queue, and ``on_event`` is called. A run takes the waiting occurrences, with
snapshots read at that moment. The occurrences are removed only when the run has succeeded (spec hook-protocol §2.2, §2.3,
§2.6).

Invariants:

* An inbox is bounded (:mod:`~wharfinger.hooks.running.inbox`).
* After a failed run, the same occurrences are passed on again, as far as they still matter, together with new ones.
* Occurrences of version 0 hooks are passed on one at a time.
* For one run, the snapshot of each binding is read once, even if it is part of several contexts.
* The monitors of a package share one nursery. They need at most MAX_WATCHES watches, where a selection of namespaces by label
  counts as one namespace.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.hooks.config.bindings import KubernetesBinding, ScheduleBinding
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.running.inbox import Inbox, Occurrence
from wharfinger.hooks.watching import contexts
from wharfinger.hooks.watching.context_file import Context
from wharfinger.hooks.watching.filters import Filters
from wharfinger.hooks.watching.monitor import Monitor, open_monitors
from wharfinger.hooks.watching.monitor_core import Item, MonitorEvent
from wharfinger.hooks.watching.monitor_sources import watches

MAX_WATCHES: Final = 256
"""The limit for the watches of all hooks of a package together."""


class PackageHooks:
    """The hooks of a package, made by `open_package_hooks`."""

    def __init__(
        self,
        package: str,
        hooks: tuple[Hook, ...],
        client: ClusterClient,
        shared: SharedWatches,
        filters: Filters,
        *,
        namespace: str | None,
        on_event: Callable[["PackageHooks", Inbox], None],
    ) -> None:
        """Make the monitors; `open_package_hooks` starts them."""
        self.package = package
        self.hooks = hooks
        self.inboxes: dict[tuple[str, str], Inbox] = {}
        self.synchronized: set[tuple[str, str, int]] = set()
        self._on_event = on_event
        self._monitors = {
            (hook.name, number): Monitor(
                client, shared, filters, binding, hook=hook.name, namespace=namespace, emit=self._emitter(hook, binding)
            )
            for hook in hooks
            for number, binding in enumerate(hook.config.kubernetes)
        }

    def monitors(self) -> tuple[Monitor, ...]:
        """Return all monitors, in the order of hooks and bindings."""
        return tuple(self._monitors.values())

    def inbox(self, hook: Hook, queue: str) -> Inbox:
        """Return the inbox of a hook in a queue."""
        return self.inboxes.setdefault((hook.name, queue), Inbox(hook, queue))

    def tick(self, crontab: str) -> tuple[Inbox, ...]:
        """Add a tick to every schedule binding with exactly this crontab, and return their inboxes."""
        rung: list[Inbox] = []
        for hook in self.hooks:
            for binding in hook.config.schedules:
                if binding.crontab == crontab:
                    box = self.inbox(hook, binding.queue)
                    box.add(Occurrence(binding, None))
                    rung.append(box)
        return tuple(rung)

    def crontabs(self) -> tuple[str, ...]:
        """Return every crontab that the hooks are bound to, sorted."""
        return tuple(sorted({binding.crontab for hook in self.hooks for binding in hook.config.schedules}))

    def monitor(self, hook: Hook, binding: KubernetesBinding) -> Monitor:
        """Return the monitor of a binding, found by identity, because a hook may have two equal bindings."""
        number = next(number for number, one in enumerate(hook.config.kubernetes) if one is binding)
        return self._monitors[hook.name, number]

    def settled(self, hook: Hook, binding: KubernetesBinding) -> bool:
        """Return whether the hook has got, in successful runs, all changes that the monitor of the binding has observed."""
        waits = any(box.waits_for(binding) for (name, _), box in self.inboxes.items() if name == hook.name)
        return self.monitor(hook, binding).settled and not waits

    def all_snapshots(self, hook: Hook) -> dict[str, tuple[Item, ...]]:
        """Return the snapshots of every kubernetes binding of a hook; if several bindings have the same name, the first one
        counts.
        """
        return self.snapshots(hook, (binding.name for binding in hook.config.kubernetes))

    def snapshots(self, hook: Hook, names: Iterable[str]) -> dict[str, tuple[Item, ...]]:
        """Return the current snapshots of the named bindings."""
        wanted = dict.fromkeys(names)
        found: dict[str, tuple[Item, ...]] = dict.fromkeys(wanted, ())
        for number, binding in reversed([*enumerate(hook.config.kubernetes)]):
            if binding.name in wanted:
                found[binding.name] = self._monitors[hook.name, number].snapshot()
        return found

    def contexts(self, hook: Hook, occurrences: Sequence[Occurrence]) -> tuple[Context, ...]:
        """Return the contexts of a run for these occurrences."""
        read = self._included(hook, [occurrence.binding for occurrence in occurrences])
        return contexts.combined([_context(occurrence, read) for occurrence in occurrences])

    def synchronization(self, hook: Hook, *bindings: KubernetesBinding) -> tuple[Context, ...]:
        """Return the contexts of the first run for these bindings.

        The bindings must be those of one run, as `contexts.synchronized_together` groups them.
        """
        objects = [self.monitor(hook, binding).synchronize() for binding in bindings]
        read = self._included(hook, bindings)
        return contexts.combined(
            [contexts.synchronization(binding, items, read) for binding, items in zip(bindings, objects, strict=True)]
        )

    def _included(
        self, hook: Hook, bindings: Iterable[KubernetesBinding | ScheduleBinding]
    ) -> dict[str, tuple[Item, ...]]:
        """Return the snapshots that any of these bindings includes."""
        return self.snapshots(hook, sorted({name for one in bindings for name in one.include_snapshots_from}))

    def _emitter(self, hook: Hook, binding: KubernetesBinding) -> Callable[[MonitorEvent], None]:
        def emit(event: MonitorEvent) -> None:
            box = self.inbox(hook, binding.queue)
            box.add(Occurrence(binding, event))
            self._on_event(self, box)

        return emit


def _context(occurrence: Occurrence, snapshots: Mapping[str, tuple[Item, ...]]) -> Context:
    binding = occurrence.binding
    if isinstance(binding, ScheduleBinding):
        return contexts.schedule(binding, snapshots)
    if occurrence.event is None:
        raise AssertionError(f"binding {binding.name}: an occurrence of a kubernetes binding has no event")
    return contexts.event(binding, occurrence.event, snapshots)


@asynccontextmanager
async def open_package_hooks(
    package: str,
    hooks: tuple[Hook, ...],
    client: ClusterClient,
    shared: SharedWatches,
    filters: Filters,
    *,
    namespace: str | None,
    on_event: Callable[[PackageHooks, Inbox], None],
) -> AsyncIterator[PackageHooks]:
    """Run the monitors of the hooks' bindings while the body runs. The body begins once all objects are listed.

    ``namespace`` is the only namespace that an Application's hooks see. ``on_event`` is called with an inbox that has a new
    occurrence; it must not block. Raises HookError if the objects of a binding cannot be listed, or if the package needs too
    many watches.
    """
    wanted = sum(watches(binding, namespace) for hook in hooks for binding in hook.config.kubernetes)
    if wanted > MAX_WATCHES:
        raise HookError(
            "hooks",
            f"the hooks of {package} need {wanted} watches, one for each kubernetes binding, namespace and name, but "
            f"a package may have only {MAX_WATCHES}; select with labels instead of names, or split the package",
        )
    opened = PackageHooks(package, hooks, client, shared, filters.of(package), namespace=namespace, on_event=on_event)
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
        raise failure  # raised here, because a nursery would wrap it into a group
