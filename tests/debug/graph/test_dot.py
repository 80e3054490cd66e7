"""Graphs in the DOT language of Graphviz."""

from hypothesis import given

from tests.debug.support.graph_samples import GRAPH, GRAPHS, ends, read_dot
from wharfinger.debug.graph.dot import graph_to_dot
from wharfinger.debug.graph.model import Graph, GraphNode, NodeState, surroundings_of
from wharfinger.formats.terminal_text import is_safe, printable


def test_a_dot_document_has_nodes_and_edges() -> None:
    lines = graph_to_dot(GRAPH).splitlines()
    assert lines[:2] == ["digraph packages {", "  rankdir=RL;"]
    assert (
        '  "ingress" [label="ingress\\n1.0.0, active, Ready", tooltip="1.0.0, active, Ready", fillcolor="#d8f0dc"];'
        in lines
    )
    assert (
        '  "prod.web" -> "prod.shop" '
        '[label="~1.2", tooltip="needs", style=solid, color="#b3261e", penwidth=2];' in lines
    )
    assert (
        '  "prod.web" -> "mysql" [label="any of database: >=8", tooltip="any of", style=solid, arrowhead=empty];'
        in lines
    )
    assert lines[-1] == "}"


def test_the_requested_package_is_marked() -> None:
    found = surroundings_of(GRAPH, "prod.shop")
    assert found is not None
    nodes, _ = read_dot(graph_to_dot(found))
    assert [name for name, attributes in nodes.items() if "penwidth" in attributes] == ['"prod.shop"']


def test_an_empty_graph_is_an_empty_document() -> None:
    assert read_dot(graph_to_dot(Graph((), ()))) == ({}, [])


def test_names_with_dot_syntax_are_escaped() -> None:
    names = ['a"b', "back\\", "\\N", "&lt;", "new\nline", "#0", "ü"]
    graph = Graph(tuple(GraphNode(name, NodeState.ABSENT) for name in names), ())
    document = graph_to_dot(graph)
    nodes, _ = read_dot(document)
    assert list(nodes) == [f'"#{number}"' for number in range(len(names))]
    assert [node["label"] for node in nodes.values()] == [f"{printable(name)}\nabsent" for name in names]
    assert 'label="back\\\\\\nabsent"' in document


@given(GRAPHS)
def test_any_graph_is_drawn_well_formed_and_complete(graph: Graph) -> None:
    document = graph_to_dot(graph)
    assert document == graph_to_dot(graph)
    assert is_safe(document, allow="\n")
    nodes, edges = read_dot(document)
    assert [each["label"] for each in nodes.values()] == [
        f"{printable(node.name)}\n{printable(node.caption)}" for node in graph.nodes
    ]
    ids = list(nodes)
    assert [(source, target, each["tooltip"]) for source, target, each in edges] == [
        (ids[source], ids[target], edge.kind.value.replace("-", " ")) for source, target, edge in ends(graph)
    ]
    assert all(printable(edge.label) in each["label"] for (_, _, each), edge in zip(edges, graph.edges, strict=True))
