"""The graph of packages for a terminal: a list of packages, lowest order first, each with the packages that it names.

Pure. Each package, its blockers (or its message), and each of its edges have a line of their own. Lines are wrapped if the
width of the terminal is known. For a terminal that has only ASCII, branches are drawn in ASCII, and other characters
are escaped when the list is printed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.debug.graph.model import EdgeKind, Graph, GraphEdge, GraphNode, NodeState
from wharfinger.debug.printing.node import moment_text
from wharfinger.formats.listing import counted
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import width

_LEAST_COLUMNS: Final = 30
"""The width of a terminal below which this module does not wrap lines, but leaves that to the terminal."""
_VERBS: Final = {
    EdgeKind.NEEDS: "needs",
    EdgeKind.NEEDS_IF_THERE: "optionally needs",
    EdgeKind.ANY_OF: "needs any of",
    EdgeKind.EXCLUDES: "excludes",
    EdgeKind.SUBSCRIBES: "subscribes to",
}


@dataclass(frozen=True, slots=True)
class Branches:
    """The characters for the branches of the tree; all have the same width."""

    middle: str
    last: str
    beside: str


UNICODE: Final = Branches("├─ ", "└─ ", "│  ")
ASCII: Final = Branches("|- ", "`- ", "|  ")
_BLANK: Final = "   "


def graph_to_text(graph: Graph, columns: int | None, branches: Branches = UNICODE) -> str:
    """Return the graph as a list in text, wrapped to a terminal of ``columns`` (None: not wrapped)."""
    return "".join(f"{line}\n" for line in _lines(graph, columns, branches))


def _lines(graph: Graph, columns: int | None, branches: Branches) -> Iterator[str]:
    nodes = {node.name: node for node in graph.nodes}
    edges: dict[str, list[GraphEdge]] = {name: [] for name in nodes}
    for edge in graph.edges:
        edges[edge.source].append(edge)
    for title, members in _tiers(graph):
        yield from _wrapped(f"{title}: {_count(members)}", "", _BLANK, columns)
        for node in members:
            mark = " (requested)" if node.name == graph.focus else ""
            rests = node.since is None or node.state is NodeState.ACTIVE
            since = "" if rests else f", since {moment_text(node.since)}"
            yield from _wrapped(f"{_shown(node.name)}{mark}: {node.caption}{since}", "  ", "    ", columns)
            lines = [*_why(node), *(_edge(edge, nodes) for edge in edges[node.name])]
            for number, each in enumerate(lines, 1):
                last = number == len(lines)
                first, rest = (branches.last, _BLANK) if last else (branches.middle, branches.beside)
                yield from _wrapped(each, f"  {first}", f"  {rest}  ", columns)


def _tiers(graph: Graph) -> Iterator[tuple[str, list[GraphNode]]]:
    """Yield the packages by order, lowest first, then the packages without an order, then the absent ones."""
    orders = sorted({node.order for node in graph.nodes if node.order is not None})
    for order in orders:
        yield f"order {order}", [node for node in graph.nodes if node.order == order]
    without = [node for node in graph.nodes if node.order is None]
    for title, absent in (("not in the scheduler", False), ("named by others, but absent", True)):
        members = [node for node in without if (node.state is NodeState.ABSENT) == absent]
        if members:
            yield title, members


def _count(members: list[GraphNode]) -> str:
    packages = counted(len(members), "package")
    active = sum(node.state is NodeState.ACTIVE for node in members)
    return f"{packages}, {active} active" if active else packages


def _why(node: GraphNode) -> Iterator[str]:
    """Yield a line with the packages that the node waits for or, if there are none, the node's message."""
    if node.waits_for:
        yield f"waits for {', '.join(node.waits_for)}"
    elif node.message:
        yield node.message


def _edge(edge: GraphEdge, nodes: Mapping[str, GraphNode]) -> str:
    group = f" {edge.group}:" if edge.group else ""
    constraint = f" {edge.constraint}" if edge.constraint else ""
    held = ", waited for" if edge.waited_for else ""
    return f"{_VERBS[edge.kind]}{group} {_shown(edge.target)}{constraint} ({nodes[edge.target].state}{held})"


def _shown(name: str) -> str:
    return name or '""'


def _wrapped(text: str, first: str, rest: str, columns: int | None) -> Iterator[str]:
    """Yield the text in lines. ``first`` is the prefix of the first line, ``rest`` that of all further lines. A word that is
    longer than a line is broken.
    """
    words = printable(text)
    if columns is None or columns < _LEAST_COLUMNS:
        yield first + words
        return
    line, room, empty = first, columns - width(first), True
    for word in words.split(" "):
        left = word
        if not empty and width(left) + 1 > room:
            yield line
            line, room, empty = rest, columns - width(rest), True
        while width(left) + (not empty) > room:
            head = _head(left, room)
            yield line + head
            left, line, room, empty = left[len(head) :], rest, columns - width(rest), True
        line += left if empty else f" {left}"
        room -= width(left) + (not empty)
        empty = False
    yield line


def _head(word: str, room: int) -> str:
    """Return as much of the word as fits, but at least one character."""
    taken = used = 0
    for character in word:
        used += width(character)
        if used > room:
            break
        taken += 1
    return word[: max(taken, 1)]
