"""The progress line: when it is drawn, what a terminal shows, and how it is removed at the end."""

import io

import pytest
import trio

from wharfinger.runtime.plan.progress_line import QUIET_S, open_progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class ClosedTerminal(Terminal):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


def screen(written: str) -> str:
    """Return the visible text of the line after all characters were written to a terminal."""
    cells: list[str] = []
    column = 0
    for character in written:
        if character == "\r":
            column = 0
            continue
        cells[column : column + 1] = [character]
        column += 1
    return "".join(cells).rstrip()


async def test_quick_operations_have_no_progress_line(autojump_clock: trio.testing.MockClock) -> None:
    terminal = Terminal()
    async with open_progress_line(terminal, lambda: "1 of 2"):
        await trio.sleep(QUIET_S - 0.01)
    assert terminal.getvalue() == ""


async def test_the_line_follows_the_text_and_is_removed(autojump_clock: trio.testing.MockClock) -> None:
    terminal = Terminal()
    text = "a long line of progress"
    async with open_progress_line(terminal, lambda: text):
        await trio.sleep(QUIET_S + 0.05)
        assert screen(terminal.getvalue()) == text
        before = terminal.getvalue()
        await trio.sleep(10)
        assert terminal.getvalue() == before, "an unchanged line is not drawn again"
        text = "short"
        await trio.sleep(0.1)
        assert screen(terminal.getvalue()) == "short"
    assert screen(terminal.getvalue()) == ""
    assert terminal.getvalue().endswith("\r")
    assert "\n" not in terminal.getvalue()


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_progress_line_is_drawn_only_on_a_terminal(
    wanted: bool, autojump_clock: trio.testing.MockClock
) -> None:
    stream = io.StringIO() if wanted else Terminal()
    async with open_progress_line(stream, lambda: "text", wanted=wanted):
        await trio.sleep(10)
    assert stream.getvalue() == ""


async def test_a_failure_removes_the_line_and_a_closed_terminal_is_ignored(
    autojump_clock: trio.testing.MockClock,
) -> None:
    terminal = Terminal()
    with pytest.RaisesGroup(ValueError):
        async with open_progress_line(terminal, lambda: "text"):
            await trio.sleep(10)
            raise ValueError
    assert screen(terminal.getvalue()) == ""
    async with open_progress_line(ClosedTerminal(), lambda: "text"):
        await trio.sleep(10)
