"""Snapshots of the scheduler's nodes, and explanations of the states of packages. They are part of the Inspector's answers."""

from dataclasses import dataclass
from datetime import datetime


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

    ``order`` is the effective one; ``state`` is "idle", "scheduled" or "active"; ``decision`` is "Enable", "Disable", "Forbid"
    or "Undefined"; only a node with "Enable" is on. ``since`` is the time when it entered its state, got a new decision, or was
    parked on what it ``lacks``. ``run`` is the number of the last ordered run (0: none); ``failed`` is True if that run failed,
    even if it is retried. ``votes`` are the votes of all rules that voted, in order; ``dependents`` are the packages that require
    this one.
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
    """The explanation of a package's state: the chain of causes, its root last, and the remedy of the root.

    ``also`` lists further causes, one per line. ``ready`` is True if there is nothing to explain. If the package is ready as
    installed but has to run again, the explanation is about the wait of that run.
    """

    name: str
    ready: bool
    causes: tuple[CauseSnapshot, ...]
    remedy: str = ""
    also: tuple[str, ...] = ()
