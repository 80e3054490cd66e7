"""Aligned tables, as kubectl prints them: a pure layout of untrusted text."""

from collections.abc import Sequence
from typing import Final

from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import shorten, width

_GAP: Final = "   "
_LEAST_LAST_COLUMN: Final = 20
"""The least width to which the last column is cut to fit the terminal. If the terminal has less space, it wraps the lines."""


def layout(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    terminal_columns: int | None,
    *,
    widest_column: int | None = None,
) -> list[str]:
    """Return the lines of a table. Each row has as many cells as ``header``.

    Control characters are escaped. On a terminal (``terminal_columns`` is its width, None if there is none) the last column
    is cut to fit. Otherwise nothing is cut, because programs and files need the whole text. No column is padded beyond
    ``widest_column`` (None: no limit); a longer cell moves only the rest of its own row to the right.
    """
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(header) - 1)]
    if widest_column is not None:
        widths = [min(each, widest_column) for each in widths]
    return [_line(row, widths, terminal_columns) for row in cells]


def _line(row: Sequence[str], widths: Sequence[int], terminal_columns: int | None) -> str:
    *first, last = row
    before = "".join(
        cell + " " * max(columns - width(cell), 0) + _GAP for cell, columns in zip(first, widths, strict=True)
    )
    if terminal_columns is not None:
        last = shorten(last, max(terminal_columns - width(before), _LEAST_LAST_COLUMN))
    return (before + last).rstrip()
