"""A histogram of values: the number of values in each bucket, and the sum of all values."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from wharfinger.formats.exposition import histogram_lines


@dataclass(slots=True)
class Histogram:
    """A histogram. ``bounds`` are the rising upper bounds of the buckets. A value equal to a bound is in this bound's bucket.

    ``counts`` are the numbers of values in each bucket (not cumulative); the last one counts the values above all bounds.
    """

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Add one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """Return the lines of the histogram's samples."""
        return histogram_lines(name, labels, self.bounds, self.counts, self.total)


def sample_count(bounds: tuple[float, ...]) -> int:
    """Return the number of lines of a histogram: one for each bound, and three for the ``+Inf`` bucket, the sum and the count."""
    return len(bounds) + 3
