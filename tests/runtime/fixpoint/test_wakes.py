"""Wakes of nodes: why, how often, and in which order nodes run again (spec/schedulers §A.4, §A.5, and §A.7 items 1, 3, 4)."""

import pytest

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, emission, node
from wharfinger.runtime.fixpoint.model import (
    Answered,
    Arrived,
    Asked,
    Blocked,
    Converged,
    Crashed,
    DependencyFailed,
    Event,
    Finished,
    Id,
    Noop,
    Outcome,
    Outside,
    Removed,
    Seeded,
    Terminal,
)
from wharfinger.runtime.fixpoint.state import Done, Parked, Rules, Runnable, Waiting

A, B, C, D = node("a"), node("b"), node("c"), node("d")
X, Y = datum("x"), datum("y")

OUTCOMES: dict[str, Outcome] = {
    "terminal": Terminal("ready", (X,)),
    "blocked": Blocked((X,)),
    "failed by dependency": DependencyFailed((X,), "dependency"),
    "outside": Outside((X,)),
    "crashed": Crashed("boom"),
    "noop": Noop(),
}
NEW, X_COMES, X_AGAIN = (Arrived(emission(*one)) for one in ((A, "new"), (X, "1"), (X, "2")))
WAKES: dict[str, tuple[Event, ...]] = {
    "new content": (NEW,),
    "requested": (Asked(A),),
    "both": (Asked(A), NEW),
    "requested three times": (Asked(A),) * 3,
    "a lacked or read id arrives": (X_COMES,),
    "all causes": (X_COMES, NEW, Asked(A), X_AGAIN),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("wake", WAKES)
def test_any_wakes_of_a_running_body_cause_one_more_run(wake: str, outcome: str) -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("first", (X,)))
    hand.tell(Asked(A))
    first = hand.pull()
    assert first is not None
    for event in WAKES[wake]:
        hand.tell(event)
    assert hand.pull() is None  # a node never runs twice at the same time
    hand.end(A, OUTCOMES[outcome])
    looks_on = outcome not in {"crashed"} or wake != "a lacked or read id arrives"
    assert isinstance(hand.state.phase(A), Runnable) is looks_on
    if looks_on:
        second = hand.run(A, Terminal("last", (X,)))
        assert second.run > first.run
    assert hand.pull_all() == []
    assert hand.effects[-1] == Converged()


@pytest.mark.parametrize("wake", WAKES)
@pytest.mark.parametrize("where", ["runnable", "parked", "done", "waiting"])
def test_wakes_of_a_node_that_does_not_run_share_one_run(where: str, wake: str) -> None:
    hand = Hand()
    hand.seed(A)
    before: dict[str, Outcome] = {"parked": Blocked((X,)), "done": Terminal("ready", (X,)), "waiting": Outside((X,))}
    if where in before:
        hand.run(A, before[where])
    for event in WAKES[wake]:
        hand.tell(event)
    assert isinstance(hand.state.phase(A), Runnable)
    hand.run(A, Terminal("ready", (X,)))
    assert hand.pull_all() == []
    charged = (
        {"new content", "both", "all causes"}
        if where != "done"
        else set(WAKES) - {"requested", "requested three times"}
    )
    assert hand.state.charges(A) == (wake in charged and where != "runnable"), "a first run costs nothing"


def test_every_end_wakes_parked_nodes_and_only_changes_wake_readers() -> None:
    hand = Hand()
    hand.seed(A, B, C)
    assert hand.pull_all() == [A, B, C]
    hand.end(A, Terminal("ready"))
    hand.end(B, Blocked((A,)))
    hand.end(C, Terminal("ready", (A,)))
    assert hand.pull_all() == [B, C]  # both runs began before A ended
    hand.end(B, Blocked((A,)))
    hand.end(C, Terminal("ready", (A,)))
    hand.tell(Asked(A))
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == [B]
    hand.end(B, Blocked((A,)))
    hand.tell(Asked(A))
    hand.run(A, Noop())
    assert hand.pull_all() == [B]
    hand.end(B, Blocked((A,)))
    hand.tell(Asked(A))
    hand.run(A, Terminal("other"))
    assert hand.pull_all() == [B, C]


def test_a_woken_node_is_removed_from_the_lists_of_all_lacked_ids() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Blocked((X, Y, B)))
    assert [hand.state.waiters(one) for one in (X, Y, B)] == [(A,)] * 3
    hand.bring(Y)
    assert [hand.state.waiters(one) for one in (X, Y, B)] == [()] * 3
    assert hand.pull() is not None
    hand.bring(X)
    hand.end(A, Blocked((B,)))
    assert isinstance(hand.state.phase(A), Parked), "x arrived while A ran, and A no longer lacks x"
    assert [hand.state.waiters(one) for one in (X, Y, B)] == [(), (), (A,)]


