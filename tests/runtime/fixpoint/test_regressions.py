"""What went wrong in schedulers of this kind, each of it once more (spec/schedulers §A.9, §A.13 items 1-7)."""

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


def test_a13_1_an_expression_that_stays_false_about_one_that_is_done_is_parked_and_judged() -> None:
    some = world(Part(A), Part(B, needs=(A,), never_true=frozenset({A})))
    drive = Drive(some).live()
    assert drive.verdicts() == {A: READY, B: DEPENDENCY}
    assert drive.level() is Level.CASCADE
    assert drive.runs(B) <= 3


def test_a13_1_one_that_is_done_and_stays_so_does_not_wake_who_blocks_on_it() -> None:
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
def test_a13_2_creation_without_end_is_stopped_and_the_chain_is_named(depth: int) -> None:
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


def test_a13_2_who_waits_for_one_that_was_created_too_deep_is_told() -> None:
    hand = Hand(Rules(depth=1))
    hand.seed(A, D)
    assert hand.pull_all() == [A, D]
    hand.end(D, Blocked((C,)))
    hand.end(A, Terminal("ready", (), (emission(B),)))
    hand.run(B, Terminal("ready", (), (emission(C),)))
    assert (hand.state.result(C) or "").startswith("exhausted")
    order = hand.run(D, DependencyFailed((C,), "dependency"))
    assert order.level is Level.NONE


def test_a13_3_only_a_terminal_outcome_has_a_place_for_what_a_body_made() -> None:
    kinds: list[type[Outcome]] = [Terminal, Noop, Blocked, DependencyFailed, Outside, Crashed]
    assert {kind.__args__ for kind in [Outcome]} == {tuple(kinds)}
    fields = {kind: {one.name for one in dataclasses.fields(kind)} for kind in kinds}
    assert [kind for kind in kinds if "emissions" in fields[kind]] == [Terminal]
    assert fields[Blocked] == {"lacks"}
    assert not any(hasattr(one, "__dict__") for one in (Blocked((A,)), Noop(), Outside())), "nothing can be smuggled in"


def test_a13_3_two_that_block_on_each_other_publish_nothing_and_are_judged() -> None:
    some = world(Part(A, needs=(B,), emits=(X,)), Part(B, needs=(A,), emits=(Y,)), Part(C, needs=(X,)))
    drive = Drive(some).live()
    assert drive.verdicts() == {A: NOT_READY, B: DEPENDENCY, C: DEPENDENCY}
    assert not drive.state.present(X)
    assert not drive.state.present(Y)
    assert len(drive.dispatched) <= 3 * 3 + 1


def test_a13_5_no_one_is_judged_for_a_lack_that_he_had_not_named_when_all_was_quiet() -> None:
    """B waits for A, and only then looks at y. What A brings in the end brings y: nobody knew that B would lack it."""
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(A, Blocked((X,)))
    hand.end(B, Blocked((A,)))
    assert hand.run(A, Terminal("ready without x", (X,), (emission(C),))).level is Level.CASCADE
    levels = {order.id: order.level for order in (hand.pull(), hand.pull()) if order is not None}
    assert levels == {B: Level.NONE, C: Level.NONE}, "c is about to bring y"


@pytest.mark.parametrize("when", ["first", "blocked before", "at cascade", "at force"])
def test_a13_4_a_crash_is_an_outcome_and_what_waits_for_it_is_told(when: str) -> None:
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


def test_a13_5_what_comes_after_a_judgement_is_met_without_prejudice() -> None:
    """A is judged for the lack of x; then x comes, and with it B, which waits for y: nobody has judged B yet."""
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


def test_a13_5_what_is_discovered_while_others_are_judged_is_met_without_prejudice() -> None:
    """B tolerates A, and goes on once A is judged; what it then makes belongs to nobody's judgement."""
    some = world(
        Part(A, needs=(X,)), Part(B, tolerates=(A,), emits=(C, Y)), Part(C, needs=(Y, D)), Part(D), seeds=(A, B)
    )
    drive = Drive(some).live()
    assert {order.level for order in drive.dispatched if order.id == C} <= {Level.NONE, Level.CASCADE}
    first = next(order for order in drive.dispatched if order.id == C)
    assert first.level is Level.NONE


def test_a13_5_levels_belong_to_components() -> None:
    """One component is on its way to FORCE while the other one gets what it lacks, and starts over."""
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


