"""The snapshot of a node of the scheduler for users: its state, the things that it waits for, and the votes of all rules
(spec/runtime §4.9).
"""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Final, TypeAlias

from wharfinger.formats.listing import listed
from wharfinger.packages.definition.requirements import Dependency, DependencyGroup
from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.scheduler.gates import votes_of
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.state import Entry, Graph, Idle, Phase, Scheduled
from wharfinger.runtime.scheduler_details import (
    DependencySnapshot,
    GroupSnapshot,
    LackSnapshot,
    NodeSnapshot,
    VoteSnapshot,
)

HeldBy: TypeAlias = Callable[[int], tuple[str, ...]]
"""A function that takes an order, and returns the nodes of this order for which nodes of higher orders wait."""

_MOST_NAMED: Final = 5
"""The maximum number of packages that the message of a waiting node names, of all packages of a lower order for which it waits.
"""


def node_snapshots(graph: Graph) -> tuple[NodeSnapshot, ...]:
    """Return snapshots of all nodes, sorted by name. The holders of each tier are looked up only once for all nodes."""
    held_by = cache(partial(holders, graph))
    return tuple(node_snapshot(graph, name, held_by) for name in sorted(graph.entries))


def node_snapshot(graph: Graph, name: str, held_by: HeldBy | None = None) -> NodeSnapshot:
    """Return the snapshot of an existing node. ``held_by`` returns the nodes of an order for which higher orders wait. If it is
    a cached function, these nodes are looked up only once for many snapshots.
    """
    entry, topology = graph.entries[name], graph.topology
    node, decision = entry.node, entry.decision
    lacks = _lacks(graph, entry)
    return NodeSnapshot(
        name=name,
        version=node.version,
        order=topology.effective[name],
        state=type(entry.phase).__name__.lower(),
        decision=(decision.verdict if decision else Verdict.UNDEFINED).value,
        reason=decision.reason.value if decision else "",
        message=_message(graph, entry, lacks, held_by or partial(holders, graph)),
        dependencies=tuple(
            DependencySnapshot(each.name, each.constraint.text, optional) for each, optional in node.dependencies()
        ),
        declared_order=node.order,
        run=entry.run,
        failed=isinstance(entry.phase, Scheduled) and entry.phase.failed,
        since=entry.since,
        lacks=lacks,
        votes=tuple(
            VoteSnapshot(vote.verdict.value, vote.reason.value, vote.message)
            for vote in votes_of(name, graph.nodes, topology, graph.facts, graph.opinion, graph.standing)
        ),
        groups=_groups(node),
        dependents=topology.dependents(name),
        subscriptions=node.subscriptions,
    )


def _message(graph: Graph, entry: Entry, lacks: tuple[LackSnapshot, ...], held_by: HeldBy) -> str:
    if graph.paused and entry.decision is None:
        return "not decided: the scheduler is paused"
    if lacks:
        return f"waits for {', '.join(_named(lack, held_by) for lack in lacks)}"
    if isinstance(entry.phase, Scheduled) and entry.phase.failed:
        return "the last run failed or was interrupted; the status of the package has the reason"
    return entry.decision.message if entry.decision else ""


def _named(lack: LackSnapshot, held_by: HeldBy) -> str:
    match lack.kind:
        case "vote":
            return "its enabled script"
        case "pause":
            return "the end of a pause"
        case "tier":
            order = int(lack.name)
            return f"packages of order {order}: {listed(held_by(order), _MOST_NAMED)}"
        case _:
            return lack.name


def holders(graph: Graph, order: int) -> tuple[str, ...]:
    """Return the nodes of this effective order for which nodes of higher orders wait, sorted."""
    effective = graph.topology.effective
    return tuple(
        sorted(name for name, entry in graph.entries.items() if effective[name] == order and not entry.released)
    )


def _lacks(graph: Graph, entry: Entry) -> tuple[LackSnapshot, ...]:
    if not isinstance(entry.phase, Idle):
        return ()
    if graph.paused:
        return (LackSnapshot("pause", "", "paused"),)
    return tuple(LackSnapshot(each.kind.lower(), each.name, _state(graph, each)) for each in entry.lacks)


def _state(graph: Graph, lacked: Id) -> str:
    match lacked.kind:
        case "Package":
            entry = graph.entries.get(lacked.name)
            return _phase(entry.phase) if entry else "absent"
        case "Tier":
            return "held"
        case _:
            return "awaited"


def _phase(phase: Phase) -> str:
    failed = isinstance(phase, Scheduled) and phase.failed
    return "failed" if failed else type(phase).__name__.lower()


def _groups(node: Node) -> tuple[GroupSnapshot, ...]:
    wanted = node.requirements
    return (
        *(GroupSnapshot("anyOf", group.name, _members(group)) for group in wanted.any_of),
        *(GroupSnapshot("noneOf", group.name, _members(group)) for group in node.excluded),
    )


def _members(group: DependencyGroup) -> tuple[DependencySnapshot, ...]:
    members: Iterable[Dependency] = sorted(group.members, key=lambda member: member.name)
    return tuple(DependencySnapshot(each.name, each.constraint.text, optional=True) for each in members)
