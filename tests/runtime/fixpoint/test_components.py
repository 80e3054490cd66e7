"""Connected groups of parked nodes, and cycles of nodes that wait for each other."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.fixpoint.worlds import node
from wharfinger.runtime.fixpoint.components import Lacks, bottoms, connected, loop_from
from wharfinger.runtime.fixpoint.model import Id

A, B, C, D, E, X, Y = (node(name) for name in "abcdexy")


def lacking(**lacks: str) -> Lacks:
    """Return a graph of nodes with one-letter names. Each keyword names a parked node, and each letter of its value names an id
    that this node lacks.
    """
    return {node(name): tuple(node(other) for other in others) for name, others in lacks.items()}


graphs = st.dictionaries(
    st.sampled_from([A, B, C, D, E]),
    st.lists(st.sampled_from([A, B, C, D, E, X, Y]), max_size=3).map(tuple),
    max_size=5,
)


def reachable(lacks: Lacks) -> set[tuple[Id, Id]]:
    """Return all pairs of parked nodes with a path between them, computed in the slow way."""
    pairs = {(one, other) for one, others in lacks.items() for other in others if other in lacks}
    for _ in lacks:
        pairs |= {(one, last) for (one, middle), (first, last) in product(pairs, pairs) if middle == first}
    return pairs


def test_groups_are_connected_by_lacked_ids() -> None:
    assert connected(lacking(a="x", b="x", c="y", d="e", e="d")) == [[A, B], [C], [D, E]]
    assert connected(lacking(c="b", b="a", a="")) == [[A, B, C]]
    assert connected(lacking(a="")) == [[A]]
    assert connected({}) == []


def test_bottom_components_lack_no_other_parked_node() -> None:
    lacks = lacking(a="b", b="a", c="ax", d="x", e="d")
    assert bottoms(lacks, lacks) == [[A, B], [D]]
    assert bottoms([C, A, B], lacks) == [[A, B]]


def test_a_loop_is_a_shortest_one_from_the_given_node() -> None:
    lacks = lacking(a="b", b="cd", c="e", d="a", e="a")
    assert loop_from(A, [A, B, C, D, E], lacks) == (A, B, D)
    assert loop_from(D, [A, B, C, D, E], lacks) == (D, A, B)
    assert loop_from(A, [A], lacking(a="a")) == (A,)
    assert loop_from(A, [A], lacking(a="x")) == ()
    assert loop_from(A, [A, B], lacking(a="b", b="b")) == ()


@given(graphs)
def test_groups_agree_with_reachability(lacks: Lacks) -> None:
    groups = connected(lacks)
    assert sorted(one for group in groups for one in group) == sorted(lacks)
    assert groups == sorted(sorted(group) for group in groups)
    of = {one: at for at, group in enumerate(groups) for one in group}
    for one, other in product(lacks, lacks):
        if other in lacks[one] or set(lacks[one]) & set(lacks[other]):
            assert of[one] == of[other]
    for group in groups:
        found = {group[0]}
        for _ in group:
            ids = found.union(*(lacks[one] for one in found))
            found |= {one for one in group if one in ids or ids & set(lacks[one])}
        assert found == set(group), "no group can be divided"


@given(graphs)
def test_bottom_components_and_loops_agree_with_reachability(lacks: Lacks) -> None:
    pairs = reachable(lacks)
    circles = {
        one: {one} | {other for other in lacks if (one, other) in pairs and (other, one) in pairs} for one in lacks
    }
    expected = {
        tuple(sorted(circle))
        for circle in circles.values()
        if all(other in circle for one in circle for other in lacks[one] if other in lacks)
    }
    found = bottoms(lacks, lacks)
    assert found == sorted(map(list, expected))
    for bottom in found:
        loop = loop_from(bottom[0], bottom, lacks)
        assert bool(loop) == ((bottom[0], bottom[0]) in pairs)
        assert len(set(loop)) == len(loop)
        assert set(loop) <= set(bottom)
        assert all(after in lacks[one] for one, after in zip(loop, loop[1:] + loop[:1], strict=True))


@pytest.mark.unmeasured
@pytest.mark.parametrize("closed", [True, False])
def test_long_chains_need_no_recursion(closed: bool) -> None:
    names = [node(f"{at:05}") for at in range(20_000)]
    lacks = {one: (after,) for one, after in zip(names, [*names[1:], names[0] if closed else X], strict=True)}
    assert connected(lacks) == [names]
    assert bottoms(names, lacks) == [names if closed else names[-1:]]
    assert loop_from(names[0], names, lacks) == (tuple(names) if closed else ())
