"""The causes in `wharfinger why` that explain the scheduler's decision about a package."""

from dataclasses import replace

import pytest

from tests.runtime.support.explained import (
    NOW,
    SINCE,
    condition,
    depends,
    downloading,
    forbidden,
    known,
    node,
    package,
    pending,
    waiting,
)
from wharfinger.runtime.scheduler_details import GroupSnapshot, LackSnapshot, NodeSnapshot, VoteSnapshot
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.why.causes import Cause, Known
from wharfinger.runtime.why.gate_causes import (
    AGAIN,
    PAUSED,
    RESTING,
    absence_cause,
    again_causes,
    lack_causes,
    refusal_cause,
    vote_causes,
)
from wharfinger.runtime.why.remedies import PAUSE, UNTAKEN, WAIT

REQUIRED = condition(Stage.REQUIREMENTS, "False", "DependencyNotEnabled", "not there")
SHOP = package("shop.web", REQUIRED, state="Pending")
NOT_ENABLED = forbidden("DependencyNotEnabled", "dependency db is not enabled")


def votes(here: Known, judged: NodeSnapshot | None) -> list[Cause]:
    return list(vote_causes(here, SHOP, judged))


def lacks(here: Known, parked: NodeSnapshot) -> list[Cause]:
    return list(lack_causes(here, parked))


def test_a_missing_dependency_leads_to_the_next_cause() -> None:
    shop = node("shop.web", "cache", "db >=1.0", votes=(NOT_ENABLED,))
    assert votes(known(shop, node("cache")), shop) == [Cause("needs db (>=1.0)", "", SINCE, through=("db",))]


def test_each_missing_mandatory_dependency_is_a_cause() -> None:
    shop = node("shop.web", "a", "b", votes=(NOT_ENABLED,))
    shop = replace(shop, dependencies=(*shop.dependencies, depends("c", optional=True)))
    assert [cause.through for cause in votes(known(shop), shop)] == [("a",), ("b",)]


def test_a_disabled_dependency_leads_to_the_next_cause() -> None:
    off = node("db", votes=(forbidden("DynamicallyDisabled"),))
    shop = node("shop.web", "db", votes=(NOT_ENABLED,))
    (cause,) = votes(known(shop, off), shop)
    assert cause.through == ("db",)


def test_an_installed_package_that_cannot_be_on_is_paused() -> None:
    shop = node("shop.web", "db", votes=(NOT_ENABLED,))
    (cause,) = vote_causes(known(shop), replace(SHOP, installed_version="1.0.0"), shop)
    assert cause.message == RESTING


@pytest.mark.parametrize(("version", "optional"), [("1.9.0", False), ("1.9.0", True), ("latest", False)])
def test_an_unsuitable_version_of_a_dependency_is_a_cause(version: str, optional: bool) -> None:
    shop = replace(
        node("shop.web", votes=(forbidden("DependencyVersionMismatch", "x"),)),
        dependencies=(depends("db >=2.0", optional=optional),),
    )
    (cause,) = votes(known(shop, node("db", version=version)), shop)
    assert (cause.state, cause.message) == ("needs db (>=2.0)", f"db has version {version}")
    assert cause.through == ()
    assert "modules.wharfinger.dev db" in cause.remedy


def test_a_vote_about_no_known_dependency_is_quoted() -> None:
    shop = node("shop.web", "db", votes=(NOT_ENABLED,))
    (cause,) = votes(known(shop, node("db")), shop)
    assert cause.message == "DependencyNotEnabled: dependency db is not enabled"
    assert cause.remedy


def test_every_vote_against_a_package_is_a_cause_in_order() -> None:
    against = (
        VoteSnapshot("Disable", "DisabledByDefault", "the package is off by default, and not enabled"),
        forbidden("KubernetesRequirementsUnmet", "k"),
        NOT_ENABLED,
        forbidden("DisabledByScript", "d"),
    )
    db = node("db", "x", votes=against)
    assert [cause.state for cause in votes(known(db), db)] == ["cannot be on", "needs x", "is off", "is off"]
    (last,) = votes(known(db), db)[-1:]
    assert last.message.startswith("DisabledByDefault: ")


def test_an_explicit_disable_hides_the_default() -> None:
    against = (VoteSnapshot("Disable", "DisabledByDefault", "x"), forbidden("DynamicallyDisabled", "d"))
    db = node("db", votes=against)
    assert [cause.message for cause in votes(known(db), db)] == ["DynamicallyDisabled: d"]


def test_an_overruled_vote_is_no_cause() -> None:
    on = (VoteSnapshot("Disable", "DisabledByDefault", ""), VoteSnapshot("Enable", "DynamicallyEnabled", ""))
    shop = replace(node("shop.web", votes=(*on, forbidden("EnabledScriptError", "e"))))
    assert [cause.message for cause in votes(known(shop), shop)] == ["EnabledScriptError: e"]


