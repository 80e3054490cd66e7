"""The series of equal Events. The rules decide when the API object of a series is created or gets a higher count. Pure.

Events with the same subject, reason and text are one series. They are written as one object, as client-go's recorder does. The
first Event of a series is written as soon as the recorder can write. A repetition only raises the count, and the count is
written at most every UPDATE_S.

=========  ================================  ===========================  ==============================================
event      when                              new state                    effect
=========  ================================  ===========================  ==============================================
Observed   always                            the count grows by one       wait until UPDATE_S after the last write
Due        the count is already written      unchanged                    none
Due        the Event was never written       unchanged                    create
Due        written less than UPDATE_S ago    unchanged                    wait until UPDATE_S after the last write
Due        otherwise                         unchanged                    update
Written    the count has risen meanwhile     this count is written        wait for UPDATE_S
Written    otherwise                         this count is written        none
Lost       always                            as if observed once, and     create
                                             never written
=========  ================================  ===========================  ==============================================
"""

import math
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias, assert_never

UPDATE_S: Final = 30.0
FORGET_S: Final = 360.0
"""The time after which a series without repetitions ends; a later repetition is a new Event. client-go uses the same time."""
BURST: Final = 25.0
"""The number of different Events about one object that are accepted in quick succession."""
REFILL_S: Final = 60.0
"""The time, in seconds, after which one more Event about an object is accepted, once BURST is used up."""


@dataclass(frozen=True, slots=True)
class Series:
    """The state of one series of equal Events. ``first`` and ``last`` are the times of the first and the last occurrence."""

    first: datetime
    last: datetime
    count: int = 1
    written: int = 0
    """The count in the Event that was last written to the API server; 0 if the Event has not been created yet."""
    written_s: float = -math.inf
    seen_s: float = -math.inf


@dataclass(frozen=True, slots=True)
class Observed:
    """The Event of the series occurred again."""

    now_s: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Due:
    """The planned time of the next step of this series has come."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Written:
    """The API server has stored the count ``count``."""

    now_s: float
    count: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The API server has deleted the Event."""


SeriesEvent: TypeAlias = Observed | Due | Written | Lost


@dataclass(frozen=True, slots=True)
class Wait:
    """Make the series due after a delay."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Create:
    """The effect of creating the Event of a series in the cluster."""


@dataclass(frozen=True, slots=True)
class Update:
    """The effect of writing the new count and the time of the last occurrence to the existing Event."""


Effect: TypeAlias = Wait | Create | Update


def begun(now_s: float, at: datetime) -> Series:
    """Return the series of an Event that has occurred for the first time."""
    return Series(at, at, seen_s=now_s)


def step(series: Series, event: SeriesEvent) -> tuple[Series, Effect | None]:
    """Return the new state and the effect of an event; see the table at the top of this file."""
    match event:
        case Observed(now_s, at):
            after = replace(series, count=series.count + 1, last=max(at, series.last), seen_s=now_s)
            return after, Wait(_pause(after, now_s))
        case Due() if series.count == series.written:
            return series, None
        case Due() if series.written == 0:
            return series, Create()
        case Due(now_s) if (pause_s := _pause(series, now_s)) > 0:
            return series, Wait(pause_s)
        case Due():
            return series, Update()
        case Written(now_s, count):
            after = replace(series, written=count, written_s=now_s)
            return after, Wait(UPDATE_S) if after.count > count else None
        case Lost():
            return replace(series, first=series.last, count=1, written=0), Create()
        case _:
            assert_never(event)


def is_over(series: Series, now_s: float) -> bool:
    """Return whether the series may be forgotten: its count is written, and no repetition has occurred for FORGET_S."""
    return series.count == series.written and now_s - series.seen_s >= FORGET_S


def _pause(series: Series, now_s: float) -> float:
    """Return the seconds until the next write."""
    return max(0.0, series.written_s + UPDATE_S - now_s)


@dataclass(frozen=True, slots=True)
class Allowance:
    """The number of new Events about one object that are still accepted; it grows by one every REFILL_S seconds, up to
    BURST.
    """

    left: float = BURST
    at_s: float = -math.inf

    def use(self, now_s: float) -> "Allowance | None":
        """Return the allowance that is left if one more Event is written now; None if this allowance is used up."""
        left = self._grown(now_s)
        return Allowance(left - 1, now_s) if left >= 1 else None

    def is_full(self, now_s: float) -> bool:
        """Return whether this allowance has grown back to BURST, so that it can be forgotten."""
        return self._grown(now_s) >= BURST

    def _grown(self, now_s: float) -> float:
        return BURST if self.at_s == -math.inf else min(BURST, self.left + (now_s - self.at_s) / REFILL_S)
