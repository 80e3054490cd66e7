"""One step's working copy: it is the state again when nothing was done, and keeps the books of who is listed where."""

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, node
from wharfinger.runtime.fixpoint.draft import Draft
from wharfinger.runtime.fixpoint.model import Blocked, Terminal
from wharfinger.runtime.fixpoint.state import Fixpoint, Rules

A, B, C = node("a"), node("b"), node("c")
X, Y, Z = datum("x"), datum("y"), datum("z")


def state_with_one_parked(*, drain: bool = True) -> Fixpoint:
    """A is parked on x and y."""
    hand = Hand(Rules(drain=drain))
    hand.seed(A)
    hand.run(A, Blocked((X, Y)))
    return hand.state


def test_nothing_done_is_the_state_one_later() -> None:
    state = state_with_one_parked()
    assert Draft(state).frozen() == state._replace(clock=state.clock + 1)


def test_what_is_done_to_a_draft_is_not_done_to_the_state() -> None:
    state = state_with_one_parked()
    draft = Draft(state)
    draft.list_under(A, state.nodes[A], (Z,), (Y,))
    draft.enqueue(B)
    draft.forget(A, state.nodes[A]._replace(lacks=(Z,), reads=(Y,)))
    draft.park(C)
    assert (set(state.nodes), set(state.parked_on), set(state.readers)) == ({A}, {X, Y}, set())
    assert (list(state.queue), list(state.parked)) == ([], [A])


def test_listing_follows_what_is_named() -> None:
    draft = Draft(state_with_one_parked())
    found = draft.nodes[A]
    draft.list_under(A, found, (Y, Z), (X,))
    assert ({key: set(who) for key, who in draft.parked_on.items()}) == {Y: {A}, Z: {A}}
    assert ({key: set(who) for key, who in draft.readers.items()}) == {X: {A}}
    found = found._replace(lacks=(Y, Z), reads=(X,))
    draft.list_under(B, found, (), ())  # who is not listed there is not missed
    assert ({key: set(who) for key, who in draft.parked_on.items()}) == {Y: {A}, Z: {A}}
    draft.list_under(A, found, (), ())
    assert (len(draft.parked_on), len(draft.readers)) == (0, 0)


def test_a_list_that_was_dropped_meanwhile_is_made_again() -> None:
    """Whoever is told of news is taken off one list; the others still hold it."""
    draft = Draft(state_with_one_parked())
    draft.parked_on = draft.parked_on.discard(X)
    draft.list_under(A, draft.nodes[A], (X, Y), ())
    assert ({key: set(who) for key, who in draft.parked_on.items()}) == {X: {A}, Y: {A}}


def test_many_are_listed_and_taken_off_as_few_are() -> None:
    draft = Draft(state_with_one_parked())
    many = tuple(datum(f"{at:03}") for at in range(100))
    draft.list_under(A, draft.nodes[A], many, many)
    found = draft.nodes[A]._replace(lacks=many, reads=many)
    draft.list_under(A, found, many[50:], ())
    assert sorted(draft.parked_on) == list(many[50:])
    assert len(draft.readers) == 0


def test_only_where_there_are_fixpoints_the_parked_are_remembered() -> None:
    for drain in (True, False):
        assert list(state_with_one_parked(drain=drain).parked) == ([A] if drain else [])


def test_who_is_parked_no_more_is_not_counted_among_the_parked() -> None:
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Blocked((X,)))
    hand.run(B, Blocked((Y,)))
    hand.bring(X)
    hand.run(A, Terminal("ready"))
    assert list(Draft(hand.state).still_parked()) == [B]


def test_what_was_never_there_never_changed() -> None:
    mark = Draft(state_with_one_parked()).mark(Z)
    assert (mark.changed, mark.finished, mark.present, mark.digest) == (0, 0, False, None)
