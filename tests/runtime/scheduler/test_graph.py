"""Orders, edges and cycles of the graph. The tests of single changes are in test_scheduler_changes.py."""

import itertools
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.support.nodes import built, graphs, group, node, ordered
from wharfinger.runtime.scheduler.graph import CycleError, Node, Topology


def test_an_empty_graph_has_an_empty_topology() -> None:
    assert built() == Topology()


def test_dependencies_come_first_then_orders_then_names() -> None:
    nodes = (
        node("web", "db"),
        node("db", order=999),
        node("z", order=1),
        node("b", optional=["web"]),
        node("a"),
        node("x"),
    )
    assert ordered(*nodes) == ("z", "a", "db", "x", "web", "b")
    assert built(*nodes).sorted({each.name: each for each in nodes}, ["b", "x", "z"]) == ("z", "x", "b")


def test_absent_packages_are_no_edges() -> None:
    found = built(node("web", "db", optional=["cache"], any_of=[group("g", "q")], none_of=[group("n", "r")]))
    assert dict(found.waits_for) == {"web": ()}
    assert dict(found.rank) == {"web": 0}
    assert dict(found.knots) == {}
    assert {name: found.dependents(name) for name in ("db", "cache", "q", "r", "web", "gone")} == {
        **dict.fromkeys(("db", "cache", "q", "r"), ("web",)),
        "web": (),
        "gone": (),
    }


@pytest.mark.parametrize(
    ("nodes", "members", "path"),
    [
        ((node("a", "b"), node("b", "a")), "a, b", "a → b → a"),
        ((node("a", "a"),), "a", "a → a"),
        ((node("a", optional=["a"]),), "a", "a → a"),
        (
            (node("c", "b"), node("b", optional=["a"]), node("a", "c"), node("x", "a"), node("y", "x")),
            "a, b, c",
            "a → c → b → a",
        ),
        ((node("a", "b"), node("b", "a", "under"), node("under"), node("over", "a")), "a, b", "a → b → a"),
        (
            (node("c", "d"), node("d", "c"), node("a", "e"), node("e", "b", "a"), node("b", "e"), node("f", "c")),
            "a, b, e",
            "a → e → a",
        ),
        (
            (node("b", "c", any_of=[group("g", "a")]), node("c", "b"), node("a", none_of=[group("g", "b")])),
            "b, c",
            "b → c → b",
        ),
    ],
)
def test_a_cycle_error_names_exactly_its_members(nodes: tuple[Node, ...], members: str, path: str) -> None:
    for shuffled in itertools.permutations(nodes) if len(nodes) < 4 else (nodes, nodes[::-1]):
        with pytest.raises(CycleError) as raised:
            built(*shuffled)
        assert str(raised.value) == f"dependency cycle through: {members} ({path})"
        assert raised.value.members == tuple(members.split(", "))
        assert (*raised.value.path, raised.value.path[0]) == tuple(path.split(" → "))


def test_a_long_cycle_is_shortened_in_the_message() -> None:
    ring = [node(f"n{number:03}", f"n{(number + 1) % 500:03}") for number in range(500)]
    with pytest.raises(CycleError) as raised:
        built(*ring)
    assert len(raised.value.members) == len(raised.value.path) == 500
    shown = [f"n{number:03}" for number in range(20)]
    assert str(raised.value) == (
        f"dependency cycle through: {', '.join(shown)}, 480 more ({' → '.join(shown)} → 480 more → n000)"
    )


def test_an_order_is_raised_to_that_of_its_dependencies() -> None:
    found = built(
        node("base", order=50),
        node("low", "base", order=10),
        node("lower", "low", order=5),
        node("picky", order=1, any_of=[group("g", "base")]),
        node("high", "low", order=70),
        node("refusing", order=2, none_of=[group("g", "base")]),
    )
    assert dict(found.effective) == {"base": 50, "low": 50, "lower": 50, "picky": 50, "high": 70, "refusing": 2}


def test_any_of_members_come_first_and_are_waited_for() -> None:
    nodes = node("app", any_of=[group("g", "zeta", "gone")]), node("zeta")
    assert ordered(*nodes) == ("zeta", "app")
    assert dict(built(*nodes).waits_for) == {"app": ("zeta",), "zeta": ()}


