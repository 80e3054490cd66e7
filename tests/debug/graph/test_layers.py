"""The columns into which a drawing of a graph is divided."""

import pytest
from hypothesis import given

from tests.debug.support.layouts import numbered_graphs
from wharfinger.debug.graph.layers import Edge, columns_of, line_of


def edges(*pairs: tuple[int, int]) -> list[Edge]:
    return [Edge(source, target) for source, target in pairs]


@pytest.mark.parametrize(
    ("count", "drawn", "columns"),
    [
        (0, [], []),
        (3, [], [0, 0, 0]),
        (3, edges((0, 1), (1, 2)), [2, 1, 0]),
        (3, edges((0, 1), (1, 2), (0, 2)), [2, 1, 0]),
        (2, edges((0, 0), (0, 1)), [1, 0]),
        # A node without dependencies is in the column right before the first node that depends on it.
        (4, edges((0, 1), (1, 2), (0, 3)), [2, 1, 0, 1]),
        # A cycle is cut at a place that is the same every time.
        (2, edges((0, 1), (1, 0)), [1, 0]),
        (3, edges((0, 1), (1, 2), (2, 0)), [2, 1, 0]),
    ],
)
def test_dependencies_stand_left_of_their_dependents(count: int, drawn: list[Edge], columns: list[int]) -> None:
    assert columns_of(count, drawn) == columns


@pytest.mark.parametrize("flipped", [False, True])
def test_a_cycle_is_cut_at_its_weak_edge(flipped: bool) -> None:
    first, second = (1, 0) if flipped else (0, 1)
    assert columns_of(2, [Edge(first, second), Edge(second, first, strong=False)])[second] == 0


def test_a_long_chain_needs_no_recursion() -> None:
    chain = edges(*((at, at + 1) for at in range(20_000)))
    assert columns_of(20_001, chain) == list(range(20_000, -1, -1))
    assert len(line_of(20_001, [*chain, Edge(20_000, 0)])) == 20_001


@given(numbered_graphs())
def test_any_graph_is_divided_into_columns(graph: tuple[int, list[Edge]]) -> None:
    count, drawn = graph
    columns = columns_of(count, drawn)
    assert columns == columns_of(count, drawn)
    assert set(columns) == set(range(max(columns) + 1))
    assert all(columns[edge.source] != columns[edge.target] for edge in drawn if edge.source != edge.target)
    line = line_of(count, drawn)
    assert sorted(line) == list(range(count))
    place = {node: at for at, node in enumerate(line)}
    for source, target, _ in drawn:
        if source != target:
            assert (columns[source] > columns[target]) == (place[source] > place[target])
            if place[source] < place[target]:
                assert reaches(drawn, target, source)


@given(numbered_graphs())
def test_strong_edges_are_reversed_only_on_strong_cycles(graph: tuple[int, list[Edge]]) -> None:
    count, drawn = graph
    columns = columns_of(count, drawn)
    strong = [edge for edge in drawn if edge.strong]
    for source, target, _ in strong:
        if columns[source] < columns[target]:
            assert reaches(strong, target, source)


def reaches(drawn: list[Edge], start: int, goal: int) -> bool:
    found, to_see = {start}, [start]
    while to_see:
        node = to_see.pop()
        new = {edge.target for edge in drawn if edge.source == node} - found
        found |= new
        to_see += new
    return goal in found
