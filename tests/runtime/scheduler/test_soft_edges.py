"""Knots, compared with a simple reference algorithm, which checks each edge against all edges chosen before it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.scheduler.soft_edges import Knot, placed, tie

NAMES = "abcdef"
Pairs = Mapping[str, set[str]]


def knot(
    names: str,
    hard: Mapping[str, str] | None = None,
    any_of: Mapping[str, str] | None = None,
    none_of: Mapping[str, str] | None = None,
    orders: Mapping[str, int] | None = None,
) -> Knot:
    first, soft, refusing = (
        {name: set((kind or {}).get(name, "")) for name in names} for kind in (hard, any_of, none_of)
    )
    return tie(first, soft, refusing, lambda name: (orders or {}).get(name, 0))


def choice(knot: Knot) -> tuple[dict[str, set[str]], set[str], Mapping[str, tuple[str, ...]]]:
    """Return the fields ``kept``, ``late`` and ``refused_by`` of a knot, in the form that `plain` returns."""
    return {name: set(kept) for name, kept in knot.kept.items()}, set(knot.late), knot.refused_by


def plain(hard: Pairs, any_of: Pairs, none_of: Pairs) -> tuple[Pairs, set[str], Mapping[str, tuple[str, ...]], Pairs]:
    """Return the fields ``kept``, ``late`` and ``refused_by`` that a knot of these edges must have, and the nodes that must be
    decided directly before each node.
    """
    before = {name: {each for each in hard[name] if each in hard} for name in hard}

    def builds_on(name: str, other: str) -> bool:
        return name == other or any(builds_on(each, other) for each in before[name])

    kept: dict[str, set[str]] = {}
    late = set()
    for name, member in sorted((one, each) for one in hard for each in any_of[one] if each in hard):
        if builds_on(member, name):
            late.add(member)
        else:
            before[name].add(member)
            kept.setdefault(name, set()).add(member)
    refused: dict[str, tuple[str, ...]] = {}
    for name, member in sorted((one, each) for one in hard for each in none_of[one] if each in hard):
        if builds_on(member, name):
            refused[member] = (*refused.get(member, ()), name)
        else:
            before[name].add(member)
    return kept, late, refused, before


def test_a_chain_of_fallbacks_has_one_late_member() -> None:
    found = knot("ab", any_of={"a": "b", "b": "a"})
    assert found.members == ("b", "a")
    assert found.position == {"b": 0, "a": 1}
    assert choice(found) == ({"a": {"b"}}, {"a"}, {})


def test_mutually_exclusive_packages_have_one_refuser() -> None:
    found = knot("ab", none_of={"a": "b", "b": "a"})
    assert (found.members, found.refused_by) == (("b", "a"), {"a": ("b",)})


def test_any_of_goes_before_none_of_and_hard_edges_before_both() -> None:
    assert knot("ab", any_of={"b": "a"}, none_of={"a": "b"}).members == ("a", "b")
    found = knot("ab", hard={"b": "a"}, any_of={"a": "b"}, none_of={"a": "b"})
    assert found.members == ("a", "b")
    assert choice(found) == ({}, {"b"}, {"b": ("a",)})


def test_several_refusers_are_sorted() -> None:
    assert knot("xab", hard={"x": "ba"}, none_of={"b": "x", "a": "x"}).refused_by == {"x": ("a", "b")}


@pytest.mark.parametrize(("orders", "members"), [({}, "abcd"), ({"c": -1}, "cabd"), ({"b": 2, "a": 3}, "cdba")])
def test_unrelated_nodes_are_sorted_by_order_and_name(orders: Mapping[str, int], members: str) -> None:
    assert placed({name: set() for name in "dcba"}, lambda name: orders.get(name, 0)) == tuple(members)


def test_the_next_node_is_the_lowest_available_one() -> None:
    assert placed({"a": {"z"}, "z": set(), "m": set()}, {"a": 0, "m": 1, "z": 2}.__getitem__) == ("m", "z", "a")


SOME = st.sets(st.sampled_from(NAMES), max_size=3)


@st.composite
def knots(draw: st.DrawFn) -> tuple[Pairs, Pairs, Pairs]:
    """Draw hard edges from later names to earlier or absent names, and soft edges (any-of and none-of) to any other name."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    hard = {
        name: {each for each in draw(SOME) if each < name} | draw(st.sampled_from([set(), {"z"}])) for name in names
    }
    any_of = {name: draw(SOME) - {name} for name in names}
    return hard, any_of, {name: draw(SOME) - {name} for name in names}


@given(knots(), st.permutations(NAMES), st.lists(st.integers(1, 3), min_size=6, max_size=6))
def test_the_choice_equals_that_of_the_reference_algorithm(
    edges: tuple[Pairs, Pairs, Pairs], shuffled: list[str], orders: list[int]
) -> None:
    order = dict(zip(NAMES, orders, strict=True)).__getitem__
    found = tie(*edges, order)
    kept, late, refused, before = plain(*edges)
    assert choice(found) == (kept, late, refused)
    assert found.members == placed(before, order)
    assert all(found.position[each] < found.position[name] for name in before for each in before[name])
    hard, any_of, none_of = ({name: kind[name] for name in shuffled if name in kind} for kind in edges)
    assert tie(hard, any_of, none_of, order) == found


def test_a_large_ring_of_fallbacks_has_one_late_member() -> None:
    """A member is late if it is decided after a node that names it. The ring has to be cut at one edge, so only n998 is late."""
    names = [f"n{number:03}" for number in range(1000)]
    ring = {name: {names[number - 1]} for number, name in enumerate(names)}
    nothing: Pairs = {name: set() for name in names}
    found = tie(nothing, ring, nothing, lambda _: 0)
    assert found.late == {"n998"}
    assert found.members == (*names[-1:], *names[:-1])
