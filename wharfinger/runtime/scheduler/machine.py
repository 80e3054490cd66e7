"""Which package runs when: everything that is loaded, what it builds on, and who may go next.

Theory of operation (spec/runtime §4). A node is a loaded package. Whether it is *on* is decided by
:mod:`wharfinger.runtime.scheduler.gates`, in the order of :mod:`wharfinger.runtime.scheduler.graph`. Ordering and waiting are
the fixpoint engine (:mod:`wharfinger.runtime.fixpoint`): a node of ours is a node of it, whose body looks at where the package
stands:

=========  ===========================================================================================  ====================
Idle       to be scheduled, once everything it waits for is active and no lower order holds it back     Blocked, or Outside
Scheduled  run N was ordered; what is Completed with another number was superseded and changes nothing  Outside
Active     run N is complete. A node that is off rests here too, so that it never holds back anybody    Terminal
=========  ===========================================================================================  ====================

A body that lacks something parks under the packages that are not active, under its script's vote, or under the highest tier
(:mod:`wharfinger.runtime.scheduler.tiers`) below it that is not released, and is woken by exactly these. The world outside is
the run of a package: nothing here waits for time. Here the engine never drains: what is lacked is said at once, and its
arrival wakes.

Invariants: a node is scheduled only while everything it waits for is active; a node that is off is never scheduled; a change
of one node resets no other one, but those that subscribed to it; a node waits for nothing but what it names, the orders below
its own, and its script's vote. A run that failed, to be tried again or not, no longer holds back higher orders, only
what depends on it: one broken package must not stop the rest. Losing a gate pauses: only a user's or a script's no uninstalls
(DESIGN §7). A step costs what the event can reach, never what the graph has.

While paused, everything is taken in and nothing is decided. It starts paused.

No clock, no I/O, no waiting: `step` returns the next graph and what to do, in an order that depends on the story alone.
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
    """The next graph, and what to do, in order; ``at`` is when, and only ever shown.

    Raises CycleError when a node would close a cycle; nothing was changed then.
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
    """What would be decided of those whose decision can follow, were ``name`` the ``node`` (None: gone). Raises CycleError."""
    turn = _Turn(graph, None)
    turn.take_in(NodeRemoved(name) if node is None else NodeAdded(node))
    turn.everything = graph.paused  # nothing was decided yet, so nothing stands
    return turn.decisions()


