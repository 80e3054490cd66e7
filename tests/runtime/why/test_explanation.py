"""Chains of causes. The last cause of a chain is the root cause, or a cycle of packages that wait for each other."""

from dataclasses import replace
from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.support.explained import (
    NOW,
    SINCE,
    condition,
    downloading,
    failing,
    forbidden,
    known,
    node,
    package,
    pending,
    ready,
    task,
    waiting,
)
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.scheduler_details import CauseSnapshot, ExplanationSnapshot, NodeSnapshot
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.why.causes import Known
from wharfinger.runtime.why.explanation import MAX_ALSO, MAX_LOOKED_AT, explain
from wharfinger.runtime.why.gate_causes import AGAIN
from wharfinger.runtime.why.remedies import WAIT, of_work


def why(name: str, *found: PackageSnapshot | NodeSnapshot) -> ExplanationSnapshot:
    told = explain(name, known(*found))
    assert told is not None
    return told


def subjects(told: ExplanationSnapshot) -> list[str]:
    return [cause.subject for cause in told.causes]


def test_an_unknown_package_has_no_explanation() -> None:
    assert explain("db", known(ready("other"))) is None


def test_a_ready_package_has_no_causes() -> None:
    assert why("db", ready("db"), node("db")) == ExplanationSnapshot("db", ready=True, causes=(), remedy="")


def test_maintenance_of_a_ready_package_is_mentioned() -> None:
    told = why("db", replace(ready("db"), maintenance="NoResourceReconciliation"))
    assert told.ready
    (also,) = told.also
    assert also.startswith("db is in maintenance, because spec.maintenance is set")
    assert "kubectl patch modules.wharfinger.dev db" in also


def test_failing_objects_are_mentioned_for_ready_and_other_packages() -> None:
    text = "ConfigMap prod/a: no quota; attempt 4 failed, next at 12:07:20 UTC (in 13 s)"
    assert why("db", replace(ready("db"), failing=(text,))).also == (f"db: {text}",)
    maintained = why("db", replace(ready("db"), maintenance="NoResourceReconciliation", failing=(text,)))
    assert maintained.also[1:] == (f"db: {text}",)
    held = why("db", replace(ready("db"), suspended=True, failing=(text,)))
    assert not held.ready
    assert f"db: {text}" in held.also


def test_warnings_are_mentioned_beside_causes() -> None:
    """For example, there is a warning after a user has changed the release with helm. Such a change does not explain the
    present state of the package, but may cause failures later.
    """
    text = "release: a helm command changed it last"
    told = why("db", replace(ready("db"), warnings=(text,)))
    assert (told.ready, told.also) == (True, (f"db: warning: {text}",))
    assert why("db", replace(failing("db"), warnings=(text,))).also == (f"db: warning: {text}",)
    assert why("db", replace(ready("db"), warnings=(text,), failing=("x",))).also == ("db: x",)


def test_a_chain_of_three_levels_is_explained() -> None:
    told = why(
        "shop.web",
        *(pending("shop.web"), waiting("shop.web", "a")),
        *(pending("a"), waiting("a", "b")),
        *(pending("b"), waiting("b", "c")),
        *(failing("c"), replace(node("c", state="scheduled"), failed=True)),
    )
    assert [(cause.subject, cause.state) for cause in told.causes] == [
        ("shop.web", "waits for a"),
        ("a", "waits for b"),
        ("b", "waits for c"),
        ("c", "fails"),
    ]
    assert told.causes[0] == CauseSnapshot("shop.web", "waits for a", "", SINCE)
    assert told.remedy.startswith("read the hook's lines")
    assert (told.ready, told.also) == (False, ())


def test_causes_for_users_outrank_running_work() -> None:
    told = why(
        "shop.web",
        *(pending("shop.web"), waiting("shop.web", "a", "b")),
        *(downloading("a"), failing("b")),
    )
    assert subjects(told) == ["shop.web", "b"]
    assert told.also == ("shop.web waits for a",)


