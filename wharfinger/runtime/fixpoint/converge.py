"""Running bodies until nothing is left to be done: the engine's driver where there is a task for each body.

The engine is synchronous: whatever happens is one `step`, and then as many bodies are begun as there is room for. So nothing
queues on the way in, and nobody waits but for the end: a body that ends reports itself, and whoever speaks for the world outside
(:class:`World`) does so by a call.

A body always reports: what it raises is an outcome. Only a cancelled one does not, and then all of this is cancelled: no
body is begun any more, and nobody is judged.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, assert_never

import trio

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
    Emission,
    Event,
    Exhausted,
    Finished,
    Id,
    Level,
    Outcome,
    Outside,
    Pulled,
    Removed,
    Seeded,
    Unresolved,
)
from wharfinger.runtime.fixpoint.state import Rules, Running

T = TypeVar("T")

_RULES: Final = Rules()
_PULLED: Final = Pulled()
_KEPT: Final = 4_000
"""How much is kept of the message of what a body raised, in characters."""


class Bodies(Protocol):
    """What the nodes do."""

    async def run(self, who: Id, level: Level, loop: tuple[Id, ...], /) -> Outcome:
        """Do what a node is there for; see :class:`Dispatch`. Whatever it raises is that node's crash, and nobody else's."""
        ...

    def reruns_at_drain(self, who: Id, /) -> bool:
        """Whether it looks at more than it can name; asked after each of its runs (``sweep`` of :class:`Finished`)."""
        ...


@dataclass(frozen=True, slots=True)
class Report:
    """How it ended; everything is sorted by id."""

    results: Mapping[Id, str]
    """Of every node that was ever done, what is known of it at the end."""
    unresolved: Mapping[Id, Unresolved]
    """Who is done for no other reason than that nobody could say more; not who was looked at again since."""
    exhausted: Mapping[Id, Exhausted]
    """Who would never have come to an end. If there is anybody, the rest is not to be relied on."""
    crashed: Mapping[Id, str]
    """Of those whose last run crashed, how."""
    runs: Mapping[Id, int]
    """How often each body was begun."""
    level: Level
    """The hardest that any body was asked."""


class World:
    """The way in for whoever speaks for the world outside; for one `converge`, and from its thread.

    What is said before it begins is true when it does; what is said when it is over changes nothing.
    """

    def __init__(self) -> None:
        """Nothing is converging yet."""
        self._early: list[Event] = []
        self._convergence: _Convergence | None = None

    def arrived(self, emission: Emission) -> None:
        """Something is there, or has another content."""
        self._say(Arrived(emission))

    def removed(self, who: Id) -> None:
        """Something is gone."""
        self._say(Removed(who))

    def asked(self, who: Id) -> None:
        """A node is to look again."""
        self._say(Asked(who))

    def answered(self, who: Id, run: int) -> None:
        """What that run of a node waits for has come."""
        self._say(Answered(who, run))

    def run_of(self, who: Id) -> int:
        """The run that a body is in, so that it can say what is to be answered; 0: it does not run."""
        phase = self._convergence.state.phase(who) if self._convergence is not None else None
        return phase.run if isinstance(phase, Running) else 0

    def is_taken(self) -> bool:
        """It speaks, or spoke, to a `converge` already."""
        return self._convergence is not None

    def _say(self, event: Event) -> None:
        if self._convergence is None:
            self._early.append(event)
        else:
            self._convergence.take(event)
            self._convergence.pump()

    def _begin(self, convergence: "_Convergence") -> None:
        self._convergence = convergence
        for event in self._early:
            convergence.take(event)


async def converge(
    bodies: Bodies, seeds: Iterable[Id], *, limit: int, rules: Rules = _RULES, world: World | None = None
) -> Report:
    """Run the seeds and whatever comes of them, at most ``limit`` bodies at a time, until nobody has anything to do.

    Raises ValueError where that has no end, or no beginning: rules without drain, or a limit below 1. RuntimeError where the
    world speaks to another one.
    """
    if not rules.drain or limit < 1:
        raise ValueError(f"converge() needs rules that drain ({rules.drain}) and room for a body ({limit})")
    if world is not None and world.is_taken():
        raise RuntimeError("a World speaks to one converge() only; make another one")
    async with trio.open_nursery() as nursery:
        convergence = _Convergence(bodies, nursery, limit, rules, speaks=world is not None)
        if world is not None:
            world._begin(convergence)  # noqa: SLF001 - the other half of this module
        convergence.take(Seeded(tuple(seeds)))
        convergence.pump()
        try:
            await convergence.over.wait()
        except trio.Cancelled:
            convergence.take(Cancelled())
            raise
    return convergence.report()


class _Convergence:
    """One engine, its bodies, and what came of them."""

    def __init__(self, bodies: Bodies, nursery: trio.Nursery, limit: int, rules: Rules, *, speaks: bool) -> None:
        self.state = start(rules)
        self.over = trio.Event()
        self._bodies = bodies
        self._nursery = nursery
        self._limit = limit
        self._speaks = speaks
        self._unresolved: dict[Id, Unresolved] = {}
        self._exhausted: dict[Id, Exhausted] = {}
        self._crashed: dict[Id, str] = {}
        self._runs: Counter[Id] = Counter()
        self._level = Level.NONE

    def report(self) -> Report:
        """As it is now."""
        return Report(
            results=self.state.results(),
            unresolved=_sorted(self._unresolved),
            exhausted=_sorted(self._exhausted),
            crashed=_sorted(self._crashed),
            runs=_sorted(self._runs),
            level=self._level,
        )

    def take(self, event: Event) -> None:
        """Take an event in. No await from here on until whatever follows from it is done: this is what makes it one step."""
        if not self.over.is_set():
            self.state, effects = step(self.state, event)
            for effect in effects:
                self._perform(effect)

    def pump(self) -> None:
        """Begin as many bodies as there is room for, or find that it is over."""
        while self.state.running < self._limit and not self.over.is_set():
            before = self.state.running
            self.take(_PULLED)
            if self.state.running == before:
                return

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Dispatch(who, level=level):
                self._runs[who] += 1
                self._level = max(self._level, level)
                self._unresolved.pop(who, None)
                self._crashed.pop(who, None)
                self._nursery.start_soon(self._run, effect, name=f"body of {who}")
            case Unresolved(who):
                self._unresolved[who] = effect
            case Exhausted(who):
                self._exhausted[who] = effect
            case Converged():
                self.over.set()
            case _:
                assert_never(effect)

    async def _run(self, order: Dispatch) -> None:
        """One body, and what it answered, whatever that is."""
        await trio.lowlevel.checkpoint_if_cancelled()
        who, sweep = order.id, False
        try:
            outcome = await self._bodies.run(who, order.level, order.loop)
            sweep = self._bodies.reruns_at_drain(who)
        except Exception as error:  # noqa: BLE001 - not swallowed: it is the outcome of this node, and is reported as such
            outcome = Crashed(f"{type(error).__name__}: {error}"[:_KEPT])
        if isinstance(outcome, Outside) and not self._speaks:
            outcome = Crashed("it waits for the world outside, and nobody speaks for that here")
        if isinstance(outcome, Crashed):
            self._crashed[who] = outcome.message
        self.take(Finished(who, order.run, outcome, sweep))
        self.pump()


def _sorted(by_id: Mapping[Id, T]) -> Mapping[Id, T]:
    return {who: by_id[who] for who in sorted(by_id)}
