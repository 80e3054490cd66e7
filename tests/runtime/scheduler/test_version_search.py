"""The search for versions that would work: it finds the smallest change, disables no other package, and ends in bounded time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.support.nodes import depends, group, node
from wharfinger.packages.definition.requirements import Requirements
from wharfinger.runtime.scheduler.events import FactsChanged, IntentSet, NodeAdded, Resumed
from wharfinger.runtime.scheduler.graph import CycleError, Node
from wharfinger.runtime.scheduler.machine import step
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.state import Graph
from wharfinger.runtime.scheduler.version_search import MAX_CHANGED, SearchResult, find_versions


def graph_of(*nodes: Node, facts: Facts | None = None) -> Graph:
    graph, _ = step(Graph(), FactsChanged(facts or Facts()))
    graph, _ = step(graph, Resumed())
    for each in nodes:
        graph, _ = step(graph, NodeAdded(each))
    return graph


def among(*nodes: Node) -> Callable[[str], Sequence[Node]]:
    """Return a function that returns the candidates of a package."""
    return lambda name: [each for each in nodes if each.name == name]


def found(graph: Graph, name: str, *others: Node, limit: int = 200) -> str:
    result = find_versions(graph, name, among(*others), limit=limit)
    return result.text if result is not None else ""


def test_a_package_that_is_on_needs_no_search() -> None:
    assert find_versions(graph_of(node("shop")), "shop", among()) is None
    assert find_versions(graph_of(node("shop")), "gone", among()) is None
    assert find_versions(Graph(), "shop", among()) is None


def test_a_package_that_is_unwanted_needs_no_search() -> None:
    graph, _ = step(graph_of(node("shop", "db")), IntentSet("shop", enabled=False))
    assert find_versions(graph, "shop", among(node("shop", version="2.0.0"))) is None


def test_the_smallest_change_with_the_newest_version_is_found() -> None:
    graph = graph_of(node("db", version="2.1.0"), node("shop", "db <2"))
    newer = [node("shop", "db >=2", version=version) for version in ("1.4.0", "1.3.0")]
    assert found(graph, "shop", *newer, node("db", version="1.9.0")) == (
        "these versions would work: shop 1.4.0 (now 1.0.0)"
    )


def test_a_newer_version_comes_before_a_downgrade() -> None:
    graph = graph_of(node("db", version="2.0.0"), node("shop", "db >=2.1 || <2"))
    others = (node("db", version="2.1.0"), node("db", version="1.9.0"), node("db", version="1.8.0"))
    assert found(graph, "shop", *others[1:], others[0]) == "these versions would work: db 2.1.0 (now 2.0.0)"


def test_several_packages_change_together() -> None:
    graph = graph_of(node("db", version="1.0.0"), node("api", "db <2"), node("shop", "api >=2"))
    others = (node("api", "db >=2", version="2.0.0"), node("db", version="2.0.0"))
    assert found(graph, "shop", *others) == ("these versions would work: api 2.0.0 (now 1.0.0), db 2.0.0 (now 1.0.0)")


def test_a_set_that_disables_another_package_is_rejected() -> None:
    graph = graph_of(node("db"), node("old", "db <2"), node("shop", "db >=2"))
    assert found(graph, "shop", node("db", version="2.0.0")) == (
        "no known versions of db, old and shop would work together".replace(" and ", ", ")
    )
    both = (node("db", version="2.0.0"), node("old", "db >=2", version="1.1.0"))
    assert found(graph, "shop", *both) == ("these versions would work: db 2.0.0 (now 1.0.0), old 1.1.0 (now 1.0.0)")


def test_a_dependency_that_is_off_is_changed() -> None:
    """The version of Kubernetes is the root cause, because db does not support it. Package api needs db, and shop needs api."""
    facts = Facts(kubernetes="1.30.0")
    graph = graph_of(node("db", kubernetes=">=1.31"), node("api", "db"), node("shop", "api"), facts=facts)
    assert found(graph, "shop", node("db", version="0.9.0")) == "these versions would work: db 0.9.0 (now 1.0.0)"


def test_groups_are_satisfied_by_other_versions() -> None:
    graph = graph_of(
        node("mysql", version="5.0.0"), node("shop", any_of=[group("db", "mysql >=8", "postgres >=15")]), node("web")
    )
    assert found(graph, "shop", node("mysql", version="8.1.0")) == "these versions would work: mysql 8.1.0 (now 5.0.0)"
    graph = graph_of(node("db"), node("shop", none_of=[group("old", "db <2")]))
    assert found(graph, "shop", node("db", version="2.0.0")) == "these versions would work: db 2.0.0 (now 1.0.0)"


def test_a_version_that_closes_a_cycle_is_rejected() -> None:
    graph = graph_of(node("db"), node("shop", "db >=2"))
    assert (
        found(graph, "shop", node("db", "shop", version="2.0.0")) == "no known versions of db, shop would work together"
    )


def test_no_package_without_a_resource_is_added() -> None:
    assert found(graph_of(node("shop", "db")), "shop", node("db")) == ""
    others = (node("db"), node("shop", "db", version="2.0.0"))
    assert found(graph_of(node("shop", "db")), "shop", *others) == "no known versions of shop would work together"


def test_a_desired_version_is_found_with_its_dependencies() -> None:
    graph = graph_of(node("db"), node("shop", "db"))
    wanted = node("shop", "db >=2", version="2.0.0")
    result = find_versions(graph, "shop", among(node("db", version="2.0.0")), wanted=wanted)
    assert result is not None
    assert result.text == "these versions would work: db 2.0.0 (now 1.0.0), shop 2.0.0 (now 1.0.0)"


def test_the_search_is_bounded() -> None:
    graph = graph_of(*(node(f"p{number}") for number in range(8)), node("shop", *(f"p{n} >=9" for n in range(8))))
    others = [node(f"p{number}", version=f"{major}.0.0") for number in range(8) for major in range(2, 9)]
    result = find_versions(graph, "shop", among(*others), limit=50)
    assert result is not None
    assert (result.changes, result.complete, len(result.tried)) == ((), False, 9)
    assert result.text.startswith("none of the sets of versions of p0, p1, p2")
    assert result.text.endswith("the search is limited to 200 sets, and to 6 changed packages in a set")


def test_a_set_changes_few_packages() -> None:
    graph = graph_of(*(node(f"p{number}") for number in range(7)), node("shop", *(f"p{n} >=2" for n in range(7))))
    others = [node(f"p{number}", version="2.0.0") for number in range(7)]
    result = find_versions(graph, "shop", among(*others), limit=10_000)
    assert result is not None
    assert (result.changes, result.complete) == ((), False)
    assert len(others) > MAX_CHANGED


VERSIONS = ("1.0.0", "2.0.0", "3.0.0")


@st.composite
def worlds(draw: st.DrawFn) -> list[list[Node]]:
    """Draw three packages with three versions each. A version may depend on versions of the packages before it."""
    names = ("a", "b", "c")
    ranges = st.sampled_from(("", " >=2", " <2", " <3", " >=3"))
    worlds = []
    for place, name in enumerate(names):
        versions = []
        for version in VERSIONS:
            needs = draw(st.lists(st.sampled_from(names[:place] or ("a",)), max_size=2, unique=True)) if place else []
            requirements = Requirements(mandatory=depends(*(f"{each}{draw(ranges)}" for each in needs)))
            versions.append(replace(node(name, version=version), requirements=requirements))
        worlds.append(versions)
    return worlds


@given(worlds(), st.tuples(*[st.sampled_from(range(3))] * 3))
@pytest.mark.sampled(40)
def test_the_search_is_correct_and_complete(world: list[list[Node]], now: tuple[int, ...]) -> None:
    start = [versions[at] for versions, at in zip(world, now, strict=True)]
    graph = graph_of(*start)
    others = [each for versions in world for each in versions]
    for goal in ("b", "c"):
        result = find_versions(graph, goal, among(*others), limit=10_000)
        if result is None:
            continue
        works = [chosen for chosen in product(*world) if _is_good(graph, chosen, goal)]
        if not result.changes:
            assert (result.complete, works) == (True, [])
            continue
        named = {change.name: change.after for change in result.changes}
        chosen = tuple(
            next(each for each in versions if each.version == named.get(at.name, at.version))
            for versions, at in zip(world, start, strict=True)
        )
        assert chosen in works
        assert min(_changes(each, start) for each in works) == len(result.changes)


def _changes(chosen: Sequence[Node], start: Sequence[Node]) -> int:
    return sum(each.version != before.version for each, before in zip(chosen, start, strict=True))


def _is_good(graph: Graph, chosen: Sequence[Node], goal: str) -> bool:
    try:
        after = graph_of(*chosen)
    except CycleError:
        return False
    stay = [name for name, entry in graph.entries.items() if entry.on]
    return all(after.entries[name].on for name in (goal, *stay))


def test_a_result_is_described_in_words() -> None:
    assert SearchResult((), complete=True, tried=("a",)).text == "no known versions of a would work together"
    cut = SearchResult((), complete=True, tried=("a", "b"), unread=("b",))
    assert (
        cut.text
        == "no set of versions that work together was found; other versions of b were not tried, because the search is limited"
    )
