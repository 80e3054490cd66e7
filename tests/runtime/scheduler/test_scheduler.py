"""The interface of the scheduler: queries, admission and the dump."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from tests.runtime.support.nodes import group, module, node
from wharfinger.runtime.scheduler.events import (
    Completed,
    Decided,
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
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.scheduler import Broken, ConstraintsError, Scheduler
from wharfinger.runtime.scheduler_details import (
    DependencySnapshot,
    GroupSnapshot,
    LackSnapshot,
    NodeSnapshot,
    VoteSnapshot,
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


def test_the_scheduler_starts_paused() -> None:
    scheduler = Scheduler()
    assert scheduler.apply(NodeAdded(node("app"))) == ()
    assert not scheduler.enabled("app")
    (_, schedule) = scheduler.apply(Resumed())
    assert schedule == Schedule("app", 1, "Scheduled")
    assert scheduler.enabled("app")
    assert not scheduler.enabled("gone")


def test_is_enabled_reads_the_decision_never_the_state() -> None:
    scheduler = scheduler_with(module("off"))
    assert not scheduler.enabled("off")


def test_a_refused_node_changes_nothing() -> None:
    scheduler = scheduler_with(node("a", "b"), node("b"))
    before = scheduler.nodes()
    with pytest.raises(CycleError, match="dependency cycle through: a, b"):
        scheduler.apply(NodeAdded(node("b", "a")))
    assert scheduler.nodes() == before


# Admission


REJECTED = [
    (node("app", kubernetes=">=9"), "KubernetesRequirementsUnmet", "app needs Kubernetes >=9, but the current version"),
    (node("app", "db >=2"), "DependencyVersionMismatch", r"dependency db \(>=2\) is not met by version 1.0.0"),
    (node("app", "gone"), "DependencyNotEnabled", "dependency gone is not installed"),
    (node("app", "off"), "DependencyNotEnabled", "dependency off is not enabled"),
    (node("app", any_of=[group("storage", "nfs")]), "AnyOfDependenciesUnmet", "'storage': nfs is not installed"),
    (node("app", none_of=[group("rivals", "db")]), "NoneOfDependenciesUnmet", r"app excludes db \(group 'rivals'\)"),
    (node("db", "gone", "app"), "DependencyNotEnabled", "dependency app is not installed; dependency gone"),
]


@pytest.mark.parametrize(("candidate", "reason", "message"), REJECTED)
@pytest.mark.parametrize("paused", [False, True])
def test_admission_rejects_unmet_constraints_with_their_reason(
    candidate: Node, reason: str, message: str, *, paused: bool
) -> None:
    """The constraints are checked before the node is added (spec/runtime §4.8). The error has the reason that the decision
    about the node would have, and the nodes do not change.
    """
    scheduler = scheduler_with(node("db"), module("off"), resumed=not paused)
    scheduler.apply(FactsChanged(Facts("1.30.0", "")))
    before = scheduler.nodes()
    with pytest.raises(ConstraintsError, match=message) as caught:
        scheduler.check_constraints(candidate)
    assert caught.value.reason == reason
    assert scheduler.nodes() == before
    assert scheduler.node(candidate.name) != candidate


def test_admission_accepts_packages_that_could_be_on() -> None:
    """The check at admission ignores intents and the votes of scripts."""
    rivals = group("rivals", "off", "gone", "app")
    scheduler = scheduler_with(node("db", version="1.2.0"), module("off"))
    scheduler.apply(FactsChanged(Facts("1.30.0", "2.0.0")))
    before = scheduler.nodes()
    wanted = node("app", "db >=1", kubernetes=">=1.29", any_of=[group("storage", "db", "gone")], none_of=[rivals])
    scheduler.check_constraints(wanted)
    scheduler.check_constraints(module("app", script=True))
    scheduler.check_constraints(node("app", optional=["gone", "off"]))
    assert scheduler.nodes() == before


def test_before_the_bootstrap_admission_needs_an_order() -> None:
    scheduler = scheduler_with()
    scheduler.apply(FactsChanged(Facts("1.30.0", "", bootstrapped=False)))
    with pytest.raises(ConstraintsError, match="the bootstrap of the cluster is not finished"):
        scheduler.check_constraints(node("app"))
    scheduler.check_constraints(node("app", order=5))


def test_admission_checks_constraints_before_cycles() -> None:
    scheduler = scheduler_with(node("a"), node("b", "a"))
    with pytest.raises(ConstraintsError, match="dependency gone is not installed"):
        scheduler.check_constraints(node("a", "b", "gone"))


@pytest.mark.parametrize(("candidate", "reason", "message"), REJECTED)
def test_a_node_added_without_admission_is_off_for_the_same_reason(candidate: Node, reason: str, message: str) -> None:
    scheduler = scheduler_with(node("db"), module("off"))
    scheduler.apply(FactsChanged(Facts("1.30.0", "")))
    effects = scheduler.apply(NodeAdded(candidate))
    (decided,) = (each for each in effects if isinstance(each, Decided) and each.name == candidate.name)
    assert (decided.allowed, decided.reason) == (False, reason)
    assert re.search(message, decided.message)
    assert not any(isinstance(each, Schedule) for each in effects)


def test_admission_rejects_a_cycle_with_its_whole_path() -> None:
    scheduler = scheduler_with(node("a"), node("b", "a"))
    before = scheduler.nodes()
    with pytest.raises(CycleError, match=r"^dependency cycle through: a, b \(a → b → a\)$"):
        scheduler.check_constraints(node("a", "b"))
    assert scheduler.nodes() == before
    with pytest.raises(CycleError, match=r"^dependency cycle through: a, b \(a → b → a\)$"):
        scheduler.apply(NodeAdded(node("a", "b")))
    assert scheduler.nodes() == before


# The dump


def test_the_dump_shows_nodes_with_votes_and_edges() -> None:
    scheduler = scheduler_with(
        node("web", "db >=1", order=5, optional=["cache"]), node("db", version="1.2.3", order=7), module("mod")
    )
    on = VoteSnapshot("Enable", "EnabledByDefault", "")
    off = VoteSnapshot("Disable", "DisabledByDefault", "the package is off by default, and not enabled")
    assert scheduler.nodes() == (
        NodeSnapshot(
            "db",
            "1.2.3",
            7,
            "scheduled",
            "Enable",
            "EnabledByDefault",
            "",
            (),
            declared_order=7,
            run=1,
            votes=(on,),
            dependents=("web",),
        ),
        NodeSnapshot(
            "mod", "1.0.0", 999, "active", "Disable", off.reason, off.message, (), declared_order=999, votes=(off,)
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
            declared_order=5,
            lacks=(LackSnapshot("package", "db", "scheduled"),),
            votes=(on,),
        ),
    )


def test_the_dump_shows_since_when_a_state_lasts() -> None:
    scheduler = Scheduler()
    times = [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(5)]
    events: tuple[Event, ...] = (
        Resumed(),
        NodeAdded(node("db")),
        NodeAdded(node("web", "db")),
        IntentSet("other", None),
    )
    for event, at in zip(events, times, strict=False):
        scheduler.apply(event, at)
    assert [each.since for each in scheduler.nodes()] == [times[1], times[2]]
    scheduler.apply(Completed("db", 1), times[4])
    assert [(each.state, each.since) for each in scheduler.nodes()] == [("active", times[4]), ("scheduled", times[4])]


def test_a_new_decision_has_a_new_time() -> None:
    """An active node may get another decision and stay active, and a disabled node may get another reason. In both cases, the
    time of the node changes.
    """
    scheduler, times = Scheduler(), [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in range(6)]

    def told(event: Event, at: datetime) -> tuple[str, str, datetime | None]:
        scheduler.apply(event, at)
        found = dumped(scheduler)["web"]
        return found.state, found.reason, found.since

    for event in (Resumed(), NodeAdded(node("db")), NodeAdded(node("web", "db")), Completed("db", 1)):
        scheduler.apply(event, times[0])
    assert told(Completed("web", 2), times[1]) == ("active", "EnabledByDefault", times[1])
    assert told(IntentSet("db", enabled=False), times[2]) == ("active", "DependencyNotEnabled", times[2])
    assert told(NodeAdded(node("other")), times[3]) == ("active", "DependencyNotEnabled", times[2])
    assert told(IntentSet("web", enabled=False), times[4]) == ("active", "DynamicallyDisabled", times[4])
    assert told(IntentSet("db", enabled=None), times[5]) == ("active", "DynamicallyDisabled", times[4])


def test_a_paused_scheduler_is_mentioned_in_the_dump() -> None:
    scheduler = scheduler_with(node("db"), resumed=False)
    assert [(each.message, each.lacks) for each in scheduler.nodes()] == [
        ("not decided: the scheduler is paused", (LackSnapshot("pause", "", "paused"),))
    ]
    scheduler.apply(Resumed())
    scheduler.apply(Paused())
    scheduler.apply(Rescheduled("db", "SettingsChanged"))
    assert [each.message for each in scheduler.nodes()] == ["waits for the end of a pause"]


def test_the_dump_lists_groups_and_subscriptions() -> None:
    scheduler = scheduler_with(
        node("app", any_of=[group("storage", "nfs >=1", "ceph")], none_of=[group("rivals", "other")])
    )
    assert dumped(scheduler)["app"].groups == (
        GroupSnapshot(
            "anyOf",
            "storage",
            (DependencySnapshot("ceph", "", optional=True), DependencySnapshot("nfs", ">=1", optional=True)),
        ),
        GroupSnapshot("noneOf", "rivals", (DependencySnapshot("other", "", optional=True),)),
    )


# Dependents that would break


def test_dependents_that_would_break_are_listed() -> None:
    scheduler = scheduler_with(
        node("db", version="1.5.0"),
        node("web", "db >=1"),
        node("shop", "web"),
        node("off", "db", "gone"),
        node("loose", optional=["db <2"]),
    )
    before = scheduler.nodes()
    assert [each.name for each in scheduler.would_break("db", None)] == ["shop", "web"]
    assert scheduler.would_break("db", None)[1] == Broken(
        "web", "DependencyNotEnabled", "dependency db (>=1) is not installed"
    )
    assert [each.name for each in scheduler.would_break("db", node("db", version="2.0.0"))] == ["loose"]
    assert scheduler.would_break("db", node("db", version="1.9.0")) == ()
    assert scheduler.would_break("shop", None) == ()
    assert scheduler.would_break("db", node("db", "shop")) == (), "a cycle is reported when the node is added"
    assert scheduler.nodes() == before, "nothing was changed"


def test_dependents_that_would_break_are_known_while_paused() -> None:
    scheduler = scheduler_with(node("db"), node("web", "db"), node("off", "gone", "db"), resumed=False)
    assert [each.name for each in scheduler.would_break("db", None)] == ["web"]


def test_removing_the_last_member_of_a_group_breaks_dependents() -> None:
    scheduler = scheduler_with(node("ceph"), node("nfs"), node("app", any_of=[group("storage", "ceph", "nfs")]))
    assert scheduler.would_break("ceph", None) == ()
    scheduler.apply(NodeRemoved("ceph"))
    assert [each.name for each in scheduler.would_break("nfs", None)] == ["app"]


def test_an_upgrade_into_an_excluded_range_breaks_the_excluder() -> None:
    scheduler = scheduler_with(node("rival"), node("app", none_of=[group("rivals", "rival >=2")]))
    assert [each.name for each in scheduler.would_break("rival", node("rival", version="2.1.0"))] == ["app"]


def test_dependents_and_loaded_nodes_can_be_queried() -> None:
    scheduler = scheduler_with(node("web", "db"), node("app", optional=["db"]))
    assert scheduler.dependents("db") == ("app", "web")
    assert scheduler.node("web") == node("web", "db")
    assert scheduler.node("db") is None


def messages(scheduler: Scheduler, names: Iterable[str]) -> list[str]:
    nodes = dumped(scheduler)
    return [nodes[name].message for name in names]


def test_the_dump_names_what_a_node_waits_for() -> None:
    scheduler = scheduler_with(
        node("critical", order=3), node("other", order=3), node("app"), node("user", "critical", "other")
    )
    assert messages(scheduler, ["app", "user"]) == [
        "waits for packages of order 3: critical, other",
        "waits for critical, other",
    ]
    scheduler.apply(Failed("critical", 1))
    assert messages(scheduler, ["critical"]) == [
        "the last run failed or was interrupted; the status of the package has the reason"
    ]
    assert dumped(scheduler)["critical"].state == "scheduled"
    scheduler = scheduler_with(node("scripted", script=True))
    assert messages(scheduler, ["scripted"]) == ["waits for its enabled script"]
    assert dumped(scheduler)["scripted"].decision == "Undefined"
    scheduler.apply(ScriptVoted("scripted", enabled=False, reason="no GPU"))
    assert messages(scheduler, ["scripted"]) == ["no GPU"]


def test_a_pause_is_shown_in_messages_of_nodes() -> None:
    scheduler = scheduler_with(node("new"), resumed=False)
    (found,) = scheduler.nodes()
    assert (found.decision, found.reason, found.message) == ("Undefined", "", "not decided: the scheduler is paused")
    scheduler.apply(Resumed())
    scheduler.apply(Paused())
    scheduler.apply(NodeAdded(node("new", version="2.0.0")))
    assert messages(scheduler, ["new"]) == ["waits for the end of a pause"]
