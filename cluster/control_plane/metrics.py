"""What the control plane counts, in Prometheus' text format 0.0.4."""

from collections import Counter
from typing import Final

from wharfinger.cluster.control_plane.backend import Backend

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


class Metrics:
    """Requests by verb and code, and watches that are open."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.watches = 0
        self.faults: Counter[str] = Counter()
        """Faults that were made on purpose, by the name of their rule."""

    def text(self, backend: Backend) -> str:
        """The exposition; metric names are the kube-apiserver's where the meaning is."""
        lines = [
            "# HELP apiserver_request_total Requests by method and answer.",
            "# TYPE apiserver_request_total counter",
            *(
                f'apiserver_request_total{{verb="{method}",code="{code}"}} {count}'
                for (method, code), count in sorted(self.requests.items())
            ),
            "# HELP apiserver_longrunning_requests Watches that are open.",
            "# TYPE apiserver_longrunning_requests gauge",
            f'apiserver_longrunning_requests{{verb="WATCH"}} {self.watches}',
            "# HELP apiserver_storage_objects Objects stored, by resource.",
            "# TYPE apiserver_storage_objects gauge",
        ]
        lines += [
            f'apiserver_storage_objects{{resource="{kind.resource}"}} {count}'
            for kind in backend.catalog.kinds()
            if kind.stored is None and (count := backend.storage.count(kind.collection))
        ]
        if self.faults:
            lines += [
                "# HELP wharfinger_faults_injected_total Faults made on purpose.",
                "# TYPE wharfinger_faults_injected_total counter",
                *(
                    f'wharfinger_faults_injected_total{{fault="{name}"}} {count}'
                    for name, count in sorted(self.faults.items())
                ),
            ]
        lines += [
            "# HELP wharfinger_storage_revision The revision of the latest write.",
            "# TYPE wharfinger_storage_revision counter",
            f"wharfinger_storage_revision {backend.storage.revision}",
        ]
        return "\n".join(lines) + "\n"
