"""Aligned tables, as kubectl prints them: a pure layout of untrusted text."""

from collections.abc import Sequence
from typing import Final

from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import shorten, width

_GAP: Final = "   "
_LEAST_LAST_COLUMN: Final = 20
"""The last column is cut to fit a terminal, but never below this width; a narrower terminal wraps the lines."""


def layout(header: Sequence[str], rows: Sequence[Sequence[str]], terminal_columns: int | None) -> list[str]:
    """Return the lines of a table. Each row has as many cells as ``header``.

    Control characters are escaped. On a terminal (``terminal_columns`` is its width, None if there is none) the last column
    is cut to fit. Otherwise nothing is cut, because programs and files need the whole text.
    """
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(header))]
    if terminal_columns is not None:
        before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(terminal_columns - before, _LEAST_LAST_COLUMN))
    return [_line(row, widths) for row in cells]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    fitted = [shorten(cell, columns) for cell, columns in zip(row, widths, strict=True)]
    padded = [cell + " " * (columns - width(cell)) for cell, columns in zip(fitted, widths, strict=True)]
    return _GAP.join(padded).rstrip()
