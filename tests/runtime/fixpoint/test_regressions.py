"""Known failures of similar schedulers, each reproduced (spec/schedulers §A.9, §A.13 items 1-7).

The issues are those of the project whose scheduler spec/schedulers §A describes.
"""

import dataclasses
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest

from tests.programs import ROOT
from tests.runtime.fixpoint.driving import Drive, Hand
from tests.runtime.fixpoint.oracle import DEPENDENCY, NOT_READY, READY, UNRESOLVED, Part, expected
from tests.runtime.fixpoint.worlds import GHOST, Change, datum, emission, node, world
from wharfinger.runtime.fixpoint.model import (
    Arrived,
    Asked,
    Blocked,
    Converged,
    Crashed,
    DependencyFailed,
    Dispatch,
    Exhausted,
    Id,
    Level,
    Noop,
    Outcome,
    Outside,
    Terminal,
    Unresolved,
)
from wharfinger.runtime.fixpoint.state import Parked, Rules, Runnable

A, B, C, D = node("a"), node("b"), node("c"), node("d")
X, Y = datum("x"), datum("y")

# --- A.13 ---------------------------------------------------------------------------------------------------------------------


def test_a13_1_a_permanently_false_expression_about_a_finished_node_is_judged() -> None:
    some = world(Part(A), Part(B, needs=(A,), never_true=frozenset({A})))
    drive = Drive(some).live()
    assert drive.verdicts() == {A: READY, B: DEPENDENCY}
    assert drive.level() is Level.CASCADE
    assert drive.runs(B) <= 3


def test_a13_1_an_unchanged_finished_node_does_not_wake_nodes_blocked_on_it() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("ready"))
    hand.seed(B)
    hand.run(B, Blocked((A,)))
    assert isinstance(hand.state.phase(B), Parked)
    assert hand.run(B, Blocked((A,))).level is Level.CASCADE
    assert hand.run(B, Blocked((A,))).level is Level.FORCE
    assert hand.pull_all() == []
    assert hand.effects == [Unresolved(B, (A,)), Converged()]


@pytest.mark.parametrize("depth", [1, 5, 64])
def test_a13_2_endless_creation_is_exhausted_and_the_chain_is_reported(depth: int) -> None:
    hand = Hand(Rules(depth=depth))
    hand.seed(node("n0"), A)
    runs = 0
    while (order := hand.pull()) is not None:
        if order.id == A:
            hand.end(A, Terminal("ready"))
            continue
        runs += 1
        assert runs <= depth + 2, "it does not end"
        hand.end(order.id, Terminal("ready", (), (emission(node(f"n{runs}")),)))
    stopped = [effect for effect in hand.effects if isinstance(effect, Exhausted)]
    assert len(stopped) == 1
    too_deep = stopped[0]
    assert too_deep.id == node(f"n{depth + 1}")
    assert runs == depth + 1, "seeds are at depth 0"
    assert too_deep.loop == tuple(node(f"n{at}") for at in range(depth + 2))
    assert f"n{depth} →" in too_deep.message
    assert hand.state.result(A) == "ready"
    assert (hand.state.result(too_deep.id) or "").startswith("exhausted")
    assert hand.effects[-1] == Converged()


def test_a13_2_dependents_of_a_node_below_the_depth_limit_are_woken() -> None:
    hand = Hand(Rules(depth=1))
    hand.seed(A, D)
    assert hand.pull_all() == [A, D]
    hand.end(D, Blocked((C,)))
    hand.end(A, Terminal("ready", (), (emission(B),)))
    hand.run(B, Terminal("ready", (), (emission(C),)))
    assert (hand.state.result(C) or "").startswith("exhausted")
    order = hand.run(D, DependencyFailed((C,), "dependency"))
    assert order.level is Level.NONE


def test_a13_3_only_a_terminal_outcome_has_emissions() -> None:
    kinds: list[type[Outcome]] = [Terminal, Noop, Blocked, DependencyFailed, Outside, Crashed]
    assert {kind.__args__ for kind in [Outcome]} == {tuple(kinds)}
    fields = {kind: {one.name for one in dataclasses.fields(kind)} for kind in kinds}
    assert [kind for kind in kinds if "emissions" in fields[kind]] == [Terminal]
    assert fields[Blocked] == {"lacks"}
    assert not any(hasattr(one, "__dict__") for one in (Blocked((A,)), Noop(), Outside())), (
        "no other field can be added"
    )


