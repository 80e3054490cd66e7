"""The check of constants before evaluation: durations, timestamps, patterns, and lists and maps of mixed types."""

from collections.abc import Callable

from wharfinger.control_plane.cel.checking.checker import Checked
from wharfinger.control_plane.cel.syntax.issues import Issue
from wharfinger.control_plane.cel.syntax.nodes import Call, ListNode, Literal, MapNode, Node, children
from wharfinger.control_plane.cel.values import times as moments
from wharfinger.control_plane.cel.values.types import unwrapped
from wharfinger.kube.patterns import pattern_problem


def literal_issues(checked: Checked) -> list[Issue]:
    """Return the errors in the literals of an expression, such as an invalid pattern or duration."""
    found: list[Issue] = []
    for node in checked.types:
        if not isinstance(node, Call):
            continue
        last = node.arguments[-1] if node.arguments else None
        if not isinstance(last, Literal) or not isinstance(last.value, str):
            continue
        if node.function == "matches":
            found += [Issue(last.at, "invalid matches argument")] if pattern_problem(last.value) else []
        elif node.function == "duration" and not _reads(moments.parse_duration, last.value):
            found.append(Issue(last.at, "invalid duration argument"))
        elif node.function == "timestamp" and not _reads(moments.parse_date_time, last.value):
            found.append(Issue(last.at, "invalid timestamp argument"))
    return found + _mixed(checked, checked.root, exempt=False)


def _mixed(checked: Checked, node: Node, *, exempt: bool) -> list[Issue]:
    """Return the errors of lists and maps whose parts differ in type. Only arguments of ``format`` may have such parts."""
    found: list[Issue] = []
    groups: list[list[tuple[Node, bool]]] = []
    if isinstance(node, ListNode) and not exempt:
        groups = [[(element, index in node.optional) for index, element in enumerate(node.elements)]]
    elif isinstance(node, MapNode) and not exempt:
        groups = [[(key, False) for key, _, _ in node.entries], [entry[1:] for entry in node.entries]]
    for group in groups:
        kinds = [unwrapped(checked.types[inner])[0] if held else checked.types[inner] for inner, held in group]
        other = next((index for index, kind in enumerate(kinds) if kind != kinds[0]), None)
        if other is not None:
            found.append(Issue(group[other][0].at, f"expected type '{kinds[0]}' but found '{kinds[other]}'"))
    exempt = exempt or (isinstance(node, Call) and node.function == "format")
    for inner in children(node):
        found += _mixed(checked, inner, exempt=exempt)
    return found


def _reads(read: Callable[[str], int], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True
