"""The order of the nodes within each column of a drawing."""

from itertools import pairwise

import pytest
from hypothesis import given

from tests.debug.support.layouts import numbered_graphs
from wharfinger.debug.graph import rows as graph_rows
from wharfinger.debug.graph.layers import Edge, columns_of
from wharfinger.debug.graph.rows import Rows, order_rows


def test_crossing_edges_are_disentangled() -> None:
    rows = order_rows([0, 0, 0, 1, 1, 1], [Edge(3, 2), Edge(4, 1), Edge(5, 0)])
    assert crossings(rows) == 0


def test_edges_to_the_same_node_share_a_route() -> None:
    rows = order_rows([0, 1, 2, 3, 3], [Edge(1, 0), Edge(2, 1), Edge(3, 2), Edge(3, 0), Edge(4, 0)])
    assert rows.routes[3] == rows.routes[4] != ()
    assert len(rows.left) == 5 + 2
    assert rows.routes[:3] == ((), (), ())


def test_an_edge_that_points_right_starts_at_its_source() -> None:
    rows = order_rows([0, 1, 2, 3], [Edge(1, 0), Edge(2, 1), Edge(3, 2), Edge(0, 3)])
    (first, second) = rows.routes[3] or ()
    assert first in rows.columns[1]
    assert second in rows.columns[2]
    assert (rows.left[first], rows.right[second]) == ((0,), (3,))


def test_a_loop_has_no_route() -> None:
    assert order_rows([0], [Edge(0, 0)]) == Rows(((0,),), ((),), ((),), (None,))
    assert order_rows([], []) == Rows((), (), (), ())


def test_the_longest_edges_are_straight_if_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_rows, "MAX_JOINTS", 2)
    chain = [Edge(at + 1, at) for at in range(5)]
    rows = order_rows([0, 1, 2, 3, 4, 5], [*chain, Edge(5, 0), Edge(3, 1), Edge(5, 3), Edge(4, 0)])
    assert rows.routes[5] is rows.routes[8] is None
    assert [len(each or ()) for each in rows.routes[6:8]] == [1, 1]


def test_very_many_edges_are_ordered_without_counting_crossings(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [Edge(3, 2), Edge(4, 1), Edge(5, 0)]
    monkeypatch.setattr(graph_rows, "_WORTH_COUNTING", 0)
    assert crossings(order_rows([0, 0, 0, 1, 1, 1], drawn)) == 0


@given(numbered_graphs())
def test_rows_contain_every_node_and_edge_of_any_graph(graph: tuple[int, list[Edge]]) -> None:
    count, drawn = graph
    column = columns_of(count, drawn)
    rows = order_rows(column, drawn)
    assert rows == order_rows(column, drawn)
    where = {each: at for at, members in enumerate(rows.columns) for each in members}
    assert sorted(where) == list(range(len(rows.left)))
    assert [where[node] for node in range(count)] == column
    for edge, route in zip(drawn, rows.routes, strict=True):
        assert (route is None) == (edge.source == edge.target)
        if route is not None:
            way = [edge.source, *route, edge.target]
            steps = {where[after] - where[before] for before, after in pairwise(way)}
            assert steps in ({1}, {-1})
            assert all(joint >= count for joint in route)
    for each in where:
        assert all(each in rows.right[near] for near in rows.left[each])
        assert all(each in rows.left[near] for near in rows.right[each])


@given(numbered_graphs())
def test_later_sweeps_never_add_crossings(graph: tuple[int, list[Edge]]) -> None:
    """The best result of all sweeps is used, so it is never worse than the result of the first sweep."""
    count, drawn = graph
    column = columns_of(count, drawn)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(graph_rows, "_SWEEPS", 1)
        first = crossings(order_rows(column, drawn))
    assert crossings(order_rows(column, drawn)) <= first


def crossings(rows: Rows) -> int:
    place = {each: at for members in rows.columns for at, each in enumerate(members)}
    total = 0
    for members in rows.columns:
        pieces = [(place[each], place[near]) for each in members for near in rows.left[each]]
        total += sum((a - c) * (b - d) < 0 for a, b in pieces for c, d in pieces) // 2
    return total
