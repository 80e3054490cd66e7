"""The signs of life of watches: when the server last sent something, and how long a watch has been inactive.

Each follower of a kind (an informer, a shared stream) has a heartbeat in the :class:`Heartbeats` of its client. The
follower reports each action that it begins (a list, a watch, a pause), with the time limit of that action, and each answer or
event from the server.

A watch is *stale* if no action, answer or event has been reported for longer than the time limit of the present action plus
MARGIN_S. The client ends the requests of an action before this time, so a stale watch is a defect: its task hangs. An
unreachable API server does not make a watch stale, because the attempts of the watch fail and are repeated. The time since the
server last sent something grows nevertheless.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import trio

MARGIN_S: Final = 60.0
"""The time in seconds by which an action may exceed its own limit. After this time, its watch is reported as stale. The margin
is needed because the event loop may be busy.
"""


@dataclass(frozen=True, slots=True, order=True)
class Followed:
    """The objects that a watch follows. ``kind`` has the form ``Deployment.apps``; an empty namespace means all namespaces."""

    kind: str
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def __str__(self) -> str:
        """Return a text for messages, such as ``Pod in prod (app=x)``."""
        place = f" in {self.namespace}" if self.namespace else ""
        chosen = ", ".join(one for one in (self.label_selector, self.field_selector) if one)
        return self.kind + place + (f" ({chosen})" if chosen else "")


@dataclass(frozen=True, slots=True)
class WatchSign:
    """The state of one watch. Times are in seconds.

    ``heard_s_ago``: the time since the server last answered or sent anything; None if it never did. ``quiet_s``: the time since
    an action, an answer or an event was last reported.
    """

    followed: Followed
    action: str
    heard_s_ago: float | None
    quiet_s: float
    limit_s: float

    @property
    def is_stale(self) -> bool:
        """Return whether the watch hangs."""
        return self.quiet_s > self.limit_s

    def __str__(self) -> str:
        """Return a sentence that reports that the watch hangs. Use it only if ``is_stale`` is True."""
        return (
            f"the watch of {self.followed} hangs: no sign of life for {self.quiet_s:.0f} s while {self.action}, "
            f"the limit is {self.limit_s:.0f} s"
        )


class Heartbeat:
    """The heartbeat of one watch. Made by :meth:`Heartbeats.follow`."""

    __slots__ = ("_action", "_begun", "_clock", "_followed", "_heard", "_limit_s")

    def __init__(self, followed: Followed, clock: Callable[[], float]) -> None:
        self._followed = followed
        self._clock = clock
        self._action = "starting"
        self._limit_s = MARGIN_S
        self._begun = clock()
        self._heard: float | None = None

    def begin(self, action: str, limit_s: float) -> None:
        """Report that an action begins. It may take ``limit_s`` seconds without an answer or an event."""
        self._action, self._limit_s, self._begun = action, limit_s + MARGIN_S, self._clock()

    def received(self) -> None:
        """Report that the server has answered or sent an event."""
        self._heard = self._clock()

    def sign(self) -> WatchSign:
        """Return the present state of the watch: its action, and when the server last sent something."""
        now, heard = self._clock(), self._heard
        last = self._begun if heard is None else max(heard, self._begun)
        return WatchSign(
            self._followed, self._action, None if heard is None else now - heard, now - last, self._limit_s
        )


class Heartbeats:
    """The heartbeats of all watches of a client. ``clock`` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = trio.current_time) -> None:
        self._clock = clock
        self._beating: list[Heartbeat] = []

    @contextmanager
    def follow(self, followed: Followed) -> Iterator[Heartbeat]:
        """Yield a new heartbeat, and include it in :meth:`signs` for as long as the block runs."""
        beat = Heartbeat(followed, self._clock)
        self._beating.append(beat)
        try:
            yield beat
        finally:
            self._beating.remove(beat)

    def signs(self) -> tuple[WatchSign, ...]:
        """Return the state of each watch, sorted by the objects that it follows."""
        return tuple(sorted((beat.sign() for beat in self._beating), key=lambda sign: sign.followed))