def test_a13_3_nodes_blocked_on_each_other_publish_nothing_and_are_judged() -> None:
    some = world(Part(A, needs=(B,), emits=(X,)), Part(B, needs=(A,), emits=(Y,)), Part(C, needs=(X,)))
    drive = Drive(some).live()
    assert drive.verdicts() == {A: NOT_READY, B: DEPENDENCY, C: DEPENDENCY}
    assert not drive.state.present(X)
    assert not drive.state.present(Y)
    assert len(drive.dispatched) <= 3 * 3 + 1


def test_a13_5_a_lack_reported_after_the_fixpoint_is_not_judged() -> None:
    """B needs y, but waits for A first. So at the fixpoint, the engine does not know yet that B lacks y, and runs only A at a
    strict level (above NONE).

    Then A emits C. B and C run at level NONE, because C may emit y.
    """
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(A, Blocked((X,)))
    hand.end(B, Blocked((A,)))
    assert hand.run(A, Terminal("ready without x", (X,), (emission(C),))).level is Level.CASCADE
    levels = {order.id: order.level for order in (hand.pull(), hand.pull()) if order is not None}
    assert levels == {B: Level.NONE, C: Level.NONE}, "c is about to bring y"


@pytest.mark.parametrize("when", ["first", "blocked before", "at cascade", "at force"])
def test_a13_4_a_crash_is_an_outcome_that_wakes_dependents(when: str) -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Blocked((A,)))
    if when != "first":
        hand.end(A, Blocked((X,) if when == "at cascade" else (A,)))
        levels = {"at cascade": [Level.CASCADE], "at force": [Level.FORCE]}.get(when, [])
        if when == "blocked before":
            hand.tell(Asked(A))
        order = hand.pull()
        assert order is not None
        assert order.id == A
        assert [order.level] == (levels or [Level.NONE])
    hand.end(A, Crashed("boom"))
    assert "boom" in (hand.state.result(A) or "")
    assert hand.run(B, DependencyFailed((A,), "dependency")).level is Level.NONE
    assert hand.pull_all() == []
    assert hand.effects == [Converged()]


def test_a13_5_arrivals_after_a_judgement_run_at_level_none() -> None:
    """At a fixpoint, A runs at a strict level (above NONE), because it lacks x. Then x and B arrive. Both A and B now run at
    level NONE, although B lacks y.
    """
    some = world(Part(A, needs=(X,)), Part(B, needs=(Y,)), seeds=(A,))
    drive = Drive(some).live()
    assert drive.level() is Level.CASCADE
    for one in (X, B):
        drive.change(Change(Arrived(emission(one))))
    before = len(drive.dispatched)
    while drive.move([]):
        pass
    levels = [(order.id, order.level) for order in drive.dispatched[before:]]
    assert levels[:2] in ([(A, Level.NONE), (B, Level.NONE)], [(B, Level.NONE), (A, Level.NONE)])
    assert drive.verdicts() == {A: READY, B: DEPENDENCY}


def test_a13_5_nodes_created_during_a_judgement_run_at_level_none() -> None:
    """B tolerates A: B waits until A has a verdict, whatever it is. A gets its verdict at a strict level, but the nodes that B
    then emits begin at level NONE.
    """
    some = world(
        Part(A, needs=(X,)), Part(B, tolerates=(A,), emits=(C, Y)), Part(C, needs=(Y, D)), Part(D), seeds=(A, B)
    )
    drive = Drive(some).live()
    assert {order.level for order in drive.dispatched if order.id == C} <= {Level.NONE, Level.CASCADE}
    first = next(order for order in drive.dispatched if order.id == C)
    assert first.level is Level.NONE


def test_a13_5_levels_belong_to_components() -> None:
    """A and B are one component, C is another. While A runs at FORCE, the id arrives for which C waits.

    The next run of C is at level NONE, although a node of the other component was run at FORCE.
    """
    hand = Hand()
    hand.seed(A, B, C)
    assert hand.pull_all() == [A, B, C]
    hand.end(A, Blocked((B,)))
    hand.end(B, Blocked((A,)))
    hand.end(C, Blocked((X,)))
    first = [hand.pull(), hand.pull()]
    levels = {order.id: order.level for order in first if order is not None}
    assert levels == {A: Level.FORCE, C: Level.CASCADE}
    hand.end(C, Blocked((Y,)))
    hand.bring(Y)
    hand.end(A, DependencyFailed((B,), "not ready"))
    again = [hand.pull(), hand.pull()]
    assert {order.id: order.level for order in again if order is not None} == {B: Level.NONE, C: Level.NONE}


