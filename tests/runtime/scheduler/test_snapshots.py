"""Snapshots of nodes. More cases are in the tests of the dump, in test_scheduler.py."""

import pytest

from tests.runtime.support.nodes import module, node
from tests.runtime.support.scheduler_world import World
from wharfinger.runtime.scheduler import snapshots as scheduler_snapshots
from wharfinger.runtime.scheduler.events import Failed, IntentSet, ScriptVoted
from wharfinger.runtime.scheduler.snapshots import holders, node_snapshot, node_snapshots
from wharfinger.runtime.scheduler.state import Graph
from wharfinger.runtime.scheduler_details import LackSnapshot, VoteSnapshot


def test_missing_dependencies_are_shown_with_their_state() -> None:
    world = World(node("base"), node("app", "base"), node("last", "app"))
    assert node_snapshot(world.graph, "app").lacks == (LackSnapshot("package", "base", "scheduled"),)
    assert node_snapshot(world.graph, "last").lacks == (LackSnapshot("package", "app", "idle"),)
    world.tell(Failed("base", 1))
    assert node_snapshot(world.graph, "app").lacks == (LackSnapshot("package", "base", "failed"),)
    assert node_snapshot(world.graph, "base").failed


def test_packages_that_hold_a_tier_are_shown() -> None:
    world = World(*(node(f"n{number}", order=1) for number in range(7)), node("app"))
    app = node_snapshot(world.graph, "app")
    assert app.lacks == (LackSnapshot("tier", "1", "held"),)
    assert app.message == "waits for packages of order 1: n0, n1, n2, n3, n4 and 2 more"
    assert holders(world.graph, 1) == tuple(f"n{number}" for number in range(7))
    world.complete("n3")
    assert "n3" not in holders(world.graph, 1)


def test_a_running_script_is_shown_as_awaited() -> None:
    world = World(node("app", script=True))
    shown = node_snapshot(world.graph, "app")
    assert (shown.lacks, shown.message) == ((LackSnapshot("vote", "app", "awaited"),), "waits for its enabled script")


def test_every_rule_with_an_opinion_is_shown_in_order() -> None:
    world = World(module("mod", "db", script=True))
    world.tell(IntentSet("mod", enabled=True), ScriptVoted("mod", enabled=False, reason="no GPU"))
    assert node_snapshot(world.graph, "mod").votes == (
        VoteSnapshot("Disable", "DisabledByDefault", "the package is off by default, and not enabled"),
        VoteSnapshot("Forbid", "DependencyNotEnabled", "dependency db is not installed"),
        VoteSnapshot("Enable", "DynamicallyEnabled", ""),
        VoteSnapshot("Forbid", "DisabledByScript", "no GPU"),
    )


def test_snapshots_of_all_nodes_equal_single_snapshots() -> None:
    world = World(*(node(f"n{number}", order=1) for number in range(7)), node("app"), node("more", "app"))
    shown = node_snapshots(world.graph)
    assert [each.name for each in shown] == sorted(world.graph.entries)
    assert shown == tuple(node_snapshot(world.graph, each.name) for each in shown)


def test_holders_of_a_tier_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lookup for each package would be too slow if ten thousand packages waited for the packages of one order (a tier)."""
    world = World(node("first", order=1), *(node(f"n{number:03}") for number in range(100)))
    looks: list[int] = []

    def counted(graph: Graph, order: int) -> tuple[str, ...]:
        looks.append(order)
        return holders(graph, order)

    monkeypatch.setattr(scheduler_snapshots, "holders", counted)
    assert len(node_snapshots(world.graph)) == 101
    assert looks == [1]
