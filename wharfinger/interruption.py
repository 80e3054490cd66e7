"""Handlers for SIGTERM and SIGHUP: they end a command in the same way as Ctrl-C, so that it removes its temporary files."""

import signal
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Final, Self

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """A context manager: in its block, SIGTERM and SIGHUP act as Ctrl-C; ``exit_code`` is the code for the received signal.

    Both signals are passed to the handler of Ctrl-C, because only trio's handler knows where it is safe to raise an exception.
    Nothing changes if Ctrl-C is ignored (as in a background job of a script). A signal that is ignored already (under nohup)
    stays ignored. A command may set handlers of its own.
    """

    def __init__(self) -> None:
        self.exit_code = 128 + signal.SIGINT
        self._caught: list[signal.Signals] = []

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            for number in ENDING:
                if signal.getsignal(number) == signal.SIG_DFL:
                    with suppress(ValueError):  # only the main thread may set handlers
                        signal.signal(number, self._end)
                        self._caught.append(number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number in self._caught:
            signal.signal(number, signal.SIG_DFL)
        # If Ctrl-C interrupts code that is compiled at run time (as for a dataclass), Python remembers this, and would end the
        # process by SIGINT, whatever its exit code is. The next `exec` makes Python forget it.
        exec("")  # noqa: S102

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.exit_code = 128 + number
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)
        elif handler == signal.SIG_DFL:
            # On Ctrl-C, the command ends immediately, without a clean-up.
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
