"""The counters of the control plane, in Prometheus' text format 0.0.4.

Names, labels and buckets are the kube-apiserver's, so that dashboards find them. A request for an unknown kind is counted
without its path, so that clients cannot create an unlimited number of series.
"""

import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.verbs.options import asks_to_watch
from wharfinger.control_plane.wire.routes import HealthRoute, MetricsRoute, ResourceRoute, Route, UnknownRoute
from wharfinger.httpd.messages import Request

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)  # fmt: skip
"""Upper bounds of durations in seconds."""
_VERBS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_STARTED: Final = time.time()
_PROC: Final = Path("/proc/self")


class Series(NamedTuple):
    """The labels of the metrics of requests, except for the status code."""

    component: str = ""
    dry_run: str = ""
    group: str = ""
    resource: str = ""
    scope: str = ""
    subresource: str = ""
    verb: str = ""
    version: str = ""


_OTHER: Final = Series(verb="other")


def series_of(catalog: Catalog, route: Route, request: Request) -> Series:
    """Return the labels under which the metrics count a request."""
    if isinstance(route, ResourceRoute):
        served = catalog.find(route.group, route.version, route.plural)
        if served is None or request.method not in _VERBS:
            return _OTHER
        scope = "resource" if route.name or request.method == "POST" else "namespace" if route.namespace else "cluster"
        known = {item.name for item in served.version.subresources} if route.subresource else ()
        return Series(
            "apiserver",
            "All" if request.arg("dryRun") == "All" else "",
            route.group,
            route.plural,
            scope,
            route.subresource if route.subresource in known else "",
            _verb(route, request),
            route.version,
        )
    if isinstance(route, UnknownRoute) or request.method not in _VERBS:
        return _OTHER
    path = request.path if isinstance(route, (HealthRoute, MetricsRoute)) else f"/{request.path.split('/')[1]}"
    return Series(subresource=path if len(path) < 80 else "", verb=request.method)


def _verb(route: ResourceRoute, request: Request) -> str:
    method = request.method
    if method == "GET":
        if route.watch or (not route.name and asks_to_watch(request.query)):
            return "WATCH"
        return "GET" if route.name else "LIST"
    if method == "PATCH":
        return "APPLY" if "apply-patch" in request.headers.get("content-type", "") else "PATCH"
    return "DELETECOLLECTION" if method == "DELETE" and not route.name else method


@dataclass(slots=True)
class Durations:
    """The durations of the requests of one series."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """Yield the lines of the histogram."""
        total = 0
        for bound, count in zip((*BUCKETS, "+Inf"), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}'
        yield f"{name}_sum{{{labels}}} {self.seconds:.9f}"
        yield f"{name}_count{{{labels}}} {total}"


class Metrics:
    """The counters of requests by series and status code, their durations, and the open watches."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[Series, int]] = Counter()
        self.durations: dict[Series, Durations] = {}
        self.watches: Counter[Series] = Counter()
        self.faults: Counter[str] = Counter()
        """The number of faults that each rule has injected, by the name of the rule."""
        self._in_flight: Counter[str] = Counter()

    def in_flight(self, method: str, more: int) -> None:
        """Change the number of requests in progress: ``more`` is 1 when a request begins, and -1 when it has been answered."""
        self._in_flight["readOnly" if method == "GET" else "mutating"] += more

    def count(self, series: Series, code: int, seconds: float) -> None:
        """Count an answered request and its duration; for a watch, this is the time until the stream begins."""
        self.requests[series, code] += 1
        durations = self.durations.get(series)
        if durations is None:
            durations = self.durations[series] = Durations()
        durations.counts[bisect_left(BUCKETS, seconds)] += 1
        durations.seconds += seconds

    def text(self, backend: Backend) -> str:
        """Return all metrics as text; a metric that kube-apiserver also provides has the same name there."""
        kinds = [
            (kind, count)
            for kind in backend.catalog.kinds()
            if kind.stored is None and (count := backend.storage.count(kind.collection))
        ]
        lines = [
            *_metric(
                "apiserver_current_inflight_requests",
                "gauge",
                "Requests in progress.",
                (f'{{request_kind="{kind}"}} {self._in_flight[kind]}' for kind in ("mutating", "readOnly")),
            ),
            *_metric(
                "apiserver_longrunning_requests",
                "gauge",
                "Open watches.",
                (f"{{{_labels(series, skipped='dry_run')}}} {count}" for series, count in sorted(self.watches.items())),
            ),
            "# HELP apiserver_request_duration_seconds How long requests took, in seconds.",
            "# TYPE apiserver_request_duration_seconds histogram",
            *(
                line
                for series, durations in sorted(self.durations.items(), key=lambda item: item[0])
                for line in durations.lines("apiserver_request_duration_seconds", _labels(series))
            ),
            *_metric(
                "apiserver_request_total",
                "counter",
                "Answered requests by resource, verb and status code.",
                (
                    f'{{code="{code}",{_labels(series)}}} {count}'
                    for (series, code), count in sorted(self.requests.items())
                ),
            ),
            *_metric(
                "apiserver_resource_objects",
                "gauge",
                "Objects stored, by resource.",
                (f'{{group="{kind.group}",resource="{kind.plural}"}} {count}' for kind, count in kinds),
            ),
            *_metric(
                "apiserver_storage_objects",
                "gauge",
                "Objects stored, by resource.",
                (f'{{resource="{kind.resource}"}} {count}' for kind, count in kinds),
            ),
            *process_lines(),
            *_metric(
                "wharfinger_faults_injected_total",
                "counter",
                "Injected faults by the name of their rule.",
                (f'{{fault="{name}"}} {count}' for name, count in sorted(self.faults.items())),
            ),
            *_metric(
                "wharfinger_storage_revision",
                "counter",
                "The revision of the latest write.",
                (f" {backend.storage.revision}",),
            ),
        ]
        return "\n".join(lines) + "\n"


def _metric(name: str, type_: str, about: str, samples: Iterable[str]) -> list[str]:
    """Return the lines of a metric with its samples (labels and value); no lines if there are no samples."""
    lines = [f"{name}{sample}" for sample in samples]
    return [f"# HELP {name} {about}", f"# TYPE {name} {type_}", *lines] if lines else []


def _labels(series: Series, *, skipped: str = "") -> str:
    return ",".join(
        f'{name}="{_escaped(value)}"' for name, value in zip(Series._fields, series, strict=True) if name != skipped
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def process_lines() -> list[str]:
    """Return the metrics of the process; without ``/proc``, only its CPU time and its start time."""
    used = os.times()
    lines = _metric(
        "process_cpu_seconds_total", "counter", "Processor time in seconds.", (f" {used[0] + used[1]:.2f}",)
    )
    lines += _metric("process_start_time_seconds", "gauge", "When the process started.", (f" {_STARTED:.2f}",))
    try:
        virtual, resident = (int(item) for item in (_PROC / "statm").read_text().split()[:2])
        files = len(os.listdir(_PROC / "fd"))  # noqa: PTH208 - only their number
    except (OSError, ValueError):
        return lines
    page = os.sysconf("SC_PAGE_SIZE")
    lines += _metric("process_open_fds", "gauge", "Open file descriptors.", (f" {files}",))
    lines += _metric("process_resident_memory_bytes", "gauge", "Resident memory in bytes.", (f" {resident * page}",))
    return lines + _metric("process_virtual_memory_bytes", "gauge", "Virtual memory in bytes.", (f" {virtual * page}",))