def test_a13_6_a_permanently_blocked_node_is_reported_as_unresolved() -> None:
    some = world(Part(A, needs=(GHOST,), stubborn=True), Part(B, needs=(A,)), Part(C, needs=(B,)))
    drive = Drive(some).live()
    told = [effect for _, effects in drive.log for effect in effects if isinstance(effect, Unresolved)]
    assert told == [Unresolved(A, (GHOST,))]
    assert drive.verdicts() == {A: UNRESOLVED, B: DEPENDENCY, C: DEPENDENCY} == expected(some).verdicts
    assert drive.state.result(A) == "unresolved"


def test_a13_6_an_unresolved_node_runs_again_when_the_lacked_id_arrives() -> None:
    drive = Drive(world(Part(A, needs=(X,), stubborn=True), Part(B, needs=(A,)))).live()
    assert drive.verdicts() == {A: UNRESOLVED, B: DEPENDENCY}
    drive.change(Change(Arrived(emission(X))))
    while drive.move([]):
        pass
    assert drive.verdicts() == {A: READY, B: READY}


def test_a13_6_unresolved_nodes_do_not_wake_each_other_for_ever() -> None:
    drive = Drive(world(Part(A, needs=(B,), stubborn=True), Part(B, needs=(A,), stubborn=True))).live()
    assert drive.verdicts() == {A: UNRESOLVED, B: UNRESOLVED}
    assert len(drive.dispatched) <= 12


STORY = """
import sys
from tests.runtime.fixpoint.driving import Drive
from tests.runtime.fixpoint.oracle import Part
from tests.runtime.fixpoint.worlds import datum, node, world
names = [f"n{at:02}" for at in range(40)]
parts = [Part(node(one), needs=(datum("x"), *(node(other) for other in names[at + 1 : at + 4]))) for at, one in enumerate(names)]
parts += [Part(node("m"), emits=(datum("x"), node("late")))] + [Part(node("late"), tolerates=tuple(map(node, names[:9])))]
drive = Drive(world(*parts, seeds=[part.id for part in parts[:-1]]), bytes([1, 0, 2, 3, 0, 1]), limit=3).live()
print([(str(order.id), order.run, int(order.level)) for order in drive.dispatched])
"""


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a13_7_the_order_does_not_depend_on_hashes() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", STORY],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert "late" in told[0]


# --- A.9 ----------------------------------------------------------------------------------------------------------------------


def test_a9_the_result_of_a_node_stays_visible_while_it_runs_again() -> None:
    """In issue #666 of the peer, a dependency was reconciled without changes, and a dependent found it not ready meanwhile."""
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("ready"))
    hand.tell(Asked(A))
    assert hand.state.result(A) == "ready"
    assert hand.pull() is not None
    assert hand.state.result(A) == "ready"
    hand.seed(B)
    order = hand.pull()
    assert order is not None
    assert order.level is Level.NONE
    hand.end(A, Blocked((X,)))
    assert hand.state.result(A) == "ready"
    hand.end(B, Terminal("ready", (A,)))


def test_a9_no_node_is_unresolved_while_another_one_runs() -> None:
    """In issues #657-#660 of the peer, no body ran for a moment, and all parked nodes were dropped."""
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Blocked((X,)))
    for _ in range(5):
        assert hand.pull() is None
    assert isinstance(hand.state.phase(B), Parked)
    hand.end(A, Terminal("ready", (), (emission(C),)))
    order = hand.pull()
    assert order is not None
    assert order.id == C
    for _ in range(5):
        assert hand.pull() is None
    hand.end(C, Terminal("ready", (), (emission(X),)))
    assert hand.run(B, Terminal("ready")).level is Level.NONE


def test_a9_new_content_wakes_a_parked_child() -> None:
    """In issue #102 of the peer, the child continued with the content that it had read before it waited."""
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("ready", (), (emission(B, "1"),)))
    hand.run(B, Blocked((X,)))
    hand.tell(Asked(A))
    hand.run(A, Terminal("ready", (), (emission(B, "2"),)))
    assert isinstance(hand.state.phase(B), Runnable)
    hand.run(B, Blocked((X,)))
    assert hand.state.charges(B) == 1


@pytest.mark.parametrize("lacked", [A, X])
def test_a9_an_arrival_between_look_and_parking_is_not_lost(lacked: Id) -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(A, Terminal("ready", (), (emission(X),)))
    hand.end(B, Blocked((lacked,)))
    assert isinstance(hand.state.phase(B), Runnable)


