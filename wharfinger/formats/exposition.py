"""Prometheus' text exposition format, version 0.0.4, which scrapers of metrics read. Pure: numbers in, text out.

A family is all samples of one metric: a header with the name and the kind, and below it the lines of the samples. All lines of
one family must be together, and no two samples may have the same name and labels. The caller must ensure both. Foreign text must
not end a line or a quotation. Therefore callers check foreign names with :func:`is_metric_name` and :func:`is_label_name`, and
this module escapes label values and help texts as the format requires (backslash, line feed, and in labels the quote).

Numbers that readers compare as text are written in Go's format: the bound of a bucket is ``le="1"``, never ``le="1.0"``.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
HISTOGRAM_SUFFIXES: Final = ("_bucket", "_sum", "_count")
"""The suffixes of a histogram's samples. The name of a histogram with such a suffix must not be the name of another family."""

_METRIC_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_LABEL_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
_HELP_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})
_EXACT: Final = 1e15
"""Whole floats are written without a decimal point if their magnitude is below this number."""


class MetricKind(StrEnum):
    """The kind of a metric family in its header."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Description:
    """The definition of a metric family, without its samples.

    ``labels`` are the names of all its labels. ``buckets`` are the upper bounds of the buckets of a histogram.
    """

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def is_metric_name(name: str) -> bool:
    """Return whether this is a valid name of a metric."""
    return _METRIC_NAME.fullmatch(name) is not None


def is_label_name(name: str) -> bool:
    """Return whether this is a valid name of a label. Names that begin with two underscores are reserved for Prometheus."""
    return _LABEL_NAME.fullmatch(name) is not None and not name.startswith("__")


def number_text(value: float) -> str:
    """Return a number in the notation of the exposition format."""
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def plain_text(text: str) -> str:
    """Return a text that can be written: characters that UTF-8 does not allow (lone surrogates) are escaped.

    Escape label values with this function before you compare them. Otherwise :func:`labels_text` may write two different values
    as the same text.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def labels_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Return labels as they are written between the braces of a sample: ``a="1",b="2"``.

    In values that :func:`plain_text` has not escaped, invalid characters become ``?``.
    """
    text = ",".join(f'{name}="{value.translate(_LABEL_ESCAPES)}"' for name, value in pairs)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def header_lines(name: str, kind: MetricKind, help_text: str = "") -> Iterator[str]:
    """Yield the lines that begin a family; the help line is left out if there is no help text."""
    if help_text:
        yield f"# HELP {name} {help_text.translate(_HELP_ESCAPES)}"
    yield f"# TYPE {name} {kind}"


def sample_line(name: str, labels: str, value: float) -> str:
    """Return one sample; ``labels`` come from :func:`labels_text`."""
    return f"{name}{{{labels}}} {number_text(value)}" if labels else f"{name} {number_text(value)}"


def histogram_lines(
    name: str, labels: str, bounds: Sequence[float], counts: Sequence[int], total: float
) -> Iterator[str]:
    """Yield the samples of one histogram.

    ``counts`` are the numbers of values in each bucket (not cumulative); the last one counts the values above all bounds.
    ``total`` is the sum of all values.
    """
    before = f"{labels}," if labels else ""
    reached = list(accumulate(counts))
    for bound, count in zip((*bounds, math.inf), reached, strict=True):
        yield f'{name}_bucket{{{before}le="{number_text(bound)}"}} {count}'
    yield sample_line(f"{name}_sum", labels, total)
    yield sample_line(f"{name}_count", labels, reached[-1])


def family_lines(family: Description, rows: Iterable[tuple[Sequence[str], float]]) -> Iterator[str]:
    """Yield the lines of a family of counters or gauges, or nothing if there are no rows.

    A row consists of the label values, in the order of ``family.labels``, and the number.
    """
    begun = False
    for values, number in rows:
        if not begun:
            yield from header_lines(family.name, family.kind, family.help)
            begun = True
        yield sample_line(family.name, labels_text(zip(family.labels, values, strict=True)), number)


def exposition(lines: Iterable[str]) -> str:
    """Return the text of all lines, each with a line end; empty if there are no lines."""
    text = "\n".join(lines)
    return f"{text}\n" if text else ""
