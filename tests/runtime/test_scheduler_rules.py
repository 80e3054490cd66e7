"""The scheduler and its invariants, tested with random sequences of events.

The docstring of `wharfinger/runtime/scheduler/machine.py` explains the theory.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.runtime.support.nodes import group, node
from tests.scale import scaled
from wharfinger.runtime.scheduler.events import (
    Completed,
    Decided,
    Disable,
    Event,
    FactsChanged,
    Failed,
    IntentSet,
    NodeAdded,
    NodeRemoved,
    Paused,
    Rescheduled,
    Resumed,
    Schedule,
    ScriptVoted,
)
from wharfinger.runtime.scheduler.graph import CycleError, Node, Verdict
from wharfinger.runtime.scheduler.machine import step
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.state import Active, Graph, Idle, Scheduled

NAMES = "abcde"
SOME = st.sampled_from(NAMES)
FLOORS = st.sampled_from([Verdict.ENABLE, Verdict.ENABLE, Verdict.DISABLE])
CONSTRAINTS = st.sampled_from(["", "", " >=2", " <2"])
MEMBERS = st.lists(st.builds(str.__add__, SOME, CONSTRAINTS), max_size=2, unique_by=lambda text: text[0])


@st.composite
def any_node(draw: st.DrawFn) -> Node:
    any_of, none_of = draw(st.just([]) | MEMBERS), draw(st.just([]) | MEMBERS)
    return node(
        draw(SOME),
        *draw(MEMBERS),
        version=draw(st.sampled_from(["1.0.0", "2.0.0-rc.1"])),
        order=draw(st.sampled_from([1, 2, 999])),
        optional=draw(MEMBERS),
        any_of=[group("any", *any_of)] if any_of else [],
        none_of=[group("none", *none_of)] if none_of else [],
        kubernetes=draw(st.sampled_from([None, None, ">=1.30"])),
        floor=draw(FLOORS),
        script=draw(st.integers(0, 3)) == 0,
        subscriptions=sorted(draw(st.just(set()) | st.sets(SOME, max_size=2))),
        bundles=draw(st.sampled_from([(), (), (("ce", "Default"),)])),
    )


class SchedulerMachine(RuleBasedStateMachine):
    """The owner of a scheduler: it sends random events, and records the effects. It reports the ends of runs in random order,
    and also the ends of outdated runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.graph = Graph()
        self.runs: dict[int, str] = {}
        self.allowed: dict[str, bool] = {}
        self.running: dict[str, int] = {}

    def send(self, event: Event) -> None:
        before = self.graph
        self.graph, effects = step(before, event)
        if self.graph.paused:
            assert effects == ()
        scheduled = set()
        for effect in effects:
            match effect:
                case Schedule(name, run):
                    assert run not in self.runs, "a run number was used twice"
                    assert run > max(self.runs, default=0)
                    assert self.allowed[name], "a node that is off was scheduled"
                    self.runs[run] = name
                    self.running[name] = run
                    scheduled.add(name)
                case Disable(name):
                    assert not self.allowed[name]
                    assert not scheduled, "work was ordered before other work was stopped"
                    self.running.pop(name, None)
                case Decided(name, allowed):
                    self.allowed[name] = allowed
        self.check_scheduled(scheduled)
        self.check_untouched(before, event, {effect.name for effect in effects})

    def check_scheduled(self, names: set[str]) -> None:
        """Check that these nodes may be scheduled: all nodes that they wait for are active, and each node of a lower order is
        active, or its run has failed.
        """
        order = self.graph.topology
        for name in names:
            for each in order.waits_for[name]:
                assert isinstance(self.graph.entries[each].phase, Active), f"{name} does not wait for {each}"
            for each, entry in self.graph.entries.items():
                if order.effective[each] < order.effective[name]:
                    assert isinstance(entry.phase, Active) or (
                        isinstance(entry.phase, Scheduled) and entry.phase.failed
                    )

    def check_untouched(self, before: Graph, event: Event, told: set[str]) -> None:
        """Check that an event changes only the phases of its own node, of nodes that an effect names, of subscribers, and of
        nodes that are off.
        """
        named = event.node.name if isinstance(event, NodeAdded) else getattr(event, "name", "")
        again = isinstance(event, NodeAdded | Rescheduled)
        for name, entry in self.graph.entries.items():
            if again and named in entry.node.subscriptions and entry.phase == Idle(f"SubscriptionTriggered:{named}"):
                continue
            if name != named and name not in told:
                assert name in before.entries
                assert entry.phase == before.entries[name].phase or (entry.phase == Active() and not entry.on)

    # --- possible events --------------------------------------------------------------------------------------------------

    @rule(added=any_node())
    def add(self, added: Node) -> None:
        before = self.graph
        try:
            self.send(NodeAdded(added))
        except CycleError as error:
            assert self.graph is before
            assert added.name in error.members

    @rule(name=SOME)
    def remove(self, name: str) -> None:
        self.send(NodeRemoved(name))
        self.allowed.pop(name, None)
        self.running.pop(name, None)

    @precondition(lambda self: self.runs)
    @rule(which=st.integers(0, 1000), failed=st.booleans())
    def report_any_run(self, which: int, failed: bool) -> None:
        run = sorted(self.runs)[which % len(self.runs)]
        name, before = self.runs[run], self.graph
        current = name in before.entries and before.entries[name].phase in {Scheduled(run), Scheduled(run, failed=True)}
        self.send(Failed(name, run) if failed else Completed(name, run))
        if not current:
            assert self.graph is before, "a superseded run changed something"

    @rule(which=st.integers(0, 1000))
    def complete_a_current_run(self, which: int) -> None:
        current = [name for name, entry in self.graph.entries.items() if isinstance(entry.phase, Scheduled)]
        if current:
            name = sorted(current)[which % len(current)]
            phase = self.graph.entries[name].phase
            assert isinstance(phase, Scheduled)
            self.send(Completed(name, phase.run))

    @rule(name=SOME)
    def reschedule(self, name: str) -> None:
        self.send(Rescheduled(name, "again"))

    @rule(name=SOME, enabled=st.sampled_from([True, False, None]))
    def intend(self, name: str, enabled: bool | None) -> None:
        self.send(IntentSet(name, enabled))

    @rule(name=SOME, enabled=st.sampled_from([True, False, None]), error=st.sampled_from(["", "", "exit 1"]))
    def vote(self, name: str, enabled: bool | None, error: str) -> None:
        self.send(ScriptVoted(name, enabled, "so", error))

    @rule(
        version=st.sampled_from(["", "1.29.0", "1.31.0"]),
        bootstrapped=st.sampled_from([True, True, False]),
        bundle=st.sampled_from(["", "Default"]),
    )
    def upgrade(self, version: str, bootstrapped: bool, bundle: str) -> None:
        self.send(FactsChanged(Facts(version, "", bootstrapped, "ce", bundle)))

    @rule()
    def pause(self) -> None:
        self.send(Paused())

    @rule()
    def resume(self) -> None:
        self.send(Resumed())

    # --- invariants -------------------------------------------------------------------------------------------------------

    @invariant()
    def what_is_off_never_runs(self) -> None:
        if not self.graph.paused:
            for name, entry in self.graph.entries.items():
                assert entry.decision is not None
                assert entry.on is self.allowed[name]
                if isinstance(entry.phase, Scheduled):
                    assert entry.on
                    assert self.running[name] == entry.phase.run
                if not entry.on and not entry.decision.pending:
                    assert isinstance(entry.phase, Active)

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """Check that each idle node that is on waits for something: for its script's vote, for a dependency that is not active,
        or for a node of a lower order.
        """
        if self.graph.paused:
            return
        phases = {name: entry.phase for name, entry in self.graph.entries.items()}
        for name, entry in self.graph.entries.items():
            if isinstance(entry.phase, Idle) and entry.on and not entry.vote_due:
                lower = [
                    each
                    for each, order in self.graph.topology.effective.items()
                    if order < self.graph.topology.effective[name] and not isinstance(phases[each], Active)
                ]
                waits = [each for each in self.graph.topology.waits_for[name] if not isinstance(phases[each], Active)]
                assert waits or any(phases[each] != Active() for each in lower), f"{name} waits for nothing"

    @invariant()
    def only_what_is_there_matters(self) -> None:
        """Check that a new scheduler makes the same decisions, although it gets the nodes in reverse order, and is paused
        meanwhile.
        """
        if self.graph.paused:
            return
        other = Graph(facts=self.graph.facts, intents=self.graph.intents)
        for _, entry in sorted(self.graph.entries.items(), reverse=True):
            other, _ = step(other, NodeAdded(entry.node))
            if entry.vote is not None:
                other, _ = step(
                    other, ScriptVoted(entry.node.name, entry.vote.enabled, entry.vote.reason, entry.vote.error)
                )
        _, effects = step(other, Resumed())
        decided = {effect.name: effect for effect in effects if isinstance(effect, Decided)}
        for name, entry in self.graph.entries.items():
            assert entry.decision is not None
            assert decided[name] == Decided(name, entry.on, entry.decision.reason.value, entry.decision.message)

    def teardown(self) -> None:
        """Check that everything becomes active within a bounded number of runs if all votes arrive and all runs succeed."""
        self.send(Resumed())
        for name, entry in sorted(self.graph.entries.items()):
            if entry.vote_due:
                self.send(ScriptVoted(name, enabled=True))
        for _ in range(2 * len(NAMES)):
            for name, entry in sorted(self.graph.entries.items()):
                if isinstance(entry.phase, Scheduled):
                    self.send(Completed(name, entry.phase.run))
        assert all(isinstance(entry.phase, Active) for entry in self.graph.entries.values())


TestSchedulerMachine = SchedulerMachine.TestCase
TestSchedulerMachine.settings = settings(max_examples=scaled(2000, 60), stateful_step_count=40, deadline=None)


def test_effects_do_not_depend_on_the_order_of_insertion() -> None:
    nodes = [
        node("web", "db", order=3, optional=["cache"]),
        node("db", order=7),
        node("cache", none_of=[group("g", "other")]),
        node("other", any_of=[group("g", "db", "web")]),
        node("batch", "gone"),
    ]
    told = []
    for arrival in (nodes, nodes[::-1], nodes[2:] + nodes[:2]):
        graph = Graph()
        for each in arrival:
            graph, _ = step(graph, NodeAdded(each))
        told.append(step(graph, Resumed())[1])
    assert told[0] == told[1] == told[2]
    assert len([effect for effect in told[0] if isinstance(effect, Schedule)]) == 1
