"""The history of a package as a table: a line for each event, oldest first."""

from datetime import UTC
from typing import Final

from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_table import layout
from wharfinger.runtime.inspector import EventSnapshot, HistorySnapshot

_HEADER: Final = ("TIME", "MACHINE", "EVENT", "BEFORE", "AFTER", "CAUSE")
_WIDEST_COLUMN: Final = 50
"""The largest width of a column, so that one state with a long reason does not widen every line."""


def history_lines(history: HistorySnapshot, columns: int | None) -> list[str]:
    """Return the events as the lines of a table, safe to print on a terminal."""
    lines = [f"{history.dropped} earlier events are not kept"] if history.dropped else []
    if not history.events:
        return [*lines, "no decisions; --all shows the other events"]
    rows = [_row(event) for event in history.events]
    return [*lines, *layout(_HEADER, rows, columns, widest_column=_WIDEST_COLUMN)]


def _row(event: EventSnapshot) -> tuple[str, ...]:
    moment = f"{event.time.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
    texts = (event.machine, event.event, event.before, event.after if event.after != event.before else "", event.cause)
    return moment, *(printable(" ".join(text.split())) for text in texts)
