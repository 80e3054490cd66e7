"""The monitor of one ``kubernetes`` binding of a hook (spec hook-protocol §2.2, §4). A monitor keeps a current copy of the
objects that the binding selects. It finds their kind, lists them, applies the filter to all of them, and from then on follows
their changes. Its *table* has the part of each object that the hook may see; `Monitor.snapshot` is the table in the contract's
form and order. :mod:`~wharfinger.hooks.watching.monitor_core` decides which events a change causes, for one object at a time.

A monitor begins *locked*. First the hook is shown all objects (`Monitor.synchronize`, for a run that may fail and be repeated).
After that run has succeeded, `Monitor.unlock` begins to emit events, first those that were gathered meanwhile. Events that a
Synchronization covers are not reported again; reading a snapshot for any other run changes nothing.

Objects are watched, kept and passed on as text; this process never parses an object. A watch is shared by all monitors that
need it (:mod:`~wharfinger.cluster.watch.shared_watches`); the table is the monitor's own.

Invariants:

* Changes wait in the monitor's own *inbox*. One task takes them from there and filters them, one after the other, so the events
  of a monitor come in the order of its watch. When the first list is filtered, several objects are filtered at the same time.
* Table, lock and gathered events change in plain functions, without an await. So no event is reported twice or lost when the
  monitor is unlocked.
* The number of waiting changes is bounded (:mod:`~wharfinger.hooks.watching.monitor_backlog`), both in the inbox and among the
  events that are gathered while the monitor is locked. Beyond a limit, only the changes that still matter are kept for each
  object. If many changes wait, the objects in them are compressed.
* If the filter fails on the first list, the binding fails. If it fails later, the change is dropped, counted and logged, and the
  object is kept in the table as it was; a deletion is reported with the last state that passed the filter.
"""

import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.raw_object import RawChange
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.formats.json.value import JsonValue, ShapeError, canonical_json
from wharfinger.hooks.config.bindings import KubernetesBinding, WatchVerb
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.watching.filters import FilterError, Filters
from wharfinger.hooks.watching.monitor_backlog import Backlog, Change
from wharfinger.hooks.watching.monitor_core import (
    Entry,
    Gone,
    Item,
    MonitorEvent,
    Observation,
    Seen,
    Sighting,
    entry_of,
    place,
    sighting_of,
    step,
)
from wharfinger.hooks.watching.monitor_sources import Sources, TooManyWatchesError, open_sources, selection
from wharfinger.kube.resource import ObjectKey, ResourceType

log = logging.getLogger(__name__)

LIST_FILTERS: Final = 8
"""The number of objects of the first list that are filtered at the same time."""

PLAIN: Final = 64
"""The number of changes that can wait for the jq filter before memory is saved: while more changes wait, the objects of new
changes are compressed."""

_VERBS: Final = {
    WatchType.ADDED: WatchVerb.ADDED,
    WatchType.MODIFIED: WatchVerb.MODIFIED,
    WatchType.DELETED: WatchVerb.DELETED,
}


@dataclass(frozen=True, slots=True)
class MonitorStatistics:
    """The state of a monitor. Counters are since its start; ``last_error`` describes the last change that was dropped."""

    listed: bool
    locked: bool
    objects: int
    watches: int
    inbox: int
    gathered: int
    reduced: int
    added: int
    modified: int
    deleted: int
    cleaned: int
    """The number of times that the last remaining object of the table was deleted."""
    dropped: int
    last_error: str


