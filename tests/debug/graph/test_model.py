"""The packages of a daemon as a graph."""

from dataclasses import replace

import pytest
from hypothesis import given

from tests.debug.support.graph_samples import GRAPH, GRAPHS, NODE_LISTS, NODES, PACKAGE_LISTS
from tests.debug.support.samples import package
from wharfinger.debug.graph.model import EdgeKind, Graph, GraphEdge, NodeState, make_graph, surroundings_of
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.scheduler_details import DependencySnapshot, LackSnapshot, NodeSnapshot

ON = NodeSnapshot("a", "1.0.0", 999, "active", "Enable", "", "said", ())


@pytest.mark.parametrize(
    ("node", "status", "state"),
    [
        (ON, "Ready", NodeState.ACTIVE),
        (ON, None, NodeState.ACTIVE),
        (ON, "Failed", NodeState.FAILED),
        (ON, "Degraded", NodeState.DEGRADED),
        (ON, "Removing", NodeState.REMOVING),
        (None, "Removing", NodeState.REMOVING),
        (replace(ON, state="scheduled"), "Updating", NodeState.SCHEDULED),
        (replace(ON, state="scheduled", failed=True), "Updating", NodeState.FAILED),
        (replace(ON, state="scheduled", failed=True), "Suspended", NodeState.WAITING),
        (replace(ON, state="scheduled", failed=True), "Ready", NodeState.ACTIVE),
        (replace(ON, state="idle"), "Pending", NodeState.WAITING),
        (replace(ON, decision="Disable"), "Failed", NodeState.OFF),
        (replace(ON, decision="Forbid"), "Suspended", NodeState.FORBIDDEN),
        (replace(ON, decision="Undefined"), "Pending", NodeState.UNDECIDED),
        (None, "Failed", NodeState.UNLOADED),
    ],
)
def test_the_drawn_state_follows_from_node_and_package(
    node: NodeSnapshot | None, status: str | None, state: NodeState
) -> None:
    packages = [] if status is None else [replace(package("a"), state=status)]
    (drawn,) = make_graph([] if node is None else [node], packages).nodes
    assert drawn.state is state


def test_a_drawn_package_has_version_status_and_message() -> None:
    known = replace(package("a", message="two pods are missing"), state="Degraded", installed_version="0.9.0")
    (drawn,) = make_graph([replace(ON, message="")], [known]).nodes
    assert (drawn.kind, drawn.version, drawn.order) == ("Application", "1.0.0", 999)
    assert (drawn.status, drawn.message) == ("Degraded", "two pods are missing")
    assert drawn.state_text == "degraded"
    assert drawn.caption == "1.0.0, degraded"
    (drawn,) = make_graph([], [known]).nodes
    assert (drawn.version, drawn.order, drawn.caption) == ("0.9.0", None, "0.9.0, not loaded, Degraded")
    (drawn,) = make_graph([ON], []).nodes
    assert drawn.message == ""
    (drawn,) = make_graph([replace(ON, decision="Forbid")], [known]).nodes
    assert drawn.message == "said"
    (drawn,) = make_graph([replace(ON, failed=True)], [known]).nodes
    assert drawn.message == "two pods are missing", "the package reports more about its own failure than the scheduler"


def test_every_kind_of_edge_is_in_the_graph() -> None:
    assert GRAPH.edges == (
        GraphEdge("prod.shop", "ingress", EdgeKind.NEEDS, constraint=">=1"),
        GraphEdge("prod.web", "ingress", EdgeKind.SUBSCRIBES),
        GraphEdge("prod.web", "legacy", EdgeKind.EXCLUDES, "old", "<1"),
        GraphEdge("prod.web", "metrics", EdgeKind.NEEDS_IF_THERE),
        GraphEdge("prod.web", "mysql", EdgeKind.ANY_OF, "database", ">=8"),
        GraphEdge("prod.web", "postgres", EdgeKind.ANY_OF, "database"),
        GraphEdge("prod.web", "prod.shop", EdgeKind.NEEDS, constraint="~1.2", waited_for=True),
    )
    assert [edge.label for edge in GRAPH.edges] == [">=1", "", "old: <1", "", "database: >=8", "database", "~1.2"]


