"""The service of a reconciler. It has worker tasks, and three further tasks: one reads the table, one puts due keys into the
lines of their owners, and one prunes.

There is one task for each worker, never one for a row. A worker takes the next attempt from the machine
(:mod:`~wharfinger.cluster.reconciler.machine`), performs it, and reports its outcome. A worker waits if there is no attempt to
take. Changes are read from the table page by page: the next page is read when no worker can be given a row of the last page, or
after READ_EVERY_S, so that the rows of one owner never hide those of another for long. One slow operation occupies one worker
and delays no page. If the target offers batches, workers take changes in batches and retries one by one.

At the end of the block of :func:`open_reconciler`, operations under way are cancelled. This is safe, because operations are
idempotent, and the next reconciler begins with all rows.
"""

import logging
import random
from collections.abc import AsyncIterator, Callable, Container, Hashable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler import pruning
from wharfinger.cluster.reconciler.machine import Machine
from wharfinger.cluster.reconciler.metrics import Operation, ReconcilerMetrics
from wharfinger.cluster.reconciler.operations import Attempt, BatchOperations, Operations, UnexpectedError
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.performing import Performer
from wharfinger.cluster.reconciler.retries import Failure
from wharfinger.cluster.reconciler.statistics import Performed, ReconcilerStatistics, health
from wharfinger.cluster.reconciler.status import Kind, Status, Statuses
from wharfinger.cluster.reconciler.waiters import Waiters
from wharfinger.cluster.tables.changes import ChangeStream
from wharfinger.cluster.tables.errors import TrackerExpiredError
from wharfinger.cluster.tables.table import Table
from wharfinger.cluster.tables.watch import Watch

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

log = logging.getLogger(__name__)