def test_a9_emissions_with_random_content_exhaust_their_node_only() -> None:
    """In issues #828 and #859 of the peer, every run emitted new content, which caused another run of the same node."""
    hand = Hand()
    hand.seed(A, C)
    runs = 0
    while (order := hand.pull()) is not None:
        if order.id == A:
            runs += 1
            hand.end(A, Terminal("ready", (B,), (emission(B, f"random {runs}"),)))
        else:
            hand.end(order.id, Terminal(f"built {order.run}"))
    assert runs == 33, "one, and 32 more"
    stopped = [effect for effect in hand.effects if isinstance(effect, Exhausted)]
    assert [effect.id for effect in stopped] == [A]
    assert stopped[0].loop[-1] == A
    assert str(A) in stopped[0].message
    assert hand.state.result(C) is not None
    assert hand.effects[-1] == Converged()


@pytest.mark.sampled(3)
@pytest.mark.unmeasured
@pytest.mark.parametrize("length", [5, 60])
@pytest.mark.parametrize("dependents_first", [True, False])
def test_a9_a_chain_with_an_absent_end_is_judged_within_three_runs_a_node(length: int, dependents_first: bool) -> None:
    """In issue #413 of the peer, a misspelled dependency was noticed only after a timeout. Here, the engine runs the nodes of
    the chain once more at another level instead.
    """
    names = [node(f"n{at:03}") for at in range(length)]
    parts = [Part(one, needs=(needed,)) for one, needed in zip(names, [*names[1:], GHOST], strict=True)]
    some = world(*parts, seeds=names if dependents_first else names[::-1])
    drive = Drive(some, limit=4).live()
    assert set(drive.verdicts().values()) == {DEPENDENCY}
    assert drive.level() is Level.CASCADE
    assert max(drive.runs_by_id().values()) <= 3
    assert "ghost absent" in (drive.state.result(names[-1]) or "")


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("depth", [8, 32, 40])
def test_a9_a_chain_of_selectors_is_evaluated_to_its_end(depth: int) -> None:
    """Each node looks for data that the node before it emits, and no node names another node."""
    hand = Hand()
    stages = [node(f"{at:02}") for at in range(depth)]
    hand.seed(*stages)
    hand.bring(datum("00"))
    runs: Counter[Id] = Counter()
    while ids := hand.pull_all():
        # All bodies look before one of them reports, so each round reaches only one more stage. This is the worst case.
        there = {one for one in ids if hand.state.present(datum(one.name))}
        for one in ids:
            made = (emission(datum(f"{int(one.name) + 1:02}")),) if one in there else ()
            hand.end(one, Terminal(READY, (), made), sweep=True)
        runs.update(ids)
    assert hand.state.present(datum(f"{depth:02}"))
    assert set(runs.values()) == {depth + 1}
    assert max(hand.state.charges(one) for one in stages) <= 2
    assert hand.effects == [Converged()]


def test_a9_new_content_of_a_failed_node_runs_it_and_its_dependents() -> None:
    """Nodes that failed because of A have to notice A's new run (issue #260)."""
    broken = Part(A, fails=True)
    drive = Drive(world(broken, Part(B, needs=(A,)), Part(C, needs=(B,)))).live()
    assert drive.verdicts() == {A: "failed", B: DEPENDENCY, C: DEPENDENCY}
    drive.change(Change(Arrived(emission(A, "mended")), Part(A)))
    while drive.move([]):
        pass
    assert drive.verdicts() == {A: READY, B: READY, C: READY}
    assert drive.level() is Level.NONE


@pytest.mark.slow
@pytest.mark.unmeasured
def test_satisfiable_layers_need_at_most_three_runs_a_node() -> None:
    layers = [[node(f"l{layer:02}-{at:02}") for at in range(20)] for layer in range(10)]
    parts = [Part(one) for one in layers[0]]
    for below, layer in pairwise(layers):
        parts += [Part(one, needs=tuple(below[(at + k) % 20] for k in range(3))) for at, one in enumerate(layer)]
    drive = Drive(world(*parts, seeds=[part.id for part in reversed(parts)]), limit=4).live()
    assert set(drive.verdicts().values()) == {READY}
    assert len(drive.dispatched) <= 3 * len(parts)
    assert drive.level() is Level.NONE


def test_a_forced_dispatch_contains_the_cycle() -> None:
    hand = Hand()
    needs = {A: (B,), B: (C,), C: (A,), D: (A,)}
    hand.seed(*needs)
    for one in hand.pull_all():
        hand.end(one, Blocked(needs[one]))
    order = hand.pull()
    assert order == Dispatch(A, order.run if order else 0, Level.FORCE, (A, B, C))
    assert hand.pull() is None, "one member of each cycle is forced"
