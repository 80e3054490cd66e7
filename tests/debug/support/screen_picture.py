"""Pictures (SVG) of a terminal's screen, for the documents and for readers of test results."""

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Final

import pyte
from pyte.screens import Char

_WIDE: Final = 8
_HIGH: Final = 17
_MARGIN: Final = 12
_PAPER: Final = "#1c1f24"
_INK: Final = "#d5d8dc"
_COLOURS: Final = {
    "black": "#1c1f24",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
    "white": "#d5d8dc",
}
"""The colors of pyte, which calls yellow "brown"."""
_WORDS: Final = re.compile(r"\S+(?: \S+)*")
"""Words with single spaces between them; browsers reduce several spaces to one."""
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d(?= UTC)")


def screen_svg(screen: pyte.Screen, label: str) -> str:
    """Return a picture of a screen. Every time of day in it is replaced by noon, so that two pictures of one state are equal."""
    width, height = screen.columns * _WIDE + 2 * _MARGIN, screen.lines * _HIGH + 2 * _MARGIN
    size = f'width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" {size} viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{_PAPER}"/>',
        f'<g font-family="monospace" font-size="13" fill="{_INK}">',
    ]
    for row in range(screen.lines):
        lines += _row(screen, row)
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _row(screen: pyte.Screen, row: int) -> Iterator[str]:
    """Yield the backgrounds and the texts of a row as SVG. Each text has an exact width, which does not depend on the font."""
    cells = [screen.buffer[row][column] for column in range(screen.columns)]
    text = _TIME.sub("12:00:00", "".join(cell.data for cell in cells))
    top, at = _MARGIN + row * _HIGH, 0
    for look, run in groupby(cells, _look):
        count = len(list(run))
        part, left = text[at : at + count], _MARGIN + at * _WIDE
        at += count
        ink, paper, bold = look
        if paper != _PAPER:
            yield f'<rect x="{left}" y="{top}" width="{count * _WIDE}" height="{_HIGH}" fill="{paper}"/>'
        weight = ' font-weight="bold"' if bold else ""
        colour = f' fill="{ink}"' if ink != _INK else ""
        for words in _WORDS.finditer(part):
            x, length = left + words.start() * _WIDE, len(words[0]) * _WIDE
            yield f'<text x="{x}" y="{top + 13}" textLength="{length}"{weight}{colour}>{escape(words[0])}</text>'


def _look(cell: Char) -> tuple[str, str, bool]:
    """Return the color of the text, the color of the background, and whether the text is bold."""
    ink, paper = _colour(cell.fg, _INK), _colour(cell.bg, _PAPER)
    return (paper, ink, cell.bold) if cell.reverse else (ink, paper, cell.bold)


def _colour(name: str, usual: str) -> str:
    if name == "default":
        return usual
    return _COLOURS.get(name.removeprefix("bright"), f"#{name}" if re.fullmatch("[0-9a-f]{6}", name) else usual)
