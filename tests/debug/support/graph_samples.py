"""Graphs for tests of drawings: an ordinary graph, and graphs with hostile names. Also readers that accept only well-formed
drawings."""

import html
import re
from dataclasses import replace

from hypothesis import strategies as st

from tests.debug.support.samples import MOMENT, WAITING_NODE, package
from wharfinger.debug.graph.model import Graph, GraphEdge, make_graph
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.scheduler_details import DependencySnapshot, GroupSnapshot, LackSnapshot, NodeSnapshot

NODES = (
    NodeSnapshot("ingress", "1.0.0", 10, "active", "Enable", "EnabledByDefault", "", (), since=MOMENT),
    NodeSnapshot("legacy", "0.9.0", 20, "active", "Disable", "DisabledByUser", "somebody said no", ()),
    NodeSnapshot(
        "prod.shop",
        "1.2.3",
        999,
        "scheduled",
        "Enable",
        "EnabledByDefault",
        "",
        (DependencySnapshot("ingress", ">=1", optional=False),),
    ),
    replace(WAITING_NODE, failed=False, lacks=(LackSnapshot("package", "prod.shop", "scheduled"),)),
)
PACKAGES = (package("ingress", kind="Module"), package("prod.new"))
GRAPH = make_graph(NODES, PACKAGES)
"""A graph with every kind of edge, a package that waits, a package that is off, absent packages, and a package without a node
in the scheduler.
"""

HOSTILE_NAMES = (
    "prod.shop",
    "end",
    "n0",
    "#1",
    "",
    " ",
    'quote"d',
    "back\\",
    'both\\"',
    "\\N\\G",
    "<b>&amp;</b>",
    "]]>",
    "-->",
    "#35;",
    '"]:::x',
    "%%{init: {}}%%",
    "`md`",
    "two\nlines",
    "\x1b[31m\x00",
    "\u202etxt",
    "\ud800",
    "\uffff\ufffe",
    "漢字✓",
    "\U0001f600",
    "x" * 300,
)
_NAMES = st.sampled_from(HOSTILE_NAMES)
_NEEDS = st.lists(
    st.builds(DependencySnapshot, _NAMES, _NAMES, st.booleans()), max_size=3, unique_by=lambda each: each.name
).map(tuple)
_SNAPSHOTS = st.builds(
    NodeSnapshot,
    name=_NAMES,
    version=_NAMES,
    order=st.sampled_from([-1, 10, 999]),
    state=st.sampled_from(["idle", "scheduled", "active"]),
    decision=st.sampled_from(["Enable", "Disable", "Forbid", "Undefined"]),
    reason=_NAMES,
    message=_NAMES,
    dependencies=_NEEDS,
    failed=st.booleans(),
    since=st.sampled_from([None, MOMENT]),
    lacks=st.lists(
        st.builds(LackSnapshot, st.sampled_from(["package", "tier", "pause"]), _NAMES, _NAMES), max_size=2
    ).map(tuple),
    groups=st.lists(st.builds(GroupSnapshot, st.sampled_from(["anyOf", "noneOf"]), _NAMES, _NEEDS), max_size=2).map(
        tuple
    ),
    subscriptions=st.lists(_NAMES, max_size=2, unique=True).map(tuple),
)


def _package(name: str, state: str, message: str) -> PackageSnapshot:
    return replace(package(name, kind="Module", message=message), state=state)


NODE_LISTS = st.lists(_SNAPSHOTS, max_size=8, unique_by=lambda node: node.name)
PACKAGE_LISTS = st.lists(
    st.builds(_package, _NAMES, st.sampled_from(["Ready", "Failed", "Degraded", "Removing", "Pending"]), _NAMES),
    max_size=4,
    unique_by=lambda each: each.name,
)
GRAPHS: st.SearchStrategy[Graph] = st.builds(
    lambda nodes, packages, focus: replace(
        make_graph(nodes, packages), focus=focus if any(node.name == focus for node in nodes) else None
    ),
    NODE_LISTS,
    PACKAGE_LISTS,
    _NAMES,
)


def ends(graph: Graph) -> list[tuple[int, int, GraphEdge]]:
    """Return the number of the source, the number of the target, and the edge itself, for each edge."""
    number = {node.name: at for at, node in enumerate(graph.nodes)}
    return [(number[edge.source], number[edge.target], edge) for edge in graph.edges]


