"""Chains of causes to their root: which is told, and that there always is one."""

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


def test_who_is_not_there_has_none() -> None:
    assert explain("db", known(ready("other"))) is None


def test_nothing_keeps_what_is_ready() -> None:
    assert why("db", ready("db"), node("db")) == ExplanationSnapshot("db", ready=True, causes=(), remedy="")


def test_that_it_is_left_to_people_is_said_all_the_same() -> None:
    told = why("db", replace(ready("db"), maintenance="NoResourceReconciliation"))
    assert told.ready
    (also,) = told.also
    assert also.startswith("db is in maintenance, because spec.maintenance is set")
    assert "kubectl patch modules.wharfinger.dev db" in also


def test_objects_that_fail_are_told_of_what_is_ready_and_of_what_is_not() -> None:
    text = "ConfigMap prod/a: no quota; attempt 4 failed, next at 12:07:20 UTC (in 13 s)"
    assert why("db", replace(ready("db"), failing=(text,))).also == (f"db: {text}",)
    maintained = why("db", replace(ready("db"), maintenance="NoResourceReconciliation", failing=(text,)))
    assert maintained.also[1:] == (f"db: {text}",)
    held = why("db", replace(ready("db"), suspended=True, failing=(text,)))
    assert not held.ready
    assert f"db: {text}" in held.also


def test_warnings_are_told_beside_what_keeps_it() -> None:
    """A helm uninstall by a person is a warning, and the cause of what fails."""
    text = "release: a helm command changed it last"
    told = why("db", replace(ready("db"), warnings=(text,)))
    assert (told.ready, told.also) == (True, (f"db: warning: {text}",))
    assert why("db", replace(failing("db"), warnings=(text,))).also == (f"db: warning: {text}",)
    assert why("db", replace(ready("db"), warnings=(text,), failing=("x",))).also == ("db: x",)


def test_a_chain_three_levels_down() -> None:
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


def test_what_a_user_can_act_on_comes_before_what_is_at_work() -> None:
    told = why(
        "shop.web",
        *(pending("shop.web"), waiting("shop.web", "a", "b")),
        *(downloading("a"), failing("b")),
    )
    assert subjects(told) == ["shop.web", "b"]
    assert told.also == ("shop.web waits for a",)


def test_the_nearest_root_is_the_one_that_is_told() -> None:
    told = why(
        "shop.web",
        *(pending("shop.web"), waiting("shop.web", "a", "z")),
        *(pending("a"), waiting("a", "b")),
        *(failing("b"), failing("z")),
    )
    assert subjects(told) == ["shop.web", "z"]


def test_of_two_as_near_the_first_in_order() -> None:
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "a", "b"), failing("a"), failing("b"))
    assert subjects(told) == ["shop.web", "a"]
    assert told.also == ("shop.web waits for b",)


def test_where_everything_is_at_work_the_nearest_of_that() -> None:
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "a"), downloading("a"))
    assert subjects(told) == ["shop.web", "a"]
    assert told.remedy == of_work("Download:1.0.0")


def test_of_a_tier_the_one_that_can_be_mended() -> None:
    held = [pending(f"m{number}") for number in range(9)]
    nodes = [waiting(f"m{number}", order=10) for number in range(9)]
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "order 10"), *held[1:], failing("m0"), *nodes)
    assert subjects(told) == ["shop.web", "m0"]
    assert told.causes[0].message == "packages of this order are not done: m0, m1, m2, m3, m4 and 4 more"


def test_a_dependency_that_is_not_there() -> None:
    shop = node("shop.web", "db >=1.0", votes=(forbidden("DependencyNotEnabled", "x"),))
    told = why("shop.web", package("shop.web", condition(Stage.REQUIREMENTS), state="Pending"), shop)
    assert [(cause.subject, cause.state) for cause in told.causes] == [
        ("shop.web", "needs db (>=1.0)"),
        ("db", "is not known"),
    ]
    assert told.remedy.startswith("create the Module db in a version that matches >=1.0")


def test_what_would_close_a_circle_goes_on_and_says_so() -> None:
    required = condition(Stage.REQUIREMENTS, "False", "DependencyCycle", "around")
    told = why("db", package("db", required), node("db"))
    assert [cause.state for cause in told.causes] == ["keeps running as before its resource changed"]
    assert told.causes[0].message == "DependencyCycle: around"
    assert told.remedy != WAIT
    assert told.also == ()


def test_a_disable_that_fails_is_the_root_for_all_who_wait() -> None:
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


def test_a_dependency_that_is_on_its_way_is_not_absent() -> None:
    shop = node("shop.web", "db", votes=(forbidden("DependencyNotEnabled", "x"),))
    told = why("shop.web", package("shop.web", condition(Stage.REQUIREMENTS), state="Pending"), shop, downloading("db"))
    assert told.causes[-1].state == "is at work"


def test_what_stands_over_the_stages_is_all_that_is_told() -> None:
    suspended = replace(failing("db"), suspended=True)
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "db"), suspended, node("db", state="scheduled"))
    assert told.causes[-1].state == "is suspended"
    assert told.also == ()


