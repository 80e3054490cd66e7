"""The state machine of slots under random orders of events, compared with a model that only counts.

These invariants hold:

* no limit and no share (of a package, a namespace, a source, or all slow packages) is exceeded, and the machine has the same
  counts as the model;
* the first request of a package does not wait if it could be granted;
* a request is granted at most once, only while it waits, and never after it was withdrawn;
* the requests of one package for one kind are granted in their order;
* while a request waits only because no slot is free, each other group overtakes it at most once per kind, and each other
  package of its own group at most once;
* when all slots are returned, all waiting requests have been granted, and no state is left.
"""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wharfinger.queue.slots_machine import (
    Asked,
    Event,
    IllegalSlotEvent,
    Kind,
    Outcome,
    Returned,
    SlotLimits,
    Withdrawn,
    count_waiting,
    fresh,
    group_of,
    step,
    waits_for,
)

SOURCES = ("", "", "one.example", "two.example")
PACKAGES = ("", "dns", "ingress", "a.one", "a.two", "a.three", "b.one", "b.two", "c.one")
WORK = (Kind.DOWNLOAD, Kind.RENDER, Kind.HOOK, Kind.LOAD)
SHARED = (Kind.HOOK, Kind.API)
small = st.integers(1, 5)
percents = st.sampled_from((30, 50, 75, 100))
limits = st.builds(
    SlotLimits,
    work=small,
    downloads=small,
    renders=small,
    hooks=small,
    loads=small,
    api=small,
    source_share=percents,
    namespace_share=percents,
)


