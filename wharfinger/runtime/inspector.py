"""The one read interface of the runtime: frozen snapshots, taken in one step, without secrets.

`PackageSnapshot.secrets` is the exception: it has what must not be shown, is never encoded, and does not cross the socket.

`debug/` uses this module and nothing else of the runtime; nothing below uses `debug/`. The socket client of `debug/`
implements the same protocol against a running daemon, so code that prints a snapshot works with both.
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
    """One queued task (spec/runtime §3, dump): times in seconds; ``retry_in_s`` is set only while it waits after a failure.

    ``parked``: it failed permanently, and waits until an input changes. ``waits_for`` says what a running task waits for,
    such as ``a slot: renders``; empty if it is at work or does not run.
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
    """One package's queue, head first."""

    name: str
    tasks: tuple[TaskSnapshot, ...]


@dataclass(frozen=True, slots=True)
class HookSnapshot:
    """One hook: its bindings (``onStartup 10``, ``kubernetes configmaps``, ``schedule nightly 0 3 * * *``) and its runs.

    ``last_run`` is the end of its last run, None before the first; ``last_error`` is empty if that run succeeded.
    ``waiting`` counts events and times that it has not been shown yet, ``reduced`` those that were replaced by newer ones.
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
    """The monitor of one kubernetes binding of a hook. ``events`` and ``dropped`` are counted since it was started.

    ``listed``: it has seen all existing objects; ``locked``: its hook has not been synchronised, so it emits nothing yet;
    ``objects`` are in its snapshot, ``waiting`` are changes on their way into it; ``last_error`` is about the last change
    that it had to drop.
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
    """An operation in the journal ("update", "reconciliation", "disable", "removal"); steps in the order they were started.

    ``interrupted`` steps were in flight when an earlier process ended, and were not started again. ``earlier``: the whole
    operation was left by that process and has not been continued.
    """

    operation: str
    completed: tuple[str, ...]
    in_flight: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """The progress of the work under way: how many objects are done, how many are not, and the first few of those."""

    completed: int
    remaining: int
    waiting_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageSnapshot:
    """One package: its identity, the wanted state, the installed one, its work in progress, and its state.

    ``version`` and ``digest`` are wanted, ``installed_version`` and ``installed_digest`` are in the cluster (empty:
    nothing). ``values`` are those it was last rendered with, redacted by the runtime, which knows their schema.
    ``suspended`` and ``maintenance`` (its mode) are what users asked for. ``crds`` are the kinds that the package defines
    (``group/version/Kind``), None while they are not established; ``unmatched`` overrides name something that its chart does
    not have. ``urls`` are those under which it can be reached, ``drift`` the fields of its objects that are not as applied,
    with the managers that set them. ``failing`` are its objects that cannot be applied, corrected or deleted: the error, the
    attempt, the time of the next one, and the errors of earlier ones. ``waits_for`` are the limits that its work waits for
    (``hooks``, ``api``). ``secrets`` are texts that may not appear in anything shown about this package or its queue.
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
    """A dependency of a node; an empty constraint means any version, an optional one counts only while the package exists."""

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
    """The vote of one rule on a package: "Enable", "Disable" or "Forbid", and the reason."""

    verdict: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class LackSnapshot:
    """Something that a node is parked on (``kind`` "package", "tier", "vote", "pause"), and its state: "idle", "failed" …"""

    kind: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One package as the scheduler sees it (spec/runtime §4.9), dependencies sorted by name.

    ``order`` is the effective one; ``state`` is "idle", "scheduled" or "active"; ``decision`` is "Enable", "Disable",
    "Forbid" or "Undefined"; only a node with "Enable" is on. ``since`` is the time when it entered its state, was decided
    about again, or was parked on what it ``lacks``. ``run`` is the last run that was ordered (0: none), and ``failed`` says
    that it failed, whether or not it is retried. ``votes`` are those of all rules that have an opinion, in order;
    ``dependents`` are the packages that name it.
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
    """One link of the chain of causes: its subject, the subject's state, and the time since which that lasts."""

    subject: str
    state: str
    message: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExplanationSnapshot:
    """The explanation of a package's state: the chain of causes, its root last, and what to do about the root.

    ``also`` lists further causes, one per line; ``ready``: there is nothing to explain. If a package is ready as it is
    installed, but is to run again, it is explained for as long as that run waits.
    """

    name: str
    ready: bool
    causes: tuple[CauseSnapshot, ...]
    remedy: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderSnapshot:
    """The objects that a package would apply now, as YAML documents, Secret data included, or why there are none.

    A ``problem`` (empty: none) says why rendering failed; without a chart, there is nothing to render and no problem.
    """

    manifest: str = field(repr=False)
    problem: str
    has_chart: bool


@dataclass(frozen=True, slots=True)
class ValidSettings:
    """Settings that this version of the package would accept; ``warnings`` say what should be changed nevertheless."""

    version: str
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class InvalidSettings:
    """Settings that the package would refuse, with all their problems."""

    version: str
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class UnknownSettings:
    """The answer that settings cannot be checked now; ``why`` says what is missing."""

    why: str


SettingsAnswer: TypeAlias = ValidSettings | InvalidSettings | UnknownSettings