def test_a13_6_whatever_blocks_to_the_end_gets_a_verdict_in_so_many_words() -> None:
    some = world(Part(A, needs=(GHOST,), stubborn=True), Part(B, needs=(A,)), Part(C, needs=(B,)))
    drive = Drive(some).live()
    told = [effect for _, effects in drive.log for effect in effects if isinstance(effect, Unresolved)]
    assert told == [Unresolved(A, (GHOST,))]
    assert drive.verdicts() == {A: UNRESOLVED, B: DEPENDENCY, C: DEPENDENCY} == expected(some).verdicts
    assert drive.state.result(A) == "unresolved"


def test_a13_6_one_given_up_looks_again_when_what_it_lacked_comes() -> None:
    drive = Drive(world(Part(A, needs=(X,), stubborn=True), Part(B, needs=(A,)))).live()
    assert drive.verdicts() == {A: UNRESOLVED, B: DEPENDENCY}
    drive.change(Change(Arrived(emission(X))))
    while drive.move([]):
        pass
    assert drive.verdicts() == {A: READY, B: READY}


def test_a13_6_two_given_up_that_lack_each_other_do_not_wake_each_other_for_ever() -> None:
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


def test_a9_a_look_at_one_that_runs_again_still_sees_what_it_was() -> None:
    """#666: a re-reconcile that changes nothing made a dependent believe that its dependency was not ready."""
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


def test_a9_no_one_is_given_up_while_anything_runs() -> None:
    """#657-#660: the pool was idle for a moment, and whoever was parked was dropped."""
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


def test_a9_a_parent_that_makes_its_parked_child_anew_is_heard_by_it() -> None:
    """#102: the child went on with the content that it had read before it waited."""
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
def test_a9_what_came_between_the_look_and_the_parking_is_not_lost(lacked: Id) -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(A, Terminal("ready", (), (emission(X),)))
    hand.end(B, Blocked((lacked,)))
    assert isinstance(hand.state.phase(B), Runnable)


def test_a9_random_values_in_what_is_made_are_stopped_after_the_budget_and_the_others_go_on() -> None:
    """#828, #859: every run made something new, which ran its maker again."""
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
def test_a9_a_chain_that_hangs_on_a_typo_is_judged_at_once_with_three_bodies_a_node(
    length: int, dependents_first: bool
) -> None:
    """#413: a typo cost a timeout; here it costs a level."""
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
def test_a9_a_chain_of_selectors_is_followed_to_its_end(depth: int) -> None:
    """Stage by stage, each made of what the stage before it made, and none of them names another one."""
    hand = Hand()
    stages = [node(f"{at:02}") for at in range(depth)]
    hand.seed(*stages)
    hand.bring(datum("00"))
    runs: Counter[Id] = Counter()
    while ids := hand.pull_all():
        # All look before one reports, so that each round brings one stage: the worst that may happen.
        there = {one for one in ids if hand.state.present(datum(one.name))}
        for one in ids:
            made = (emission(datum(f"{int(one.name) + 1:02}")),) if one in there else ()
            hand.end(one, Terminal(READY, (), made), sweep=True)
        runs.update(ids)
    assert hand.state.present(datum(f"{depth:02}"))
    assert set(runs.values()) == {depth + 1}
    assert max(hand.state.charges(one) for one in stages) <= 2
    assert hand.effects == [Converged()]


def test_a9_a_failed_one_whose_content_changes_is_run_and_its_dependents_follow() -> None:
    """#260: a refire has to be seen by whoever failed because of it."""
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
def test_layers_that_can_be_satisfied_take_at_most_three_bodies_a_node() -> None:
    layers = [[node(f"l{layer:02}-{at:02}") for at in range(20)] for layer in range(10)]
    parts = [Part(one) for one in layers[0]]
    for below, layer in pairwise(layers):
        parts += [Part(one, needs=tuple(below[(at + k) % 20] for k in range(3))) for at, one in enumerate(layer)]
    drive = Drive(world(*parts, seeds=[part.id for part in reversed(parts)]), limit=4).live()
    assert set(drive.verdicts().values()) == {READY}
    assert len(drive.dispatched) <= 3 * len(parts)
    assert drive.level() is Level.NONE


def test_the_order_to_stop_waiting_names_the_cycle() -> None:
    hand = Hand()
    needs = {A: (B,), B: (C,), C: (A,), D: (A,)}
    hand.seed(*needs)
    for one in hand.pull_all():
        hand.end(one, Blocked(needs[one]))
    order = hand.pull()
    assert order == Dispatch(A, order.run if order else 0, Level.FORCE, (A, B, C))
    assert hand.pull() is None, "one of each cycle is told"
