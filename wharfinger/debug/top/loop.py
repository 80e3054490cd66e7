"""The loop of the live view: it waits for keys, answers and signals, steps the machine, performs its effects, and draws."""

import queue
import select
import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol, assert_never

from wharfinger.debug.top.machine import step
from wharfinger.debug.top.questions import Crashed
from wharfinger.debug.top.screen import Line, render
from wharfinger.debug.top.view import (
    Answered,
    Effect,
    Event,
    Failed,
    PageAnswered,
    Pressed,
    Quit,
    Resized,
    Ticked,
    View,
    Watch,
)
from wharfinger.debug.top.wake import ENDING, WakePipe

TICK_S: Final = 1.0
"""The interval at which the ages in the live view are drawn again."""
_SIGNALLED: Final = 128
"""The exit code after a signal is this number plus the number of the signal, as in a shell."""


class Ending(NamedTuple):
    """The exit code, and the error to report after the terminal is restored ("" if there is no error)."""

    code: int
    problem: str = ""


class LoopTerminal(Protocol):
    """The methods of a terminal that the loop uses."""

    def size(self) -> tuple[int, int]:
        """Return the columns and lines that the terminal has now."""
        ...

    def keys(self) -> list[str]:
        """Return the keys that were pressed since the last call, without waiting."""
        ...

    def draw(self, lines: Sequence[Line]) -> None:
        """Show lines from the top."""
        ...

    def is_gone(self) -> bool:
        """Return whether the terminal was closed."""
        ...


class DaemonQueries(Protocol):
    """The interface through which the loop chooses which queries are sent to the daemon."""

    def watch(self, name: str) -> None:
        """From now on, ask the daemon about this package. If ``name`` is "", ask about the daemon as a whole."""
        ...


class Loop:
    """One live view; ``post`` may be called by any thread, ``run`` once."""

    def __init__(self, view: View, terminal: LoopTerminal, keyboard: int, wake: WakePipe) -> None:
        self._view = view
        self._terminal = terminal
        self._keyboard = keyboard
        self._wake = wake
        self._posted: queue.SimpleQueue[Answered | PageAnswered | Failed | Crashed] = queue.SimpleQueue()
        self._ending: Ending | None = None

    def post(self, event: Answered | PageAnswered | Failed | Crashed) -> None:
        """Hand over an answer of the daemon to the loop."""
        self._posted.put(event)
        self._wake.ring()

    def run(self, questions: DaemonQueries) -> Ending:
        """Show the view until the user leaves, a signal arrives, or the daemon has not answered for too long. Raises the error
        with which the asking thread has crashed.
        """
        while self._ending is None:
            self._terminal.draw(render(self._view, *self._terminal.size()))
            ready, _, _ = select.select([self._keyboard, self._wake.descriptor], [], [], TICK_S)
            self._turn(questions, ready)
        return self._ending

    def _turn(self, questions: DaemonQueries, ready: Sequence[int]) -> None:
        if not ready:
            self._step(questions, Ticked(datetime.now(UTC)))
        if self._wake.descriptor in ready:
            for number in self._wake.signals():
                if number in ENDING:
                    self._ending = Ending(_SIGNALLED + number)
                    return
            size = self._terminal.size()
            if size != (self._view.columns, self._view.lines):
                self._step(questions, Resized(*size))
            while not self._posted.empty():
                posted = self._posted.get()
                if isinstance(posted, Crashed):
                    raise posted.error
                self._step(questions, posted)
        if self._keyboard in ready:
            keys = self._terminal.keys()
            for key in keys:
                self._step(questions, Pressed(key))
            if not keys and self._terminal.is_gone():  # a closed terminal is always readable
                self._ending = Ending(_SIGNALLED + signal.SIGHUP)

    def _step(self, questions: DaemonQueries, event: Event) -> None:
        self._view, effects = step(self._view, event)
        for effect in effects:
            self._perform(questions, effect)

    def _perform(self, questions: DaemonQueries, effect: Effect) -> None:
        match effect:
            case Watch(name):
                questions.watch(name)
            case Quit(problem):
                self._ending = self._ending or Ending(1 if problem else 0, problem)
            case _:
                assert_never(effect)
