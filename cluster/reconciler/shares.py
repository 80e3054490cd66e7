"""The places for operations, and the share of them that each owner may take.

* There are `concurrency` places. An operation that has run for `slow_s` gives its place to another one and runs on; at most
  `slow_concurrency` operations do that at a time, further ones keep their places.
* An owner may have `owner_concurrency` operations at work. Each of its operations that becomes slow halves that, down to one; a
  success restores it, and a failure that comes promptly doubles it.
* The more operations are slow, the fewer any owner may have at work, down to one.
* Owners with a reduced share together get at most half of the places, and retries at most three quarters: a change of an owner
  whose operations end promptly finds a place at once.

So owners that hang delay others only until their operations become slow: N of them that were not known to hang take all places
for at most ``slow_s`` times ``N / concurrency``, rounded up, as long as fewer than `slow_concurrency` operations are slow.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.records import Owner

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

MOST_HALVINGS: Final = 16


@dataclass(slots=True, eq=False)
class Operation(Generic[K, R]):
    """One operation at work, or one batch. ``suspect``: its owner's share was reduced when it began."""

    owner: Owner[K, R]
    since: float
    retry: bool
    suspect: bool
    slow: bool = False


class Shares(Generic[K, R]):
    """Counts of what is at work. Pure; times are those of the caller."""

    def __init__(self, options: ReconcilerOptions) -> None:
        self._options = options
        self._most_retries = max(1, options.concurrency - max(1, options.concurrency // 4))
        self._most_suspects = max(1, options.concurrency // 2)
        self._watched: dict[Operation[K, R], None] = {}
        self._placed = 0
        self._retries = 0
        self._suspects = 0
        self.slow = 0

    @property
    def free(self) -> bool:
        """Whether there is a place."""
        return self._placed < self._options.concurrency

    @property
    def may_retry(self) -> bool:
        """Whether retries have places left."""
        return self._retries < self._most_retries

    @property
    def may_suspect(self) -> bool:
        """Whether owners with a reduced share have places left."""
        return self._suspects < self._most_suspects

    def allows(self, owner: Owner[K, R]) -> bool:
        """Whether the owner has fewer operations at work than its share."""
        most, limit = self._options.owner_concurrency, self._options.slow_concurrency
        crowded = most * (limit - self.slow) // limit
        return owner.running < max(1, min(most >> owner.halvings, crowded))

    def begin(self, owner: Owner[K, R], now: float, *, retry: bool) -> Operation[K, R]:
        """Give the owner a place."""
        operation = Operation(owner, now, retry, owner.halvings > 0)
        owner.running += 1
        self._watched[operation] = None
        self._count(operation, 1)
        return operation

    def next_at(self) -> float:
        """When the next operation becomes slow if it does not end before; infinity: none."""
        for operation in self._watched:
            return operation.since + self._options.slow_s
        return float("inf")

    def take_slow(self, now: float) -> Operation[K, R] | None:
        """An operation that is slow by now, once; its owner's share is halved. None: there is none."""
        if self.next_at() > now:
            return None
        operation = next(iter(self._watched))
        del self._watched[operation]
        operation.owner.halvings = min(operation.owner.halvings + 1, MOST_HALVINGS)
        if self.slow < self._options.slow_concurrency:
            self._count(operation, -1)
            operation.slow = True
            self.slow += 1
        return operation

    def end(self, operation: Operation[K, R], *, failed: bool) -> None:
        """The operation is over."""
        owner = operation.owner
        owner.running -= 1
        prompt = operation in self._watched
        self._watched.pop(operation, None)
        if operation.slow:
            self.slow -= 1
        else:
            self._count(operation, -1)
        if not failed:
            owner.halvings = 0
        elif prompt:
            owner.halvings = max(0, owner.halvings - 1)

    def _count(self, operation: Operation[K, R], by: int) -> None:
        self._placed += by
        self._retries += by * operation.retry
        self._suspects += by * operation.suspect
