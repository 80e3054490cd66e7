"""The scheduler: the state machine together with its state, queries of the state, and the check of new packages.

The module :mod:`wharfinger.runtime.scheduler.machine` describes its behavior. The scheduler is synchronous and has no I/O: the
caller that applies an event carries out the returned effects in their order, and applies their results as further events.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from wharfinger.runtime.scheduler.events import Decided, Effect, Event
from wharfinger.runtime.scheduler.graph import CycleError, Node
from wharfinger.runtime.scheduler.machine import step, what_if
from wharfinger.runtime.scheduler.rules import Facts, Others, gates
from wharfinger.runtime.scheduler.snapshots import holders, node_snapshot, node_snapshots
from wharfinger.runtime.scheduler.state import Graph
from wharfinger.runtime.scheduler_details import NodeSnapshot
from wharfinger.runtime.status.reasons import Reason

_REQUIREMENTS: Final = frozenset(
    {Reason.DEPENDENCY_NOT_ENABLED, Reason.DEPENDENCY_VERSION_MISMATCH, Reason.ANY_OF_UNMET, Reason.NONE_OF_UNMET}
)


Observe: TypeAlias = Callable[[Graph, Event, datetime | None, Graph, tuple[Effect, ...]], None]
"""A callback for each step: it gets the graph before the event, the event with its time, the graph after the event, and the
effects.
"""


@dataclass(frozen=True, slots=True)
class Broken:
    """A package that is on, and its requirement that a planned change would break."""

    name: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class EngineCounts:
    """The counts of the engine: all nodes, nodes that are to run, nodes that run, and nodes that wait for an answer from outside.

    Since the start, ``stamps`` counts the changes that the engine has seen, and ``runs`` the runs of packages that were ordered.
    """

    nodes: int
    queued: int
    running: int
    waiting: int
    stamps: int
    runs: int


class ConstraintsError(Exception):
    """A gate forbids a package to be on; ``reason`` is the reason of this gate."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Scheduler:
    """The state machine of the scheduler, together with its state. The caller of `apply` carries out the returned effects."""

    def __init__(self, observe: Observe | None = None) -> None:
        self._graph = Graph()
        self.observe = observe

    def apply(self, event: Event, at: datetime | None = None) -> tuple[Effect, ...]:
        """Process an event that happened at the time ``at``. Return its effects, in the order in which to perform them.

        Raises CycleError; then the state is unchanged.
        """
        before = self._graph
        self._graph, effects = step(before, event, at)
        if self.observe is not None:
            self.observe(before, event, at, self._graph, effects)
        return effects

    def counts(self) -> EngineCounts:
        """Return the counts of the fixpoint engine."""
        engine = self._graph.engine
        return EngineCounts(
            len(engine.nodes), engine.queued, engine.running, engine.waiting, engine.clock, self._graph.runs
        )

    def enabled(self, name: str) -> bool:
        """Return whether a package is on according to the last decision about it."""
        entry = self._graph.entries.get(name)
        return entry is not None and entry.on

    @property
    def at_rest(self) -> bool:
        """Return whether no package runs, and no package will run without another event. A package whose run failed does not
        count as running. Always False while the scheduler is paused.
        """
        return not self._graph.paused and self._graph.tiers.at_rest

    def enabled_names(self) -> frozenset[str]:
        """Return the packages that are on according to the last decisions."""
        return frozenset(name for name, entry in self._graph.entries.items() if entry.on)

    def unwanted(self, name: str) -> bool:
        """Return whether a package is to be uninstalled: the user, a hook or its own script does not want it, or another
        Module of its exclusive group takes precedence.
        """
        decision = self._graph.standing(name)
        return decision is not None and decision.uninstall

    def decision(self, name: str) -> Decided | None:
        """Return the last decision about a package; None if there is no decision yet, or if the decision still waits for the
        vote of the package's script.
        """
        entry = self._graph.entries.get(name)
        if entry is None or entry.decision is None or entry.decision.pending:
            return None
        return Decided(name, entry.decision.on, entry.decision.reason.value, entry.decision.message)

    def node(self, name: str) -> Node | None:
        """Return the node of a package; None if there is no such node."""
        entry = self._graph.entries.get(name)
        return entry.node if entry else None

    @property
    def graph(self) -> Graph:
        """Return the complete state of the scheduler. It is immutable."""
        return self._graph

    @property
    def facts(self) -> Facts:
        """Return the last known facts about the platform."""
        return self._graph.facts

    def dependents(self, name: str) -> tuple[str, ...]:
        """Return the packages whose requirements name a package, sorted."""
        return self._graph.topology.dependents(name)

    def would_break(self, name: str, node: Node | None) -> tuple[Broken, ...]:
        """Return the packages that are on now, but would have an unmet requirement if ``node`` replaced the node of ``name``,
        or, if ``node`` is None, if the node of ``name`` were removed. The result is sorted.

        Nothing is changed. A node that would close a cycle breaks no package, because it is refused.
        """
        before = self._graph.decisions() if self._graph.paused else None
        try:
            decisions = what_if(self._graph, name, node)
        except CycleError:
            return ()
        lost = ((each, decision) for each, decision in sorted(decisions.items()) if each != name and not decision.on)
        return tuple(
            Broken(each, decision.reason.value, decision.message)
            for each, decision in lost
            if decision.reason in _REQUIREMENTS and (before[each].on if before else self.enabled(each))
        )

    def check_constraints(self, node: Node) -> None:
        """Raise an error if a package could not be on (spec/runtime §4.8). This changes nothing.

        Only the gates are checked, in the present state: the versions of Kubernetes and of the platform, the end of the
        bootstrap, dependencies, any-of and none-of groups. The intent of users is not considered. Raises ConstraintsError with
        the message of the first gate, or CycleError if the package would close a cycle.
        """
        graph = self._graph
        standing = graph.decisions().get if graph.paused else graph.standing
        decided = {name: standing(name) for name in node.names()}
        on = (name for name, decision in decided.items() if decision is not None and decision.on)
        enabled = {name: graph.entries[name].node.version for name in on}
        for vote in gates(node, graph.facts, Others(enabled, graph.entries)):
            raise ConstraintsError(vote.reason, vote.message)
        what_if(graph, node.name, node)

    def snapshot(self, name: str) -> NodeSnapshot | None:
        """Return the snapshot of one node; None if there is no such node."""
        return node_snapshot(self._graph, name) if name in self._graph.entries else None

    def holders(self, order: int) -> tuple[str, ...]:
        """Return the names of the packages of this effective order that packages of higher orders wait for, sorted."""
        return holders(self._graph, order)

    def nodes(self) -> tuple[NodeSnapshot, ...]:
        """Return the snapshots of all nodes, sorted by name; the snapshot of a waiting node names what the node waits for."""
        return node_snapshots(self._graph)
