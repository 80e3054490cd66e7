"""The assumptions of the engine's termination proof, and the properties that it does not assume.

Each assumption is enforced by construction, or its test shows what happens if it is broken. The docstring of
`wharfinger.runtime.fixpoint` names these tests.
"""

import re
from collections import Counter
from collections.abc import Callable

import pytest
import trio

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, emission, node
from wharfinger.runtime import fixpoint
from wharfinger.runtime.fixpoint.converge import converge
from wharfinger.runtime.fixpoint.model import (
    Answered,
    Asked,
    Blocked,
    Converged,
    Crashed,
    DependencyFailed,
    Exhausted,
    Finished,
    Id,
    Level,
    Noop,
    Outcome,
    Outside,
    Terminal,
    Unresolved,
)
from wharfinger.runtime.fixpoint.state import Done, Rules, Waiting

A, B, C = node("a"), node("b"), node("c")
X = datum("x")


def test_the_documentation_names_tests_that_exist() -> None:
    named = re.findall(r"`(test_\w+)`", fixpoint.__doc__ or "")
    assert len(named) >= 6
    assert [name for name in named if name not in globals()] == []


class Bodies:
    """Bodies for `converge`: A has the given outcomes, and every other node waits for A."""

    def __init__(self, does: Callable[[], Outcome], sweeps: Callable[[], bool] = lambda: False) -> None:
        self.does = does
        self.sweeps = sweeps
        self.ended = False

    async def run(self, who: Id, level: Level, loop: tuple[Id, ...]) -> Outcome:
        await trio.lowlevel.checkpoint()
        if who == A:
            self.ended = True
            return self.does()
        return Terminal("saw a") if self.ended else Blocked((A,))

    def reruns_at_drain(self, who: Id) -> bool:
        return self.sweeps() if who == A else False


def bursts() -> bool:
    """Raise a LookupError. Tests use this function as a failing body, and as a failing check whether a node requests sweeps."""
    raise LookupError("burst")


def group() -> Outcome:
    """Raise an ExceptionGroup, as it may happen in a body that opens a nursery."""
    raise ExceptionGroup("two", [ValueError("one"), KeyError("other")])


@pytest.mark.parametrize(
    ("bodies", "why"),
    [
        (Bodies(lambda: Terminal(str(bursts()))), "LookupError: burst"),
        (Bodies(lambda: Terminal("ready"), bursts), "LookupError: burst"),
        (Bodies(group), "ExceptionGroup: two (2 sub-exceptions)"),
        (
            Bodies(Outside),
            "it waits for an event from outside, but this convergence has no World from which an event could arrive",
        ),
    ],
    ids=["body", "whether it sweeps", "group", "waits for nobody"],
)
async def test_every_run_is_reported_once(bodies: Bodies, why: str) -> None:
    """The driver reports every run. A second report, or a report of another run, changes nothing."""
    with trio.fail_after(300):
        report = await converge(bodies, (B, A), limit=2)
    assert report.crashed == {A: why}
    assert report.results == {A: f"crashed: {why}", B: "saw a"}
    hand = Hand()
    hand.seed(A)
    order = hand.run(A, Terminal("ready"))
    before = (hand.state.phase(A), hand.state.result(A))
    for run in (order.run, order.run - 1, order.run + 1):
        hand.tell(Finished(A, run, Terminal("another")))
    assert (hand.state.phase(A), hand.state.result(A)) == before
    assert hand.pull_all() == []


def test_an_endless_body_delays_judgement_only() -> None:
    hand = Hand()
    hand.seed(A, B, C)
    assert hand.pull_all() == [A, B, C]
    hand.end(B, Blocked((X,)))
    hand.end(C, Terminal("ready"))
    hand.tell(Asked(C))
    hand.run(C, Terminal("ready again"))
    for _ in range(10):
        assert hand.pull_all() == []
    assert hand.effects == [], "no node is judged, and the engine has not converged, while A may still create x"
    assert hand.state.lacks(B) == (X,)


def test_blocking_creates_nothing() -> None:
    """Check that Blocked and Outside have no emissions, and that a run with such an outcome changes nothing for other nodes."""
    assert not {"emissions", "result"} & {*Blocked.__slots__, *Outside.__slots__}
    hand = Hand()
    hand.seed(A, B, C)
    assert hand.pull_all() == [A, B, C]
    hand.end(B, Blocked((A,)))
    hand.end(C, Terminal("read a", (A,)))
    hand.end(A, Blocked((X,)))
    hand.tell(Asked(A))
    hand.run(A, Outside())
    assert hand.pull_all() == []
    assert hand.state.result(A) is None
    assert hand.state.waiters(A) == (B, C)


