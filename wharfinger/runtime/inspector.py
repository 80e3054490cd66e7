"""The interface through which code outside of `runtime/` reads the state of the runtime. It returns frozen snapshots. They
contain no secrets, with two exceptions:

* `PackageSnapshot.secrets` has the texts that must not be shown. This field is never encoded, and never sent over the socket.
* A `RenderSnapshot` has the data of Secrets. The server of the debug socket masks this data, unless a user who may see it
  requests it.

Of the runtime, `debug/` imports only this module, the modules with further snapshots (`daemon_details`, `package_details` and
`scheduler_details`), and `paths`. The runtime never imports `debug/`. The socket client in `debug/` implements the same
protocol, `Inspector`, by requests to a running daemon, so code that prints a snapshot works with both.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.problem import Problem

if TYPE_CHECKING:  # a client that needs no explanations and no YAML starts faster without these modules
    from wharfinger.runtime.daemon_details import (
        DaemonSnapshot,
        MemorySnapshot,
        RequirementsSnapshot,
        StatisticsSnapshot,
        WarmPoolSnapshot,
    )
    from wharfinger.runtime.package_details import (
        ClusterEventSnapshot,
        DaemonTaskSnapshot,
        DifferenceSnapshot,
        HookSnapshotsSnapshot,
        LogSnapshot,
        ResourceSnapshot,
    )
    from wharfinger.runtime.scheduler_details import ExplanationSnapshot, NodeSnapshot


ACCEPTED: Final = "Accepted"
REMOVED: Final = "Removed"
"""The types of two conditions that occur only in snapshots, and only while they are False.

The condition ACCEPTED is False while the resource cannot be acted on; REMOVED is False while the package is being removed.
"""


@dataclass(frozen=True, slots=True)
class ConditionSnapshot:
    """One condition, as in Kubernetes' API conventions: status is "True", "False" or "Unknown"."""

    type: str
    status: str
    reason: str
    message: str
    last_transition: datetime


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """One task in a queue (spec/runtime §3, dump). Times are in seconds. ``retry_in_s`` is set only while the task waits for
    its next attempt after a failure.

    ``parked`` is True if the task has failed, and a retry with the same input is unlikely to help. ``waits_for`` names the
    thing that a running task waits for, such as ``a slot: renders``; it is empty if the task is at work or does not run.
    """

    index: int
    name: str
    lane: str
    enqueued_s_ago: float
    attempt: int
    running: bool
    retry_in_s: float | None = None
    error: str = ""
    cause: str = ""
    parked: bool = False
    waits_for: str = ""


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """One package's queue; the first task is the head of the queue."""

    name: str
    tasks: tuple[TaskSnapshot, ...]


@dataclass(frozen=True, slots=True)
class HookSnapshot:
    """One hook: its bindings (``onStartup 10``, ``kubernetes configmaps``, ``schedule nightly 0 3 * * *``) and its runs.

    ``last_run`` is the time at which its last run ended, None if no run has ended yet; ``last_error`` is empty if that run
    succeeded. ``waiting`` counts the events and scheduled times that have not been passed to the hook yet, and ``reduced``
    counts the events and scheduled times that were replaced by newer ones.
    """

    name: str
    bindings: tuple[str, ...]
    runs: int
    last_run: datetime | None = None
    last_error: str = ""
    waiting: int = 0
    reduced: int = 0


