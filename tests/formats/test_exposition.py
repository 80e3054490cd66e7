"""Metrics as text. A scraper reads back the written numbers and labels, whatever foreign text they contain."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exposition import parse
from wharfinger.formats.exposition import (
    Description,
    MetricKind,
    exposition,
    family_lines,
    header_lines,
    histogram_lines,
    is_label_name,
    is_metric_name,
    labels_text,
    number_text,
    plain_text,
    sample_line,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["\\", '"', "\n", '\\"\n}', '",a="', "\r\0 # "]
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (33, "33"),
        (2**63, "9223372036854775808"),
        (0.5, "0.5"),
        (1.0, "1"),
        (-2.0, "-2"),
        (1e14, "100000000000000"),
        (1e300, "1e+300"),
        (5e-324, "5e-324"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_in_go(value: float, text: str) -> None:
    assert number_text(value) == text


@given(st.floats(allow_nan=False))
def test_numbers_are_written_exactly(value: float) -> None:
    assert float(number_text(value).replace("Inf", "inf")) == value


@pytest.mark.parametrize("name", ["a", "a:b", "_1", ":a", "http_requests_total"])
def test_valid_metric_names_are_accepted(name: str) -> None:
    assert is_metric_name(name)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a.b", "a b", "é", "a\n", "{a}", "\u0661"])
def test_invalid_metric_and_label_names_are_refused(name: str) -> None:
    assert not is_metric_name(name)
    assert not is_label_name(name)


def test_label_names_exclude_colons_and_double_underscores() -> None:
    assert [name for name in ("a", "_a", "a1", "__a", "a:b", "__") if is_label_name(name)] == ["a", "_a", "a1"]


def test_label_values_and_help_texts_are_escaped() -> None:
    assert labels_text([("a", 'x\\y"z\nw'), ("b", "ü✓")]) == 'a="x\\\\y\\"z\\nw",b="ü✓"'
    assert labels_text([("a", "\ud800")]) == 'a="?"'
    assert [plain_text(text) for text in ("ü", "a\udcff", "")] == ["ü", "a\\udcff", ""]
    assert list(header_lines("a", MetricKind.GAUGE, 'x\\y"z\nw')) == ['# HELP a x\\\\y"z\\nw', "# TYPE a gauge"]
    assert list(header_lines("a", MetricKind.COUNTER)) == ["# TYPE a counter"]


def test_histogram_buckets_are_cumulative() -> None:
    assert list(histogram_lines("d", 'a="b"', (0.1, 1.0), [1, 2, 3], 7.5)) == [
        'd_bucket{a="b",le="0.1"} 1',
        'd_bucket{a="b",le="1"} 3',
        'd_bucket{a="b",le="+Inf"} 6',
        'd_sum{a="b"} 7.5',
        'd_count{a="b"} 6',
    ]
    assert list(histogram_lines("d", "", (), [4], 1))[:2] == ['d_bucket{le="+Inf"} 4', "d_sum 1"]


def test_a_family_has_a_line_for_each_series() -> None:
    family = Description("a_total", MetricKind.COUNTER, "What.", ("x", "y"))
    text = exposition(family_lines(family, [(("1", '"'), 2), (("2", ""), 0.5)]))
    assert text == '# HELP a_total What.\n# TYPE a_total counter\na_total{x="1",y="\\""} 2\na_total{x="2",y=""} 0.5\n'
    assert parse(text)["a_total"].value(x="1", y='"') == 2
    with pytest.raises(ValueError, match="shorter"):
        list(family_lines(family, [(("1",), 2)]))


def test_an_exposition_without_lines_is_empty() -> None:
    assert exposition(family_lines(Description("a", MetricKind.GAUGE, "What."), [])) == ""
    assert sample_line("a", "", 1.0) == "a 1"


@given(st.dictionaries(st.sampled_from("abcdef"), TEXTS), TEXTS, st.floats(allow_nan=False))
def test_a_scraper_reads_the_written_metrics(labels: dict[str, str], said: str, value: float) -> None:
    lines = [*header_lines("m", MetricKind.GAUGE, said), sample_line("m", labels_text(labels.items()), value)]
    found = parse(exposition(lines))["m"]
    assert found.samples == {("m", tuple(sorted(labels.items()))): value}
    assert found.help == said


@given(
    st.dictionaries(st.sampled_from("abc"), TEXTS),
    st.sets(st.floats(-1e6, 1e6).map(lambda bound: bound + 0.0), max_size=5).map(sorted),
    st.data(),
)
def test_a_scraper_reads_histograms(labels: dict[str, str], bounds: list[float], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 9), min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    written = labels_text(labels.items())
    lines = [*header_lines("m", MetricKind.HISTOGRAM), *histogram_lines("m", written, bounds, counts, 0.25)]
    found = parse(exposition(lines))["m"]
    assert found.samples["m_count", tuple(sorted(labels.items()))] == sum(counts)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a 1", "does not end"),
        ("a 1\n", "a below"),
        ("# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na 2\n", "a begins twice"),
        ("# TYPE a gauge\na 1\na 1\n", "twice"),
        ('# TYPE a gauge\na{b="c} 1\n', "no label"),
        ('# TYPE a gauge\na{b="c",} 1\n', "a comma too many"),
        ('# TYPE a gauge\na{b="1",b="2"} 1\n', "label b twice"),
        ("# TYPE a gauge\n", "no samples"),
        ("# HELP a x\na 1\n", "no type"),
        ("# TYPE a gauge\na  1\n", "no sample"),
        ('# TYPE a histogram\na_bucket{le="1"} 1\na_bucket{le="+Inf"} 2\na_sum 1\na_count 3\n', "not counted"),
        ('# TYPE a histogram\na_bucket{le="1.0"} 1\n', "Go"),
    ],
)
def test_the_scraper_used_here_detects_errors(text: str, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        parse(text)