def test_only_the_deciding_vote_has_the_age_of_the_decision() -> None:
    """The cause for the deciding vote begins at the time of the decision. The causes for all other votes begin at the time of
    the condition, which became False before the decision.
    """
    kubernetes, off = forbidden("KubernetesRequirementsUnmet", "k"), forbidden("DynamicallyDisabled", "d")
    shop = replace(node("shop.web", votes=(kubernetes, off)), since=NOW)
    assert [cause.since for cause in votes(known(shop), shop)] == [NOW, SINCE]
    untold = replace(shop, since=None)
    assert [cause.since for cause in votes(known(untold), untold)] == [SINCE, SINCE]
    writer = replace(node("shop.web", votes=(forbidden("AnyOfDependenciesUnmet", "m"),)), since=NOW)
    assert [cause.since for cause in votes(known(writer), writer)] == [NOW]


def test_a_package_that_is_on_has_no_causes() -> None:
    assert votes(known(node("shop.web")), node("shop.web")) == []


def test_a_node_without_votes_is_explained_by_its_decision() -> None:
    shop = replace(node("shop.web", votes=(forbidden("DisabledByScript", "no"),)), votes=())
    (cause,) = votes(known(shop), shop)
    assert (cause.state, cause.message) == ("is off", "DisabledByScript: no")


CYCLE = condition(Stage.REQUIREMENTS, "False", "DependencyCycle", "dependency cycle through: db, shop.web")


@pytest.mark.parametrize("judged", [None, node("shop.web")], ids=["at birth", "while it is on"])
def test_a_refused_package_is_explained_by_its_condition(judged: NodeSnapshot | None) -> None:
    shop = package("shop.web", CYCLE)
    assert list(vote_causes(known(), shop, judged)) == []
    cause = refusal_cause(known(), shop, judged)
    assert cause is not None
    assert cause.message == "DependencyCycle: dependency cycle through: db, shop.web"
    assert (cause.since, cause.by_hand) == (SINCE, True)
    assert (cause.state == "cannot be on") is (judged is None)
    assert cause.remedy == Reason.DEPENDENCY_CYCLE.tip
    assert refusal_cause(known(), pending("shop.web"), judged) is None


def test_votes_of_rules_are_no_refusal() -> None:
    assert refusal_cause(known(), SHOP, node("shop.web", votes=(NOT_ENABLED,))) is None
    asked = node("shop.web", votes=(VoteSnapshot("Undefined", "EnabledScriptPending", ""),))
    assert refusal_cause(known(), SHOP, asked) is None, "the condition belongs to an earlier decision"
    other = refusal_cause(known(), package("shop.web", condition(Stage.REQUIREMENTS, "False", "SlotLost", "m")), None)
    assert other is not None
    assert other.message == "SlotLost: m"


def test_a_cycle_closed_by_the_resource_has_a_remedy_for_the_resource() -> None:
    here = known(
        node("db", "disk"), node("disk", "shop.web"), node("loop", "loop"), by_resource=("cache", "db", "loop")
    )
    cause = refusal_cause(here, package("shop.web", CYCLE), node("shop.web"))
    assert cause is not None
    assert (
        cause.remedy
        == "edit spec.dependsOn of applications.wharfinger.dev web -n shop: these entries close the cycle: db"
    )


def test_a_disable_by_the_user_is_the_first_cause() -> None:
    against = (forbidden("KubernetesRequirementsUnmet", "k"), forbidden("DynamicallyDisabled", "d"))
    db = replace(node("db", votes=against), reason="DynamicallyDisabled", message="d")
    assert [cause.message for cause in votes(known(db), db)] == [
        "DynamicallyDisabled: d",
        "KubernetesRequirementsUnmet: k",
    ]


def test_a_vote_without_a_message_is_explained() -> None:
    db = node("db", votes=(forbidden("DynamicallyDisabled"),))
    (cause,) = vote_causes(known(db), package("db"), db)
    assert cause.message == "DynamicallyDisabled: spec.enabled is false"


def test_the_remedy_of_a_group_covers_each_member() -> None:
    members = (depends("db"), depends("fits"), depends("old >=2"), depends("shop.cache >=1"), depends("shop.web"))
    store, met = GroupSnapshot("anyOf", "store", members), GroupSnapshot("anyOf", "met", (depends("other"),))
    unmet = forbidden("AnyOfDependenciesUnmet", "shop.web needs one of 'store': m")
    shop = replace(node("shop.web", votes=(unmet,)), groups=(met, store, GroupSnapshot("noneOf", "x", members)))
    (cause,) = votes(known(shop, node("fits"), node("old"), downloading("db")), shop)
    assert cause.remedy == (
        "enable db (`wharfinger why db` says why it is off); "
        "or set spec.packageVersion of modules.wharfinger.dev old to a version that matches >=2; "
        "or create the Application cache in namespace shop in a version that matches >=1; "
        "the daemon then continues automatically"
    )


