"""The nodes of a tree after a build: the state, the maker and the dependencies of each node. Pure.

A node is an object that is built, such as a source, a Kustomization, a release or a package. Other objects, such as ConfigMaps,
are listed only if a node depends on them, with the state ``data``, or ``absent`` if they are not in the tree.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from wharfinger.offline.orchestrator.result import FILES, Result
from wharfinger.offline.store.kinds import STANDINS
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id


class NodeState(StrEnum):
    """The state of a node after a build, or of something that a node depends on."""

    BUILT = "built"
    FAILED = "failed"
    BLOCKED = "blocked"
    """The node was not built, because a node that it needs failed."""
    SKIPPED = "skipped"
    ORPHAN = "orphan"
    """A file declares the node, but nothing builds that file."""
    DATA = "data"
    """An object that is only read, not built, such as a ConfigMap or a Secret."""
    ABSENT = "absent"
    """An object that a node depends on, but that is not in the tree."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a tree after a build. ``objects`` is the number of objects that it makes; ``made_by`` is None if no node
    makes it.

    ``message`` is the reason why the node is not built. ``depends_on`` are the nodes and data that it read, sorted.
    """

    id: Id
    state: NodeState
    objects: int = 0
    place: Place | None = None
    made_by: Id | None = None
    depends_on: tuple[Id, ...] = ()
    message: str = ""


def nodes_of(result: Result) -> tuple[Node, ...]:
    """Return all nodes of a build, and everything that they depend on, sorted by id."""
    makers = result.makers
    ids = {*result.depends_on, *result.manifests, *result.failed, *result.skipped, *result.orphans} - set(
        _files(result)
    )
    all_read = {each for reads in result.depends_on.values() for each in reads}
    # A build adds a node for the source of the tree itself. It is left out if no file declares it and nothing reads it.
    ids = {who for who in ids if who in all_read or who in makers or not _is_unwritten(who, result)}
    read = {each for each in all_read - ids if each.kind not in STANDINS}
    nodes = [_node(who, result, makers) for who in ids]
    nodes += [_data(who, result, makers) for who in read]
    return tuple(sorted(nodes, key=lambda each: each.id))


def _is_unwritten(who: Id, result: Result) -> bool:
    """Return whether no file declares a node, and the node has made no objects although it did not fail and was not skipped."""
    declared = who in result.places or who in result.orphans
    return not declared and not result.manifests.get(who) and who not in result.failed and who not in result.skipped


def _node(who: Id, result: Result, makers: Mapping[Id, Id]) -> Node:
    failure = result.failed.get(who)
    place = result.places.get(who) or result.orphans.get(who)
    state, message = NodeState.BUILT, ""
    if failure is not None:
        state = NodeState.FAILED if failure.is_primary else NodeState.BLOCKED
        message, place = failure.message, place or failure.place
    elif who in result.skipped:
        state, message = NodeState.SKIPPED, result.skipped[who]
    elif who in result.orphans:
        state, message = NodeState.ORPHAN, "nothing builds the file that declares it"
    reads = tuple(sorted(each for each in result.depends_on.get(who, ()) if each.kind not in STANDINS))
    return Node(who, state, len(result.manifests.get(who, ())), place, makers.get(who), reads, message)


def _data(who: Id, result: Result, makers: Mapping[Id, Id]) -> Node:
    place, maker = result.places.get(who), makers.get(who)
    if maker is not None and maker.kind == FILES:
        maker = None
    is_known = place is not None or who in makers
    return Node(who, NodeState.DATA if is_known else NodeState.ABSENT, 0, place, maker)


def _files(result: Result) -> Iterator[Id]:
    return (producer for producer in result.manifests if producer.kind == FILES)
