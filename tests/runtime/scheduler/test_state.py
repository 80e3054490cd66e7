"""The state of the scheduler: it is frozen, and is read without copies."""

from dataclasses import FrozenInstanceError

import pytest

from tests.runtime.support.nodes import module, node
from tests.runtime.support.scheduler_world import World
from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.scheduler.events import IntentSet, Paused, Rescheduled, ScriptVoted
from wharfinger.runtime.scheduler.rules import Opinion, ScriptVote
from wharfinger.runtime.scheduler.state import Active, Entry, Graph, Idle, Scheduled, package_id, vote_id


def test_nodes_are_read_from_the_entries() -> None:
    nodes = World(node("a"), node("b", "a")).graph.nodes
    assert dict(nodes) == {"a": node("a"), "b": node("b", "a")}
    assert len(nodes) == 2
    assert "a" in nodes
    assert "c" not in nodes
    assert nodes.get("c") is None


def test_an_entry_holds_its_tier_until_active_or_failed() -> None:
    entry = Entry(node("a"))
    assert not entry.released
    assert not entry.on
    for phase, released in (
        (Idle("x"), False),
        (Scheduled(1), False),
        (Scheduled(1, failed=True), True),
        (Active(), True),
    ):
        assert Entry(node("a"), phase).released is released


def test_ids_of_packages_and_votes_differ() -> None:
    assert package_id("a") == Id("Package", "", "a")
    assert vote_id("a") == Id("Vote", "", "a")


def test_opinions_combine_intent_and_vote() -> None:
    world = World(module("mod", script=True))
    world.tell(IntentSet("mod", enabled=True), ScriptVoted("mod", None))
    assert world.graph.opinion("mod") == Opinion(True, ScriptVote(None))


def test_the_standing_decision_is_the_last_one() -> None:
    world = World(node("a"))
    decision = world.graph.standing("a")
    assert decision is not None
    assert decision.on
    assert world.graph.standing("gone") is None
    assert world.graph.decisions() == {"a": decision}


def test_earlier_states_do_not_change() -> None:
    world = World(node("a"))
    before = world.graph
    world.tell(Paused(), Rescheduled("a", "SettingsChanged"))
    assert before.entries["a"].phase == Scheduled(1)
    with pytest.raises(FrozenInstanceError):
        setattr(before, "paused", True)  # noqa: B010 - mypy would not let us
    assert Graph() == Graph()
