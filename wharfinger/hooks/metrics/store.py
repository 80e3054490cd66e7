"""The metrics that hooks published, limited in size, and their text for scrapers (spec hook-protocol §3.2). Pure. A *series* is
a name with labels. A series belongs to the *group* that last published its value, and is removed when that group expires.
Groups belong to a package: groups of the same name in different packages are different groups. While any package has a series of
a name, the name has one kind for all packages, because Prometheus' text format requires it; an operation of another kind is
refused. All series that a package publishes under one name are printed with the same set of labels. A series that lacks one of
these labels gets it with the value ``""``, because an empty label equals a missing one, both for Prometheus and for the store.
A series of a histogram keeps the buckets with which it was created.

Invariants:

* A *family* is all series of one name. No two families share the name of a sample. A histogram reserves several names of
  samples: its own name, and its own name with ``_bucket``, ``_sum`` and ``_count``.
* No two packages have the same series. The package that publishes a series first keeps it, and operations of other packages on
  this series are refused.
* Every series is in exactly one group; empty groups, families and packages are not kept.
* The size of the text is counted exactly or too high, never too low. `MetricLimits` limits it, for each package and in total,
  so no hook can make the daemon use much memory or answer slowly. An operation that does not fit is refused; all other
  operations are applied.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

from wharfinger.formats.exposition import (
    HISTOGRAM_SUFFIXES,
    MetricKind,
    header_lines,
    is_label_name,
    is_metric_name,
    labels_text,
    sample_line,
)
from wharfinger.formats.histogram import Histogram, sample_count
from wharfinger.hooks.metrics.operations import MAX_SHOWN, Add, Observe, Publication, Set

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""The names of labels with their values, sorted by name."""

RESERVED_PREFIX: Final = "wharfinger_"
"""The prefix of the daemon's own metrics."""
MAX_COUNTER: Final = 2**63
_LINE: Final = 64
"""The largest number of bytes that a line has in addition to its name and labels: the braces, the value, and the bound of a
bucket. The header line of a family, too, has at most this many bytes in addition to its name.
"""
_LABEL: Final = 4
"""The number of bytes that a label takes besides its name and its value."""


@dataclass(frozen=True, slots=True)
class MetricLimits:
    """The limits on published metrics: on the size of their text, for one package and for all packages together; on the number
    of labels that one package uses under one metric name; and on the lengths of names and label values.

    A sample is one line of the text. A histogram has one sample for each bucket, and three more.
    """

    package_samples: int = 5_000
    package_bytes: int = 1024 * 1024
    samples: int = 50_000
    bytes: int = 16 * 1024 * 1024
    labels: int = 32
    name: int = 200
    """The maximum number of characters in the name of a metric, label or group."""
    value: int = 1_000
    """The maximum number of characters in the value of a label."""


@dataclass(frozen=True, slots=True)
class MetricStatistics:
    """The current size of the store, and the number of operations refused since the start."""

    packages: int
    series: int
    bytes: int
    refused: int


class Refused(Exception):  # noqa: N818 - not an error: the caller reports it as a warning
    """The store refuses an operation. The message says why, and contains no label value."""


@dataclass(slots=True)
class _Series:
    group: str
    value: float | Histogram
    text: str
    """The series' own labels as text."""
    samples: int
    """The number of lines that the series has in the output. A histogram has several lines."""
    width: int
    """The number of bytes of the label values, in all lines of the series."""


@dataclass(slots=True)
class _Family:
    """The series of one metric name that one package publishes."""

    name: str
    series: dict[Labels, _Series] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    """The names of labels, each with the number of series that have it."""
    samples: int = 0
    widths: int = 0

    def bytes(self, *, samples: int = 0, width: int = 0, labels: int = 0) -> int:
        """Return the size of the family's text in bytes. It includes additions that are not made yet: ``samples`` lines,
        ``width`` bytes of label values in all lines, and ``labels`` bytes of label names in each line.
        """
        line = len(self.name) + _LINE + sum(len(label) + _LABEL for label in self.labels) + labels
        lines = self.samples + samples
        return (lines + 1) * line + self.widths + width if lines else 0

    def lines(self) -> Iterator[str]:
        """Yield the samples as lines of text."""
        for labels, series in self.series.items():
            text = series.text
            if len(labels) < len(self.labels):
                own = dict(labels)
                missing = labels_text((name, "") for name in self.labels if name not in own)
                text = f"{text},{missing}" if text else missing
            if isinstance(series.value, Histogram):
                yield from series.value.lines(self.name, text)
            else:
                yield sample_line(self.name, text, series.value)