def test_the_nearest_root_cause_is_chosen() -> None:
    told = why(
        "shop.web",
        *(pending("shop.web"), waiting("shop.web", "a", "z")),
        *(pending("a"), waiting("a", "b")),
        *(failing("b"), failing("z")),
    )
    assert subjects(told) == ["shop.web", "z"]


def test_of_two_equally_near_causes_the_first_is_chosen() -> None:
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "a", "b"), failing("a"), failing("b"))
    assert subjects(told) == ["shop.web", "a"]
    assert told.also == ("shop.web waits for b",)


def test_without_causes_for_users_the_nearest_work_is_chosen() -> None:
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "a"), downloading("a"))
    assert subjects(told) == ["shop.web", "a"]
    assert told.remedy == of_work("Download:1.0.0")


def test_a_cause_for_users_is_chosen_within_a_tier() -> None:
    held = [pending(f"m{number}") for number in range(9)]
    nodes = [waiting(f"m{number}", order=10) for number in range(9)]
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "order 10"), *held[1:], failing("m0"), *nodes)
    assert subjects(told) == ["shop.web", "m0"]
    assert told.causes[0].message == "packages of this order are not done: m0, m1, m2, m3, m4 and 4 more"


def test_a_missing_dependency_is_a_root_cause() -> None:
    shop = node("shop.web", "db >=1.0", votes=(forbidden("DependencyNotEnabled", "x"),))
    told = why("shop.web", package("shop.web", condition(Stage.REQUIREMENTS), state="Pending"), shop)
    assert [(cause.subject, cause.state) for cause in told.causes] == [
        ("shop.web", "needs db (>=1.0)"),
        ("db", "is not known"),
    ]
    assert told.remedy.startswith("create the Module db in a version that matches >=1.0")


def test_a_package_refused_for_a_cycle_keeps_running() -> None:
    required = condition(Stage.REQUIREMENTS, "False", "DependencyCycle", "around")
    told = why("db", package("db", required), node("db"))
    assert [cause.state for cause in told.causes] == ["keeps running as it did before its resource changed"]
    assert told.causes[0].message == "DependencyCycle: around"
    assert told.remedy != WAIT
    assert told.also == ()


def test_a_failed_disable_is_the_root_cause_of_waiting_packages() -> None:
    required = condition(Stage.REQUIREMENTS, "False", "DynamicallyDisabled", "x")
    failed = task("Disable", error="PackageHookFailed: no", attempt=2, retry_in_s=13.4)
    hooks = condition(Stage.HOOKS, "False", "PackageHookFailed", "no")
    shop = package("shop.web", condition(Stage.REQUIREMENTS), state="Pending")
    told = why(
        "shop.web",
        shop,
        node("shop.web", "db", votes=(forbidden("DependencyNotEnabled", "x"),)),
        package("db", required, hooks, state="Disabling", tasks=(failed,)),
        node("db", votes=(forbidden("DynamicallyDisabled", "x"),)),
    )
    assert [cause.state for cause in told.causes] == ["needs db", "cannot be stopped"]
    assert "spec.enabled" not in told.remedy
    assert told.also == ("db is off: DynamicallyDisabled: x",)


def test_a_dependency_being_installed_is_not_absent() -> None:
    shop = node("shop.web", "db", votes=(forbidden("DependencyNotEnabled", "x"),))
    told = why("shop.web", package("shop.web", condition(Stage.REQUIREMENTS), state="Pending"), shop, downloading("db"))
    assert told.causes[-1].state == "is at work"


def test_a_suspension_hides_causes_of_stages() -> None:
    suspended = replace(failing("db"), suspended=True)
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "db"), suspended, node("db", state="scheduled"))
    assert told.causes[-1].state == "is suspended"
    assert told.also == ()


def test_a_failure_beside_a_requirement_is_mentioned() -> None:
    hooks = condition(Stage.HOOKS, "False", "EventHookFailed", "hooks/a.sh: exit status 1")
    required = condition(Stage.REQUIREMENTS, "False", "DynamicallyDisabled", "x")
    off = node("db", votes=(forbidden("DynamicallyDisabled", "x"),))
    told = why("db", package("db", required, hooks), off)
    assert told.causes[0].state == "is off"
    assert told.also == ("db fails: EventHookFailed: hooks/a.sh: exit status 1",)