class Monitor:
    """The monitor of one binding of ``hook``. :func:`open_monitors` runs it.

    ``namespace`` is the only namespace that an Application's hook sees; None for a Module's hook. ``emit`` is called with
    each event, and must not block.
    """

    def __init__(
        self,
        client: ClusterClient,
        watches: SharedWatches,
        filters: Filters,
        binding: KubernetesBinding,
        *,
        hook: str,
        namespace: str | None,
        emit: Callable[[MonitorEvent], None],
    ) -> None:
        self.binding = binding
        self.hook = hook
        self._client = client
        self._watches = watches
        self._filters = filters
        self._namespace = namespace
        self._emit = emit
        self._table: dict[ObjectKey, Entry] = {}
        self._snapshot: tuple[Item, ...] | None = None
        self._inbox: Backlog[Sighting | None] = Backlog()
        self._wake = trio.Event()
        self._locked = True
        self._taking = False
        self._gathered: Backlog[Item] = Backlog(verbs=binding.verbs)
        self._decided = trio.Event()
        self._failure: HookError | None = None
        self._sources: Sources | None = None
        self._counts = dict.fromkeys(WatchVerb, 0)
        self._cleaned = self._dropped = 0
        self._last_error = ""

    # -- public state

    async def wait_listed(self) -> None:
        """Wait until the snapshot is complete. Raises HookError if that fails; in that case, open another monitor.

        The error is permanent if the binding itself is wrong: its filter is no valid program, it needs too many watches, or the
        API server or the isolation of Applications refuses it. All other errors are transient: a kind that is not served may be
        served later, and an object on which the filter fails may change.
        """
        await self._decided.wait()
        if self._failure is not None:
            raise self._failure

    def snapshot(self) -> tuple[Item, ...]:
        """Return the items of all objects, sorted."""
        if self._snapshot is None:
            order = sorted(self._table, key=lambda key: place(self.binding, key))
            self._snapshot = tuple(self._table[key].item for key in order)
        return self._snapshot

    def synchronize(self) -> tuple[Item, ...]:
        """Return the snapshot for the Synchronization of this binding. While the monitor is locked, also drop the events that
        it has gathered, because the snapshot covers them.
        """
        if self._locked:
            self._gathered.take_all()
        return self.snapshot()

    def unlock(self) -> None:
        """Emit the gathered events; from now on events are emitted as they come. Unlocking again changes nothing."""
        self._locked = False
        for change in self._gathered.take_all():
            self._emit(MonitorEvent(change.verb, change.key, change.payload))

    @property
    def settled(self) -> bool:
        """True if every change seen so far was emitted: the monitor has listed, is unlocked, and no change waits for the
        filter.
        """
        listed = self._decided.is_set() and self._failure is None
        return listed and not self._locked and not self._taking and not len(self._inbox)

    def checksum(self) -> str:
        """Return a checksum (``sha256:…``) of the objects that the hook would get in a Synchronization. It covers the binding
        and, for each object, the content whose change is an event. The checksum is the same in every process.
        """
        total = hashlib.sha256(canonical_json(_shown(self.binding, self._namespace)))
        for key in sorted(self._table, key=lambda key: (key.namespace, key.name)):
            total.update(f"\n{key.namespace}/{key.name} ".encode() + self._table[key].checksum)
        return "sha256:" + total.hexdigest()

    def statistics(self) -> MonitorStatistics:
        """Return the current state and the counters."""
        return MonitorStatistics(
            listed=self._decided.is_set() and self._failure is None,
            locked=self._locked,
            objects=len(self._table),
            watches=len(self._sources or ()),
            inbox=len(self._inbox),
            gathered=len(self._gathered),
            reduced=self._inbox.reduced + self._gathered.reduced,
            added=self._counts[WatchVerb.ADDED],
            modified=self._counts[WatchVerb.MODIFIED],
            deleted=self._counts[WatchVerb.DELETED],
            cleaned=self._cleaned,
            dropped=self._dropped,
            last_error=self._last_error,
        )

    # -- the task

    async def run(self) -> None:
        """Keep the table up to date until cancelled; return if the objects cannot be listed."""
        try:
            resource = await self._find_kind()
        except (ClusterError, FilterError, HookError) as error:
            self._fail(error)
            return
        wanted = selection(self.binding, self._namespace)
        async with open_sources(self._client, self._watches, resource, wanted, self._arrived) as sources:
            self._sources = sources
            try:
                await sources.wait_listed()
                await self._take_list()
            except (ClusterError, ShapeError, HookError) as error:
                self._fail(error)
                return
            except TooManyWatchesError as error:
                self._fail(self._error(str(error), transient=False))
                return
            self._decided.set()
            while True:
                while len(self._inbox):
                    self._taking = True
                    await self._take(self._inbox.take())
                    self._taking = False
                    await trio.lowlevel.checkpoint()
                self._wake = trio.Event()
                await self._wake.wait()

    async def _find_kind(self) -> ResourceType:
        """Return the kind, and check that the binding can select objects of this kind and that its filter is a valid program.
        Raises ClusterError, FilterError, HookError.
        """
        resource = await self._client.find_resource(self.binding.kind, self.binding.api_version)
        if self._namespace is not None and not resource.namespaced:
            raise self._error(
                f"{resource.group_kind} is cluster-scoped, and an Application's hooks see only their own namespace "
                f"({self._namespace}); only a Module may watch it",
                transient=False,
            )
        if not resource.namespaced and (selector := _namespace_selector(self.binding)):
            raise self._error(
                f"{resource.group_kind} is cluster-scoped, so {selector} cannot select any such object; leave it out, and "
                "select by labelSelector or nameSelector of the binding",
                transient=False,
            )
        if self.binding.jq_filter:
            await self._filters.check(self.binding.jq_filter)
        return resource

    def _fail(self, error: ClusterError | FilterError | ShapeError | HookError) -> None:
        if not isinstance(error, HookError):
            failure = self._error(str(error), transient=isinstance(error, ShapeError) or error.transient)
            failure.__cause__ = error
            error = failure
        self._failure = error
        self._decided.set()

    def _error(self, why: str, *, transient: bool) -> HookError:
        return HookError(self.hook, f"binding {self.binding.name}: {why}", transient=transient)

    # -- changes

    def _arrived(self, change: RawChange) -> None:
        seen = None if change.object is None else sighting_of(change.object)
        if seen is not None and len(self._inbox) >= PLAIN:
            seen = seen.small()
        self._inbox.add(Change(_VERBS[change.type], change.key, seen))
        self._wake.set()

    async def _take_list(self) -> None:
        """Put all listed objects into the table, in the state after the changes that came meanwhile, and emit no events. Raises
        HookError if the filter fails.
        """
        latest: dict[ObjectKey, Sighting] = {}
        for change in self._inbox.take_all():
            if change.payload is None or change.verb is WatchVerb.DELETED:
                latest.pop(change.key, None)
            else:
                latest[change.key] = change.payload
        work = iter(latest.items())
        table: dict[ObjectKey, Entry] = {}
        failures: list[HookError] = []

        async def fill(scope: trio.CancelScope) -> None:
            for key, seen in work:
                try:
                    table[key] = await self._entry(seen)
                except FilterError as error:
                    failures.append(self._error(f"its filter fails on {key}: {error}", transient=True))
                    scope.cancel()
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            for _ in range(LIST_FILTERS if self.binding.jq_filter else 1):
                nursery.start_soon(fill, nursery.cancel_scope)
        if failures:
            raise failures[0]
        self._table, self._snapshot = table, None

    async def _take(self, change: Change[Sighting | None]) -> None:
        """Apply the binding's filter to one changed object, and put the result into the table. If the filter fails, the change
        is dropped, except for a deletion.
        """
        try:
            entry = None if change.payload is None else await self._entry(change.payload)
        except FilterError as error:
            self._drop(change, error)
            if change.verb is not WatchVerb.DELETED:
                return
            entry = None
        if entry is None or change.verb is WatchVerb.DELETED:
            self._enter(change.key, Gone(entry))
        else:
            self._enter(change.key, Seen(entry))

    async def _entry(self, seen: Sighting) -> Entry:
        """Return the part of an object that the hook may see. Raises FilterError."""
        program = self.binding.jq_filter
        return entry_of(self.binding, seen, await self._filtered(program, seen.plain()) if program else None)

    async def _filtered(self, program: str, text: bytes) -> bytes:
        """Return the filter's result for an object. If the process that ran the filter died, the filter is run once more. Raises
        FilterError.
        """
        try:
            return await self._filters.apply_text(program, text)
        except FilterError as error:
            if not error.at_once:
                raise
        return await self._filters.apply_text(program, text)

    def _drop(self, change: Change[Sighting | None], error: FilterError) -> None:
        self._dropped += 1
        self._last_error = f"{change.verb} {change.key}: {error}"
        what = "its last state is unknown" if change.verb is WatchVerb.DELETED else "the change is dropped"
        log.warning(
            "hook %s: binding %s: the filter fails on %s: %s; %s",
            self.hook,
            self.binding.name,
            change.key,
            error,
            what,
        )

    def _enter(self, key: ObjectKey, seen: Observation) -> None:
        """Change the table and emit the event together, without an await."""
        entry, event = step(key, self._table.pop(key, None), seen)
        self._snapshot = None
        if entry is not None:
            self._table[key] = entry
        if event is None:
            return
        self._counts[event.verb] += 1
        if event.verb is WatchVerb.DELETED and not self._table:
            self._cleaned += 1
        if event.verb not in self.binding.verbs:
            return
        if self._locked:
            self._gathered.add(Change(event.verb, key, event.item))
        else:
            self._emit(event)


