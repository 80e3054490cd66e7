"""Whose turn it is: owners in rotation, each with its keys in the order in which they came.

* As long as there are both, each RETRY_EVERY-th turn is a retry: neither changes that never end nor retries that never end keep
  the other waiting (the peer gives retries what changes leave of a round, which may be nothing).
* As long as there are both, each SUSPECT_EVERY-th turn goes to an owner whose share was reduced (see `shares`).
* A key that is in a line and changes keeps its place.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.records import Owner, Place, Record
from wharfinger.cluster.reconciler.shares import Operation, Shares

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

RETRY_EVERY: Final = 4
SUSPECT_EVERY: Final = 4


class Turns(Generic[K, R]):
    """The lines of all owners. Invariant: an owner with keys in a line is in its rotation, unless it has its share at work."""

    def __init__(self, options: ReconcilerOptions) -> None:
        self._shares: Shares[K, R] = Shares(options)
        self._fresh: _Rotation[K, R] = _Rotation(self._shares)
        self._due: _Rotation[K, R] = _Rotation(self._shares)
        self._since_retry = 0

    @property
    def fresh_ready(self) -> bool:
        """Whether there is a change that a worker may take, as soon as it has a place."""
        return self._fresh.ready

    @property
    def ready(self) -> bool:
        """Whether there is anything that a worker may take."""
        return self._shares.free and (self._fresh.ready or (self._shares.may_retry and self._due.ready))

    @property
    def slow(self) -> int:
        """How many operations have given up their places."""
        return self._shares.slow

    def add_fresh(self, record: Record[K, R]) -> None:
        """To the end of its owner's line of changes."""
        record.place = Place.FRESH
        record.owner.fresh[record.key] = record
        self._fresh.add(record.owner)

    def add_due(self, record: Record[K, R]) -> None:
        """To the end of its owner's line of retries."""
        record.place = Place.DUE
        record.owner.due[record.key] = record
        self._due.add(record.owner)

    def remove(self, record: Record[K, R]) -> None:
        """Out of the line that it is in, if it is in one."""
        owner = record.owner
        if record.place is Place.FRESH:
            del owner.fresh[record.key]
            if not owner.fresh:
                self._fresh.discard(owner)
        elif record.place is Place.DUE:
            del owner.due[record.key]
            if not owner.due:
                self._due.discard(owner)

    def take(self, now: float, most: int = 1) -> tuple[Operation[K, R], list[Record[K, R]]] | None:
        """The next operation, for a worker that has it from now on: one retry, or up to ``most`` changes of one owner.

        None: there is nothing that may be begun.
        """
        if not self._shares.free:
            return None
        retries = self._shares.may_retry and self._due.ready
        if retries and (self._since_retry >= RETRY_EVERY - 1 or not self._fresh.ready):
            owner = self._due.next()
            if owner is not None:
                self._since_retry = 0
                return self._taken(owner, [owner.due.popitem(last=False)[1]], now, retry=True)
        owner = self._fresh.next()
        if owner is not None:
            self._since_retry = self._since_retry + 1 if retries else 0
            count = min(most, len(owner.fresh))
            return self._taken(owner, [owner.fresh.popitem(last=False)[1] for _ in range(count)], now, retry=False)
        return self.take(now, most) if self.ready else None  # what looked ready was an owner at its share

    def done(self, operation: Operation[K, R], *, failed: bool) -> None:
        """An operation is over."""
        self._shares.end(operation, failed=failed)
        self._rotate(operation.owner)

    def tick(self, now: float) -> None:
        """Have operations that are slow by now give up their places."""
        while (operation := self._shares.take_slow(now)) is not None:
            self._rotate(operation.owner)

    def next_at(self) -> float:
        """When :meth:`tick` has something to do; infinity: nothing is planned."""
        return self._shares.next_at()

    def _taken(
        self, owner: Owner[K, R], records: list[Record[K, R]], now: float, *, retry: bool
    ) -> tuple[Operation[K, R], list[Record[K, R]]]:
        for record in records:
            record.place = Place.RUNNING
        operation = self._shares.begin(owner, now, retry=retry)
        self._rotate(owner)
        return operation, records

    def _rotate(self, owner: Owner[K, R]) -> None:
        """To the end of the rotations that the owner belongs in, and out of the others."""
        for rotation, line in ((self._fresh, owner.fresh), (self._due, owner.due)):
            rotation.discard(owner)
            if line:
                rotation.add(owner)


class _Rotation(Generic[K, R]):
    """Owners with keys in one kind of line: those with their whole share, and those whose share was reduced."""

    def __init__(self, shares: Shares[K, R]) -> None:
        self._shares = shares
        self._whole: OrderedDict[Hashable, Owner[K, R]] = OrderedDict()
        self._reduced: OrderedDict[Hashable, Owner[K, R]] = OrderedDict()
        self._since_reduced = 0

    @property
    def ready(self) -> bool:
        """Whether there is somebody's turn."""
        return bool(self._whole or (self._reduced and self._shares.may_suspect))

    def add(self, owner: Owner[K, R]) -> None:
        """To the end; an owner that is in it already keeps its place, and one that has its share at work stays out."""
        if self._shares.allows(owner):
            (self._reduced if owner.halvings else self._whole).setdefault(owner.name, owner)

    def discard(self, owner: Owner[K, R]) -> None:
        """Out of it."""
        self._whole.pop(owner.name, None)
        self._reduced.pop(owner.name, None)

    def next(self) -> Owner[K, R] | None:
        """The owner whose turn it is; None: nobody's. Owners that have got their share meanwhile leave the rotation."""
        while self.ready:
            reduced = bool(self._reduced) and self._shares.may_suspect
            if reduced and (not self._whole or self._since_reduced >= SUSPECT_EVERY - 1):
                self._since_reduced, owners = 0, self._reduced
            else:
                self._since_reduced, owners = (self._since_reduced + 1 if reduced else 0), self._whole
            owner = next(iter(owners.values()))
            if self._shares.allows(owner):
                return owner
            self.discard(owner)
        return None