# --- a reader of DOT: statements of quoted identities with attributes, one in a line ----------------------------------------

_QUOTED = r'"(?:[^"\\\n]|\\["\\A-Za-z])*"'
_ATTRIBUTE = rf"[a-z]+=(?:{_QUOTED}|[a-zA-Z0-9.]+)"
_ATTRIBUTES = rf"\[{_ATTRIBUTE}(?:, {_ATTRIBUTE})*\];"
_DOT_NODE = re.compile(rf"  ({_QUOTED}) ({_ATTRIBUTES})")
_DOT_EDGE = re.compile(rf"  ({_QUOTED}) -> ({_QUOTED}) ({_ATTRIBUTES})")


def read_dot(document: str) -> tuple[dict[str, dict[str, str]], list[tuple[str, str, dict[str, str]]]]:
    """Return the attributes of each node by the node's identity, and the edges (source, target, attributes)."""
    first, *lines, last, nothing = document.split("\n")
    assert (first, last, nothing) == ("digraph packages {", "}", "")
    nodes: dict[str, dict[str, str]] = {}
    edges = []
    for line in lines[3:]:
        if edge := _DOT_EDGE.fullmatch(line):
            assert edge[1] in nodes
            assert edge[2] in nodes
            edges.append((edge[1], edge[2], _attributes(edge[3])))
        else:
            node = _DOT_NODE.fullmatch(line)
            assert node, line
            assert node[1] not in nodes
            assert not edges
            nodes[node[1]] = _attributes(node[2])
    return nodes, edges


def _attributes(written: str) -> dict[str, str]:
    pairs = re.findall(rf"([a-z]+)=({_QUOTED}|[a-zA-Z0-9.]+)", written)
    return {key: _dot_text(value) for key, value in pairs}


def _dot_text(value: str) -> str:
    """Return the text that Graphviz shows for a value. Escapes of strings and labels are decoded first, and then entities."""
    if not value.startswith('"'):
        return value
    known = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
    return html.unescape(re.sub(r"\\.", lambda match: known[match[0]], value[1:-1]))


# --- a reader of Mermaid flowcharts: a subset of the grammar of Mermaid's parser ---------------------------------------------

_LABEL = r'"((?:[A-Za-z0-9 ,./:=+_-]|#[0-9]+;|<br/>)*)"'
_SHAPES = rf"(?:\({_LABEL}\)|\[{_LABEL}\]|\{{\{{{_LABEL}\}}\}}|\(\[{_LABEL}\]\))"
_MERMAID_NODE = re.compile(rf"  (n[0-9]+){_SHAPES}:::([a-z]+)")
_MERMAID_EDGE = re.compile(rf"  (n[0-9]+) (-->|-\.->|==>|--x|-\.-o)\|{_LABEL}\| (n[0-9]+)")
_MERMAID_STYLE = re.compile(r"  (?:classDef [a-z]+|style n[0-9]+|linkStyle [0-9]+) [a-z0-9:#,. -]+")


def read_mermaid(document: str) -> tuple[dict[str, tuple[str, str]], list[tuple[str, str, str, str]], list[str]]:
    """Return the nodes (for each id, the label and the class), the edges (source, arrow, label, target), and the lines about
    style.
    """
    first, *lines, nothing = document.split("\n")
    assert (first, nothing) == ("flowchart RL", "")
    nodes: dict[str, tuple[str, str]] = {}
    edges = []
    styles = []
    for line in lines:
        if edge := _MERMAID_EDGE.fullmatch(line):
            assert {edge[1], edge[4]} <= nodes.keys()
            edges.append((edge[1], edge[2], _mermaid_text(edge[3]), edge[4]))
        elif node := _MERMAID_NODE.fullmatch(line):
            assert node[1] not in nodes
            label = next(each for each in node.groups()[1:5] if each is not None)
            nodes[node[1]] = (_mermaid_text(label), node[6])
        else:
            assert _MERMAID_STYLE.fullmatch(line), line
            styles.append(line.strip())
    return nodes, edges, styles


def _mermaid_text(label: str) -> str:
    broken = label.replace("<br/>", "\n")
    return re.sub(r"#([0-9]+);", lambda match: chr(int(match[1])), broken)
