"""The reconciler as a pure state machine. It decides which operations are due, in which order, and what an outcome means. It does
not wait, read a clock or perform operations.

Each owner has two *lines* of keys that wait for a worker: a line for changes, and a line for retries that are due. A key is in
one place (:class:`Place`) and has one status (:class:`Kind`)::

                    change                      take                       succeeded
    (no record) ───────────► FRESH (or HELD) ──────────► RUNNING ───────────────────────► RESTING, Done; a deletion: no record
                               ▲   ▲   ▲                  │ ▲ │                              │
                    the rate   │   │   │ row changed      │ │ │ row changed, not taken in    │ refresh, or old enough
                   allows it   │   │   └──────────────────┘ │ └──────────► AWAITING ──┐      ▼
                       LIMITED ┘   └────────────────────────┼─────────────────────────┘   LIMITED
                                     change, wherever it is │ failed
                                                take, DUE ──┴─ RETRY ◄── RUNNING

Invariants, which tests/cluster/reconciler/test_model.py checks with random histories:

* a key is in at most one line or with one worker, so two operations for one key never run at the same time;
* an outcome counts only if the row has not changed since the attempt began (its revision is the same); otherwise the outcome is
  dropped, and the present row is attempted, with no failures counted;
* no change and no retry can be lost: each key that is not Done is in a line, is with a worker, is due at a known time, is held
  back by a prune, or has a change that is still to be read;
* a key that is Done is attempted only if its row changes, or if a refresh is due;
* the reports for an owner depend only on its own rows, and on the revision up to which the table was read.
"""

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.operations import Attempt
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.records import Counts, Owner, Place, Record
from wharfinger.cluster.reconciler.refreshes import Refreshes
from wharfinger.cluster.reconciler.retries import Failure, Retries, pause_after
from wharfinger.cluster.reconciler.status import Kind, Status
from wharfinger.cluster.reconciler.turns import Turns
from wharfinger.cluster.tables.changes import Change
from wharfinger.cluster.tables.snapshot import Snapshot

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Machine(Generic[K, R]):
    """The state machine of one reconciler. ``consumed``: the machine has read all changes up to this revision of the table.

    The times that callers pass must never decrease.
    """

    def __init__(self, owner: Callable[[R], Hashable], options: ReconcilerOptions) -> None:
        self._owner = owner
        self._options = options
        self._records: dict[K, Record[K, R]] = {}
        self._owners: dict[Hashable, Owner[K, R]] = {}
        self._turns: Turns[K, R] = Turns(options)
        self._retries: Retries[K] = Retries()
        self._refreshes: Refreshes[K, R] = Refreshes(options.refresh_s, options.refresh_per_s)
        self._held: dict[K, Record[K, R]] = {}
        self._pruned: Snapshot[K, R] | None = None
        self._assumed: dict[K, int] = {}
        self._ids = 0
        self.consumed = 0
        self.running = 0
        self.dropped = 0

    # --- reports -----------------------------------------------------------------------------------------------------------

    @property
    def retries(self) -> Retries[K]:
        """Return the failures. The caller must not change them."""
        return self._retries

    @property
    def changes_waiting(self) -> bool:
        """Return whether a change that was read waits only for a free worker; if so, it is not urgent to read more changes."""
        return self._turns.changes_waiting

    @property
    def ready(self) -> bool:
        """Return whether there is a key that a worker may take now."""
        return self._turns.ready

    def attempted(self, name: Hashable) -> int:
        """Return the revision up to which each row of this owner was attempted at least once, or is gone."""
        owner = self._owners.get(name)
        return owner.attempted(self.consumed) if owner else self.consumed

    def low_watermark(self, name: Hashable) -> int:
        """Return the lowest revision of this owner whose last attempt failed; 0 if there is no such revision."""
        owner = self._owners.get(name)
        return owner.failing.lowest() if owner else 0

    def settled(self, name: Hashable, revision: int, keys: Container[K] | None = None) -> bool:
        """Return True if all rows of this owner up to this revision are Done, or if one of them is hopeless: it failed
        permanently, or ``give_up`` times in a row. With ``keys``, only the rows of these keys are checked; it is enough that
        all other rows up to this revision were attempted.
        """
        owner = self._owners.get(name)
        if self.consumed < revision or owner is None:
            # Until all changes are read, a hopeless row may have been replaced already.
            return self.consumed >= revision
        return owner.settled(self.consumed, revision, keys)

    def failures(self, name: Hashable) -> tuple[Failure[K], ...]:
        """Return the failures of this owner, sorted by revision."""
        owner = self._owners.get(name)
        found = (self._retries.get(key) for key in owner.failing.by_revision()) if owner else ()
        return tuple(failure for failure in found if failure is not None)

    def failing_rows(self) -> tuple[tuple[R, Failure[K]], ...]:
        """Return the failing rows of all owners, each with its failure; the row that has failed longest comes first."""
        return tuple((self._records[failure.key].row, failure) for failure in self._retries)

    def all_attempted(self) -> int:
        """Return the revision up to which each row was attempted at least once, or is gone, for all owners."""
        return min((owner.attempted(self.consumed) for owner in self._owners.values()), default=self.consumed)

    def all_low_watermark(self) -> int:
        """Return the lowest revision, of any owner, whose last attempt failed; 0 if there is no such revision."""
        return min((low for owner in self._owners.values() if (low := owner.failing.lowest())), default=0)

    def unsettled(self, revision: int, *, attempted: bool) -> Hashable | None:
        """Return an owner that has a row up to this revision that was not attempted yet or is not settled (:meth:`settled`);
        None if there is no such owner.

        If ``attempted`` is true, only rows that were not attempted count.
        """
        for name, owner in self._owners.items():
            if owner.attempted(self.consumed) < revision:
                return name
            if not attempted and not owner.settled(self.consumed, revision):
                return name
        return None

    def open_keys(self, name: Hashable) -> tuple[K, ...]:
        """Return the keys of this owner that are not Done: first the keys with the status Pending, then those with Error, then
        those with Refreshing; each group is sorted by revision.
        """
        owner = self._owners.get(name)
        return owner.open_keys() if owner else ()

    def revision(self, key: K) -> int:
        """Return the revision of a row as it was read last; 0 if the row is unknown, or its deletion was read."""
        record = self._records.get(key)
        return 0 if record is None or record.deleting else record.revision

    def status(self, key: K) -> Status | None:
        """Return the status of a key; None if the key is unknown."""
        record = self._records.get(key)
        if record is None:
            return None
        failure = self._retries.get(key) if record.kind is Kind.ERROR else None
        return Status(record.kind, record.id, record.at, str(failure.error) if failure else "")

    def next_at(self) -> float:
        """Return the time at which :meth:`tick` has something to do; infinity if nothing is planned."""
        return min(self.planned_at(), self._turns.late_at())

    def planned_at(self) -> float:
        """Return when the next retry or refresh is due; infinity if none is planned."""
        return min(self._retries.next_at(), self._refreshes.next_at())

    def counts(self) -> Counts:
        """Return the number of all keys, and for each state the number of keys that are in it."""
        owners = self._owners.values()
        return Counts(
            rows=len(self._records),
            pending=sum(len(owner.waiting) for owner in owners),
            refreshing=sum(len(owner.refreshing) for owner in owners),
            failing=len(self._retries),
            held=len(self._held),
            running=self.running,
            slow=self._turns.places.slow,
            owners=len(self._owners),
        )

    # --- changes -----------------------------------------------------------------------------------------------------------

    def take_in(self, changes: Iterable[Change[K, R]], consumed: int, now: float) -> None:
        """Record rows that are new, changed or gone. The table was read up to revision ``consumed``."""
        for change in changes:
            record = self._records.get(change.key)
            if record is None:
                self._begin(change, now)
            elif change.revision != record.revision:
                self._change(record, change, now)
        self.consumed = max(self.consumed, consumed)
        if self._assumed:
            self._assumed = {key: at for key, at in self._assumed.items() if at > self.consumed}

    def missed(self, present: Snapshot[K, R], now: float) -> None:
        """Treat keys that are not among ``present`` as deleted, because deletions may have been missed. Each keeps the
        revision of its row, because the revision of its deletion is not known.

        If a row was inserted again while its deletion was attempted, its key waits until the insertion is read. If that row is
        gone by now, the insertion will never be read, so the deletion is attempted once more.
        """
        for record in list(self._records.values()):
            if record.key in present:
                continue
            if not record.deleting:
                gone = Change(record.key, record.row, record.revision, deleted=True, created=record.created)
                self._change(record, gone, now)
            elif record.place is Place.AWAITING:
                self._enqueue(record)

    def _begin(self, change: Change[K, R], now: float) -> None:
        owner = self._owner_of(change.row)
        record: Record[K, R] = Record(change.key, change.row, change.revision, change.created, owner, change.deleted)
        self._records[change.key] = record
        owner.rows += 1
        self._plan(record, now)

    def _change(self, record: Record[K, R], change: Change[K, R], now: float) -> None:
        """Record that the row has changed: forget the failures and attempts at the old revision, and plan a new attempt."""
        owner = self._owner_of(change.row)
        record.owner.forget(record.revision)
        self._retries.clear(record.key)
        if owner is not record.owner:
            self._move(record, owner)
        if not change.deleted and (record.deleting or change.created != record.created):
            record.replaces = True
        record.row, record.revision, record.created = change.row, change.revision, change.created
        record.deleting = change.deleted
        record.number, record.refreshing, record.again = 0, False, False
        self._plan(record, now)

    def _owner_of(self, row: R) -> Owner[K, R]:
        name = self._owner(row)
        owner = self._owners.get(name)
        if owner is None:
            owner = self._owners[name] = Owner(name)
        return owner

    def _move(self, record: Record[K, R], owner: Owner[K, R]) -> None:
        """Give the row another owner. If a worker has the row, the operation under way counts for the old owner until the
        worker is done (see `finish`).
        """
        old = record.owner
        if record.place in {Place.FRESH, Place.DUE}:
            self._turns.remove(record)
            record.place = Place.RESTING
        old.rows -= 1
        owner.rows += 1
        record.owner = owner
        self._let_go(old)

    def _let_go(self, owner: Owner[K, R]) -> None:
        if not owner.rows and not owner.running:
            self._owners.pop(owner.name, None)

    def _plan(self, record: Record[K, R], now: float) -> None:
        """Plan an attempt at a row, unless the row is assumed to be done (:meth:`assume_done`)."""
        assumed = bool(self._assumed) and self._assumed.get(record.key) == record.revision
        if assumed and record.place is not Place.RUNNING and record.place is not Place.AWAITING:
            self._rest(record, now)
            return
        self._set(record, Kind.PENDING, now)
        record.owner.waiting.add(record.revision, record.key)
        if record.place is not Place.RUNNING:
            self._enqueue(record)

    def _enqueue(self, record: Record[K, R]) -> None:
        """Add the key to its owner's line of changes. A key that is already in the line keeps its place. If the key's row is
        updated during a prune that does not know the row, the key is held until the prune ends.
        """
        held = not record.deleting and self._is_held(record.key)
        if record.place is (Place.HELD if held else Place.FRESH):
            return
        self._leave(record)
        if held:
            record.place = Place.HELD
            self._held[record.key] = record
        else:
            self._turns.add_fresh(record)

    def _is_held(self, key: K) -> bool:
        return self._pruned is not None and key not in self._pruned

    def _leave(self, record: Record[K, R]) -> None:
        """Remove the key from the line in which it waits: for a worker, for a retry, for a refresh, or for the end of
        a prune.
        """
        match record.place:
            case Place.FRESH | Place.DUE:
                self._turns.remove(record)
            case Place.HELD:
                del self._held[record.key]
            case Place.LIMITED | Place.RESTING:
                self._refreshes.withdraw(record)
            case Place.RETRY:
                self._retries.withdraw(record.key)
            case Place.RUNNING | Place.AWAITING:
                pass
        record.place = Place.RESTING

    def _set(self, record: Record[K, R], kind: Kind, now: float) -> None:
        if kind in {Kind.PENDING, Kind.REFRESHING}:
            self._ids += 1
            record.id = self._ids
        record.kind = kind
        record.at = now

    def assume_done(self, key: K, revision: int, now: float) -> None:
        """Record that the object is known to match this revision of its row: it needs no operation.

        ``revision`` must be the revision of the row in the table. The machine need not have read this revision yet.
        """
        record = self._records.get(key)
        if self._is_held(key) or (record is not None and record.place is Place.RUNNING):
            return  # a prune under way may delete the object, and a worker may still apply an older row over it
        if revision > self.consumed:
            self._assumed[key] = revision
        elif record is not None and record.revision == revision and not record.deleting:
            self._retries.clear(key)
            self._rest(record, now)

    def is_assumed(self, key: K, revision: int) -> bool:
        """Return whether a row that was not read yet will be Done once it is read, because it was assumed to be done.

        The result is False if a worker is attempting the key, or was when the row changed, because such a key is attempted
        again in any case.
        """
        record = self._records.get(key)
        busy = record is not None and record.place in {Place.RUNNING, Place.AWAITING}
        return not busy and self._assumed.get(key) == revision

    def _rest(self, record: Record[K, R], now: float) -> None:
        """Mark the key of a record as Done, and forget its failures."""
        self._leave(record)
        record.owner.forget(record.revision)
        record.number, record.refreshing, record.again, record.replaces = 0, False, False, False
        self._set(record, Kind.DONE, now)
        self._refreshes.done(record)

    # --- attempts ----------------------------------------------------------------------------------------------------------

    def take(self, now: float) -> Attempt[K, R] | None:
        """Return the next attempt for a worker; None if there is nothing to do. The worker ends it with :meth:`finish`."""
        taken = self._turns.take(now)
        return None if taken is None else self._attempt(taken[1][0])

    def take_batch(self, now: float) -> tuple[Sequence[Attempt[K, R]], bool]:
        """Return the next work: changes of one owner (at most ``round_size``, deletions first) and False, or one retry and True.

        The sequence is empty if there is nothing to do.
        """
        taken = self._turns.take(now, self._options.round_size)
        if taken is None:
            return (), False
        work, records = taken
        return sorted(map(self._attempt, records), key=lambda attempt: not attempt.deleting), work.retry

    def _attempt(self, record: Record[K, R]) -> Attempt[K, R]:
        self.running += 1
        record.number += 1
        key, row, revision = record.key, record.row, record.revision
        return Attempt(key, row, revision, record.number, record.refreshing, record.deleting, record.replaces)

    def finish(
        self, attempt: Attempt[K, R], current: int, error: ClusterError | None, *, now: float, draw: float
    ) -> None:
        """Record the end of an attempt.

        ``current`` is the revision that the row has in the table now, 0 if there is none. ``error`` is the failure, or None.
        ``draw`` is a random number in [0, 1), for the pause before a retry.
        """
        self.running -= 1
        record = self._records[attempt.key]
        work = record.work
        if work is None:
            raise RuntimeError(f"{attempt.key} is not being attempted")
        record.place = Place.RESTING
        if record.revision != attempt.revision or record.deleting is not attempt.deleting:
            self.dropped += 1
            record.again = False
            self._enqueue(record)
        elif current != (0 if attempt.deleting else attempt.revision):
            self.dropped += 1
            record.place = Place.AWAITING
        elif error is not None:
            self._failed(record, error, now, draw)
        else:
            self._succeeded(record, now)
        record.work = None
        self._turns.done(work, now, failed=error is not None)
        self._let_go(work.owner)

    def _succeeded(self, record: Record[K, R], now: float) -> None:
        self._retries.clear(record.key)
        if record.deleting:
            record.owner.forget(record.revision)
            record.owner.rows -= 1
            del self._records[record.key]
            return
        again = record.again
        self._rest(record, now)
        if again:
            self._refresh(record, now)

    def _failed(self, record: Record[K, R], error: ClusterError, now: float, draw: float) -> None:
        failures = self._retries.attempts(record.key) + 1
        pause = pause_after(error, failures, self._options, draw)
        failure = self._retries.add(record.key, error, now=now, pause=pause)
        self._set(record, Kind.ERROR, now)
        owner, revision = record.owner, record.revision
        owner.forget(revision)
        owner.failing.add(revision, record.key)
        if failure.permanent or failures >= self._options.give_up:
            owner.hopeless.add(revision, record.key)
        record.place = Place.RETRY
        if record.again:
            record.again = False
            self._refresh(record, now)

    # --- time --------------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> list[K]:
        """Move due keys into their lines: at most ``round_size`` retries, and as many refreshes as the rate allows.

        Operations that have become late move to slow places (:mod:`~wharfinger.cluster.reconciler.turns`). Return the keys
        whose operations must be cut off early, because there are more slow operations than slow places.
        """
        for _ in range(self._options.round_size):
            key = self._retries.pop_due(now)
            if key is None:
                break
            self._turns.add_due(self._records[key])
        for _ in range(self._options.round_size):
            record = self._refreshes.oldest(now)
            if record is None:
                break
            self._refresh(record, now)
        while (record := self._refreshes.take_allowed(now)) is not None:
            self._enqueue(record)
        return [key for work in self._turns.tick(now) for key in work.keys]

    # --- refreshing --------------------------------------------------------------------------------------------------------

    def refresh(self, key: K, now: float) -> None:
        """If a key is Done, or failed permanently, attempt it again as soon as the rate for refreshes allows.

        If a worker is attempting the key, another attempt follows. Nothing is done for any other key, because an attempt is
        planned for it anyway.
        """
        record = self._records.get(key)
        if record is not None and not record.deleting:
            self._refresh(record, now)

    def _refresh(self, record: Record[K, R], now: float) -> None:
        if record.place is Place.RUNNING:
            record.again = True
            return
        failure = self._retries.get(record.key) if record.place is Place.RETRY else None
        if record.place is Place.RESTING:
            self._set(record, Kind.REFRESHING, now)
            record.owner.refreshing.add(record.revision, record.key)
        elif failure is None or not failure.permanent:
            return
        self._leave(record)
        record.refreshing = True
        record.place = Place.LIMITED
        self._refreshes.ask(record)

    # --- pruning -----------------------------------------------------------------------------------------------------------

    def hold(self, present: Snapshot[K, R]) -> None:
        """Begin a prune that keeps the objects of the rows in ``present``. Until the prune ends, no update of any other row
        begins, because the prune could delete the object of that row.
        """
        self._pruned = present

    def release(self) -> None:
        """End the prune that `hold` began, and enqueue the updates that had to wait for its end."""
        self._pruned = None
        for record in list(self._held.values()):
            self._enqueue(record)
