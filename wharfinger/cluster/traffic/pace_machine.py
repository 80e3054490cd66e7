"""The machine that decides how many requests may be under way at the same time: it adapts this number to the server's load.

Pure. The limit begins at its ceiling, so requests are not slowed down before the server is overloaded. The limit falls if the
server asks for fewer requests or answers slowly, and rises again while the server answers normally::

    answered 429, or 503 with a Retry-After      limit x BACKED_OFF, at most once in CALM_S
    the average time of an answer is more than   limit x SLOWED, at most once in CALM_S
      SLOW times the usual time, and than SLOW_S
    ``limit`` requests are answered while        limit + 1, up to the ceiling
      the limit is used up

The limit never falls below its floor. A request that was refused keeps its turn while it waits for its next attempt
(:mod:`~wharfinger.cluster.traffic.pacer`), so a server that refuses everything gets at most ``limit`` requests within one
Retry-After, however many tasks want to send one.

Only answers to requests about single objects are timed, because the time of a list depends on its length. The usual time is the
lowest moving average of these times so far; it grows slowly, so that a server that became slower permanently is not throttled
forever.
"""

from dataclasses import dataclass, replace
from typing import Final, TypeAlias, assert_never

BACKED_OFF: Final = 0.7
SLOWED: Final = 0.9
CALM_S: Final = 1.0
"""The shortest time in seconds between two decreases of the limit. Refusals that arrive soon after a decrease are answers to
requests that were sent before it.
"""
SLOW: Final = 4.0
SLOW_S: Final = 1.0
"""The average time in seconds below which answers never count as slow."""
_WEIGHT: Final = 0.1
_FORGETTING: Final = 0.001


@dataclass(frozen=True, slots=True)
class Pace:
    """The state of the limit on concurrent requests. ``limit`` is rounded down when it is used; ``average_s`` and ``usual_s``
    are 0 before the first answer.
    """

    ceiling: int
    floor: int
    limit: float
    calm_until: float = 0.0
    average_s: float = 0.0
    usual_s: float = 0.0

    @property
    def at_once(self) -> int:
        """Return the number of requests that may be under way at the same time."""
        return int(self.limit)


@dataclass(frozen=True, slots=True)
class Refused:
    """The server asked for fewer requests."""

    now: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The server answered after ``took_s`` seconds (None: not timed). ``busy`` is True if as many requests as the limit allows
    were under way.
    """

    now: float
    took_s: float | None
    busy: bool


Event: TypeAlias = Refused | Answered


def start(ceiling: int, floor: int) -> Pace:
    """Return the state of the limit before the first request. Raises ValueError unless 1 <= floor <= ceiling."""
    if not 1 <= floor <= ceiling:
        raise ValueError(f"floor {floor} and ceiling {ceiling}: expected 1 <= floor <= ceiling")
    return Pace(ceiling, floor, float(ceiling))


def step(pace: Pace, event: Event) -> Pace:
    """Return the state of the machine after an event."""
    match event:
        case Refused(now):
            return _lowered(pace, now, BACKED_OFF)
        case Answered(now, took_s, busy):
            timed = pace if took_s is None else _timed(pace, took_s)
            if timed.average_s > max(SLOW_S, SLOW * timed.usual_s):
                return _lowered(timed, now, SLOWED)
            return replace(timed, limit=min(timed.ceiling, timed.limit + 1 / timed.limit)) if busy else timed
        case _:
            assert_never(event)


def _lowered(pace: Pace, now: float, share: float) -> Pace:
    if now < pace.calm_until:
        return pace
    return replace(pace, limit=max(pace.floor, pace.limit * share), calm_until=now + CALM_S)


def _timed(pace: Pace, took_s: float) -> Pace:
    average = took_s if pace.average_s == 0 else pace.average_s + _WEIGHT * (took_s - pace.average_s)
    usual = average if pace.usual_s == 0 else min(average, pace.usual_s + _FORGETTING * (average - pace.usual_s))
    return replace(pace, average_s=average, usual_s=usual)