class SlotsMachine(RuleBasedStateMachine):
    """A model of `wharfinger.queue.slots`, the code that drives the state machine. The model counts the slots itself."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = SlotLimits()
        self.state = fresh(self.limits)
        self.requests = 0
        self.asked: dict[int, tuple[Kind, str]] = {}
        self.source: dict[int, str] = {}
        self.slow: set[tuple[Kind, str]] = set()
        self.waiting: list[int] = []
        self.held: list[int] = []
        self.over: set[int] = set()
        self.overtaken_groups: Counter[tuple[Kind, str, Kind, str]] = Counter()
        self.overtaken_packages: Counter[tuple[Kind, str, str]] = Counter()

    @initialize(limits=limits)
    def begin(self, limits: SlotLimits) -> None:
        self.limits = limits
        self.state = fresh(limits)

    # --- the shell -----------------------------------------------------------------------------------------------------

    def send(self, event: Event) -> None:
        self.state, effects = step(self.state, event)
        for effect in effects:
            self.granted(effect.request)

    def granted(self, request: int) -> None:
        assert request in self.waiting, "granted a request that does not wait"
        kind, package = self.asked[request]
        assert request == min(self.waiting_for(kind, package)), "not first in, first out"
        assert self.could_go(request), "granted beyond a limit or a share"
        able = {self.asked[other] for other in self.waiting if self.could_go(other) and self.rivals(kind, other)}
        self.waiting.remove(request)
        self.held.append(request)
        self.served(kind, package, able - {(kind, package)})

    def rivals(self, kind: Kind, other: int) -> bool:
        return (self.asked[other][0] is Kind.API) is (kind is Kind.API)

    def served(self, kind: Kind, package: str, able: set[tuple[Kind, str]]) -> None:
        """Record which group and package got a slot, and reset their counts of overtakings. Count one overtaking for each
        waiting group and package that could have got this slot.
        """
        group = group_of(package)
        for each in [key for key in self.overtaken_groups if key[:2] == (kind, group)]:
            del self.overtaken_groups[each]
        for other in [key for key in self.overtaken_packages if key[:2] == (kind, package)]:
            del self.overtaken_packages[other]
        for waiting_kind, waiting_group in {(able_kind, group_of(name)) for able_kind, name in able}:
            if (waiting_kind, waiting_group) != (kind, group):
                self.overtaken_groups[waiting_kind, waiting_group, kind, group] += 1
        for waiting_kind, name in able:
            if waiting_kind is kind and group_of(name) == group and name != package:
                self.overtaken_packages[kind, name, package] += 1

    # --- the counts ----------------------------------------------------------------------------------------------------

    def limit(self, kind: Kind) -> int:
        found = {
            Kind.DOWNLOAD: self.limits.downloads,
            Kind.RENDER: self.limits.renders,
            Kind.HOOK: self.limits.hooks,
            Kind.LOAD: self.limits.loads,
            Kind.API: self.limits.api,
        }
        return found[kind]

    def share(self, kind: Kind) -> int:
        return max(1, self.limit(kind) // 2) if kind in SHARED else self.limit(kind)

    def usable(self, kind: Kind) -> int:
        return self.limit(kind) if kind is Kind.API else min(self.limit(kind), self.limits.work)

    def group_share(self, limit: int) -> int:
        return max(1, limit * self.limits.namespace_share // 100)

    def source_share(self, kind: Kind) -> int:
        return max(1, self.usable(kind) * self.limits.source_share // 100)

    def used_by_group(self, group: str, kinds: Sequence[Kind]) -> int:
        return sum(self.asked[each][0] in kinds and group_of(self.asked[each][1]) == group for each in self.held)

    def used_from(self, source: str, kind: Kind) -> int:
        return sum(self.source[each] == source and self.asked[each][0] is kind for each in self.held)

    def used_by_slow(self, kind: Kind) -> int:
        return sum(self.asked[each] in self.slow and self.asked[each][0] is kind for each in self.held)

    def used(self, kind: Kind, package: str | None = None) -> int:
        holders = [self.asked[request] for request in self.held]
        return sum(each == kind and (package is None or who == package) for each, who in holders)

    def work(self) -> int:
        return sum(self.asked[request][0] is not Kind.API for request in self.held)

    def waiting_for(self, kind: Kind, package: str) -> list[int]:
        return [request for request in self.waiting if self.asked[request] == (kind, package)]

    def could_go(self, request: int) -> bool:
        kind, package = self.asked[request]
        group, source = group_of(package), self.source[request]
        if kind is not Kind.API and (
            self.work() >= self.limits.work or self.used_by_group(group, WORK) >= self.group_share(self.limits.work)
        ):
            return False
        if source and self.used_from(source, kind) >= self.source_share(kind):
            return False
        if (kind, package) in self.slow and self.used_by_slow(kind) >= max(1, self.usable(kind) // 4):
            return False
        return (
            self.used(kind) < self.limit(kind)
            and self.used(kind, package) < self.share(kind)
            and self.used_by_group(group, (kind,)) < self.group_share(self.usable(kind))
            and request == min(self.waiting_for(kind, package))
        )

    # --- what happens --------------------------------------------------------------------------------------------------

    @rule(
        kind=st.sampled_from(Kind),
        package=st.sampled_from(PACKAGES),
        times=st.integers(1, 4),
        source=st.sampled_from(SOURCES),
    )
    def ask(self, kind: Kind, package: str, times: int, source: str = "") -> None:
        for _ in range(times):
            self.requests += 1
            self.asked[self.requests] = (kind, package)
            self.source[self.requests] = source if kind is Kind.DOWNLOAD else ""
            self.waiting.append(self.requests)
            self.send(Asked(self.requests, kind, package, self.source[self.requests]))

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 1000), outcome=st.sampled_from(Outcome))
    def give_back(self, which: int, outcome: Outcome = Outcome.DONE) -> None:
        request = self.held.pop(which % len(self.held))
        self.over.add(request)
        if outcome is Outcome.SLOW:
            self.slow.add(self.asked[request])
        elif outcome is Outcome.DONE:
            self.slow.discard(self.asked[request])
        self.send(Returned(*self.asked[request], self.source[request], outcome))

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 1000))
    def give_back_and_ask_again(self, which: int) -> None:
        """Return a slot and immediately request another one, like a package that works without a pause."""
        kind, package = self.asked[self.held[which % len(self.held)]]
        self.give_back(which)
        self.ask(kind, package, 1)

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 1000))
    def withdraw(self, which: int) -> None:
        request = self.waiting.pop(which % len(self.waiting))
        self.over.add(request)
        kind, package = self.asked[request]
        # A package or a group without waiting requests loses its turn.
        if not self.waiting_for(kind, package):
            for each in [key for key in self.overtaken_packages if key[:2] == (kind, package)]:
                del self.overtaken_packages[each]
        group = group_of(package)
        if not any(self.asked[other][0] is kind and group_of(self.asked[other][1]) == group for other in self.waiting):
            for place in [key for key in self.overtaken_groups if key[:2] == (kind, group)]:
                del self.overtaken_groups[place]
        self.send(Withdrawn(request, kind, package))

    @rule(which=st.integers(0, 1000))
    def withdraw_what_does_not_wait(self, which: int) -> None:
        candidates = sorted({*self.over, *self.held})
        if candidates:
            request = candidates[which % len(candidates)]
            self.refused(Withdrawn(request, *self.asked[request]))

    @rule(kind=st.sampled_from(Kind), package=st.sampled_from(PACKAGES))
    def return_what_is_not_held(self, kind: Kind, package: str) -> None:
        if not self.used(kind, package):
            self.refused(Returned(kind, package))

    def refused(self, event: Event) -> None:
        before = repr(self.state)
        with pytest.raises(IllegalSlotEvent):
            step(self.state, event)
        assert repr(self.state) == before

    # --- what must hold ------------------------------------------------------------------------------------------------

    @invariant()
    def no_limit_and_no_share_is_passed(self) -> None:
        assert self.work() <= self.limits.work
        for kind in Kind:
            assert self.used(kind) <= self.limit(kind)
            for package in PACKAGES:
                assert self.used(kind, package) <= self.share(kind)
                assert self.used_by_group(group_of(package), (kind,)) <= self.group_share(self.usable(kind))
            for source in filter(None, SOURCES):
                assert self.used_from(source, kind) <= self.source_share(kind)
        for package in PACKAGES:
            assert self.used_by_group(group_of(package), WORK) <= self.group_share(self.limits.work)

    @invariant()
    def the_machine_counts_as_the_model_does(self) -> None:
        assert self.state.work.used == self.work() == sum(self.state.work.groups.values())
        for kind, slots in self.state.kinds.items():
            assert slots.used == self.used(kind) == sum(slots.held.values()) == sum(slots.groups.values())
            assert all((*slots.held.values(), *slots.groups.values(), *slots.sources.values()))
            assert {(kind, package) for package in slots.slow} == {each for each in self.slow if each[0] is kind}
            assert count_waiting(slots) == sum(self.asked[request][0] is kind for request in self.waiting)
        for package in PACKAGES:
            kinds = {self.asked[request][0] for request in self.waiting if self.asked[request][1] == package}
            assert set(waits_for(self.state, package)) == kinds

    @invariant()
    def nobody_waits_who_could_go(self) -> None:
        assert not [self.asked[request] for request in self.waiting if self.could_go(request)]

    @invariant()
    def nobody_is_overtaken_twice(self) -> None:
        assert max(self.overtaken_groups.values(), default=0) <= 1
        assert max(self.overtaken_packages.values(), default=0) <= 1

    @invariant()
    def lines_are_in_the_order_of_turns_and_hold_nothing_empty(self) -> None:
        for slots in self.state.kinds.values():
            turns = [group.turn for group in slots.line.values()]
            assert turns == sorted(set(turns))
            assert all(turn <= self.state.turns for turn in turns)
            for name, group in slots.line.items():
                assert group.packages
                for package, requests in group.packages.items():
                    assert group_of(package) == name
                    assert requests

    def teardown(self) -> None:
        while self.held:
            self.give_back(0)
            self.nobody_is_overtaken_twice()
        assert not self.waiting, "starved"
        assert self.state.work.used == 0
        assert all(
            (slots.used, *map(dict, (slots.line, slots.held, slots.groups, slots.sources))) == (0, {}, {}, {}, {})
            for slots in self.state.kinds.values()
        )


TestSlotsMachine = SlotsMachine.TestCase
