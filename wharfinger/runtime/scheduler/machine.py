"""The scheduler as a pure state machine: it decides which packages are on, when each package runs, and which packages it
waits for.

Theory of operation (spec/runtime §4). A node is a loaded package. The gates (:mod:`wharfinger.runtime.scheduler.gates`)
decide whether a node is *on*, in the order of :mod:`wharfinger.runtime.scheduler.graph`. The fixpoint engine
(:mod:`wharfinger.runtime.fixpoint`) orders the runs, and lets nodes wait: each node of the scheduler is a node of the engine,
whose body depends on the phase of the node:

=========  ===========================================================================================  ====================
phase      meaning                                                                                      outcome of the body
=========  ===========================================================================================  ====================
Idle       to be scheduled, once everything it waits for is active and no lower order holds it back     Blocked, or Outside
Scheduled  run N was ordered, or has failed (Terminal); an event about another run changes nothing      Outside, or Terminal
Active     run N is complete. A node that is off is Active too, so that it never holds back any other   Terminal
=========  ===========================================================================================  ====================

A body that lacks something is parked, either on the packages that are not active, or on the vote of the node's script, or on
the highest unreleased tier below the node's order (:mod:`wharfinger.runtime.scheduler.tiers`). Only a change of one of these
wakes the node. With ``Outside``, a node waits for the run of its package; no node waits for time to pass. The engine of the
scheduler runs without draining (:mod:`wharfinger.runtime.fixpoint`): a missing dependency is reported immediately, and its
arrival wakes the node.

Invariants:

* a node is scheduled only while all nodes that it waits for are active, and never while it is off;
* a change of one node makes only the nodes that subscribed to it run again;
* a node waits only for the nodes that it names, for the orders below its own, and for its script's vote;
* after a failed run, only the dependents of the package wait, and not all packages of higher orders, because one broken package
  must not stop all others;
* a requirement that is not met any more pauses a package; a package is uninstalled only if the user, a hook or its script
  does not want it, or if another Module of its exclusive group takes precedence (docs/decisions/0052-exclusive-groups.md);
* the cost of a step depends only on the nodes that the event can affect, and not on the size of the graph.

While the scheduler is paused, events are recorded, but nothing is decided. The scheduler is paused at the start.

No clock, no I/O, no await: `step` returns the next graph and the effects, in an order that depends only on the events so far.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from rpds import HashTrieSet

from wharfinger.runtime.fixpoint import machine as engine
from wharfinger.runtime.fixpoint.model import (
    Arrived,
    Asked,
    Blocked,
    Dispatch,
    Emission,
    Finished,
    Id,
    Outcome,
    Outside,
    Pulled,
    Removed,
    Seeded,
    Terminal,
)
from wharfinger.runtime.fixpoint.model import Event as EngineEvent
from wharfinger.runtime.scheduler.events import (
    Completed,
    Decided,
    Disable,
    Effect,
    Event,
    FactsChanged,
    Failed,
    FlagSet,
    IntentSet,
    NodeAdded,
    NodeRemoved,
    Paused,
    Rescheduled,
    Resumed,
    Schedule,
    ScriptVoted,
)
from wharfinger.runtime.scheduler.exclusive_groups import regrouped
from wharfinger.runtime.scheduler.gates import Decision, decide, decide_affected
from wharfinger.runtime.scheduler.graph import Node, Rewired, with_node, without_node
from wharfinger.runtime.scheduler.rules import Opinion, ScriptVote
from wharfinger.runtime.scheduler.state import (
    PACKAGE,
    Active,
    Entry,
    Graph,
    Idle,
    Nodes,
    Phase,
    Scheduled,
    package_id,
    vote_id,
)
from wharfinger.runtime.scheduler.tiers import tier_id


def step(graph: Graph, event: Event, at: datetime | None = None) -> tuple[Graph, tuple[Effect, ...]]:
    """Return the next graph, and the effects in order. ``at`` is the time of the event; decisions do not depend on it.

    Raises CycleError if a node would close a cycle; nothing is changed then.
    """
    turn = _Turn(graph, at)
    turn.take_in(event)
    if not turn.changed:
        return graph, ()
    if not turn.paused:
        turn.judge()
        turn.work()
    return turn.graph(), tuple(turn.effects)


def what_if(graph: Graph, name: str, node: Node | None) -> dict[str, Decision]:
    """Return the new decisions about all nodes whose decision might change if ``node`` replaced the node of ``name``. If
    ``node`` is None, the node of ``name`` is treated as removed. Raises CycleError.
    """
    turn = _Turn(graph, None)
    turn.take_in(NodeRemoved(name) if node is None else NodeAdded(node))
    turn.everything = graph.paused  # decisions may be missing or outdated then, so all of them are made
    return turn.decisions()


class _Turn:
    """One step under way: the changed parts of the graph, and the effects so far."""

    def __init__(self, graph: Graph, at: datetime | None) -> None:
        self.before = graph
        self.at = at
        self.entries, self.intents, self.flags = graph.entries, graph.intents, graph.flags
        self.facts, self.paused = graph.facts, graph.paused
        self.runs, self.news, self.topology, self.tiers = graph.runs, graph.news, graph.topology, graph.tiers
        self.subscribers, self.engine = graph.subscribers, graph.engine
        self.effects: list[Effect] = []
        self.suspects: set[str] = set()
        """The names of the packages whose decisions may have changed, including packages without a node. The decisions about
        all dependent nodes are made again, too.
        """
        self.everything = False
        """True if the decisions about all nodes may have changed."""
        self.asked: set[str] = set()
        """The nodes whose bodies are marked to run again."""
        self.released: list[int] = []
        """The orders that have lost their last holder: no node of such an order makes nodes of higher orders wait any more."""
        self.touched: set[str] = set()
        """The names of the nodes whose `Entry` or whose effective order has changed."""

    @property
    def changed(self) -> bool:
        """Return whether the event has changed anything."""
        return bool(self.suspects or self.asked) or self.everything or self.paused is not self.before.paused

    def graph(self) -> Graph:
        """Return the graph after this step."""
        return Graph(
            self.entries,
            self.intents,
            self.flags,
            self.facts,
            self.paused,
            self.runs,
            self.news,
            self.topology,
            self.tiers,
            self.subscribers,
            self.engine,
            tuple(sorted(self.touched)),
        )

    # --- recording of the event ----------------------------------------------------------------------------------------

    def take_in(self, event: Event) -> None:
        """Record an event, without deciding anything and without running bodies."""
        match event:
            case NodeAdded(node):
                self._add(self._grouped(node))
            case NodeRemoved(name):
                self._remove(name)
            case Completed(name, run):
                self._ended(name, run, Active())
            case Failed(name, run):
                self._ended(name, run, Scheduled(run, failed=True))
            case Rescheduled(name, reason):
                if self._again(name, reason):
                    self._tell_subscribers(name)
            case IntentSet() | FlagSet():
                self._said(event)
            case ScriptVoted(name, enabled, reason, error, provisional):
                self._voted(name, ScriptVote(enabled, reason, error, provisional))
            case FactsChanged(facts):
                self.everything = facts != self.facts
                self.facts = facts
            case Paused():
                self.paused = True
            case Resumed():
                self.paused, self.everything = False, True
                self.asked.update(self.entries)
            case _:
                assert_never(event)

    def _said(self, event: IntentSet | FlagSet) -> None:
        name, enabled = event.name, event.enabled
        known = self.intents if isinstance(event, IntentSet) else self.flags
        if known.get(name) is enabled:
            return
        known = known.discard(name) if enabled is None else known.insert(name, enabled)
        self.suspects.add(name)
        if isinstance(event, IntentSet):
            self.intents = known
        else:
            self.flags = known

    def _voted(self, name: str, vote: ScriptVote) -> None:
        entry = self.entries.get(name)
        if entry is not None:
            self._put(replace(entry, vote=vote, vote_due=False))
            self.suspects.add(name)

    def _add(self, node: Node) -> None:
        name = node.name
        old = self.entries.get(name)
        vote = old.vote if old and node.script else None
        if old and old.on and node.script and vote is None:
            vote = ScriptVote(enabled=None)  # a package that is on stays on, unless its new script votes against it
        entry = Entry(
            node, Idle(), old.decision if old else None, vote, node.script, (), self.at, old.run if old else 0
        )
        rewired = with_node(
            self.topology, Nodes(self.entries.insert(name, entry)), name, old.node if old else None
        )  # if this raises CycleError, the turn is dropped, and the graph is unchanged
        order = self.topology.effective.get(name) if old and not old.released else None
        self.entries = self.entries.insert(name, entry)
        self.touched.add(name)
        self._rewire(rewired)
        self._hold(order, rewired.topology.effective[name])
        self.suspects.add(name)
        if old is not None and old.hopeless:
            self._recall(name)
        self._subscribe(name, old.node.subscriptions if old else (), node.subscriptions)
        if old is None:
            self._tell_engine(Seeded((package_id(name),)))
        else:
            self._tell_subscribers(name)
        self.asked.add(name)

    def _grouped(self, node: Node) -> Node:
        """Return an added node with ``outranked_by``, the members of its exclusive group that take precedence over it. Update
        this field of the other members of the group, too.
        """
        old = self.entries.get(node.name)
        if not node.exclusive and not (old and old.node.exclusive):
            return node
        joining, *peers = regrouped(node, (entry.node for entry in self.entries.values()))
        for each in peers:
            entry = self.entries[each.name]
            nodes = self.entries.insert(each.name, replace(entry, node=each))
            # The edges of the added node do not exist yet; if they close a cycle, that is found when the node itself is added.
            rewired = with_node(self.topology, Nodes(nodes), each.name, entry.node)
            self.entries = nodes
            self._rewire(rewired)
            self.suspects.add(each.name)
        return joining

    def _remove(self, name: str) -> None:
        old = self.entries.get(name)
        if old is None:
            return
        self.suspects.add(name)
        order = None if old.released else self.topology.effective[name]
        self.entries = self.entries.remove(name)
        self.touched.add(name)
        self._rewire(without_node(self.topology, Nodes(self.entries), old.node))
        self._hold(order, None)
        self._subscribe(name, old.node.subscriptions, ())
        self._tell_engine(Removed(package_id(name)))
        if old.on:
            self._tell_subscribers(name)
        self.asked.discard(name)

    def _rewire(self, rewired: Rewired) -> None:
        before, self.topology = self.topology, rewired.topology
        self.touched.update(rewired.moved)
        for name in rewired.moved:
            entry = self.entries.get(name)
            if entry is not None and not entry.released:
                self._hold(before.effective[name], self.topology.effective[name])
            self.asked.add(name)

    def _subscribe(self, name: str, before: Iterable[str], after: Iterable[str]) -> None:
        for each in before:
            left = self.subscribers[each].remove(name)
            self.subscribers = self.subscribers.insert(each, left) if left else self.subscribers.remove(each)
        for each in after:
            self.subscribers = self.subscribers.insert(each, (self.subscribers.get(each) or HashTrieSet()).insert(name))

    def _ended(self, name: str, run: int, phase: Phase) -> None:
        """Set the phase of a node whose current run has ended; do nothing if the report is about an older run."""
        entry = self.entries.get(name)
        match entry:
            case Entry(phase=Scheduled(run=current)) if current == run:
                self._put(replace(entry, phase=phase))
            case _:
                pass

    def _again(self, name: str, reason: str) -> bool:
        """Schedule a node again if it is on or its decision is pending; return False if it is off or unknown."""
        entry = self.entries.get(name)
        if entry is None or (entry.decision is not None and not entry.on and not entry.decision.pending):
            return False
        self._put(replace(entry, phase=Idle(reason)))
        return True

    def _tell_subscribers(self, name: str) -> None:
        """Schedule the direct subscribers of a node again, but not the subscribers of these subscribers."""
        for each in sorted(self.subscribers.get(name) or ()):
            entry = self.entries.get(each)
            if each != name and entry is not None and not isinstance(entry.phase, Idle):
                self._again(each, f"SubscriptionTriggered:{name}")

    def _put(self, entry: Entry) -> None:
        """Replace a node's entry, update the count of its tier (the nodes of one order), and mark its body to run again."""
        name = entry.node.name
        old = self.entries[name]
        waits_on = isinstance(entry.phase, Idle) and isinstance(old.phase, Idle)
        if (entry.phase != old.phase and not waits_on) or _text(entry.decision) != _text(old.decision):
            entry = replace(entry, lacks=(), since=self.at, stuck=False)
        self._keep(old, entry)
        self.asked.add(name)

    def _keep(self, old: Entry, entry: Entry) -> None:
        """Replace a node's entry. If the node now holds its tier, or no longer holds it, update the count of the tier's
        holders. If the node has become hopeless (its dependents wait in vain, see `Entry.hopeless`), or is not hopeless any
        more, mark the bodies of the nodes that are parked on it to run again.
        """
        name = entry.node.name
        if entry.released != old.released:
            order = self.topology.effective[name]
            self._hold(*((order, None) if entry.released else (None, order)))
        self.entries = self.entries.insert(name, entry)
        self.touched.add(name)
        if entry.hopeless != old.hopeless:
            self._recall(name)

    def _recall(self, name: str) -> None:
        self.asked.update(waiter.name for waiter in self.engine.waiters(package_id(name)))

    def _hold(self, before: int | None, after: int | None) -> None:
        self.tiers = self.tiers.moved(before, after)
        if before is not None and not self.tiers.is_held(before):
            self.released.append(before)

    # --- decisions -----------------------------------------------------------------------------------------------------

    def decisions(self) -> dict[str, Decision]:
        """Return new decisions about all nodes whose decision may have changed, in topological order."""
        nodes = Nodes(self.entries)
        if self.everything:
            return decide(nodes, self.topology, self.facts, {name: self._opinion(name) for name in self.entries})
        names = self.topology.affected_by(nodes, sorted(self.suspects))
        return decide_affected(names, nodes, self.topology, self.facts, self._opinion, self._standing)

    def judge(self) -> None:
        """Decide about all nodes whose decision may have changed, and record the decisions."""
        if self.everything or self.suspects:
            flipped = [
                name for name, decision in self.decisions().items() if self._judged(self.entries[name], decision)
            ]
            for name in flipped:
                self._tell_subscribers(name)

    def _opinion(self, name: str) -> Opinion:
        return Opinion(self.intents.get(name), self.entries[name].vote, self.flags.get(name))

    def _standing(self, name: str) -> Decision | None:
        entry = self.entries.get(name)
        return entry.decision if entry else None

    def _judged(self, entry: Entry, decision: Decision) -> bool:
        """Record a decision, and emit its effects if it is new. Return whether the node turned on or off."""
        old, name = entry.decision, entry.node.name
        if decision == old and (decision.on or isinstance(entry.phase, Active)):
            return False
        if _text(decision) != _text(old):
            self.effects.append(Decided(name, decision.on, decision.reason.value, decision.message))
        newly_unwanted = decision.uninstall and not (old and old.uninstall)
        if (entry.on and not decision.on) or newly_unwanted:
            self.effects.append(Disable(name, decision.reason.value, decision.message, decision.uninstall))
        phase = entry.phase
        if old is not None and old.on is not decision.on:
            phase = Idle(f"DecisionChanged:{decision.reason.value}")
        if not decision.on and not decision.pending:
            phase = Active()
        self._put(replace(entry, decision=decision, phase=phase))
        return entry.on is not decision.on

    # --- runs ----------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Make the engine run the bodies of all nodes that are marked to run again, and the bodies of the nodes that these runs
        wake.
        """
        self._call()
        while (dispatch := self._pull()) is not None:
            self._tell_engine(Finished(dispatch.id, dispatch.run, self._body(dispatch.id.name)))
            self._call()

    def _call(self) -> None:
        """Notify the engine of the nodes whose bodies have to run again, and of the tiers of order that were released."""
        if self.asked:
            asked, self.asked = self.asked, set()
            for name in self.topology.sorted(Nodes(self.entries), asked):
                self._tell_engine(Asked(package_id(name)))
        for order in self.released:
            self.news += 1
            self._tell_engine(Arrived(Emission(tier_id(order), str(self.news), runnable=False)))
        self.released.clear()

    def _pull(self) -> Dispatch | None:
        self.engine, effects = engine.step(self.engine, Pulled())
        match effects:
            case (Dispatch() as dispatch,):
                return dispatch
            case _:
                return None

    def _tell_engine(self, event: EngineEvent) -> None:
        self.engine, _ = engine.step(self.engine, event)

    def _body(self, name: str) -> Outcome:
        """Return the outcome of a package's body for the engine; a package that may run now is scheduled here."""
        entry = self.entries[name]
        match entry.phase:
            case Active():
                return Terminal("active")
            case Scheduled(run, failed):
                return Terminal(f"run {run} failed") if failed else Outside()
            case Idle(reason):
                lacks = self._lacks(entry)
                if lacks:
                    stuck = any(each.kind == PACKAGE and self.entries[each.name].hopeless for each in lacks)
                    if lacks != entry.lacks:
                        self._keep(entry, replace(entry, lacks=lacks, since=self.at, stuck=stuck))
                    elif stuck != entry.stuck:
                        self._keep(entry, replace(entry, stuck=stuck))
                    return Blocked(lacks)
                self.runs += 1
                ordered = replace(
                    entry, phase=Scheduled(self.runs), lacks=(), since=self.at, run=self.runs, stuck=False
                )
                self._keep(entry, ordered)
                self.effects.append(Schedule(name, self.runs, reason))
                return Outside()
            case _:
                assert_never(entry.phase)

    def _lacks(self, entry: Entry) -> tuple[Id, ...]:
        """Return the ids that an idle node waits for; empty if the node may run."""
        name = entry.node.name
        if not entry.on or entry.vote_due:
            return (vote_id(name),)
        waits_for = self.topology.waits_for[name]
        missing = tuple(package_id(each) for each in waits_for if not isinstance(self.entries[each].phase, Active))
        if missing:
            return missing
        below = self.tiers.below(self.topology.effective[name])
        return () if below is None else (tier_id(below),)


def _text(decision: Decision | None) -> tuple[bool, str, str] | None:
    """Return the reported texts of a decision. A decision is not reported again if its texts equal those of the last decision."""
    return None if decision is None else (decision.on, decision.reason.value, decision.message)
