"""Exclusive groups: only one Module of a group is on, for any sequence of events."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.support.nodes import grouped, node
from wharfinger.runtime.scheduler.events import IntentSet, NodeAdded, NodeRemoved, Resumed, ScriptVoted
from wharfinger.runtime.scheduler.exclusive_groups import outranking, regrouped
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.scheduler import Scheduler


def started() -> Scheduler:
    scheduler = Scheduler()
    scheduler.apply(Resumed())
    return scheduler


def on(scheduler: Scheduler) -> set[str]:
    return set(scheduler.enabled_names())


def test_the_lowest_order_and_then_the_first_name_take_precedence() -> None:
    peers = [grouped("b"), grouped("z", order=1), grouped("other", order=0, group="x"), node("none", order=0)]
    assert outranking(grouped("c"), peers) == ("b", "z")
    assert outranking(grouped("a"), peers) == ("z",)
    assert outranking(node("c"), peers) == ()
    assert [each.name for each in regrouped(grouped("a"), [*peers, grouped("a", order=5)])] == ["a", "b"]


def test_one_module_of_a_group_is_on_and_the_others_name_it() -> None:
    scheduler = started()
    scheduler.apply(NodeAdded(grouped("flannel")))
    assert on(scheduler) == {"flannel"}
    scheduler.apply(NodeAdded(grouped("cilium")))
    assert on(scheduler) == {"cilium"}
    decision = scheduler.decision("flannel")
    assert decision is not None
    assert decision.reason == "ExclusiveGroupTaken"
    assert decision.message == "only one Module of the exclusive group 'cni' may be on, and cilium takes precedence"
    assert scheduler.unwanted("flannel")
    snapshot = scheduler.snapshot("flannel")
    assert snapshot is not None
    assert [(group.kind, group.members[0].name) for group in snapshot.groups] == [("noneOf", "cilium")]


def test_a_disabled_module_yields_to_the_next_in_its_group() -> None:
    scheduler = started()
    for each in ("flannel", "cilium", "calico"):
        scheduler.apply(NodeAdded(grouped(each)))
    assert on(scheduler) == {"calico"}
    scheduler.apply(IntentSet("calico", enabled=False))
    assert on(scheduler) == {"cilium"}
    scheduler.apply(NodeRemoved("cilium"))
    assert on(scheduler) == {"flannel"}
    scheduler.apply(IntentSet("calico", enabled=True))
    assert on(scheduler) == {"calico"}


def test_a_paused_module_still_occupies_its_group() -> None:
    scheduler = started()
    scheduler.apply(NodeAdded(node("mesh")))
    scheduler.apply(NodeAdded(grouped("cilium", "mesh")))
    scheduler.apply(NodeAdded(grouped("flannel")))
    assert on(scheduler) == {"mesh", "cilium"}
    scheduler.apply(NodeRemoved("mesh"))
    assert on(scheduler) == set()
    assert not scheduler.unwanted("cilium")
    decision = scheduler.decision("flannel")
    assert decision is not None
    assert decision.message == (
        "only one Module of the exclusive group 'cni' may be on, and cilium (which should be on, but is off) "
        "takes precedence"
    )
    scheduler.apply(IntentSet("cilium", enabled=False))
    assert on(scheduler) == {"flannel"}


def test_blocked_modules_name_the_paused_module_of_their_group() -> None:
    """A paused Module takes precedence over the other Modules of its group, and so blocks them. Their messages must name this
    Module.

    Disabling any other Module of the group would not help.
    """
    scheduler = started()
    scheduler.apply(NodeAdded(grouped("weave", "mesh", order=1)))
    scheduler.apply(NodeAdded(grouped("calico", order=2)))
    scheduler.apply(NodeAdded(grouped("flannel", order=3)))
    for name in ("calico", "flannel"):
        decision = scheduler.decision(name)
        assert decision is not None
        assert decision.message.endswith("may be on, and weave (which should be on, but is off) takes precedence")


@pytest.mark.parametrize(
    ("vote", "installed"),
    [
        (ScriptVoted("cilium", None), "cilium"),
        (ScriptVoted("cilium", None, error="it crashed"), ""),
        (ScriptVoted("cilium", enabled=False, provisional=True), ""),
        (ScriptVoted("cilium", enabled=False), "flannel"),
    ],
    ids=["no objection", "failed", "provisional no", "no"],
)
def test_only_a_negative_vote_of_a_script_frees_the_group(vote: ScriptVoted, installed: str) -> None:
    scheduler = started()
    scheduler.apply(NodeAdded(replace(grouped("cilium"), script=True)))
    scheduler.apply(NodeAdded(grouped("flannel")))
    assert on(scheduler) == set()
    scheduler.apply(vote)
    assert on(scheduler) == ({installed} if installed else set())


def test_a_module_that_is_off_by_default_does_not_occupy_its_group() -> None:
    scheduler = started()
    scheduler.apply(NodeAdded(replace(grouped("cilium"), floor=Verdict.DISABLE)))
    scheduler.apply(NodeAdded(grouped("flannel")))
    assert on(scheduler) == {"flannel"}


def test_a_module_that_leaves_its_group_excludes_no_module() -> None:
    scheduler = started()
    scheduler.apply(NodeAdded(grouped("cilium")))
    scheduler.apply(NodeAdded(grouped("flannel")))
    scheduler.apply(NodeAdded(grouped("cilium", group="")))
    assert on(scheduler) == {"cilium", "flannel"}
    scheduler.apply(NodeAdded(grouped("cilium", order=1000)))
    assert on(scheduler) == {"flannel"}


def test_a_module_that_needs_a_member_of_its_group_is_stably_off() -> None:
    scheduler = started()
    scheduler.apply(NodeAdded(grouped("a", "b")))
    scheduler.apply(NodeAdded(grouped("b")))
    assert on(scheduler) == {"b"}


NAMES = st.sampled_from("abcd")
NODES = st.builds(
    lambda name, order, group: grouped(name, order=order, group=group),
    NAMES,
    st.integers(1, 3),
    st.sampled_from(("", "x", "y")),
)
EVENTS = st.one_of(
    st.builds(NodeAdded, NODES), st.builds(NodeRemoved, NAMES), st.builds(IntentSet, NAMES, st.booleans())
)


@given(st.lists(EVENTS, max_size=15))
def test_decisions_do_not_depend_on_the_sequence_of_events(events: list[NodeAdded | NodeRemoved | IntentSet]) -> None:
    """In each group, the first wanted Module is on, by order and then by name. Each wanted Module without a group is on. Only the
    last node and the last intent of each name matter.
    """
    scheduler, nodes, intents = started(), dict[str, Node](), dict[str, bool | None]()
    for event in events:
        scheduler.apply(event)
        match event:
            case NodeAdded(each):
                nodes[each.name] = each
            case NodeRemoved(name):
                nodes.pop(name, None)
            case IntentSet(name, enabled):
                intents[name] = enabled
    wanted = [each for each in nodes.values() if intents.get(each.name) is not False]
    winners = {each.name for each in wanted if not each.exclusive}
    for group in "xy":
        members = [each for each in wanted if each.exclusive == group]
        if members:
            winners.add(min(members, key=lambda each: (each.order, each.name)).name)
    assert on(scheduler) == winners
    again = started()
    for name in sorted(intents):
        again.apply(IntentSet(name, intents[name]))
    for name in sorted(nodes, reverse=True):
        again.apply(NodeAdded(nodes[name]))
    assert on(again) == winners