_ALL_OWNERS: Final = object()
"""The key for waiters that wait for all owners."""
_CHECKPOINT_EVERY: Final = 16
"""The number of operations after which a worker lets other tasks run, even if its operations never wait."""
READ_EVERY_S: Final = 0.1
"""The longest time, in seconds, that the next page of changes is not read because workers can still be given rows of the last
page.
"""
_DEFAULT: Final = ReconcilerOptions()


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an owner: all rows up to ``revision`` were attempted. ``low_watermark`` is the lowest revision of a row
    whose last attempt failed; 0 if there is none.
    """

    revision: int
    low_watermark: int


def unattributed(_row: object) -> AbstractContextManager[None]:
    """Return a context that attributes an operation to no package."""
    return nullcontext()


@asynccontextmanager
async def open_reconciler(
    table: Table[K, R],
    operations: Operations[K, R],
    *,
    name: str,
    owner: Callable[[R], Hashable],
    options: ReconcilerOptions = _DEFAULT,
    statuses: Statuses[K] | None = None,
    batch: BatchOperations[K, R] | None = None,
    during: Callable[[R], AbstractContextManager[None]] = unattributed,
    draw: Callable[[], float] = random.random,
    metrics: ReconcilerMetrics | None = None,
    attempted: Callable[[Attempt[K, R], Failure[K] | None], None] | None = None,
) -> AsyncIterator["Reconciler[K, R]"]:
    """Keep a target in the state of the rows of ``table``, for as long as the block runs.

    ``owner`` returns the owner of a row. ``statuses`` collects the statuses of all reconcilers of one table; this
    reconciler joins it under ``name``. ``during`` returns the context in which an operation on a row runs. ``draw`` returns a
    random number in [0, 1), for pauses. ``metrics`` receives each operation. ``attempted`` receives each attempt whose row has
    not changed meanwhile, with its failure (None if it succeeded); it must not block.
    """
    reconciler = Reconciler(table, Performer(operations, batch, during, options), owner, name, options, draw)
    reconciler.listen(metrics, attempted)
    told = statuses if statuses is not None else Statuses[K]()
    told.join(name, reconciler.status)
    try:
        async with trio.open_nursery() as nursery:
            for number in range(options.concurrency + options.slow_concurrency):
                nursery.start_soon(reconciler.work, name=f"reconciler {name}, worker {number}")
            nursery.start_soon(reconciler.read, name=f"reconciler {name}, changes")
            nursery.start_soon(reconciler.move_due_keys, name=f"reconciler {name}, times")
            nursery.start_soon(reconciler.prune_when_due, name=f"reconciler {name}, prune")
            yield reconciler
            nursery.cancel_scope.cancel()
    finally:
        told.leave(name)


class Reconciler(Generic[K, R]):
    """A running reconciler, made by :func:`open_reconciler`. Synchronous methods may be called by any code in its thread."""

    def __init__(
        self,
        table: Table[K, R],
        performer: Performer[K, R],
        owner: Callable[[R], Hashable],
        name: str,
        options: ReconcilerOptions,
        draw: Callable[[], float],
    ) -> None:
        self.name = name
        self._table = table
        self._performer = performer
        self._owner = owner
        self._options = options
        self._draw = draw
        self._machine: Machine[K, R] = Machine(owner, options)
        self._pruning = pruning.begun(options)
        self._waiters = Waiters()
        self._rounds = 0
        self._idle = trio.lowlevel.ParkingLot()
        self._hungry = trio.Event()
        self._alarm = trio.Event()
        self._alarm_at = float("-inf")
        self._prune_asked = trio.Event()
        self._metrics: ReconcilerMetrics | None = None
        self._attempted: Callable[[Attempt[K, R], Failure[K] | None], None] | None = None

    def listen(
        self, metrics: ReconcilerMetrics | None, attempted: Callable[[Attempt[K, R], Failure[K] | None], None] | None
    ) -> None:
        """Set the receivers of metrics and of attempts; see :func:`open_reconciler`."""
        self._metrics, self._attempted = metrics, attempted

    # --- for waiting tasks ------------------------------------------------------------------------------------------------

    async def wait_until_reconciled(
        self, revision: int, owner: Hashable, *, until_settled: bool = False, keys: Container[K] | None = None
    ) -> Progress:
        """Wait until every row of ``owner`` up to this revision of the table was attempted at least once, or is gone.

        ``until_settled``: wait until every such row is Done, or is deleted together with its object. This wait ends earlier if
        one of the rows failed permanently, or ``give_up`` times in a row; :meth:`failures` says which row. With ``keys``,
        ``until_settled`` applies to the rows of these keys only. All other rows only have to be attempted, and their failures
        do not end the wait.
        """
        machine = self._machine
        if until_settled:
            await self._waiters.wait_until(owner, lambda: machine.settled(owner, revision, keys))
        else:
            await self._waiters.wait_until(owner, lambda: machine.attempted(owner) >= revision)
        return Progress(machine.attempted(owner), machine.low_watermark(owner))

    async def wait_until_all_reconciled(self, revision: int, *, until_settled: bool = False) -> Progress:
        """Wait as :meth:`wait_until_reconciled` does, for the rows of all owners.

        ``until_settled``: wait until, for each owner, every row is Done or deleted, or one of its rows failed permanently or
        too often.
        """
        machine = self._machine
        # The unsettled owner that was found last. Other owners are checked only once this owner is settled.
        blocking: list[Hashable] = []

        def is_over() -> bool:
            if machine.consumed < revision:
                return False
            for name in blocking:
                over = machine.settled(name, revision) if until_settled else machine.attempted(name) >= revision
                if not over:
                    return False
            found = machine.unsettled(revision, attempted=not until_settled)
            blocking[:] = [] if found is None else [found]
            return found is None

        await self._waiters.wait_until(_ALL_OWNERS, is_over)
        return Progress(machine.all_attempted(), machine.all_low_watermark())

    def watch(self, owner: Hashable) -> Watch:
        """Return a watch that fires when the state of this owner may have changed; get it before you read the state."""
        return self._waiters.watch(owner)

    def progress(self, owner: Hashable) -> tuple[K, ...]:
        """Return those keys of this owner that do not have the status Done. Changes of the table that have not been read yet
        are not considered.

        Keys with the status Pending come first, then those with Error, then those with Refreshing.
        """
        return self._machine.open_keys(owner)

    def failures(self, owner: Hashable) -> tuple[Failure[K], ...]:
        """Return the failures of this owner, sorted by revision."""
        return self._machine.failures(owner)

    def failing_rows(self) -> tuple[tuple[R, Failure[K]], ...]:
        """Return the failing rows of all owners, each with its failure; the row that has failed longest comes first."""
        return self._machine.failing_rows()

    def status(self, key: K) -> Status | None:
        """Return the status of a row, or of the deletion of a row that is gone; None if the key is unknown."""
        entry = self._table.snapshot().get(key)
        status = self._machine.status(key)
        if (entry.revision if entry else 0) == self._machine.revision(key):
            return status
        assumed = entry is not None and self._machine.is_assumed(key, entry.revision)
        return Status(Kind.DONE if assumed else Kind.PENDING, 0 if status is None else status.id, trio.current_time())

    def statistics(self) -> ReconcilerStatistics:
        """Return the statistics for metrics."""
        machine, performer, prune = self._machine, self._performer, self._pruning
        snapshot = self._table.snapshot()
        return ReconcilerStatistics(
            name=self.name,
            rows=len(snapshot),
            revision=machine.consumed,
            table_revision=snapshot.revision,
            keys=machine.counts(),
            rounds=self._rounds,
            dropped=machine.dropped,
            updates=performer.updates.snapshot(),
            deletions=performer.deletions.snapshot(),
            prunes=Performed(prune.count, prune.errors_total, prune.seconds),
            prune_error="" if prune.error is None else str(prune.error),
        )

    def health(self) -> str:
        """Return a sentence: ``OK, 3 objects``, or the failures."""
        return health(len(self._table.snapshot()), self._machine.retries, self._pruning.error)

    # --- for requests ------------------------------------------------------------------------------------------------------

    def refresh(self, keys: Iterable[K]) -> None:
        """Refresh those of these keys that are Done or failed permanently, as fast as the rate for refreshes allows.

        A key that is Pending or waits for a retry is attempted anyway. A key that is being attempted is attempted again
        after that. Keys without a row are ignored.
        """
        machine, now = self._machine, trio.current_time()
        for key in keys:
            machine.refresh(key, now)
        self._set_alarm()

    def assume_done(self, key: K, revision: int) -> None:
        """Record that the object is known to match this revision of its row, so it needs no operation. If the row has changed,
        do nothing.
        """
        entry = self._table.snapshot().get(key)
        if entry is not None and entry.revision == revision:
            self._machine.assume_done(key, revision, trio.current_time())
            self._set_alarm()
            self._step(self._owner(entry.row))

    def prune(self) -> None:
        """Prune once, as soon as the table is initialized. Several calls before the prune begins request only one prune."""
        self._pruning = pruning.asked(self._pruning)
        self._prune_asked.set()

    # --- tasks -------------------------------------------------------------------------------------------------------------

    async def work(self) -> None:
        """Perform attempts until cancelled: the task of one worker."""
        performed = 0
        while True:
            if self._performer.in_batches:
                worked = await self._work_by_the_batch()
            else:
                worked = await self._work_one()
            if not worked:
                self._hungry.set()
                await self._idle.park()
                continue
            performed += 1
            if not performed % _CHECKPOINT_EVERY:
                await trio.lowlevel.checkpoint()

    async def _work_one(self) -> bool:
        now = trio.current_time()
        attempt = self._machine.take(now)
        if attempt is None:
            return False
        self._taken(now)
        self._finish(attempt, await self._performer.perform(attempt), now)
        return True

    async def _work_by_the_batch(self) -> bool:
        """Perform one retry, or a batch of changes; return False if there is nothing to do. In a batch, updates begin only when
        all deletions have ended.
        """
        now = trio.current_time()
        batch, is_retry = self._machine.take_batch(now)
        if not batch:
            return False
        self._taken(now)
        if is_retry:
            self._finish(batch[0], await self._performer.perform(batch[0]), now)
            return True
        for deleting in (True, False):
            attempts = [attempt for attempt in batch if attempt.deleting is deleting]
            outcomes = await self._performer.perform_batch(attempts)
            for attempt in attempts:
                self._finish(attempt, outcomes[attempt.key], now)
        return True

    def _step(self, owner: Hashable) -> None:
        self._waiters.step(owner)
        self._waiters.step(_ALL_OWNERS)

    def _finish(self, attempt: Attempt[K, R], error: ClusterError | None, began: float) -> None:
        """Record the outcome of an attempt. The outcome is ignored if the row has changed since the attempt began; no other
        task runs between this check and the record.
        """
        machine = self._machine
        entry = self._table.snapshot().get(attempt.key)
        current = 0 if entry is None else entry.revision
        draw = 0.0 if error is None else self._draw()
        if isinstance(error, UnexpectedError):
            self._log_unexpected(attempt, error)
        now = trio.current_time()
        if self._metrics is not None:
            operation = Operation.DELETE if attempt.deleting else Operation.UPDATE
            self._metrics.performed(self.name, operation, now - began, failed=error is not None)
        dropped = machine.dropped
        machine.finish(attempt, current, error, now=now, draw=draw)
        if self._metrics is not None:
            self._metrics.failing(self.name, Operation.UPDATE, len(machine.retries))
        if self._attempted is not None and machine.dropped == dropped:
            self._attempted(attempt, None if error is None else machine.retries.get(attempt.key))
        self._set_alarm()
        self._step(self._owner(attempt.row))

    def _log_unexpected(self, attempt: Attempt[K, R], error: UnexpectedError) -> None:
        """Log the traceback, unless the row's last error had the same text, or the traceback was logged for another row of the
        batch.
        """
        before, cause = self._machine.retries.get(attempt.key), error.__cause__
        if cause is not None and (before is None or str(before.error) != str(error)):
            doing = "deleting" if attempt.deleting else "updating"
            log.error("reconciler %s: %s %s raised %s", self.name, doing, attempt.key, error, exc_info=cause)
        error.__cause__ = None  # a stored error must not keep frames alive

    def _taken(self, now: float) -> None:
        """Plan the check whether the attempt that a worker has just taken is late. Wake one more worker if there is more work
        to take.
        """
        if now + self._options.patience_s < self._alarm_at:
            self._alarm.set()
        if self._machine.ready:
            self._idle.unpark()
        if not self._machine.changes_waiting:
            self._hungry.set()

    async def read(self) -> None:
        """Read changes until cancelled.

        If the stream falls too far behind, a new one is opened, and deleted rows are found by a comparison with the known keys.
        Rows that were added and removed in the meantime may have left objects, which a prune finds.
        """
        while True:
            with self._table.changes(self.name) as stream:
                self._machine.missed(self._table.snapshot(), trio.current_time())
                try:
                    await self._read(stream)
                except TrackerExpiredError:
                    self.prune()

    async def _read(self, stream: ChangeStream[K, R]) -> None:
        while True:
            await stream.changed()
            with trio.move_on_after(READ_EVERY_S):
                while self._machine.changes_waiting:
                    self._hungry = trio.Event()  # no await between the check and this line
                    await self._hungry.wait()
            self._rounds += 1
            changes = stream.take(self._options.round_size)
            self._machine.take_in(changes, stream.revision, trio.current_time())
            self._set_alarm()
            if self._machine.ready:
                self._idle.unpark()
            self._waiters.step_all()
            await trio.sleep(self._options.round_gap_s)

    async def move_due_keys(self) -> None:
        """Move keys to their lines at the times when they are due, until cancelled."""
        while True:
            self._alarm = trio.Event()
            self._performer.cut_off(self._machine.tick(trio.current_time()))
            if self._machine.ready:
                self._idle.unpark()
            self._alarm_at = self._machine.next_at()
            await trio.lowlevel.checkpoint()
            with trio.move_on_at(self._alarm_at):
                await self._alarm.wait()

    def _set_alarm(self) -> None:
        if self._machine.planned_at() < self._alarm_at:
            self._alarm.set()

    async def prune_when_due(self) -> None:
        """Prune when a prune is due and the table is initialized. New rows wait until the prune is over."""
        while True:
            with trio.move_on_at(self._pruning.next_at):
                await self._prune_asked.wait()
            self._prune_asked = trio.Event()
            snapshot = await self._table.wait_initialized()
            if self._pruning.next_at > trio.current_time():
                continue
            began = trio.current_time()
            self._pruning = pruning.started(self._pruning)
            self._machine.hold(snapshot)
            error = await self._performer.prune(snapshot)
            self._machine.release()
            if self._machine.ready:
                self._idle.unpark()
            self._pruned(error, began)

    def _pruned(self, error: ClusterError | None, began: float) -> None:
        now, before = trio.current_time(), self._pruning.error
        if isinstance(error, UnexpectedError) and str(before or "") != str(error):
            log.error("reconciler %s: pruning raised %s", self.name, error, exc_info=error.__cause__)
        if isinstance(error, UnexpectedError):
            error.__cause__ = None
        self._pruning = pruning.ended(
            self._pruning, self._options, error, now=now, took_s=now - began, draw=self._draw()
        )
        if error is not None and str(before or "") != str(error):
            pause = self._pruning.due_at - now
            log.warning("reconciler %s: pruning failed, next try in %.1f s: %s", self.name, pause, error)
        elif error is None and before is not None:
            log.info("reconciler %s: pruning succeeded again", self.name)
        if self._metrics is not None:
            self._metrics.performed(self.name, Operation.PRUNE, now - began, failed=error is not None)
            self._metrics.failing(self.name, Operation.PRUNE, 0 if error is None else 1)
