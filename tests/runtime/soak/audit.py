"""An audit of the daemon's writes: each write needs a cause, and a ready package stays ready unless something causes a change.

A cause is an action of the script (`tests/runtime/soak/script.py`). Each cause lists the paths that the daemon may write until
the cluster has settled. At any time, the daemon may write its Lease and Kubernetes Events, and mark old revisions as
superseded.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

from tests.runtime.soak.server import Write
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_list, find_str

LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/wharfinger-system/leases"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/"
OWN_DEFINITIONS: Final = re.compile(
    r"/apis/apiextensions\.k8s\.io/v1/customresourcedefinitions/[a-z]+\.wharfinger\.dev$"
)
_RECORD: Final = re.compile(r"/secrets/sh\.helm\.release\.v1\.[^/]+\.v\d+$")
_STATUS: Final = re.compile(r"/apis/wharfinger\.dev/v1alpha1/namespaces/([^/]+)/applications/([^/]+)/status$")

App = tuple[str, str]
"""Namespace and name of an Application."""
Allows = Callable[[str], bool]
"""A function that returns whether a path may be written."""


def all_of(app: App) -> Allows:
    """Return a function that allows the writes for a change of an Application: of its status, and of its objects in its
    namespace and in the whole cluster.
    """
    namespace, name = app
    own = re.compile(rf"/namespaces/{namespace}/(.*[/.])?{name}(-[a-z]+|\.v\d+)?(/status)?$")
    made = re.compile(rf"/namespaces/{namespace}/(secrets|jobs)$")
    return lambda path: bool(own.search(path) or made.search(path)) or path.endswith(f"/{namespace}-{name}")


def status_of(app: App) -> Allows:
    """Return a function that allows only writes of the Application's status."""
    namespace, name = app
    return lambda path: path.endswith(f"/namespaces/{namespace}/applications/{name}/status")


def start_of_daemon(path: str) -> bool:
    """Return whether a starting daemon may write to this path: it applies its own CRDs."""
    return bool(OWN_DEFINITIONS.search(path))


def tidies(write: Write) -> bool:
    """Return whether a write marks an older revision of a release as superseded."""
    if write.method != "PUT" or not _RECORD.search(write.path):
        return False
    return find_str(json.loads(write.body), "metadata", "labels", "status") == "superseded"


@dataclass(slots=True)
class Told:
    """The last written status of one Application."""

    ready: str = ""
    generation: int = 0
    state: str = ""


@dataclass(slots=True)
class Audit:
    """The findings of the audit. ``findings`` describes each write without a cause, and each package that became unready
    without a cause. ``after`` names the last action of the script.
    """

    findings: list[str] = field(default_factory=list)
    writes: int = 0
    leases: int = 0
    after: str = "nothing"
    allowed: list[Allows] = field(default_factory=list)
    excused: set[App] = field(default_factory=set)
    """Applications that may become unready without a new desired state, because a Pod is broken or the namespace is deleted."""
    told: dict[App, Told] = field(default_factory=dict)

    def noted(self, write: Write) -> None:
        """Record a finding if nothing allows this write of the daemon, or if it makes a status unready without a cause."""
        if write.path.startswith(LEASE):
            self.leases += 1
            return
        if write.path.startswith(EVENTS):
            return  # Events are for people, and are written some time after the change
        self.writes += 1
        if tidies(write):
            return  # an older revision is superseded a minute after the change (decision 0051)
        if not any(allows(write.path) for allows in self.allowed):
            self._find("a write without a cause", str(write))
        if (about := _STATUS.search(write.path)) is not None:
            self._status((about[1], about[2]), json.loads(write.body))

    def gone(self, app: App) -> None:
        """Forget an Application. Another one may get its name later."""
        self.told.pop(app, None)
        self.excused.discard(app)

    @contextmanager
    def cause(self, words: str, *allows: Allows) -> Iterator[None]:
        """Allow the writes that one of ``allows`` accepts while the block runs. ``words`` names the action that causes them."""
        before, self.after, self.allowed = self.allowed, words, [*self.allowed, *allows]
        try:
            yield
        finally:
            self.allowed = before

    def _status(self, app: App, body: JsonObject) -> None:
        before = self.told.get(app, Told())
        now = Told(
            _truth(find_list(body, "status", "conditions"), "Ready"),
            find_int(body, "status", "observedGeneration"),
            find_str(body, "status", "summary", "state"),
        )
        self.told[app] = now
        if now.generation != before.generation or now.state == "Removing" or app in self.excused:
            return
        said = f"{'/'.join(app)}: {before.ready} -> {now.ready} ({now.state}: {find(body, 'status', 'summary', 'message')})"
        if before.ready == "True" and now.ready != "True":
            self._find("Ready was lost without a cause that lasts", said)
        elif before.ready == "True" and now.state != "Ready":
            self._find("a state without a cause that lasts", said)

    def _find(self, what: str, which: str) -> None:
        self.findings.append(f"{trio.current_time():.1f} s, after {self.after}: {what}: {which}")


def _truth(conditions: Iterable[JsonValue], kind: str) -> str:
    return next((find_str(one, "status") for one in conditions if find_str(one, "type") == kind), "")
