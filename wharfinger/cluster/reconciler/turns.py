"""The choice of the key that a worker attempts next. No owner can keep the others waiting for long.

Places. An operation takes one of the ordinary places (`concurrency`) or one of the slow ones (`slow_concurrency`)::

    first attempts, and retries of owners
    that are not slow ─────────────────────► ordinary place ──► done
                                                   │ not done after `patience_s`: it is late
                                                   ▼
    retries of slow owners ────────────────────► slow place ──► done, or cut off after `operation_s`

So every ordinary place is free again after `patience_s`, however many operations hang. An owner becomes slow when one of its
operations is late, and stays slow until an operation of it succeeds in time. If there is no free slow place for a late
operation, one of the late operations is cut off (`Turns._victim`). Its retry has a slow place from the beginning if the owner
is still slow; a retry that began in a slow place is cut off only after `operation_s`.

Turns. The owner that has used the least time of workers goes first; a failure counts for at least `patience_s`, and an owner
that had nothing to do for a while begins a little ahead of the others. So a new owner, or an owner whose operations are quick,
goes ahead of owners whose operations hang, fail or are slow. As long as there are both changes and retries, each RETRY_EVERY-th
key handed out for an ordinary place is a retry.

Shares. An owner has at most `owner_concurrency` operations at once, half of that number after one late operation, a quarter
after two, and so on down to two operations; one of these two is kept for first attempts. A key that changes again while it is
in the line of changes keeps its position.

The bound, which tests/cluster/reconciler/test_fairness.py checks: the first attempt at a row of an owner that has nothing else
to do begins within `patience_s * (2 + ceil(2 * U / concurrency))` seconds after its change was read. U is the number of
other owners that had no turn before the change was read, and whose first rows were written before this attempt begins.
"""

import heapq
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.records import Owner, Place, Record, Work

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

RETRY_EVERY: Final = 4
DEBT: Final = 10
"""The used time of an owner is counted only up to this multiple of `patience_s` above that of the other owners. So an owner
that has used much time does not wait long for its next turn.
"""
_STALE: Final = 64
_NONE: Final = -1


class Lane(Generic[K, R]):
    """The owners that have something to do, ordered by the time for which they have used workers.

    An owner may have several entries in the heap; only its newest entry counts. While the lane has only one owner, the time in
    its entry is not updated. It is updated when a second owner arrives.
    """

    __slots__ = ("_heap", "_last", "_serials")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Owner[K, R]]] = []
        self._serials: dict[Hashable, int] = {}
        self._last = 0

    def __bool__(self) -> bool:
        """Return whether the lane has an owner."""
        return bool(self._serials)

    def __contains__(self, name: object) -> bool:
        """Return whether this owner is in the lane."""
        return name in self._serials

    def put(self, owner: Owner[K, R]) -> None:
        """Add an owner in the order of its used time, behind the owners with the same used time. If the owner is in the lane
        already, and has used more time since it was added, move it.
        """
        serials = self._serials
        if len(serials) == 1:
            if owner.name in serials:
                return
            self._push(self.first())
        self._push(owner)
        if len(self._heap) > 2 * len(serials) + _STALE:
            self._heap = [entry for entry in self._heap if serials.get(entry[2].name) == entry[1]]
            heapq.heapify(self._heap)

    def _push(self, owner: Owner[K, R]) -> None:
        self._last += 1
        self._serials[owner.name] = self._last
        heapq.heappush(self._heap, (owner.used, self._last, owner))

    def drop(self, owner: Owner[K, R]) -> None:
        """Remove an owner; do nothing if the owner is not in the lane."""
        self._serials.pop(owner.name, None)

    def first(self) -> Owner[K, R]:
        """Return the owner whose turn it is; at least one owner must be in the lane."""
        heap, serials = self._heap, self._serials
        while serials.get(heap[0][2].name, _NONE) != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][2]


