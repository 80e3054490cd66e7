"""The one read interface of the runtime: frozen snapshots, taken in one step, with nothing secret in what they show.

`PackageSnapshot.secrets` is the exception: it names what must not be shown, is never encoded, and does not cross the socket.

`debug/` sees this module and nothing else of the runtime; nothing below sees `debug/`. The socket client of `debug/`
implements the same protocol against a running daemon, so whatever prints a snapshot works on both.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.problems import Problem


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
    """One queued task (spec/runtime §3, dump): times in seconds, ``retry_in_s`` only while it waits after a failure.

    ``parked``: it failed for good, and waits until an input changes. ``waits_for`` says what a task that runs cannot go on
    without: ``a slot: renders``. Empty: it is at work, or does not run.
    """

    index: int
    name: str
    lane: str
    enqueued_s_ago: float
    attempt: int
    running: bool
    retry_in_s: float | None
    error: str
    cause: str
    parked: bool = False
    waits_for: str = ""


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """One package's queue, head first."""

    name: str
    tasks: tuple[TaskSnapshot, ...]


@dataclass(frozen=True, slots=True)
class HookSnapshot:
    """One hook: what it is bound to (``onStartup 10``, ``kubernetes configmaps``, ``schedule nightly 0 3 * * *``), how it went.

    ``last_run`` is when its last run ended, None before the first; ``last_error`` is empty when that run succeeded.
    ``waiting`` are events and times that it has not been told yet, ``reduced`` those that gave way to something newer.
    """

    name: str
    bindings: tuple[str, ...]
    runs: int
    last_run: datetime | None
    last_error: str
    waiting: int = 0
    reduced: int = 0


