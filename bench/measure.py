"""Measuring: the same work done by us and by a yardstick, in turns, in one process; what counts is the ratio.

Machines differ and are noisy; a ratio of medians from interleaved rounds is what can be compared between them.
"""

import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

ROUNDS: Final = 9
"""After one to warm up. Fewer where a round takes seconds."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Median seconds of one round of ours and of the yardstick; ``budget`` is the highest ratio we allow ourselves."""

    part: str
    what: str
    yardstick: str
    ours_s: float
    theirs_s: float
    budget: float

    @property
    def ratio(self) -> float:
        """How many times longer ours takes."""
        return self.ours_s / self.theirs_s

    def each_of(self, ours: int) -> "Ratio":
        """Where a round of ours does so many of what the yardstick does once: the time of one."""
        return replace(self, ours_s=self.ours_s / ours)

    def per(self, count: int) -> "Ratio":
        """Where a round of either does the same thing so many times: the time of one."""
        return replace(self, ours_s=self.ours_s / count, theirs_s=self.theirs_s / count)


Measure = Callable[[], Iterator[Ratio]]
"""What each benchmark module offers as ``measure``."""


def compare(
    part: str,
    what: str,
    yardstick: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    budget: float,
    rounds: int = ROUNDS,
) -> Ratio:
    """Time two functions in turns."""
    mine, other = [], []
    for number in range(1 + rounds):
        first, second = _timed(ours), _timed(theirs)
        if number:
            mine.append(first)
            other.append(second)
    return Ratio(part, what, yardstick, statistics.median(mine), statistics.median(other), budget)


async def compare_async(
    part: str,
    what: str,
    yardstick: str,
    ours: Callable[[], Awaitable[object]],
    theirs: Callable[[], Awaitable[object]],
    *,
    budget: float,
    rounds: int = ROUNDS,
) -> Ratio:
    """`compare` for async functions."""
    mine, other = [], []
    for number in range(1 + rounds):
        first, second = await _timed_async(ours), await _timed_async(theirs)
        if number:
            mine.append(first)
            other.append(second)
    return Ratio(part, what, yardstick, statistics.median(mine), statistics.median(other), budget)


def repeated(times: int, function: Callable[[], object]) -> Callable[[], None]:
    """A function that calls another so often: what takes microseconds is not timed one by one."""

    def run() -> None:
        for _ in range(times):
            function()

    return run


def _timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


async def _timed_async(function: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await function()
    return time.perf_counter() - start