@dataclass(slots=True)
class Places:
    """The numbers of ordinary and of slow places that operations take now (see the docstring of this module)."""

    ordinary: int = 0
    slow: int = 0


class Turns(Generic[K, R]):
    """The owners that have something to do, in one lane for each kind of work, and the numbers of taken places (see the
    docstring of this module). An owner is in a lane if and only if it has keys for that lane and may have one more
    operation."""

    def __init__(self, options: ReconcilerOptions) -> None:
        self._options = options
        self._cap = options.owner_concurrency
        self._charge = options.patience_s
        self._changes: Lane[K, R] = Lane()
        self._retries: Lane[K, R] = Lane()
        self._slow_retries: Lane[K, R] = Lane()
        self._since_retry = 0
        self._used = 0.0
        self._timely: dict[Work[K, R], None] = {}
        self._late: dict[Work[K, R], None] = {}
        self.places = Places()

    @property
    def changes_waiting(self) -> bool:
        """Return whether an owner has a waiting change and may begin one more operation."""
        return bool(self._changes)

    @property
    def ready(self) -> bool:
        """Return whether there is anything that a worker may take."""
        places = self.places
        if places.ordinary < self._options.concurrency and (self._changes or self._retries):
            return True
        return bool(self._slow_retries) and places.slow < self._options.slow_concurrency

    # --- lines -------------------------------------------------------------------------------------------------------------

    def add_fresh(self, record: Record[K, R]) -> None:
        """Add a key at the end of its owner's line of changes."""
        record.place = Place.FRESH
        owner = record.owner
        self._returned(owner)
        owner.fresh = line = owner.fresh or OrderedDict()
        line[record.key] = record
        if len(line) == 1:
            self._place(owner)

    def add_due(self, record: Record[K, R]) -> None:
        """Add a key at the end of its owner's line of retries."""
        record.place = Place.DUE
        owner = record.owner
        self._returned(owner)
        owner.due = line = owner.due or OrderedDict()
        line[record.key] = record
        if len(line) == 1:
            self._place(owner)

    def remove(self, record: Record[K, R]) -> None:
        """Remove a key from the line in which it waits, if there is one."""
        owner = record.owner
        if record.place is Place.FRESH and owner.fresh is not None:
            del owner.fresh[record.key]
            owner.fresh = owner.fresh or None
        elif record.place is Place.DUE and owner.due is not None:
            del owner.due[record.key]
            owner.due = owner.due or None
        else:
            return
        self._place(owner)

    # --- work --------------------------------------------------------------------------------------------------------------

    def take(self, now: float, most: int = 1) -> tuple[Work[K, R], list[Record[K, R]]] | None:
        """Return the next work: one retry, or up to ``most`` changes of one owner; None if no work may begin."""
        places, slow = self.places, False
        if places.ordinary < self._options.concurrency and (self._changes or self._retries):
            if self._retries and (not self._changes or self._since_retry >= RETRY_EVERY - 1):
                self._since_retry = 0
                owner, retry = self._retries.first(), True
            else:
                self._since_retry = self._since_retry + 1 if self._retries else 0
                owner, retry = self._changes.first(), False
        elif self._slow_retries and places.slow < self._options.slow_concurrency:
            owner, retry, slow = self._slow_retries.first(), True, True
        else:
            return None
        line = (owner.due if retry else owner.fresh) or OrderedDict()
        records = [line.popitem(last=False)[1] for _ in range(1 if retry else min(most, len(line)))]
        owner.fresh, owner.due = owner.fresh or None, owner.due or None
        work: Work[K, R] = Work(owner, tuple([record.key for record in records]), now, retry, slow, len(records))
        for record in records:
            record.place = Place.RUNNING
            record.work = work
        self._begin(work)
        return work, records

    def _begin(self, work: Work[K, R]) -> None:
        owner = work.owner
        owner.running += work.left
        if work.retry:
            owner.retrying += 1
        if work.slow:
            self.places.slow += 1
        else:
            self._timely[work] = None
            self.places.ordinary += 1
        self._used = max(self._used, owner.used)
        owner.used += self._charge
        self._place(owner)

    def done(self, work: Work[K, R], now: float, *, failed: bool) -> None:
        """Record that one key of a worker's keys is done. After the last one, the worker's place is free."""
        owner = work.owner
        owner.running -= 1
        work.left -= 1
        work.failed = work.failed or failed
        if work.left:
            self._place(owner)
            return
        if work.retry:
            owner.retrying -= 1
        took = now - work.began
        in_time = took < self._options.patience_s
        if not work.slow:
            del self._timely[work]
            self.places.ordinary -= 1
        else:
            self.places.slow -= 1
            if work in self._late:
                del self._late[work]
            elif work.failed and not in_time:
                owner.late += 1
        if in_time and not work.failed:
            owner.late = 0
        owner.used += max(took, self._charge) - self._charge if work.failed else took - self._charge
        owner.used = min(owner.used, self._used + DEBT * self._charge)
        self._place(owner)

    # --- time --------------------------------------------------------------------------------------------------------------

    def late_at(self) -> float:
        """Return when the next operation becomes late; infinity: no operation has an ordinary place."""
        return next(iter(self._timely)).began + self._options.patience_s if self._timely else float("inf")

    def tick(self, now: float) -> list[Work[K, R]]:
        """Move the operations that have become late from ordinary places to slow ones. If more than ``slow_concurrency`` slow
        places are then in use, choose operations to cut off, and return them.
        """
        cut: list[Work[K, R]] = []
        while self.late_at() <= now:
            work = next(iter(self._timely))
            del self._timely[work]
            work.owner.late += 1
            work.slow = True
            self.places.ordinary -= 1
            self.places.slow += 1
            self._late[work] = None
            if self.places.slow - sum(one.cut for one in self._late) > self._options.slow_concurrency:
                victim = self._victim()
                victim.cut = True
                cut.append(victim)
            self._place(work.owner)
        return cut

    def _victim(self) -> Work[K, R]:
        """Return the operation that is cut off to free a slow place: the oldest late operation of the owner with the most late
        operations. A retry that had a slow place from its beginning does not count as late, and is never returned.
        """
        uncut = [work for work in self._late if not work.cut]
        counts: dict[Hashable, int] = {}
        for work in uncut:
            counts[work.owner.name] = counts.get(work.owner.name, 0) + 1
        return max(uncut, key=lambda work: (counts[work.owner.name], work.owner.late, -work.began))

    # --- lanes -------------------------------------------------------------------------------------------------------------

    def _returned(self, owner: Owner[K, R]) -> None:
        """Update the used time of an owner that had nothing to do, so that it cannot go ahead of the others for long: the owner
        gets the used time of the others, minus a small advantage.
        """
        if not (owner.fresh or owner.due or owner.running):
            owner.used = max(owner.used, self._used - self._charge)

    def _place(self, owner: Owner[K, R]) -> None:
        """Put an owner into the lanes to which it belongs, ordered by the time that the owner has used, and remove it from
        all other lanes.
        """
        share = self._cap if not owner.late else min(self._cap, max(2, self._cap >> min(owner.late, 32)))
        below = owner.running < share
        if owner.running and owner.name not in self._changes and owner.name not in self._retries:
            owner.used = max(
                owner.used, self._used
            )  # an owner that only waited for a free place of its share gets no advantage
        if below and owner.fresh:
            self._changes.put(owner)
        else:
            self._changes.drop(owner)
        if below and owner.due and owner.retrying < max(1, share - max(1, share // 4)):
            wanted, other = (self._slow_retries, self._retries) if owner.late else (self._retries, self._slow_retries)
            wanted.put(owner)
            other.drop(owner)
        elif self._retries or self._slow_retries:
            self._retries.drop(owner)
            self._slow_retries.drop(owner)