def test_the_number_of_other_causes_is_limited() -> None:
    needs = [f"m{number}" for number in range(10)]
    told = why("shop.web", pending("shop.web"), waiting("shop.web", *needs), failing("m0"))
    assert told.also == (*(f"shop.web waits for m{number}" for number in range(1, 6)), "4 more")
    assert len(told.also) == MAX_ALSO + 1


def test_a_dependency_that_became_ready_ends_the_chain() -> None:
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "db"), ready("db"), node("db"))
    assert [(cause.subject, cause.state) for cause in told.causes] == [
        ("shop.web", "waits for db"),
        ("db", "is ready"),
    ]
    assert told.remedy == WAIT


def test_the_next_run_of_a_ready_package_is_explained() -> None:
    here = (
        *(ready("shop.web"), waiting("shop.web", "ingress")),
        *(failing("ingress"), replace(node("ingress", state="scheduled"), failed=True)),
    )
    told = why("shop.web", *here)
    assert [(cause.subject, cause.state) for cause in told.causes] == [
        ("shop.web", "waits for ingress"),
        ("ingress", "fails"),
    ]
    assert told.causes[0].message == AGAIN
    assert not told.ready
    front = why("shop.front", pending("shop.front"), waiting("shop.front", "shop.web"), *here)
    assert subjects(front) == ["shop.front", "shop.web", "ingress"]


def test_the_next_run_of_a_ready_package_waits_for_its_tier() -> None:
    told = why("web", ready("web"), waiting("web", "order 10"), downloading("a"), waiting("a", order=10))
    assert told.causes[0].message == f"packages of this order are not done: a; {AGAIN}"
    assert subjects(told) == ["web", "a"]


def test_votes_about_the_earlier_version_are_ignored_during_an_update() -> None:
    required = condition(Stage.REQUIREMENTS, "False", "EnabledScriptError", "exit status 7")
    before = node("quota", votes=(forbidden("EnabledScriptError", "exit status 7"),))
    reading = condition(Stage.LOADED, "Unknown", "Loading", "reading the package")
    load = (task("Load", running=True),)
    told = why("quota", package("quota", required, reading, state="Pending", tasks=load), before)
    assert [(cause.subject, cause.state) for cause in told.causes] == [("quota", "is at work")]
    assert (told.remedy, told.also) == (of_work("Load"), ())
    fetching = condition(Stage.FETCHED, "False", "ArtifactNotFound", "quota:1.2.0: not found")
    told = why("quota", package("quota", required, fetching), waiting("quota", "db"))
    assert [cause.state for cause in told.causes] == ["fails"]
    assert why("quota", package("quota", required), before).causes[0].state == "cannot be on"


def test_a_cycle_of_waiting_packages_is_a_root_cause() -> None:
    told = why(
        "shop.web",
        *(pending("shop.web"), waiting("shop.web", "a")),
        *(pending("a"), waiting("a", "b")),
        *(pending("b"), waiting("b", "a")),
    )
    assert subjects(told) == ["shop.web", "a", "b"]
    assert told.causes[-1].message == "these packages wait for each other: a → b → a"
    assert "a → b → a" in told.remedy


def test_a_package_that_waits_for_itself_is_explained() -> None:
    told = why("a", pending("a"), waiting("a", "a"))
    assert [(cause.subject, cause.message) for cause in told.causes] == [
        ("a", "these packages wait for each other: a → a")
    ]


def test_a_cause_outside_of_a_cycle_is_preferred() -> None:
    told = why("a", pending("a"), waiting("a", "b"), pending("b"), waiting("b", "a", "c"), failing("c"), node("c"))
    assert subjects(told) == ["a", "b", "c"]
    assert told.also == ("b waits for a",)