def test_an_id_lacked_twice_is_listed_once() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Blocked((X, X)))
    assert hand.state.lacks(A) == (X,)
    hand.bring(X)
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []


def test_equal_content_is_not_a_change() -> None:
    hand = Hand()
    hand.seed(A, B)
    hand.bring(X)
    assert hand.pull_all() == [A, B]
    hand.end(A, Terminal("ready", (X,), (emission(C),)))
    hand.end(B, Blocked((Y, C)))
    assert hand.pull_all() == [C, B], "c is new, and b lacks it"
    hand.end(B, Blocked((Y, C)))
    hand.end(C, Terminal("ready"))
    assert hand.pull_all() == [B]
    hand.end(B, Blocked((Y,)))
    hand.bring(X)
    hand.bring(C)
    hand.tell(Seeded((A, B, C)))
    hand.tell(Asked(A))
    hand.run(A, Terminal("ready", (X,), (emission(C),)))
    order = hand.pull()
    assert order is not None
    assert order.id == B
    assert order.level > 0, "nothing else was left to do"


def test_an_end_between_dispatch_and_report_is_not_lost() -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Terminal("ready"))
    hand.end(A, Blocked((B,)))
    assert hand.run(A, Terminal("ready")).level == 0


def test_an_end_by_a_noop_between_dispatch_and_report_is_not_lost() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("ready"))
    hand.tell(Asked(A))
    hand.seed(B)
    assert hand.pull_all() == [A, B]
    hand.end(A, Noop())
    hand.end(B, Blocked((A,)))
    assert hand.run(B, Terminal("ready")).level == 0


def test_endless_sweeps_are_stopped() -> None:
    hand = Hand(Rules(budget=3))
    hand.seed(A)
    hand.bring(X)
    runs = 0
    while (order := hand.pull()) is not None:
        runs += 1
        assert runs < 10, "it does not end"
        hand.end(order.id, Terminal("ready", (), (emission(Y, f"version {runs}"),)), sweep=True)
    assert runs == 4
    assert (hand.state.result(A) or "").startswith("exhausted")
    assert hand.effects[-1] == Converged()


@pytest.mark.parametrize("shuffled", [(A, B, C, D), (D, C, B, A), (C, A, D, B)])
def test_nodes_that_wait_for_the_same_id_are_woken_in_order(shuffled: tuple[Id, ...]) -> None:
    hand = Hand()
    hand.seed(*shuffled)
    hand.pull_all()
    for one in shuffled:
        hand.end(one, Blocked((X,)) if one != B else Terminal("ready", (X,)))
    hand.bring(X)
    assert hand.pull_all() == [A, B, C, D]


def test_a_node_may_wait_for_a_child_that_it_emitted() -> None:
    hand = Hand()
    hand.seed(A)
    hand.run(A, Terminal("made", (B,), (emission(B),)))
    hand.tell(Asked(A))
    assert hand.pull_all() == [B, A]
    hand.end(A, Blocked((B,)))
    hand.end(B, Terminal("ready"))
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []


# --- nodes that wait for the world outside --------------------------------------------------------------------------------


def test_an_answer_counts_once_and_only_for_its_run() -> None:
    hand = Hand()
    hand.seed(A)
    first = hand.run(A, Outside())
    hand.tell(Answered(A, first.run + 1))
    hand.tell(Answered(A, first.run - 1))
    hand.tell(Answered(B, first.run))
    assert hand.pull_all() == []
    assert isinstance(hand.state.phase(A), Waiting)
    hand.tell(Answered(A, first.run))
    hand.tell(Answered(A, first.run))
    second = hand.run(A, Outside())
    hand.tell(Answered(A, first.run))
    assert hand.pull_all() == []
    hand.tell(Answered(A, second.run))
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == []
    assert hand.effects == [Converged()]


def test_a_node_that_waits_outside_prevents_convergence_and_judgement() -> None:
    hand = Hand()
    hand.seed(A, B, C)
    assert hand.pull_all() == [A, B, C]
    hand.end(B, Blocked((X,)))
    hand.end(C, Terminal("ready"), sweep=True)
    hand.bring(Y)
    order = hand.running[A]
    hand.end(A, Outside())
    assert hand.pull_all() == []
    assert hand.effects == []
    hand.tell(Answered(A, order.run))
    hand.run(A, Terminal("ready"))
    assert hand.pull_all() == [C], "C requested a sweep, and y has arrived since"
    hand.end(C, Noop(), sweep=True)
    order_of_b = hand.pull()
    assert order_of_b is not None
    assert (order_of_b.id, order_of_b.level) == (B, 1)


# --- events at the wrong time ---------------------------------------------------------------------------------------------


