"""The one read interface of the runtime: frozen snapshots, taken in one step, with nothing secret in what they show.

`PackageSnapshot.secrets` is the exception: it names what must not be shown, is never encoded, and does not cross the socket.

`debug/` sees this module and nothing else of the runtime; nothing below sees `debug/`. The socket client of `debug/`
implements the same protocol against a running daemon, so whatever prints a snapshot works on both.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from wharfinger.formats.json_value import JsonObject
from wharfinger.formats.openapi_schema import Problem


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
    """One queued task (spec/runtime §3, dump): times in seconds, ``retry_in_s`` only while it waits after a failure."""

    index: int
    name: str
    lane: str
    enqueued_s_ago: float
    attempt: int
    running: bool
    retry_in_s: float | None
    error: str
    cause: str


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """One package's queue, head first."""

    name: str
    tasks: tuple[TaskSnapshot, ...]


@dataclass(frozen=True, slots=True)
class HookSnapshot:
    """One hook: what it is bound to (``onStartup 10``, ``kubernetes configmaps``, ``schedule nightly 0 3 * * *``), how it went.

    ``last_run`` is when its last run ended, None before the first; ``last_error`` is empty when that run succeeded.
    """

    name: str
    bindings: tuple[str, ...]
    runs: int
    last_run: datetime | None
    last_error: str


@dataclass(frozen=True, slots=True)
class PackageSnapshot:
    """One package: who it is, what is wanted, what is installed, what it is doing, and how it is.

    ``version`` and ``digest`` are what is wanted, ``installed_version`` and ``installed_digest`` what the cluster has (empty:
    nothing). ``values`` are those it was last rendered with, redacted by the runtime, which knows their schema.
    ``secrets`` are texts that may not appear in anything said about this package or its queue.
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
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class DependencySnapshot:
    """What a node builds on; an empty constraint means any version, an optional one counts only while it is there."""

    name: str
    constraint: str
    optional: bool


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One package as the scheduler sees it (spec/runtime §4.9), dependencies sorted by name.

    ``order`` is the effective one; ``state`` "idle", "scheduled" or "active"; ``decision`` "Enable", "Disable", "Forbid" or
    "Undefined"; only a node with "Enable" is on.
    """

    name: str
    version: str
    order: int
    state: str
    decision: str
    reason: str
    message: str
    dependencies: tuple[DependencySnapshot, ...]


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
    """The daemon itself."""

    version: str
    pid: int
    started: datetime
    ready: bool
    cluster: str
    packages: int
    draining: bool


class Inspector(Protocol):
    """Questions a running daemon answers. Every answer is a snapshot: consistent in itself, and no handle on anything."""

    async def daemon(self) -> DaemonSnapshot:
        """The daemon."""
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

    async def render(self, name: str) -> RenderSnapshot | None:
        """What the package of this name would apply now, or None when there is no such package."""
        ...

    async def validate(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
        """Whether the package of this name would take these settings, or None when there is no such package.

        ``version`` is that of the schema that they are written for; 0: the newest.
        """
        ...
