"""Whose turn it is: owners in rotation, each with its keys in the order in which they came, and a share for retries.

* An owner with `cap` keys at work is passed over until one of them is done.
* As long as there are both, each RETRY_EVERY-th key handed out is a retry: neither changes that never end nor retries that
  never end keep the other waiting (the peer gives retries what changes leave of a round, which may be nothing).
* A key that is in a line and changes keeps its place.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from wharfinger.cluster.reconciler.records import Owner, Place, Record

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

RETRY_EVERY: Final = 4


class Turns(Generic[K, R]):
    """The lines of all owners. Invariant: an owner is in a rotation iff it has keys in that line and is below the cap."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._fresh: OrderedDict[Hashable, Owner[K, R]] = OrderedDict()
        self._due: OrderedDict[Hashable, Owner[K, R]] = OrderedDict()
        self._since_retry = 0

    @property
    def fresh_ready(self) -> bool:
        """Whether there is a change that a worker may take."""
        return bool(self._fresh)

    @property
    def ready(self) -> bool:
        """Whether there is anything that a worker may take."""
        return bool(self._fresh or self._due)

    def add_fresh(self, record: Record[K, R]) -> None:
        """To the end of its owner's line of changes."""
        record.place = Place.FRESH
        owner = record.owner
        owner.fresh[record.key] = record
        if owner.running < self._cap:
            self._fresh[owner.name] = owner

    def add_due(self, record: Record[K, R]) -> None:
        """To the end of its owner's line of retries."""
        record.place = Place.DUE
        owner = record.owner
        owner.due[record.key] = record
        if owner.running < self._cap:
            self._due[owner.name] = owner

    def remove(self, record: Record[K, R]) -> None:
        """Out of the line that it is in, if it is in one."""
        owner = record.owner
        if record.place is Place.FRESH:
            del owner.fresh[record.key]
            if not owner.fresh:
                self._fresh.pop(owner.name, None)
        elif record.place is Place.DUE:
            del owner.due[record.key]
            if not owner.due:
                self._due.pop(owner.name, None)

    def take(self) -> Record[K, R] | None:
        """The next key, for a worker that has it from now on; None: there is nothing that may be begun."""
        if self._due and (not self._fresh or self._since_retry >= RETRY_EVERY - 1):
            self._since_retry = 0
            return self._taken(next(iter(self._due.values())).due.popitem(last=False)[1])
        if not self._fresh:
            return None
        self._since_retry = self._since_retry + 1 if self._due else 0
        return self._taken(next(iter(self._fresh.values())).fresh.popitem(last=False)[1])

    def take_fresh(self, most: int) -> list[Record[K, R]]:
        """Up to so many changes of the owner whose turn it is."""
        if not self._fresh:
            return []
        owner = next(iter(self._fresh.values()))
        return [self._taken(owner.fresh.popitem(last=False)[1]) for _ in range(min(most, len(owner.fresh)))]

    def take_due(self) -> Record[K, R] | None:
        """The next retry."""
        return self._taken(next(iter(self._due.values())).due.popitem(last=False)[1]) if self._due else None

    def done(self, owner: Owner[K, R]) -> None:
        """A worker has one key less of this owner."""
        owner.running -= 1
        self._rotate(owner)

    def _taken(self, record: Record[K, R]) -> Record[K, R]:
        record.place = Place.RUNNING
        record.owner.running += 1
        self._rotate(record.owner)
        return record

    def _rotate(self, owner: Owner[K, R]) -> None:
        """To the end of the rotations that the owner belongs in, and out of the others."""
        below = owner.running < self._cap
        for rotation, line in ((self._fresh, owner.fresh), (self._due, owner.due)):
            if not (line and below):
                rotation.pop(owner.name, None)
            elif owner.name in rotation:
                rotation.move_to_end(owner.name)
            else:
                rotation[owner.name] = owner
