"""Plans: the packages that would be on, their order, and why others would be off. For the same input, the scheduler makes the
same decisions.
"""

from dataclasses import replace

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.support.nodes import depends, group, grouped, module, node
from tests.runtime.support.planned import Packages, inputs, plan_of, planned, spec, states
from tests.scale import scaled
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.definition.requirements import DependsOn
from wharfinger.runtime.fixpoint.circles import strong_components
from wharfinger.runtime.plan.plan import LEFT_TO_PEOPLE, SCRIPT_NOT_ASKED, SUSPENDED, make_plan
from wharfinger.runtime.resources.resources import NO_RECONCILIATION
from wharfinger.runtime.scheduler.events import (
    Completed,
    Effect,
    FactsChanged,
    IntentSet,
    NodeAdded,
    Resumed,
    Schedule,
    ScriptVoted,
)
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.scheduler import Scheduler

# --- packages that would be on, and their order ------------------------------------------------------------------------------


def test_every_package_is_on_after_its_dependencies() -> None:
    plan = plan_of(node("web.shop", "data.db", "ingress"), node("data.db"), module("ingress", order=10))
    assert [(each.turn, each.tier, each.name, each.after) for each in plan.order] == [
        (1, 10, "ingress", ()),
        (2, 999, "data.db", ()),
        (3, 999, "web.shop", ("data.db", "ingress")),
    ]
    assert plan.blocked == ()
    assert {each.state.value for each in plan.packages} == {"on"}
    assert all(each.explanation is None for each in plan.packages)


def test_a_dependency_of_a_later_tier_raises_its_dependents() -> None:
    plan = plan_of(module("early", "late", order=1), module("late", order=50), module("between", order=20))
    assert [(each.name, each.tier) for each in plan.order] == [("between", 20), ("late", 50), ("early", 50)]


def test_one_module_of_an_exclusive_group_is_on_and_blocks_the_others() -> None:
    plan = plan_of(grouped("flannel"), grouped("cilium", order=1), module("other"), grouped("calico", order=1))
    assert states(plan) == {"calico": "on", "cilium": "blocked", "flannel": "blocked", "other": "on"}
    assert {each.name: each.message for each in plan.blocked} == dict.fromkeys(
        ("cilium", "flannel"), "only one Module of the exclusive group 'cni' may be on, and calico takes precedence"
    )


def test_a_disabled_module_does_not_occupy_its_exclusive_group() -> None:
    wanted = [spec("calico", enabled=False), spec("flannel"), spec("shop.user")]
    plan = planned(wanted, [grouped("calico"), grouped("flannel"), node("shop.user", "flannel")])
    assert states(plan) == {"calico": "off", "flannel": "on", "shop.user": "on"}


def test_an_unreadable_module_does_not_occupy_its_exclusive_group() -> None:
    plan = planned([spec("calico"), spec("flannel")], [grouped("flannel")])
    assert states(plan) == {"calico": "blocked", "flannel": "on"}


def test_a_module_that_needs_a_member_of_its_exclusive_group_is_blocked() -> None:
    plan = plan_of(grouped("a", "b"), grouped("b"), node("c.c", "a"))
    assert states(plan) == {"a": "blocked", "b": "on", "c.c": "blocked"}


def test_an_empty_input_gives_an_empty_plan() -> None:
    plan = plan_of()
    assert (plan.packages, plan.order, plan.blocked) == ((), (), ())


def test_dependencies_of_a_resource_are_part_of_the_plan() -> None:
    needs = (DependsOn("Application", "data", "db", depends("x >=2")[0].constraint),)
    wanted = [spec("web.shop", depends_on=needs), spec("data.db")]
    plan = planned(wanted, [node("web.shop"), node("data.db", version="1.4.0")])
    (blocked,) = plan.blocked
    assert (blocked.name, blocked.reason) == ("web.shop", "DependencyVersionMismatch")
    assert blocked.message == "dependency data.db (>=2) is not met by version 1.4.0"


def test_a_package_used_by_many_resources_is_read_once() -> None:
    packages = Packages(node("data.db"))

    async def main() -> list[str]:
        wanted = inputs(*(spec(f"team{number}.db", package="data-db") for number in range(9)))
        told: list[str] = []
        plan = await make_plan(
            wanted, packages.load, Facts(), progress=lambda *how_far: told.append("{}/{}".format(*how_far))
        )
        assert len(plan.order) == 9
        return told

    assert trio.run(main) == ["1/1"]
    assert packages.read == ["data-db"]


