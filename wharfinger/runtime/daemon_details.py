"""Snapshots of a daemon as a whole: the daemon itself, its counts, and its pools. They are part of the Inspector's answers."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LeaderSnapshot:
    """The daemon that leads, as this daemon last saw it in the Lease ``lease`` (``namespace/name``).

    ``leader`` and ``fence`` are the identity and the fence of the Lease's holder ("" and 0: no holder was seen); ``identity`` is
    that of this daemon.
    """

    lease: str = ""
    leader: str = ""
    fence: int = 0
    identity: str = ""
    leads: bool = False


@dataclass(frozen=True, slots=True)
class DaemonSnapshot:
    """The daemon itself; ``standby`` is the reason why it may not work yet, "" if it may.

    ``stale_watches`` has a sentence for each watch that hangs.
    """

    version: str
    pid: int
    started: datetime
    ready: bool
    cluster: str
    packages: int
    draining: bool
    standby: str
    leader: LeaderSnapshot = LeaderSnapshot()
    stale_watches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The counts of all queues together: queues with a task, tasks, and those that run, back off, or are parked now.

    Counted since the start: tasks that were ``retired`` after success, and tasks that were ``dropped``; runs that failed, and
    runs that failed because of a ``bug``.
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

    The kind ``work`` covers all other kinds but ``api`` together: a request for a slot of such a kind also waits for a slot of
    ``work``.
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

    ``filters`` (jq), ``rules`` (CEL), ``store`` and ``objects`` are None if the part behind them keeps no counts. ``warm``
    (workers for Python hooks; the counts of replacements are of their zygotes) and ``charts`` (workers of the chart engine) are
    None without such workers. ``renderer``: the program that renders charts, such as ``chart engine, helm v4.3.1``.
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
class MemoryPartSnapshot:
    """A part of the memory: the number of its ``items``, and their size. ``bytes`` is None if only the items are counted."""

    part: str
    items: int
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """The memory of the daemon. A page that processes share counts by its share, so that the numbers can be added.

    ``own_bytes`` is the memory of the daemon's process now, ``peak_bytes`` the most that was resident since the start.
    ``programs`` are all processes below it, by program. ``parts`` are what the daemon keeps in its own memory; their sizes are
    those of the data, without Python's overhead, so they are less than the process takes for them.
    """

    own_bytes: int
    peak_bytes: int
    programs: tuple[MemoryPartSnapshot, ...] = ()
    parts: tuple[MemoryPartSnapshot, ...] = ()


@dataclass(frozen=True, slots=True)
class WarmPoolSnapshot:
    """The pool of one Python interpreter for warm hooks, the processes of one persistent hook, or the pool of a WorkerPool.

    ``kind`` is ``interpreter``, ``persistent`` or ``pods``. The pool of a WorkerPool is named ``namespace/name``; its members are
    pods, and those that wait are claims. Its ``state`` is ``ready``, or the reason of its condition; ``restarts`` are pods that
    were replaced because they did not become ready, and ``starting`` and ``claimed`` count pods. A persistent hook is named
    as in the log; ``size`` counts its processes, ``reserved`` those that serve a run now, and ``started`` the runs that these
    processes have begun. ``memory_bytes`` is the memory of the processes of a pool that count against ``memory_limit_bytes``,
    the limit of all pools of processes together; both are 0 for pods. The rest is about interpreters.

    ``name`` is the program, numbered if it is kept with different variables. ``state``: ``serving``, ``starting`` (no zygote
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
    kind: str = "interpreter"
    starting: int = 0
    claimed: int = 0
    memory_bytes: int = 0
    memory_limit_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RequirementsSnapshot:
    """The facts about the platform that packages may require; "" for a version, an edition or a bundle that is not known."""

    kubernetes: str
    platform: str
    edition: str
    bundle: str
    bootstrapped: bool