def test_a_very_long_chain_is_cut_with_a_hint() -> None:
    def package_of(name: str) -> PackageSnapshot:
        return pending(name)

    def node_of(name: str) -> NodeSnapshot:
        return waiting(name, f"m{int(name[1:]) + 1}")

    told = explain("m0", Known(NOW, package_of, node_of, lambda _order: ()))
    assert told is not None
    assert len(told.causes) == MAX_LOOKED_AT
    assert told.remedy == f"the chain of causes is longer; continue with `wharfinger why m{MAX_LOOKED_AT}`"


def test_messages_of_causes_are_one_line() -> None:
    told = why("db", failing("db", message="first\nsecond\n\n" + "x" * 5000))
    (cause,) = told.causes
    assert "first second" in cause.message
    assert len(cause.message) <= 1000


NAMES = [f"m{number}" for number in range(8)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[PackageSnapshot], list[NodeSnapshot]]:
    """Draw packages that wait for random other packages, which may be missing. Some packages fail, and some are at work, ready or
    off.
    """
    packages, nodes = [], []
    for name in NAMES:
        others = draw(st.lists(st.sampled_from([*NAMES, "absent"]), max_size=3, unique=True))
        kind = draw(st.sampled_from(["waits", "waits", "waits", "fails", "works", "ready", "off"]))
        if kind == "waits":
            packages.append(pending(name))
            nodes.append(waiting(name, *others))
        elif kind == "off":
            votes = (forbidden("DependencyNotEnabled", "x"),)
            packages.append(package(name, condition(Stage.REQUIREMENTS), state="Pending"))
            nodes.append(node(name, *others, votes=votes))
        else:
            packages.append({"fails": failing, "works": downloading, "ready": ready}[kind](name))
    return packages, nodes


@given(worlds(), st.randoms(use_true_random=False))
def test_every_chain_has_one_root_one_remedy_and_distinct_packages(
    world: tuple[list[PackageSnapshot], list[NodeSnapshot]], order: Random
) -> None:
    packages, nodes = world
    here: list[PackageSnapshot | NodeSnapshot] = [*packages, *nodes]
    told = {name: explain(name, known(*here)) for name in NAMES}
    order.shuffle(here)
    for name, found in told.items():
        assert found is not None
        assert found == explain(name, known(*here))
        assert found.ready == (not found.causes) == (not found.remedy)
        if not found.ready:
            assert subjects(found)[0] == name
            assert len(set(subjects(found))) == len(found.causes)
            roots = [
                cause
                for cause in found.causes
                if not cause.state.startswith(("waits for m", "needs", "waits for absent"))
            ]
            assert roots in ([], [found.causes[-1]])  # there is no root if the packages wait for each other in a circle
            assert roots or "these packages wait for each other" in found.causes[-1].message


@given(worlds())
def test_the_root_cause_is_the_nearest_one_for_users(
    world: tuple[list[PackageSnapshot], list[NodeSnapshot]],
) -> None:
    """A simple breadth-first search of the snapshots finds the expected root cause."""
    packages, nodes = world
    on = {each.name for each in nodes if each.decision == "Enable"}
    needs = {
        # A package that cannot be on is also blocked by dependencies that are off.
        each.name: [
            *(lack.name for lack in each.lacks),
            *(need.name for need in each.dependencies if need.name not in on),
        ]
        for each in nodes
    }
    fails = {each.name for each in packages if each.queue.tasks and each.queue.tasks[0].error} | {"absent"}
    for name in NAMES:
        level, distance, seen = {name}, 0, {name}
        while level and not level & fails:
            level = {other for each in level for other in needs.get(each, [])} - seen
            seen |= level
            distance += 1
        found = explain(name, known(*packages, *nodes))
        assert found is not None
        # A package that is off for an obsolete reason is its own root cause.
        if level and "cannot be on" not in {cause.state for cause in found.causes}:
            assert len(found.causes) == distance + 1
            assert found.causes[-1].subject in level


def test_the_age_of_a_cause_is_that_of_its_source() -> None:
    late = replace(waiting("shop.web", "a"), since=NOW - timedelta(days=2))
    told = why("shop.web", pending("shop.web"), late, downloading("a"))
    assert told.causes[0].since == NOW - timedelta(days=2)