async def test_the_number_of_concurrent_reads_is_limited() -> None:
    reading = most = 0
    packages = Packages(*(module(f"m{number}") for number in range(20)))

    async def load(package: str, version: str) -> Definition:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        await trio.testing.wait_all_tasks_blocked()
        found = await packages.load(package, version)
        reading -= 1
        return found

    plan = await make_plan(inputs(*(spec(f"m{number}") for number in range(20))), load, Facts(), limit=3)
    assert len(plan.order) == 20
    assert most == 3


async def test_an_unexpected_exception_is_raised() -> None:
    async def load(package: str, version: str) -> Definition:
        raise ZeroDivisionError(package)

    with pytest.raises(AssertionError, match="ZeroDivisionError: db"):
        await make_plan(inputs(spec("db")), load, Facts())


# --- packages that are off on purpose ---------------------------------------------------------------------------------------


def test_a_disabled_package_stays_off() -> None:
    plan = planned([spec("db", enabled=False)], [module("db")])
    assert states(plan) == {"db": "off"}
    assert plan.packages[0].reason == "DynamicallyDisabled"
    assert plan.blocked == ()


def test_a_disabled_package_with_missing_dependencies_is_off() -> None:
    plan = planned([spec("db", enabled=False), spec("gone", enabled=False)], [module("db", "missing")])
    assert states(plan) == {"db": "off", "gone": "off"}


def test_a_bundle_decides_about_modules_without_an_intent() -> None:
    nodes = [module("in", bundles=[("ee", "Default")]), module("out", bundles=[("ce", "Default")])]
    wanted = [spec("in", enabled=None), spec("out", enabled=None)]
    facts = Facts(edition="ee", bundle="Default")
    assert states(planned(wanted, nodes, facts)) == {"in": "on", "out": "off"}


def test_a_blocked_module_of_the_bundle_is_reported_as_blocked() -> None:
    wanted = [spec("in", enabled=None)]
    facts = Facts(edition="ee", bundle="Default")
    plan = planned(wanted, [module("in", "missing", bundles=[("ee", "Default")])], facts)
    assert states(plan) == {"in": "blocked"}


def test_an_unreadable_module_may_be_in_the_bundle() -> None:
    plan = planned([spec("in", enabled=None)], [], Facts(edition="ee", bundle="Default"))
    assert states(plan) == {"in": "blocked"}


def test_a_suspended_package_blocks_its_dependents() -> None:
    nodes = [node("data.db"), node("web.api", "data.db"), node("web.shop", "web.api"), node("web.blog")]
    wanted = [spec("data.db", suspended=True), spec("web.api"), spec("web.shop"), spec("web.blog")]
    plan = planned(wanted, nodes)
    assert states(plan) == {"data.db": "suspended", "web.api": "blocked", "web.blog": "on", "web.shop": "blocked"}
    by_name = {each.name: each for each in plan.packages}
    assert by_name["data.db"].notes == (SUSPENDED,)
    assert (by_name["web.api"].reason, by_name["web.api"].message) == ("Suspended", "it would wait for data.db")
    assert by_name["web.shop"].message == "it would wait for web.api"
    assert planned(wanted[:1], nodes[:1]).blocked == ()


def test_a_suspended_optional_dependency_blocks_its_dependents() -> None:
    nodes = [module("metrics"), node("web.shop", optional=["metrics"])]
    plan = planned([spec("metrics", suspended=True), spec("web.shop")], nodes)
    assert states(plan) == {"metrics": "suspended", "web.shop": "blocked"}


def test_a_suspended_dependency_that_is_disabled_blocks_no_package() -> None:
    nodes = [module("metrics"), node("web.shop", optional=["metrics"])]
    plan = planned([spec("metrics", suspended=True, enabled=False), spec("web.shop")], nodes)
    assert states(plan) == {"metrics": "suspended", "web.shop": "on"}


def test_skipped_scripts_and_maintenance_are_noted() -> None:
    nodes = [module("db", script=True), module("off", script=True), module("left")]
    wanted = [spec("db"), spec("off", enabled=False), spec("left", maintenance=NO_RECONCILIATION)]
    plan = planned(wanted, nodes)
    notes = {each.name: each.notes for each in plan.packages}
    assert notes == {"db": (SCRIPT_NOT_ASKED,), "off": (), "left": (LEFT_TO_PEOPLE,)}
    assert states(plan) == {"db": "on", "left": "on", "off": "off"}


# --- comparison with the live scheduler --------------------------------------------------------------------------------------

NAMES = ("alpha", "beta", "gamma", "delta", "shop.web", "shop.db")
FACTS = (Facts(), Facts("1.31", "1.2", edition="ee", bundle="Default"), Facts("v1.28.3+k3s1", bootstrapped=False))
SOME = st.sampled_from((*NAMES, "absent"))


