"""The state of the scheduler: the packages with their phases, and the states of the engine, the gates and the tiers.

:mod:`wharfinger.runtime.scheduler.machine` explains them. All objects are frozen and persistent: a step copies only the parts
that it changes. So a query such as `would_break` is a step whose result is dropped.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from rpds import HashTrieMap, HashTrieSet

from wharfinger.runtime.fixpoint.machine import start
from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.fixpoint.state import Fixpoint, Rules
from wharfinger.runtime.scheduler.gates import Decision, decide
from wharfinger.runtime.scheduler.graph import Node, Topology
from wharfinger.runtime.scheduler.rules import Facts, Opinion, ScriptVote
from wharfinger.runtime.scheduler.tiers import Tiers

_FIRST_REASON: Final = "Scheduled"
PACKAGE: Final = "Package"
"""The kind of the ids that packages have in the fixpoint engine."""
_VOTE: Final = "Vote"


@dataclass(frozen=True, slots=True)
class Idle:
    """The phase of a node that has to be scheduled; ``reason`` says why."""

    reason: str = _FIRST_REASON


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The phase of a node whose run was requested and has not succeeded yet; ``run`` is the number of this run."""

    run: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Active:
    """The phase of a node whose last run is done, or that is off."""


Phase: TypeAlias = Idle | Scheduled | Active


@dataclass(frozen=True, slots=True)
class Entry:
    """A node, its phase, and the last decision about it. ``vote_due`` is True if the package's script has not voted
    since the node was added.

    ``since`` is the time when the node entered its phase, got a new decision, or was parked on the ids in ``lacks``. ``run``
    is the number of the last ordered run. ``stuck`` is True if the node is parked on a package whose run failed, or that is
    stuck itself.
    """

    node: Node
    phase: Phase = Idle()
    decision: Decision | None = None
    vote: ScriptVote | None = None
    vote_due: bool = False
    lacks: tuple[Id, ...] = ()
    since: datetime | None = None
    run: int = 0
    stuck: bool = False

    @property
    def on(self) -> bool:
        """Return whether the last decision was that the package is on."""
        return self.decision is not None and self.decision.on

    @property
    def released(self) -> bool:
        """Return whether packages of higher orders need not wait for this package: it is active, its run has failed, or it
        waits, directly or not, for a package whose run has failed.
        """
        return isinstance(self.phase, Active) or self.hopeless

    @property
    def hopeless(self) -> bool:
        """Return whether other packages wait for this package in vain, because its run failed or because it is ``stuck``."""
        return self.stuck or (isinstance(self.phase, Scheduled) and self.phase.failed)


def package_id(name: str) -> Id:
    """Return the engine id of a package."""
    return Id(PACKAGE, "", name)


def vote_id(name: str) -> Id:
    """Return the engine id of the vote of a package's enabled script."""
    return Id(_VOTE, "", name)


@dataclass(frozen=True, slots=True)
class Graph:
    """The whole state of the scheduler. ``runs`` is the number of runs that were ordered so far, ``news`` the number of
    released tiers of which the engine was notified.

    ``subscribers`` has the nodes that subscribe to each package; that package need not have a node. ``touched`` are the names
    whose entry or effective order the last step changed, added or removed; sorted.
    """

    entries: "HashTrieMap[str, Entry]" = HashTrieMap()  # noqa: RUF009 - persistent, as all below
    intents: "HashTrieMap[str, bool]" = HashTrieMap()  # noqa: RUF009
    flags: "HashTrieMap[str, bool]" = HashTrieMap()  # noqa: RUF009
    facts: Facts = Facts()  # noqa: RUF009
    paused: bool = True
    runs: int = 0
    news: int = 0
    topology: Topology = Topology()  # noqa: RUF009
    tiers: Tiers = Tiers()  # noqa: RUF009
    subscribers: "HashTrieMap[str, HashTrieSet[str]]" = HashTrieMap()  # noqa: RUF009
    engine: Fixpoint = start(Rules(drain=False))  # noqa: RUF009
    touched: tuple[str, ...] = field(default=(), compare=False)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Return a view of all nodes by name, without a copy."""
        return Nodes(self.entries)

    def opinion(self, name: str) -> Opinion:
        """Return, for an existing node, the user's intent, the last vote of its enabled script, and the flag that global hooks
        have set for it.
        """
        return Opinion(self.intents.get(name), self.entries[name].vote, self.flags.get(name))

    def standing(self, name: str) -> Decision | None:
        """Return the last decision about a node; None if the node does not exist or was not judged yet."""
        entry = self.entries.get(name)
        return entry.decision if entry else None

    def decisions(self) -> dict[str, Decision]:
        """Return the decisions for the present nodes and facts, even while the scheduler is paused."""
        opinions = {name: self.opinion(name) for name in self.entries}
        return decide(self.nodes, self.topology, self.facts, opinions)


class Nodes(Mapping[str, Node]):
    """A read-only mapping from names to the nodes of ``entries``, without a copy."""

    def __init__(self, entries: "HashTrieMap[str, Entry]") -> None:
        self._entries = entries

    def __getitem__(self, name: str) -> Node:
        return self._entries[name].node

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
