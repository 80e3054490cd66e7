"""The reasons why packages are off: each is traced to its root cause, and has a remedy."""

from collections.abc import Sequence

import pytest

from tests.runtime.support.nodes import group, module, node
from tests.runtime.support.planned import planned, spec
from wharfinger.runtime.plan import reasons as plan_reasons
from wharfinger.runtime.plan.plan import PlannedPackage
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.rules import Facts

SHOP = spec("web.shop")
NOTHING = Facts()


def told(package: PlannedPackage) -> tuple[list[str], str]:
    """Return the chain of causes, from the package to the root cause, and the remedy."""
    assert package.explanation is not None
    assert all(cause.since is None for cause in package.explanation.causes)
    chain = [f"{cause.subject} {cause.state}: {cause.message}".rstrip(": ") for cause in package.explanation.causes]
    return chain, package.explanation.remedy


CASES = {
    "missing": (
        [SHOP],
        [node("web.shop", "data.db >=2")],
        NOTHING,
        ["web.shop needs data.db (>=2)", "data.db is not installed: there is no resource of that name"],
        "create the Application db in namespace data in a version that matches >=2",
    ),
    "wrong version": (
        [SHOP, spec("data.db", version="1.4.0")],
        [node("web.shop", "data.db >=2"), node("data.db", version="1.4.0")],
        NOTHING,
        ["web.shop needs data.db (>=2): data.db has version 1.4.0"],
        "set spec.packageVersion of applications.wharfinger.dev db -n data to a version that matches >=2",
    ),
    "three levels down": (
        [SHOP, spec("web.api"), spec("data.db")],
        [node("web.shop", "web.api"), node("web.api", "data.db"), node("data.db", kubernetes=">=1.30")],
        Facts("1.28.0"),
        [
            "web.shop needs web.api",
            "web.api needs data.db",
            (
                "data.db cannot be on: KubernetesRequirementsUnmet: data.db needs Kubernetes >=1.30, but the current "
                "version is 1.28.0"
            ),
        ],
        "",
    ),
    "switched off": (
        [SHOP, spec("db", enabled=False)],
        [node("web.shop", "db"), module("db")],
        NOTHING,
        [
            "web.shop needs db",
            "db is off: DynamicallyDisabled: the package is disabled; enable it to install it again",
        ],
        "kubectl patch modules.wharfinger.dev db",
    ),
    "none of a group": (
        [SHOP],
        [node("web.shop", any_of=[group("storage", "ceph", "nfs")])],
        NOTHING,
        [
            (
                "web.shop cannot be on: AnyOfDependenciesUnmet: web.shop needs one package of the group 'storage': "
                "ceph is not installed; nfs is not installed"
            )
        ],
        "",
    ),
    "excluded": (
        [SHOP, spec("haproxy")],
        [node("web.shop", none_of=[group("other", "haproxy")]), module("haproxy")],
        NOTHING,
        [
            (
                "web.shop cannot be on: NoneOfDependenciesUnmet: web.shop excludes haproxy (group 'other'), "
                "but version 1.0.0 is on"
            )
        ],
        "",
    ),
    "cycle": (
        [SHOP, spec("a"), spec("b")],
        [node("web.shop", "a"), module("a", "b"), module("b", "a")],
        NOTHING,
        ["web.shop needs a", "a cannot be on: DependencyCycle: dependency cycle through: a, b (a → b → a)"],
        "change one of the named packages so that it does not depend on the others",
    ),
    "not found": (
        [SHOP, spec("db")],
        [node("web.shop", "db")],
        NOTHING,
        ["web.shop needs db", "db fails: ArtifactNotFound: db 1.0.0: not found"],
        "spec.packageVersion",
    ),
    "suspended": (
        [SHOP, spec("db", suspended=True)],
        [node("web.shop", "db"), module("db")],
        NOTHING,
        [
            "web.shop waits for db",
            "db is suspended: spec.suspend is true: nothing is reconciled, and nothing is deleted",
        ],
        "kubectl patch modules.wharfinger.dev db",
    ),
    "not bootstrapped": (
        [SHOP],
        [node("web.shop")],
        Facts(bootstrapped=False),
        ["web.shop cannot be on: BootstrapRequirementsUnmet: the bootstrap of the cluster is not finished yet"],
        "",
    ),
    "release taken": (
        [spec("wharfinger-system.db"), spec("db")],
        [module("db"), node("wharfinger-system.db")],
        NOTHING,
        [
            (
                "wharfinger-system.db has a resource that cannot be used: SpecInvalid: Module db already has the release db in "
                "namespace wharfinger-system; choose another name"
            )
        ],
        "correct the field of the resource",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_reasons_are_traced_to_their_root_cause(case: str) -> None:
    specs, nodes, facts, chain, remedy = CASES[case]
    blocked = {each.name: each for each in plan_blocked(specs, nodes, facts)}
    found = blocked.get("web.shop") or blocked["wharfinger-system.db"]
    assert told(found)[0] == chain
    assert remedy in told(found)[1]
    assert told(found)[1]


def plan_blocked(specs: Sequence[PackageSpec], nodes: Sequence[Node], facts: Facts) -> tuple[PlannedPackage, ...]:
    return planned(specs, nodes, facts).blocked


def test_remedies_name_the_options_for_versions() -> None:
    nodes = [node("a.kube", kubernetes=">=1.30"), node("a.plat", platform=">=1.60"), node("a.top", "a.kube")]
    specs = [spec(each.name) for each in nodes]
    remedies = {each.name: told(each)[1] for each in plan_blocked(specs, nodes, NOTHING)}
    assert remedies == {
        "a.kube": "give the version with --kubernetes-version",
        "a.plat": "give the version with --platform-version",
        "a.top": "give the version with --kubernetes-version",
    }


def test_a_long_chain_is_shortened_in_the_middle() -> None:
    nodes = [module(f"m{number:02}", f"m{number + 1:02}") for number in range(40)]
    blocked = plan_blocked([spec(each.name) for each in nodes], nodes, NOTHING)
    chain, remedy = told(blocked[0])
    assert len(chain) == plan_reasons.MAX_CAUSES
    assert chain[7:10] == [
        "m07 needs m08",
        "m08 and 25 more packages, each of which waits for the next one",
        "m34 needs m35",
    ]
    assert chain[-1] == "m40 is not installed: there is no resource of that name"
    assert "create the Module m40" in remedy
    assert len(told(blocked[40 - plan_reasons.MAX_CAUSES + 1])[0]) == plan_reasons.MAX_CAUSES


def test_the_number_of_lookups_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_reasons, "MAX_LOOKS", 5)
    nodes = [node(f"web.shop{number}", "db") for number in range(9)]
    blocked = plan_blocked([spec(each.name) for each in nodes], nodes, NOTHING)
    assert [each.explanation is not None for each in blocked] == [True] * 3 + [False] * 6


def test_packages_that_are_on_have_no_explanation() -> None:
    plan = planned([spec("db")], [module("db")])
    assert plan.packages[0].explanation is None


def test_packages_that_stay_off_are_explained() -> None:
    plan = planned([spec("db", enabled=None)], [module("db")])
    assert told(plan.packages[0])[0] == ["db is off: DisabledByDefault: the package is off by default, and not enabled"]
