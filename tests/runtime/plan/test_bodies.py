"""The bodies of a plan in the fixpoint engine: their dependencies, the level at which they run, and their cost."""

from dataclasses import replace

import trio

from tests.runtime.support.nodes import depends, group, module, node
from tests.runtime.support.planned import Packages, spec
from wharfinger.packages.definition.requirements import Dependency, DependencyGroup
from wharfinger.runtime.fixpoint.converge import Report, converge
from wharfinger.runtime.fixpoint.model import Id, Level
from wharfinger.runtime.plan.bodies import Finding, Judged, PlanBodies, Refused, node_id
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.versions.version_policy import read_version


def run(specs: list[PackageSpec], *nodes: Node) -> tuple[dict[str, Finding], Report]:
    """Run a plan, and return its findings and the report of the engine."""

    async def main() -> tuple[dict[str, Finding], Report]:
        bodies = PlanBodies(specs, Facts(), Packages(*nodes).load)
        report = await converge(bodies, bodies.seeds, limit=2)
        assert (report.crashed, report.unresolved, report.exhausted) == ({}, {}, {})
        return bodies.findings, report

    return trio.run(main)


def all_of(*nodes: Node) -> tuple[dict[str, Finding], Report]:
    return run([spec(each.name, version=each.version) for each in nodes], *nodes)


def refused(finding: Finding) -> Refused:
    assert isinstance(finding, Refused)
    return finding


def judged(finding: Finding) -> Judged:
    assert isinstance(finding, Judged)
    return finding


def test_ids_have_kind_namespace_and_name() -> None:
    assert node_id(spec("web.shop").id) == Id("Application", "web", "shop")
    assert node_id(spec("ingress").id) == Id("Module", "", "ingress")


def test_a_chain_is_judged_without_a_drain() -> None:
    nodes = [module(f"m{number:02}", *([f"m{number - 1:02}"] if number else [])) for number in range(30)]
    findings, report = all_of(*nodes)
    assert all(judged(each).decision.on for each in findings.values())
    assert report.level is Level.NONE
    assert report.results[Id("Module", "", "m29")] == "on"
    assert report.results[Id("Definition", "m00", "1.0.0")] == "loaded"
    # The body of a resource first reads the definition of its package, then waits, and then is judged. After each of these steps,
    # the bodies of the resources that refer to it run again.
    assert max(report.runs.values()) <= 5


def test_absent_dependencies_are_judged_at_cascade() -> None:
    findings, report = all_of(node("web.shop", "data.db"))
    decision = judged(findings["web.shop"]).decision
    assert (decision.on, decision.message) == (False, "dependency data.db is not installed")
    assert report.level is Level.CASCADE


def test_absent_optional_dependencies_block_no_package() -> None:
    findings, report = all_of(node("web.shop", optional=["data.db"]), node("a.b"))
    assert all(judged(each).decision.on for each in findings.values())
    assert report.level is Level.CASCADE


def test_every_package_on_a_cycle_is_refused_with_the_path() -> None:
    findings, report = all_of(module("a", "b"), module("b", "c"), module("c", "a"), module("d", "a"), module("e"))
    told = {refused(findings[name]) for name in "abc"}
    assert told == {Refused("DependencyCycle", "dependency cycle through: a, b, c (a → b → c → a)")}
    assert judged(findings["d"]).decision.message == "dependency a is not installed"
    assert judged(findings["e"]).decision.on
    assert report.level is Level.FORCE


def test_two_cycles_in_one_circle_are_distinguished() -> None:
    """Any-of groups connect the two cycles to one circle. One node of each cycle is refused, as the scheduler of the daemon
    would do.
    """
    first = [node("a", "b", any_of=[group("any", "c")]), node("b", "a")]
    second = [node("c", "d"), node("d", "c", any_of=[group("any", "a")])]
    findings, report = all_of(*first, *second)
    assert refused(findings["b"]).message == "dependency cycle through: a, b (a → b → a)"
    assert refused(findings["d"]).message == "dependency cycle through: c, d (c → d → c)"
    assert report.level is Level.FORCE


def test_a_package_tied_to_a_cycle_by_a_group_is_judged_without_the_cycle() -> None:
    nodes = [node("a", any_of=[group("any", "b")]), node("b", "c"), node("c", "b", any_of=[group("any", "a")])]
    findings, _ = all_of(*nodes)
    assert judged(findings["a"]).decision.message == "a needs one package of the group 'any': b is not installed"
    assert {name for name, each in findings.items() if isinstance(each, Refused)} == {"b", "c"}


def test_mutually_exclusive_packages_are_judged_together() -> None:
    """Each of the two packages excludes the other one. The first in order is on (spec/runtime §4.6), whichever is read first."""
    nodes = [node("a", none_of=[group("none", "b")]), node("b", none_of=[group("none", "a")])]
    findings, report = all_of(*nodes)
    assert sorted(judged(each).decision.on for each in findings.values()) == [False, True]
    assert report.level is Level.FORCE


def test_an_unreadable_package_fails_its_resource_with_the_message() -> None:
    wanted = [spec("data.db"), spec("gone")]
    findings, report = run(wanted, node("data.db", "gone"))
    assert refused(findings["gone"]) == Refused("ArtifactNotFound", "gone 1.0.0: not found")
    assert report.results[Id("Definition", "gone", "1.0.0")] == "ArtifactNotFound: gone 1.0.0: not found"
    assert report.results[Id("Module", "", "gone")] == "ArtifactNotFound: gone 1.0.0: not found"
    assert judged(findings["data.db"]).decision.message == "dependency gone is not installed"
    assert report.level is Level.NONE


def test_a_package_with_the_release_of_another_is_refused() -> None:
    wanted = [spec("wharfinger-system.db"), spec("db")]
    findings, _ = run(wanted, module("db"), node("wharfinger-system.db"))
    assert judged(findings["db"]).decision.on
    assert refused(findings["wharfinger-system.db"]) == Refused(
        "SpecInvalid",
        "Module db already has the release db in namespace wharfinger-system; choose another name",
        accepted=False,
    )


def test_a_name_that_no_release_can_have_is_refused() -> None:
    findings, _ = run([spec(f"web.{'x' * 54}")])
    found = refused(findings[f"web.{'x' * 54}"])
    assert (found.reason, found.accepted) == ("SpecInvalid", False)
    assert "at most 53" in found.message


def test_a_package_that_requires_its_own_name_is_refused() -> None:
    findings, _ = run([spec("db", package="other")], module("other", "db"))
    assert refused(findings["db"]).reason == "SpecInvalid"
    assert "requires Module db, and is itself installed under this name" in refused(findings["db"]).message


def test_an_absent_member_of_a_group_does_not_block() -> None:
    members = tuple(Dependency(name, depends("x")[0].constraint) for name in ("absent", "there"))
    wanted = node("web.shop", any_of=[DependencyGroup("any", "", members)])
    findings, report = all_of(wanted, module("there"))
    assert judged(findings["web.shop"]).decision.on
    assert report.level is Level.CASCADE


def test_a_version_range_is_not_planned_and_the_message_names_the_field() -> None:
    follows = read_version({"spec": {"versionRange": "^1"}})[1]
    findings, _ = run([replace(spec("ingress", version=""), policy=follows)], module("ingress"))
    finding = refused(findings["ingress"])
    assert finding.reason == "NoVersion"
    assert finding.message == (
        "spec: expected packageVersion, because a plan does not read repositories, found range ^1; set a version for the plan"
    )
