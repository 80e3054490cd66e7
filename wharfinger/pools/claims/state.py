"""The state of the claim machine: the members, those that are ready, reservations, and the requests.

It is mutable, and belongs to the machine: after a call of :func:`wharfinger.pools.claims.machine.step`, only the returned state
may be used. Copying thousands of members for every event would cost more than the claims.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from wharfinger.pools.claims.events import Limits, Member

_STALE_ENTRIES: Final = 64
"""The limit on stale entries, which belong to requests that no longer wait. Both heaps are rebuilt when, in one of them, the
stale entries outnumber the other entries by more than this number.
"""


@dataclass(slots=True)
class Waiting:
    """A request that waits for a member. ``conflicts`` is the number of its claims that ended with a conflict."""

    request: int
    deadline: float
    conflicts: int = 0


@dataclass(slots=True)
class Claim:
    """A claim under way. ``answered``: its request was answered already, for example at its deadline, so no caller takes the
    member if the claim succeeds.
    """

    waiting: Waiting
    member: Member
    answered: bool = False


@dataclass(slots=True)
class Counters:
    """The numbers of requests and claims of a pool since it was opened, for metrics."""

    accepted: int = 0
    claims: int = 0
    succeeded: int = 0
    conflicts: int = 0
    failed: int = 0
    expired: int = 0
    evicted: int = 0
    """The number of times that a ready member was removed, stopped being idle, or became protected, before it was claimed."""
    protected: int = 0
    """The number of times that an idle member did not become ready, because it was protected (about to be removed)."""
    recycled: int = 0


class RequestQueue:
    """The requests that wait, in the order of their numbers, and the earliest of their deadlines.

    A request whose claim had a conflict is put back with its old number, and so before all later requests. One heap sorts the
    requests by number, and another by deadline. The entry of a request that no longer waits stays in a heap until it reaches the
    top, or until such entries are the majority.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, Waiting] = {}
        self._order: list[int] = []
        self._deadlines: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, request: int) -> bool:
        return request in self._waiting

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers of the requests in the order in which they will be served."""
        return iter(sorted(self._waiting))

    def put(self, waiting: Waiting) -> None:
        """Add a request at the place of its number."""
        self._waiting[waiting.request] = waiting
        heappush(self._order, waiting.request)
        heappush(self._deadlines, (waiting.deadline, waiting.request))

    def take(self) -> Waiting:
        """Remove the first request, and return it. The queue must not be empty."""
        while (number := heappop(self._order)) not in self._waiting:
            pass
        return self._removed(number)

    def remove(self, request: int) -> Waiting | None:
        """Remove a request, and return it; None if it does not wait."""
        return self._removed(request) if request in self._waiting else None

    def take_expired(self, now: float) -> Iterator[Waiting]:
        """Remove and yield the requests whose deadline is ``now`` or earlier, earliest deadline first."""
        while self._waiting and self.deadline() <= now:
            yield self._removed(heappop(self._deadlines)[1])

    def deadline(self) -> float:
        """Return the earliest deadline; infinite if no request waits."""
        while self._deadlines and self._deadlines[0][1] not in self._waiting:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else math.inf

    def _removed(self, request: int) -> Waiting:
        waiting = self._waiting.pop(request)
        live = len(self._waiting)
        for heap in (self._order, self._deadlines):
            if len(heap) > 2 * live + _STALE_ENTRIES:
                self._order = sorted(self._waiting)
                self._deadlines = sorted((each.deadline, number) for number, each in self._waiting.items())
                break
        return waiting


@dataclass(slots=True)
class PoolState:
    """Everything that the machine knows.

    ``members`` is the cache as it was reported, by uid. ``ready`` are the members that can be handed out, in the order in which
    they became ready. ``reserved`` are the members that must not be handed out. Its value for a member is None while a claim of
    the member is under way. Afterwards, the value is a version of the member: the reservation ends when the cache shows this
    version or a later one.
    """

    limits: Limits
    members: dict[str, Member] = field(default_factory=dict)
    ready: dict[str, None] = field(default_factory=dict)
    reserved: dict[str, int | None] = field(default_factory=dict)
    line: RequestQueue = field(default_factory=RequestQueue)
    claims: dict[int, Claim] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    closed: bool = False


def new_pool_state(limits: Limits) -> PoolState:
    """Return the state of a pool without members and requests."""
    return PoolState(limits)
