"""The queue of requests for members. It is ordered by the numbers of the requests, finds the requests whose deadline has
passed, and uses limited memory.
"""

import math

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.pools.claims.state import RequestQueue, Waiting


def line_of(*requests: tuple[int, float]) -> RequestQueue:
    line = RequestQueue()
    for number, deadline in requests:
        line.put(Waiting(number, deadline))
    return line


def test_the_request_with_the_lowest_number_is_first() -> None:
    line = line_of((3, 0.0), (1, 5.0), (2, 1.0))
    assert [line.take().request for _ in range(3)] == [1, 2, 3]
    assert len(line) == 0


def test_a_request_comes_back_to_its_place() -> None:
    line = line_of((1, math.inf), (2, math.inf))
    first = line.take()
    line.put(first)
    assert list(line) == [1, 2]


def test_removed_requests_are_passed_over() -> None:
    line = line_of((1, 1.0), (2, 2.0), (3, 3.0))
    assert line.remove(1) is not None
    assert line.remove(1) is None
    assert (line.deadline(), 1 in line, 2 in line) == (2.0, False, True)
    assert line.take().request == 2


def test_expired_requests_leave_in_the_order_of_their_deadlines() -> None:
    line = line_of((1, 9.0), (2, 3.0), (3, 1.0))
    assert [each.request for each in line.take_expired(3.0)] == [3, 2]
    assert line.deadline() == 9.0
    assert line_of().deadline() == math.inf


@given(st.lists(st.integers(0, 3), max_size=60))
def test_entries_of_requests_that_left_do_not_pile_up(moves: list[int]) -> None:
    line, number, held = RequestQueue(), 0, [Waiting(-1, 1.0)]
    for move in moves * 8:
        if move <= 1:
            number += 1
            line.put(Waiting(number, 1.0))
        elif move == 2 and len(line):
            held.append(line.take())
            line.put(held[-1])
        elif len(line):
            line.remove(next(iter(line)))
        entries = len(line._order) + len(line._deadlines)
        assert entries <= 5 * len(line) + 6 * len(moves) + 200
    left = list(line)
    assert [line.take().request for _ in range(len(line))] == left
