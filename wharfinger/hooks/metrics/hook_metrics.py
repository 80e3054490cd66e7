"""The metrics that hooks publish, and the measured cost of their runs. One `HookMetrics` object serves all hooks.

This module applies the operations that a hook writes into the file METRICS_PATH (spec hook-protocol §3.2). Each operation
belongs to a group: the group that it names, or else a group named after the hook. The operations of one run replace everything
that was published before in the groups of these operations. A run without operations changes nothing. A group belongs to a
package, and all hooks of the package share it. Every series has a label with the name of the hook and, unless the hook is a
global hook, labels with the name of the package. A hook cannot change these labels, so no hook can publish in the name of
another.

The metrics are limited by `MetricLimits`. Refused operations are reported as warnings, at most MAX_WARNINGS for each run.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from wharfinger.formats.exposition import Description, MetricKind, exposition, family_lines, plain_text
from wharfinger.hooks.metrics.operations import Expire, MetricOperation, Unknown
from wharfinger.hooks.metrics.run_metrics import RUN_METRICS, HookRunSample, RunMetrics, package_labels
from wharfinger.hooks.metrics.store import MetricLimits, MetricStatistics, MetricStore, Refused

GLOBAL: Final = "global"
"""The name that stands for a package in the metrics of global hooks, which belong to no package. The series of these metrics
have no label for the package.
"""
MAX_WARNINGS: Final = 20
"""The limit on the number of warnings about the metrics of one run of a hook."""

SERIES: Final = Description(
    "wharfinger_hook_metric_series", MetricKind.GAUGE, "Number of series that hooks publish on /metrics/hooks."
)
BYTES: Final = Description(
    "wharfinger_hook_metric_bytes",
    MetricKind.GAUGE,
    "Size of the text of all series that hooks publish, in bytes. The limits on metrics apply to this size.",
)
REFUSED: Final = Description(
    "wharfinger_hook_metric_refused_total",
    MetricKind.COUNTER,
    "Number of metric operations of hooks that were refused, for example because of an invalid name, a conflicting kind, "
    "or a limit.",
)
HOOK_METRICS: Final = (*RUN_METRICS, SERIES, BYTES, REFUSED)
"""The descriptions of all metrics in `HookMetrics.exposition`."""


class HookMetrics:
    """The current metrics of all hooks. The methods have no await, so a reader never sees only half of what a run published."""

    def __init__(self, limits: MetricLimits | None = None) -> None:
        self._store = MetricStore(limits or MetricLimits())
        self._runs = RunMetrics()

    def apply(
        self,
        package: str,
        hook: str,
        operations: Iterable[MetricOperation],
        *,
        masked: Callable[[str], str] = str,
    ) -> tuple[str, ...]:
        """Apply the operations that a run of a hook published, and return the warnings.

        ``masked`` hides secrets in label values.
        """
        shown = plain_text(hook)
        ours = _labels_of(package, shown)
        expired: set[str] = set()
        warnings: dict[str, None] = {}
        for operation in operations:
            if isinstance(operation, Unknown):
                warnings[operation.why] = None
                continue
            group = operation.group or shown
            if group not in expired or isinstance(operation, Expire):
                self._store.expire(package, group)
                expired.add(group)
            if isinstance(operation, Expire):
                continue
            own = {name: masked(value) for name, value in operation.labels.items()}
            labels = tuple(sorted({**own, **ours}.items()))
            try:
                self._store.publish(package, group, labels, operation)
            except Refused as refusal:
                warnings[str(refusal)] = None
        return _shortened(list(warnings))

    def ran(self, run: HookRunSample) -> None:
        """Count a finished run of a hook."""
        self._runs.ran(run)

    def forget(self, package: str) -> None:
        """Remove all metrics and measurements of the hooks of a removed package."""
        self._store.forget(package)
        self._runs.forget(package)

    def statistics(self) -> MetricStatistics:
        """Return the current size of the metrics that hooks publish."""
        return self._store.statistics()

    def exposition_hooks(self) -> str:
        """Return the metrics that hooks publish, in Prometheus' text format."""
        return exposition(self._store.lines())

    def exposition(self) -> str:
        """Return the measurements of hooks' runs, and the size of the metrics that hooks publish, in Prometheus' text format."""
        return exposition(self._own())

    def _own(self) -> Iterator[str]:
        yield from self._runs.lines()
        found = self._store.statistics()
        for family, number in ((SERIES, found.series), (BYTES, found.bytes), (REFUSED, found.refused)):
            yield from family_lines(family, [((), number)])


def _labels_of(package: str, hook: str) -> dict[str, str]:
    """Return the labels that every series of a hook has."""
    if package == GLOBAL:
        return {"hook": hook}
    module, namespace = package_labels(package)
    return {"hook": hook, "module": module, **({"namespace": namespace} if namespace else {})}


def _shortened(warnings: list[str]) -> tuple[str, ...]:
    if len(warnings) <= MAX_WARNINGS:
        return tuple(warnings)
    return (*warnings[: MAX_WARNINGS - 1], f"and {len(warnings) - MAX_WARNINGS + 1} more like these")
