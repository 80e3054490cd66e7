"""What is to be looked at again though it is Done: who asked for it and waits for the rate, and who will have been Done for long.

So many are let through in a second, and after a rest that many at once: a drift of one object is corrected now, one of
everything over some seconds. Ages are in the order in which things were done, not in that of revisions: what was refreshed
lately is young, however old its row is (the peer goes by revision, and stops at the first one that is young).
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from wharfinger.cluster.reconciler.records import Record
from wharfinger.cluster.reconciler.retries import NEVER

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

BURST_S: Final = 1.0
"""A rest longer than this earns nothing more."""


class Refreshes(Generic[K, R]):
    """``age_s``: what was done so long ago is old (0: never); ``per_s``: how many are let through in a second."""

    def __init__(self, age_s: float, per_s: float) -> None:
        self._age_s = age_s
        self._gap_s = 1 / per_s
        self._next_at = -NEVER
        self._limited: OrderedDict[K, Record[K, R]] = OrderedDict()
        self._aged: OrderedDict[K, Record[K, R]] = OrderedDict()

    def ask(self, record: Record[K, R]) -> None:
        """It waits for the rate."""
        self._limited[record.key] = record

    def done(self, record: Record[K, R]) -> None:
        """It is Done as of now: nobody is younger."""
        if self._age_s:
            self._aged[record.key] = record

    def withdraw(self, record: Record[K, R]) -> None:
        """It is neither waiting nor Done any more."""
        self._limited.pop(record.key, None)
        self._aged.pop(record.key, None)

    def oldest(self, now: float) -> Record[K, R] | None:
        """The one that was Done longest ago, if it is old."""
        if not self._aged or next(iter(self._aged.values())).at + self._age_s > now:
            return None
        return next(iter(self._aged.values()))

    def let_through(self, now: float) -> Record[K, R] | None:
        """The next of those who wait, if the rate allows it now; it counts, and is to leave by :meth:`withdraw`."""
        if not self._limited or self._next_at > now:
            return None
        self._next_at = max(self._next_at, now - BURST_S) + self._gap_s
        return next(iter(self._limited.values()))

    def next_at(self) -> float:
        """When there is something to do; infinity: nothing is planned."""
        at = self._next_at if self._limited else NEVER
        return min(at, next(iter(self._aged.values())).at + self._age_s) if self._aged else at
