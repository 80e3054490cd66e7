"""The scheduler as its owner has it: questions, admission and the dump."""

from collections.abc import Iterable

import pytest

from tests.runtime.nodes import group, module, node
from wharfinger.runtime.inspector import DependencySnapshot, NodeSnapshot
from wharfinger.runtime.scheduler import (
    Completed,
    ConstraintsError,
    CycleError,
    FactsChanged,
    Failed,
    IntentSet,
    Node,
    NodeAdded,
    Paused,
    Resumed,
    Schedule,
    Scheduler,
    ScriptVoted,
)


def scheduler_with(*nodes: Node, resumed: bool = True) -> Scheduler:
    scheduler = Scheduler()
    if resumed:
        scheduler.apply(Resumed())
    for each in nodes:
        scheduler.apply(NodeAdded(each))
    return scheduler


def dumped(scheduler: Scheduler) -> dict[str, NodeSnapshot]:
    return {each.name: each for each in scheduler.nodes()}


def test_it_starts_paused() -> None:
    scheduler = Scheduler()
    assert scheduler.apply(NodeAdded(node("app"))) == ()
    assert not scheduler.enabled("app")
    (_, schedule) = scheduler.apply(Resumed())
    assert schedule == Schedule("app", 1, "Scheduled", ("app",))
    assert scheduler.enabled("app")
    assert not scheduler.enabled("gone")


def test_it_is_settled_when_all_that_is_named_and_there_is_active() -> None:
    scheduler = scheduler_with(node("a"), node("b"), module("off"))
    assert scheduler.settled()
    assert scheduler.settled("gone", "off")
    assert not scheduler.settled("a", "off")
    scheduler.apply(Completed("a", 1))
    assert scheduler.settled("a", "off")
    assert not scheduler.settled("a", "b")
    scheduler.apply(Paused())
    assert not scheduler.settled("a")


def test_is_enabled_reads_the_decision_never_the_state() -> None:
    scheduler = scheduler_with(module("off"))
    assert scheduler.settled("off")
    assert not scheduler.enabled("off")


def test_a_refused_node_changes_nothing() -> None:
    scheduler = scheduler_with(node("a", "b"), node("b"))
    before = scheduler.nodes()
    with pytest.raises(CycleError, match="dependency cycle through: a, b"):
        scheduler.apply(NodeAdded(node("b", "a")))
    assert scheduler.nodes() == before


# Admission


@pytest.mark.parametrize(
    ("candidate", "reason", "message"),
    [
        (node("app", kubernetes=">=9"), "KubernetesRequirementsUnmet", "app needs Kubernetes >=9, and the current one"),
        (node("app", "db >=2"), "DependencyVersionMismatch", r"dependency db \(>=2\) is not met by version 1.0.0"),
        (node("app", "gone"), "DependencyNotEnabled", "dependency gone is not enabled"),
        (node("app", "off"), "DependencyNotEnabled", "dependency off is not enabled"),
        (node("app", any_of=[group("storage", "nfs")]), "AnyOfDependenciesUnmet", "'storage': nfs, not enabled"),
        (node("app", none_of=[group("rivals", "db")]), "NoneOfDependenciesUnmet", "app excludes 'rivals': db"),
        (node("db", "gone", "app"), "DependencyNotEnabled", "dependency app is not enabled; dependency gone"),
    ],
)
@pytest.mark.parametrize("resumed", [True, False])
def test_check_constraints_rejects(candidate: Node, reason: str, message: str, resumed: bool) -> None:
    scheduler = scheduler_with(node("db"), module("off"), resumed=resumed)
    scheduler.apply(FactsChanged("1.30.0", ""))
    before = scheduler.nodes()
    with pytest.raises(ConstraintsError, match=message) as raised:
        scheduler.check_constraints(candidate)
    assert raised.value.reason == reason
    assert scheduler.nodes() == before


def test_check_constraints_rejects_dependency_cycle() -> None:
    scheduler = scheduler_with(node("a"), node("b", "a"))
    with pytest.raises(CycleError, match="dependency cycle through: a, b"):
        scheduler.check_constraints(node("a", "b"))


def test_check_constraints_lets_pass_what_floors_and_intent_keep_off() -> None:
    scheduler = scheduler_with(node("db"))
    scheduler.apply(IntentSet("mod", enabled=False))
    scheduler.check_constraints(module("mod", "db"))
    scheduler.check_constraints(node("db", version="2.0.0", none_of=[group("g", "db")]))
    assert [each.name for each in scheduler.nodes()] == ["db"]


# The dump


def test_the_dump() -> None:
    scheduler = scheduler_with(
        node("web", "db >=1", order=5, optional=["cache"]), node("db", version="1.2.3", order=7), module("mod")
    )
    assert scheduler.nodes() == (
        NodeSnapshot("db", "1.2.3", 7, "scheduled", "Enable", "EnabledByDefault", "", ()),
        NodeSnapshot(
            "mod", "1.0.0", 999, "active", "Disable", "DisabledByDefault", "it is off unless it is enabled", ()
        ),
        NodeSnapshot(
            "web",
            "1.0.0",
            7,
            "idle",
            "Enable",
            "EnabledByDefault",
            "waits for db",
            (DependencySnapshot("cache", "", optional=True), DependencySnapshot("db", ">=1", optional=False)),
        ),
    )


def messages(scheduler: Scheduler, names: Iterable[str]) -> list[str]:
    nodes = dumped(scheduler)
    return [nodes[name].message for name in names]


def test_who_waits_says_for_what() -> None:
    scheduler = scheduler_with(
        node("critical", order=3), node("other", order=3), node("app"), node("user", "critical", "other")
    )
    assert messages(scheduler, ["app", "user"]) == ["waits for packages of order 3", "waits for critical, other"]
    scheduler.apply(Failed("critical", 1))
    assert messages(scheduler, ["critical"]) == [
        "its last run failed for good; it is tried again when something changes"
    ]
    assert dumped(scheduler)["critical"].state == "scheduled"
    scheduler = scheduler_with(node("scripted", script=True))
    assert messages(scheduler, ["scripted"]) == ["waits for its enabled script"]
    assert dumped(scheduler)["scripted"].decision == "Undefined"
    scheduler.apply(ScriptVoted("scripted", enabled=False, reason="no GPU"))
    assert messages(scheduler, ["scripted"]) == ["no GPU"]


def test_a_pause_is_said() -> None:
    scheduler = scheduler_with(node("new"), resumed=False)
    (found,) = scheduler.nodes()
    assert (found.decision, found.reason, found.message) == ("Undefined", "", "not decided: the scheduler is paused")
    scheduler.apply(Resumed())
    scheduler.apply(Paused())
    scheduler.apply(NodeAdded(node("new", version="2.0.0")))
    assert messages(scheduler, ["new"]) == ["waits for the end of a pause"]
