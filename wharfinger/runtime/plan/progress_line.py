"""A progress line on a terminal, which is updated in place and removed at the end.

Nothing is written during the first QUIET_S, so a short command prints no progress, and nothing is written to a stream that is
not a terminal.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TextIO

import trio

from wharfinger.formats.terminal_line import TerminalLine

QUIET_S: Final = 0.5
EVERY_S: Final = 0.1


@asynccontextmanager
async def open_progress_line(stream: TextIO, text: Callable[[], str], *, wanted: bool = True) -> AsyncIterator[None]:
    """Show ``text()`` on ``stream`` while the block runs, if ``stream`` is a terminal."""
    if not wanted or not stream.isatty():
        yield
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_draw, stream, text)
        yield
        nursery.cancel_scope.cancel()


async def _draw(stream: TextIO, text: Callable[[], str]) -> None:
    await trio.sleep(QUIET_S)
    line = TerminalLine(stream)
    try:
        while True:
            line.show(text())
            await trio.sleep(EVERY_S)
    finally:
        line.clear()
