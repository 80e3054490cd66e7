"""What the engine knows between two events, and what may be asked of it.

Everything is a persistent map, set or queue: the next state shares with the last one whatever did not change, so that a step
costs what it touches, and a snapshot is a reference. Every id that is there, and for as long as bodies run also one that is
gone, has a :class:`Mark`, which says when it last changed; if it has a body, that is part of its :class:`Node`. Marks and runs
are stamped from one clock that only goes up: whether something changed while a body ran is one comparison.

Invariants, held by tests/runtime/fixpoint/test_state.py after random events:

* ``queued``, ``running`` and ``waiting`` count the nodes that are runnable, running, and waiting for the outside;
* whoever is parked is listed under each of its lacks in ``parked_on``, and, where there are fixpoints, in ``parked``; whoever is
  done or waits outside, under its reads in ``readers``. Others may stand in ``parked``, and of a node that is to run or runs the
  entries of its last outcome may stand in the indexes until its next one;
* a node that is to run has one place in the queue; a place whose node is not to run is passed over.
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
    """How an engine is to behave."""

    drain: bool = True
    """Judge what is parked once nothing else can happen. False: a live daemon, where whatever is lacked may come any time."""
    budget: int = 32
    """How often a node may run again at its own cost; with ``drain`` off: between two rests."""
    depth: int = 64
    """How deep creation may go: what is seeded or comes from outside is at 0, what a node emits is one deeper than it."""


# --- what is told of a node ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Runnable:
    """It is to run."""


@dataclass(frozen=True, slots=True)
class Running:
    """Its body runs."""

    run: int
    level: Level


@dataclass(frozen=True, slots=True)
class Parked:
    """It waits for any of these to change, or for a run of theirs to end; sorted."""

    lacks: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """It waits for the world outside to answer its run, or for any of ``reads`` to change; sorted."""

    run: int
    reads: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """Its last run ended with this result."""

    result: str


Phase: TypeAlias = Runnable | Running | Parked | Waiting | Done

# --- what is kept --------------------------------------------------------------------------------------------------------------


class Stage(Enum):
    """Where a node is; GONE is removed while it has a place in the queue, which is all that is left of it."""

    RUNNABLE = 1
    RUNNING = 2
    PARKED = 3
    WAITING = 4
    DONE = 5
    GONE = 6


class Again(Enum):
    """Whether a node that runs is to run once more, and whether that is at its own cost.

    VOID: it was removed, and what it answers is nobody's. ANEW: and it came back, so it is a new node that is to run.
    """

    NO = 0
    FREE = 1
    CHARGED = 2
    VOID = 3
    ANEW = 4


class Mark(NamedTuple):
    """When an id last changed, by its content, its result or its end, and when it last ended a run; 0 is never."""

    changed: int = 0
    finished: int = 0
    digest: str | None = None
    """Of its content; None: not known, so that whatever comes is news."""
    cause: Id | None = None
    """Whose run it was that changed it last; None: the world outside."""
    present: bool = False


class Said(NamedTuple):
    """What a body last answered, published or not: what a Noop lets stand."""

    result: str
    reads: tuple[Id, ...]
    differed: bool = False
    """It was out of date, and not what had been published: who saw it all the same is to be told of what is published next."""


class Account(NamedTuple):
    """What a node's runs cost (see :mod:`wharfinger.runtime.fixpoint.budget`)."""

    episode: int = 0
    """The one that ``charges`` and ``spent`` are of; in another one they are nothing."""
    charges: int = 0
    spent: bool = False
    """It is exhausted: it does not run."""
    paid: bool = False
    """The run that it is queued for is charged already."""
    news: bool = False
    """It published something new since it was last charged."""
    cause: Id | None = None
    """Whose run it was that it was last charged for; None: nobody's, the world outside."""


class Origin(NamedTuple):
    """Who made a node, and how deep that is; nobody: it was seeded, or came from outside."""

    creator: Id | None = None
    depth: int = 0


class Node(NamedTuple):
    """One node, as it is between two events."""

    mark: Mark | None
    """None: it was removed, and its mark is among those of what has no node."""
    stage: Stage
    run: int
    """When it was last dispatched, which is also the name of that run; 0: never."""
    level: Level
    again: Again
    lacks: tuple[Id, ...]
    """Where it is listed in ``parked_on``, if it is parked; else where it may be."""
    reads: tuple[Id, ...]
    """Where it is listed in ``readers``."""
    result: str | None
    said: Said | None
    account: Account
    origin: Origin
    sweep: bool
    """It is to run again at each fixpoint before which something arrived."""
    queued: bool
    """It has a place in the queue."""


class Fixpoint(NamedTuple):
    """The state of an engine. Its fields are the machine's; ask by the methods."""

    rules: Rules
    clock: int
    episode: int
    charged: bool
    """Somebody was charged in this episode."""
    arrived: int
    """When anything last arrived, or went."""
    latest: int
    """When anything last changed, or ended a run: a run that began later need not look what it missed."""
    marks: "HashTrieMap[Id, Mark]"
    """Of data, and of what is gone."""
    nodes: "HashTrieMap[Id, Node]"
    queue: Fifo[Id]
    parked_on: "HashTrieMap[Id, HashTrieSet[Id]]"
    readers: "HashTrieMap[Id, HashTrieSet[Id]]"
    parked: Fifo[Id]
    """Who was parked since the last fixpoint, and who still was at that one."""
    sweepers: "HashTrieSet[Id]"
    loops: "HashTrieMap[Id, tuple[Id, ...]]"
    """Of who is queued at FORCE, and is on a cycle."""
    gone: "HashTrieSet[Id]"
    """Removed while a body ran: their marks stand until none does."""
    queued: int
    running: int
    waiting: int
    told: bool
    """Converged was said, and nothing happened since."""
    cancelled: bool

    def phase(self, who: Id) -> Phase | None:
        """How a node is; None: there is no such node. One that was removed while it runs still runs."""
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
        """What was last published of it, also while it runs again; None: it never was done, or is not there."""
        node = self.nodes.get(who)
        return node.result if node is not None and node.again not in (Again.VOID, Again.ANEW) else None

    def results(self) -> dict[Id, str]:
        """What was last published of each node that was ever done, sorted. Costs a look at every node."""
        return {who: result for who in sorted(self.nodes) if (result := self.result(who)) is not None}

    def present(self, who: Id) -> bool:
        """A node, or data that has arrived."""
        node = self.nodes.get(who)
        mark = self.marks.get(who) if node is None or node.mark is None else node.mark
        return mark is not None and mark.present

    def waiters(self, who: Id) -> tuple[Id, ...]:
        """Who is parked on it, or would run again if it changed; sorted."""
        return tuple(sorted(self._waiters(who)))

    def _waiters(self, who: Id) -> Iterator[Id]:
        for waiter in self.parked_on.get(who, ()):
            if self.nodes[waiter].stage is Stage.PARKED:
                yield waiter
        for reader in self.readers.get(who, ()):
            if self.nodes[reader].stage in (Stage.DONE, Stage.WAITING):
                yield reader

    def lacks(self, who: Id) -> tuple[Id, ...]:
        """What a parked node is parked on, sorted; nothing for any other."""
        node = self.nodes.get(who)
        return node.lacks if node is not None and node.stage is Stage.PARKED else ()

    def charges(self, who: Id) -> int:
        """What it was charged in this episode."""
        node = self.nodes.get(who)
        return node.account.charges if node is not None and node.account.episode == self.episode else 0

    def at_rest(self) -> bool:
        """Nothing is to run and nothing runs; nodes may be parked, or wait for the world outside."""
        return not self.queued and not self.running
