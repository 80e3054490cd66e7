"""Orders and edges: what comes before what, and what is a cycle."""

import itertools
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.nodes import group, node
from wharfinger.runtime.scheduler_graph import CycleError, Node, Topology, topology


def built(*nodes: Node) -> Topology:
    return topology({each.name: each for each in nodes})


def test_nothing() -> None:
    assert built() == Topology()


def test_dependencies_come_first_then_orders_then_names() -> None:
    order = built(
        node("web", "db"), node("db", order=999), node("z", order=1), node("b", optional=["web"]), node("a"), node("x")
    ).order
    assert order == ("z", "a", "db", "web", "b", "x")


def test_what_is_absent_is_no_edge() -> None:
    built_one = built(node("web", "db", optional=["cache"], any_of=[group("g", "q")], none_of=[group("n", "r")]))
    assert built_one.waits_for == {"web": ()}
    assert built_one.late == frozenset()
    assert built_one.refused_by == {}


@pytest.mark.parametrize(
    ("nodes", "members"),
    [
        ((node("a", "b"), node("b", "a")), "a, b"),
        ((node("a", "a"),), "a"),
        ((node("c", "b"), node("b", optional=["a"]), node("a", "c"), node("x", "a"), node("y", "x")), "a, b, c"),
        ((node("a", "b"), node("b", "a", "under"), node("under"), node("over", "a")), "a, b"),
    ],
)
def test_a_cycle_names_who_is_on_it_and_nobody_else(nodes: tuple[Node, ...], members: str) -> None:
    with pytest.raises(CycleError) as raised:
        built(*nodes)
    assert str(raised.value) == f"dependency cycle through: {members}"
    assert raised.value.members == tuple(members.split(", "))


def test_an_order_is_raised_to_that_of_what_it_waits_for() -> None:
    found = built(
        node("base", order=50),
        node("low", "base", order=10),
        node("lower", "low", order=5),
        node("picky", order=1, any_of=[group("g", "base")]),
        node("high", "low", order=70),
        node("refusing", order=2, none_of=[group("g", "base")]),
    )
    assert found.effective == {"base": 50, "low": 50, "lower": 50, "picky": 50, "high": 70, "refusing": 2}


def test_any_of_members_come_first_and_are_waited_for_where_they_can() -> None:
    found = built(node("app", any_of=[group("g", "zeta", "gone")]), node("zeta"))
    assert found.order == ("zeta", "app")
    assert found.waits_for == {"app": ("zeta",), "zeta": ()}


def test_chains_of_fallbacks_are_no_cycles() -> None:
    found = built(node("a", any_of=[group("g", "b", "a")]), node("b", any_of=[group("g", "a", "b")]))
    assert found.order == ("b", "a")
    assert found.waits_for == {"a": ("b",), "b": ()}
    assert found.late == {"a"}
    many = [node(a + b, any_of=[group("g", b + a)]) for a, b in itertools.permutations("abcd", 2)]
    assert built(*many).late == {"ab", "ac", "ad", "bc", "bd", "cd"}


def test_a_member_that_builds_on_the_one_that_names_it_is_late() -> None:
    found = built(node("a", any_of=[group("g", "b")]), node("b", "a"))
    assert found.order == ("a", "b")
    assert found.waits_for == {"a": (), "b": ("a",)}
    assert found.late == {"b"}


def test_none_of_members_come_first_but_are_not_waited_for() -> None:
    found = built(node("a", none_of=[group("g", "z")]), node("z"))
    assert found.order == ("z", "a")
    assert found.waits_for == {"a": (), "z": ()}


def test_who_excludes_each_other_is_ordered_all_the_same() -> None:
    found = built(node("a", none_of=[group("g", "b", "a")]), node("b", none_of=[group("g", "a")]))
    assert found.order == ("b", "a")
    assert found.refused_by == {"a": ("b",)}


NAMES = "abcdef"


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """Any nodes with edges of all kinds; hard ones only from later to earlier names, so without a cycle."""
    nodes = []
    for index, name in enumerate(NAMES[: draw(st.integers(1, len(NAMES)))]):
        earlier, some = st.sampled_from(NAMES[:index] or "-"), st.sampled_from(NAMES)
        nodes.append(
            node(
                name,
                *draw(st.sets(earlier, max_size=2)),
                order=draw(st.integers(1, 4)),
                optional=draw(st.sets(earlier, max_size=1)),
                any_of=[group("any", *draw(st.sets(some, min_size=1, max_size=2)))],
                none_of=[group("none", *draw(st.sets(some, max_size=1)))],
            )
        )
    return nodes


@given(graphs(), st.randoms(use_true_random=False))
def test_how_nodes_arrived_leaves_no_trace(nodes: list[Node], shuffler: Random) -> None:
    expected = built(*nodes)
    shuffled = list(nodes)
    shuffler.shuffle(shuffled)
    assert built(*shuffled) == expected
    assert set(expected.order) == {each.name for each in nodes}
    place = {name: index for index, name in enumerate(expected.order)}
    for name, waited_for in expected.waits_for.items():
        for each in waited_for:
            assert place[each] < place[name]
            assert expected.effective[each] <= expected.effective[name]


def test_a_long_chain_costs_no_stack() -> None:
    count = 3000
    nodes = [node(f"n{number}", f"n{number - 1}", order=-number) for number in range(count)]
    found = built(*nodes)
    assert found.order[-1] == f"n{count - 1}"
    assert set(found.effective.values()) == {0}
    with pytest.raises(CycleError):
        built(*nodes, node("n0", f"n{count - 1}"))
