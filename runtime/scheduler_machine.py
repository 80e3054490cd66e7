"""Which package runs when: everything that is loaded, what it builds on, and who may go next.

Theory of operation (spec/runtime §4). A node is a loaded package. Whether it is *on* is decided by
:mod:`wharfinger.runtime.gates`; in which order nodes go by :mod:`wharfinger.runtime.scheduler_graph`. A node that is on goes
through three phases:

=========  ==============================================================================================================
Idle       to be scheduled, once everything it waits for is active and no node of a lower effective order holds it back
Scheduled  Schedule was ordered as run N; what is Completed with another number was superseded and changes nothing
Active     run N is complete. A node that is off rests here too, so that it never holds back anybody
=========  ==============================================================================================================

Invariants: a node is scheduled only while everything it waits for is active; a node that is off is never scheduled; a change
of one node resets no other one; a node waits for nothing but what it names, the orders below its own, and its script's vote.
A run that failed for good no longer holds back higher orders, only what depends on it: one broken package must not stop the
rest. Losing a gate pauses: only a user's or a script's no uninstalls (DESIGN §7).

While paused, everything is taken in and nothing is decided. It starts paused.

No clock, no I/O, no waiting: `step` returns the next graph and what to do, in an order that depends on the graph alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, assert_never

from wharfinger.runtime.gates import Decision, Facts, Opinion, ScriptVote, decide, decide_some
from wharfinger.runtime.scheduler_graph import Node, Topology, with_node, without_node

_FIRST_REASON: Final = "Scheduled"


# --- events ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeAdded:
    """A package was loaded, or loaded anew: it is to be scheduled (again). What its last script voted stands until the next."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A package is gone. An intent about it stays until IntentSet(None): it may also come before its node."""

    name: str


@dataclass(frozen=True, slots=True)
class Completed:
    """A run succeeded."""

    name: str
    run: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A run failed for good, as things are; it may still be Completed."""

    name: str
    run: int


@dataclass(frozen=True, slots=True)
class Rescheduled:
    """A package is to run again."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class IntentSet:
    """What the user wants: on, off, or nothing in particular."""

    name: str
    enabled: bool | None


@dataclass(frozen=True, slots=True)
class ScriptVoted:
    """An enabled script ended: False with a reason, True or None without an objection, or an error."""

    name: str
    enabled: bool | None
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class FactsChanged:
    """The versions of what packages run on; empty: not known."""

    kubernetes_version: str
    platform_version: str


@dataclass(frozen=True, slots=True)
class Paused:
    """From now on nothing is decided or scheduled."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """The end of a pause."""


Event: TypeAlias = (
    NodeAdded
    | NodeRemoved
    | Completed
    | Failed
    | Rescheduled
    | IntentSet
    | ScriptVoted
    | FactsChanged
    | Paused
    | Resumed
)

# --- effects ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decided:
    """A package is allowed to be on, or not; told at first, and whenever verdict, reason or message change."""

    name: str
    allowed: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Disable:
    """Stop a package: end its run and its hooks. ``uninstall``: take it out of the cluster too; otherwise nothing is deleted."""

    name: str
    reason: str
    message: str
    uninstall: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """Run a package, and report the run by its number. ``enabled``: all packages that are on, sorted."""

    name: str
    run: int
    reason: str
    enabled: tuple[str, ...]


Effect: TypeAlias = Decided | Disable | Schedule

# --- state -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Idle:
    """To be scheduled, and why."""

    reason: str = _FIRST_REASON


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Run ``run`` was ordered."""

    run: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Active:
    """Done, or off."""


Phase: TypeAlias = Idle | Scheduled | Active


@dataclass(frozen=True, slots=True)
class Entry:
    """A node, where it stands, and what was last said about it; ``vote_due``: its script was not heard since it was added."""

    node: Node
    phase: Phase = Idle()
    decision: Decision | None = None
    vote: ScriptVote | None = None
    vote_due: bool = False

    @property
    def on(self) -> bool:
        """Whether it was last decided to be on."""
        return self.decision is not None and self.decision.on


