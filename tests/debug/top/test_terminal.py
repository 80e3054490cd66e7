"""The terminal of the live view: curses on a separate terminal."""

import sys
from functools import partial

import pytest

from tests.debug.support.terminal import on_terminal

pytestmark = pytest.mark.measured

PROGRAM = """
import sys
from wharfinger.debug.top.lists import Style
from wharfinger.debug.top.screen import Span
from wharfinger.debug.top.terminal import TerminalError, open_terminal
try:
    with open_terminal(1, "utf-8", in_colour=sys.argv[1:] == ["colour"]) as terminal:
        said = "say keys"
        while said:
            columns, lines = terminal.size()
            text = f"{columns}x{lines} {said}"
            bad = Span("漢 worse", Style.BAD)
            terminal.draw([(Span(text),), (bad,), *[()] * (lines - 3), (Span("x" * columns, Style.SELECTED),)])
            import select
            select.select([0], [], [])
            keys = terminal.keys()
            said = "" if "q" in keys else " ".join(keys) or "nothing"
except TerminalError as error:
    print("error:", error)
"""


def begins(start: str, text: str) -> bool:
    return text.startswith(start)


def test_curses_draws_and_returns_keys() -> None:
    with on_terminal([sys.executable, "-c", PROGRAM, "colour"], columns=40, lines=6) as shown:
        before = shown.modes()
        lines = shown.wait(lambda text: "say keys" in text and "x" * 40 in text).splitlines()
        assert (lines[0], lines[1].replace(" ", ""), lines[5]) == ("  40x6 say keys", "漢worse", "> " + "x" * 40)
        assert shown.colours == {"red"}
        for keys, said in (
            ("\x1b[A", "up"),
            ("\x1b[B", "down"),
            ("\x1b[C", "right"),
            ("\x1b[5~", "pageup"),
            ("\x1b[6~", "pagedown"),
            ("\r", "enter"),
            ("\t", "tab"),
            ("\x7f", "backspace"),
            ("\x1b", "escape"),
            ("ä", "ä"),
            ("\x1b[23~", "nothing"),
        ):
            shown.press(keys)
            shown.wait(partial(begins, f"  40x6 {said}\n"))
        shown.resize(50, 6)
        shown.press("a")
        shown.wait(lambda text: text.startswith("  50x6 a\n"))
        shown.press("q")
        assert shown.wait_end() == 0
        assert shown.modes() == before


def test_colours_are_off_on_request() -> None:
    with on_terminal([sys.executable, "-c", PROGRAM]) as shown:
        shown.wait(lambda text: "worse" in text)
        assert shown.colours == set()
        shown.press("q")
        assert shown.wait_end() == 0


@pytest.mark.parametrize("name", ["dumb", "no-such-terminal", ""])
def test_a_terminal_without_a_cursor_is_refused(name: str) -> None:
    with on_terminal([sys.executable, "-c", PROGRAM], environment={"TERM": name}) as shown:
        assert shown.wait_end() == 0
        assert "cannot move its cursor" in shown.text