def test_packages_that_are_only_referenced_are_absent() -> None:
    absent = [node.name for node in GRAPH.nodes if node.state is NodeState.ABSENT]
    assert absent == ["metrics", "mysql", "postgres"]
    assert [node.name for node in GRAPH.nodes if node.state is NodeState.UNLOADED] == ["prod.new"]


def test_only_dependencies_are_marked_as_waited_for() -> None:
    lacks = (LackSnapshot("package", "b", "idle"), LackSnapshot("tier", "c", "idle"))
    needs = tuple(DependencySnapshot(name, "", optional=False) for name in ("b", "c"))
    graph = make_graph([replace(ON, dependencies=needs, subscriptions=("b",), lacks=lacks)], [])
    assert [(edge.target, edge.kind.value) for edge in graph.edges if edge.waited_for] == [("b", "needs")]
    assert graph.nodes[0].waits_for == ("b (idle)", "order c (idle)")


def names(graph: Graph | None) -> list[str]:
    assert graph is not None
    return [node.name for node in graph.nodes]


def test_the_neighbours_of_a_package_are_its_dependencies_and_dependents() -> None:
    def node(name: str, *needs: str) -> NodeSnapshot:
        return replace(
            ON, name=name, dependencies=tuple(DependencySnapshot(each, "", optional=False) for each in needs)
        )

    graph = make_graph([node("top", "mid", "side"), node("mid", "low"), node("low"), node("side", "low")], [])
    assert names(surroundings_of(graph, "mid")) == ["low", "mid", "top"]
    assert names(surroundings_of(graph, "low")) == ["low", "mid", "side", "top"]
    found = surroundings_of(graph, "side")
    assert found is not None
    assert found.focus == "side"
    assert [(edge.source, edge.target) for edge in found.edges] == [("side", "low"), ("top", "side")]
    assert surroundings_of(graph, "none") is None


def test_an_absent_package_has_neighbours() -> None:
    assert names(surroundings_of(GRAPH, "mysql")) == ["mysql", "prod.web"]


def test_neighbours_on_a_cycle_are_found_once() -> None:
    ring = [replace(ON, name=f"n{at}", subscriptions=(f"n{(at + 1) % 5}",)) for at in range(5)]
    assert names(surroundings_of(make_graph(ring, []), "n0")) == [f"n{at}" for at in range(5)]


def test_a_daemon_without_packages_has_an_empty_graph() -> None:
    assert make_graph([], []) == Graph((), ())


@given(NODE_LISTS, PACKAGE_LISTS)
def test_the_graph_does_not_depend_on_the_order_of_answers(
    nodes: list[NodeSnapshot], packages: list[PackageSnapshot]
) -> None:
    graph = make_graph(nodes, packages)
    assert make_graph(reversed(nodes), reversed(packages)) == graph
    drawn = [node.name for node in graph.nodes]
    assert drawn == sorted(set(drawn))
    assert len(set(graph.edges)) == len(graph.edges)
    assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} <= set(drawn)
    assert {node.name for node in nodes} | {each.name for each in packages} <= set(drawn)
    named = {each.name for node in nodes for each in node.dependencies}
    assert named <= {edge.target for edge in graph.edges}


@given(GRAPHS)
def test_neighbours_are_a_part_of_the_whole_graph(graph: Graph) -> None:
    for node in graph.nodes:
        part = surroundings_of(graph, node.name)
        assert part is not None
        assert node in part.nodes
        assert set(part.nodes) <= set(graph.nodes)
        assert set(part.edges) == {
            edge for edge in graph.edges if {edge.source, edge.target} <= {each.name for each in part.nodes}
        }
        assert {edge for edge in graph.edges if node.name in {edge.source, edge.target}} <= set(part.edges)


def test_the_samples_have_every_state_and_edge() -> None:
    assert {edge.kind for edge in GRAPH.edges} == set(EdgeKind)
    assert len(NODES) == 4