@dataclass(frozen=True, slots=True)
class Graph:
    """Everything the scheduler knows. ``runs`` counts the runs ever ordered."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    intents: Mapping[str, bool] = field(default_factory=dict)
    facts: Facts = Facts()  # noqa: RUF009 - frozen
    paused: bool = True
    runs: int = 0
    topology: Topology = Topology()  # noqa: RUF009 - frozen

    def nodes(self) -> dict[str, Node]:
        """All nodes by name."""
        return {name: entry.node for name, entry in self.entries.items()}

    def decisions(self) -> dict[str, Decision]:
        """What is decided as things are, also while paused."""
        opinions = {name: Opinion(self.intents.get(name), entry.vote) for name, entry in self.entries.items()}
        return decide(self.nodes(), self.topology, self.facts, opinions)

    def decisions_of(self, names: list[str]) -> dict[str, Decision]:
        """What is decided about some, where what was decided about all others stands."""
        opinions = {name: Opinion(self.intents.get(name), self.entries[name].vote) for name in names}
        around = {each for name in names for each in self.entries[name].node.names() if each in self.entries}
        nodes = {name: self.entries[name].node for name in {*names, *around}}
        known = {name: decision for name in around if (decision := self.entries[name].decision) is not None}
        return decide_some(names, nodes, self.facts, opinions, known)


# --- the machine -----------------------------------------------------------------------------------------------------------


def step(graph: Graph, event: Event) -> tuple[Graph, tuple[Effect, ...]]:
    """The next graph, and what to do, in order. Raises CycleError when a node would close a cycle."""
    after = _taken_in(graph, event)
    if after is graph or after.paused:
        return after, ()
    if isinstance(event, Completed | Failed | Rescheduled):  # how far work is has no influence on what may be on
        decision = after.entries[event.name].decision
        return _passed(after, {event.name: decision} if decision else {})
    if isinstance(event, NodeAdded | IntentSet | ScriptVoted) and not graph.paused:
        name = event.node.name if isinstance(event, NodeAdded) else event.name
        if name not in after.entries:
            return after, ()
        affected = after.topology.affected_by(name)
        if affected is not None:
            return _passed(after, after.decisions_of(affected))
    if isinstance(event, NodeRemoved) and not graph.paused and not graph.topology.named_by.get(event.name):
        return _passed(after, {})  # nobody builds on it, so nobody is judged for it
    return _passed(after, after.decisions())


def _taken_in(graph: Graph, event: Event) -> Graph:
    match event:
        case NodeAdded(node):
            return _with_node(graph, node)
        case NodeRemoved(name):
            entries = dict(graph.entries)
            gone = entries.pop(name, None)
            if gone is None:
                return graph
            return replace(graph, entries=entries, topology=without_node(graph.topology, _Nodes(entries), gone.node))
        case Completed(name, run):
            return _with_phase(graph, name, run, Active())
        case Failed(name, run):
            return _with_phase(graph, name, run, Scheduled(run, failed=True))
        case Rescheduled(name, reason):
            entry = graph.entries.get(name)
            return _with_entry(graph, replace(entry, phase=Idle(reason))) if entry else graph
        case IntentSet(name, enabled):
            intents = {each: intent for each, intent in graph.intents.items() if each != name}
            return replace(graph, intents=intents if enabled is None else {**intents, name: enabled})
        case ScriptVoted(name, enabled, reason, error):
            entry = graph.entries.get(name)
            vote = ScriptVote(enabled, reason, error)
            return _with_entry(graph, replace(entry, vote=vote, vote_due=False)) if entry else graph
        case FactsChanged(kubernetes_version, platform_version):
            return replace(graph, facts=Facts(kubernetes_version, platform_version))
        case Paused():
            return replace(graph, paused=True)
        case Resumed():
            return replace(graph, paused=False)
        case _:
            assert_never(event)


def _with_node(graph: Graph, node: Node) -> Graph:
    old = graph.entries.get(node.name)
    vote = old.vote if old and node.script else None
    if old and old.on and node.script and vote is None:
        vote = ScriptVote(enabled=None)  # what is on stays on until a script that is new says otherwise
    decision = old.decision if old else None
    entry = Entry(node, decision=decision, vote=vote, vote_due=node.script)
    entries = {**graph.entries, node.name: entry}
    nodes = _Nodes(entries)
    order = with_node(graph.topology, nodes, node.name, old.node if old else None)
    return replace(graph, entries=entries, topology=order)


class _Nodes(Mapping[str, Node]):
    """The nodes of entries, looked up and not copied."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries

    def __getitem__(self, name: str) -> Node:
        return self._entries[name].node

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _with_entry(graph: Graph, entry: Entry) -> Graph:
    return replace(graph, entries={**graph.entries, entry.node.name: entry})


