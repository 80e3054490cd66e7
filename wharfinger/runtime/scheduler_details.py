"""Snapshots of the scheduler's nodes, and explanations of the states of packages. They are part of the Inspector's answers."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class DependencySnapshot:
    """A dependency of a node. An empty constraint means any version; an optional dependency counts only while its package
    exists.
    """

    name: str
    constraint: str
    optional: bool


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group of packages: at least one must be on (``kind`` "anyOf"), or none may be on ("noneOf"). Members are sorted by
    name.
    """

    kind: str
    name: str
    members: tuple[DependencySnapshot, ...]


@dataclass(frozen=True, slots=True)
class VoteSnapshot:
    """The vote of one rule on a package, with its reason. ``verdict`` is "Enable", "Disable" or "Forbid"; it is "Undefined" while
    the package's ``enabled`` script has not voted yet.
    """

    verdict: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class LackSnapshot:
    """One thing that a parked node waits for. ``kind`` is "package", "tier", "vote" or "pause". ``state`` is the state of that
    thing, such as "idle" or "failed" for a package.
    """

    kind: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One package as the scheduler sees it (spec/runtime §4.9), dependencies sorted by name.

    ``order`` is the effective order; ``state`` is "idle", "scheduled" or "active"; ``decision`` is "Enable", "Disable",
    "Forbid" or "Undefined"; only a node with "Enable" is on. ``since`` is the time when the node entered its state, got a new
    decision, or was parked to wait for the things in ``lacks``. ``run`` is the number of the last run that the scheduler
    ordered (0 if there was none); ``failed`` is True if that run failed, even if it is retried. ``votes`` are the votes of
    all rules that voted, in order; ``dependents`` are the packages whose requirements name this package.
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
    """One link of the chain of causes: its subject, the subject's state, and the time since when the subject has been in that
    state.
    """

    subject: str
    state: str
    message: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExplanationSnapshot:
    """The explanation of a package's state: the chain of causes with the root cause last, and the remedy for the root cause.

    ``also`` lists further causes, one per line. ``ready`` is True if there is nothing to explain. If the installed package is
    ready but has to run again, the explanation says what that run waits for.
    """

    name: str
    ready: bool
    causes: tuple[CauseSnapshot, ...]
    remedy: str = ""
    also: tuple[str, ...] = ()
