"""A program in a pseudo-terminal. Tests send keys, and a terminal emulator (pyte) shows the screen that a user would see.

Tests wait for a screen or for the end of the program, and never for a fixed time.
"""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyte

from tests.debug.support.screen_picture import screen_svg
from tests.programs import ROOT

PATIENCE_S = 60


class OnTerminal:
    """A running program, and the screen of its terminal."""

    def __init__(self, process: subprocess.Popen[bytes], ours: int, columns: int, lines: int) -> None:
        self.process = process
        self.received = bytearray()
        self._ours = ours
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def text(self) -> str:
        """Return the lines of the screen, without spaces at their ends."""
        return "".join(f"{line.rstrip()}\n" for line in self._screen.display)

    @property
    def marked(self) -> str:
        """Return the lines of the screen. Lines that begin in reverse video get a leading ``>``, and other lines a space."""
        bars = [self._screen.buffer[row][0].reverse for row in range(self._screen.lines)]
        lines = self.text.splitlines()
        return "".join(f"{'>' if bar else ' '} {line}".rstrip() + "\n" for bar, line in zip(bars, lines, strict=True))

    def picture(self, label: str) -> str:
        """Return the screen as SVG."""
        return screen_svg(self._screen, label)

    @property
    def colours(self) -> set[str]:
        """Return the colors of the characters on the screen, except the default color."""
        return {cell.fg for row in self._screen.buffer.values() for cell in row.values()} - {"default"}

    def press(self, keys: str) -> None:
        """Send keys, as the terminal would."""
        os.write(self._ours, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the terminal, as a user changes the size of a window."""
        self._screen.resize(lines, columns)
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait(self, is_shown: Callable[[str], bool]) -> str:
        """Wait until ``is_shown`` is true for the lines of the screen as `marked` returns them, and return these lines."""
        end = time.monotonic() + PATIENCE_S
        while not is_shown(self.marked):
            assert time.monotonic() < end, f"it is not shown:\n{self.marked}"
            assert self._read(end), f"the program ended, and shows:\n{self.marked}"
        return self.marked

    def wait_quiet(self) -> str:
        """Wait until nothing is drawn for a while, and return the text of the screen. Only used to rewrite golden files."""
        while select.select([self._ours], [], [], 0.4)[0]:
            self._read(time.monotonic() + PATIENCE_S)
        return self.marked

    def wait_end(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        end = time.monotonic() + PATIENCE_S
        while self._read(end):
            pass
        return self.process.wait(PATIENCE_S)

    def modes(self) -> list[object]:
        """Return the modes of the terminal, such as echo and line mode."""
        return list(termios.tcgetattr(self._ours)[:4])

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(end - time.monotonic(), 0.0))
        assert ready, f"nothing happens any more; the screen shows:\n{self.text}"
        try:
            piece = os.read(self._ours, 65536)
        except OSError:  # the other end is closed
            return False
        self.received += piece
        self._stream.feed(piece)
        return bool(piece)


@contextmanager
def on_terminal(
    command: Sequence[str], *, columns: int = 80, lines: int = 24, environment: dict[str, str] | None = None
) -> Iterator[OnTerminal]:
    """Start a program in a terminal. If it still runs at the end of the block, it is killed."""
    ours, its_end = pty.openpty()
    try:
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        usual = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        try:
            process = subprocess.Popen(
                command,
                stdin=its_end,
                stdout=its_end,
                stderr=its_end,
                env={**usual, "TERM": "linux", **(environment or {})},
                cwd=ROOT,
                start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - Ctrl-C needs a controlling terminal
            )
        finally:
            os.close(its_end)
        try:
            yield OnTerminal(process, ours, columns, lines)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE_S)
    finally:
        os.close(ours)
