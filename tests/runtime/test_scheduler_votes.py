"""Votes about a node from outside the scheduler: the user's intent, the enabled script and versions (spec/runtime §12).

The votes also decide whether a package that is off is uninstalled, or only paused.
"""

import pytest

from tests.runtime.support.nodes import module, node
from tests.runtime.support.scheduler_world import World, running
from wharfinger.runtime.scheduler.events import (
    Decided,
    Disable,
    FactsChanged,
    IntentSet,
    NodeAdded,
    NodeRemoved,
    Schedule,
    ScriptVoted,
)
from wharfinger.runtime.scheduler.rules import Facts

# Intent


def test_dynamic_rule_enables_over_floor() -> None:
    world = World(module("mod"))
    world.said()
    world.tell(IntentSet("mod", enabled=True))
    assert world.said() == [
        Decided("mod", allowed=True, reason="DynamicallyEnabled", message=""),
        Schedule("mod", 1, "DecisionChanged:DynamicallyEnabled"),
    ]


def test_dynamic_rule_nil_defers_to_floor() -> None:
    world = World(node("app"), module("mod"))
    world.tell(IntentSet("app", enabled=None), IntentSet("mod", enabled=None))
    assert world.on() == {"app"}
    world.tell(IntentSet("mod", enabled=True))
    world.complete("mod")
    world.said()
    world.tell(IntentSet("mod", enabled=None))
    (disabled,) = world.disabled()
    assert (disabled.reason, disabled.uninstall) == ("DisabledByDefault", False)


def test_a_users_disable_uninstalls_the_package() -> None:
    world = running(node("app"))
    world.tell(IntentSet("app", enabled=False))
    why = ("DynamicallyDisabled", "the package is disabled; enable it to install it again")
    assert world.said() == [Decided("app", False, *why), Disable("app", *why, uninstall=True)]
    world.tell(IntentSet("app", enabled=False))
    assert world.said() == []


def test_a_users_disable_uninstalls_a_paused_package() -> None:
    world = running(node("db"), node("app", "db"))
    world.tell(NodeRemoved("db"))
    assert [effect.uninstall for effect in world.disabled()] == [False]
    world.tell(IntentSet("app", enabled=False))
    why = ("DynamicallyDisabled", "the package is disabled; enable it to install it again")
    assert world.said() == [Decided("app", False, *why), Disable("app", *why, uninstall=True)]


def test_a_package_disabled_before_loading_is_uninstalled() -> None:
    """The package may have a release that an earlier daemon installed, so the scheduler requests an uninstall in any case."""
    world = World()
    world.tell(IntentSet("mod", enabled=False), NodeAdded(module("mod")))
    assert [effect.uninstall for effect in world.disabled()] == [True]
    world.tell(NodeRemoved("mod"), NodeAdded(module("mod")))
    assert [effect.uninstall for effect in world.disabled()] == [True]
    world.tell(NodeRemoved("mod"), IntentSet("mod", enabled=None), NodeAdded(module("mod")))
    assert world.disabled() == []


# Scripts


def test_script_rule_true_does_not_enable_over_floor() -> None:
    world = World(module("mod", script=True))
    world.tell(ScriptVoted("mod", enabled=True))
    assert world.scheduled() == []


def test_script_rule_true_does_not_forbid() -> None:
    world = World(node("mod", script=True))
    assert world.said() == [
        Decided(
            "mod",
            allowed=False,
            reason="EnabledScriptPending",
            message="the package's enabled script has not voted yet",
        )
    ]
    assert world.phase("mod") == "Idle"
    world.tell(ScriptVoted("mod", enabled=True))
    assert world.scheduled() == ["mod"]


