"""The pace of a command that repeats a question while a user watches.

A watcher must not keep a daemon with many packages busy. Therefore a pause is SHARE times as long as the last answer took, but
never shorter than PAUSE_S or longer than MOST_PAUSE_S.
"""

import time
from collections.abc import Callable
from typing import Final, TypeAlias

PAUSE_S: Final = 1.0
SHARE: Final = 10.0
"""A pause is this many times as long as the daemon took for the answer before it, so one watcher keeps the daemon busy for less
than 1/SHARE of the time. If this pause would be longer than MOST_PAUSE_S, it is shortened to MOST_PAUSE_S.
"""
MOST_PAUSE_S: Final = 60.0

GIVE_UP_S: Final = 15.0
"""The time after which a command gives up if the daemon has answered before but does not answer now; a restart takes less."""

Pause: TypeAlias = Callable[[float], None]
"""The function that waits for a number of seconds."""


def pause_after(took_s: float) -> float:
    """Return the pause in seconds after an answer that took ``took_s`` seconds."""
    return min(max(PAUSE_S, SHARE * took_s), MOST_PAUSE_S)


class Pacer:
    """The pace of one watcher. `next` waits until the daemon may be asked again."""

    def __init__(self, pause: Pause = time.sleep, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = pause
        self._clock = clock
        self._asked_s = clock()

    def asked(self) -> None:
        """Record that a question is being sent now."""
        self._asked_s = self._clock()

    def next(self, most_s: float = MOST_PAUSE_S) -> None:
        """Wait after an answer of the daemon, until the next question may be sent; at most ``most_s`` seconds."""
        self._pause(max(0.0, min(most_s, pause_after(self._clock() - self._asked_s))))
