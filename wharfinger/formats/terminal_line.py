"""One line on a terminal that is redrawn in place: its text, and the characters that replace the previous text.

Redrawing needs no colors and no escape sequences: the rest of the previous text is overwritten with spaces.
"""

import os
from typing import Final, TextIO

from wharfinger.formats.encodable import encodable
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import shorten, width

USUAL_COLUMNS: Final = 80
_LEAST_COLUMNS: Final = 10


def fitted(text: str, columns: int) -> str:
    """Return a text as one printable line, shortened so that it is narrower than a terminal with this number of columns."""
    return shorten(printable(text), max(columns, _LEAST_COLUMNS) - 1)


def redrawn(line: str, before: str) -> str:
    """Return the characters to print so that ``line`` replaces ``before``, the line that the cursor is on."""
    return f"\r{line}{' ' * max(width(before) - width(line), 0)}"


def columns_of(stream: TextIO) -> int:
    """Return the width of a terminal; USUAL_COLUMNS if it is not known."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
    except OSError:
        return USUAL_COLUMNS


def draw(stream: TextIO, text: str) -> None:
    """Write to a terminal; do nothing if it has been closed, so that the command continues."""
    try:
        stream.write(encodable(text, stream.encoding or "utf-8"))
        stream.flush()
    except OSError:
        return


class TerminalLine:
    """A line on ``stream``; nothing is shown if the stream is not a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = ""

    def show(self, text: str) -> None:
        """Replace the shown line by ``text``."""
        if not self._stream.isatty():
            return
        line = fitted(text, columns_of(self._stream))
        if line != self._shown:
            draw(self._stream, redrawn(line, self._shown))
            self._shown = line

    def clear(self) -> None:
        """Remove the shown line."""
        if self._shown:
            draw(self._stream, redrawn("", self._shown) + "\r")
            self._shown = ""
