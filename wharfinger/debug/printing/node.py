"""The scheduler's nodes as text: what each node waits for, and since when, and a table of all nodes.

Pure. The caller makes the text safe for a terminal.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from wharfinger.formats.text_table import layout
from wharfinger.runtime.scheduler_details import LackSnapshot, NodeSnapshot

# WAITS-FOR is last because only this column may be long, and only the last column is cut to fit a terminal.
_HEADER: Final = ("NAME", "ORDER", "STATE", "DECISION", "SINCE", "WAITS-FOR")

_OFF: Final = ("Disable", "Forbid")


def moment_text(moment: datetime | None) -> str:
    """Format a time to the second, in UTC: ``2026-05-17 12:30:45Z``; empty for None."""
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def lack_text(lack: LackSnapshot) -> str:
    """Describe one thing that a node waits for: ``data.db (failed)``, ``order 10 (scheduled)``, ``the end of a pause``."""
    match lack.kind:
        case "package":
            what = lack.name
        case "tier":
            what = f"order {_number(lack.name)}"
        case "vote":
            what = "the vote of its enabled script"
        case "pause":
            what = "the end of a pause"
        case kind:
            what = f"{kind} {lack.name}".rstrip()
    return f"{what} ({lack.state})" if lack.state and lack.kind in {"package", "tier"} else what


def node_lines(nodes: Sequence[NodeSnapshot], columns: int | None) -> list[str]:
    """Return the lines of a table of nodes, as wide as a terminal of ``columns``; empty if there are no nodes."""
    rows = [
        (
            node.name,
            str(node.order),
            _state(node),
            f"{node.decision} {node.reason}".strip(),
            moment_text(node.since),
            ", ".join(lack_text(lack) for lack in node.lacks),
        )
        for node in nodes
    ]
    return layout(_HEADER, rows, columns) if rows else []


def _state(node: NodeSnapshot) -> str:
    """Return the state of a node; always "off" for a node that is disabled or forbidden."""
    if node.decision in _OFF:
        return "off"
    return "failed" if node.failed else node.state


def _number(name: str) -> str:
    """Return a name that is a number (an order) without its leading zeros, which are only for sorting. Return any other name
    unchanged.
    """
    return name.lstrip("0") or "0" if name.isdecimal() else name