def test_the_only_group_is_used_if_the_message_names_none() -> None:
    group = GroupSnapshot("anyOf", "store", (depends("db"),))
    shop = replace(node("shop.web", votes=(forbidden("AnyOfDependenciesUnmet", "m"),)), groups=(group,))
    (cause,) = votes(known(shop), shop)
    assert cause.remedy == "create the Module db; the daemon then continues automatically"


def test_dependencies_of_the_resource_have_a_remedy_for_the_resource() -> None:
    shop = node("shop.web", "db >=2.0", "absent", votes=(forbidden("DependencyVersionMismatch", "x"),))
    here = known(shop, node("db"), by_resource=("absent", "db"))
    cause, _ = votes(here, shop)
    edit = "edit spec.dependsOn of applications.wharfinger.dev web -n shop"
    assert (
        cause.remedy
        == f"set spec.packageVersion of modules.wharfinger.dev db to a version that matches >=2.0, or {edit}"
    )
    assert absence_cause(here, "absent", shop).remedy.startswith(f"create the Module absent, or {edit}; ")


# Missing conditions of parked nodes


def test_packages_that_are_waited_for_are_causes() -> None:
    assert lacks(known(), waiting("shop.web", "a", "b")) == [
        Cause("waits for a", "", SINCE, through=("a",)),
        Cause("waits for b", "", SINCE, through=("b",)),
    ]


def test_a_tier_leads_to_all_its_holders() -> None:
    held = [waiting(f"m{number}", "x", order=10) for number in range(7)]
    (cause,) = lacks(known(*held), waiting("shop.web", "order 10"))
    assert (cause.state, cause.message) == (
        "waits for order 10",
        "packages of this order are not done: m0, m1, m2, m3, m4 and 2 more",
    )
    assert cause.through == tuple(f"m{number}" for number in range(7))


@pytest.mark.parametrize("order", ["10", "unknown"])
def test_a_tier_without_holders_needs_no_action(order: str) -> None:
    (cause,) = lacks(known(), waiting("shop.web", f"order {order}"))
    assert (cause.through, cause.remedy, cause.by_hand) == ((), WAIT, False)


@pytest.mark.parametrize(
    ("lack", "line", "remedy"),
    [
        (
            LackSnapshot("vote", "shop.web", "awaited"),
            "waits for its enabled script: the package's enabled script is running",
            WAIT,
        ),
        (LackSnapshot("pause", "", "paused"), f"waits: {PAUSED}", PAUSE),
    ],
    ids=["vote", "pause"],
)
def test_other_missing_conditions_are_explained(lack: LackSnapshot, line: str, remedy: str) -> None:
    (cause,) = lacks(known(), replace(waiting("shop.web"), lacks=(lack,)))
    assert (cause.line, cause.by_hand, cause.remedy) == (line, False, remedy)


def test_a_node_without_missing_conditions_is_explained_by_its_message() -> None:
    parked = replace(waiting("shop.web"), message="waits for db")
    (cause,) = lacks(known(), parked)
    assert (cause.line, cause.by_hand) == ("waits for its turn: waits for db", False)


def test_a_node_that_does_not_wait_has_no_missing_conditions() -> None:
    for state, votes in (("active", ()), ("scheduled", ()), ("idle", (NOT_ENABLED,))):
        assert lacks(known(), node("shop.web", state=state, votes=votes)) == []


def test_causes_of_the_next_run_mention_the_next_run() -> None:
    shop = waiting("shop.web", "a", "order 10")
    assert [cause.message for cause in again_causes(known(), shop)] == [AGAIN, AGAIN]
    held = known(waiting("base", order=10))
    assert [cause.message for cause in again_causes(held, shop)] == [
        AGAIN,
        f"packages of this order are not done: base; {AGAIN}",
    ]
    assert list(again_causes(known(), node("shop.web"))) == []


def test_an_absent_package_is_explained() -> None:
    shop = node("shop.web", "db >=1.0")
    cause = absence_cause(known(), "db", shop)
    assert cause.line == "is not known: the daemon knows no package of that name"
    assert ">=1.0" in cause.remedy
    assert "shop.web" in cause.remedy
    assert cause.remedy.endswith(UNTAKEN)
    assert absence_cause(known(), "db", None).remedy.startswith("create the Module db;")


def test_an_absent_package_is_not_installed_if_all_are_known() -> None:
    cause = absence_cause(known(asks_daemon=False), "db", None)
    assert cause.line == "is not installed: there is no resource of that name"
    assert cause.remedy == "create the Module db; the daemon then continues automatically"
