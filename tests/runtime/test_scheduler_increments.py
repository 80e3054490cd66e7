"""The scheduler's incremental decisions, compared with decisions from scratch.

At an event, the scheduler evaluates only the nodes that the event reaches. After every event of a random history, the topology
still matches the nodes, every decision is up to date, and another evaluation of all nodes changes nothing.
"""

from dataclasses import replace
from random import Random as Numbers

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.runtime.support.nodes import group, node
from tests.scale import scaled
from wharfinger.runtime.scheduler.events import (
    Completed,
    Event,
    FactsChanged,
    Failed,
    IntentSet,
    NodeAdded,
    NodeRemoved,
    Paused,
    Rescheduled,
    Resumed,
    ScriptVoted,
)
from wharfinger.runtime.scheduler.graph import CycleError, Node, Verdict, topology
from wharfinger.runtime.scheduler.machine import step
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.state import PACKAGE, Active, Entry, Graph, Idle, Scheduled, package_id

NAMES = tuple(f"n{number}" for number in range(8))


def random_node(random: Numbers, name: str, *, groups: bool) -> Node:
    others = [each for each in NAMES if each != name]
    needs = [each + random.choice(["", " >=2"]) for each in random.sample(others, random.choice([0, 0, 1, 2]))]
    any_of = [group("g", *random.sample(others, 2))] if groups and random.random() < 0.2 else []
    none_of = [group("h", random.choice(others))] if groups and random.random() < 0.1 else []
    return node(
        name,
        *needs,
        optional=random.sample(others, random.choice([0, 0, 1])),
        version=random.choice(["1.0.0", "2.0.0"]),
        order=random.choice([1, 5, 999]),
        script=random.random() < 0.2,
        floor=random.choice([Verdict.ENABLE, Verdict.ENABLE, Verdict.DISABLE]),
        any_of=any_of,
        none_of=none_of,
    )


def random_event(random: Numbers, graph: Graph, *, groups: bool) -> Event:
    name = random.choice(NAMES)
    running = [(each, entry.phase.run) for each, entry in graph.entries.items() if isinstance(entry.phase, Scheduled)]
    kind = random.random()
    if kind < 0.3:
        return NodeAdded(random_node(random, name, groups=groups))
    if kind < 0.45:
        return NodeRemoved(name)
    if kind < 0.55:
        return IntentSet(name, random.choice([True, False, None]))
    if kind < 0.65:
        return ScriptVoted(name, random.choice([True, False, None]), "because", random.choice(["", "", "broken"]))
    if kind < 0.72:
        told: tuple[Event, ...] = (Paused(), Resumed(), Resumed(), FactsChanged(Facts("1.30.0", "")))
        return random.choice(told)
    if running and kind < 0.95:
        run = random.choice(running)
        return Completed(*run) if random.random() < 0.75 else Failed(*run)
    return Rescheduled(name, "asked for")


def assert_parked_rightly(graph: Graph, name: str, entry: Entry) -> None:
    """Check what a node is parked on. An idle node is parked on everything that it lacks, and any other node is not parked.

    The index of the fixpoint engine and the entry of the node must agree.
    """
    assert graph.engine.lacks(package_id(name)) == tuple(sorted(entry.lacks))
    assert bool(entry.lacks) == isinstance(entry.phase, Idle)
    assert entry.stuck == any(each.kind == PACKAGE and graph.entries[each.name].hopeless for each in entry.lacks)
    for lacked in entry.lacks:
        match lacked.kind:
            case "Package":
                assert not isinstance(graph.entries[lacked.name].phase, Active)
            case "Tier":
                assert graph.tiers.is_held(int(lacked.name))
                assert int(lacked.name) < graph.topology.effective[name]
            case _:
                assert entry.vote_due or not entry.on


def settled(graph: Graph) -> dict[str, Entry]:
    """Return the entries, but clear their fields ``lacks`` and ``stuck``, because these fields depend on the order of events.

    While a node is parked on a tier (the nodes of one order), it is not checked what else the node lacks.
    """
    return {name: replace(entry, lacks=(), stuck=False) for name, entry in graph.entries.items()}


@given(seed=st.integers(0, 2**32), groups=st.booleans())
@settings(max_examples=scaled(2_000, 50), deadline=None)
@example(seed=54806412, groups=False)
def test_incremental_decisions_agree_with_decisions_from_scratch(seed: int, groups: bool) -> None:
    random = Numbers(seed)  # noqa: S311 - a story, no secret
    graph, _ = step(Graph(), Resumed())
    for _ in range(40):
        try:
            graph, _ = step(graph, random_event(random, graph, groups=groups))
        except CycleError:
            continue
        assert graph.topology == topology(graph.nodes)
        if not graph.paused:
            assert {name: entry.decision for name, entry in graph.entries.items()} == graph.decisions()
            again, effects = step(graph, Resumed())
            assert effects == (), "another evaluation finds nothing to do"
            assert settled(again) == settled(graph)
            for name, entry in graph.entries.items():
                assert_parked_rightly(graph, name, entry)
