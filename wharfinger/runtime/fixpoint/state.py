"""The state of the engine between two events, and its queries.

All collections are persistent: each state shares all unchanged parts with the state before it. So the cost of a step depends
only on its changes, and a snapshot of the state is just a reference. Every id that is present has a :class:`Mark`, which says
when the id last changed; a removed id keeps a mark while bodies run. If the id has a body, the mark is part of its
:class:`Node`. Marks and runs get their stamps from one clock that only goes up, so one comparison shows whether an id changed
while a body ran.

Invariants, which tests/runtime/fixpoint/test_state.py checks after random events:

* ``queued``, ``running`` and ``waiting`` count the nodes that are runnable, running, and waiting for the outside;
* a parked node is listed under each of its lacks in ``parked_on`` and, if ``Rules.drain`` is set, in ``parked``; a node that
  is done or waits outside is listed under its reads in ``readers``. ``parked`` may contain nodes that are not parked any
  more. While a node is queued or runs, the indexes may still have the entries of its last outcome;
* a node that is to run has one place in the queue; a place whose node is not to run is skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from rpds import HashTrieMap, HashTrieSet

from wharfinger.queue.fifo import Fifo
from wharfinger.runtime.fixpoint.model import Id, Level


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of an engine: its limits, and whether its parked nodes are run at stricter levels (``drain``)."""

    drain: bool = True
    """True if the engine looks for fixpoints: once no node can run, it runs the parked nodes at stricter levels. False in the
    daemon, where a missing id may appear at any time.
    """
    budget: int = 32
    """The number of charged runs that a node may have in one episode. The docstring of ``wharfinger.runtime.fixpoint`` defines
    charged runs and episodes.
    """
    depth: int = 64
    """The limit on the depth of nodes. Seeds and emissions from outside are at depth 0. A node that another node emits is one
    level deeper than the other node.
    """


# --- the stage of a node ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Runnable:
    """The node is to run."""


@dataclass(frozen=True, slots=True)
class Running:
    """The body of the node runs."""

    run: int
    level: Level


@dataclass(frozen=True, slots=True)
class Parked:
    """The node waits until one of the ids in ``lacks`` changes, or the node with one of these ids ends a run. The ids are
    sorted.
    """

    lacks: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The run of the node has ended without a result. The node runs again when the event Answered reports that the result is
    available, or when any id in ``reads`` changes. The ids are sorted.
    """

    run: int
    reads: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The node has ended with this result."""

    result: str


Phase: TypeAlias = Runnable | Running | Parked | Waiting | Done

# --- the stored values ------------------------------------------------------------------------------------------------------


class Stage(Enum):
    """The stage of a node. GONE: the node was removed while it had a place in the queue, and only that place is left."""

    RUNNABLE = 1
    RUNNING = 2
    PARKED = 3
    WAITING = 4
    DONE = 5
    GONE = 6


class Again(Enum):
    """The decision whether a running node runs once more after its present run.

    NO: it does not. FREE: it does, and this alone is not charged to the node's budget. CHARGED: it does, and the run is
    charged. VOID: the node was removed, so the outcome of the present run is discarded. ANEW: the node was removed and came
    back, so it runs as a new node.
    """

    NO = 0
    FREE = 1
    CHARGED = 2
    VOID = 3
    ANEW = 4


class Mark(NamedTuple):
    """The stamps of an id: ``changed`` is the stamp of its last creation, removal, or change of content or result, and
    ``finished`` is the stamp of the last end of a run of its node. 0 means never.
    """

    changed: int = 0
    finished: int = 0
    digest: str | None = None
    """The digest of the id's content; None if the digest is unknown, so that any emission of the id counts as a change."""
    cause: Id | None = None
    """The node whose run last changed the id; None if the change came from outside of the engine."""
    present: bool = False


class LastAnswer(NamedTuple):
    """The last answer of a body, published or not. If a later run of the body returns a Noop, this answer remains valid."""

    result: str
    reads: tuple[Id, ...]
    differed: bool = False
    """True if the answer differed from the published answer, but was not published, because another run of the node
    had become necessary meanwhile. Then the next answer that is published counts as a change.
    """


class Account(NamedTuple):
    """The charges of a node (see :mod:`wharfinger.runtime.fixpoint.budget`)."""

    episode: int = 0
    """The episode to which ``charges`` and ``spent`` belong; in any other episode they are ignored."""
    charges: int = 0
    spent: bool = False
    """True if the node's budget is used up, so that the node does not run."""
    paid: bool = False
    """True if the node is queued, and its next run was already charged to its budget."""
    news: bool = False
    """True if the node has published something new since the last charge to its budget."""
    cause: Id | None = None
    """The node whose run caused the last charge; None if an event from outside of the engine caused it."""


class Origin(NamedTuple):
    """The creator of a node, and its depth. Nodes that were seeded or came from outside have no creator."""

    creator: Id | None = None
    depth: int = 0


