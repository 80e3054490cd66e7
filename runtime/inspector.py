"""The one read interface of the runtime: frozen snapshots, taken in one step, with nothing secret in them.

`debug/` sees this module and nothing else of the runtime; nothing below sees `debug/`. The socket client of `debug/`
implements the same protocol against a running daemon, so whatever prints a snapshot works on both.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from wharfinger.formats.json_value import JsonObject


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
class PackageSnapshot:
    """One package: who it is, what is wanted, what it is doing, and how it is."""

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
