"""The rules of the scheduler, each tested alone."""

import pytest

from tests.runtime.support.deciding import FACTS, only
from tests.runtime.support.nodes import group, module, node
from wharfinger.packages.definition.requirements import DependencyGroup
from wharfinger.runtime.scheduler.gates import Decision
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.rules import Facts, Opinion, ScriptVote
from wharfinger.runtime.status.reasons import Reason


def test_floors_decide_without_other_opinions() -> None:
    assert only(node("app")) == Decision(Verdict.ENABLE, Reason.ENABLED_BY_DEFAULT, "")
    off = only(module("mod"))
    assert (off.verdict, off.reason, off.uninstall) == (Verdict.DISABLE, Reason.DISABLED_BY_DEFAULT, False)
    assert not only(node("odd", floor=Verdict.UNDEFINED)).on


@pytest.mark.parametrize(
    ("subject", "facts", "reason", "message"),
    [
        (node("app", kubernetes=">=1.30"), FACTS, None, ""),
        (
            node("app", kubernetes=">=1.32"),
            FACTS,
            Reason.KUBERNETES_UNMET,
            "app needs Kubernetes >=1.32, but the current version is v1.31.4+k3s1",
        ),
        (
            node("app", kubernetes=">=1.32"),
            Facts("", "1"),
            Reason.VERSION_LOOKUP_FAILED,
            "app needs Kubernetes >=1.32, but the version of Kubernetes is not known",
        ),
        (
            node("app", kubernetes=">=1.32"),
            Facts("new", "1"),
            Reason.VERSION_LOOKUP_FAILED,
            (
                "app needs Kubernetes >=1.32, but the current version cannot be parsed: 'new' is not a version;"
                " write one like 1.2.3 or 1.2.3-rc.1"
            ),
        ),
        (node("app", platform="^1.70"), FACTS, None, ""),
        (
            node("app", platform="<1.70"),
            FACTS,
            Reason.PLATFORM_UNMET,
            "app needs the platform <1.70, but the current version is 1.70.2",
        ),
        (
            node("app", platform=">=1", kubernetes="*"),
            Facts("1.30", ""),
            Reason.VERSION_LOOKUP_FAILED,
            "app needs the platform >=1, but the version of the platform is not known",
        ),
        (node("app"), Facts(), None, ""),
    ],
)
def test_version_rejection_names_subject_constraint_and_current(
    subject: Node, facts: Facts, reason: Reason | None, message: str
) -> None:
    decision = only(subject, facts=facts)
    if reason is None:
        assert decision.on
    else:
        assert decision == Decision(Verdict.FORBID, reason, message)


@pytest.mark.parametrize(
    ("needs", "there", "reason", "message"),
    [
        (node("app", "db"), [node("db")], None, ""),
        (node("app", "db"), [], Reason.DEPENDENCY_NOT_ENABLED, "dependency db is not installed"),
        (node("app", "db"), [module("db")], Reason.DEPENDENCY_NOT_ENABLED, "dependency db is not enabled"),
        (node("app", "db >=1"), [], Reason.DEPENDENCY_NOT_ENABLED, "dependency db (>=1) is not installed"),
        (node("app", "db >=1"), [module("db")], Reason.DEPENDENCY_NOT_ENABLED, "dependency db (>=1) is not enabled"),
        (
            node("app", "db >=2"),
            [node("db", version="1.9.9")],
            Reason.DEPENDENCY_VERSION_MISMATCH,
            "dependency db (>=2) is not met by version 1.9.9",
        ),
        (node("app", "db >=1.2.0"), [node("db", version="v1.2.0-rc1+x")], None, ""),
        (
            node("app", "db >=1"),
            [node("db", version="latest")],
            Reason.DEPENDENCY_VERSION_MISMATCH,
            "by version latest",
        ),
        (node("app", "db"), [node("db", version="latest")], None, ""),
        (node("app", optional=["db >=2"]), [], None, ""),
        (node("app", optional=["db >=2"]), [module("db")], None, ""),
        (
            node("app", optional=["db >=2"]),
            [node("db")],
            Reason.DEPENDENCY_VERSION_MISMATCH,
            "dependency db (>=2) is not met by version 1.0.0",
        ),
        (
            node("app", "z", "b", optional=["c >=9"]),
            [node("c"), module("z")],
            Reason.DEPENDENCY_NOT_ENABLED,
            "dependency b is not installed; dependency c (>=9) is not met by version 1.0.0; dependency z is not enabled",
        ),
        (
            node("app", *"abcdefgh"),
            [],
            Reason.DEPENDENCY_NOT_ENABLED,
            "dependency d is not installed; dependency e is not installed; and 3 more",
        ),
    ],
)
def test_dependencies_must_be_on_in_a_suitable_version(
    needs: Node, there: list[Node], reason: Reason | None, message: str
) -> None:
    decision = only(needs, *there)
    if reason is None:
        assert decision.on
    else:
        assert (decision.verdict, decision.reason) == (Verdict.FORBID, reason)
        assert decision.message.endswith(message)