def test_what_failed_beside_a_gate_is_told_beside_it() -> None:
    hooks = condition(Stage.HOOKS, "False", "EventHookFailed", "hooks/a.sh: exit status 1")
    required = condition(Stage.REQUIREMENTS, "False", "DynamicallyDisabled", "x")
    off = node("db", votes=(forbidden("DynamicallyDisabled", "x"),))
    told = why("db", package("db", required, hooks), off)
    assert told.causes[0].state == "is off"
    assert told.also == ("db fails: EventHookFailed: hooks/a.sh: exit status 1",)


def test_of_many_others_a_few_are_told() -> None:
    needs = [f"m{number}" for number in range(10)]
    told = why("shop.web", pending("shop.web"), waiting("shop.web", *needs), failing("m0"))
    assert told.also == (*(f"shop.web waits for m{number}" for number in range(1, 6)), "4 more")
    assert len(told.also) == MAX_ALSO + 1


def test_who_is_waited_for_and_has_become_ready() -> None:
    told = why("shop.web", pending("shop.web"), waiting("shop.web", "db"), ready("db"), node("db"))
    assert [(cause.subject, cause.state) for cause in told.causes] == [
        ("shop.web", "waits for db"),
        ("db", "is ready"),
    ]
    assert told.remedy == WAIT


def test_what_is_ready_and_to_be_run_again_says_what_that_waits_for() -> None:
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


def test_what_is_ready_and_its_turn_comes_later() -> None:
    told = why("web", ready("web"), waiting("web", "order 10"), downloading("a"), waiting("a", order=10))
    assert told.causes[0].message == f"packages of this order are not done: a; {AGAIN}"
    assert subjects(told) == ["web", "a"]


def test_while_a_version_is_applied_the_gates_of_the_one_before_keep_no_one() -> None:
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


def test_a_circle_is_its_own_root() -> None:
    told = why(
        "shop.web",
        *(pending("shop.web"), waiting("shop.web", "a")),
        *(pending("a"), waiting("a", "b")),
        *(pending("b"), waiting("b", "a")),
    )
    assert subjects(told) == ["shop.web", "a", "b"]
    assert told.causes[-1].message == "these packages wait for each other: a → b → a"
    assert "a → b → a" in told.remedy


def test_a_circle_of_one() -> None:
    told = why("a", pending("a"), waiting("a", "a"))
    assert [(cause.subject, cause.message) for cause in told.causes] == [
        ("a", "these packages wait for each other: a → a")
    ]


def test_a_way_out_of_a_circle_is_taken() -> None:
    told = why("a", pending("a"), waiting("a", "b"), pending("b"), waiting("b", "a", "c"), failing("c"), node("c"))
    assert subjects(told) == ["a", "b", "c"]
    assert told.also == ("b waits for a",)


def test_a_chain_without_end_is_cut_off_and_says_where_to_go_on() -> None:
    def package_of(name: str) -> PackageSnapshot:
        return pending(name)

    def node_of(name: str) -> NodeSnapshot:
        return waiting(name, f"m{int(name[1:]) + 1}")

    told = explain("m0", Known(NOW, package_of, node_of, lambda _order: ()))
    assert told is not None
    assert len(told.causes) == MAX_LOOKED_AT
    assert told.remedy == f"the chain of causes is longer; continue with `wharfinger why m{MAX_LOOKED_AT}`"


def test_what_is_told_is_one_line_each() -> None:
    told = why("db", failing("db", message="first\nsecond\n\n" + "x" * 5000))
    (cause,) = told.causes
    assert "first second" in cause.message
    assert len(cause.message) <= 1000


NAMES = [f"m{number}" for number in range(8)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[PackageSnapshot], list[NodeSnapshot]]:
    """Packages that wait for any others, there or not; some fail, some are at work, some are ready."""
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
def test_every_chain_has_one_root_one_remedy_and_no_package_twice(
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
            assert roots in ([], [found.causes[-1]])  # a circle has none but itself
            assert roots or "these packages wait for each other" in found.causes[-1].message


@given(worlds())
def test_the_root_is_as_near_as_one_that_can_be_acted_on(
    world: tuple[list[PackageSnapshot], list[NodeSnapshot]],
) -> None:
    """A naive search, level by level, over what the snapshots say."""
    packages, nodes = world
    on = {each.name for each in nodes if each.decision == "Enable"}
    needs = {
        # What may not be on is kept by those that are not on either.
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
        # What is off for a reason that is gone by now is a root of its own.
        if level and "cannot be on" not in {cause.state for cause in found.causes}:
            assert len(found.causes) == distance + 1
            assert found.causes[-1].subject in level


def test_the_age_of_a_cause_is_that_of_what_it_was_made_from() -> None:
    late = replace(waiting("shop.web", "a"), since=NOW - timedelta(days=2))
    told = why("shop.web", pending("shop.web"), late, downloading("a"))
    assert told.causes[0].since == NOW - timedelta(days=2)
