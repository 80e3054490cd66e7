"""The nodes of a tree as a table and as names for people, as JSON and YAML for programs, and as graphs. Pure.

The JSON and YAML documents have this shape; empty fields other than ``name``, ``state`` and ``objects`` are left out::

    {nodes: [{kind, group, namespace, name, state, objects, file, line, madeBy, dependsOn: [<name>], message}]}

In a graph, a solid edge points from a node to one of its dependencies, and a dashed edge from a node to its maker. Names come
from the tree and are untrusted.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.formats.graph_labels import dot_label, mermaid_label
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_table import layout
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.offline.output.nodes import Node, NodeState
from wharfinger.offline.store.identity import shown
from wharfinger.runtime.fixpoint.model import Id

_HEADER: Final = ("KIND", "NAMESPACE", "NAME", "STATE", "OBJECTS", "FILE", "MESSAGE")
_NONE: Final = "-"
_LISTED: Final = frozenset(NodeState) - {NodeState.DATA, NodeState.ABSENT}
_DEPENDS_ON: Final = 'tooltip="depends on"'
_MADE_BY: Final = 'style=dashed, tooltip="made by"'
_COLOURS: Final = {
    NodeState.BUILT: "#d8f0dc",
    NodeState.FAILED: "#fbd9d6",
    NodeState.BLOCKED: "#fdecc8",
    NodeState.SKIPPED: "#e4e4e4",
    NodeState.ORPHAN: "#ecdff5",
    NodeState.DATA: "#eef1f4",
    NodeState.ABSENT: "#ffffff",
}


def nodes_table(nodes: Sequence[Node], terminal_columns: int | None) -> str:
    """Return a table with one line for each node. Objects that are only read (``DATA``) and objects that are not in the tree
    (``ABSENT``) have no lines. For ``terminal_columns`` see `layout`.
    """
    rows = [_row(each) for each in nodes if each.state in _LISTED]
    return "".join(f"{line}\n" for line in layout(_HEADER, rows, terminal_columns))


def nodes_names(nodes: Sequence[Node]) -> str:
    """Return the names only, such as ``HelmRelease apps/web``."""
    return "".join(f"{printable(shown(each.id))}\n" for each in nodes if each.state in _LISTED)


def nodes_json(nodes: Sequence[Node]) -> str:
    """Return the nodes as ASCII JSON."""
    return json.dumps(_document(nodes), indent=2) + "\n"


def nodes_yaml(nodes: Sequence[Node]) -> str:
    """Return the nodes as YAML. If this YAML contained control characters for terminals, return JSON instead, which is YAML,
    too, and escapes them.
    """
    text = write_yaml(_document(nodes))
    return text if text.replace("\n", "").isprintable() else nodes_json(nodes)


def nodes_dot(nodes: Sequence[Node]) -> str:
    """Return the graph in Graphviz' DOT language."""
    return "".join(f"{line}\n" for line in _dot(nodes))


def nodes_mermaid(nodes: Sequence[Node]) -> str:
    """Return the graph as a Mermaid flowchart."""
    return "".join(f"{line}\n" for line in _mermaid(nodes))


def _row(node: Node) -> tuple[str, ...]:
    kind = node.id.kind.partition(".")[0]
    place = str(node.place) if node.place is not None else _NONE
    return kind, node.id.namespace or _NONE, node.id.name, node.state, str(node.objects), place, node.message


def _document(nodes: Sequence[Node]) -> JsonObject:
    return {"nodes": [_entry(each) for each in nodes]}


def _entry(node: Node) -> JsonObject:
    kind, _, group = node.id.kind.partition(".")
    entry: JsonObject = {
        "kind": kind,
        "group": group,
        "namespace": node.id.namespace,
        "name": node.id.name,
        "state": node.state.value,
        "objects": node.objects,
        "file": node.place.file if node.place is not None else "",
        "line": node.place.line if node.place is not None else 0,
        "madeBy": shown(node.made_by) if node.made_by is not None else "",
        "dependsOn": [shown(each) for each in node.depends_on],
        "message": node.message,
    }
    return {key: value for key, value in entry.items() if value or key in {"name", "state", "objects"}}


def _dot(nodes: Sequence[Node]) -> Iterator[str]:
    ids = _numbers(nodes)
    yield "digraph tree {"
    yield "  rankdir=RL;"
    yield '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=11, fontcolor="#1b1f24"];'
    for node in nodes:
        label = f"{dot_label(shown(node.id))}\\n{node.state}"
        yield f'  {ids[node.id]} [label="{label}", tooltip="{dot_label(node.message)}", fillcolor="{_COLOURS[node.state]}"];'
    for source, target, made in _edges(nodes, ids):
        yield f"  {source} -> {target} [{_MADE_BY if made else _DEPENDS_ON}];"
    yield "}"


def _mermaid(nodes: Sequence[Node]) -> Iterator[str]:
    ids = _numbers(nodes)
    yield "flowchart RL"
    for node in nodes:
        yield f'  {ids[node.id]}["{mermaid_label(shown(node.id))}<br/>{node.state}"]:::{node.state}'
    for source, target, made in _edges(nodes, ids):
        yield f"  {source} {'-.->' if made else '-->'} {target}"
    for state in NodeState:
        if any(node.state is state for node in nodes):
            yield f"  classDef {state} fill:{_COLOURS[state]},color:#1b1f24"


def _numbers(nodes: Sequence[Node]) -> dict[Id, str]:
    return {node.id: f"n{number}" for number, node in enumerate(nodes)}


def _edges(nodes: Sequence[Node], ids: dict[Id, str]) -> Iterator[tuple[str, str, bool]]:
    """Yield the ends of each edge, and whether it is dashed.

    A dashed edge points to the maker of a node. If the node also depends on its maker, there is only a solid edge.
    """
    for node in nodes:
        yield from ((ids[node.id], ids[each], False) for each in node.depends_on)
        if node.made_by is not None and node.made_by in ids and node.made_by not in node.depends_on:
            yield ids[node.id], ids[node.made_by], True