def test_chains_of_fallbacks_are_no_cycles() -> None:
    nodes = node("a", any_of=[group("g", "b", "a")]), node("b", any_of=[group("g", "a", "b")])
    found = built(*nodes)
    assert ordered(*nodes) == ("b", "a")
    assert dict(found.waits_for) == {"a": ("b",), "b": ()}
    assert found.knots["a"].late == {"a"}
    assert found.knots["a"] is found.knots["b"]
    many = [node(a + b, any_of=[group("g", b + a)]) for a, b in itertools.permutations("abcd", 2)]
    found = built(*many)
    assert {name for name, knot in found.knots.items() if name in knot.late} == {"ab", "ac", "ad", "bc", "bd", "cd"}


def test_a_member_that_depends_on_its_group_owner_is_late() -> None:
    nodes = node("a", any_of=[group("g", "b")]), node("b", "a")
    assert ordered(*nodes) == ("a", "b")
    assert dict(built(*nodes).waits_for) == {"a": (), "b": ("a",)}
    assert built(*nodes).knots["b"].late == {"b"}


def test_none_of_members_come_first_and_are_not_waited_for() -> None:
    nodes = node("a", none_of=[group("g", "z")]), node("z")
    assert ordered(*nodes) == ("z", "a")
    assert dict(built(*nodes).waits_for) == {"a": (), "z": ()}


def test_mutually_exclusive_packages_are_ordered() -> None:
    nodes = node("a", none_of=[group("g", "b", "a")]), node("b", none_of=[group("g", "a")])
    assert ordered(*nodes) == ("b", "a")
    assert built(*nodes).knots["a"].refused_by == {"a": ("b",)}


def test_a_knot_is_contiguous_and_follows_all_its_dependencies() -> None:
    nodes = (
        node("a", any_of=[group("g", "b")]),
        node("b", "deep", any_of=[group("g", "a")], order=1),
        node("deep", "deeper"),
        node("deeper"),
        node("c", "a", order=1),
        node("m", "deep", order=2),
    )
    found = built(*nodes)
    assert dict(found.rank) == {"deeper": 0, "deep": 1, "a": 2, "b": 2, "m": 2, "c": 3}
    assert ordered(*nodes) == ("deeper", "deep", "b", "a", "m", "c")
    assert dict(found.waits_for) == {
        "a": ("b",),
        "b": ("deep",),
        "c": ("a",),
        "deep": ("deeper",),
        "deeper": (),
        "m": ("deep",),
    }


def test_subscriptions_are_no_edges() -> None:
    found = built(node("a", subscriptions=("b",)), node("b", subscriptions=("a",)))
    assert dict(found.waits_for) == {"a": (), "b": ()}
    assert found.dependents("a") == ()


def test_dependents_of_an_absent_package_are_affected() -> None:
    nodes = {
        each.name: each
        for each in (
            node("db"),
            node("app", "db"),
            node("z", any_of=[group("g", "app")], order=1),
            node("y", none_of=[group("g", "gone")]),
            node("other"),
        )
    }
    found = built(*nodes.values())
    assert found.affected_by(nodes, ["db"]) == ("db", "app", "z")
    assert found.affected_by(nodes, ["z", "gone"]) == ("y", "z")
    assert found.affected_by(nodes, ["nobody"]) == ()
    assert found.affected_by(nodes, []) == ()


@pytest.mark.slow
@given(graphs(), st.randoms(use_true_random=False))
def test_the_topology_does_not_depend_on_the_order_of_nodes(nodes: list[Node], shuffler: Random) -> None:
    expected, order = built(*nodes), ordered(*nodes)
    shuffled = list(nodes)
    shuffler.shuffle(shuffled)
    assert built(*shuffled) == expected
    assert ordered(*shuffled) == order
    assert set(order) == {each.name for each in nodes}
    place = {name: index for index, name in enumerate(order)}
    for name, waited_for in expected.waits_for.items():
        for each in waited_for:
            assert place[each] < place[name]
            assert expected.effective[each] <= expected.effective[name]


@given(graphs(), st.sets(st.sampled_from("abcdef")))
def test_a_subset_is_in_the_order_of_the_whole_graph(nodes: list[Node], names: set[str]) -> None:
    by_name = {each.name: each for each in nodes}
    there = names & by_name.keys()
    assert built(*nodes).sorted(by_name, there) == tuple(each for each in ordered(*nodes) if each in there)


def test_a_long_chain_needs_no_recursion() -> None:
    count = 3000
    nodes = [node(f"n{number}", f"n{number - 1}", order=-number) for number in range(count)]
    found = built(*nodes)
    assert ordered(*nodes)[-1] == f"n{count - 1}"
    assert set(found.effective.values()) == {0}
    with pytest.raises(CycleError):
        built(*nodes, node("n0", f"n{count - 1}"))