RANGES = [
    # Installed version, range, and result. The prerelease and build metadata of the installed version are ignored.
    ("1.2.0", ">=1.2.0", True),
    ("1.2.0-rc1", ">=1.2.0", True),
    ("v1.2.0-rc.1+build.5", "=1.2.0", True),
    ("1.2.0-rc1", "<1.2.0", False),
    ("1.2.0-rc1", ">1.2.0", False),
    ("1.2.0-rc1", "<1.2.0 || ^1.2", True),
    ("1.2.9", "~1.2.3", True),
    ("1.3.0-alpha", "~1.2.3", False),
    ("1.9.0", "^1.2.3", True),
    ("2.0.0-alpha", "^1.2.3", False),
    ("1.4.2", "1.x", True),
    ("2.0.0", "1.x", False),
    ("1.4.2", ">=1.2, <1.4", False),
    ("1.3.9", ">=1.2, <1.4", True),
    ("1.3.9", ">=1.2 <1.4", True),
    ("3.1.0", ">=1.2, <2 || ^3.1", True),
    ("2.5.0", ">=1.2, <2 || ^3.1", False),
    ("1.5.0", "1.2 - 1.4", False),
    ("0.0.1-alpha", "*", True),
]


@pytest.mark.parametrize(("version", "wanted", "inside"), RANGES)
def test_ranges_mean_the_same_on_every_edge(version: str, wanted: str, inside: bool) -> None:
    db, named = node("db", version=version), f"db {wanted}"
    assert only(node("app", named), db).on is inside
    assert only(node("app", optional=[named]), db).on is inside
    assert only(node("app", any_of=[group("g", named)]), db).on is inside
    assert only(node("app", none_of=[group("g", named)]), db).on is not inside
    assert only(node("app", kubernetes=wanted), facts=Facts(kubernetes=version)).on is inside
    assert only(node("app", platform=wanted), facts=Facts(platform=version)).on is inside
    refuser, refused = node("refuser", none_of=[group("g", f"app {wanted}")]), node("app", "refuser", version=version)
    assert only(refused, refuser).on is not inside
    late = node("late", version=version, any_of=[group("g", "db", "app")])
    assert only(node("app", any_of=[group("g", f"late {wanted}")]), late, node("db")).on is inside


@pytest.mark.parametrize(
    ("groups", "there", "message"),
    [
        ([group("storage", "ceph", "nfs")], [node("nfs")], None),
        ([group("storage", "ceph >=2")], [node("ceph", version="latest")], "ceph (>=2) has version latest"),
        (
            [group("storage", "nfs", "ceph >=2")],
            [node("ceph")],
            "app needs one package of the group 'storage': ceph (>=2) has version 1.0.0; nfs is not installed",
        ),
        (
            [group("storage", "nfs")],
            [module("nfs")],
            "app needs one package of the group 'storage': nfs is not enabled",
        ),
        (
            [group("one", "a"), group("two", "b")],
            [node("a")],
            "app needs one package of the group 'two': b is not installed",
        ),
        ([group("one", "a"), group("two", "b")], [node("a"), node("b")], None),
        ([group("self", "app")], [], "app needs one package of the group 'self': app is not enabled"),
    ],
)
def test_any_of_groups_need_one_suitable_member(
    groups: list[DependencyGroup], there: list[Node], message: str | None
) -> None:
    decision = only(node("app", any_of=groups), *there)
    if message is None:
        assert decision.on
    else:
        assert (decision.verdict, decision.reason) == (Verdict.FORBID, Reason.ANY_OF_UNMET)
        assert decision.message.endswith(message)


