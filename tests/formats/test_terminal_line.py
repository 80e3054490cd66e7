"""The line of progress on a terminal: the written characters, and its removal."""

import io

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.terminal_line import USUAL_COLUMNS, TerminalLine, columns_of, draw, fitted, redrawn
from wharfinger.formats.terminal_text import is_safe
from wharfinger.formats.text_width import width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class ClosedTerminal(Terminal):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_a_line_is_drawn_once_replaced_and_removed() -> None:
    terminal = Terminal()
    line = TerminalLine(terminal)
    line.show("a longer text")
    line.show("a longer text")
    assert terminal.getvalue() == "\ra longer text"
    line.show("short\x1b")
    line.clear()
    line.clear()
    assert terminal.getvalue() == "\ra longer text\rshort\\x1b    \r         \r"


def test_nothing_is_written_without_a_terminal() -> None:
    stream = io.StringIO()
    line = TerminalLine(stream)
    line.show("text")
    line.clear()
    assert stream.getvalue() == ""
    draw(ClosedTerminal(), "text")
    assert columns_of(stream) == USUAL_COLUMNS


@given(st.text(), st.text(), st.integers(0, 200))
def test_a_terminal_shows_the_drawn_text_in_one_line(text: str, before: str, columns: int) -> None:
    line, last = fitted(text, columns), fitted(before, columns)
    assert width(line) < max(columns, 10)
    drawn = redrawn(line, last)
    assert drawn.startswith("\r")
    assert is_safe(drawn[1:])
    assert width(drawn[1:]) == max(width(line), width(last))
