"""The look of the SVG picture of a graph: colors for light and for dark backgrounds, signs, lines and arrowheads.

Pure constants and small pieces of SVG. Color is never the only mark: each state has its own sign and is written out, and
each kind of edge has its own line and arrowhead. The picture paints its own background, light unless the viewer prefers a
dark one, so it is readable on any page.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.debug.graph.model import EdgeKind, NodeState

SIGNS: Final = {
    NodeState.ACTIVE: '<path d="M-5,0 L-1.5,4 L5,-4"/>',
    NodeState.DEGRADED: '<path d="M0,-5 L5.5,4.5 L-5.5,4.5 Z M0,-1.5 L0,1.5"/>',
    NodeState.SCHEDULED: '<path d="M-3.5,-5 L5,0 L-3.5,5 Z"/>',
    NodeState.WAITING: '<path d="M-4,-5 L4,-5 L-4,5 L4,5 Z"/>',
    NodeState.FAILED: '<path d="M-4.5,-4.5 L4.5,4.5 M4.5,-4.5 L-4.5,4.5"/>',
    NodeState.REMOVING: '<path d="M-5,0 L5,0 M1,-4 L5,0 L1,4"/>',
    NodeState.OFF: '<path d="M-5,0 L5,0"/>',
    NodeState.FORBIDDEN: '<path d="M5,0 A5,5 0 1 1 -5,0 A5,5 0 1 1 5,0 M-3.5,-3.5 L3.5,3.5"/>',
    NodeState.UNDECIDED: '<path d="M0,-5.5 L5.5,0 L0,5.5 L-5.5,0 Z"/>',
    NodeState.UNLOADED: '<path d="M-4.5,-4.5 L4.5,-4.5 L4.5,4.5 L-4.5,4.5 Z"/>',
    NodeState.ABSENT: '<path stroke-dasharray="2 2" d="M5,0 A5,5 0 1 1 -5,0 A5,5 0 1 1 5,0"/>',
}
"""The sign of each state, drawn around (0, 0), at most 12 wide and high."""
_DASHED: Final = (NodeState.WAITING, NodeState.REMOVING, NodeState.FORBIDDEN, NodeState.UNLOADED)
SHIFTS: Final = {
    EdgeKind.NEEDS: 0,
    EdgeKind.NEEDS_IF_THERE: -5,
    EdgeKind.ANY_OF: 5,
    EdgeKind.EXCLUDES: 10,
    EdgeKind.SUBSCRIBES: -10,
}
"""The distance by which the line of each kind of edge is shifted down from the middle of its boxes, so that edges of different
kinds between the same packages do not overlap.
"""
HEADS: Final = {
    EdgeKind.NEEDS: '<path class="head" d="M0,0 L-10,-5 L-10,5 Z"/>',
    EdgeKind.NEEDS_IF_THERE: '<path class="solid" d="M-9,-5 L0,0 L-9,5"/>',
    EdgeKind.ANY_OF: '<path class="hollow" d="M-1,0 L-11,-5 L-11,5 Z"/>',
    EdgeKind.EXCLUDES: '<path class="solid" d="M-3,-5 L-3,5 M-7,-5 L-7,5"/>',
    EdgeKind.SUBSCRIBES: '<circle class="hollow" cx="-5" cy="0" r="4"/>',
}
"""For each kind of edge, the SVG element that marks the end of its line. The line comes from the left and ends at (0, 0)."""
_DASHES: Final = {
    EdgeKind.NEEDS_IF_THERE: "7 4",
    EdgeKind.ANY_OF: "12 3",
    EdgeKind.EXCLUDES: "3 3",
    EdgeKind.SUBSCRIBES: "1.5 4",
}


@dataclass(frozen=True, slots=True)
class _Palette:
    """The colors on one background. A state has two: one for its box, one for its border and its sign."""

    paper: str
    ink: str
    soft: str
    edge: str
    held: str
    states: Mapping[NodeState, tuple[str, str]]


_LIGHT: Final = _Palette(
    paper="#ffffff",
    ink="#1b1f24",
    soft="#57606a",
    edge="#6e7781",
    held="#b3261e",
    states={
        NodeState.ACTIVE: ("#e2f4e5", "#1a7f37"),
        NodeState.DEGRADED: ("#fdf1d3", "#8a5a00"),
        NodeState.SCHEDULED: ("#dfedfc", "#0860c4"),
        NodeState.WAITING: ("#f1f3f5", "#4b5560"),
        NodeState.FAILED: ("#fce4e1", "#b3261e"),
        NodeState.REMOVING: ("#f1e7f8", "#7b3fa8"),
        NodeState.OFF: ("#e9eaec", "#57606a"),
        NodeState.FORBIDDEN: ("#fbe6ef", "#a3265e"),
        NodeState.UNDECIDED: ("#ffffff", "#57606a"),
        NodeState.UNLOADED: ("#ffffff", "#57606a"),
        NodeState.ABSENT: ("#ffffff", "#57606a"),
    },
)
_DARK: Final = _Palette(
    paper="#0f1318",
    ink="#eceff2",
    soft="#a9b2bc",
    edge="#8b949e",
    held="#ff8a80",
    states={
        NodeState.ACTIVE: ("#12301c", "#56d37c"),
        NodeState.DEGRADED: ("#3a2c0a", "#f0b429"),
        NodeState.SCHEDULED: ("#10294a", "#6cb2ff"),
        NodeState.WAITING: ("#20262d", "#a9b2bc"),
        NodeState.FAILED: ("#431a17", "#ff8a80"),
        NodeState.REMOVING: ("#2f1d3d", "#cf9bf5"),
        NodeState.OFF: ("#23272c", "#8b949e"),
        NodeState.FORBIDDEN: ("#3b1629", "#f78db8"),
        NodeState.UNDECIDED: ("#0f1318", "#a9b2bc"),
        NodeState.UNLOADED: ("#0f1318", "#a9b2bc"),
        NodeState.ABSENT: ("#0f1318", "#a9b2bc"),
    },
)


def class_of(each: NodeState | EdgeKind) -> str:
    """Return the CSS class for a state or for a kind of edge."""
    return each.value.replace(" ", "-")


def style_lines(scope: str = "") -> Iterator[str]:
    """Yield the lines of the style sheet. ``scope`` is a CSS selector that limits them to some pictures, "" for no limit."""
    yield from (_scoped(line, scope) for line in _style_lines())


def _scoped(line: str, scope: str) -> str:
    selectors, brace, declarations = line.partition(" {")
    if not scope or not brace or line.startswith("@"):
        return line
    return ", ".join(f"{scope} {each}" for each in selectors.split(", ")) + brace + declarations


def _style_lines() -> Iterator[str]:
    yield "text { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12px; }"
    yield ".name { font-weight: bold; }"
    yield ".small { font-size: 11px; }"
    yield ".box { stroke-width: 1.5; }"
    yield ".focus .box { stroke-width: 4; }"
    yield ".sign path { fill: none; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }"
    yield ".line { fill: none; stroke-width: 1.3; }"
    yield ".solid, .hollow { stroke-width: 1.5; }"
    yield ".solid { fill: none; }"
    yield ".held > .line { stroke-width: 2.4; }"
    for state in _DASHED:
        yield f".{class_of(state)} .box {{ stroke-dasharray: 6 3; }}"
    yield f".{class_of(NodeState.ABSENT)} .box {{ stroke-dasharray: 2 3; }}"
    for kind, dashes in _DASHES.items():
        yield f".{class_of(kind)} > .line {{ stroke-dasharray: {dashes}; }}"
    yield from _colours(_LIGHT)
    yield "@media (prefers-color-scheme: dark) {"
    yield from _colours(_DARK)
    yield "}"


def _colours(palette: _Palette) -> Iterator[str]:
    yield f".paper {{ fill: {palette.paper}; }}"
    yield f"text {{ fill: {palette.ink}; }}"
    yield f".small {{ fill: {palette.soft}; }}"
    yield f".line, .solid, .hollow {{ stroke: {palette.edge}; }}"
    yield f".head {{ fill: {palette.edge}; }}"
    yield f".hollow {{ fill: {palette.paper}; }}"
    yield f".held .line, .held .solid, .held .hollow {{ stroke: {palette.held}; }}"
    yield f".held .head {{ fill: {palette.held}; }}"
    for state, (fill, stroke) in palette.states.items():
        name = class_of(state)
        yield f".{name} .box {{ fill: {fill}; stroke: {stroke}; }}"
        yield f".{name} .sign path {{ stroke: {stroke}; }}"
