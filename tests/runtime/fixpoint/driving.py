"""Synchronous drivers of the fixpoint engine. The docstring of `wharfinger.runtime.fixpoint` explains the terms.

`Drive` makes one move after the other, until none is left. A *tape* of random bytes, which Hypothesis generates, chooses each
move. There are these moves: the driver pulls the next dispatch; a running body looks at the other nodes; a running body
reports; a change or an answer arrives from the world outside. A move may also be an event that must not change any result: a
duplicate, a stale report, or a superfluous request. `Hand` makes only the moves that a test asks for. In both drivers, a
`Watcher` checks every step.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final, assert_never

from tests.runtime.fixpoint.oracle import DATA, World
from tests.runtime.fixpoint.watching import Watcher
from tests.runtime.fixpoint.worlds import Bodies, Change, Store, emission, verdict
from wharfinger.runtime.fixpoint.machine import start, step
from wharfinger.runtime.fixpoint.model import (
    Answered,
    Arrived,
    Asked,
    Cancelled,
    Converged,
    Crashed,
    Dispatch,
    Effect,
    Event,
    Exhausted,
    Finished,
    Id,
    Level,
    Outcome,
    Outside,
    Pulled,
    Seeded,
    Terminal,
    Unresolved,
)
from wharfinger.runtime.fixpoint.state import Fixpoint, Rules

ROOMY: Final = Rules(budget=1000)
"""Rules for worlds that end by themselves, in which no budget is tested."""
MOST: Final = 20_000
"""The number of dispatches after which a driver gives up."""


@dataclass(slots=True)
class Running:
    """A body that was dispatched and has not reported yet."""

    run: int
    level: Level
    loop: tuple[Id, ...]
    outcome: Outcome | None = None


@dataclass(slots=True)
class Drive:
    """A driver that runs a declared world (`tests/runtime/fixpoint/oracle.py`) in the engine, from the seeds to the end."""

    world: World
    tape: bytes = b""
    limit: int = 2
    rules: Rules = ROOMY
    changes: Sequence[Change] = ()
    own_store: bool = True
    noise: int = 0
    thorough: bool = True
    noops: bool = False
    crash_at: int | None = None
    """The dispatch, counted from 0, that ends in a crash instead of the body's outcome."""
    cancel_at: int | None = None
    """The dispatch, counted from 0, after which everything is cancelled."""
    state: Fixpoint = field(init=False)
    bodies: Bodies = field(init=False)
    store: Store = field(default_factory=Store)
    watcher: Watcher = field(init=False)
    running: dict[Id, Running] = field(default_factory=dict)
    waiting: dict[Id, int] = field(default_factory=dict)
    dispatched: list[Dispatch] = field(default_factory=list)
    crashed: dict[Id, int] = field(default_factory=dict)
    log: list[tuple[Event, tuple[Effect, ...]]] = field(default_factory=list)
    converged: int = 0
    cancelled: bool = False
    idle: bool = False
    _next: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self.state = start(self.rules)
        self.bodies = Bodies(dict(self.world.parts), self.thorough, self.noops)
        self.watcher = Watcher(self.rules)
        self._next = cycle(self.tape or b"\0")

    # --- running --------------------------------------------------------------------------------------------------------------

    def live(self, seeds: Iterable[Id] | None = None) -> "Drive":
        """Run from the first seed until nothing is left to do, and return this driver."""
        self.begin(seeds)
        ahead = list(self.changes)
        while self.move(ahead):
            assert len(self.dispatched) < MOST, "it does not end"
        if not self.cancelled:
            assert self.converged, "nothing is left to do, and the engine has not converged"
        return self

    def begin(self, seeds: Iterable[Id] | None = None) -> None:
        """Report the seeds and the data that exist at the beginning."""
        first = self.world.seeds if seeds is None else tuple(seeds)
        self.store.there |= {*first, *self.world.brought}
        self.tell(Seeded(first))
        for one in sorted(self.world.brought):
            self.tell(Arrived(emission(one)))

    def live_until(self, order: int) -> None:
        """Run from the first seed until the dispatch with this number, counted from 0, has been made."""
        self.begin()
        while len(self.dispatched) <= order:
            assert self.move([])

    def move(self, ahead: list[Change]) -> bool:
        """Make one of the possible moves, chosen by the next byte of ``tape``. Return False if no move is possible."""
        moves: list[tuple[str, Id | None]] = []
        if len(self.running) < self.limit and not self.idle:
            moves.append(("pull", None))
        moves += [("report" if body.outcome else "look", one) for one, body in sorted(self.running.items())]
        moves += [("answer", one) for one in sorted(self.waiting) if not self.cancelled]
        if ahead and not self.cancelled:
            moves.append(("change", None))
        if not moves:
            return False
        if self.noise:
            moves.append(("noise", None))
        kind, one = moves[self.pick(len(moves))]
        match kind:
            case "pull":
                self.idle = not self.tell(Pulled())
            case "change":
                self.change(ahead.pop(0))
            case "noise":
                self.noise -= 1
                self.make_noise()
            case _:
                assert one is not None
                {"look": self.look, "report": self.report, "answer": self.answer}[kind](one)
        return True

    def pick(self, among: int) -> int:
        """Return the next byte of the random tape, modulo ``among``."""
        return next(self._next) % among

    def look(self, one: Id) -> None:
        """Let the body look at the other nodes, and write its own result. It reports some time later."""
        body = self.running[one]
        if self.crash_at is not None and self.dispatched[self.crash_at : self.crash_at + 1] == [self._order(one)]:
            self.crashed[one] = body.run
            outcome: Outcome = Crashed("at that dispatch")
        else:
            outcome = self.bodies.answer(self.store if self.own_store else self.state, one, body.level)
        self.store.write(one, outcome)
        body.outcome = outcome

    def report(self, one: Id, *, sweep: bool | None = None) -> None:
        """Report the outcome of a running body to the engine. ``sweep`` tells whether the node requests sweeps; if it is None,
        the declaration of the node decides.
        """
        body = self.running.pop(one)
        assert body.outcome is not None
        self.tell(Finished(one, body.run, body.outcome, sweep=self.bodies.sweeps(one) if sweep is None else sweep))
        if isinstance(body.outcome, Outside):
            self.waiting[one] = body.run

    def answer(self, one: Id) -> None:
        """Deliver the answer from outside of the engine to a run that waits for it."""
        self.bodies.answered[one] = self.bodies.answered.get(one, 0) + 1
        self.tell(Answered(one, self.waiting.pop(one)))

    def change(self, change: Change) -> None:
        """Make a change from outside of the engine."""
        if change.part is not None:
            self.bodies.parts[change.part.id] = change.part
        if isinstance(change.event, Arrived):
            self.store.there.add(change.event.emission.id)
        else:
            self.store.there.discard(change.event.id)
        self.tell(change.event)

    def make_noise(self) -> None:
        """Send an event that must not change any verdict."""
        ids = sorted(self.world.parts)
        one = ids[self.pick(len(ids))]
        stale = self.watcher.runs.get(one, 0) - 1
        digest = self.watcher.digests.get(one)
        noises: list[Event] = [Asked(one), Answered(one, stale), Finished(one, stale, Terminal("a stale report"))]
        if self.state.present(one):
            noises.append(Seeded((one, one)))
        if digest is not None:
            noises.append(Arrived(emission(one, digest)))
        self.tell(noises[self.pick(len(noises))])

    def tell(self, event: Event) -> tuple[Effect, ...]:
        """Make one step of the engine, and let the watcher check it."""
        before = self.state
        after, effects = step(before, event)
        self.state = after
        self.log.append((event, effects))
        self.idle = False
        self.watcher.saw(before, event, after, effects, self.running, cancelled=self.cancelled)
        for effect in effects:
            self.perform(effect)
        if isinstance(event, Cancelled):
            self.cancelled = True
        return effects

    def perform(self, effect: Effect) -> None:
        """Perform an effect of the engine."""
        match effect:
            case Dispatch(id=one, run=run, level=level, loop=loop):
                self.waiting.pop(one, None)
                self.running[one] = Running(run, level, loop)
                self.dispatched.append(effect)
                if self.cancel_at == len(self.dispatched) - 1:
                    self.tell(Cancelled())
            case Unresolved(id=one):
                self.store.results[one] = "unresolved"
            case Exhausted(id=one, message=message):
                self.store.results[one] = message
            case Converged():
                self.converged += 1
            case _:
                assert_never(effect)

    # --- results --------------------------------------------------------------------------------------------------------------

    def _order(self, one: Id) -> Dispatch:
        body = self.running[one]
        return Dispatch(one, body.run, body.level, body.loop)

    def verdicts(self) -> dict[Id, str]:
        """Return the verdict of every existing node, as the engine reports it."""
        ids = {*self.world.parts, *self.bodies.parts}
        there = [one for one in sorted(ids) if one.kind != DATA and self.state.present(one)]
        return {one: verdict(self.state.result(one)) for one in there}

    def results(self) -> dict[Id, str | None]:
        """Return the result of every existing node, with all texts in it, and not only its verdict."""
        return {one: self.state.result(one) for one in self.verdicts()}

    def level(self) -> Level:
        """Return the highest level at which any node was dispatched."""
        return max((order.level for order in self.dispatched), default=Level.NONE)

    def runs_by_id(self) -> Counter[Id]:
        """Return how often each body ran."""
        return Counter(order.id for order in self.dispatched)

    def runs(self, one: Id) -> int:
        """Return how often this body ran."""
        return sum(order.id == one for order in self.dispatched)