class _Turn:
    """One step under way: what it may change of the graph, and what it has ordered so far."""

    def __init__(self, graph: Graph, at: datetime | None) -> None:
        self.before = graph
        self.at = at
        self.entries, self.intents, self.flags = graph.entries, graph.intents, graph.flags
        self.facts, self.paused = graph.facts, graph.paused
        self.runs, self.news, self.topology, self.tiers = graph.runs, graph.news, graph.topology, graph.tiers
        self.subscribers, self.engine = graph.subscribers, graph.engine
        self.effects: list[Effect] = []
        self.suspects: set[str] = set()
        """Names, there or not, whose decisions, and those that follow from them, may have changed."""
        self.everything = False
        """All are suspects."""
        self.asked: set[str] = set()
        """Nodes whose bodies are to look again."""
        self.released: list[int] = []
        """Orders that nobody holds any more."""

    @property
    def changed(self) -> bool:
        """Whether what was taken in makes any difference."""
        return bool(self.suspects or self.asked) or self.everything or self.paused is not self.before.paused

    def graph(self) -> Graph:
        """What the graph is after this turn."""
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
        )

    # --- taking in -----------------------------------------------------------------------------------------------------

    def take_in(self, event: Event) -> None:
        """What an event says, without what follows from it."""
        match event:
            case NodeAdded(node):
                self._add(node)
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
            vote = ScriptVote(enabled=None)  # what is on stays on until a script that is new says otherwise
        entry = Entry(
            node, Idle(), old.decision if old else None, vote, node.script, (), self.at, old.run if old else 0
        )
        rewired = with_node(
            self.topology, Nodes(self.entries.insert(name, entry)), name, old.node if old else None
        )  # or CycleError: nothing was touched so far
        order = self.topology.effective.get(name) if old and not old.released else None
        self.entries = self.entries.insert(name, entry)
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

    def _remove(self, name: str) -> None:
        old = self.entries.get(name)
        if old is None:
            return
        self.suspects.add(name)
        order = None if old.released else self.topology.effective[name]
        self.entries = self.entries.remove(name)
        self._rewire(without_node(self.topology, Nodes(self.entries), old.node))
        self._hold(order, None)
        self._subscribe(name, old.node.subscriptions, ())
        self._tell_engine(Removed(package_id(name)))
        if old.on:
            self._tell_subscribers(name)
        self.asked.discard(name)

    def _rewire(self, rewired: Rewired) -> None:
        before, self.topology = self.topology, rewired.topology
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
        """What a run reports changes its own node while the run is the current one, and nothing otherwise."""
        entry = self.entries.get(name)
        match entry:
            case Entry(phase=Scheduled(run=current)) if current == run:
                self._put(replace(entry, phase=phase))
            case _:
                pass

    def _again(self, name: str, reason: str) -> bool:
        """It is to run again, if it is on or may yet be; False where it is off, or not there."""
        entry = self.entries.get(name)
        if entry is None or (entry.decision is not None and not entry.on and not entry.decision.pending):
            return False
        self._put(replace(entry, phase=Idle(reason)))
        return True

    def _tell_subscribers(self, name: str) -> None:
        """Those that asked for it run again with it: one level, and in their own time."""
        for each in sorted(self.subscribers.get(name) or ()):
            entry = self.entries.get(each)
            if each != name and entry is not None and not isinstance(entry.phase, Idle):
                self._again(each, f"SubscriptionTriggered:{name}")

    def _put(self, entry: Entry) -> None:
        """The entry as it is from now on; its tier and its body hear of it."""
        name = entry.node.name
        old = self.entries[name]
        waits_on = isinstance(entry.phase, Idle) and isinstance(old.phase, Idle)
        if (entry.phase != old.phase and not waits_on) or _text(entry.decision) != _text(old.decision):
            entry = replace(entry, lacks=(), since=self.at, stuck=False)
        self._keep(old, entry)
        self.asked.add(name)

    def _keep(self, old: Entry, entry: Entry) -> None:
        """The entry as it is from now on; its tier hears of it, and who is parked on it if that is in vain now, or no longer."""
        name = entry.node.name
        if entry.released != old.released:
            order = self.topology.effective[name]
            self._hold(*((order, None) if entry.released else (None, order)))
        self.entries = self.entries.insert(name, entry)
        if entry.hopeless != old.hopeless:
            self._recall(name)

    def _recall(self, name: str) -> None:
        self.asked.update(waiter.name for waiter in self.engine.waiters(package_id(name)))

    def _hold(self, before: int | None, after: int | None) -> None:
        self.tiers = self.tiers.moved(before, after)
        if before is not None and not self.tiers.is_held(before):
            self.released.append(before)

    # --- judging -------------------------------------------------------------------------------------------------------

    def decisions(self) -> dict[str, Decision]:
        """What is decided now of all whose decision may have changed, in topological order."""
        nodes = Nodes(self.entries)
        if self.everything:
            return decide(nodes, self.topology, self.facts, {name: self._opinion(name) for name in self.entries})
        names = self.topology.affected_by(nodes, sorted(self.suspects))
        return decide_affected(names, nodes, self.topology, self.facts, self._opinion, self._standing)

    def judge(self) -> None:
        """Decide, and take in what was decided."""
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
        """Take in a decision, and tell what is new about it; True where it is on and was not, or the other way round."""
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

    # --- working -------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Have the engine run the bodies of all that are to look again, and of those that these wake."""
        self._call()
        while (dispatch := self._pull()) is not None:
            self._tell_engine(Finished(dispatch.id, dispatch.run, self._body(dispatch.id.name)))
            self._call()

    def _call(self) -> None:
        """Tell the engine who is to look again, and which tiers were released."""
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
        """Where a package stands, as the engine sees it; one whose turn it is is scheduled here."""
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
        """What an idle node waits for; nothing when it may go."""
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
    """What is told of a decision; where that is as it was, nothing new was decided."""
    return None if decision is None else (decision.on, decision.reason.value, decision.message)
