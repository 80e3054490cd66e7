"""A monitor that notices changes of releases' objects by other writers, usually within a second, and has the objects applied
again.

    monitor = DriftMonitor(table, applied, client, correct=reconciler.refresh, told=tell, settled=is_done)
    live.listen(monitor.changed)
    nursery.start_soon(monitor.run)

Every event about an object of ours is passed to :meth:`DriftMonitor.changed`. Most events are a change of status. An event is
dismissed if the *mark* of the object, a checksum of our entry in ``managedFields``, is unchanged
(:mod:`~wharfinger.cluster.objects.applied_objects`). For the other events, the object is compared with what was applied
(:mod:`~wharfinger.cluster.drift.comparison`). If it seems to have drifted, this is a *suspicion*. A watch lags behind our own
writes, so the object is read to confirm the suspicion. In addition, all objects are listed and compared at long intervals. This
full comparison finds drift that a lost event or an unchanged entry hid, and it is the first check after a restart.

Invariants:

* A drift is corrected once, however often the object changes until it is applied again. A drift is reported when it begins, when
  its fields change, and when it ends. The apply ends the drift, except for fields that the apply leaves to other managers.
* While a row waits to be applied, or is being applied, its object is not judged, because both sides of the comparison are about
  to change. A suspicion is kept until the row is applied, and is dropped if our own write is newer.
* No live object is kept. The monitor uses the baseline of each object, and keeps suspicions and drifts as long as they last.
* An object without a baseline is not judged if it was applied for a row other than the present one. This happens if a process
  was killed while it made a revision, and left no record of the revision. The next upgrade decides about such an object.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, NotFoundError
from wharfinger.cluster.drift.comparison import Drift, find_drift, is_in_doubt
from wharfinger.cluster.drift.fights import (
    Correct,
    Drifted,
    Elapsed,
    Fight,
    FightEvent,
    FightRules,
    Fights,
    Forgotten,
    Settled,
    step,
)
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.fields.owners import text_at
from wharfinger.cluster.objects.applied_objects import AppliedObjects, mark_of
from wharfinger.cluster.objects.desired import DesiredObject, DesiredTable, Identity, identity_of
from wharfinger.cluster.objects.drift_policy import DriftMode
from wharfinger.cluster.objects.ownership import RELEASE_LABEL, Owner
from wharfinger.cluster.watch.listed_objects import visit_all
from wharfinger.cluster.watch.work_queue import WorkQueue
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.resource import ObjectKey, ResourceType

WORKERS: Final = 4
"""The largest number of objects that are checked for drift at the same time."""
HOLD_S: Final = 0.1
"""If an object seems to differ from its row while the row is being applied, the object is checked again after this delay, in
seconds. Later delays grow.
"""
JITTER: Final = 0.1
"""The fraction by which the pause between two full comparisons varies."""

Corrected: TypeAlias = Callable[[Owner, Drift], None]
"""A callback that gets the drift of an object that was corrected, after the object was applied again. It must not block."""
DriftReport: TypeAlias = Callable[[Owner, tuple[Drift, ...], tuple[Fight, ...]], None]
"""A callback that gets all drift of an owner's objects and all fights over them, whenever the drift or the fights have changed.
It must not block.
"""


@dataclass(frozen=True, slots=True)
class DriftStatistics:
    """The counts of a monitor. ``open`` is the present number of drifted objects, and ``fights`` is the present number of
    fights.

    The other counts are totals since the start.
    """

    open: int
    fights: int
    suspicions: int
    confirmed: int
    corrections: int
    comparisons: int
    failures: int


@dataclass(slots=True)
class _Counts:
    suspicions: int = 0
    confirmed: int = 0
    corrections: int = 0
    comparisons: int = 0
    failures: int = 0


@dataclass(slots=True)
class _Open:
    """A reported drift, the mark of the drifted object, and whether a correction was requested."""

    drift: Drift
    owner: Owner
    mark: int
    asked: bool = False


@dataclass(slots=True)
class _Known:
    """The drift that the monitor suspects or has reported, and the objects and owners that need special treatment."""

    suspects: dict[Identity, str] = field(default_factory=dict)
    """The suspected objects, each with the resourceVersion at which it seemed to have drifted; "" if the object is missing, or
    if a check was requested.
    """
    open: dict[Identity, _Open] = field(default_factory=dict)
    left_alone: set[Owner] = field(default_factory=set)
    ending: set[Identity] = field(default_factory=set)
    """The objects that are being deleted, according to the last report of the watch."""
    stopping: bool = False
    """True once the daemon is stopping. No correction begins after that."""


class DriftMonitor:
    """A monitor of drift. ``correct`` requests that objects are applied again. ``settled`` returns whether an object's row is
    applied.

    The caller starts :meth:`run` in a task. :meth:`run` and :meth:`wait_compared` are the only methods that wait.
    """

    def __init__(
        self,
        table: DesiredTable,
        applied: AppliedObjects,
        client: ClusterClient,
        *,
        correct: Callable[[Iterable[Identity]], None],
        told: DriftReport,
        settled: Callable[[Identity], bool],
        full_s: float = 600.0,
        rules: FightRules | None = None,
        draw: Callable[[], float] = random.random,
        corrected: Corrected = lambda _owner, _drift: None,
    ) -> None:
        self._table = table
        self._applied = applied
        self._client = client
        self._correct = correct
        self._told = told
        self._corrected = corrected
        self._settled = settled
        self._full_s = full_s
        self._draw = draw
        self._fights = Fights(rules or FightRules())
        self._fights_changed = trio.Event()
        self._known = _Known()
        self._counts = _Counts()
        self._queue: WorkQueue[Identity] = WorkQueue()
        self._compared = trio.Event()
        applied.listen(self._recorded)

    # -- notifications

    def changed(self, key: ObjectKey, live: JsonObject | None) -> None:
        """Record the present state of an object; None if it is gone, or no longer has the label of a release. Never waits."""
        identity, ending = identity_of(key), self._known.ending
        if live is not None and _is_ending(live):
            ending.add(identity)
        elif identity in ending:
            ending.discard(identity)
        if live is not None:
            self._applied.noticed(identity, live)
            if not self._is_known(identity, live):
                self._look(identity, live)
        elif self._row(identity) is not None:
            self._suspect(identity, "")
        else:
            self._close(identity)

    def suspect_kind(self, group_kind: str) -> None:
        """Check all objects of a kind (``Widget.example.test``) for drift soon, because its definition was deleted and now
        exists again.
        """
        for entry in self._table.snapshot().entries():
            if entry.row.identity.group_kind == group_kind:
                if (known := self._known.open.get(entry.row.identity)) is not None:
                    known.asked = False  # a requested correction could not be made without the definition
                self._suspect(entry.row.identity, "")

    def pause_corrections(self, owner: Owner) -> None:
        """Report drift of an owner's objects from now on without correcting it."""
        self._known.left_alone.add(owner)
        for identity, known in tuple(self._known.open.items()):
            if known.owner == owner:
                known.asked = False
                self._step(Forgotten(identity))

    def resume_corrections(self, owner: Owner) -> None:
        """Correct drift of an owner's objects again, if its policy says so, and check all of them now."""
        self._known.left_alone.discard(owner)
        for entry in self._table.snapshot().find("owner", owner):
            self._suspect(entry.row.identity, "")

    def stop_correcting(self) -> None:
        """Report drift from now on without correcting it, because the daemon is about to stop. Corrections that were begun are
        completed.
        """
        self._known.stopping = True

    def drifts(self, owner: Owner) -> tuple[Drift, ...]:
        """Return the objects that differ from what was applied, sorted by identity."""
        found = ((identity, known.drift) for identity, known in self._known.open.items() if known.owner == owner)
        return tuple(drift for identity, drift in sorted(found, key=lambda item: item[0]) if self._row(identity))

    def fights(self, owner: Owner) -> tuple[Fight, ...]:
        """Return the present fights over an owner's objects, sorted by identity."""
        found = (self._fights.fight(entry.row.identity) for entry in self._table.snapshot().find("owner", owner))
        return tuple(sorted((fight for fight in found if fight is not None), key=lambda fight: fight.identity))

    def is_as_applied(self, identity: Identity) -> bool:
        """Return whether the object is still as it was applied for its row, according to its baseline and every event since then.

        The result is False for an object whose drift is not monitored, and for an object that this process has neither applied
        nor read.
        """
        applied, known = self._applied.get(identity), self._known
        is_clean = applied is not None and not applied.partial and self._row(identity) is not None
        return is_clean and not (identity in known.suspects or identity in known.open or identity in known.ending)

    async def wait_compared(self) -> None:
        """Wait until the first full comparison is done, so that the objects of restored releases have baselines."""
        await self._compared.wait()

    def statistics(self) -> DriftStatistics:
        """Return counters, for metrics and for inspection."""
        fights = sum(bout.fight is not None for bout in self._fights.bouts.values())
        counts = self._counts
        return DriftStatistics(
            len(self._known.open),
            fights,
            counts.suspicions,
            counts.confirmed,
            counts.corrections,
            counts.comparisons,
            counts.failures,
        )

    async def run(self) -> None:
        """Confirm suspicions, end fights, and compare all objects at intervals, until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(WORKERS):
                nursery.start_soon(self._confirm_all, name="drift")
            nursery.start_soon(self._mind_fights, name="drift fights")
            nursery.start_soon(self._compare_all, name="drift comparison")

    # -- judging

    def _row(self, identity: Identity) -> DesiredObject | None:
        """Return the row of an object; None if the object has no row, or its drift is not monitored."""
        entry = self._table.snapshot().get(identity)
        return entry.row if entry is not None and entry.row.drift.mode is not DriftMode.OFF else None

    def _is_known(self, identity: Identity, live: JsonObject) -> bool:
        """Return whether an event about an object reports nothing new. That is so for most events, so the check has to be
        cheap.
        """
        applied, known = self._applied.get(identity), self._known
        if applied is None or identity in known.suspects or find(live, "metadata", "uid") != applied.uid:
            return False
        drifted = known.open.get(identity)
        return mark_of(live, self._applied.manager) == (applied.mark if drifted is None else drifted.mark)

    def _look_listed(self, key: ObjectKey, live: JsonObject) -> None:
        self._look(identity_of(key), live)

    def _look(self, identity: Identity, live: JsonObject) -> None:
        """Examine an object that the watch reported. If it seems to have drifted, add it to the suspects; otherwise record that
        it is as wanted.
        """
        row = self._row(identity)
        if row is None:
            self._close(identity)
            return
        applied = self._applied.get(identity)
        if (applied is not None and applied.is_newer_than(live)) or _is_ending(live):
            return
        if applied is None and is_in_doubt(row, live, self._applied.manager):
            return
        if not self._settled(identity) or self._find(row, live) is not None:
            self._suspect(identity, text_at(live, "metadata", "resourceVersion"))
        else:
            self._is_as_wanted(identity, live)

    def _find(self, row: DesiredObject, live: JsonObject) -> Drift | None:
        ignore = (*row.drift.ignore, *BUILT_IN)
        applied = self._applied.get(row.identity)
        return find_drift(row.object(), applied, live, self._applied.manager, ignore)

    def _suspect(self, identity: Identity, resource_version: str) -> None:
        self._counts.suspicions += 1
        self._known.suspects[identity] = resource_version
        if self._settled(identity):
            self._queue.add(identity)
        else:
            self._queue.add_later(identity, HOLD_S)

    def _is_as_wanted(self, identity: Identity, live: JsonObject) -> None:
        """End the drift of an object whose live state was read and matches its row. Record the live state as the baseline if
        there is no complete baseline, or if the baseline differs from it.
        """
        applied = self._applied.get(identity)
        if applied is None or applied.partial or not applied.is_marked(live, self._applied.manager):
            self._applied.record(identity, live)  # this calls _recorded, which ends the drift
        else:
            self._close(identity)

    def _recorded(self, identity: Identity) -> None:
        """Record that an object was applied: discard older suspicions, and end its drift.

        The apply may have left fields to the managers that took them. These are still drift, so the object is checked again.
        """
        suspected, applied = self._known.suspects.get(identity, ""), self._applied.get(identity)
        if applied is not None and applied.partial:
            self._suspect(identity, "")
            return
        if suspected.isdecimal() and applied is not None and applied.resource_version.isdecimal():
            if int(suspected) <= int(applied.resource_version):
                del self._known.suspects[identity]
            else:
                self._queue.add(identity)
        self._close(identity)

    # -- confirming

    async def _confirm_all(self) -> None:
        while True:
            identity = await self._queue.take()
            try:
                await self._confirm(identity)
            finally:
                self._queue.done(identity)

    async def _confirm(self, identity: Identity) -> None:
        """Read an object that may have drifted, and find out whether it has."""
        row, applied = self._row(identity), self._applied.get(identity)
        if row is None or identity not in self._known.suspects:
            self._known.suspects.pop(identity, None)
            self._queue.succeeded(identity)
            await trio.lowlevel.checkpoint()
            return
        if not self._settled(identity):
            self._queue.failed(identity)
            await trio.lowlevel.checkpoint()
            return
        try:
            live: JsonObject | None = await self._client.get(row.key)
        except NotFoundError:
            live = None
        except ClusterError:
            self._counts.failures += 1
            self._queue.failed(identity)
            return
        self._queue.succeeded(identity)
        # No await from here on, because neither side of the comparison may change before the result is recorded.
        if self._row(identity) is not row or self._applied.get(identity) is not applied or not self._settled(identity):
            self._queue.add(identity)  # the row or the baseline changed meanwhile
            return
        self._known.suspects.pop(identity, None)
        if applied is None and live is not None and is_in_doubt(row, live, self._applied.manager):
            return
        drift = Drift(identity, missing=True) if live is None else self._find(row, live)
        if drift is not None:
            self._counts.confirmed += 1
            self._drifted(row, drift, 0 if live is None else mark_of(live, self._applied.manager))
        elif live is not None and not _is_ending(live):
            self._is_as_wanted(identity, live)

    def _drifted(self, row: DesiredObject, drift: Drift, mark: int) -> None:
        known = self._known.open.get(drift.identity)
        if known is None or known.drift != drift:
            asked = known is not None and known.asked
            known = self._known.open[drift.identity] = _Open(drift, row.owner, mark, asked)
            self._tell(row.owner)
        known.mark = mark
        corrects = row.drift.mode is DriftMode.CORRECT and row.owner not in self._known.left_alone
        if corrects and not known.asked:
            known.asked = True
            self._step(Drifted(drift.identity, drift.writers, trio.current_time()))

    def _close(self, identity: Identity) -> None:
        """Record that an object does not differ from its row any more, or has no row any more, and report this."""
        if (known := self._known.open.pop(identity, None)) is not None:
            self._step(Settled(identity, trio.current_time()))
            self._tell(known.owner)
            if known.asked and self._row(identity) is not None:
                self._corrected(known.owner, known.drift)
        if identity in self._fights.bouts and self._row(identity) is None:
            self._step(Forgotten(identity))

    def _tell(self, owner: Owner) -> None:
        self._told(owner, self.drifts(owner), self.fights(owner))

    # -- fights

    def _step(self, event: FightEvent) -> None:
        self._fights, effects = step(self._fights, event)
        corrected = [effect.identity for effect in effects if isinstance(effect, Correct)]
        if corrected and not self._known.stopping:
            self._counts.corrections += len(corrected)
            self._correct(corrected)
        fought = {effect.identity for effect in effects if not isinstance(effect, Correct)}
        rows = [row for identity in fought if (row := self._row(identity)) is not None]
        for owner in dict.fromkeys(row.owner for row in rows):
            self._tell(owner)
        self._fights_changed.set()

    async def _mind_fights(self) -> None:
        while True:
            self._fights_changed = trio.Event()
            due = self._fights.due()
            with trio.move_on_at(float("inf") if due is None else due):
                await self._fights_changed.wait()
            if due is not None and trio.current_time() >= due:
                self._step(Elapsed(trio.current_time()))

    # -- comparing everything

    async def _compare_all(self) -> None:
        while True:
            snapshot = await self._table.wait_initialized()
            for resource in sorted({entry.row.key.resource for entry in snapshot.entries()}):
                await self._compare(resource)
            self._counts.comparisons += 1
            self._compared.set()
            pause_s = self._full_s * (1 + JITTER * (2 * self._draw() - 1))
            with trio.move_on_after(pause_s):
                await self._filled_again()

    async def _filled_again(self) -> None:
        """Wait until the table is being filled again. The rows that it gets then have no baselines, so they must be compared
        soon.
        """
        while True:
            watch = self._table.watch()
            if not self._table.snapshot().initialized:
                return
            await watch.wait()

    async def _compare(self, resource: ResourceType) -> None:
        """List all objects of one kind, and check each of them for drift. Also check the rows for which the list has no object,
        because their objects may be missing.
        """
        expected = [entry.row.key for entry in self._table.snapshot().entries() if entry.row.key.resource == resource]
        try:
            seen = await visit_all(self._client, resource, RELEASE_LABEL, self._look_listed)
        except NotFoundError:
            seen = set()  # the kind is not served, so it has no objects
        except ClusterError:
            self._counts.failures += 1
            return
        for key in expected:
            if key not in seen and self._row(identity_of(key)) is not None:
                self._suspect(identity_of(key), "")


def _is_ending(live: JsonObject) -> bool:
    """Return whether the object is being deleted, so that its fields do not matter any more."""
    return find(live, "metadata", "deletionTimestamp") is not None