@st.composite
def worlds(draw: st.DrawFn, *, cycles: bool = False) -> tuple[list[Node], dict[str, bool | None]]:
    """Draw packages with dependencies of every kind, and ``spec.enabled`` for each package. Some dependencies are missing."""
    nodes = []
    for index, name in enumerate(NAMES):
        other = SOME if cycles or not index else st.sampled_from(NAMES[:index])
        needed = draw(st.lists(other, max_size=2, unique=True)) if index or cycles else []
        is_module = "." not in name
        one = node(
            name,
            *_constrained(draw, (each for each in needed if each != name)),
            version=draw(st.sampled_from(["1.0.0", "2.1.0", "latest"])),
            order=draw(st.sampled_from([5, 10, 999])),
            any_of=[
                group("any", *_constrained(draw, each))
                for each in draw(st.lists(st.sets(SOME, min_size=1, max_size=3), max_size=1))
            ],
            none_of=[group("none", *_constrained(draw, [each])) for each in draw(st.lists(SOME, max_size=1))],
            kubernetes=draw(st.sampled_from([None, None, ">=1.29"])),
            floor=Verdict.DISABLE if is_module else Verdict.ENABLE,
            script=is_module and draw(st.booleans()),
            bundles=[("ee", "Default")] if is_module and draw(st.booleans()) else [],
        )
        if is_module and draw(st.booleans()):
            one = replace(one, exclusive=draw(st.sampled_from("xy")))
        if draw(st.integers(0, 5)):
            nodes.append(one)
    return nodes, {each.name: draw(st.sampled_from([True, True, None, False])) for each in nodes}


def _constrained(draw: st.DrawFn, names: object) -> list[str]:
    assert hasattr(names, "__iter__")
    return [f"{each} {draw(st.sampled_from(['', '>=1', '>=2']))}".strip() for each in sorted(names)]


def live(nodes: list[Node], intents: dict[str, bool | None], facts: Facts) -> tuple[Scheduler, tuple[Effect, ...]]:
    """Return a scheduler that has these nodes, intents and facts, and the effects of its start."""
    scheduler = Scheduler()
    scheduler.apply(FactsChanged(facts))
    for each in nodes:
        if each.floor is Verdict.DISABLE:
            scheduler.apply(IntentSet(each.name, intents[each.name]))
        scheduler.apply(NodeAdded(each))
        if each.script:
            scheduler.apply(ScriptVoted(each.name, enabled=None))
    return scheduler, scheduler.apply(Resumed())


@pytest.mark.slow
@settings(max_examples=scaled(2_000, 60), deadline=None)
@given(worlds(), st.sampled_from(FACTS), st.integers(1, 4))
def test_the_live_scheduler_has_the_same_decisions_and_order(
    world: tuple[list[Node], dict[str, bool | None]], facts: Facts, limit: int
) -> None:
    nodes, intents = world
    plan = planned(
        [spec(each.name, version=each.version, enabled=intents[each.name]) for each in nodes], nodes, facts, limit
    )
    scheduler, effects = live(nodes, intents, facts)
    for each in plan.packages:
        decided = scheduler.decision(each.name)
        assert decided is not None
        assert (each.reason, each.message) == (decided.reason, decided.message)
        assert (each.state.value == "on") is decided.allowed
    scheduled = {each.name: each.run for each in effects if isinstance(each, Schedule)}
    for each in plan.order:
        run = scheduled.pop(each.name)
        scheduled |= {
            after.name: after.run for after in scheduler.apply(Completed(each.name, run)) if isinstance(after, Schedule)
        }
    assert not scheduled


@pytest.mark.slow
@settings(max_examples=scaled(2_000, 60), deadline=None)
@given(worlds(cycles=True), st.sampled_from(FACTS), st.integers(1, 4))
def test_packages_on_a_cycle_are_refused_and_treated_as_absent(
    world: tuple[list[Node], dict[str, bool | None]], facts: Facts, limit: int
) -> None:
    nodes, intents = world
    hard = {each.name: {dependency.name for dependency, _ in each.dependencies()} for each in nodes}
    circles = [circle for circle in strong_components(hard, lambda name: hard[name]) if len(circle) > 1]
    cyclic = {name for circle in circles for name in circle}
    plan = planned(
        [spec(each.name, version=each.version, enabled=intents[each.name]) for each in nodes], nodes, facts, limit
    )
    scheduler, _ = live([each for each in nodes if each.name not in cyclic], intents, facts)
    for each in plan.packages:
        if each.name in cyclic:
            assert each.reason == "DependencyCycle"
            assert each.message.startswith("dependency cycle through: ")
            assert each.name in each.message
            continue
        decided = scheduler.decision(each.name)
        assert decided is not None
        assert (each.reason, each.message) == (decided.reason, decided.message)
