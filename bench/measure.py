"""The measurement: our code and a yardstick do the same work alternately in one process. The result is the ratio of their
times.

Machines differ, and their speed varies. Only a ratio of medians from interleaved rounds can be compared between machines.
"""

import importlib
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, cast

KUBECONFIG: Final = "WHARFINGER_BENCH_KUBECONFIG"
"""The environment variable that passes ``--kubeconfig`` to the process of a part."""
PACKAGES: Final = "WHARFINGER_BENCH_PACKAGES"
"""The environment variable that passes the values of ``--packages`` to the process of a part, separated by spaces."""
ROUNDS: Final = 5
"""The number of measured rounds, after one to warm up. Rows whose rounds take seconds have fewer."""


class Unit(Enum):
    """The unit of a row, with the names of its multiples in descending order."""

    SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    BYTES = ((2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))

    def shown(self, value: float) -> str:
        """Return a value with three digits, in a suitable multiple of the unit."""
        size, name = next((one for one in self.value if value >= one[0]), self.value[-1])
        return f"{value / size:.3g} {name}"


@dataclass(frozen=True, slots=True)
class Ratio:
    """One row: the medians of the rounds of our code and of the yardstick, in ``unit``. ``budget`` is the highest allowed
    ratio.
    """

    part: str
    what: str
    yardstick: str
    ours: float
    theirs: float
    budget: float
    unit: Unit = Unit.SECONDS

    @property
    def ratio(self) -> float:
        """The quotient of ``ours`` and ``theirs``."""
        return self.ours / self.theirs

    @property
    def is_over(self) -> bool:
        """Return whether the budget is exceeded."""
        return self.ratio > self.budget

    def each_of(self, ours: int) -> "Ratio":
        """Return the row with our time divided by ``ours``, the number of repetitions of our code in a round. The yardstick did
        one repetition.
        """
        return replace(self, ours=self.ours / ours)

    def per(self, count: int) -> "Ratio":
        """Return the row with both times divided by ``count``, the number of repetitions of our code and of the yardstick in a
        round.
        """
        return replace(self, ours=self.ours / count, theirs=self.theirs / count)


Measure = Callable[[bool], Iterator[Ratio]]
"""The function ``measure`` of each benchmark module; its argument is True for the long rows."""


def in_child(part: str, long: bool) -> list[Ratio]:
    """Return the rows of a part, measured in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as child:
        return child.submit(_measured, part, long).result()


def _measured(part: str, long: bool) -> list[Ratio]:
    measure = cast("Measure", importlib.import_module(f"bench.{part}").measure)
    return list(measure(long))


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
    """Time two functions that are called alternately."""
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
    """Time two async functions that are called alternately."""
    mine, other = [], []
    for number in range(1 + rounds):
        first, second = await _timed_async(ours), await _timed_async(theirs)
        if number:
            mine.append(first)
            other.append(second)
    return Ratio(part, what, yardstick, statistics.median(mine), statistics.median(other), budget)


def repeated(times: int, function: Callable[[], object]) -> Callable[[], None]:
    """Return a function that repeats a call. A single call of a few microseconds cannot be timed well."""

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