@dataclass(slots=True)
class _Package:
    groups: dict[str, dict[tuple[str, Labels], None]] = field(default_factory=dict)
    samples: int = 0
    bytes: int = 0


class MetricStore:
    """The current metrics of all packages."""

    def __init__(self, limits: MetricLimits) -> None:
        self._limits = limits
        self._packages: dict[str, _Package] = {}
        self._families: dict[str, dict[str, _Family]] = {}
        """The metric families: for each name of a family, one family for each package that publishes it."""
        self._kinds: dict[str, MetricKind] = {}
        self._owners: dict[str, str] = {}
        """For each name that the samples of a published family may have: the name of this family."""
        self._series = self._samples = self._bytes = self._refused = 0

    def publish(self, package: str, group: str, labels: Labels, operation: Publication) -> None:
        """Apply one operation to a group of a package; ``labels`` are all labels of the series. Raises Refused."""
        try:
            self._check_texts(group, labels, operation.name)
            self._publish(package, group, tuple(label for label in labels if label[1]), operation)
        except Refused:
            self._refused += 1
            raise

    def expire(self, package: str, group: str) -> None:
        """Remove everything that this group published."""
        kept = self._packages.get(package)
        if kept is None:
            return
        for name, labels in kept.groups.pop(group, ()):
            self._remove(package, kept, name, labels)
        if not kept.groups:
            del self._packages[package]

    def forget(self, package: str) -> None:
        """Remove everything that this package published."""
        for group in tuple(self._packages[package].groups) if package in self._packages else ():
            self.expire(package, group)

    def statistics(self) -> MetricStatistics:
        """Return the number of packages with metrics, the number and the size of their series, and the number of refusals."""
        return MetricStatistics(len(self._packages), self._series, self._bytes, self._refused)

    def lines(self) -> Iterator[str]:
        """Yield all metrics as text, sorted by name. The series of one name and package are in the order of their creation."""
        for name in sorted(self._families):
            yield from header_lines(name, self._kinds[name])
            for family in self._families[name].values():
                yield from family.lines()

    # -- one operation

    def _check_texts(self, group: str, labels: Labels, name: str) -> None:
        """Check the name, the group and the labels. Raises Refused."""
        shown = name[:MAX_SHOWN]
        longest = max(map(len, (name, group, *(label for label, _ in labels))))
        if not is_metric_name(name):
            raise Refused(
                f"{shown!r} is not a name of a metric; use letters, digits, _ and :, and no digit at the beginning"
            )
        if longest > self._limits.name:
            raise Refused(f"{shown}: a name of {longest} characters; the limit is {self._limits.name}")
        if name.startswith(RESERVED_PREFIX):
            raise Refused(f"{shown}: names that begin with {RESERVED_PREFIX} are the daemon's own")
        for label, value in labels:
            if not is_label_name(label) or label == "le":
                raise Refused(
                    f"{shown}: {label[:MAX_SHOWN]!r} is not a name of a label, or is reserved by Prometheus; "
                    "use letters, digits and _"
                )
            if len(value) > self._limits.value:
                raise Refused(f"{shown}: label {label} has {len(value)} characters; the limit is {self._limits.value}")

    def _publish(self, package: str, group: str, labels: Labels, operation: Publication) -> None:
        name, kind = operation.name, _kind(operation)
        self._check_kind(name, kind)
        family = self._families.get(name, {}).get(package) or _Family(name)
        series = family.series.get(labels)
        value = _published(operation, series.value if series is not None else None)
        if series is None:
            self._add(package, family, kind, labels, group, value)
        else:
            series.value = value
            if series.group != group:
                self._move(self._packages[package], series, group, (name, labels))

    def _check_kind(self, name: str, kind: MetricKind) -> None:
        """Check that the name can have this kind beside the existing families. Raises Refused."""
        for each in _names(name, kind):
            owner = self._owners.get(each, name)
            if owner != name:
                raise Refused(
                    f"{name}: samples of a {kind} with this name would have the same names as samples of {owner}, a "
                    f"{self._kinds[owner]}; choose another name"
                )
        if (known := self._kinds.get(name, kind)) is not kind:
            raise Refused(f"{name}: it is a {known} and cannot become a {kind} while it is published")

    def _add(
        self, package: str, family: _Family, kind: MetricKind, labels: Labels, group: str, value: float | Histogram
    ) -> None:
        """Add a new series. Raises Refused if a limit is reached."""
        if any(labels in other.series for other in self._families.get(family.name, {}).values()):
            raise Refused(f"{family.name}: another package publishes it with the same labels")
        text = labels_text(labels)
        samples = sample_count(value.bounds) if isinstance(value, Histogram) else 1
        width = samples * (len(text.encode()) - sum(len(label) + _LABEL for label, _ in labels) + 1)
        new = [label for label, _ in labels if label not in family.labels]
        widened = sum(len(label) + _LABEL for label in new)
        more = family.bytes(samples=samples, width=width, labels=widened) - family.bytes()
        self._check_room(package, family, len(family.labels) + len(new), samples, more)
        # From here on nothing is refused.
        kept = self._packages.setdefault(package, _Package())
        if not family.series:
            self._families.setdefault(family.name, {})[package] = family
            self._kinds[family.name] = kind
            self._owners.update(dict.fromkeys(_names(family.name, kind), family.name))
        family.series[labels] = _Series(group, value, text, samples, width)
        family.samples += samples
        family.widths += width
        for label, _ in labels:
            family.labels[label] = family.labels.get(label, 0) + 1
        kept.groups.setdefault(group, {})[family.name, labels] = None
        self._count(kept, 1, samples, more)

    def _check_room(self, package: str, family: _Family, labels: int, samples: int, more: int) -> None:
        """Check the limits for additional labels, samples and bytes. Raises Refused."""
        kept, limits = self._packages.get(package) or _Package(), self._limits
        for what, count, limit in (
            ("labels of one metric name", labels, limits.labels),
            ("samples of one package", kept.samples + samples, limits.package_samples),
            ("bytes of one package", kept.bytes + more, limits.package_bytes),
            ("samples of all packages", self._samples + samples, limits.samples),
            ("bytes of all packages", self._bytes + more, limits.bytes),
        ):
            if count > limit:
                raise Refused(f"{family.name}: more than {limit} {what}")

    def _move(self, kept: _Package, series: _Series, group: str, key: tuple[str, Labels]) -> None:
        """Move a series to another group."""
        del kept.groups[series.group][key]
        if not kept.groups[series.group]:
            del kept.groups[series.group]
        kept.groups.setdefault(group, {})[key] = None
        series.group = group

    def _remove(self, package: str, kept: _Package, name: str, labels: Labels) -> None:
        """Remove a series from its family; the caller removes it from its group."""
        family = self._families[name][package]
        before = family.bytes()
        gone = family.series.pop(labels)
        family.samples -= gone.samples
        family.widths -= gone.width
        for label, _ in labels:
            family.labels[label] -= 1
            if not family.labels[label]:
                del family.labels[label]
        self._count(kept, -1, -gone.samples, family.bytes() - before)
        if family.series:
            return
        del self._families[name][package]
        if not self._families[name]:
            del self._families[name]
            for each in _names(name, self._kinds.pop(name)):
                del self._owners[each]

    def _count(self, kept: _Package, series: int, samples: int, more: int) -> None:
        kept.samples += samples
        kept.bytes += more
        self._series += series
        self._samples += samples
        self._bytes += more