@dataclass(frozen=True, slots=True)
class MonitorSnapshot:
    """What follows one kubernetes binding of a hook. ``events`` and ``dropped`` are since it was started.

    ``listed``: it has seen all there is; ``locked``: its hook has not been synchronised, so it tells nothing yet; ``objects``
    are in its snapshot, ``waiting`` changes on their way into it; ``last_error`` is the last change that it had to drop.
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
    last_error: str


@dataclass(frozen=True, slots=True)
class OperationSnapshot:
    """An operation in the journal ("update", "reconciliation", "disable", "removal"); steps in the order they were started.

    ``interrupted``: in flight when an earlier process ended, and not started again; ``earlier``: that process left all of it,
    and nobody has taken it up.
    """

    operation: str
    completed: tuple[str, ...]
    in_flight: tuple[str, ...]
    interrupted: tuple[str, ...]
    earlier: bool


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """How many of the objects of what is under way are done, how many are not, and the first few of those."""

    completed: int
    remaining: int
    waiting_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageSnapshot:
    """One package: who it is, what is wanted, what is installed, what it is doing, and how it is.

    ``version`` and ``digest`` are what is wanted, ``installed_version`` and ``installed_digest`` what the cluster has (empty:
    nothing). ``values`` are those it was last rendered with, redacted by the runtime, which knows their schema.
    ``suspended`` and ``maintenance`` (its mode) are what somebody wants. ``crds`` are the kinds that it brought
    (``group/version/Kind``), None while they are not established; ``unmatched`` overrides name what its chart has not.
    ``urls`` are where it can be reached, ``drift`` the fields of its objects that are not as applied, and who set them.
    ``failing`` are its objects that cannot be applied, corrected or deleted: why, which attempt, when the next one is, and how
    the earlier ones failed. ``waits_for`` are the limits that work of it waits for (``hooks``, ``api``). ``secrets`` are texts
    that may not appear in anything said about this package or its queue.
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
    unmatched: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    crds: tuple[str, ...] | None = ()
    waits_for: tuple[str, ...] = ()
    operations: tuple[OperationSnapshot, ...] = ()
    monitors: tuple[MonitorSnapshot, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class DependencySnapshot:
    """What a node builds on; an empty constraint means any version, an optional one counts only while it is there."""

    name: str
    constraint: str
    optional: bool


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group of packages of which one must be on (``kind`` "anyOf"), or none may be ("noneOf"); members sorted by name."""

    kind: str
    name: str
    members: tuple[DependencySnapshot, ...]


@dataclass(frozen=True, slots=True)
class VoteSnapshot:
    """What one rule says about a package: "Enable", "Disable" or "Forbid", and why."""

    verdict: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class LackSnapshot:
    """What a node is parked on (``kind`` "package", "tier", "vote", "pause"), and how that is: "idle", "failed" …"""

    kind: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One package as the scheduler sees it (spec/runtime §4.9), dependencies sorted by name.

    ``order`` is the effective one; ``state`` "idle", "scheduled" or "active"; ``decision`` "Enable", "Disable", "Forbid" or
    "Undefined"; only a node with "Enable" is on. ``since`` is when it came into its state, was decided about anew, or was parked
    on what it ``lacks``; ``run`` the last one that was ordered (0: none), ``failed`` that it failed, to be tried again or not.
    ``votes`` are those of all rules that have an opinion, in order; ``dependents`` who names it.
    """

    name: str
    version: str
    order: int
    state: str
    decision: str
    reason: str
    message: str
    dependencies: tuple[DependencySnapshot, ...]
    declared_order: int = 0
    run: int = 0
    failed: bool = False
    since: datetime | None = None
    lacks: tuple[LackSnapshot, ...] = ()
    votes: tuple[VoteSnapshot, ...] = ()
    groups: tuple[GroupSnapshot, ...] = ()
    dependents: tuple[str, ...] = ()
    subscriptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CauseSnapshot:
    """One link of the chain of causes: whose it is, how that is, and since when it is so."""

    subject: str
    state: str
    message: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExplanationSnapshot:
    """Why a package is as it is: the chain of causes, its root last, and what to do about the root.

    ``also`` says, in a line each, what else keeps it; ``ready``: there is nothing to explain. What is ready as it is installed,
    and is to be run again, is explained as long as that run waits.
    """

    name: str
    ready: bool
    causes: tuple[CauseSnapshot, ...]
    remedy: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderSnapshot:
    """What a package would apply now: its manifests as YAML documents, Secret data included, or why there are none.

    A ``problem`` (empty: none) says why rendering failed; without a chart there is nothing to render, and no problem.
    """

    manifest: str = field(repr=False)
    problem: str
    has_chart: bool


@dataclass(frozen=True, slots=True)
class ValidSettings:
    """Settings that the package, in this version of it, would take; ``warnings`` say what should be changed all the same."""

    version: str
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class InvalidSettings:
    """Settings that it would refuse, and everything that is wrong with them."""

    version: str
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class UnknownSettings:
    """Nobody can tell now; ``why`` says what it is waiting for."""

    why: str


SettingsAnswer: TypeAlias = ValidSettings | InvalidSettings | UnknownSettings


@dataclass(frozen=True, slots=True)
class DaemonSnapshot:
    """The daemon itself; ``standby`` is what it waits for before it may be at work, "" where nothing."""

    version: str
    pid: int
    started: datetime
    ready: bool
    cluster: str
    packages: int
    draining: bool
    standby: str = ""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """All queues together. Now: queues with a task, tasks, and those that run, back off, or are parked until an input changes.

    Since the start: tasks ``retired`` after success, ``dropped`` without; runs that failed, and those that did by a ``bug``.
    """

    queues: int
    tasks: int
    running: int
    backing_off: int
    parked: int
    retired: int
    dropped: int
    failures: int
    bugs: int


@dataclass(frozen=True, slots=True)
class SlotsSnapshot:
    """The limit on one kind of work: how many slots there are, how many are in use, how many requests wait for one.

    The kind ``work`` is of all others but ``api`` together: who waits for one of those waits for one of these too.
    """

    kind: str
    limit: int
    used: int
    waiting: int


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """Workers that run what strangers wrote: how many live now; requests and workers replaced (hung, dead) since the start."""

    workers: int
    requests: int
    replaced: int


@dataclass(frozen=True, slots=True)
class SchedulesSnapshot:
    """The clock of all hooks: crontabs followed now, ticks since the start, and when the next is due."""

    crontabs: int
    ticks: int
    next_due: datetime | None


@dataclass(frozen=True, slots=True)
class MonitorCounts:
    """The monitors of all packages that are started together, as in `MonitorSnapshot`."""

    monitors: int
    listed: int
    objects: int
    watches: int
    waiting: int
    events: int
    dropped: int


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """The packages on disk: digests being worked on, temporary names in use, packages brought here and not deployed yet."""

    locked: int
    temporary: int
    pinned: int


@dataclass(frozen=True, slots=True)
class ObjectCounts:
    """The objects of all releases. ``health`` says how their reconciler is: ``OK, 3 objects``, ``Degraded, 2 errors``.

    Now: those that are to be applied or deleted (``pending``), looked at again (``refreshing``), that failed and are tried again
    (``failing``), operations that hang or are retried by whose operations hang (``slow``). Since the start: those that were
    deleted by prunes (``pruned``), and prunes that failed.
    """

    health: str
    objects: int
    pending: int
    refreshing: int
    failing: int
    slow: int
    pruned: int
    prune_errors: int


@dataclass(frozen=True, slots=True)
class StatisticsSnapshot:
    """What the daemon counts. ``trying_crds`` are the packages whose definitions all others wait for.

    ``filters`` (jq), ``rules`` (CEL), ``store`` and ``objects`` are None where what does that work counts nothing.
    """

    tasks: TaskCounts
    slots: tuple[SlotsSnapshot, ...]
    trying_crds: tuple[str, ...]
    schedules: SchedulesSnapshot
    monitors: MonitorCounts
    filters: PoolSnapshot | None
    rules: PoolSnapshot | None
    store: StoreSnapshot | None
    objects: ObjectCounts | None = None


class Inspector(Protocol):
    """Questions a running daemon answers. Every answer is a snapshot: consistent in itself, and no handle on anything."""

    async def daemon(self) -> DaemonSnapshot:
        """The daemon."""
        ...

    async def statistics(self) -> StatisticsSnapshot | None:
        """What the daemon counts, or None before there is anything to count."""
        ...

    async def metrics(self) -> str:
        """The daemon's own metrics, in Prometheus' text format (:mod:`~wharfinger.formats.exposition`)."""
        ...

    async def hook_metrics(self) -> str:
        """The metrics that hooks publish, in the same format; none is called as one of the daemon's own."""
        ...

    async def packages(self) -> tuple[PackageSnapshot, ...]:
        """All packages, sorted by name."""
        ...

    async def package(self, name: str) -> PackageSnapshot | None:
        """One package by its runtime name (``<namespace>.<instance>``), or None."""
        ...

    async def queues(self) -> tuple[QueueSnapshot, ...]:
        """All queues, sorted by name."""
        ...

    async def scheduler(self) -> tuple[NodeSnapshot, ...]:
        """All nodes of the scheduler, sorted by name."""
        ...

    async def why(self, name: str) -> ExplanationSnapshot | None:
        """Why the package of this name is as it is, or None when there is no such package."""
        ...

    async def render(self, name: str) -> RenderSnapshot | None:
        """What the package of this name would apply now, or None when there is no such package."""
        ...

    async def validate(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
        """Whether the package of this name would take these settings, or None when there is no such package.

        ``version`` is that of the schema that they are written for; 0: the newest.
        """
        ...