def _namespace_selector(binding: KubernetesBinding) -> str:
    """Return the name of the field with which a binding selects namespaces; empty if it selects all namespaces."""
    asked = binding.namespaces
    if asked is None:
        return ""
    return "namespace.labelSelector" if asked.labels else "namespace.nameSelector" if asked.names else ""


def _shown(binding: KubernetesBinding, namespace: str | None) -> JsonValue:
    """Return the parts of a binding that determine the objects shown to its hook."""
    namespaces = binding.namespaces
    return [
        *(binding.name, binding.group, binding.kind, binding.api_version, binding.jq_filter, binding.keep_full_objects),
        None if binding.names is None else [*binding.names],
        *(binding.label_selector, binding.field_selector, namespace),
        None if namespaces is None else [[*(namespaces.names or ())], namespaces.labels],
        [*binding.include_snapshots_from],
    ]


@asynccontextmanager
async def open_monitors(monitors: Iterable[Monitor]) -> AsyncGenerator[None, None]:
    """Run all monitors while the block runs; they share one nursery."""
    async with trio.open_nursery() as nursery:
        for monitor in monitors:
            nursery.start_soon(monitor.run, name=f"monitor {monitor.binding.name} of {monitor.hook}")
        yield
        nursery.cancel_scope.cancel()
