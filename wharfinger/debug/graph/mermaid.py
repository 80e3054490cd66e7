"""The graph of packages as a Mermaid flowchart, for pages that render Mermaid.

Pure, and in ASCII. Names are untrusted and must not become syntax. Identifiers are generated (``n0``, ``n1`` …), so no name
can be a reserved word such as ``end``. Labels are quoted and escaped.
"""

from collections.abc import Iterator
from typing import Final

from wharfinger.debug.graph.model import EdgeKind, Graph, GraphEdge, NodeState
from wharfinger.formats.graph_labels import mermaid_label

MAX_EDGES: Final = 500
MAX_CHARACTERS: Final = 50_000
"""The limits of Mermaid's default settings (``maxEdges``, ``maxTextSize``)."""
_CLASSES: Final = {
    NodeState.ACTIVE: "fill:#d8f0dc,stroke:#1a7f37",
    NodeState.DEGRADED: "fill:#fdecc8,stroke:#9a6700,stroke-width:3px",
    NodeState.SCHEDULED: "fill:#d6e8fb,stroke:#0969da",
    NodeState.WAITING: "fill:#eef1f4,stroke:#57606a,stroke-dasharray:6 3",
    NodeState.FAILED: "fill:#fbd9d6,stroke:#b3261e,stroke-width:3px",
    NodeState.REMOVING: "fill:#ecdff5,stroke:#7b4fa3,stroke-dasharray:6 3",
    NodeState.OFF: "fill:#e4e4e4,stroke:#57606a",
    NodeState.FORBIDDEN: "fill:#f7dfe9,stroke:#a3265e,stroke-dasharray:6 3",
    NodeState.UNDECIDED: "fill:#ffffff,stroke:#57606a",
    NodeState.UNLOADED: "fill:#ffffff,stroke:#57606a,stroke-dasharray:6 3",
    NodeState.ABSENT: "fill:#ffffff,stroke:#57606a,stroke-dasharray:2 3",
}
_BRACKETS: Final = {
    NodeState.ACTIVE: ("(", ")"),
    NodeState.FAILED: ("{{", "}}"),
    NodeState.FORBIDDEN: ("{{", "}}"),
    NodeState.UNDECIDED: ("([", "])"),
}
_ARROWS: Final = {
    EdgeKind.NEEDS: "-->",
    EdgeKind.NEEDS_IF_THERE: "-.->",
    EdgeKind.ANY_OF: "==>",
    EdgeKind.EXCLUDES: "--x",
    EdgeKind.SUBSCRIBES: "-.-o",
}


def graph_to_mermaid(graph: Graph) -> str:
    """Return a Mermaid document. Edges point from a package to one that it names; packages that start first are on the left."""
    return "".join(f"{line}\n" for line in _lines(graph))


def is_too_much(graph: Graph, document: str) -> bool:
    """Return whether the document exceeds the limits of Mermaid's default settings."""
    return len(graph.edges) > MAX_EDGES or len(document) > MAX_CHARACTERS


def _lines(graph: Graph) -> Iterator[str]:
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    yield "flowchart RL"
    for node in graph.nodes:
        opening, closing = _BRACKETS.get(node.state, ("[", "]"))
        label = f"{mermaid_label(node.name)}<br/>{mermaid_label(node.caption)}"
        yield f'  {ids[node.name]}{opening}"{label}"{closing}:::{_class(node.state)}'
    for edge in graph.edges:
        yield f'  {ids[edge.source]} {_ARROWS[edge.kind]}|"{mermaid_label(_label(edge))}"| {ids[edge.target]}'
    for number, edge in enumerate(graph.edges):
        if edge.waited_for:
            yield f"  linkStyle {number} stroke:#b3261e,stroke-width:3px"
    for state in NodeState:
        if any(node.state is state for node in graph.nodes):
            yield f"  classDef {_class(state)} {_CLASSES[state]},color:#1b1f24"
    if graph.focus is not None:
        yield f"  style {ids[graph.focus]} stroke-width:4px"


def _label(edge: GraphEdge) -> str:
    """Return the kind of the edge, its group and its constraint; never empty, because Mermaid allows no empty labels."""
    kind = edge.kind.value.replace("-", " ")
    return f"{kind} {edge.label}" if edge.label else kind


def _class(state: NodeState) -> str:
    return state.value.replace(" ", "")
