"""The state of an engine while one event is processed: the fields of the state are changed in place, and then frozen again.

Without a draft, an event that changes ten nodes would make ten states. A draft exists during one step only, and shares only
persistent data structures with states. It keeps the indexes and counts consistent, and contains none of the engine's rules.
"""

from collections.abc import Collection
from typing import Final, TypeAlias

from rpds import HashTrieMap, HashTrieSet

from wharfinger.queue.fifo import Fifo
from wharfinger.runtime.fixpoint.model import Effect, Id
from wharfinger.runtime.fixpoint.state import Fixpoint, Mark, Node, Stage

_Index: TypeAlias = "HashTrieMap[Id, HashTrieSet[Id]]"

NO_MARK: Final = Mark()
_NOBODY: "Final[HashTrieSet[Id]]" = HashTrieSet()
_FEW: Final = 10
"""The number of entries up to which a search is as fast as making a set of the entries."""


class News:
    """An event that may wake other nodes. ``who`` is the id that changed, or the node whose run ended; ``cause`` is the node
    whose run caused this.
    """

    __slots__ = ("arrival", "cause", "changed", "who")

    def __init__(self, who: Id, *, arrival: bool, changed: bool, cause: Id | None) -> None:
        self.who = who
        self.arrival = arrival
        self.changed = changed
        self.cause = cause


class Draft:
    """One step's working copy of a :class:`Fixpoint`; ``clock`` is one higher than the clock of the state, and is the stamp
    of all changes of this step.
    """

    __slots__ = (*Fixpoint._fields, "effects", "news")

    def __init__(self, state: Fixpoint) -> None:
        (
            self.rules,
            clock,
            self.episode,
            self.charged,
            self.arrived,
            self.latest,
            self.marks,
            self.nodes,
            self.queue,
            self.parked_on,
            self.readers,
            self.parked,
            self.sweepers,
            self.loops,
            self.gone,
            self.queued,
            self.running,
            self.waiting,
            self.told,
            self.cancelled,
        ) = state
        self.clock = clock + 1
        self.effects: list[Effect] = []
        self.news: list[News] = []

    def frozen(self) -> Fixpoint:
        """Return the state after the step."""
        return Fixpoint(
            self.rules,
            self.clock,
            self.episode,
            self.charged,
            self.arrived,
            self.latest,
            self.marks,
            self.nodes,
            self.queue,
            self.parked_on,
            self.readers,
            self.parked,
            self.sweepers,
            self.loops,
            self.gone,
            self.queued,
            self.running,
            self.waiting,
            self.told,
            self.cancelled,
        )

    def put(self, who: Id, node: Node) -> None:
        """Store the node."""
        self.nodes = self.nodes.insert(who, node)

    def mark(self, who: Id) -> Mark:
        """Return the mark of an id, which has the stamps of the id's last changes; NO_MARK if the id was never present."""
        node = self.nodes.get(who)
        return (node.mark if node is not None else None) or self.marks.get(who, NO_MARK)

    def enqueue(self, who: Id) -> None:
        """Give the node a place at the end of the queue."""
        self.queue = self.queue.put(who)

    def leave(self, node: Node) -> None:
        """Remove the node from the count of its present stage, before its stage is changed and ``put`` stores it."""
        stage = node.stage
        if stage is Stage.RUNNABLE:
            self.queued -= 1
        elif stage is Stage.RUNNING:
            self.running -= 1
        elif stage is Stage.WAITING:
            self.waiting -= 1

    def park(self, who: Id) -> None:
        """Add the node to the parked nodes that are processed at the next fixpoint. Do nothing if the engine does not process
        fixpoints (``Rules.drain`` is False).
        """
        if self.rules.drain:
            if len(self.parked) > 2 * len(self.nodes):
                self.parked = Fifo.of(self.still_parked())
            self.parked = self.parked.put(who)

    def still_parked(self) -> dict[Id, Node]:
        """Return the nodes in ``parked`` that are still parked, in no particular order."""
        nodes = self.nodes
        return {who: node for who in self.parked if (node := nodes.get(who)) is not None and node.stage is Stage.PARKED}

    def list_under(self, who: Id, node: Node, lacks: tuple[Id, ...], reads: tuple[Id, ...]) -> None:
        """Replace the entries of a node in the indexes: instead of under the ids in ``node.lacks`` and ``node.reads``, list it
        under the ids in ``lacks`` and ``reads``.
        """
        if node.lacks or lacks:
            self.parked_on = _relisted(self.parked_on, who, node.lacks, lacks)
        if node.reads != reads:
            self.readers = _relisted(self.readers, who, node.reads, reads)

    def forget(self, who: Id, node: Node) -> None:
        """Remove the node and its entries in all indexes, but leave ``marks`` unchanged."""
        self.list_under(who, node, (), ())
        self.sweepers = self.sweepers.discard(who)
        self.loops = self.loops.discard(who)
        self.nodes = self.nodes.discard(who)


def _relisted(index: "_Index", who: Id, before: tuple[Id, ...], after: tuple[Id, ...]) -> "_Index":
    """Return the index with ``who`` listed under all ids in ``after``, and removed from all other ids in ``before``."""
    kept: Collection[Id] = after if len(after) < _FEW else set(after)
    for key in before:
        if key not in kept:
            found = index.get(key)
            if found is not None:
                left = found.discard(who)
                index = index.insert(key, left) if left else index.discard(key)
    for key in after:
        found = index.get(key, _NOBODY)
        if who not in found:
            index = index.insert(key, found.insert(who))
    return index
