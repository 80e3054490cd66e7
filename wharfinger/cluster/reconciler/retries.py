"""The failing keys, with the number of their failures and the times of their retries.

Retry times are in a heap; failures are counted by key in a separate mapping. When a key is due and popped from the heap, its
count is kept until the key succeeds or its row changes, so that pauses continue to grow if the retry fails. Only the newest of
a key's entries in the heap counts.
"""

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final, Generic, TypeVar

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.options import ReconcilerOptions

K = TypeVar("K", bound=Hashable)

NEVER: Final = float("inf")
HISTORY: Final = 5
"""The number of the latest outcomes that are remembered for a failing key."""
JITTER: Final = 0.25
"""The largest fraction by which a pause is shortened at random, so that keys that failed together are not retried together."""
_STALE: Final = 64


def pause_s(failures: int, *, first_s: float, most_s: float, draw: float = 0.0) -> float:
    """Return the pause after this number of failures in a row (1 or more): it doubles each time, up to ``most_s``. ``draw`` is a
    random number in [0, 1).
    """
    whole = min(first_s * 2.0 ** min(failures - 1, 64), most_s)
    return whole * (1 - JITTER * draw)


def pause_after(error: ClusterError, failures: int, options: ReconcilerOptions, draw: float) -> float:
    """Return the pause before the retry after an error. After a permanent error, which only a change can resolve, it is about
    ``permanent_retry_s``; otherwise it grows with ``failures`` (:func:`pause_s`).

    If the server asked for a longer pause after a transient error, that pause is used, up to ``permanent_retry_s``.
    """
    longest = options.permanent_retry_s
    if not error.transient:
        return pause_s(1, first_s=longest, most_s=longest, draw=draw)
    pause = pause_s(failures, first_s=options.first_retry_s, most_s=options.max_retry_s, draw=draw)
    return max(pause, min(error.retry_after_s or 0.0, longest))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The number (``times``) of failures in a row with the same message. ``at`` is the time of the last one (trio's clock)."""

    at: float
    message: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Failure(Generic[K]):
    """The failure of one key. Times are trio's clock; ``next_at`` is in the past while the key is being retried. ``attempts``:
    the number of failures since the key last succeeded or its row changed. ``permanent``: only a change is expected to help,
    so the key is retried rarely. ``since``: the time of the first of these failures; ``history``: the last few of them,
    oldest first.
    """

    key: K
    error: ClusterError
    attempts: int
    next_at: float
    permanent: bool
    since: float
    history: tuple[Outcome, ...] = ()


class Retries(Generic[K]):
    """The failures by key, and the times of the retries."""

    def __init__(self) -> None:
        self._failures: dict[K, Failure[K]] = {}
        self._times: list[tuple[float, int, K]] = []
        self._queued: dict[K, int] = {}
        self._serials = count()

    def __len__(self) -> int:
        """Return the number of failing keys."""
        return len(self._failures)

    def __iter__(self) -> Iterator[Failure[K]]:
        """Iterate over the failures; the key that has failed for the longest time comes first."""
        return iter(self._failures.values())

    def get(self, key: K) -> Failure[K] | None:
        """Return the failure of this key; None if its last attempt did not fail."""
        return self._failures.get(key)

    def add(self, key: K, error: ClusterError, *, now: float, pause: float) -> Failure[K]:
        """Record a failure; the key is retried after ``pause`` seconds. The error's traceback is dropped, because it would keep
        frames alive.
        """
        old = self._failures.get(key)
        message = str(error) or type(error).__name__
        failure = Failure(
            key=key,
            error=error.with_traceback(None),
            attempts=old.attempts + 1 if old else 1,
            next_at=now + pause,
            permanent=not error.transient,
            since=old.since if old else now,
            history=_remembered(old.history if old else (), now, message),
        )
        self._failures[key] = failure
        serial = self._queued[key] = next(self._serials)
        heapq.heappush(self._times, (failure.next_at, serial, key))
        return failure

    def attempts(self, key: K) -> int:
        """Return the number of a key's failures in a row."""
        failure = self._failures.get(key)
        return failure.attempts if failure else 0

    def clear(self, key: K) -> bool:
        """Forget the failures of a key that succeeded or changed; return False if there were no failures."""
        if self._failures.pop(key, None) is None:
            return False
        self.withdraw(key)
        return True

    def withdraw(self, key: K) -> None:
        """Withdraw the retry time of a key that is attempted for another reason; its failures still count."""
        if self._queued.pop(key, None) is not None and len(self._times) > 2 * len(self._queued) + _STALE:
            self._times = [entry for entry in self._times if self._queued.get(entry[2]) == entry[1]]
            heapq.heapify(self._times)

    def pop_due(self, now: float) -> K | None:
        """Return the due key that has waited longest; its failures are kept. None: nothing is due."""
        if self.next_at() > now:
            return None
        _, _, key = heapq.heappop(self._times)
        del self._queued[key]
        return key

    def next_at(self) -> float:
        """Return when the next retry is due; infinity: none is planned."""
        times = self._times
        while times and self._queued.get(times[0][2]) != times[0][1]:
            heapq.heappop(times)
        return times[0][0] if times else NEVER


def _remembered(history: tuple[Outcome, ...], now: float, message: str) -> tuple[Outcome, ...]:
    if history and history[-1].message == message:
        return (*history[:-1], Outcome(now, message, history[-1].times + 1))
    return (*history, Outcome(now, message))[-HISTORY:]