@dataclass(slots=True)
class Hand:
    """A driver of the engine that makes only the moves that a test asks for. A watcher checks every step."""

    rules: Rules = field(default_factory=Rules)
    state: Fixpoint = field(init=False)
    watcher: Watcher = field(init=False)
    running: dict[Id, Dispatch] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    """All effects except dispatches."""

    def __post_init__(self) -> None:
        self.state = start(self.rules)
        self.watcher = Watcher(self.rules)

    def tell(self, event: Event) -> tuple[Effect, ...]:
        """Make one step of the engine, and let the watcher check it."""
        before = self.state
        self.state, effects = step(before, event)
        self.watcher.saw(before, event, self.state, effects, self.running, cancelled=Cancelled() in self.told)
        self.told.append(event)
        for effect in effects:
            if isinstance(effect, Dispatch):
                self.running[effect.id] = effect
            else:
                self.effects.append(effect)
        return effects

    told: list[Event] = field(default_factory=list)

    def seed(self, *ids: Id) -> None:
        """Report to the engine that these ids exist from the beginning (Seeded)."""
        self.tell(Seeded(ids))

    def pull(self) -> Dispatch | None:
        """Ask the engine once for a node to run, and return the dispatch, if there is one."""
        orders = [effect for effect in self.tell(Pulled()) if isinstance(effect, Dispatch)]
        return orders[0] if orders else None

    def pull_all(self) -> list[Id]:
        """Dispatch all nodes that may run now, and return them in the order of their dispatches."""
        ids = []
        while (order := self.pull()) is not None:
            ids.append(order.id)
        return ids

    def end(self, one: Id, outcome: Outcome, *, sweep: bool = False) -> None:
        """Report the end of a running body."""
        order = self.running.pop(one)
        self.tell(Finished(one, order.run, outcome, sweep=sweep))

    def run(self, one: Id, outcome: Outcome, *, sweep: bool = False) -> Dispatch:
        """Check that the next dispatch is for this node, and report this outcome."""
        order = self.pull()
        assert order is not None, f"{one} is not dispatched"
        assert order.id == one
        self.end(one, outcome, sweep=sweep)
        return order

    def bring(self, one: Id, digest: str = "1") -> None:
        """Report to the engine that an id with this digest has arrived from outside."""
        self.tell(Arrived(emission(one, digest)))