@pytest.mark.parametrize(
    ("vote", "reason", "message", "uninstall"),
    [
        (
            ScriptVoted("mod", enabled=False),
            "DisabledByScript",
            "the package's enabled script disabled it without a reason",
            True,
        ),
        (ScriptVoted("mod", enabled=False, reason="needs a GPU"), "DisabledByScript", "needs a GPU", True),
        (
            ScriptVoted("mod", None, error="exit 3"),
            "EnabledScriptError",
            "the package's enabled script gave no answer: exit 3",
            False,
        ),
    ],
)
def test_script_rule_false_and_error_forbid(vote: ScriptVoted, reason: str, message: str, uninstall: bool) -> None:
    world = World(node("mod", script=True))
    world.tell(ScriptVoted("mod", enabled=True))
    world.complete("mod")
    world.said()
    world.tell(vote)
    assert world.said() == [Decided("mod", False, reason, message), Disable("mod", reason, message, uninstall)]
    world.tell(ScriptVoted("gone", enabled=False))
    assert world.said() == []


def test_an_outstanding_vote_holds_the_node_and_higher_orders() -> None:
    world = World(node("critical", order=1, script=True), node("app"))
    assert world.scheduled() == []
    world.tell(ScriptVoted("critical", enabled=True))
    assert world.scheduled() == ["critical"]
    off = World(module("off", order=1, script=True), node("app"))
    assert off.scheduled() == ["app"]


def test_the_last_vote_counts_until_the_script_of_a_new_version_has_voted() -> None:
    world = running(node("db", script=True), node("app", "db"))
    world.tell(ScriptVoted("db", enabled=True))
    world.complete("db", "app")
    world.said()
    world.tell(NodeAdded(node("db", version="2.0.0", script=True)))
    assert world.said() == []
    assert world.phase("app") == "Active"
    world.tell(ScriptVoted("db", enabled=True))
    assert world.scheduled() == ["db"]
    world.tell(ScriptVoted("db", enabled=False, reason="no"))
    world.said()
    world.tell(NodeAdded(node("db", version="3.0.0")))
    assert world.scheduled() == ["db"]


def test_a_new_script_has_no_effect_before_its_first_vote() -> None:
    world = running(node("app"))
    world.tell(NodeAdded(node("app", script=True)))
    assert world.said() == []
    world.tell(ScriptVoted("app", enabled=None))
    assert world.scheduled() == ["app"]


# Facts


def test_a_changed_kubernetes_version_pauses_and_resumes_a_package() -> None:
    world = World()
    world.tell(FactsChanged(Facts("1.30.0", "")), NodeAdded(node("app", kubernetes=">=1.30")))
    world.complete("app")
    world.said()
    world.tell(FactsChanged(Facts("1.29.0", "")))
    (disabled,) = world.disabled()
    assert (disabled.reason, disabled.uninstall) == ("KubernetesRequirementsUnmet", False)
    assert disabled.message == "app needs Kubernetes >=1.30, but the current version is 1.29.0"
    world.tell(FactsChanged(Facts("1.28.0", "")))
    assert [type(effect).__name__ for effect in world.said()] == ["Decided"]
    world.tell(FactsChanged(Facts("1.31.0", "")))
    assert world.scheduled() == ["app"]
    assert world.graph.facts == Facts("1.31.0", "")


def test_a_provisional_negative_vote_uninstalls_nothing_until_it_is_confirmed() -> None:
    """After a restart, a script may vote before all Modules that its vote depends on are loaded. A "no" is provisional then, and
    must not lead to an uninstall.
    """
    world = running(node("app", script=True))
    world.tell(ScriptVoted("app", None))
    world.complete("app")
    world.said()
    world.tell(ScriptVoted("app", enabled=False, reason="no dns", provisional=True))
    assert world.disabled() == [Disable("app", "DisabledByScript", "no dns", uninstall=False)]
    world.tell(ScriptVoted("app", enabled=False, reason="no dns"))
    assert world.disabled() == [Disable("app", "DisabledByScript", "no dns", uninstall=True)]
    world.tell(ScriptVoted("app", enabled=True))
    assert world.scheduled() == ["app"]
