"""The scheduler's cases in the specification (spec/runtime §12), and further guarantees of its design."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.runtime.support.nodes import group, module, node
from tests.runtime.support.scheduler_world import World, running
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
from wharfinger.runtime.scheduler.graph import CycleError, Node
from wharfinger.runtime.scheduler.machine import step
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.state import Graph, Idle


def test_add_node_and_schedule() -> None:
    world = World(node("app"))
    assert world.said() == [
        Decided("app", allowed=True, reason="EnabledByDefault", message=""),
        Schedule("app", run=1, reason="Scheduled"),
    ]
    world.complete("app")
    assert world.phase("app") == "Active"
    assert world.said() == []


def test_floor_disable_keeps_node_off() -> None:
    world = World(module("mod"))
    assert world.said() == [
        Decided(
            "mod", allowed=False, reason="DisabledByDefault", message="the package is off by default, and not enabled"
        )
    ]
    assert world.phase("mod") == "Active"


def test_order_tier_gate() -> None:
    world = World(resumed=False)
    for each in (node("late"), node("early", order=10), node("mid", order=20), node("first", order=10)):
        world.tell(NodeAdded(each))
    world.tell(Resumed())
    assert world.scheduled() == ["early", "first"]
    world.complete("early")
    assert world.scheduled() == []
    world.complete("first")
    assert world.scheduled() == ["mid"]
    world.complete("mid")
    assert world.scheduled() == ["late"]


def test_disabled_node_unblocks_higher_tier() -> None:
    world = World(node("critical", order=10), node("app"))
    assert world.scheduled() == ["critical"]
    world.tell(IntentSet("critical", enabled=False))
    assert world.scheduled() == ["app"]
    assert World(module("off", order=10), node("app")).scheduled() == ["app"]


def test_failed_node_unblocks_higher_tier_but_not_its_dependents() -> None:
    world = World(node("critical", order=10), node("app"), node("user", "critical"))
    world.said()
    world.tell(Failed("critical", 99))
    assert world.scheduled() == []
    world.tell(Failed("critical", 1))
    assert world.scheduled() == ["app"]
    world.tell(Completed("critical", 1))
    assert world.scheduled() == ["user"]


def test_mandatory_dependency() -> None:
    world = World(node("app", "db"))
    assert world.said() == [
        Decided("app", allowed=False, reason="DependencyNotEnabled", message="dependency db is not installed")
    ]
    world.tell(NodeAdded(node("db")))
    assert world.said() == [
        Decided("db", allowed=True, reason="EnabledByDefault", message=""),
        Decided("app", allowed=True, reason="EnabledByDefault", message=""),
        Schedule("db", 1, "Scheduled"),
    ]
    world.complete("db")
    assert world.said() == [Schedule("app", 2, "DecisionChanged:EnabledByDefault")]


def test_conditional_dependency_absent_is_ok() -> None:
    assert World(node("app", optional=["db"])).scheduled() == ["app"]
    assert World(module("db"), node("app", optional=["db"])).scheduled() == ["app"]


def test_conditional_dependency_present_is_waited_for() -> None:
    world = World(node("db"), node("app", optional=["db"]))
    assert world.scheduled() == ["db"]
    world.complete("db")
    assert world.scheduled() == ["app"]


def test_same_tier_dependency_waits_for_active() -> None:
    world = World(node("a-db"), node("app", "a-db"))
    assert world.scheduled() == ["a-db"]
    assert world.on() == {"a-db", "app"}
    world.complete("a-db")
    assert world.scheduled() == ["app"]


def test_disabled_dependency_does_not_satisfy() -> None:
    world = World(module("db"), node("app", "db"))
    assert world.decided()["app"].reason == "DependencyNotEnabled"
    world.tell(IntentSet("db", enabled=True))
    assert world.decided()["app"].allowed


def test_dependency_constraint_checked_against_graph_version() -> None:
    world = running(node("db", version="1.5.0"), node("app", "db ~1.5"))
    world.tell(NodeAdded(node("db", version="1.6.0")))
    assert world.said() == [
        Decided("app", False, "DependencyVersionMismatch", "dependency db (~1.5) is not met by version 1.6.0"),
        Disable("app", "DependencyVersionMismatch", "dependency db (~1.5) is not met by version 1.6.0", False),
        Schedule("db", 3, "Scheduled"),
    ]
    world.tell(NodeAdded(node("db", version="1.5.1-rc.1")))
    world.complete("db")
    assert world.scheduled() == ["db", "app"]


def test_enabled_to_disabled_flip_emits_event_disable() -> None:
    world = running(node("db"), node("app", "db"))
    world.tell(NodeRemoved("db"))
    why = ("DependencyNotEnabled", "dependency db is not installed")
    assert world.said() == [Decided("app", False, *why), Disable("app", *why, uninstall=False)]
    assert world.phase("app") == "Active"
    world.tell(NodeAdded(node("db")))
    world.complete("db")
    assert world.scheduled() == ["db", "app"]


def test_status_flip_resets_only_affected_node() -> None:
    world = running(node("a"), node("b"), module("mod"), node("c", "a"))
    world.tell(IntentSet("b", enabled=False))
    assert [type(effect).__name__ for effect in world.said()] == ["Decided", "Disable"]
    assert {name: world.phase(name) for name in "abc"} == dict.fromkeys("abc", "Active")
    world.tell(IntentSet("b", enabled=None))
    assert world.scheduled() == ["b"]


def test_add_node_rejects_cyclic_addition() -> None:
    world = running(node("a", "b"), node("b"))
    before = world.graph
    with pytest.raises(CycleError, match=r"^dependency cycle through: a, b \(a → b → a\)$"):
        world.tell(NodeAdded(node("b", "a", version="2.0.0")))
    assert world.graph is before
    world.tell(NodeAdded(node("c", "a")))
    assert world.scheduled() == ["c"]


def test_pause_suppresses_scheduling() -> None:
    world = World(resumed=False)
    world.tell(NodeAdded(node("a")), NodeAdded(module("m")), IntentSet("m", enabled=True))
    assert world.said() == []
    world.tell(Resumed())
    assert world.scheduled() == ["a", "m"]
    world.tell(Paused())
    world.complete("a")
    world.tell(NodeAdded(node("b", "a")), Rescheduled("m", "why not"), NodeRemoved("a"))
    assert world.said() == []
    world.tell(NodeAdded(node("a")), Resumed())
    assert world.scheduled() == ["a", "m"]
    world.tell(Resumed())
    assert world.said() == []


# Any-of


def test_any_of_satisfied_member_enables() -> None:
    world = World(node("nfs"), node("app", any_of=[group("storage", "ceph", "nfs")]))
    assert world.scheduled() == ["nfs"]
    world.complete("nfs")
    assert world.scheduled() == ["app"]


def test_any_of_no_installed_member_disables() -> None:
    world = World(node("app", any_of=[group("storage", "nfs", "ceph")]))
    assert world.said() == [
        Decided(
            "app",
            allowed=False,
            reason="AnyOfDependenciesUnmet",
            message="app needs one package of the group 'storage': ceph is not installed; nfs is not installed",
        )
    ]


def test_any_of_installed_but_constraint_fails() -> None:
    world = World(node("nfs"), node("app", any_of=[group("storage", "nfs >1")]))
    assert world.decided()["app"].reason == "AnyOfDependenciesUnmet"


def test_any_of_nil_constraint_accepts_any() -> None:
    assert World(node("nfs", version="0.0.1-alpha"), node("app", any_of=[group("g", "nfs")])).on() == {"nfs", "app"}


def test_any_of_multiple_groups_all_must_pass() -> None:
    app = node("app", any_of=[group("one", "a", "b"), group("two", "c")])
    assert World(node("a"), app).on() == {"a"}
    assert World(node("a"), node("c"), app).on() == {"a", "c", "app"}


def test_any_of_does_not_create_dependency_edge() -> None:
    world = World(node("a", any_of=[group("g", "b")]), node("b", any_of=[group("g", "a", "c")]), node("c"))
    assert world.on() == {"a", "b", "c"}


def test_any_of_member_install_triggers_reschedule() -> None:
    world = World(node("app", any_of=[group("storage", "nfs")]))
    world.said()
    world.tell(NodeAdded(node("nfs")))
    world.complete("nfs")
    assert world.scheduled() == ["nfs", "app"]


# None-of


def test_none_of_no_installed_member_enables() -> None:
    assert World(node("app", none_of=[group("rivals", "haproxy")])).scheduled() == ["app"]


def test_none_of_nil_constraint_violated() -> None:
    world = World(node("haproxy"), node("app", none_of=[group("rivals", "haproxy")]))
    assert world.decided()["app"].reason == "NoneOfDependenciesUnmet"


@pytest.mark.parametrize(("forbidden", "allowed"), [("<2", False), (">=2", True)])
def test_none_of_in_and_outside_forbidden_range(forbidden: str, allowed: bool) -> None:
    world = World(node("haproxy"), node("app", none_of=[group("rivals", f"haproxy {forbidden}")]))
    assert world.decided()["app"].allowed is allowed


def test_none_of_multiple_groups() -> None:
    world = World(node("b"), node("app", none_of=[group("one", "a"), group("two", "b")]))
    assert world.decided()["app"].message == "app excludes b (group 'two'), but version 1.0.0 is on"


def test_none_of_no_edge() -> None:
    world = World(node("a", none_of=[group("g", "b >5")]), node("b", none_of=[group("g", "a >5")]))
    assert world.scheduled() == ["a", "b"]


def test_none_of_member_install_triggers_disable() -> None:
    world = running(node("app", none_of=[group("rivals", "haproxy")]))
    world.tell(NodeAdded(node("haproxy")))
    (disabled,) = world.disabled()
    assert (disabled.name, disabled.reason, disabled.uninstall) == ("app", "NoneOfDependenciesUnmet", False)
    world.tell(NodeRemoved("haproxy"))
    assert world.scheduled() == ["app"]


# Running again


def test_reschedule_runs_only_the_given_node_again() -> None:
    world = running(node("db"), node("app", "db"))
    world.tell(Rescheduled("db", "SettingsChanged"))
    assert world.said() == [Schedule("db", 3, "SettingsChanged")]
    assert world.phase("app") == "Active"
    world.tell(Rescheduled("gone", "SettingsChanged"))
    assert world.said() == []
    world.tell(Rescheduled("app", "Drifted"))
    assert world.said() == []
    world.complete("db")
    assert world.said() == [Schedule("app", 4, "Drifted")]


def test_enabling_a_module_schedules_only_that_module() -> None:
    world = World(module("mod"), node("busy"), node("done"))
    world.complete("done")
    world.said()
    world.tell(IntentSet("mod", enabled=True))
    assert world.scheduled() == ["mod"]
    assert (world.phase("busy"), world.phase("done")) == ("Scheduled", "Active")


def test_a_superseded_run_completes_nothing() -> None:
    world = World(node("db"), node("app", "db"))
    world.tell(Rescheduled("db", "Again"))
    assert [effect.run for effect in world.said() if isinstance(effect, Schedule)] == [1, 2]
    before = world.graph
    world.tell(Completed("db", 1), Failed("db", 1), Completed("gone", 1))
    assert world.graph is before
    world.tell(Completed("db", 2))
    assert world.scheduled() == ["app"]
    world.tell(Completed("db", 2), Failed("db", 2))
    assert world.phase("db") == "Active"


def test_a_run_begun_before_a_disable_completes_nothing() -> None:
    world = World(module("mod"))
    world.tell(IntentSet("mod", enabled=True), IntentSet("mod", enabled=False))
    world.said()
    world.tell(IntentSet("mod", enabled=True), Completed("mod", 1))
    assert world.scheduled() == ["mod"]
    assert world.phase("mod") == "Scheduled"


def test_a_new_version_of_a_node_is_scheduled() -> None:
    world = running(node("app"))
    world.tell(NodeAdded(node("app", version="2.0.0")))
    assert world.said() == [Schedule("app", 2, "Scheduled")]


def test_removing_an_unknown_node_has_no_effects() -> None:
    world = running(node("app"))
    world.tell(NodeRemoved("gone"))
    assert world.said() == []


@pytest.mark.parametrize(
    "event",
    [
        NodeRemoved("gone"),
        Completed("gone", 1),
        Failed("gone", 1),
        Rescheduled("gone", "why"),
        ScriptVoted("gone", enabled=False),
    ],
)
def test_events_about_unknown_nodes_change_nothing(event: Event) -> None:
    graph = step(Graph(), Resumed())[0]
    assert step(graph, event) == (graph, ())


def subscriber(name: str, *to: str) -> Node:
    return replace(node(name), subscriptions=to)


def test_reschedule_fans_out_to_direct_subscribers() -> None:
    world = running(node("cni"), subscriber("proxy", "cni"), subscriber("metrics", "proxy"), node("app"))
    world.tell(Rescheduled("cni", "SettingsChanged"))
    assert world.said() == [
        Schedule("cni", 5, "SettingsChanged"),
        Schedule("proxy", 6, "SubscriptionTriggered:cni"),
    ]


def test_a_subscriber_runs_again_when_its_source_has_a_new_version() -> None:
    world = running(node("cni"), subscriber("proxy", "cni"))
    world.tell(NodeAdded(node("cni", version="2.0.0")))
    assert world.scheduled() == ["cni", "proxy"]


def test_a_disabled_or_waiting_subscriber_is_not_triggered() -> None:
    world = running(node("cni"), subscriber("proxy", "cni"), replace(module("off"), subscriptions=("cni",)))
    world.tell(Rescheduled("proxy", "Drifted"))
    assert world.said() == [Schedule("proxy", 3, "Drifted")]
    world.tell(IntentSet("proxy", enabled=False), Rescheduled("cni", "SettingsChanged"))
    assert world.scheduled() == ["cni"]


def test_a_disabled_node_triggers_no_subscriber() -> None:
    world = running(module("cni"), subscriber("proxy", "cni"))
    world.tell(Rescheduled("cni", "SettingsChanged"))
    assert world.said() == []


def test_a_node_follows_neither_itself_nor_former_sources() -> None:
    world = running(node("cni"), subscriber("proxy", "cni", "proxy"))
    world.tell(Rescheduled("proxy", "Drifted"))
    assert world.scheduled() == ["proxy"]
    world.complete("proxy")
    world.tell(NodeAdded(node("proxy")))
    world.complete("proxy")
    world.said()
    world.tell(Rescheduled("cni", "SettingsChanged"))
    assert world.scheduled() == ["cni"]
    world.tell(NodeRemoved("proxy"), NodeRemoved("cni"))
    assert world.graph.subscribers == Graph().subscribers


def test_enabling_a_module_does_not_cancel_other_runs() -> None:
    """When a module is enabled, the peer that spec/runtime describes reschedules its whole graph (§13 item 13), which would
    cancel running work. Here it cancels no other run.
    """
    world = World(node("app"), module("mod"), node("other"))
    world.said()
    world.tell(IntentSet("mod", enabled=True))
    assert world.scheduled() == ["mod"]


def test_a_hundred_tiers_are_scheduled_one_by_one() -> None:
    """A *tier* is all packages of one order. A package waits only for the next lower tier, so no other tier wakes it."""
    world = World(*(node(f"n{order:03}", order=order) for order in range(100)))
    for order in range(100):
        assert world.scheduled() == [f"n{order:03}"]
        world.complete(f"n{order:03}")


def test_a_later_added_tier_in_between_is_waited_for() -> None:
    world = World(node("first", order=1), node("last", order=9))
    world.tell(NodeAdded(node("between", order=5)))
    world.said()
    world.complete("first")
    assert world.scheduled() == ["between"]
    world.complete("between")
    assert world.scheduled() == ["last"]


def test_bootstrap_blocks_packages_that_are_not_critical() -> None:
    world = World(resumed=False)
    world.tell(FactsChanged(Facts(bootstrapped=False)), Resumed())
    world.tell(NodeAdded(node("critical", order=10)), NodeAdded(node("app")))
    assert world.scheduled() == ["critical"]
    world.tell(FactsChanged(Facts(bootstrapped=True)))
    world.complete("critical")
    assert world.scheduled() == ["app"]


def test_dynamic_disable_overrides_the_bundle() -> None:
    in_bundle = replace(module("mod"), bundles=frozenset({("ce", "default")}))
    world = World(resumed=False)
    world.tell(FactsChanged(Facts(edition="ce", bundle="default")), Resumed(), NodeAdded(in_bundle))
    assert world.scheduled() == ["mod"]
    world.tell(IntentSet("mod", enabled=False))
    assert [effect.uninstall for effect in world.disabled()] == [True]
    world.tell(IntentSet("mod", enabled=None))
    assert world.scheduled() == ["mod"]


def test_packages_that_wait_for_a_failed_one_do_not_hold_their_tier() -> None:
    """``crit-b`` needs ``crit-a``, which has failed. Neither of them holds back later packages that do not need them."""
    world = World(
        node("crit-a", order=10), node("crit-b", "crit-a", order=20), node("more", "crit-b", order=30), node("shop")
    )
    assert world.scheduled() == ["crit-a"]
    world.tell(Failed("crit-a", 1))
    assert world.scheduled() == ["shop"]
    assert [world.graph.entries[name].stuck for name in ("crit-b", "more", "shop")] == [True, True, False]
    world.tell(Rescheduled("crit-a", "Again"))
    assert world.scheduled() == ["crit-a"]
    assert not world.graph.entries["more"].stuck
    world.complete("crit-a")
    assert world.scheduled() == ["crit-b"]


def test_a_new_version_of_a_failed_dependency_unblocks_its_dependents() -> None:
    world = World(node("base"), node("app", "base"))
    world.tell(Failed("base", 1))
    stuck = [world.graph.entries["app"].stuck]
    world.tell(NodeAdded(node("base", version="2.0.0")))
    assert [*stuck, world.graph.entries["app"].stuck] == [True, False]
    world.said()
    world.complete("base")
    assert world.scheduled() == ["app"]


def test_a_subscriber_runs_again_when_its_source_is_added_disabled_or_removed() -> None:
    world = running(subscriber("shop", "cert"))
    world.tell(NodeAdded(node("cert")))
    assert "shop" in world.scheduled()
    world.complete("shop", "cert")
    world.said()
    world.tell(IntentSet("cert", enabled=False))
    assert world.scheduled() == ["shop"]
    world.complete("shop")
    world.said()
    world.tell(IntentSet("cert", enabled=None))
    assert world.scheduled() == ["cert", "shop"]
    world.complete("cert", "shop")
    world.said()
    world.tell(NodeRemoved("cert"))
    assert world.scheduled() == ["shop"]


def test_a_waiting_node_retains_the_time_since_when_it_waits() -> None:
    graph, _ = step(Graph(), Resumed())
    times = [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(4)]
    events: tuple[Event, ...] = (NodeAdded(node("base")), NodeAdded(node("app", "base")), Rescheduled("app", "Again"))
    for event, at in zip(events, times, strict=False):
        graph, _ = step(graph, event, at)
    assert graph.entries["app"].since == times[1]
    assert graph.entries["app"].phase == Idle("Again")