@dataclass(frozen=True, slots=True)
class DaemonSnapshot:
    """The daemon itself; ``standby`` is what it waits for before it may be at work, "" if nothing."""

    version: str
    pid: int
    started: datetime
    ready: bool
    cluster: str
    packages: int
    draining: bool
    standby: str


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The counts of all queues together: queues with a task, tasks, and those that run, back off, or are parked now.

    Counted since the start: tasks ``retired`` after success and ``dropped`` without; runs that failed, and those that failed
    by a ``bug``.
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
    """The limit on one kind of work: the number of slots, of slots in use, and of requests that wait for one.

    The kind ``work`` covers all other kinds but ``api`` together: a request that waits for one of those waits for ``work``,
    too.
    """

    kind: str
    limit: int
    used: int
    waiting: int


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """The workers that run code from packages: live ones now; requests and replaced workers (hung, dead) since the start."""

    workers: int
    requests: int
    replaced: int


@dataclass(frozen=True, slots=True)
class SchedulesSnapshot:
    """The clock of all hooks: crontabs followed now, ticks since the start, and the time of the next tick."""

    crontabs: int
    ticks: int
    next_due: datetime | None = None


@dataclass(frozen=True, slots=True)
class MonitorCounts:
    """The counts of the monitors of all packages whose hooks are started, as in `MonitorSnapshot`."""

    monitors: int
    listed: int
    objects: int
    watches: int
    waiting: int
    events: int
    dropped: int


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """The packages on disk: digests being worked on, temporary names in use, packages downloaded and not deployed yet."""

    locked: int
    temporary: int
    pinned: int


@dataclass(frozen=True, slots=True)
class ObjectCounts:
    """The objects of all releases. ``health`` is that of their reconciler: ``OK, 3 objects``, ``Degraded, 2 errors``.

    Counted now: objects that are to be applied or deleted (``pending``), are checked again (``refreshing``), or failed and
    are retried (``failing``), and operations that hang or are retried by releases whose operations hang (``slow``). Counted
    since the start: objects deleted by prunes (``pruned``), and prunes that failed.
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
    """The counts of the daemon. ``trying_crds`` are the packages whose definitions all others wait for.

    ``filters`` (jq), ``rules`` (CEL), ``store`` and ``objects`` are None if the part that does that work counts nothing.
    ``warm`` (workers for Python hooks; what is replaced are their zygotes) and ``charts`` (workers of the chart engine) are
    None without such workers. ``renderer``: what renders charts, such as ``chart engine, helm v4.3.1``.
    """

    tasks: TaskCounts
    slots: tuple[SlotsSnapshot, ...]
    trying_crds: tuple[str, ...]
    schedules: SchedulesSnapshot
    monitors: MonitorCounts
    filters: PoolSnapshot | None = None
    rules: PoolSnapshot | None = None
    store: StoreSnapshot | None = None
    objects: ObjectCounts | None = None
    warm: PoolSnapshot | None = None
    charts: PoolSnapshot | None = None
    renderer: str = ""


@dataclass(frozen=True, slots=True)
class WarmPoolSnapshot:
    """The pool of one Python interpreter for warm hooks.

    ``name`` is its program, numbered if it is kept with different variables. ``state``: ``serving``, ``starting`` (no zygote
    runs now) or ``unfit`` (``problem`` says why). ``size``: idle workers that are kept. ``ready`` workers wait for a hook,
    ``reserved`` ones are claimed, ``waiting`` counts hooks without a worker. ``started``, ``conflicts``, ``failed``,
    ``expired`` and ``refused`` count claims by their end, ``restarts`` zygotes that were replaced, all since the pool was
    opened.
    """

    name: str
    state: str
    size: int
    ready: int
    reserved: int
    waiting: int
    started: int
    conflicts: int
    failed: int
    expired: int
    refused: int
    restarts: int
    problem: str = ""


class Inspector(Protocol):
    """The questions that a running daemon answers.

    Every answer is a snapshot: consistent in itself, and not a handle on anything.
    """

    async def daemon(self) -> DaemonSnapshot:
        """Return the snapshot of the daemon."""
        ...

    async def statistics(self) -> StatisticsSnapshot | None:
        """Return the daemon's counts, or None before there is anything to count."""
        ...

    async def metrics(self) -> str:
        """Return the daemon's own metrics, in Prometheus' text format (:mod:`~wharfinger.formats.exposition`)."""
        ...

    async def hook_metrics(self) -> str:
        """Return the metrics that hooks publish, in the same format; none of them has the name of one of the daemon's own."""
        ...

    async def packages(self) -> tuple[PackageSnapshot, ...]:
        """Return all packages, sorted by name."""
        ...

    async def package(self, name: str) -> PackageSnapshot | None:
        """Return one package by its runtime name (``<namespace>.<instance>``), or None."""
        ...

    async def queues(self) -> tuple[QueueSnapshot, ...]:
        """Return all queues, sorted by name."""
        ...

    async def pools(self) -> tuple[WarmPoolSnapshot, ...]:
        """Return the pools of warm hooks that are open, sorted by name."""
        ...

    async def scheduler(self) -> tuple[NodeSnapshot, ...]:
        """Return all nodes of the scheduler, sorted by name."""
        ...

    async def why(self, name: str) -> ExplanationSnapshot | None:
        """Explain the state of the package of this name, or return None if there is no such package."""
        ...

    async def render(self, name: str) -> RenderSnapshot | None:
        """Render what the package of this name would apply now, or return None if there is no such package."""
        ...

    async def validate(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
        """Check whether the package of this name would accept these settings; None if there is no such package.

        ``version`` is that of the schema that they are written for; 0: the newest.
        """
        ...