@pytest.mark.parametrize(
    ("groups", "there", "message"),
    [
        ([group("rivals", "haproxy")], [], None),
        ([group("rivals", "haproxy")], [module("haproxy")], None),
        (
            [group("rivals", "haproxy")],
            [node("haproxy")],
            "app excludes haproxy (group 'rivals'), but version 1.0.0 is on",
        ),
        ([group("rivals", "haproxy >=2")], [node("haproxy")], None),
        (
            [group("rivals", "haproxy <2")],
            [node("haproxy")],
            "app excludes haproxy (<2) (group 'rivals'), but version 1.0.0 is on",
        ),
        (
            [group("rivals", "haproxy <2")],
            [node("haproxy", version="latest")],
            "app excludes haproxy (<2) (group 'rivals'), but version latest is on",
        ),
        (
            [group("one", "gone"), group("two", "z", "b")],
            [node("z"), node("b")],
            "app excludes b (group 'two'), but version 1.0.0 is on",
        ),
        ([group("self", "app")], [], None),
    ],
)
def test_none_of_groups_allow_no_member(groups: list[DependencyGroup], there: list[Node], message: str | None) -> None:
    decision = only(node("app", none_of=groups), *there)
    assert decision == (
        Decision(Verdict.ENABLE, Reason.ENABLED_BY_DEFAULT, "")
        if message is None
        else Decision(Verdict.FORBID, Reason.NONE_OF_UNMET, message)
    )


@pytest.mark.parametrize(
    ("subject", "opinion", "verdict", "reason", "uninstall"),
    [
        (module("m"), Opinion(intent=True), Verdict.ENABLE, Reason.DYNAMICALLY_ENABLED, False),
        (module("m"), Opinion(intent=None), Verdict.DISABLE, Reason.DISABLED_BY_DEFAULT, False),
        (module("m"), Opinion(intent=False), Verdict.FORBID, Reason.DYNAMICALLY_DISABLED, True),
        (node("a"), Opinion(intent=False), Verdict.FORBID, Reason.DYNAMICALLY_DISABLED, True),
        (module("m", "gone"), Opinion(intent=True), Verdict.FORBID, Reason.DEPENDENCY_NOT_ENABLED, False),
        (module("m", "gone"), Opinion(intent=False), Verdict.FORBID, Reason.DYNAMICALLY_DISABLED, True),
        (node("a", platform="*"), Opinion(intent=False), Verdict.FORBID, Reason.DYNAMICALLY_DISABLED, True),
        (module("m"), Opinion(True, ScriptVote(enabled=True)), Verdict.ENABLE, Reason.DYNAMICALLY_ENABLED, False),
        (module("m"), Opinion(True, ScriptVote(enabled=None)), Verdict.ENABLE, Reason.DYNAMICALLY_ENABLED, False),
        (module("m"), Opinion(None, ScriptVote(enabled=True)), Verdict.DISABLE, Reason.DISABLED_BY_DEFAULT, False),
        (module("m"), Opinion(True, ScriptVote(enabled=False)), Verdict.FORBID, Reason.DISABLED_BY_SCRIPT, True),
        (module("m"), Opinion(False, ScriptVote(enabled=False)), Verdict.FORBID, Reason.DYNAMICALLY_DISABLED, True),
        (
            module("m", "gone"),
            Opinion(True, ScriptVote(enabled=False)),
            Verdict.FORBID,
            Reason.DEPENDENCY_NOT_ENABLED,
            False,
        ),
        (module("m"), Opinion(True, ScriptVote(None, error="exit 3")), Verdict.FORBID, Reason.SCRIPT_ERROR, False),
        (module("m"), Opinion(True, ScriptVote(True, error="exit 3")), Verdict.FORBID, Reason.SCRIPT_ERROR, False),
        (module("m", script=True), Opinion(intent=True), Verdict.UNDEFINED, Reason.SCRIPT_PENDING, False),
        (module("m", script=True), Opinion(), Verdict.DISABLE, Reason.DISABLED_BY_DEFAULT, False),
        (module("m", "gone", script=True), Opinion(True), Verdict.FORBID, Reason.DEPENDENCY_NOT_ENABLED, False),
    ],
)
def test_intents_and_votes_of_scripts_are_combined(
    subject: Node, opinion: Opinion, verdict: Verdict, reason: Reason, uninstall: bool
) -> None:
    decision = only(subject, opinion=opinion)
    assert (decision.verdict, decision.reason, decision.uninstall) == (verdict, reason, uninstall)
    assert decision.on is (verdict is Verdict.ENABLE)
    assert decision.pending is (reason is Reason.SCRIPT_PENDING)


def test_reasons_and_errors_of_scripts_are_quoted() -> None:
    no = only(node("a"), opinion=Opinion(vote=ScriptVote(enabled=False, reason="needs a GPU")))
    assert no.message == "needs a GPU"
    assert (
        only(node("a"), opinion=Opinion(vote=ScriptVote(enabled=False))).message
        == "the package's enabled script disabled it without a reason"
    )
    failed = only(node("a"), opinion=Opinion(vote=ScriptVote(None, error="exit code 3")))
    assert failed.message == "the package's enabled script gave no answer: exit code 3"


