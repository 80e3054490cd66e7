"""The working copy of one step: its changes do not change the state, and it maintains the lists of parked nodes and readers."""

from tests.runtime.fixpoint.driving import Hand
from tests.runtime.fixpoint.worlds import datum, node
from wharfinger.runtime.fixpoint.draft import Draft
from wharfinger.runtime.fixpoint.model import Blocked, Terminal
from wharfinger.runtime.fixpoint.state import Fixpoint, Rules

A, B, C = node("a"), node("b"), node("c")
X, Y, Z = datum("x"), datum("y"), datum("z")


def state_with_one_parked(*, drain: bool = True) -> Fixpoint:
    """Return a state in which A is parked on x and y."""
    hand = Hand(Rules(drain=drain))
    hand.seed(A)
    hand.run(A, Blocked((X, Y)))
    return hand.state


def test_an_unchanged_draft_is_the_state_with_the_next_clock() -> None:
    state = state_with_one_parked()
    assert Draft(state).frozen() == state._replace(clock=state.clock + 1)


def test_changes_of_a_draft_do_not_change_the_state() -> None:
    state = state_with_one_parked()
    draft = Draft(state)
    draft.list_under(A, state.nodes[A], (Z,), (Y,))
    draft.enqueue(B)
    draft.forget(A, state.nodes[A]._replace(lacks=(Z,), reads=(Y,)))
    draft.park(C)
    assert (set(state.nodes), set(state.parked_on), set(state.readers)) == ({A}, {X, Y}, set())
    assert (list(state.queue), list(state.parked)) == ([], [A])


def test_lists_follow_lacked_and_read_ids() -> None:
    draft = Draft(state_with_one_parked())
    found = draft.nodes[A]
    draft.list_under(A, found, (Y, Z), (X,))
    assert ({key: set(who) for key, who in draft.parked_on.items()}) == {Y: {A}, Z: {A}}
    assert ({key: set(who) for key, who in draft.readers.items()}) == {X: {A}}
    found = found._replace(lacks=(Y, Z), reads=(X,))
    draft.list_under(B, found, (), ())  # It is no error to remove a node that is not listed.
    assert ({key: set(who) for key, who in draft.parked_on.items()}) == {Y: {A}, Z: {A}}
    draft.list_under(A, found, (), ())
    assert (len(draft.parked_on), len(draft.readers)) == (0, 0)


def test_a_discarded_list_is_created_again() -> None:
    """The draft has a list of the parked nodes for each lacked id. The list for x was discarded. If A is listed under x and y,
    the list for x is created again, and the list for y is kept.
    """
    draft = Draft(state_with_one_parked())
    draft.parked_on = draft.parked_on.discard(X)
    draft.list_under(A, draft.nodes[A], (X, Y), ())
    assert ({key: set(who) for key, who in draft.parked_on.items()}) == {X: {A}, Y: {A}}


def test_many_ids_are_listed_and_removed() -> None:
    draft = Draft(state_with_one_parked())
    many = tuple(datum(f"{at:03}") for at in range(100))
    draft.list_under(A, draft.nodes[A], many, many)
    found = draft.nodes[A]._replace(lacks=many, reads=many)
    draft.list_under(A, found, many[50:], ())
    assert sorted(draft.parked_on) == list(many[50:])
    assert len(draft.readers) == 0


def test_parked_nodes_are_recorded_only_if_there_are_fixpoints() -> None:
    for drain in (True, False):
        assert list(state_with_one_parked(drain=drain).parked) == ([A] if drain else [])


def test_a_woken_node_is_no_longer_among_the_parked_ones() -> None:
    hand = Hand()
    hand.seed(A, B)
    hand.run(A, Blocked((X,)))
    hand.run(B, Blocked((Y,)))
    hand.bring(X)
    hand.run(A, Terminal("ready"))
    assert list(Draft(hand.state).still_parked()) == [B]


def test_an_unknown_id_has_never_changed() -> None:
    mark = Draft(state_with_one_parked()).mark(Z)
    assert (mark.changed, mark.finished, mark.present, mark.digest) == (0, 0, False, None)
