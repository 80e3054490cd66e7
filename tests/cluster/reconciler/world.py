"""A reconciler's state machine and its table, without tasks. Tests advance the clock, and begin and end each attempt."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.cluster.reconciler.samples import Row, RowAttempt, RowTable, owner_of
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.machine import Machine
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.status import Kind
from wharfinger.cluster.tables.changes import ChangeStream

FAILED = ClusterError("it failed")


@dataclass
class World:
    """A machine, its table and its stream of changes; ``now`` is the time of the clock."""

    table: RowTable
    stream: ChangeStream[int, Row]
    options: ReconcilerOptions = field(default_factory=ReconcilerOptions)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.machine: Machine[int, Row] = Machine(owner_of, self.options)

    def take_in(self) -> None:
        """Pass all unread changes of the table to the machine."""
        self.machine.take_in(self.stream.next(), self.stream.revision, self.now)

    def take(self) -> RowAttempt:
        """Take the next attempt, which must exist."""
        attempt = self.machine.take(self.now)
        assert attempt is not None
        return attempt

    def finish(self, attempt: RowAttempt, error: ClusterError | None = None) -> None:
        entry = self.table.snapshot().get(attempt.key)
        self.machine.finish(attempt, entry.revision if entry else 0, error, now=self.now, draw=0.0)

    def run(self, error: ClusterError | None = None) -> RowAttempt:
        """Take the next attempt, finish it immediately, and return it."""
        attempt = self.take()
        self.finish(attempt, error)
        return attempt

    def rest(self) -> list[RowAttempt]:
        """Take all attempts that are ready, finish them successfully, and return them."""
        done: list[RowAttempt] = []
        while (attempt := self.machine.take(self.now)) is not None:
            self.finish(attempt)
            done.append(attempt)
        return done

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.machine.tick(self.now)

    def kind(self, key: int) -> Kind | None:
        status = self.machine.status(key)
        return status.kind if status else None

    def failures(self, key: int) -> int:
        return self.machine.retries.attempts(key)


@contextmanager
def a_world(table: RowTable, options: ReconcilerOptions | None = None) -> Iterator[World]:
    with table.changes("world") as stream:
        yield World(table, stream, options or ReconcilerOptions())
