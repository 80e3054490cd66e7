"""Snapshots of a daemon as a whole: the daemon itself, its counts, and its pools. They are part of the Inspector's answers."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LeaderSnapshot:
    """The daemon that leads, as this daemon last saw it in the Lease ``lease`` (``namespace/name``).

    ``leader`` is the identity of the Lease's holder, and ``fence`` its number, which is greater than those of earlier holders.
    They are "" and 0 if no holder was seen. ``identity`` is the identity of this daemon.
    """

    lease: str = ""
    leader: str = ""
    fence: int = 0
    identity: str = ""
    leads: bool = False


@dataclass(frozen=True, slots=True)
class DaemonSnapshot:
    """The daemon itself; ``standby`` is the reason why this daemon does not work yet, "" if there is none.

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
    """The counts of all queues together: queues with a task, all tasks, and the tasks that run, back off, or are parked now.

    Counted since the start: tasks that were ``retired`` after success, tasks that were ``dropped``, runs that failed, and
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
    """The limit on one kind of work: the number of slots, of slots in use, and of requests that wait for a slot.

    The kind ``work`` limits all kinds except ``api`` together: a request for a slot of any of these kinds also waits for a
    slot of ``work``.
    """

    kind: str
    limit: int
    used: int
    waiting: int


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """The counts of a pool of workers that run code from packages. ``workers`` are alive now. ``requests``, and workers that
    were ``replaced`` because they hung or died, are counted since the start.
    """

    workers: int
    requests: int
    replaced: int


@dataclass(frozen=True, slots=True)
class SchedulesSnapshot:
    """The clock of all hooks: the number of crontabs now, the number of ticks since the start, and the time of the next tick."""

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
    """The counts of the store of packages on disk. ``locked``: digests that are being downloaded or deployed. ``temporary``:
    temporary paths in use. ``pinned``: packages that are downloaded, but not deployed yet.
    """

    locked: int
    temporary: int
    pinned: int


@dataclass(frozen=True, slots=True)
class ObjectCounts:
    """The objects of all releases. ``health`` is the state of the reconciler, such as ``OK, 3 objects`` or
    ``Degraded, 2 errors``.

    Counted now: objects that are to be applied or deleted (``pending``), objects that are checked again (``refreshing``),
    objects that failed and are retried (``failing``), and requests to the API server that hang, or that are made for a
    release whose earlier requests hung (``slow``). Counted since the start: objects deleted by prunes (``pruned``), and
    prunes that failed.
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
    """The counts of the daemon. ``trying_crds`` are the packages that apply their CRDs first, while all other packages wait.

    ``filters`` (jq), ``rules`` (CEL), ``store`` and ``objects`` are None if the part behind them keeps no counts. ``warm``
    (workers for Python hooks; ``replaced`` counts the zygotes that fork them) and ``charts`` (workers of the chart engine) are
    None if the daemon has no workers of that kind. ``renderer``: the program that renders charts, such as
    ``chart engine, helm v4.3.1``.
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
    """The memory of the daemon. A page that several processes share is divided among them, so that the numbers can be added.

    ``own_bytes`` is the memory of the daemon's process now, ``peak_bytes`` the most that was resident since the start.
    ``programs`` has all processes below the daemon's process, by program. ``parts`` has what the daemon keeps in its own
    memory. The sizes of parts are estimates that leave out most of Python's overhead, so the parts take more memory than
    stated.
    """

    own_bytes: int
    peak_bytes: int
    programs: tuple[MemoryPartSnapshot, ...] = ()
    parts: tuple[MemoryPartSnapshot, ...] = ()


@dataclass(frozen=True, slots=True)
class WarmPoolSnapshot:
    """The pool of one Python interpreter for warm hooks, the processes of one persistent hook, or the pool of a WorkerPool.

    ``kind`` is ``interpreter``, ``persistent`` or ``pods``. The pool of a WorkerPool is named ``namespace/name``; its members
    are pods, and ``waiting`` counts claims. Its ``state`` is ``ready``, or the reason of its condition; ``restarts`` counts
    pods that were replaced because they did not become ready, and ``starting`` and ``claimed`` count pods. A persistent hook
    is named as in the log; ``size`` counts its processes, ``reserved`` those that serve a run now, and ``started`` the runs
    that these processes have begun. ``memory_bytes`` is the memory of the pool's processes; it counts against
    ``memory_limit_bytes``, the limit of all pools of processes together. Both are 0 for pods. The rest of this text is about
    interpreters.

    ``name`` is the program, with a number if several pools run it with different environment variables. ``state``: ``serving``,
    ``starting`` (the zygote, which forks the workers, does not run now) or ``unfit`` (``problem`` says why). ``size`` is the
    number of idle workers that the pool keeps. ``ready`` workers wait for a hook, ``reserved`` workers are claimed, and
    ``waiting`` counts hooks that wait for a worker. ``started``, ``conflicts``, ``failed``, ``expired`` and ``refused`` count
    claims by their outcome, and ``restarts`` counts zygotes that were replaced, all since the pool was opened.
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
    """The facts that packages can require. A version, an edition or a bundle that is not known is ""."""

    kubernetes: str
    platform: str
    edition: str
    bundle: str
    bootstrapped: bool