def test_unexpected_reports_are_ignored() -> None:
    hand = Hand()
    hand.seed(A)
    first = hand.run(A, Terminal("ready"))
    before = hand.state
    for one, run in ((A, first.run), (A, first.run + 1), (B, 1)):
        hand.tell(Finished(one, run, Terminal("stale", (), (emission(C),))))
    assert hand.state.result(A) == before.result(A)
    assert not hand.state.present(C)
    assert hand.state.phase(B) is None
    hand.tell(Asked(A))
    second = hand.pull()
    assert second is not None
    hand.tell(Finished(A, first.run, Terminal("stale", (), (emission(C),))))
    assert hand.state.result(A) == "ready"
    assert not hand.state.present(C)
    hand.end(A, Terminal("ready"))
    assert hand.pull_all() == []


def test_events_about_unknown_ids_are_ignored() -> None:
    hand = Hand()
    for event in (Asked(A), Answered(A, 1), Removed(A), Removed(X)):
        hand.tell(event)
    assert hand.pull_all() == []
    assert hand.state.phase(A) is None
    assert hand.state.result(A) is None
    assert not hand.state.present(A)
    assert hand.state.waiters(A) == hand.state.lacks(A) == ()
    assert hand.state.charges(A) == 0


def test_a_body_removed_and_added_again_never_runs_twice_at_once() -> None:
    hand = Hand()
    hand.seed(A, B)
    assert hand.pull_all() == [A, B]
    hand.end(B, Blocked((A,)))
    hand.tell(Removed(A))
    hand.bring(A, "another")
    while (order := hand.pull()) is not None:
        assert order.id != A, "the old body still runs"
        hand.end(order.id, Blocked((A,)))
    hand.end(A, Terminal("of the removed one", (), ()))
    ids = hand.pull_all()
    assert A in ids
    hand.end(A, Terminal("ready"))
    assert hand.state.result(A) == "ready"


@pytest.mark.parametrize("where", ["runnable", "running", "parked", "done", "waiting"])
def test_a_removal_wakes_dependents(where: str) -> None:
    hand = Hand()
    hand.seed(A, B)
    before: dict[str, Outcome] = {
        "parked": Blocked((X,)),
        "done": Terminal("ready", (X,)),
        "waiting": Outside((X,)),
    }
    if where in before:
        hand.run(A, before[where])
        hand.run(B, Terminal("saw it", (A,)))
    else:
        # A is still queued or running when B has ended.
        assert hand.pull_all() == [A, B]
        hand.end(B, Terminal("saw it", (A,)))
        if where == "runnable":
            hand.tell(Asked(A))
            hand.end(A, Terminal("ready", (X,)))
    hand.tell(Removed(A))
    assert not hand.state.present(A)
    assert hand.state.result(A) is None
    assert hand.state.waiters(X) == ()
    while (order := hand.pull()) is not None:
        assert order.id == B
        hand.end(B, Terminal("it is gone", (A,)))
    if A in hand.running:
        hand.end(A, Terminal("too late", (), ()))
        assert hand.pull_all() == []
    assert hand.state.phase(A) is None
    assert hand.state.result(B) == "it is gone"
    hand.bring(X)
    assert hand.pull_all() == [], "no node waits for x any more"
    assert hand.effects[-1] == Converged()


# --- the live daemon ----------------------------------------------------------------------------------------------------------


def test_without_drain_parked_nodes_wait_for_the_lacked_ids() -> None:
    hand = Hand(Rules(drain=False, budget=1))
    hand.seed(A, B)
    hand.run(A, Blocked((B,)))
    hand.run(B, Blocked((A,)))
    assert hand.pull_all() == []
    assert isinstance(hand.state.phase(A), Parked)
    hand.bring(A, "2")
    hand.run(A, Terminal("ready", (X,)))
    hand.run(B, Terminal("ready"))
    assert hand.pull_all() == []
    for version in range(5):
        hand.bring(X, str(version))
        hand.run(A, Terminal("ready", (X,)))
        assert hand.pull_all() == []
    assert isinstance(hand.state.phase(A), Done)
    assert hand.state.result(A) == "ready"
    assert hand.effects == []


def test_without_drain_a_storm_is_stopped_until_the_engine_is_idle() -> None:
    hand = Hand(Rules(drain=False, budget=2))
    hand.seed(A)

    def storm() -> int:
        runs = 0
        while (order := hand.pull()) is not None:
            runs += 1
            hand.end(A, Terminal("ready", (), (emission(A, f"{order.run}"),)))
        return runs

    assert storm() == 3
    assert (hand.state.result(A) or "").startswith("exhausted")
    hand.tell(Asked(A))
    assert storm() == 3
    assert isinstance(hand.state.phase(A), Done)
    hand.bring(A, "from outside")
    assert storm() == 2, "arrivals from outside are charged as well"


def test_arriving_data_create_no_node() -> None:
    hand = Hand()
    hand.tell(Arrived(emission(X)))
    assert hand.state.present(X)
    assert hand.state.phase(X) is None
    assert hand.pull_all() == []