def test_creations_beside_the_outcome_count_as_outside() -> None:
    """A body creates an id that is not part of its outcome, and then blocks. The creation counts as a report from outside."""
    hand = Hand()
    hand.seed(A)
    for at in range(100):
        order = hand.pull()
        assert order is not None
        hand.bring(X, f"made beside {at}")
        hand.end(A, Blocked((X,)))
    assert hand.state.charges(A) == 0
    hand.run(A, Blocked((X,)))
    assert [order.level for order in (hand.pull(),) if order] == [Level.CASCADE], (
        "the node is judged once it creates nothing more"
    )


def test_runs_for_the_outside_are_bounded_by_its_reports() -> None:
    """Check that each request and each answer causes at most one run, and that no node runs at a strict level (above NONE)
    while an answer is due.
    """
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Terminal("ready"))
    hand.run(B, Blocked((X,)))
    runs = 0
    for _ in range(100):
        hand.tell(Asked(A))
        hand.tell(Asked(A))
        hand.run(A, Outside())
        phase = hand.state.phase(A)
        assert isinstance(phase, Waiting)
        assert hand.pull_all() == []
        hand.tell(Answered(A, phase.run))
        hand.tell(Answered(A, phase.run))
        hand.run(A, Noop())
        runs += 2
    assert (runs, hand.state.charges(A), hand.effects) == (200, 0, [])
    assert hand.state.lacks(B) == (X,)
    assert hand.run(B, Terminal("without x")).level is Level.CASCADE, "no answer is due any more"


Says = Callable[[Id, int], Outcome]
"""The outcome of a node's body in a run; runs are counted from 1."""

UNRULY: dict[str, Says] = {
    "never the same result": lambda who, run: Terminal(f"{run}", (A, B, C)),
    "never the same made": lambda who, run: Terminal("ready", (), (emission(B if who == A else A, f"{who} {run}"),)),
    "makes itself": lambda who, run: Terminal("ready", (), (emission(who, str(run)),)),
    "reads what it makes": lambda who, run: Terminal("ready", (X,), (emission(X, f"{who} {run}"),)),
    "makes without end": lambda who, run: Terminal("ready", (), (emission(node(who.name + "x")),)),
    "makes two without end": lambda who, run: Terminal(
        "ready", (), (emission(node(who.name + "x")), emission(node(who.name + "y")))
    ),
    "lacks what is there": lambda who, run: Blocked((A, B, C)),
    "lacks itself": lambda who, run: Blocked((who,)),
    "lacks nothing": lambda who, run: Blocked(()),
    "failed for all": lambda who, run: DependencyFailed((A, B, C), f"{run}"),
    "crashes every other time": lambda who, run: (
        Crashed(str(run)) if run % 2 else Terminal(str(run), (A, B, C), (emission(X, f"{who} {run}"),))
    ),
    "blocks every other time": lambda who, run: (
        Blocked((A, B, X)) if run % 2 else Terminal(str(run), (A, X), (emission(X, f"{who} {run}"),))
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sweeps", [False, True])
@pytest.mark.parametrize("unruly", UNRULY)
def test_unruly_bodies_still_converge(unruly: str, sweeps: bool) -> None:
    budget = 3
    hand = Hand(Rules(budget=budget, depth=4))
    hand.seed(A, B, C)
    runs: Counter[Id] = Counter()
    while (order := hand.pull()) is not None:
        runs[order.id] += 1
        assert runs.total() < 3_000, "it does not end"
        hand.end(order.id, UNRULY[unruly](order.id, runs[order.id]), sweep=sweeps)
    assert hand.effects[-1] == Converged()
    assert hand.state.at_rest()
    assert all(hand.state.charges(one) <= budget for one in runs)
    assert {type(hand.state.phase(one)) for one in runs} == {Done}
    told = {effect.id for effect in hand.effects if isinstance(effect, Exhausted | Unresolved)}
    crashed = {one for one in runs if (hand.state.result(one) or "").startswith("crashed")}
    assert told | crashed, "the engine reports the nodes that do not settle"
