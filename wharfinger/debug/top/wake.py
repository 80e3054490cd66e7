"""A pipe that wakes the live view when an answer of the daemon or a signal arrives.

While it is open, a signal of SIGNALS does nothing but write its number into the pipe, so none of them interrupts a picture that
is being drawn, and the terminal is always restored.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

SIGNALS: Final = (signal.SIGWINCH, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NEWS: Final = b"\0"


class WakePipe:
    """An opened pipe; ``descriptor`` is readable as soon as there is something to do."""

    def __init__(self, descriptor: int, writer: int) -> None:
        self.descriptor = descriptor
        self._writer = writer

    def ring(self) -> None:
        """Wake the view. Any thread may call it."""
        with suppress(BlockingIOError, OSError):  # the pipe is full, or the view has ended
            os.write(self._writer, _NEWS)

    def signals(self) -> list[int]:
        """Return the numbers of the signals since the last call; it does not wait."""
        try:
            return [number for number in os.read(self.descriptor, 4096) if number]
        except BlockingIOError:
            return []


@contextmanager
def open_wake() -> Iterator[WakePipe]:
    """Open the pipe, and receive signals through it. Only the main thread may call it."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        before = {number: signal.signal(number, lambda _number, _frame: None) for number in SIGNALS}
        earlier = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            yield WakePipe(reader, writer)
        finally:
            signal.set_wakeup_fd(earlier)
            for number, handler in before.items():
                signal.signal(number, handler)
    finally:
        os.close(reader)
        os.close(writer)
