"""The page of one package in the live view, as lines: its description and the last lines of its log. Pure."""

from collections.abc import Iterator
from typing import Final

from wharfinger.debug.package.description import description_lines
from wharfinger.debug.printing.log_line import log_line_text
from wharfinger.debug.top.view import PackagePage
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import shorten, width

MOST_LOG_LINES: Final = 200
MOST_PIECES: Final = 20
"""The maximum number of pieces into which one line is broken."""
_INDENT: Final = "  "
_INDENTED_FROM: Final = 20


def page_lines(page: PackagePage, columns: int, arrow: str) -> list[str]:
    """Return the lines, safe to draw, each at most ``columns`` wide."""
    return [part for line in _lines(page, columns, arrow) for part in wrapped(line, columns)]


def _lines(page: PackagePage, columns: int, arrow: str) -> Iterator[str]:
    if page.description is None:
        yield printable(f"the daemon does not know {page.name} any more")
    else:
        yield from description_lines(page.description, page.at, columns, arrow)
    lines = page.log.lines[-MOST_LOG_LINES:] if page.log is not None else ()
    if lines:
        yield "Log:"
        yield from (_INDENT + log_line_text(line) for line in lines)


def wrapped(line: str, columns: int) -> Iterator[str]:
    """Yield the pieces of a line that is too long for the terminal; pieces after the first are indented two columns more. A
    very long line is cut.
    """
    line = shorten(line, MOST_PIECES * columns)
    own = len(line) - len(line.lstrip(" "))
    indent = " " * min(own + len(_INDENT), columns // 2) if columns >= _INDENTED_FROM else ""
    room = max(columns, 2)  # a character may be two columns wide
    while width(line) > room:
        cut = _cut(line, room)
        yield line[:cut].rstrip()
        line = indent + line[cut:].lstrip()
    yield line


def _cut(line: str, room: int) -> int:
    """Return the index at which a line is broken: after the last space that fits, or else after the last character that fits."""
    used = last = 0
    for at, character in enumerate(line):
        used += width(character)
        if used > room:
            break
        last = at + 1
    space = line.rfind(" ", 0, last + 1)
    return space if space > last // 2 else last
