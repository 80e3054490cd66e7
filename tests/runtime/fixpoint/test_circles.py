"""Algorithms for cycles, compared with a simple computation of reachability."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.fixpoint.circles import circle_of, finished, shortest_cycle, strong_components

Graph = Mapping[str, Iterable[str]]
NAMES = "abcdefg"
GRAPHS = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=3, unique=True))


def whole(graph: Graph) -> dict[str, list[str]]:
    """Return the graph with a key for every node."""
    return {name: list(graph.get(name, ())) for name in NAMES}


def reached(graph: Graph, start: str) -> set[str]:
    """Return the nodes that can be reached from ``start`` in one step or more."""
    found: set[str] = set()
    to_see = list(graph[start])
    while to_see:
        name = to_see.pop()
        if name not in found:
            found.add(name)
            to_see += graph[name]
    return found


def inverse(graph: Graph) -> dict[str, list[str]]:
    return {name: [each for each in graph if name in graph[each]] for name in graph}


@given(GRAPHS)
def test_components_are_strongly_connected_and_in_topological_order(drawn: Graph) -> None:
    graph = whole(drawn)
    components = strong_components(graph, graph.__getitem__)
    assert sorted(name for component in components for name in component) == sorted(NAMES)
    seen: set[str] = set()
    for component in components:
        seen.update(component)
        for name in component:
            together = {each for each in reached(graph, name) if name in reached(graph, each)} | {name}
            assert set(component) == together
            assert set(graph[name]) <= seen


@given(GRAPHS, st.sets(st.sampled_from(NAMES)))
def test_components_of_a_subset_ignore_other_nodes(drawn: Graph, names: set[str]) -> None:
    graph = whole(drawn)
    inside = {name: [each for each in graph[name] if each in names] for name in sorted(names)}
    assert strong_components(sorted(names), graph.__getitem__) == strong_components(inside, inside.__getitem__)


@given(GRAPHS, st.sampled_from(NAMES))
def test_the_circle_of_a_node_is_its_component(drawn: Graph, name: str) -> None:
    graph = whole(drawn)
    (component,) = [each for each in strong_components(graph, graph.__getitem__) if name in each]
    assert circle_of(name, graph.__getitem__, inverse(graph).__getitem__) == set(component)


@pytest.mark.parametrize("down", [True, False])
def test_the_search_ends_after_the_smaller_side(down: bool) -> None:
    """The node has two nodes on one side of the chain, and about a thousand on the other. The search takes only a few steps."""
    chain = {f"n{number}": [f"n{number - 1}"] if number else [] for number in range(1000)}
    at = "n2" if down else "n997"
    steps = 0

    def counted(graph: Graph, name: str) -> Iterable[str]:
        nonlocal steps
        steps += 1
        return graph[name]

    back = {name: [f"n{int(name[1:]) + 1}"] if name != "n999" else [] for name in chain}
    assert circle_of(at, lambda name: counted(chain, name), lambda name: counted(back, name)) == {at}
    assert steps < 12


@given(GRAPHS, st.sampled_from(NAMES))
def test_the_shortest_cycle_is_a_cycle_of_minimal_length(drawn: Graph, start: str) -> None:
    graph = whole(drawn)
    path = shortest_cycle(start, graph.__getitem__)
    assert bool(path) is (start in reached(graph, start))
    if not path:
        return
    assert path[0] == start
    assert len(set(path)) == len(path)
    assert all(then in graph[name] for name, then in zip(path, (*path[1:], start), strict=True))
    layer, length = {start}, 0
    while length == 0 or start not in layer:
        layer, length = {each for name in layer for each in graph[name]}, length + 1
    assert len(path) == length


@given(GRAPHS)
def test_finished_returns_each_node_once_in_post_order(drawn: Graph) -> None:
    graph = whole(drawn)
    left = finished(graph, graph.__getitem__)
    assert sorted(left) == sorted(NAMES)
    for name, targets in graph.items():
        for each in targets:
            assert left.index(each) < left.index(name) or name == each or name in reached(graph, each)


def test_the_first_of_equally_short_cycles_is_returned() -> None:
    graph = {"a": ["b", "d", "c"], "b": ["e"], "c": ["f"], "d": ["g"], "e": ["h"], "f": ["a"], "g": ["a"], "h": ["a"]}
    assert shortest_cycle("a", graph.__getitem__) == ("a", "d", "g")
    assert shortest_cycle("a", lambda name: sorted(graph[name])) == ("a", "c", "f")


def test_long_chains_need_no_recursion() -> None:
    chain = {f"n{number}": [f"n{number - 1}"] for number in range(1, 5000)} | {"n0": ["n4999"]}
    (component,) = strong_components(chain, chain.__getitem__)
    assert len(component) == 5000
    assert len(shortest_cycle("n0", chain.__getitem__)) == 5000
    assert finished(["n0"], chain.__getitem__) == [f"n{number}" for number in (*range(1, 5000), 0)]
