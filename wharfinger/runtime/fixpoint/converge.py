"""The driver of the fixpoint engine. It runs each body in a task, until nothing is left to do.

The engine is synchronous: each event is one `step`, and after each step, bodies are begun until the limit is reached. When a
body ends, its task passes the outcome to the engine by a direct call. Events of the world outside are passed by calls of a
:class:`World`. So events need no queue, and no task waits for the engine, except the caller of `converge`.

Every body reports an outcome, unless it is cancelled; an exception that it raises is an outcome, too. A body is cancelled only
together with the whole convergence. Then no further body is begun, and no fixpoint is processed.
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
"""The limit on the length of a message about an exception that a body raised, in characters."""


class Bodies(Protocol):
    """The interface through which `converge` runs the bodies of nodes."""

    async def run(self, who: Id, level: Level, loop: tuple[Id, ...], /) -> Outcome:
        """Do the work of a node; see :class:`Dispatch`. An exception that it raises counts as a crash of this node only."""
        ...

    def reruns_at_drain(self, who: Id, /) -> bool:
        """Return whether the node reads more ids than its outcome can name. If so, the engine runs the node again at the next
        fixpoint if anything has arrived (``sweep`` of :class:`Finished`). Called after each run of the node that raised no
        exception.
        """
        ...


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a convergence. Every mapping is sorted by id."""

    results: Mapping[Id, str]
    """The last known result of every node that has ended at least once."""
    unresolved: Mapping[Id, Unresolved]
    """The nodes that ended as unresolved, because an id that they lack could not appear any more. Nodes that ran again later
    are not included.
    """
    exhausted: Mapping[Id, Exhausted]
    """The nodes that were stopped because they ran too often, or because the chain of nodes that created each other was too
    long. If there are any, the other results are not reliable.
    """
    crashed: Mapping[Id, str]
    """The message of each node whose last run crashed."""
    runs: Mapping[Id, int]
    """The number of times that each body was begun."""
    level: Level
    """The strictest level at which a body was run in this convergence."""


class World:
    """The interface by which events from outside reach one `converge`. Its methods must be called in the thread of `converge`.

    Events that are reported before `converge` begins are processed at its beginning; events that are reported after its end
    have no effect.
    """

    def __init__(self) -> None:
        """Make a World that no `converge` uses yet."""
        self._early: list[Event] = []
        self._convergence: _Convergence | None = None

    def arrived(self, emission: Emission) -> None:
        """Record that an id is present, or has new content."""
        self._say(Arrived(emission))

    def removed(self, who: Id) -> None:
        """Record that an id was removed."""
        self._say(Removed(who))

    def asked(self, who: Id) -> None:
        """Request another run of a node."""
        self._say(Asked(who))

    def answered(self, who: Id, run: int) -> None:
        """Report that a result from outside is available. The run ``run`` of the node's body waits for this result."""
        self._say(Answered(who, run))

    def run_of(self, who: Id) -> int:
        """Return the number of the present run of a node's body, for `answered`; 0 if it does not run."""
        phase = self._convergence.state.phase(who) if self._convergence is not None else None
        return phase.run if isinstance(phase, Running) else 0

    def is_taken(self) -> bool:
        """Return whether a `converge` uses this World, or has used it."""
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
    """Run the seeds and the nodes that they create, at most ``limit`` bodies at a time, until no node has anything to do.

    Raises ValueError for rules without drain, because the convergence would not end, and for a limit below 1, because it
    could not begin. Raises RuntimeError if ``world`` was already passed to another call.
    """
    if not rules.drain or limit < 1:
        raise ValueError(
            f"converge() needs rules with drain=True (found {rules.drain}) and a limit of at least 1 (found {limit})"
        )
    if world is not None and world.is_taken():
        raise RuntimeError("this World was already passed to converge(); make another World")
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
    """One run of `converge`: the state of the engine, the bodies that run, and the results so far."""

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
        """Return the present state as a report."""
        return Report(
            results=self.state.results(),
            unresolved=_sorted(self._unresolved),
            exhausted=_sorted(self._exhausted),
            crashed=_sorted(self._crashed),
            runs=_sorted(self._runs),
            level=self._level,
        )

    def take(self, event: Event) -> None:
        """Process an event and its effects. There is no await in between, so that each event is one atomic step."""
        if not self.over.is_set():
            self.state, effects = step(self.state, event)
            for effect in effects:
                self._perform(effect)

    def pump(self) -> None:
        """Begin as many bodies as the limit allows; end the convergence if nothing is left to do."""
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
        """Run one body, and report its result, or its crash."""
        await trio.lowlevel.checkpoint_if_cancelled()
        who, sweep = order.id, False
        try:
            outcome = await self._bodies.run(who, order.level, order.loop)
            sweep = self._bodies.reruns_at_drain(who)
        except Exception as error:  # noqa: BLE001 - not swallowed: it is the outcome of this node, and is reported as such
            outcome = Crashed(f"{type(error).__name__}: {error}"[:_KEPT])
        if isinstance(outcome, Outside) and not self._speaks:
            outcome = Crashed(
                "it waits for an event from outside, but this convergence has no World from which an event could arrive"
            )
        if isinstance(outcome, Crashed):
            self._crashed[who] = outcome.message
        self.take(Finished(who, order.run, outcome, sweep))
        self.pump()


def _sorted(by_id: Mapping[Id, T]) -> Mapping[Id, T]:
    return {who: by_id[who] for who in sorted(by_id)}
