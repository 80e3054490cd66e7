"""Graphs as Mermaid flowcharts."""

from hypothesis import given

from tests.debug.support.graph_samples import GRAPH, GRAPHS, ends, read_mermaid
from wharfinger.debug.graph.mermaid import MAX_CHARACTERS, MAX_EDGES, graph_to_mermaid, is_too_much
from wharfinger.debug.graph.model import EdgeKind, Graph, GraphEdge, GraphNode, NodeState, surroundings_of
from wharfinger.formats.terminal_text import printable

ARROWS = {
    EdgeKind.NEEDS: "-->",
    EdgeKind.NEEDS_IF_THERE: "-.->",
    EdgeKind.ANY_OF: "==>",
    EdgeKind.EXCLUDES: "--x",
    EdgeKind.SUBSCRIBES: "-.-o",
}


def test_a_flowchart_has_nodes_edges_and_styles() -> None:
    lines = graph_to_mermaid(GRAPH).splitlines()
    assert lines[:2] == ["flowchart RL", '  n0("ingress<br/>1.0.0, active, Ready"):::active']
    assert '  n7["prod.web<br/>2.0.0, waiting"]:::waiting' in lines
    assert '  n7 -->|"needs #126;1.2"| n6' in lines
    assert '  n7 ==>|"any of database: #62;=8"| n3' in lines
    assert '  n7 ==>|"any of database"| n4' in lines
    assert "  linkStyle 6 stroke:#b3261e,stroke-width:3px" in lines


def test_the_requested_package_is_marked() -> None:
    found = surroundings_of(GRAPH, "prod.shop")
    assert found is not None
    _, _, styles = read_mermaid(graph_to_mermaid(found))
    at = [node.name for node in found.nodes].index("prod.shop")
    assert f"style n{at} stroke-width:4px" in styles
    assert not any(each.startswith("style") for each in read_mermaid(graph_to_mermaid(GRAPH))[2])


def test_an_empty_graph_is_an_empty_flowchart() -> None:
    assert graph_to_mermaid(Graph((), ())) == "flowchart RL\n"


def test_names_with_mermaid_syntax_are_escaped() -> None:
    names = ["end", 'a"]', "#quot;", "`x`", "%%{init}%%", "<br/>", "style n0", "a;b"]
    graph = Graph(tuple(GraphNode(name, NodeState.ABSENT) for name in names), ())
    nodes, _, _ = read_mermaid(graph_to_mermaid(graph))
    assert [label for label, _ in nodes.values()] == [f"{name}\nabsent" for name in names]


def test_graphs_over_the_limits_of_mermaid_are_detected() -> None:
    node = GraphNode("a", NodeState.ABSENT)
    edges = tuple(GraphEdge("a", "a", EdgeKind.NEEDS, constraint=str(number)) for number in range(MAX_EDGES + 1))
    few, many = Graph((node,), edges[1:]), Graph((node,), edges)
    assert not is_too_much(few, graph_to_mermaid(few))
    assert is_too_much(many, graph_to_mermaid(many))
    assert is_too_much(few, "x" * (MAX_CHARACTERS + 1))


@given(GRAPHS)
def test_any_graph_is_drawn_well_formed_and_complete(graph: Graph) -> None:
    document = graph_to_mermaid(graph)
    assert document == graph_to_mermaid(graph)
    assert document.isascii()
    nodes, edges, styles = read_mermaid(document)
    assert list(nodes.values()) == [
        (f"{printable(node.name)}\n{printable(node.caption)}", node.state.replace(" ", "")) for node in graph.nodes
    ]
    assert [(source, arrow, target) for source, arrow, _, target in edges] == [
        (f"n{source}", ARROWS[edge.kind], f"n{target}") for source, target, edge in ends(graph)
    ]
    assert all(printable(edge.label) in label for (_, _, label, _), edge in zip(edges, graph.edges, strict=True))
    assert sum(each.startswith("linkStyle") for each in styles) == sum(edge.waited_for for edge in graph.edges)
