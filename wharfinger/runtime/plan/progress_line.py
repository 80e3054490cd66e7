"""One line of progress on a terminal, which is redrawn in place and removed at the end.

Nothing is written to a stream that is no terminal, nor before QUIET_S, so a short command leaves no trace. The line needs no
colours and no escape sequences: it is overwritten with spaces.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TextIO

import trio

from wharfinger.formats.encodable import encodable
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import shorten, width

QUIET_S: Final = 0.5
EVERY_S: Final = 0.1
USUAL_COLUMNS: Final = 80
_LEAST_COLUMNS: Final = 10


@asynccontextmanager
async def open_progress_line(stream: TextIO, text: Callable[[], str], *, wanted: bool = True) -> AsyncIterator[None]:
    """Show ``text()`` on ``stream`` while the block runs, if it is a terminal."""
    if not wanted or not stream.isatty():
        yield
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_draw, stream, text)
        yield
        nursery.cancel_scope.cancel()


async def _draw(stream: TextIO, text: Callable[[], str]) -> None:
    await trio.sleep(QUIET_S)
    shown = ""
    try:
        while True:
            line = fitted(text(), columns_of(stream))
            if line != shown:
                _write(stream, redrawn(line, shown))
                shown = line
            await trio.sleep(EVERY_S)
    finally:
        _write(stream, redrawn("", shown) + "\r" if shown else "")


def fitted(text: str, columns: int) -> str:
    """Return a text as one line that a terminal shows as it is, one column less than the terminal has."""
    return shorten(printable(text), max(columns, _LEAST_COLUMNS) - 1)


def redrawn(line: str, before: str) -> str:
    """Return the characters that replace the line ``before``, on which the cursor is."""
    return f"\r{line}{' ' * max(width(before) - width(line), 0)}"


def columns_of(stream: TextIO) -> int:
    """Return the width of a terminal; of one that does not know it, USUAL_COLUMNS."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
    except OSError:
        return USUAL_COLUMNS


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(encodable(text, stream.encoding or "utf-8"))
        stream.flush()
    except OSError:
        return  # the terminal was closed; the command goes on
