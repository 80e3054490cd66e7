"""The graph of packages in Graphviz' DOT language. Pure. Names are untrusted.

An edge points from a package to a package that it names, such as a dependency. Edges are drawn from right to left, so packages
that start first are on the left.
"""

import re
from collections.abc import Iterator
from typing import Final

from wharfinger.debug.graph.model import EdgeKind, Graph, GraphEdge, GraphNode, NodeState
from wharfinger.formats.graph_labels import dot_label

_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_STATES: Final = {
    NodeState.ACTIVE: 'fillcolor="#d8f0dc"',
    NodeState.DEGRADED: 'fillcolor="#fdecc8", peripheries=2',
    NodeState.SCHEDULED: 'fillcolor="#d6e8fb"',
    NodeState.WAITING: 'fillcolor="#eef1f4", style="rounded,filled,dashed"',
    NodeState.FAILED: 'fillcolor="#fbd9d6", shape=octagon, style=filled',
    NodeState.REMOVING: 'fillcolor="#ecdff5", style="rounded,filled,dashed"',
    NodeState.OFF: 'fillcolor="#e4e4e4", style=filled',
    NodeState.FORBIDDEN: 'fillcolor="#f7dfe9", shape=octagon, style="filled,dashed"',
    NodeState.UNDECIDED: 'fillcolor="#ffffff", shape=diamond, style=filled',
    NodeState.UNLOADED: 'fillcolor="#ffffff", style="filled,dashed"',
    NodeState.ABSENT: 'fillcolor="#ffffff", style="filled,dotted"',
}
_KINDS: Final = {
    EdgeKind.NEEDS: "style=solid",
    EdgeKind.NEEDS_IF_THERE: "style=dashed",
    EdgeKind.ANY_OF: "style=solid, arrowhead=empty",
    EdgeKind.EXCLUDES: "style=dotted, arrowhead=tee",
    EdgeKind.SUBSCRIBES: "style=dotted, arrowhead=odot",
}


def graph_to_dot(graph: Graph) -> str:
    """Return a DOT document. A node's identifier is its name if the name has only letters, digits and ``._-``, else ``#`` and the
    node's number.
    """
    ids = {node.name: _identity(node.name, number) for number, node in enumerate(graph.nodes)}
    return "".join(f"{line}\n" for line in _lines(graph, ids))


def _lines(graph: Graph, ids: dict[str, str]) -> Iterator[str]:
    yield "digraph packages {"
    yield "  rankdir=RL;"
    yield '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=11, fontcolor="#1b1f24"];'
    yield '  edge [fontname="monospace", fontsize=9];'
    for node in graph.nodes:
        yield f"  {ids[node.name]} [{_node(node, focus=node.name == graph.focus)}];"
    for edge in graph.edges:
        yield f"  {ids[edge.source]} -> {ids[edge.target]} [{_edge(edge)}];"
    yield "}"


def _identity(name: str, number: int) -> str:
    return f'"{name}"' if _PLAIN.fullmatch(name) else f'"#{number}"'


def _node(node: GraphNode, *, focus: bool) -> str:
    tooltip = dot_label("; ".join((node.caption, *node.waits_for, *([node.message] if node.message else []))))
    bold = ", penwidth=3" if focus else ""
    return (
        f'label="{dot_label(node.name)}\\n{dot_label(node.caption)}", tooltip="{tooltip}", {_STATES[node.state]}{bold}'
    )


def _edge(edge: GraphEdge) -> str:
    kind = edge.kind.value.replace("-", " ")
    label = f"{kind} {edge.label}" if edge.group else edge.label
    held = ', color="#b3261e", penwidth=2' if edge.waited_for else ""
    return f'label="{dot_label(label)}", tooltip="{kind}", {_KINDS[edge.kind]}{held}'