def _kind(operation: Publication) -> MetricKind:
    match operation:
        case Add():
            return MetricKind.COUNTER
        case Set():
            return MetricKind.GAUGE
        case Observe():
            return MetricKind.HISTOGRAM
        case _:
            assert_never(operation)


def _names(name: str, kind: MetricKind) -> tuple[str, ...]:
    """Return the name of a family and, for a histogram, the names of its samples."""
    return (name, *(name + suffix for suffix in HISTOGRAM_SUFFIXES)) if kind is MetricKind.HISTOGRAM else (name,)


def _published(operation: Publication, before: float | Histogram | None) -> float | Histogram:
    """Return the new value of a series after an operation; ``before`` is its previous value. Raises Refused."""
    match operation:
        case Set():
            return operation.value
        case Observe():
            histogram = before if isinstance(before, Histogram) else Histogram(operation.buckets)
            if histogram.bounds != operation.buckets:
                raise Refused(
                    f"{operation.name}: its buckets differ from those that are published, and cannot change now"
                )
            histogram.observe(operation.value)
            return histogram
        case Add():
            if operation.value < 0:
                raise Refused(f"{operation.name}: a counter cannot decrease")
            counted = int(operation.value) + (0 if before is None or isinstance(before, Histogram) else int(before))
            if counted > MAX_COUNTER:
                raise Refused(f"{operation.name}: the counter would exceed {MAX_COUNTER}")
            return counted
        case _:
            assert_never(operation)
