"""Against a list, and that nothing is ever changed by what is made of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.queue.fifo import Fifo


@given(st.lists(st.one_of(st.integers(), st.none()), max_size=40))
def test_it_is_a_list_that_is_appended_to_and_taken_from_in_front(moves: list[int | None]) -> None:
    """A number is put, None takes."""
    made: list[tuple[Fifo[int], list[int]]] = [(Fifo(), [])]
    for move in moves:
        fifo, items = made[-1]
        if move is not None:
            made.append((fifo.put(move), [*items, move]))
        elif items:
            first, rest = fifo.take()
            assert first == items[0]
            made.append((rest, items[1:]))
    for fifo, items in made:
        assert (list(fifo), len(fifo), bool(fifo)) == (items, len(items), bool(items))
        assert fifo == Fifo.of(items)


def test_two_histories_of_one_do_not_see_each_other() -> None:
    both = Fifo.of("ab")
    assert (list(both.put("c")), list(both.put("d")), list(both)) == (["a", "b", "c"], ["a", "b", "d"], ["a", "b"])
    assert both.take() == both.take() == ("a", Fifo.of("b"))


def test_equality_is_of_items_however_they_are_chained() -> None:
    put, made = Fifo[str]().put("a").put("b"), Fifo.of("ab")
    assert put == made
    assert hash(put) == hash(made)
    assert put != Fifo.of("ba")
    assert put != ("a", "b")
    assert repr(put) == "Fifo.of(['a', 'b'])"


def test_taking_from_an_empty_one_is_an_error() -> None:
    with pytest.raises(IndexError, match="empty"):
        Fifo[int]().take()


def test_a_long_one_is_compared_shown_and_let_go_of() -> None:
    length = 100_000
    fifo: Fifo[int] = Fifo()
    for number in range(length):
        fifo = fifo.put(number)
    assert len(repr(fifo)) > length
    assert fifo == Fifo.of(range(length))
    for number in range(length):
        first, fifo = fifo.take()
        assert first == number
    assert not fifo
