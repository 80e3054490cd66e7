"""Prometheus' text exposition format, version 0.0.4: what a scraper of metrics reads. Pure: numbers in, text out.

A family is a name with a kind, and lines of samples below its header; all lines of one family stand together, and no sample
has its name and labels twice. Whoever writes one keeps that; here each piece is made so that nothing a stranger put into a name
or a label can end a line or a quotation: names are checked by :func:`is_metric_name` and :func:`is_label_name`, label values
and help texts are escaped as the format says (backslash, line feed, and in labels the quote).

Numbers are written as Go writes them where readers compare texts: the bound of a bucket is ``le="1"``, never ``le="1.0"``.
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
"""The samples of a histogram are named with these; no other family may be called so."""

_METRIC_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_LABEL_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
_HELP_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n"})
_EXACT: Final = 1e15
"""Whole floats below this are written without a point."""


class MetricKind(StrEnum):
    """What kind of metric a family is, as its header says."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Description:
    """A family that is known beforehand. ``labels`` are the names of all its labels, ``buckets`` the bounds of a histogram."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def is_metric_name(name: str) -> bool:
    """Whether a metric may be called so."""
    return _METRIC_NAME.fullmatch(name) is not None


def is_label_name(name: str) -> bool:
    """Whether a label may be called so; two leading underscores are Prometheus' own."""
    return _LABEL_NAME.fullmatch(name) is not None and not name.startswith("__")


def number_text(value: float) -> str:
    """A number as the format has it."""
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def plain_text(text: str) -> str:
    """A text that can be written: what is no character (half a surrogate pair, a byte of a file's name) is spelt out.

    For the values of labels before they are compared: two that differ must not be written alike.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def labels_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Labels as they stand between the braces. Values that are not as :func:`plain_text` has them lose what is no character."""
    text = ",".join(f'{name}="{value.translate(_LABEL_ESCAPES)}"' for name, value in pairs)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def header_lines(name: str, kind: MetricKind, help_text: str = "") -> Iterator[str]:
    """The lines that begin a family; nothing is said of what has no help."""
    if help_text:
        yield f"# HELP {name} {help_text.translate(_HELP_ESCAPES)}"
    yield f"# TYPE {name} {kind}"


def sample_line(name: str, labels: str, value: float) -> str:
    """One sample; ``labels`` as :func:`labels_text` makes them."""
    return f"{name}{{{labels}}} {number_text(value)}" if labels else f"{name} {number_text(value)}"


def histogram_lines(
    name: str, labels: str, bounds: Sequence[float], counts: Sequence[int], total: float
) -> Iterator[str]:
    """The samples of one histogram. ``counts`` has how many fell into each bucket alone, and last those above all bounds."""
    before = f"{labels}," if labels else ""
    reached = list(accumulate(counts))
    for bound, count in zip((*bounds, math.inf), reached, strict=True):
        yield f'{name}_bucket{{{before}le="{number_text(bound)}"}} {count}'
    yield sample_line(f"{name}_sum", labels, total)
    yield sample_line(f"{name}_count", labels, reached[-1])


def family_lines(family: Description, rows: Iterable[tuple[Sequence[str], float]]) -> Iterator[str]:
    """A whole family of counters or gauges; a row has the values of its labels, in order, and the number. No rows: nothing."""
    begun = False
    for values, number in rows:
        if not begun:
            yield from header_lines(family.name, family.kind, family.help)
            begun = True
        yield sample_line(family.name, labels_text(zip(family.labels, values, strict=True)), number)


def exposition(lines: Iterable[str]) -> str:
    """The text of all lines, the last one ended as well; nothing where there is none."""
    text = "\n".join(lines)
    return f"{text}\n" if text else ""
