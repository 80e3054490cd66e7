"""The scheduler as its owner has it: the machine with its state, questions about it, and admission.

See :mod:`wharfinger.runtime.scheduler_machine` for what it does and why. Synchronous and without I/O: whoever applies an event
performs the effects it gets back, in their order, and posts what came of them as events.
"""

from wharfinger.runtime.gates import unmet_gate
from wharfinger.runtime.inspector import DependencySnapshot, NodeSnapshot
from wharfinger.runtime.scheduler_graph import CycleError, Node, Verdict, topology
from wharfinger.runtime.scheduler_machine import (
    Active,
    Completed,
    Decided,
    Disable,
    Effect,
    Entry,
    Event,
    FactsChanged,
    Failed,
    Graph,
    Idle,
    IntentSet,
    NodeAdded,
    NodeRemoved,
    Paused,
    Rescheduled,
    Resumed,
    Schedule,
    Scheduled,
    ScriptVoted,
    barrier_of,
    step,
    waits_for,
)

__all__ = [
    "Completed",
    "ConstraintsError",
    "CycleError",
    "Decided",
    "Disable",
    "Effect",
    "Event",
    "FactsChanged",
    "Failed",
    "IntentSet",
    "Node",
    "NodeAdded",
    "NodeRemoved",
    "Paused",
    "Rescheduled",
    "Resumed",
    "Schedule",
    "Scheduler",
    "ScriptVoted",
    "Verdict",
]


class ConstraintsError(Exception):
    """A package may not be installed as things are; the message says what is not met, ``reason`` is for machines."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class Scheduler:
    """The machine with its state: one synchronous object, whose owner performs what `apply` returns."""

    def __init__(self) -> None:
        self._graph = Graph()

    def apply(self, event: Event) -> tuple[Effect, ...]:
        """Take in an event; what is to be done, in order. Raises CycleError, which changes nothing."""
        self._graph, effects = step(self._graph, event)
        return effects

    def enabled(self, name: str) -> bool:
        """Whether a package was last decided to be on."""
        entry = self._graph.entries.get(name)
        return entry is not None and entry.on

    def decision(self, name: str) -> Decided | None:
        """What was last decided about a package; None where it is not known, or its script is still being asked."""
        entry = self._graph.entries.get(name)
        if entry is None or entry.decision is None or entry.decision.pending:
            return None
        return Decided(name, entry.decision.on, entry.decision.reason.value, entry.decision.message)

    def settled(self, *names: str) -> bool:
        """Whether all of these that are there are active; never while paused."""
        entries = [self._graph.entries[name] for name in names if name in self._graph.entries]
        return not self._graph.paused and all(isinstance(entry.phase, Active) for entry in entries)

    def check_constraints(self, node: Node) -> None:
        """Whether a package could be on beside what is there: admission (spec/runtime §4.8).

        Raises ConstraintsError for an unmet requirement, then CycleError.
        """
        nodes = self._graph.nodes()
        enabled = {name: nodes[name].version for name, decision in self._graph.decisions().items() if decision.on}
        if vote := unmet_gate(node, self._graph.facts, enabled):
            raise ConstraintsError(vote.reason.value, vote.message)
        topology({**nodes, node.name: node})

    def nodes(self) -> tuple[NodeSnapshot, ...]:
        """All nodes, sorted by name; one that waits says for what."""
        barrier = barrier_of(self._graph.entries, self._graph.topology)
        return tuple(_snapshot(self._graph, entry, barrier) for _, entry in sorted(self._graph.entries.items()))


def _snapshot(graph: Graph, entry: Entry, barrier: int) -> NodeSnapshot:
    node, decision = entry.node, entry.decision
    message = decision.message if decision else "not decided: the scheduler is paused"
    if decision and isinstance(entry.phase, Idle) and (decision.on or decision.pending):
        message = f"waits for {waits_for(node.name, graph.entries, graph.topology, barrier) or 'the end of a pause'}"
    elif isinstance(entry.phase, Scheduled) and entry.phase.failed:
        message = "its last run failed for good; it is tried again when something changes"
    return NodeSnapshot(
        name=node.name,
        version=node.version,
        order=graph.topology.effective[node.name],
        state=type(entry.phase).__name__.lower(),
        decision=(decision.verdict if decision else Verdict.UNDEFINED).value,
        reason=decision.reason.value if decision else "",
        message=message,
        dependencies=tuple(
            DependencySnapshot(each.name, each.constraint.text, optional) for each, optional in node.dependencies()
        ),
    )
