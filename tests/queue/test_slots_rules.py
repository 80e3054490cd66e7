"""The slots under every order of events, against a model that only counts.

What must hold whatever happens:

* no limit and no package's share is passed, and the machine counts as the model does;
* nobody waits who could go;
* a request is granted at most once, only while it waits, and never after it was withdrawn;
* the requests of one package for one kind are granted in their order;
* whoever could have had a slot is overtaken at most once by each other group and kind, and within a group at most once by
  each other package, until it is served itself;
* once everything is returned, everybody who waited was served and nothing is left.
"""

from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wharfinger.queue.slots_machine import (
    Asked,
    Event,
    IllegalSlotEvent,
    Kind,
    Returned,
    SlotLimits,
    Withdrawn,
    count_waiting,
    fresh,
    group_of,
    step,
    waits_for,
)

PACKAGES = ("", "dns", "ingress", "a.one", "a.two", "a.three", "b.one", "b.two", "c.one")
SHARED = (Kind.HOOK, Kind.API)
small = st.integers(1, 4)


class SlotsMachine(RuleBasedStateMachine):
    """Plays the shell, and keeps its own books."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = SlotLimits()
        self.state = fresh(self.limits)
        self.requests = 0
        self.asked: dict[int, tuple[Kind, str]] = {}
        self.waiting: list[int] = []
        self.held: list[int] = []
        self.over: set[int] = set()
        self.overtaken_groups: Counter[tuple[Kind, str, Kind, str]] = Counter()
        self.overtaken_packages: Counter[tuple[Kind, str, str]] = Counter()

    @initialize(work=small, downloads=small, renders=small, hooks=small, loads=small, api=small)
    def begin(self, work: int, downloads: int, renders: int, hooks: int, loads: int, api: int) -> None:
        self.limits = SlotLimits(work, downloads, renders, hooks, loads, api)
        self.state = fresh(self.limits)

    # --- the shell -----------------------------------------------------------------------------------------------------

    def send(self, event: Event) -> None:
        self.state, effects = step(self.state, event)
        assert len(effects) <= 1
        for effect in effects:
            self.granted(effect.request)

    def granted(self, request: int) -> None:
        assert request in self.waiting, "granted what does not wait"
        kind, package = self.asked[request]
        assert request == min(self.waiting_for(kind, package)), "not first in, first out"
        self.waiting.remove(request)
        self.held.append(request)
        self.served(kind, package)

    def served(self, kind: Kind, package: str) -> None:
        """Whoever still waits and could have had this slot was overtaken; who was served begins anew."""
        group = group_of(package)
        for each in [key for key in self.overtaken_groups if key[:2] == (kind, group)]:
            del self.overtaken_groups[each]
        for other in [key for key in self.overtaken_packages if key[:2] == (kind, package)]:
            del self.overtaken_packages[other]
        able = {self.asked[request] for request in self.waiting if self.has_room_but_for_one(request, kind)}
        for waiting_kind, waiting_group in {(able_kind, group_of(name)) for able_kind, name in able}:
            if (waiting_kind, waiting_group) != (kind, group):
                self.overtaken_groups[waiting_kind, waiting_group, kind, group] += 1
        for waiting_kind, name in able:
            if waiting_kind is kind and group_of(name) == group and name != package:
                self.overtaken_packages[kind, name, package] += 1

    # --- the books -----------------------------------------------------------------------------------------------------

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

    def used(self, kind: Kind, package: str | None = None) -> int:
        holders = [self.asked[request] for request in self.held]
        return sum(each == kind and (package is None or who == package) for each, who in holders)

    def work(self) -> int:
        return sum(self.asked[request][0] is not Kind.API for request in self.held)

    def waiting_for(self, kind: Kind, package: str) -> list[int]:
        return [request for request in self.waiting if self.asked[request] == (kind, package)]

    def below_share(self, request: int) -> bool:
        kind, package = self.asked[request]
        return self.used(kind, package) < self.share(kind)

    def has_room_but_for_one(self, request: int, served: Kind) -> bool:
        """Whether what was just given to ``served`` is all that this request lacked."""
        kind, _ = self.asked[request]
        if (kind is Kind.API) is not (served is Kind.API) or not self.below_share(request):
            return False
        return kind is served or self.used(kind) < self.limit(kind)

    def could_go(self, request: int) -> bool:
        kind, _ = self.asked[request]
        enough_work = kind is Kind.API or self.work() < self.limits.work
        return enough_work and self.used(kind) < self.limit(kind) and self.below_share(request)

    # --- what happens --------------------------------------------------------------------------------------------------

    @rule(kind=st.sampled_from(Kind), package=st.sampled_from(PACKAGES), times=st.integers(1, 4))
    def ask(self, kind: Kind, package: str, times: int) -> None:
        for _ in range(times):
            self.requests += 1
            self.asked[self.requests] = (kind, package)
            self.waiting.append(self.requests)
            self.send(Asked(self.requests, kind, package))

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 1000))
    def give_back(self, which: int) -> None:
        request = self.held.pop(which % len(self.held))
        self.over.add(request)
        self.send(Returned(*self.asked[request]))

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 1000))
    def give_back_and_ask_again(self, which: int) -> None:
        """As one does who works without a pause: nobody else may be held up by it."""
        kind, package = self.asked[self.held[which % len(self.held)]]
        self.give_back(which)
        self.ask(kind, package, 1)

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 1000))
    def withdraw(self, which: int) -> None:
        request = self.waiting.pop(which % len(self.waiting))
        self.over.add(request)
        kind, package = self.asked[request]
        self.send(Withdrawn(request, kind, package))
        if not self.waiting_for(kind, package):
            for each in [key for key in self.overtaken_packages if key[:2] == (kind, package)]:
                del self.overtaken_packages[each]
        group = group_of(package)
        if not any(self.asked[other][0] is kind and group_of(self.asked[other][1]) == group for other in self.waiting):
            for place in [key for key in self.overtaken_groups if key[:2] == (kind, group)]:
                del self.overtaken_groups[place]

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

    @invariant()
    def the_machine_counts_as_the_model_does(self) -> None:
        assert self.state.work == self.work()
        for kind, slots in self.state.kinds.items():
            assert slots.used == self.used(kind) == sum(slots.held.values())
            assert all(slots.held.values())
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
        assert self.state.work == 0
        assert all(
            (slots.used, dict(slots.line), dict(slots.held)) == (0, {}, {}) for slots in self.state.kinds.values()
        )


TestSlotsMachine = SlotsMachine.TestCase
