"""The difference that the next apply of a package would make, as text. Pure; the lines are safe to print on a terminal."""

import json
from collections.abc import Iterator
from typing import Final

from wharfinger.debug.errors import DebugError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.runtime.package_details import DifferenceSnapshot, FieldChangeSnapshot, ObjectChangeSnapshot

_GREEN: Final = "\x1b[32m"
_RED: Final = "\x1b[31m"
_RESET: Final = "\x1b[0m"
_SIGNS: Final = {"create": "+", "delete": "-", "change": "~", "keep": "=", "unknown": "?"}
CHART: Final = "chart"


class DifferenceProblemError(DebugError):
    """The difference of a package is not known."""


def difference_lines(difference: DifferenceSnapshot) -> list[str]:
    """Return the lines about each object that would change: ``+`` created, ``~`` changed, ``-`` deleted, ``=`` kept, ``?`` not
    known.
    """
    return [printable(line) for change in difference.changes for line in _change_lines(change)]


def summary_lines(difference: DifferenceSnapshot) -> list[str]:
    """Return the counts of changes, and the notes about the whole difference."""
    changes = [change.change for change in difference.changes]
    counts = ", ".join(f"{changes.count(kind)} {words}" for kind, words in _WORDS.items() if kind in changes)
    first = f"objects: {counts}, {difference.unchanged} unchanged" if changes else "no differences"
    return [printable(line) for line in (first, *(f"note: {note}" for note in difference.notes))]


_WORDS: Final = {
    "create": "created",
    "change": "changed",
    "delete": "deleted",
    "keep": "no longer in the chart, kept",
    "unknown": "not known",
}


def coloured(line: str) -> str:
    """Return a line in the color of its sign, for a terminal."""
    colour = {"+": _GREEN, "-": _RED}.get(line.lstrip()[:1], "")
    return f"{colour}{line}{_RESET}" if colour else line


def _change_lines(change: ObjectChangeSnapshot) -> Iterator[str]:
    source = "as in the chart, without a dry run" if change.by == CHART else ""
    notes = "; ".join(text for text in (source, change.note) if text)
    yield f"{_SIGNS.get(change.change, '?')} {change.object}" + (f" ({notes})" if notes else "")
    for field in change.fields:
        yield from _field_lines(field)


def _field_lines(field: FieldChangeSnapshot) -> Iterator[str]:
    if not field.pointer:
        yield from (f"    + {line}" for line in _yaml_lines(field.after))
    elif field.before and field.after:
        yield f"    ~ {field.pointer}: {field.before} -> {field.after}"
    elif field.after:
        yield f"    + {field.pointer}: {field.after}"
    else:
        yield f"    - {field.pointer}: {field.before}"


def _yaml_lines(text: str) -> list[str]:
    """Return a JSON document as lines of YAML; unchanged if it cannot be read."""
    try:
        document: JsonValue = json.loads(text)
        return write_yaml(document).splitlines()
    except (ValueError, FormatError):
        return [text]