@pytest.mark.parametrize(
    ("subject", "bootstrapped", "reason"),
    [
        (node("app"), True, Reason.ENABLED_BY_DEFAULT),
        (node("app"), False, Reason.BOOTSTRAP_UNMET),
        (node("critical", order=998), False, Reason.ENABLED_BY_DEFAULT),
        (node("later", order=1000), False, Reason.ENABLED_BY_DEFAULT),
        (node("app", "gone"), False, Reason.BOOTSTRAP_UNMET),
        (node("app", platform="*"), False, Reason.VERSION_LOOKUP_FAILED),
        (module("mod"), False, Reason.BOOTSTRAP_UNMET),
    ],
)
def test_only_packages_with_an_order_run_before_the_bootstrap(
    subject: Node, bootstrapped: bool, reason: Reason
) -> None:
    decision = only(subject, facts=Facts(bootstrapped=bootstrapped))
    assert decision.reason is reason
    assert decision.message != "the bootstrap of the cluster is not finished yet" or reason is Reason.BOOTSTRAP_UNMET


def test_an_unfinished_bootstrap_is_reported() -> None:
    decision = only(node("app"), facts=Facts(bootstrapped=False))
    assert decision == Decision(
        Verdict.FORBID, Reason.BOOTSTRAP_UNMET, "the bootstrap of the cluster is not finished yet"
    )


BUNDLED = module("mod", bundles=[("ee", "Default"), ("ce", "Minimal")])


@pytest.mark.parametrize(
    ("subject", "facts", "intent", "reason"),
    [
        (BUNDLED, Facts(), None, Reason.DISABLED_BY_DEFAULT),
        (BUNDLED, Facts(edition="ee"), None, Reason.DISABLED_BY_DEFAULT),
        (BUNDLED, Facts(edition="ee", bundle="Default"), None, Reason.ENABLED_IN_BUNDLE),
        (BUNDLED, Facts(edition="ce", bundle="Default"), None, Reason.DISABLED_BY_DEFAULT),
        (BUNDLED, Facts(edition="ce", bundle="Minimal"), None, Reason.ENABLED_IN_BUNDLE),
        (BUNDLED, Facts(bundle="Default"), None, Reason.DISABLED_BY_DEFAULT),
        (BUNDLED, Facts(edition="ee", bundle="Default"), True, Reason.DYNAMICALLY_ENABLED),
        (BUNDLED, Facts(edition="ee", bundle="Default"), False, Reason.DYNAMICALLY_DISABLED),
        (module("mod", bundles=[("", "")]), Facts(), None, Reason.DISABLED_BY_DEFAULT),
        (module("mod", bundles=[("", "All")]), Facts(bundle="All"), None, Reason.ENABLED_IN_BUNDLE),
        (module("mod", "gone", bundles=[("", "All")]), Facts(bundle="All"), None, Reason.DEPENDENCY_NOT_ENABLED),
        (module("mod", bundles=[("", "All")], script=True), Facts(bundle="All"), None, Reason.SCRIPT_PENDING),
        (node("app", bundles=[("", "All")]), Facts(bundle="All"), None, Reason.ENABLED_BY_DEFAULT),
    ],
)
def test_the_bundle_of_the_platform_enables_a_module(
    subject: Node, facts: Facts, intent: bool | None, reason: Reason
) -> None:
    decision = only(subject, facts=facts, opinion=Opinion(intent))
    assert decision.reason is reason
    assert decision.on is (reason in {Reason.ENABLED_IN_BUNDLE, Reason.DYNAMICALLY_ENABLED, Reason.ENABLED_BY_DEFAULT})


def test_messages_do_not_depend_on_the_order_of_requirements() -> None:
    """The peer that spec/runtime describes iterates over a map. So if several requirements are unmet, it reports a random one."""
    needs = ["zeta >=2", "alpha", "mid >=3"]
    members = ["nfs", "ceph >=2"]
    there = node("zeta"), node("ceph"), module("alpha")
    told = {
        (only(node("app", *order), *others).message, only(node("app", any_of=[group("g", *any_of)]), *others).message)
        for order in (needs, needs[::-1])
        for any_of in (members, members[::-1])
        for others in (there, there[::-1])
    }
    ((unmet, none),) = told
    assert unmet.split("; ") == [
        "dependency alpha is not enabled",
        "dependency mid (>=3) is not installed",
        "dependency zeta (>=2) is not met by version 1.0.0",
    ]
    assert none == "app needs one package of the group 'g': ceph (>=2) has version 1.0.0; nfs is not installed"
