"""The messages between the engine and its driver: ids, outcomes of bodies, events, and effects.

Source: spec/schedulers §A.1. The program that is described there uses heuristics. This engine uses the stamps of the last
changes of ids instead (§A.13 item 9, part E rule 1).
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias


class Id(NamedTuple):
    """The name of a node, or of a piece of data that nodes read; ordered by kind, then namespace, then name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``kind/namespace/name``, without the parts that are empty."""
        return "/".join(part for part in self if part)


class Level(IntEnum):
    """The strictness with which a body treats an id that it needs, and that is absent or not done yet (spec/schedulers §A.2).

    The level is fixed when the body is dispatched.
    """

    NONE = 0
    """The body blocks on an id that is absent, because it may still appear, and on an id that is not done yet."""
    CASCADE = 1
    """The body fails if an id is absent, because it will not appear. It blocks on ids that are present and not done yet."""
    FORCE = 2
    """The body fails if an id is absent, and also if it is present and not done yet, because it will not be done. Only nodes on
    a cycle, and nodes that wait for no parked node, are run at this level.
    """


@dataclass(frozen=True, slots=True)
class Emission:
    """An id that a body or the world outside has created, with the digest of its content. An emission with an unchanged
    digest is not a change.

    If ``runnable`` is true, the id is a node with a body; otherwise it is data, which nodes may lack or read.
    """

    id: Id
    digest: str
    runnable: bool = True


# --- what a body answers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Terminal:
    """The body is done. ``result`` is the result for other nodes; it counts as a change only if it differs from the last result.

    A change of any id in ``reads`` makes the node run again. All ``emissions`` are published in one step, together with this
    outcome.
    """

    result: str
    reads: tuple[Id, ...] = ()
    emissions: tuple[Emission, ...] = ()


@dataclass(frozen=True, slots=True)
class Noop:
    """The body is done with the same outcome as its last run: its result and reads are kept, and nothing is emitted."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The body cannot continue, because it lacks the ids in ``lacks`` (at least one id). A lacked id may be absent, or
    present but not done. Nothing is published.
    """

    lacks: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class DependencyFailed:
    """The body has ended because the ids in ``failed`` are missing or have failed. The node runs again when any of them
    changes. ``result`` is the result for other nodes, as in Terminal.
    """

    failed: tuple[Id, ...]
    result: str


@dataclass(frozen=True, slots=True)
class Outside:
    """The body waits for a result from outside of the engine. The node runs again when the event Answered reports that the
    result is available, or when any id in ``reads`` changes.

    There is no fixpoint while a node waits in this way.
    """

    reads: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Crashed:
    """An unexpected error ended the body. The node's result is ``crashed: ``, followed by the message."""

    message: str


Outcome: TypeAlias = Terminal | Noop | Blocked | DependencyFailed | Outside | Crashed

# --- what happened ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seeded:
    """The initial nodes, in any order; known nodes and duplicates are ignored."""

    ids: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Arrived:
    """An id was created or got new content, by code outside of the engine."""

    emission: Emission


@dataclass(frozen=True, slots=True)
class Removed:
    """An id no longer exists. Nodes that have read its content, or are parked because they lack it, run again."""

    id: Id


@dataclass(frozen=True, slots=True)
class Asked:
    """Code outside of the engine requests another run of a node, although nothing that the node reads has changed. This
    request alone does not charge the node's budget of runs.
    """

    id: Id


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to the run ``run`` of a node has arrived from outside of the engine. If the node does not wait for this
    answer, nothing changes.
    """

    id: Id
    run: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A body has reported its outcome. If the run is not the node's current one, nothing changes.

    With ``sweep``, the node runs again at each fixpoint if anything arrived since its last run, because it reads more ids than
    it can name.
    """

    id: Id
    run: int
    outcome: Outcome
    sweep: bool = False


@dataclass(frozen=True, slots=True)
class Pulled:
    """The driver can run one more body, or checks whether the engine has converged."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The engine was cancelled: no body is dispatched and no fixpoint is processed any more; reports of running bodies are
    still processed.
    """


Event: TypeAlias = Seeded | Arrived | Removed | Asked | Answered | Finished | Pulled | Cancelled

# --- what is to be done -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Run the body of a node, and report the outcome as Finished with the same ``run``. At the level FORCE, ``loop`` is a cycle
    that contains the node; it is empty if there is none. The cycle begins with ``id``; each member lacks the next member, and
    the last lacks ``id``.
    """

    id: Id
    run: int
    level: Level
    loop: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A body has reported that it lacks ids even at the level FORCE, so the engine has ended the node with the result
    ``unresolved``.
    """

    id: Id
    lacks: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A node would have been charged more often than its budget allows, or the chain of nodes that created it is too long. The
    engine has ended the node, which does not run again in this episode (see :mod:`wharfinger.runtime.fixpoint`).

    ``loop`` has the ids that keep waking each other, or a chain of ids that ends with ``id`` and in which each id wakes or
    creates the next one. ``message`` names these ids. The node's result is ``exhausted: ``, followed by the message.
    """

    id: Id
    message: str
    loop: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Converged:
    """The end: no body runs or is to run, and no node is parked or waits for the world outside."""


Effect: TypeAlias = Dispatch | Unresolved | Exhausted | Converged