class Node(NamedTuple):
    """The state of one node between two events."""

    mark: Mark | None
    """The mark of the node's id. It is None if the node was removed; the mark is then in ``Fixpoint.marks``."""
    stage: Stage
    run: int
    """The stamp of the node's last dispatch, which also identifies that run; 0 if the node was never dispatched."""
    level: Level
    again: Again
    lacks: tuple[Id, ...]
    """The ids that the node waits for while it is parked; ``parked_on`` lists the node under each of them. After the node has
    left this stage, it may still be listed there.
    """
    reads: tuple[Id, ...]
    """The ids under which the node is listed in ``readers``."""
    result: str | None
    said: LastAnswer | None
    account: Account
    origin: Origin
    sweep: bool
    """True if the node requested sweeps: at each fixpoint, it runs again if anything arrived since its last run."""
    queued: bool
    """True if the node has a place in the queue."""


class Fixpoint(NamedTuple):
    """The state of an engine. Only modules of this package use its fields; all other callers use the methods."""

    rules: Rules
    clock: int
    episode: int
    charged: bool
    """True if a run was charged to the budget of any node in this episode."""
    arrived: int
    """The stamp of the last time that an id was removed, or arrived (it was new, or got new content)."""
    latest: int
    """The stamp of the last event that changed an id or ended a run. If a run has a later stamp, nothing changed since that
    run began.
    """
    marks: "HashTrieMap[Id, Mark]"
    """The marks of ids without a node: of data, and of removed ids. If a node was created anew while the body of the removed
    node still runs, its mark is here, too.
    """
    nodes: "HashTrieMap[Id, Node]"
    queue: Fifo[Id]
    parked_on: "HashTrieMap[Id, HashTrieSet[Id]]"
    readers: "HashTrieMap[Id, HashTrieSet[Id]]"
    parked: Fifo[Id]
    """The nodes that were parked since the last fixpoint, and the nodes that stayed parked at the last fixpoint."""
    sweepers: "HashTrieSet[Id]"
    loops: "HashTrieMap[Id, tuple[Id, ...]]"
    """For each node that is queued to run at ``Level.FORCE`` and lies on a cycle: the nodes of the cycle, this node first."""
    gone: "HashTrieSet[Id]"
    """The ids that were removed while a body ran; their marks are kept until no body runs."""
    queued: int
    running: int
    waiting: int
    told: bool
    """True if the last report Converged is still valid: after it, there was no event except Pulled."""
    cancelled: bool

    def phase(self, who: Id) -> Phase | None:
        """Return the phase of a node; None if there is no such node. A node that was removed during a run counts as running."""
        node = self.nodes.get(who)
        if node is None:
            return None
        match node.stage:
            case Stage.RUNNABLE:
                return Runnable()
            case Stage.RUNNING:
                return Running(node.run, node.level)
            case Stage.PARKED:
                return Parked(node.lacks)
            case Stage.WAITING:
                return Waiting(node.run, node.reads)
            case Stage.DONE:
                return Done(node.result or "")
            case Stage.GONE:
                return None

    def result(self, who: Id) -> str | None:
        """Return the result that was last published, even while the node runs again; None if the node was never done, or is
        absent.
        """
        node = self.nodes.get(who)
        return node.result if node is not None and node.again not in (Again.VOID, Again.ANEW) else None

    def results(self) -> dict[Id, str]:
        """Return the last published result of each node that was ever done, sorted by id. Visits every node."""
        return {who: result for who in sorted(self.nodes) if (result := self.result(who)) is not None}

    def present(self, who: Id) -> bool:
        """Return whether the id is a node, or data that has arrived."""
        node = self.nodes.get(who)
        mark = self.marks.get(who) if node is None or node.mark is None else node.mark
        return mark is not None and mark.present

    def waiters(self, who: Id) -> tuple[Id, ...]:
        """Return the nodes that are parked on the id, or would run again if the id changed; sorted."""
        return tuple(sorted(self._waiters(who)))

    def _waiters(self, who: Id) -> Iterator[Id]:
        for waiter in self.parked_on.get(who, ()):
            if self.nodes[waiter].stage is Stage.PARKED:
                yield waiter
        for reader in self.readers.get(who, ()):
            if self.nodes[reader].stage in (Stage.DONE, Stage.WAITING):
                yield reader

    def lacks(self, who: Id) -> tuple[Id, ...]:
        """Return the ids on which a node is parked, sorted; an empty tuple for a node that is not parked."""
        node = self.nodes.get(who)
        return node.lacks if node is not None and node.stage is Stage.PARKED else ()

    def charges(self, who: Id) -> int:
        """Return how often the node's budget was charged in the current episode."""
        node = self.nodes.get(who)
        return node.account.charges if node is not None and node.account.episode == self.episode else 0

    def at_rest(self) -> bool:
        """Return whether no node runs or is to run. Nodes may still be parked, or wait for an event from outside of the
        engine.
        """
        return not self.queued and not self.running
