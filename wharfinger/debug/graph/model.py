"""The packages of a daemon as a graph: which packages need, exclude or subscribe to which others, and the state of each.

Every picture (:mod:`wharfinger.debug.graph.text`, ``dot``, ``mermaid``, ``svg``, ``json``) is drawn from this one model, so
all pictures agree. The invariants of the model:

* Both ends of an edge are nodes. A package that is named but does not exist is a node too, with the state ``absent``.
* Nodes are sorted by name, edges by their ends and kind, and there are no duplicates, so equal answers of a daemon give
  equal graphs.

Pure. The scheduler admits no cycles of dependencies, but groups and subscriptions may form them, so this code accepts
cycles.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from wharfinger.debug.printing.node import lack_text
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.scheduler_details import NodeSnapshot


class NodeState(StrEnum):
    """The visible state of a node: the scheduler's state, or the package's own state if that is worse."""

    ACTIVE = "active"
    DEGRADED = "degraded"
    SCHEDULED = "scheduled"
    WAITING = "waiting"
    FAILED = "failed"
    REMOVING = "removing"
    OFF = "off"
    FORBIDDEN = "forbidden"
    UNDECIDED = "undecided"
    UNLOADED = "not loaded"
    """The daemon knows the package, but its scheduler does not: the package is not loaded yet, or loading failed."""
    ABSENT = "absent"
    """The package does not exist, but other packages name it."""


class EdgeKind(StrEnum):
    """The reason why a package names another."""

    NEEDS = "needs"
    NEEDS_IF_THERE = "needs-if-there"
    ANY_OF = "any-of"
    EXCLUDES = "excludes"
    SUBSCRIBES = "subscribes"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One package.

    ``order`` is the effective order; None if the scheduler does not know the package. ``status`` is the package's own state.
    ``message`` explains why the package is not active, and ``waits_for`` describes its blockers.
    """

    name: str
    state: NodeState
    kind: str = ""
    version: str = ""
    order: int | None = None
    status: str = ""
    message: str = ""
    waits_for: tuple[str, ...] = ()
    since: datetime | None = None

    @property
    def state_text(self) -> str:
        """The state, and the package's own status if it adds something: ``active, Ready``."""
        adds = self.status and self.status.lower() != self.state
        return f"{self.state}, {self.status}" if adds else self.state.value

    @property
    def caption(self) -> str:
        """The text below the name: ``1.2.3, active, Ready``."""
        return f"{self.version}, {self.state_text}" if self.version else self.state_text


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge: ``source`` names ``target``.

    ``group`` is the any-of or none-of group. ``waited_for`` is true if the source now waits for the target.
    """

    source: str
    target: str
    kind: EdgeKind
    group: str = ""
    constraint: str = ""
    waited_for: bool = False

    @property
    def label(self) -> str:
        """The group and the constraint: ``database: >=8``; either may be missing."""
        return ": ".join(part for part in (self.group, self.constraint) if part)


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and edges. ``focus`` is the package whose surroundings are shown; None if all packages are shown."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    focus: str | None = None


_KINDS: Final = tuple(EdgeKind)
_GROUPS: Final = {"anyOf": EdgeKind.ANY_OF, "noneOf": EdgeKind.EXCLUDES}
_WORSE: Final = {"Failed": NodeState.FAILED, "Degraded": NodeState.DEGRADED}
_ENDED_EARLY: Final = {"Ready": NodeState.ACTIVE, "RolledBack": NodeState.ACTIVE, "Suspended": NodeState.WAITING}
"""The states of packages for which a node is not shown as failed, although the scheduler reports it as failed. The value is the
state that is shown instead. If the package is in one of these states, the last run of the node only ended early: it was
cancelled, or it was requested but did not start.
"""
_PHASES: Final = {"active": NodeState.ACTIVE, "scheduled": NodeState.SCHEDULED}


def make_graph(nodes: Iterable[NodeSnapshot], packages: Iterable[PackageSnapshot]) -> Graph:
    """Make the graph from two answers of a daemon, which may be from different moments."""
    scheduled = {node.name: node for node in nodes}
    known = {package.name: package for package in packages}
    edges = sorted({edge for node in scheduled.values() for edge in _edges(node)}, key=_edge_key)
    named = {edge.target for edge in edges}
    drawn = (_node(name, scheduled.get(name), known.get(name)) for name in sorted({*scheduled, *known, *named}))
    return Graph(tuple(drawn), tuple(edges))


def surroundings_of(graph: Graph, name: str) -> Graph | None:
    """Return the part of the graph with the named package, all packages that it reaches by edges, and all that reach it; None if
    the name is unknown.
    """
    if not any(node.name == name for node in graph.nodes):
        return None
    down, up = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for edge in graph.edges:
        down[edge.source].append(edge.target)
        up[edge.target].append(edge.source)
    kept = _reached(name, down) | _reached(name, up)
    nodes = tuple(node for node in graph.nodes if node.name in kept)
    edges = tuple(edge for edge in graph.edges if edge.source in kept and edge.target in kept)
    return Graph(nodes, edges, focus=name)


def _reached(start: str, nexts: Mapping[str, list[str]]) -> set[str]:
    found, to_see = {start}, [start]
    while to_see:
        for each in nexts.get(to_see.pop(), ()):
            if each not in found:
                found.add(each)
                to_see.append(each)
    return found


def _node(name: str, node: NodeSnapshot | None, package: PackageSnapshot | None) -> GraphNode:
    drawn = GraphNode(name, _state(node, package))
    if package is not None:
        version = package.installed_version or package.version
        drawn = replace(drawn, kind=package.kind, version=version, status=package.state, message=package.message)
    if node is not None:
        drawn = replace(
            drawn,
            version=node.version or drawn.version,
            order=node.order,
            message=(drawn.message or node.message) if node.failed else (node.message or drawn.message),
            waits_for=tuple(lack_text(lack) for lack in node.lacks),
            since=node.since,
        )
    return replace(drawn, message="") if drawn.state is NodeState.ACTIVE else drawn


def _state(node: NodeSnapshot | None, package: PackageSnapshot | None) -> NodeState:
    status = package.state if package is not None else ""
    if status == "Removing":
        return NodeState.REMOVING
    if node is None:
        return NodeState.ABSENT if package is None else NodeState.UNLOADED
    match node.decision:
        case "Enable":
            if node.failed:
                return _ENDED_EARLY.get(status, NodeState.FAILED)
            return _WORSE.get(status) or _PHASES.get(node.state, NodeState.WAITING)
        case "Disable":
            return NodeState.OFF
        case "Forbid":
            return NodeState.FORBIDDEN
        case _:
            return NodeState.UNDECIDED


def _edges(node: NodeSnapshot) -> Iterator[GraphEdge]:
    waited_for = {lack.name for lack in node.lacks if lack.kind == "package"}

    def edge(target: str, kind: EdgeKind, group: str = "", constraint: str = "") -> GraphEdge:
        held = target in waited_for and kind not in {EdgeKind.EXCLUDES, EdgeKind.SUBSCRIBES}
        return GraphEdge(node.name, target, kind, group, constraint, held)

    for each in node.dependencies:
        kind = EdgeKind.NEEDS_IF_THERE if each.optional else EdgeKind.NEEDS
        yield edge(each.name, kind, constraint=each.constraint)
    for group in node.groups:
        for member in group.members:
            yield edge(member.name, _GROUPS.get(group.kind, EdgeKind.ANY_OF), group.name, member.constraint)
    for name in node.subscriptions:
        yield edge(name, EdgeKind.SUBSCRIBES)


def _edge_key(edge: GraphEdge) -> tuple[str, str, int, str, str]:
    return edge.source, edge.target, _KINDS.index(edge.kind), edge.group, edge.constraint
