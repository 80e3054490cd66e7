"""The cost of runs of hooks, for the daemon's own metrics. Their names and buckets are those of spec hook-protocol §5.12, with
the prefix ``wharfinger_`` for the names.

There is one *row* of counts for each combination of hook, binding and queue. The number of rows is limited, for each package
and in total. A run that would need a row beyond the limit is counted in one common row, so sums stay correct. For a failed run,
only its duration and its failure are counted, as the hook protocol requires.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from wharfinger.formats.exposition import Description, MetricKind, family_lines, header_lines, labels_text, plain_text
from wharfinger.formats.histogram import Histogram

MAX_ROWS: Final = 500
MAX_PACKAGE_ROWS: Final = 50
OTHERS: Final = "(others)"
"""The hook's name in the row that counts all runs beyond the limit on rows."""
BUCKETS: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""The upper bounds of the buckets of each histogram, in seconds."""
LABELS: Final = ("module", "namespace", "hook", "binding", "queue")


def _histogram(name: str, what: str) -> Description:
    return Description(f"wharfinger_hook_run_{name}", MetricKind.HISTOGRAM, what, LABELS, BUCKETS)


def _counter(name: str, what: str) -> Description:
    return Description(f"wharfinger_hook_run_{name}", MetricKind.COUNTER, what, LABELS)


SECONDS: Final = _histogram("seconds", "Duration of hook runs, successful or not, in seconds.")
USER: Final = _histogram("user_cpu_seconds", "Processor time that successful hook runs spent in user mode, in seconds.")
SYSTEM: Final = _histogram(
    "sys_cpu_seconds", "Processor time that successful hook runs spent in the kernel, in seconds."
)
MAX_RSS: Final = Description(
    "wharfinger_hook_run_max_rss_bytes",
    MetricKind.GAUGE,
    "Largest resident memory during the last successful run of a hook, in bytes.",
    LABELS,
)
ERRORS: Final = _counter("errors_total", "Number of failed hook runs, without those that allowFailure permits.")
ALLOWED_ERRORS: Final = _counter("allowed_errors_total", "Number of failed hook runs that allowFailure permits.")
SUCCESS: Final = _counter("success_total", "Number of successful hook runs.")
RUN_METRICS: Final = (SECONDS, USER, SYSTEM, MAX_RSS, ERRORS, ALLOWED_ERRORS, SUCCESS)


class RunOutcome(StrEnum):
    """The outcome of a run of a hook, as metrics count it."""

    SUCCESS = "success"
    ERROR = "error"
    ALLOWED_ERROR = "allowed_error"


@dataclass(frozen=True, slots=True)
class HookRunSample:
    """One run that ended: its package, hook, binding and queue, its outcome and its cost.

    ``package`` is the runtime name of the package, as in `package_labels`.
    """

    package: str
    hook: str
    binding: str
    queue: str
    outcome: RunOutcome
    wall_s: float
    user_s: float = 0.0
    system_s: float = 0.0
    max_rss_bytes: int = 0


class _Key(NamedTuple):
    package: str
    hook: str
    binding: str
    queue: str


_OTHERS: Final = _Key("", OTHERS, "", "")


def _seconds() -> Histogram:
    return Histogram(BUCKETS)


@dataclass(slots=True)
class _Row:
    wall: Histogram = field(default_factory=_seconds)
    user: Histogram = field(default_factory=_seconds)
    system: Histogram = field(default_factory=_seconds)
    max_rss: int | None = None
    outcomes: dict[RunOutcome, int] = field(default_factory=lambda: dict.fromkeys(RunOutcome, 0))


_HISTOGRAMS: Final[tuple[tuple[Description, Callable[[_Row], Histogram]], ...]] = (
    (SECONDS, lambda row: row.wall),
    (USER, lambda row: row.user),
    (SYSTEM, lambda row: row.system),
)
_OUTCOMES: Final = (
    (ERRORS, RunOutcome.ERROR),
    (ALLOWED_ERRORS, RunOutcome.ALLOWED_ERROR),
    (SUCCESS, RunOutcome.SUCCESS),
)


class RunMetrics:
    """The counts of runs of hooks. Rows of a package count since its hooks were started. When there are too many rows, further
    runs are counted in one common row, which counts since the start of the daemon.
    """

    def __init__(self) -> None:
        self._rows: dict[_Key, _Row] = {}
        self._of_package: dict[str, int] = {}

    def ran(self, run: HookRunSample) -> None:
        """Count one run of a hook."""
        row = self._row(_Key(*map(plain_text, (run.package, run.hook, run.binding, run.queue))))
        row.outcomes[run.outcome] += 1
        row.wall.observe(run.wall_s)
        if run.outcome is RunOutcome.SUCCESS:
            row.user.observe(run.user_s)
            row.system.observe(run.system_s)
            row.max_rss = run.max_rss_bytes

    def forget(self, package: str) -> None:
        """Remove the rows of a package whose hooks are stopped. Its runs in the common row stay counted."""
        if self._of_package.pop(package, 0):
            self._rows = {key: row for key, row in self._rows.items() if key.package != package}

    def lines(self) -> Iterator[str]:
        """Yield all metrics as text."""
        rows = [(_values(key), row) for key, row in self._rows.items()]
        texts = [(labels_text(zip(LABELS, values, strict=True)), row) for values, row in rows]
        for family, histogram in _HISTOGRAMS if rows else ():
            yield from header_lines(family.name, family.kind, family.help)
            for text, row in texts:
                yield from histogram(row).lines(family.name, text)
        yield from family_lines(MAX_RSS, ((values, row.max_rss) for values, row in rows if row.max_rss is not None))
        for family, outcome in _OUTCOMES:
            yield from family_lines(family, [(values, row.outcomes[outcome]) for values, row in rows])

    def _row(self, key: _Key) -> _Row:
        found = self._rows.get(key)
        if found is not None:
            return found
        mine = self._of_package.get(key.package, 0)
        if len(self._rows) >= MAX_ROWS or mine >= MAX_PACKAGE_ROWS:
            return self._rows.setdefault(_OTHERS, _Row())
        self._of_package[key.package] = mine + 1
        return self._rows.setdefault(key, _Row())


def package_labels(package: str) -> tuple[str, str]:
    """Return the labels ``module`` and ``namespace`` for the runtime name of a package.

    An Application's name is ``<namespace>.<instance>``; a Module's name has no dot.
    """
    namespace, dot, instance = package.partition(".")
    return (instance, namespace) if dot else (package, "")


def _values(key: _Key) -> tuple[str, ...]:
    return (*package_labels(key.package), key.hook, key.binding, key.queue)