def _with_phase(graph: Graph, name: str, run: int, phase: Phase) -> Graph:
    """What a run reports changes its own node while the run is the current one, and nothing otherwise."""
    entry = graph.entries.get(name)
    match entry:
        case Entry(phase=Scheduled(run=current)) if current == run:
            return _with_entry(graph, replace(entry, phase=phase))
        case _:
            return graph


def _passed(graph: Graph, decisions: Mapping[str, Decision]) -> tuple[Graph, tuple[Effect, ...]]:
    """One pass: take in what was decided, rest those that are off, schedule those that may go."""
    effects: list[Effect] = []
    entries = dict(graph.entries)
    for name, decision in decisions.items():
        entries[name], told = _judged(entries[name], decision)
        effects += told
    unrest = [name for name in graph.topology.order if entries[name].phase.__class__ is not Active]
    barrier = min((graph.topology.effective[name] for name in unrest if not _released(entries[name].phase)), default=0)
    enabled: tuple[str, ...] | None = None
    runs = graph.runs
    for name in unrest:
        entry = entries[name]
        if isinstance(entry.phase, Idle) and not waits_for(name, entries, graph.topology, barrier):
            runs += 1
            if enabled is None:
                enabled = tuple(sorted(each for each, one in entries.items() if one.on))
            effects.append(Schedule(name, runs, entry.phase.reason, enabled))
            entries[name] = replace(entry, phase=Scheduled(runs))
    return replace(graph, entries=entries, runs=runs), tuple(effects)


def _judged(entry: Entry, decision: Decision) -> tuple[Entry, list[Effect]]:
    """The entry after a decision about it, and what is told."""
    old, name = entry.decision, entry.node.name
    if decision == old and (decision.on or isinstance(entry.phase, Active)):
        return entry, []
    effects: list[Effect] = []
    text = (decision.on, decision.reason.value, decision.message)
    if old is None or text != (old.on, old.reason.value, old.message):
        effects.append(Decided(name, *text))
    newly_unwanted = decision.uninstall and not (old and old.uninstall)
    if (entry.on and not decision.on) or newly_unwanted:
        effects.append(Disable(name, decision.reason.value, decision.message, decision.uninstall))
    phase = entry.phase
    if old is not None and old.on is not decision.on:
        phase = Idle(f"DecisionChanged:{decision.reason.value}")
    if not decision.on and not decision.pending:
        phase = Active()
    return replace(entry, decision=decision, phase=phase), effects


def barrier_of(entries: Mapping[str, Entry], order: Topology) -> int:
    """The lowest effective order that still has work before it: no node above it may go."""
    held = [order.effective[name] for name, entry in entries.items() if not _released(entry.phase)]
    return min(held, default=0)


def _released(phase: Phase) -> bool:
    return isinstance(phase, Active) or (isinstance(phase, Scheduled) and phase.failed)


def waits_for(name: str, entries: Mapping[str, Entry], order: Topology, barrier: int) -> str:
    """What an idle node waits for; empty when it may go."""
    if not entries[name].on or entries[name].vote_due:
        return "its enabled script"
    missing = [each for each in order.waits_for[name] if not isinstance(entries[each].phase, Active)]
    if missing:
        return ", ".join(missing)
    return f"packages of order {barrier}" if order.effective[name] > barrier else ""