@dataclass(frozen=True, slots=True)
class MonitorSnapshot:
    """The monitor of one kubernetes binding of a hook: the part of the daemon that watches the binding's objects
    (:mod:`wharfinger.hooks.watching.monitor`). ``events`` and ``dropped`` are counted since the monitor was started.

    ``listed``: the monitor has seen all existing objects. ``locked``: the Synchronization of the hook has not succeeded yet, so
    the monitor emits no events. ``objects`` counts the objects in the snapshot, ``waiting`` the changes that are not in the
    snapshot yet. ``last_error`` is about the last change that was dropped.
    """

    hook: str
    binding: str
    listed: bool
    locked: bool
    objects: int
    watches: int
    waiting: int
    events: int
    dropped: int
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class OperationSnapshot:
    """An operation in the journal ("update", "reconciliation", "disable", "removal"), with its steps in the order in which
    they were started.

    ``interrupted`` has the steps that were in flight when an earlier process ended, and that were not started again.
    ``earlier``: an earlier process began the operation without finishing it, and this process has not continued it.
    """

    operation: str
    completed: tuple[str, ...]
    in_flight: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """The progress of the work under way: how many objects are done, how many are not done, and the first few objects that
    are not done.
    """

    completed: int
    remaining: int
    waiting_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageSnapshot:
    """One package: its identity, its wanted state, its installed state, the work in progress, and its conditions.

    * ``version`` and ``digest`` are those of the wanted package; ``installed_version`` and ``installed_digest`` are those of
      the package in the cluster ("" if nothing is installed).
    * ``values`` are the present values, redacted by the runtime, which knows their schema.
    * ``update`` is a line about a version that is pending, for example until a user approves it, or about a tag that has moved;
      "" if there is none.
    * ``rollback`` is a line with the former revision that the package returned to, and the version that its resource requests;
      "" if the package was not rolled back.
    * ``suspended`` and ``maintenance`` are the values of ``spec.suspend`` and ``spec.maintenance``, which users set.
    * ``crds`` are the kinds that the package defines (``group/version/Kind``); None until the API server has established all
      of them.
    * ``unmatched`` are overrides of workloads or containers that the chart does not have.
    * ``urls`` are the addresses of the package.
    * ``drift`` are the objects that differ from what was applied, each with its changed fields and the managers that set them.
    * ``failing`` are the objects that cannot be applied, corrected or deleted, with the error, the number of the attempt, the
      time of the next one, and earlier errors.
    * ``waits_for`` are the kinds of slots, such as ``hooks`` or ``api``, for which the package's work waits now.
    * ``labels`` are those of the package's resource.
    * ``secrets`` are texts that must not appear in anything shown about this package or its queue.
    """

    name: str
    kind: str
    namespace: str
    package: str
    version: str
    digest: str
    release_revision: int
    state: str
    message: str
    tip: str
    settings: JsonObject
    conditions: tuple[ConditionSnapshot, ...]
    queue: QueueSnapshot
    installed_version: str = ""
    installed_digest: str = ""
    values: JsonObject = field(default_factory=dict)
    hooks: tuple[HookSnapshot, ...] = ()
    suspended: bool = False
    maintenance: str = ""
    progress: ProgressSnapshot | None = None
    warnings: tuple[str, ...] = ()
    update: str = ""
    rollback: str = ""
    unmatched: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    crds: tuple[str, ...] | None = ()
    waits_for: tuple[str, ...] = ()
    operations: tuple[OperationSnapshot, ...] = ()
    monitors: tuple[MonitorSnapshot, ...] = ()
    labels: JsonObject = field(default_factory=dict)
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class VersionSnapshot:
    """One version of a package, with its details; ``channels`` names the channels that point at it."""

    version: str
    digest: str = ""
    channels: tuple[str, ...] = ()
    description: str = ""
    kubernetes: str = ""
    changelog: tuple[str, ...] = ()
    deprecated: str = ""
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """The versions of one *followed* package, the newest first. A package is followed if its versions are read at each scan of
    its repository. ``detailed`` has the versions whose details are known.
    """

    package: str
    versions: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    detailed: tuple[VersionSnapshot, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RepositorySnapshot:
    """One PackageRepository: the status of its condition Ready ("True", "False" or "Unknown"), the time of its last scan, and
    the number of resources that use it. ``packages`` are those packages of the repository that are followed, or whose versions
    are known.
    """

    name: str
    source: str
    ready: str
    reason: str = ""
    message: str = ""
    scanned: datetime | None = None
    users: int = 0
    packages: tuple[IndexSnapshot, ...] = ()
    labels: tuple[str, ...] = ()
    """The labels of the PackageRepository, sorted, each as ``key=value``."""


@dataclass(frozen=True, slots=True)
class RenderSnapshot:
    """The objects that a package would apply now, as YAML documents with the data of Secrets.

    ``manifest`` is "" if the package has no chart, or if rendering failed. ``problem`` says why rendering failed; it is ""
    if rendering succeeded, or if the package has no chart.
    """

    manifest: str = field(repr=False)
    problem: str
    has_chart: bool


@dataclass(frozen=True, slots=True)
class ValidSettings:
    """Settings that the package in this ``version`` would accept; ``warnings`` say what should be changed nevertheless."""

    version: str
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class InvalidSettings:
    """Settings that the package in this ``version`` would refuse, with all their problems."""

    version: str
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class UnknownSettings:
    """The answer if settings cannot be checked now; ``why`` says what is missing."""

    why: str


SettingsAnswer: TypeAlias = ValidSettings | InvalidSettings | UnknownSettings


@dataclass(frozen=True, slots=True)
class EventSnapshot:
    """One event of a package. ``machine`` is the state machine that received the event; ``before`` and ``after`` describe the
    state of that machine before and after the event. ``decides`` is False if the event only carries out an earlier decision.
    """

    time: datetime
    machine: str
    event: str
    cause: str = ""
    before: str = ""
    after: str = ""
    decides: bool = True


@dataclass(frozen=True, slots=True)
class HistorySnapshot:
    """The last events of a package, oldest first. ``dropped`` is the number of earlier events that are not kept any more."""

    name: str
    events: tuple[EventSnapshot, ...]
    dropped: int = 0


class Inspector(Protocol):
    """The interface of a running daemon for inspection: each method asks one question about the daemon's state.

    Every answer is a consistent snapshot, which does not change later.
    """

    async def daemon(self) -> "DaemonSnapshot":
        """Return the snapshot of the daemon."""
        ...

    async def statistics(self) -> "StatisticsSnapshot | None":
        """Return the daemon's counts, or None before the runtime has started."""
        ...

    async def memory(self) -> "MemorySnapshot":
        """Return the memory of the daemon by part, and that of its children by program."""
        ...

    async def metrics(self) -> str:
        """Return the daemon's own metrics, in Prometheus' text format (:mod:`~wharfinger.formats.exposition`)."""
        ...

    async def hook_metrics(self) -> str:
        """Return the metrics that hooks publish, in the same format. Their names differ from those of the daemon's metrics."""
        ...

    async def packages(self) -> tuple[PackageSnapshot, ...]:
        """Return all packages, sorted by name."""
        ...

    async def package(self, name: str) -> PackageSnapshot | None:
        """Return one package by its runtime name (``<namespace>.<instance>``, or the name of a Module); None if there is none."""
        ...

    async def queues(self) -> tuple[QueueSnapshot, ...]:
        """Return all queues, sorted by name."""
        ...

    async def pools(self) -> "tuple[WarmPoolSnapshot, ...]":
        """Return the pools of warm hooks, of persistent hooks and of WorkerPools, each kind sorted by name."""
        ...

    async def repositories(self) -> tuple[RepositorySnapshot, ...]:
        """Return all PackageRepositories, sorted by name."""
        ...

    async def scheduler(self) -> "tuple[NodeSnapshot, ...]":
        """Return all nodes of the scheduler, sorted by name."""
        ...

    async def why(self, name: str, at: datetime | None = None) -> "ExplanationSnapshot | None":
        """Explain the state of a package or of a WorkerClaim; return None if there is none of this name. The name of a
        WorkerClaim is ``claim/NAMESPACE/NAME``.

        With ``at``, explain the state of a package at that time, from the recorded events; return None if the recorded events
        do not reach back so far.
        """
        ...

    async def history(self, name: str) -> HistorySnapshot | None:
        """Return the last events of the package of this name, even if the package is gone; None if no event is known."""
        ...

    async def resources(self, name: str) -> "tuple[ResourceSnapshot, ...] | None":
        """Return the objects of a package's release, sorted; None if there is no such package."""
        ...

    async def events(self, name: str | None) -> "tuple[ClusterEventSnapshot, ...] | None":
        """Return the Kubernetes Events about a package's resource or, if ``name`` is None, all Events that daemons wrote in
        this cluster: the oldest first, and at most a few thousand. Return None if there is no such package. Raises
        DetailsUnavailableError.
        """
        ...

    async def logs(self, name: str, after: int = 0) -> "LogSnapshot | None":
        """Return a package's kept log lines whose numbers are above ``after``, even if the package is gone; None if there is
        neither such a package nor any kept line about it.
        """
        ...

    async def difference(self, name: str) -> "DifferenceSnapshot | None":
        """Return what the next apply of a package would change in the cluster. Nothing is changed: the API server only
        answers dry runs. Return None if there is no such package.
        """
        ...

    async def hook_snapshots(self, name: str) -> "tuple[HookSnapshotsSnapshot, ...] | None":
        """Return the snapshots that the hooks of a package would get now, sorted by hook; None if there is no such package."""
        ...

    async def tasks(self) -> "tuple[DaemonTaskSnapshot, ...]":
        """Return the tasks of the daemon, as a tree from the root."""
        ...

    async def requirements(self) -> "RequirementsSnapshot | None":
        """Return the facts that packages may require, such as the Kubernetes version; None before the runtime has started."""
        ...

    async def render(self, name: str, *, shown_to: str = "") -> RenderSnapshot | None:
        """Render what the package of this name would apply now, or return None if there is no such package.

        ``shown_to`` is the user to whom the secrets in the answer are shown; it is logged. If it is "", the server of the
        socket masks the secrets.
        """
        ...

    async def validate(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
        """Check whether the package of this name would accept these settings; return None if there is no such package.

        ``version`` is the version of the schema for which the settings are written; 0 means the newest.
        """
        ...
