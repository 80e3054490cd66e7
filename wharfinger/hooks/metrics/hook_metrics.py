"""Everything measured about hooks: what they publish themselves, and what their runs cost. One for the daemon.

The rules of METRICS_PATH (spec hook-protocol §3.2) are here: a run's operations that name a group take the place of all that this
group published before, and those that name none are of a group called as the hook is; a run that publishes nothing leaves
everything as it was. Groups are a package's: its hooks share them. Every series is labelled with the hook and with its package,
whatever the hook says itself: nobody can speak in the name of another.

Bounded by `MetricLimits`; what is refused is told as warnings, of which there are at most MAX_WARNINGS.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from wharfinger.formats.exposition import Description, MetricKind, exposition, family_lines, plain_text
from wharfinger.hooks.metrics.operations import Expire, MetricOperation, Unknown
from wharfinger.hooks.metrics.run_metrics import RUN_METRICS, HookRunSample, RunMetrics, package_labels
from wharfinger.hooks.metrics.store import MetricLimits, MetricStore, Refused

GLOBAL: Final = "global"
"""The package whose hooks are those of all: it is not named in labels."""
MAX_WARNINGS: Final = 20
"""Of one run."""

SERIES: Final = Description(
    "wharfinger_hook_metric_series", MetricKind.GAUGE, "Series that hooks publish on /metrics/hooks."
)
BYTES: Final = Description(
    "wharfinger_hook_metric_bytes", MetricKind.GAUGE, "What they take as text, as it is counted for their limits."
)
REFUSED: Final = Description(
    "wharfinger_hook_metric_refused_total",
    MetricKind.COUNTER,
    "Operations of hooks that were refused: wrong names, kinds that do not fit, no room.",
)
HOOK_METRICS: Final = (*RUN_METRICS, SERIES, BYTES, REFUSED)
"""All that `HookMetrics.exposition` has."""


class HookMetrics:
    """What is measured now. Plain functions without an await: nobody sees half of a run."""

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
        """Take over what a run of a hook published; the warnings to be told. ``masked`` hides secrets in values of labels."""
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
        """A run of a hook ended."""
        self._runs.ran(run)

    def forget(self, package: str) -> None:
        """A package is gone: so is all that was measured of its hooks."""
        self._store.forget(package)
        self._runs.forget(package)

    def exposition_hooks(self) -> str:
        """What hooks publish, in Prometheus' text format."""
        return exposition(self._store.lines())

    def exposition(self) -> str:
        """What is measured of hooks' runs and of what they publish, in Prometheus' text format."""
        return exposition(self._own())

    def _own(self) -> Iterator[str]:
        yield from self._runs.lines()
        found = self._store.statistics()
        for family, number in ((SERIES, found.series), (BYTES, found.bytes), (REFUSED, found.refused)):
            yield from family_lines(family, [((), number)])


def _labels_of(package: str, hook: str) -> dict[str, str]:
    """What every series of a hook is labelled with."""
    if package == GLOBAL:
        return {"hook": hook}
    module, namespace = package_labels(package)
    return {"hook": hook, "module": module, **({"namespace": namespace} if namespace else {})}


def _shortened(warnings: list[str]) -> tuple[str, ...]:
    if len(warnings) <= MAX_WARNINGS:
        return tuple(warnings)
    return (*warnings[: MAX_WARNINGS - 1], f"and {len(warnings) - MAX_WARNINGS + 1} more like these")
