"""A simulation of candidates for one Lease, each on a separate machine. Clocks drift apart, requests are late or lost, and
processes are killed.

A request may be lost before it arrives at the server, or its answer may be lost. A request may be carried out even after its
sender gave up or died. Simulations with the same seed are identical.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from wharfinger.cluster.lease.machine import (
    START,
    Claiming,
    Effect,
    Event,
    Failed,
    Held,
    LeaseMachine,
    LeaseTimes,
    Leave,
    Look,
    Pause,
    Read,
    Refused,
    State,
    Stop,
    Woke,
    Write,
    Written,
)
from wharfinger.cluster.lease.record import LeaseRecord

TIMES = LeaseTimes()
PATIENCE_S = 2.5


@dataclass
class Candidate:
    """A process that wants the Lease; ``life`` counts its starts. At time ``t`` of the simulation, its clock shows ``offset +
    rate * t``.
    """

    machine: LeaseMachine
    offset: float
    rate: float
    life: int = 0
    alive: bool = False
    state: State = field(default_factory=lambda: START[0])

    def clock(self, t: float) -> float:
        return self.offset + self.rate * t

    def believes(self, t: float) -> bool:
        return self.alive and isinstance(self.state, Held) and self.clock(t) < self.state.good_until


class Simulation:
    """A simulation of several candidates. Each clock has a rate in the range ``rates``."""

    def __init__(self, seed: int, count: int, rates: tuple[float, float] = (0.85, 1.15)) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - the same run each time
        self.t = 0.0
        self.calm = False
        self.record: LeaseRecord | None = None
        self.writes = 0
        self.fences: list[int] = []
        self.together: list[str] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self.candidates = [
            Candidate(LeaseMachine(f"c{number}", TIMES), self.draw.uniform(-1e6, 1e6), self.draw.uniform(*rates))
            for number in range(count)
        ]
        for candidate in self.candidates:
            self.at(self.draw.uniform(0, 20), partial(self.begin, candidate))

    def at(self, delay_s: float, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.t + delay_s, self._number, act))

    def run(self, until: float) -> None:
        while self._queue and self._queue[0][0] <= until:
            self.t, _, act = heapq.heappop(self._queue)
            act()
            believers = [one.machine.identity for one in self.candidates if one.believes(self.t)]
            if len(believers) > 1:
                self.together.append(f"{self.t}: {believers}")
        self.t = until

    # -- processes

    def begin(self, one: Candidate) -> None:
        if not one.alive:
            one.life, one.alive = one.life + 1, True
            self.follow(one, *START)

    def kill(self, one: Candidate) -> None:
        """Kill a candidate, so that it sends no further request. It is started again some time later."""
        one.alive = False
        self.at(self.draw.uniform(0, 40), lambda: self.begin(one))

    def step(self, one: Candidate, event: Event) -> None:
        before = one.state
        state, effect = one.machine.step(before, event, one.clock(self.t))
        if isinstance(state, Held) and isinstance(before, Claiming):
            self.fences.append(state.record.fence)
        self.follow(one, state, effect)

    def follow(self, one: Candidate, state: State, effect: Effect) -> None:
        one.state = state
        if isinstance(effect, Stop):
            self.kill(one)  # the daemon ends, and systemd or Kubernetes starts it again
            return
        if not self.calm and self.draw.random() < 0.01:
            self.kill(one)
            return
        if not self.calm and isinstance(state, Held) and self.draw.random() < 0.02:
            state, effect = one.machine.step(state, Leave(), one.clock(self.t))
            one.state = state
            if isinstance(effect, Stop):
                self.kill(one)
                return
        self.perform(one, state, effect)

    def perform(self, one: Candidate, state: State, effect: Effect) -> None:
        life = one.life

        def answer(event: Event) -> None:
            if one.alive and one.life == life and not answered:
                answered.append(event)
                self.step(one, event)

        answered: list[Event] = []
        if isinstance(effect, Pause):
            self.at(effect.delay_s / one.rate, lambda: answer(Woke()))
        else:
            assert not isinstance(effect, Stop)
            self.ask(effect, one.clock(self.t), answer)
            self.at(PATIENCE_S / one.rate, lambda: answer(Failed("no answer")))
        if isinstance(state, Held):
            left_s = max(0.0, state.good_until - one.clock(self.t)) / one.rate
            self.at(left_s, lambda: answer(Failed("no answer in time")))

    # -- the network and the server

    def ask(self, effect: Look | Write, begun: float, answer: Callable[[Event], None]) -> None:
        there, back = self._delay(), self._delay()
        if there is None:
            return

        def serve() -> None:
            event = self.serve(effect, begun)
            if back is not None:
                self.at(back, lambda: answer(event))

        self.at(there, serve)

    def _delay(self) -> float | None:
        chance = self.draw.random()
        if self.calm or chance < 0.7:
            return self.draw.uniform(0, 0.2)
        return None if chance < 0.8 else self.draw.uniform(0, 12)

    def serve(self, effect: Look | Write, begun: float) -> Event:
        if isinstance(effect, Look):
            return Read(self.record)
        claim, before = effect.claim, effect.before
        if (self.record and self.record.version) != (before and before.version):
            return Refused()
        self.writes += 1
        renewed = before.renewed_us + 1 if before else 1
        uid = self.record.uid if self.record else "uid"
        self.record = LeaseRecord(uid, str(self.writes), claim.holder, claim.fence, claim.duration_s, renewed)
        if not self.calm and self.draw.random() < 0.05:  # another writer adds a label
            answered, self.record = self.record, replace(self.record, version=f"{self.writes}+")
            return Written(answered, begun)
        return Written(self.record, begun)
