"""A histogram that is counted up: how many values fell into which bucket, and their sum."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from wharfinger.formats.exposition import histogram_lines


@dataclass(slots=True)
class Histogram:
    """``bounds`` are the upper ends of the buckets, rising; a value that equals one falls into that bucket.

    ``counts`` are of each bucket alone, the last of those above all bounds.
    """

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """One more value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """Its samples, as text."""
        return histogram_lines(name, labels, self.bounds, self.counts, self.total)


def samples_of(bounds: tuple[float, ...]) -> int:
    """Lines that a histogram takes: one for each bucket, for all, for the sum, for the count."""
    return len(bounds) + 3
