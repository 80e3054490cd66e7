"""Packages that hang do not delay other packages. The tests check the bound that `wharfinger.queue.slots_machine` states, in
virtual time.

A daemon with any limits gets N bad packages. Their work takes a thousand times as long as other work, fails, and is then
requested again. Each of H good packages requests one slot for work of length 1. Bad packages cannot take all slots: r slots
always remain for other packages. So good work waits only for other good work, and none of it waits for longer than ceil(H / r),
whatever N is.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.queue.slots_machine import Asked, Event, Kind, Outcome, Returned, SlotLimits, fresh, step

HANGS = 1000
WORK = (Kind.DOWNLOAD, Kind.RENDER, Kind.HOOK, Kind.LOAD)


@dataclass(frozen=True)
class Work:
    """A piece of work, with its package and the time of its request. ``bad`` work hangs, fails, and is requested again."""

    kind: Kind
    package: str
    source: str
    at: int
    bad: bool


@dataclass
class Neighbours:
    """A model of `wharfinger.queue.slots`, which passes events to the state machine of slots. Its clock is virtual, and jumps
    from one event to the next.
    """

    limits: SlotLimits
    until: int
    now: int = 0
    asked: dict[int, tuple[Work, int]] = field(default_factory=dict)
    waited: dict[Work, int] = field(default_factory=dict)
    agenda: list[tuple[int, int, bool, Work]] = field(default_factory=list)

    def run(self, works: Sequence[Work]) -> None:
        """Run until all events are processed, or until the time limit."""
        self.state = fresh(self.limits)
        for number, work in enumerate(works):
            heapq.heappush(self.agenda, (work.at, number, False, work))
        while self.agenda and self.agenda[0][0] <= self.until:
            self.now, _, ends, work = heapq.heappop(self.agenda)
            if ends:
                outcome = Outcome.SLOW if work.bad else Outcome.DONE
                self.send(Returned(work.kind, work.package, work.source, outcome))
            if not ends or work.bad:
                number = len(self.asked)
                self.asked[number] = (work, self.now)
                self.send(Asked(number, work.kind, work.package, work.source))

    def send(self, event: Event) -> None:
        self.state, granted = step(self.state, event)
        for effect in granted:
            work, since = self.asked[effect.request]
            if not work.bad:
                self.waited[work] = self.now - since
            heapq.heappush(self.agenda, (self.now + (HANGS if work.bad else 1), -effect.request, True, work))


limits = st.builds(
    SlotLimits,
    work=st.integers(2, 20),
    downloads=st.integers(2, 9),
    renders=st.integers(2, 9),
    hooks=st.integers(2, 9),
    loads=st.integers(2, 9),
    source_share=st.integers(1, 99),
    namespace_share=st.integers(1, 99),
)
times = st.integers(0, 3 * HANGS)


def good(kind: Kind, when: Sequence[int]) -> list[Work]:
    """Return pieces of good work. Each has its own namespace and its own source, so no two of them count against the same share
    of slots.
    """
    return [Work(kind, f"good{number}.x", f"good{number}.example", at, False) for number, at in enumerate(when)]


def check(limits: SlotLimits, bad: list[Work], others: list[Work], reserve: int) -> None:
    neighbours = Neighbours(limits, until=11 * HANGS)  # The last good work requests its slot at 10 * HANGS.
    neighbours.run([*bad, *others])
    bound = ceil(len(others) / reserve)
    assert reserve >= 1
    assert {work for work in others if neighbours.waited.get(work, HANGS) > bound} == set()


@given(
    limits=limits,
    bad=st.lists(st.tuples(st.sampled_from(WORK), times), max_size=40),
    kind=st.sampled_from(WORK),
    others=st.lists(times, min_size=1, max_size=12),
)
def test_bad_packages_of_one_namespace_do_not_delay_others(
    limits: SlotLimits, bad: list[tuple[Kind, int]], kind: Kind, others: list[int]
) -> None:
    hanging = [Work(each, f"bad.p{number}", f"bad{number}.example", at, True) for number, (each, at) in enumerate(bad)]
    begun = fresh(limits)
    usable = min(begun.kinds[kind].limit, begun.work.limit)
    reserve = min(usable - begun.kinds[kind].shares.group, begun.work.limit - begun.work.share)
    check(limits, hanging, good(kind, others), reserve)


@given(
    limits=limits,
    bad=st.lists(st.tuples(st.integers(0, 20), times), max_size=40),
    others=st.lists(times, min_size=1, max_size=12),
)
def test_bad_packages_of_one_source_do_not_delay_others(
    limits: SlotLimits, bad: list[tuple[int, int]], others: list[int]
) -> None:
    hanging = [
        Work(Kind.DOWNLOAD, f"bad{namespace}.p{number}", "slow.example", at, True)
        for number, (namespace, at) in enumerate(bad)
    ]
    begun = fresh(limits)
    usable = min(begun.kinds[Kind.DOWNLOAD].limit, begun.work.limit)
    check(limits, hanging, good(Kind.DOWNLOAD, others), usable - begun.kinds[Kind.DOWNLOAD].shares.source)


@given(
    limits=limits,
    bad=st.integers(1, 12),
    kind=st.sampled_from(WORK),
    others=st.lists(st.integers(0, 3 * HANGS), min_size=1, max_size=12),
)
def test_bad_packages_of_many_namespaces_delay_others_only_once(
    limits: SlotLimits, bad: int, kind: Kind, others: list[int]
) -> None:
    """Each bad package can hang once in an ordinary slot. After that, all bad packages share the slots for slow packages, and
    the work of good packages waits only for other good work.
    """
    hanging = [Work(kind, f"bad{number}.x", f"bad{number}.example", 0, True) for number in range(bad)]
    begun = fresh(limits)
    usable = min(begun.kinds[kind].limit, begun.work.limit)
    warned = (ceil(bad / usable) + 1) * HANGS
    late = good(kind, [warned + at for at in others])
    check(limits, hanging, late, usable - begun.kinds[kind].shares.slow)


@pytest.mark.parametrize("kind", WORK)
def test_without_a_reserve_bad_packages_delay_others(kind: Kind) -> None:
    """If the share of a namespace is 100 percent, no slot is reserved for others. One namespace then takes all slots."""
    open_to_all = SlotLimits(source_share=100, namespace_share=100)
    hanging = [Work(kind, f"bad.p{number}", "slow.example", 0, True) for number in range(20)]
    neighbours = Neighbours(open_to_all, until=HANGS - 1)
    neighbours.run([*hanging, *good(kind, [5])])
    assert neighbours.waited == {}
