"""Histograms with cumulative buckets as in Prometheus."""

import pytest

from wharfinger.formats.histogram import Histogram, sample_count


@pytest.mark.parametrize(
    ("value", "counts"),
    [(-1, [1, 0, 0]), (0.1, [1, 0, 0]), (0.11, [0, 1, 0]), (1, [0, 1, 0]), (1.01, [0, 0, 1]), (1e300, [0, 0, 1])],
)
def test_bucket_bounds_are_inclusive(value: float, counts: list[int]) -> None:
    histogram = Histogram((0.1, 1.0))
    histogram.observe(value)
    assert (histogram.counts, histogram.total) == (counts, value)


def test_a_histogram_counts_and_sums_values() -> None:
    histogram = Histogram((1.0,))
    for value in (0.5, 1.0, 3.0):
        histogram.observe(value)
    lines = list(histogram.lines("d", 'a="b"'))
    assert lines == ['d_bucket{a="b",le="1"} 2', 'd_bucket{a="b",le="+Inf"} 3', 'd_sum{a="b"} 4.5', 'd_count{a="b"} 3']
    assert sample_count(histogram.bounds) == len(lines)
