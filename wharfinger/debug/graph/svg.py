"""The graph of packages as a picture: one self-contained SVG document, without scripts and without external fonts.

Pure, and in ASCII. In all untrusted text, the characters that XML could misread or does not allow are escaped or replaced. A
text that is too long for its box is cut there and given in full in the title, which viewers show under the pointer and
screen readers read aloud. Every edge has a title in words, too. The positions of boxes and lines come from
:mod:`wharfinger.debug.graph.layout`, their look from :mod:`wharfinger.debug.graph.look`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import escape
from textwrap import wrap
from typing import Final

from wharfinger.debug.graph.layers import Edge
from wharfinger.debug.graph.layout import Box, Layout, Point, Size, lay_out
from wharfinger.debug.graph.look import HEADS, SHIFTS, SIGNS, class_of, style_lines
from wharfinger.debug.graph.model import EdgeKind, Graph, GraphEdge, GraphNode, NodeState
from wharfinger.debug.printing.node import moment_text
from wharfinger.formats.listing import counted
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import shorten, width

_LETTER: Final = 7.4
"""The greatest width of a letter in pixels, in the fonts of the style sheet."""
_LONGEST_NAME: Final = 42
_WHY_COLUMNS: Final = 36
_WHY_LINES: Final = 2
_LONGEST_LABEL: Final = 20
_MOST_LABELS: Final = 60
"""If a graph has more edges than this, their labels are not drawn, and are only in the titles of the edges."""
_MARGIN: Final = 24
_LINE: Final = 16
_LEAST_WIDTH: Final = 560
_STRONG: Final = frozenset({EdgeKind.NEEDS, EdgeKind.NEEDS_IF_THERE})


def graph_to_svg(graph: Graph, link: Callable[[str], str] | None = None) -> str:
    """Return an SVG document.

    ``link`` returns the address of a package's page. With ``link``, the document is a part of a page that has the style sheet
    for the class ``graph``, and each package that exists is a link.
    """
    number = {node.name: at for at, node in enumerate(graph.nodes)}
    edges = [Edge(number[edge.source], number[edge.target], edge.kind in _STRONG) for edge in graph.edges]
    texts = [_texts(node) for node in graph.nodes]
    layout = lay_out([_size(each) for each in texts], edges)
    across = max(layout.width, _LEAST_WIDTH) + 2 * _MARGIN
    legend = list(_legend(graph, across))
    top = _MARGIN + _LINE * 2 + _LINE * max((row + 1 for _, row, _ in legend), default=0)
    down = top + layout.height + _MARGIN
    area = f'width="{across}" height="{down}"'
    # Screen readers do not read the children of an ``img`` aloud, so a picture with links is a ``group``.
    prefix, role = ("", 'role="img"') if link is None else ("drawing-", 'class="graph" role="group"')
    named = f'{role} aria-labelledby="{prefix}title {prefix}desc"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {area} viewBox="0 0 {across} {down}" {named}>',
        f'<title id="{prefix}title">{_xml(_title(graph))}</title>',
        f'<desc id="{prefix}desc">{_xml(_summary(graph))}</desc>',
        *(("<style>", *style_lines(), "</style>") if link is None else ()),
        f'<rect class="paper" {area}/>',
        f'<text class="name" x="{_MARGIN}" y="{_MARGIN + 4}">{_xml(shorten(printable(_title(graph)), 70))}</text>',
        *(f'<g transform="translate({x},{_MARGIN + _LINE * (row + 1) + 4})">{entry}</g>' for x, row, entry in legend),
        f'<g transform="translate({_MARGIN},{top})">',
        *_edges(graph, layout),
        *_nodes(graph, layout, texts, link),
        *_labels(graph, layout),
        "</g>",
        "</svg>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _title(graph: Graph) -> str:
    return "Packages" if graph.focus is None else f"Packages around {graph.focus}"


def _summary(graph: Graph) -> str:
    """Summarize the whole picture in words."""
    states = Counter(node.state for node in graph.nodes)
    kinds = Counter(edge.kind for edge in graph.edges)
    nodes = ", ".join(f"{states[state]} {state}" for state in NodeState if states[state])
    edges = ", ".join(f"{kinds[kind]} {kind}" for kind in EdgeKind if kinds[kind])
    return (
        f"{counted(len(graph.nodes), 'package')}: {nodes or 'none'}. "
        f"{counted(len(graph.edges), 'edge')}: {edges or 'none'}."
    )


# --- boxes -----------------------------------------------------------------------------------------------------------------


def _texts(node: GraphNode) -> tuple[str, ...]:
    """Return the lines in the box of a package: the name, the state, and the reason, cut to a few lines. The reason names the
    packages that the package waits for. If it waits for no package, the reason is its message.
    """
    name, caption = (
        shorten(printable(node.name) or '""', _LONGEST_NAME),
        shorten(printable(node.caption), _LONGEST_NAME),
    )
    why = f"waits for {', '.join(node.waits_for)}" if node.waits_for else node.message
    kept = wrap(printable(why), _WHY_COLUMNS, max_lines=_WHY_LINES, placeholder=" …")
    return (name, caption, *(shorten(line, _WHY_COLUMNS) for line in kept))


def _size(texts: Sequence[str]) -> Size:
    return Size(round(max(map(width, texts)) * _LETTER) + 36, 12 + _LINE * len(texts))


def _nodes(
    graph: Graph, layout: Layout, texts: Sequence[Sequence[str]], link: Callable[[str], str] | None
) -> Iterator[str]:
    for node, box, lines in zip(graph.nodes, layout.boxes, texts, strict=True):
        focus = " focus" if node.name == graph.focus else ""
        title = _xml(_description(node))
        radius = 8 if node.state in {NodeState.ACTIVE, NodeState.SCHEDULED, NodeState.WAITING} else 1
        shown = "".join(
            f'<text class="{"small" if row else "name"}" x="{26 if row == 0 else 12}" y="{18 + _LINE * row}">{_xml(line)}</text>'
            for row, line in enumerate(lines)
        )
        box_and_texts = (
            f'<g class="{class_of(node.state)}{focus}" transform="translate({box.x},{box.y})"><title>{title}</title>'
            f'<rect class="box" width="{box.width}" height="{box.height}" rx="{radius}"/>'
            f'<g class="sign" transform="translate(15,14)">{SIGNS[node.state]}</g>{shown}</g>'
        )
        if link is None or node.state is NodeState.ABSENT:
            yield box_and_texts
        else:
            yield f'<a href="{_xml(link(node.name))}" aria-label="{title}">{box_and_texts}</a>'


def _description(node: GraphNode) -> str:
    """Return the full description of a node, for its title."""
    parts = [f"{node.kind} {node.name}".lstrip(), node.caption]
    parts += [f"order {node.order}"] if node.order is not None else []
    parts += [f"since {moment_text(node.since)}"] if node.since is not None else []
    parts += [f"waits for {', '.join(node.waits_for)}"] if node.waits_for else []
    return "; ".join([*parts, *([node.message] if node.message else [])])


# --- edges -----------------------------------------------------------------------------------------------------------------


def _edges(graph: Graph, layout: Layout) -> Iterator[str]:
    """Yield all edges; those whose source waits for the target come last, so they are drawn over the others."""
    number = {node.name: at for at, node in enumerate(graph.nodes)}
    for held in (False, True):
        for edge, points in zip(graph.edges, layout.lines, strict=True):
            if edge.waited_for == held:
                loop = layout.boxes[number[edge.source]] if not points else None
                path, head = _loop(loop, edge.kind) if loop else _path(points, edge.kind)
                name = f"{class_of(edge.kind)}{' held' if held else ''}"
                title = f"<title>{_xml(_words(edge))}</title>"
                yield f'<g class="{name}">{title}<path class="line" d="{path}"/><g transform="{head}">{HEADS[edge.kind]}</g></g>'


def _path(points: Sequence[Point], kind: EdgeKind) -> tuple[str, str]:
    """Return the path of a line, and the transformation that places its arrowhead. Each piece of the line is horizontal at both
    ends.
    """
    shift = SHIFTS[kind]
    path = [f"M{points[0].x},{points[0].y + shift}"]
    for at in range(0, len(points), 2):
        (x, y), (to_x, to_y) = points[at], points[at + 1]
        middle = (x + to_x) // 2
        path.append(
            f"{f'L{x},{y + shift} ' if at else ''}C{middle},{y + shift} {middle},{to_y + shift} {to_x},{to_y + shift}"
        )
    end = points[-1]
    turn = " rotate(180)" if end.x < points[-2].x else ""
    return " ".join(path), f"translate({end.x},{end.y + shift}){turn}"


def _loop(box: Box, kind: EdgeKind) -> tuple[str, str]:
    """Return the path of a loop over the corner of a box, and the position of its arrowhead."""
    right, top = box.x + box.width - 16 - SHIFTS[kind], box.y
    path = f"M{right - 16},{top} C{right - 16},{top - 14} {right},{top - 14} {right},{top}"
    return path, f"translate({right},{top}) rotate(90)"


def _words(edge: GraphEdge) -> str:
    held = ", and waits for it" if edge.waited_for else ""
    label = f" ({edge.label})" if edge.label else ""
    return f"{edge.source} {edge.kind.value.replace('-', ' ')} {edge.target}{label}{held}"


def _labels(graph: Graph, layout: Layout) -> Iterator[str]:
    """Yield the labels of the lines (groups and constraints), each at a free place. Yield none if there are too many edges."""
    if len(graph.edges) > _MOST_LABELS:
        return
    taken = [(box.x, box.y, box.x + box.width, box.y + box.height) for box in layout.boxes]
    for edge, points in zip(graph.edges, layout.lines, strict=True):
        text = shorten(printable(edge.label), _LONGEST_LABEL)
        across = round(width(text) * 6.8) + 6
        for x, y in _places(points, SHIFTS[edge.kind]) if text else ():
            room = (x - across // 2, y - 7, x + across // 2, y + 7)
            if not any(_meet(room, other) for other in taken):
                taken.append(room)
                yield (
                    f'<rect class="paper" x="{room[0]}" y="{room[1]}" width="{across}" height="14" opacity="0.85"/>'
                    f'<text class="small" text-anchor="middle" x="{x}" y="{y + 4}">{_xml(text)}</text>'
                )
                break


def _places(points: Sequence[Point], shift: int) -> Iterator[tuple[int, int]]:
    """Yield the places for a label on the first piece of a line, the middle first."""
    if points:
        (x, y), (to_x, to_y) = points[0], points[1]
        for part in (0.5, 0.4, 0.6, 0.3, 0.7):
            level = 3 * part**2 - 2 * part**3
            along = 1.5 * part - 1.5 * part**2 + part**3
            yield round(x + (to_x - x) * along), round(y + (to_y - y) * level) + shift


def _meet(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


# --- the legend ------------------------------------------------------------------------------------------------------------


def _legend(graph: Graph, across: int) -> Iterator[tuple[int, int, str]]:
    """Yield each entry of the legend: its position (x and row), and its SVG. There is an entry for each node state and each
    kind of edge in the graph. If a node waits for a dependency, there is also an entry for such edges.
    """
    x, row = _MARGIN, 0
    for entry, columns in (*_state_entries(graph), *_edge_entries(graph)):
        room = round(columns * _LETTER) + 60
        if x + room > across and x > _MARGIN:
            x, row = _MARGIN, row + 1
        yield x, row, entry
        x += room


def _state_entries(graph: Graph) -> Iterator[tuple[str, int]]:
    for state in NodeState:
        if any(node.state is state for node in graph.nodes):
            sign = f'<g class="sign" transform="translate(8,-4)">{SIGNS[state]}</g>'
            yield f'<g class="{class_of(state)}">{sign}<text class="small" x="20">{state}</text></g>', len(state) - 3


def _edge_entries(graph: Graph) -> Iterator[tuple[str, int]]:
    line = '<path class="line" d="M0,-4 L34,-4"/>'
    for kind in EdgeKind:
        if any(edge.kind is kind for edge in graph.edges):
            words = kind.value.replace("-", " ")
            drawn = f'{line}<g transform="translate(34,-4)">{HEADS[kind]}</g><text class="small" x="40">{words}</text>'
            yield f'<g class="{class_of(kind)}">{drawn}</g>', len(words)
    if any(edge.waited_for for edge in graph.edges):
        words = "waited for"
        yield f'<g class="held">{line}<text class="small" x="40">{words}</text></g>', len(words)


def _xml(text: str) -> str:
    """Escape a text for XML content or an attribute; ``printable`` replaces the characters that XML forbids."""
    return escape(printable(text)).encode("ascii", "xmlcharrefreplace").decode()
