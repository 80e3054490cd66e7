"""The immutable queue, compared with a list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.queue.fifo import Fifo


@given(st.lists(st.one_of(st.integers(), st.none()), max_size=40))
def test_a_fifo_behaves_like_a_list(moves: list[int | None]) -> None:
    """Each number in ``moves`` is put into the queue, and each None takes the oldest item."""
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


def test_two_queues_made_from_one_are_independent() -> None:
    both = Fifo.of("ab")
    assert (list(both.put("c")), list(both.put("d")), list(both)) == (["a", "b", "c"], ["a", "b", "d"], ["a", "b"])
    assert both.take() == both.take() == ("a", Fifo.of("b"))


def test_equality_ignores_the_division_into_chains() -> None:
    put, made = Fifo[str]().put("a").put("b"), Fifo.of("ab")
    assert put == made
    assert hash(put) == hash(made)
    assert put != Fifo.of("ba")
    assert put != ("a", "b")
    assert repr(put) == "Fifo.of(['a', 'b'])"


def test_taking_from_an_empty_fifo_is_an_error() -> None:
    with pytest.raises(IndexError, match="empty"):
        Fifo[int]().take()


def test_a_long_queue_is_compared_shown_and_freed_without_recursion() -> None:
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
