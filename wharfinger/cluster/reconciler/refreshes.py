"""The refreshes: objects that are checked again although their rows have not changed, because a refresh was requested or
because they were last applied long ago.

The number of refreshes per second is limited, and the same number is the largest burst. So the drift of one object is corrected
immediately, and the drift of many objects little by little. The age of a key is the time since it was last Done: a key that was
refreshed lately is young, however old its row is. (cilium's statedb visits keys by revision, and stops at the first young key.)
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from wharfinger.cluster.reconciler.records import Record
from wharfinger.cluster.reconciler.retries import NEVER

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

BURST_S: Final = 1.0
"""The limit on a burst of refreshes: at most as many as the rate allows in this time, in seconds, are made at once after a time
without refreshes.
"""


class Refreshes(Generic[K, R]):
    """The requested and the periodic refreshes.

    ``age_s``: a row that was done this long ago is refreshed (0: never). ``per_s``: the number of refreshes allowed in a
    second.
    """

    def __init__(self, age_s: float, per_s: float) -> None:
        self._age_s = age_s
        self._gap_s = 1 / per_s
        self._next_at = -NEVER
        self._limited: OrderedDict[K, Record[K, R]] = OrderedDict()
        self._aged: OrderedDict[K, Record[K, R]] = OrderedDict()

    def ask(self, record: Record[K, R]) -> None:
        """Request a refresh, which is made as soon as the rate allows it."""
        self._limited[record.key] = record

    def done(self, record: Record[K, R]) -> None:
        """Record that the row of a key was applied just now. With ``age_s``, the row is refreshed when it becomes that old."""
        if self._age_s:
            self._aged[record.key] = record

    def withdraw(self, record: Record[K, R]) -> None:
        """Forget the key of ``record``: it waits for no refresh, and is not refreshed because of its age."""
        self._limited.pop(record.key, None)
        self._aged.pop(record.key, None)

    def oldest(self, now: float) -> Record[K, R] | None:
        """Return the record of the key whose row was done longest ago, if that is at least ``age_s`` ago; None otherwise."""
        if not self._aged or next(iter(self._aged.values())).at + self._age_s > now:
            return None
        return next(iter(self._aged.values()))

    def take_allowed(self, now: float) -> Record[K, R] | None:
        """Return the record of the next waiting key, if the rate allows a refresh now; None otherwise.

        The refresh then counts as made. The caller must remove the key with :meth:`withdraw`.
        """
        if not self._limited or self._next_at > now:
            return None
        self._next_at = max(self._next_at, now - BURST_S) + self._gap_s
        return next(iter(self._limited.values()))

    def next_at(self) -> float:
        """Return when there is something to do; infinity: nothing is planned."""
        at = self._next_at if self._limited else NEVER
        return min(at, next(iter(self._aged.values())).at + self._age_s) if self._aged else at
