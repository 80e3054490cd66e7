"""The terminal of the live view, over curses: it shows lines and returns keys. `open_terminal` restores it at the end.

curses sends only what changed since the last picture, so the view works over a slow connection. The terminal receives only the
texts of `screen`, which have no control characters, and the sequences in the terminal's own description (terminfo).
"""

import curses
import os
import select
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from wharfinger.debug.errors import DebugError
from wharfinger.debug.top.lists import Style
from wharfinger.debug.top.screen import Line

_ESCAPE_MS: Final = 50
"""The time after which an escape character counts as the Escape key, and not as the beginning of an arrow key's sequence."""
_NAMED: Final[Mapping[int, str]] = {
    curses.KEY_UP: "up",
    curses.KEY_DOWN: "down",
    curses.KEY_LEFT: "left",
    curses.KEY_RIGHT: "right",
    curses.KEY_PPAGE: "pageup",
    curses.KEY_NPAGE: "pagedown",
    curses.KEY_HOME: "home",
    curses.KEY_END: "end",
    curses.KEY_ENTER: "enter",
    curses.KEY_BACKSPACE: "backspace",
    curses.KEY_BTAB: "backtab",
}
_CHARACTERS: Final = {
    "\n": "enter",
    "\r": "enter",
    "\t": "tab",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\b": "backspace",
}
_COLOURS: Final = {
    Style.GOOD: curses.COLOR_GREEN,
    Style.WARNING: curses.COLOR_YELLOW,
    Style.BAD: curses.COLOR_RED,
}
_PLAIN: Final = {
    Style.PLAIN: curses.A_NORMAL,
    Style.HEADER: curses.A_BOLD,
    Style.GOOD: curses.A_NORMAL,
    Style.WARNING: curses.A_NORMAL,
    Style.BAD: curses.A_BOLD,
    Style.DIM: curses.A_DIM,
    Style.SELECTED: curses.A_REVERSE,
}
_DUMB: Final = (
    "the terminal {name!r} cannot move its cursor, or is not known on this machine; set TERM to its kind, such as "
    "xterm-256color, or use `wharfinger get packages -w`"
)


class TerminalError(DebugError):
    """The terminal cannot show a live view."""


class Terminal:
    """An opened terminal."""

    def __init__(self, window: "curses.window", descriptor: int, encoding: str, *, in_colour: bool) -> None:
        self._window = window
        self._descriptor = descriptor
        self._encoding = encoding
        self._looks = _looks(in_colour=in_colour)

    def size(self) -> tuple[int, int]:
        """Return the columns and lines that the terminal has now."""
        columns, lines = os.get_terminal_size(self._descriptor)
        if (lines, columns) != self._window.getmaxyx() and lines > 0 and columns > 0:
            curses.resizeterm(lines, columns)
        lines, columns = self._window.getmaxyx()
        return columns, lines

    def keys(self) -> list[str]:
        """Return the keys that were pressed since the last call, without waiting. "" stands for a key that the live view does
        not use.
        """
        pressed = []
        while (key := self._key()) is not None:
            pressed.append(key)
        return pressed

    def is_gone(self) -> bool:
        """Return whether the terminal was closed."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return any(happened & (select.POLLHUP | select.POLLERR) for _, happened in poll.poll(0))

    def _key(self) -> str | None:
        """Return the next key without waiting: "" for a key that the live view does not use, None if no key was pressed."""
        try:
            found = self._window.get_wch()
        except curses.error:
            return None
        if isinstance(found, int):
            return _NAMED.get(found, "")
        return _CHARACTERS.get(found, found)

    def draw(self, lines: Sequence[Line]) -> None:
        """Show lines from the top, in place of everything that was shown before."""
        self._window.erase()
        for row, line in enumerate(lines):
            # curses raises an error after it has written the last cell of the screen, because the cursor has no place.
            with suppress(curses.error):
                self._window.move(row, 0)
                for span in line:
                    text = span.text.encode(self._encoding, "replace").decode(self._encoding)
                    self._window.addstr(text, self._looks[span.style])
        self._window.refresh()


@contextmanager
def open_terminal(descriptor: int, encoding: str, *, in_colour: bool) -> Iterator[Terminal]:
    """Take over the terminal on standard output, and restore it at the end. Raises TerminalError."""
    _check(descriptor)
    curses.set_escdelay(_ESCAPE_MS)
    window = curses.initscr()
    try:
        curses.noecho()
        curses.cbreak()
        window.keypad(True)  # noqa: FBT003 - the signature of curses
        window.nodelay(True)  # noqa: FBT003
        with suppress(curses.error):
            curses.curs_set(0)
        yield Terminal(window, descriptor, encoding, in_colour=in_colour and _start_colours())
    finally:
        with suppress(curses.error):
            curses.curs_set(1)
        curses.endwin()


def _check(descriptor: int) -> None:
    """Raise TerminalError unless the terminal can move its cursor, because curses would end the process otherwise."""
    name = os.environ.get("TERM", "")
    try:
        curses.setupterm(name or "unknown", descriptor)
    except curses.error as error:
        raise TerminalError(_DUMB.format(name=name)) from error
    if not curses.tigetstr("cup"):
        raise TerminalError(_DUMB.format(name=name))


def _start_colours() -> bool:
    """Return whether the terminal has colors, and prepare them."""
    curses.start_color()
    if not curses.has_colors():
        return False
    with suppress(curses.error):
        curses.use_default_colors()
    for pair, colour in enumerate(_COLOURS.values(), 1):
        curses.init_pair(pair, colour, -1)
    return True


def _looks(*, in_colour: bool) -> dict[Style, int]:
    looks = dict(_PLAIN)
    for pair, style in enumerate(_COLOURS, 1):
        looks[style] |= curses.color_pair(pair) if in_colour else curses.A_NORMAL
    return looks
