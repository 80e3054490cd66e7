"""Rules, one by one, and who is on when packages speak about each other."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.nodes import group, module, node
from tests.runtime.test_scheduler_graph import graphs
from wharfinger.packages.requirements import DependencyGroup
from wharfinger.runtime.gates import Decision, Facts, Opinion, Reason, ScriptVote, decide, unmet_gate
from wharfinger.runtime.scheduler_graph import Node, Verdict, topology

FACTS = Facts("v1.31.4+k3s1", "1.70.2")


def decisions(*nodes: Node, facts: Facts = FACTS, opinions: dict[str, Opinion] | None = None) -> dict[str, Decision]:
    by_name = {each.name: each for each in nodes}
    return decide(by_name, topology(by_name), facts, opinions or {})


def only(subject: Node, *others: Node, facts: Facts = FACTS, opinion: Opinion | None = None) -> Decision:
    return decisions(subject, *others, facts=facts, opinions={subject.name: opinion or Opinion()})[subject.name]


def on(*nodes: Node, opinions: dict[str, Opinion] | None = None) -> set[str]:
    return {name for name, decision in decisions(*nodes, opinions=opinions).items() if decision.on}


def test_floors() -> None:
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
            Reason.KUBERNETES,
            "app needs Kubernetes >=1.32, and the current one is v1.31.4+k3s1",
        ),
        (
            node("app", kubernetes=">=1.32"),
            Facts("", "1"),
            Reason.VERSION_LOOKUP_FAILED,
            "app needs Kubernetes >=1.32, and its version is not known",
        ),
        (
            node("app", kubernetes=">=1.32"),
            Facts("new", "1"),
            Reason.VERSION_LOOKUP_FAILED,
            (
                "app needs Kubernetes >=1.32, and the current one is not understood: 'new' is not a version;"
                " write one like 1.2.3 or 1.2.3-rc.1"
            ),
        ),
        (node("app", platform="^1.70"), FACTS, None, ""),
        (
            node("app", platform="<1.70"),
            FACTS,
            Reason.PLATFORM,
            "app needs the platform <1.70, and the current one is 1.70.2",
        ),
        (
            node("app", platform=">=1", kubernetes="*"),
            Facts("1.30", ""),
            Reason.VERSION_LOOKUP_FAILED,
            "app needs the platform >=1, and its version is not known",
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
        (node("app", "db"), [], Reason.DEPENDENCY_NOT_ENABLED, "dependency db is not enabled"),
        (node("app", "db >=1"), [module("db")], Reason.DEPENDENCY_NOT_ENABLED, "dependency db (>=1) is not enabled"),
        (
            node("app", "db >=2"),
            [node("db", version="1.9.9")],
            Reason.DEPENDENCY_VERSION,
            "dependency db (>=2) is not met by version 1.9.9",
        ),
        (node("app", "db >=1.2.0"), [node("db", version="v1.2.0-rc1+x")], None, ""),
        (node("app", "db >=1"), [node("db", version="latest")], Reason.DEPENDENCY_VERSION, "by version latest"),
        (node("app", "db"), [node("db", version="latest")], None, ""),
        (node("app", optional=["db >=2"]), [], None, ""),
        (node("app", optional=["db >=2"]), [module("db")], None, ""),
        (
            node("app", optional=["db >=2"]),
            [node("db")],
            Reason.DEPENDENCY_VERSION,
            "dependency db (>=2) is not met by version 1.0.0",
        ),
        (
            node("app", "z", "b", optional=["c >=9"]),
            [node("c")],
            Reason.DEPENDENCY_NOT_ENABLED,
            "dependency b is not enabled; dependency c (>=9) is not met by version 1.0.0; dependency z is not enabled",
        ),
        (
            node("app", *"abcdefgh"),
            [],
            Reason.DEPENDENCY_NOT_ENABLED,
            "dependency d is not enabled; dependency e is not enabled; and 3 more",
        ),
    ],
)
def test_dependencies(needs: Node, there: list[Node], reason: Reason | None, message: str) -> None:
    decision = only(needs, *there)
    if reason is None:
        assert decision.on
    else:
        assert (decision.verdict, decision.reason) == (Verdict.FORBID, reason)
        assert decision.message.endswith(message)


@pytest.mark.parametrize(
    ("groups", "there", "message"),
    [
        ([group("storage", "ceph", "nfs")], [node("nfs")], None),
        ([group("storage", "ceph >=2")], [node("ceph", version="latest")], "ceph (>=2), latest"),
        (
            [group("storage", "nfs", "ceph >=2")],
            [node("ceph")],
            "app needs one of 'storage': ceph (>=2), 1.0.0; nfs, not enabled",
        ),
        ([group("storage", "nfs")], [module("nfs")], "app needs one of 'storage': nfs, not enabled"),
        ([group("one", "a"), group("two", "b")], [node("a")], "app needs one of 'two': b, not enabled"),
        ([group("one", "a"), group("two", "b")], [node("a"), node("b")], None),
        ([group("self", "app")], [], "app needs one of 'self': app, not enabled"),
    ],
)
def test_any_of(groups: list[DependencyGroup], there: list[Node], message: str | None) -> None:
    decision = only(node("app", any_of=groups), *there)
    if message is None:
        assert decision.on
    else:
        assert (decision.verdict, decision.reason) == (Verdict.FORBID, Reason.ANY_OF)
        assert decision.message.endswith(message)


@pytest.mark.parametrize(
    ("groups", "there", "message"),
    [
        ([group("rivals", "haproxy")], [], None),
        ([group("rivals", "haproxy")], [module("haproxy")], None),
        (
            [group("rivals", "haproxy")],
            [node("haproxy")],
            "app excludes 'rivals': haproxy, and version 1.0.0 is enabled",
        ),
        ([group("rivals", "haproxy >=2")], [node("haproxy")], None),
        (
            [group("rivals", "haproxy <2")],
            [node("haproxy")],
            "app excludes 'rivals': haproxy (<2), and version 1.0.0 is enabled",
        ),
        (
            [group("rivals", "haproxy <2")],
            [node("haproxy", version="latest")],
            "app excludes 'rivals': haproxy (<2), and version latest is enabled",
        ),
        (
            [group("one", "gone"), group("two", "z", "b")],
            [node("z"), node("b")],
            "app excludes 'two': b, and version 1.0.0 is enabled",
        ),
        ([group("self", "app")], [], None),
    ],
)
def test_none_of(groups: list[DependencyGroup], there: list[Node], message: str | None) -> None:
    decision = only(node("app", none_of=groups), *there)
    assert decision == (
        Decision(Verdict.ENABLE, Reason.ENABLED_BY_DEFAULT, "")
        if message is None
        else Decision(Verdict.FORBID, Reason.NONE_OF, message)
    )


@pytest.mark.parametrize(
    ("subject", "opinion", "verdict", "reason", "uninstall"),
    [
        (module("m"), Opinion(intent=True), Verdict.ENABLE, Reason.DYNAMICALLY_ENABLED, False),
        (module("m"), Opinion(intent=None), Verdict.DISABLE, Reason.DISABLED_BY_DEFAULT, False),
        (module("m"), Opinion(intent=False), Verdict.FORBID, Reason.DYNAMICALLY_DISABLED, True),
        (node("a"), Opinion(intent=False), Verdict.FORBID, Reason.DYNAMICALLY_DISABLED, True),
        (module("m", "gone"), Opinion(intent=True), Verdict.FORBID, Reason.DEPENDENCY_NOT_ENABLED, False),
        (module("m", "gone"), Opinion(intent=False), Verdict.FORBID, Reason.DEPENDENCY_NOT_ENABLED, True),
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
def test_intent_and_script(subject: Node, opinion: Opinion, verdict: Verdict, reason: Reason, uninstall: bool) -> None:
    decision = only(subject, opinion=opinion)
    assert (decision.verdict, decision.reason, decision.uninstall) == (verdict, reason, uninstall)
    assert decision.on is (verdict is Verdict.ENABLE)
    assert decision.pending is (reason is Reason.SCRIPT_PENDING)


def test_scripts_are_quoted() -> None:
    no = only(node("a"), opinion=Opinion(vote=ScriptVote(enabled=False, reason="needs a GPU")))
    assert no.message == "needs a GPU"
    assert only(node("a"), opinion=Opinion(vote=ScriptVote(enabled=False))).message == "its enabled script says no"
    failed = only(node("a"), opinion=Opinion(vote=ScriptVote(None, error="exit code 3")))
    assert failed.message == "its enabled script failed: exit code 3"


def test_a_dependency_that_is_pending_is_not_enabled_yet() -> None:
    assert only(node("app", "db"), node("db", script=True)).reason is Reason.DEPENDENCY_NOT_ENABLED


# What packages say about each other


def test_off_spreads() -> None:
    chain = (node("a"), node("b", "a"), node("c", "b"), node("d", optional=["b"]))
    assert on(*chain) == {"a", "b", "c", "d"}
    assert on(*chain, opinions={"a": Opinion(intent=False)}) == {"d"}


def test_of_two_that_exclude_each_other_one_yields_whatever_came_first() -> None:
    a, b = node("a", none_of=[group("g", "b")]), node("b", none_of=[group("g", "a")])
    assert on(a, b) == on(b, a) == {"b"}
    assert on(a, b, opinions={"b": Opinion(intent=False)}) == {"a"}


def test_who_excludes_what_builds_on_it_wins_and_nothing_swings() -> None:
    a, b = node("a", none_of=[group("g", "b <2")]), node("b", "a")
    assert on(a, b) == {"a"}
    assert decisions(a, b)["b"] == Decision(
        Verdict.FORBID, Reason.NONE_OF, "a is enabled and excludes 'g', and with it b 1.0.0"
    )
    assert on(a, node("b", "a", version="2.0.0")) == {"a", "b"}
    assert on(a, node("b", "a", version="latest")) == {"a"}


def test_a_late_any_of_member_counts_once_it_is_on_by_something_else() -> None:
    m, n = node("m", any_of=[group("g", "n", "k")]), node("n", any_of=[group("g", "m")])
    assert on(m, n) == set()
    assert on(m, n, node("k")) == {"m", "n", "k"}
    a, b = node("a", any_of=[group("g", "b")]), node("b", any_of=[group("g", "a", "k")])
    assert on(a, b, node("k")) == {"a", "b", "k"}
    assert on(a, b) == set()


def test_a_paradox_is_settled_and_settled_the_same_way() -> None:
    """M needs x, x needs n, n excludes m: m is on if and only if it is not. X never counts for m then."""
    m, x, n = node("m", any_of=[group("g", "x")]), node("x", "n", optional=["m"]), node("n", none_of=[group("g", "m")])
    assert topology({each.name: each for each in (m, x, n)}).order == ("m", "n", "x")
    assert on(m, x, n) == on(n, x, m) == {"n", "x"}
    assert on(m, x, n, node("y", any_of=[group("g", "m", "x")])) == {"n", "x", "y"}
    m = node("m", any_of=[group("g", "x", "k")])
    assert on(m, x, n, node("k")) == {"m", "k"}


@given(graphs(), st.sets(st.sampled_from("abcdef"), max_size=3), st.randoms(use_true_random=False))
def test_decisions_hold_together_however_the_nodes_arrived(
    nodes: list[Node], unwanted: set[str], shuffler: Random
) -> None:
    opinions = {name: Opinion(intent=False) for name in unwanted}
    expected = decisions(*nodes, opinions=opinions)
    shuffled = list(nodes)
    shuffler.shuffle(shuffled)
    assert decisions(*shuffled, opinions=opinions) == expected
    enabled = {name for name, decision in expected.items() if decision.on}
    assert not enabled & unwanted
    for each in nodes:
        if each.name in enabled:
            wanted = each.requirements
            assert {dependency.name for dependency in wanted.mandatory} <= enabled
            assert all(enabled & {member.name for member in one.members} for one in wanted.any_of)
            excluded = {member.name for one in wanted.none_of for member in one.members} - {each.name}
            assert not enabled & excluded
        elif each.name not in unwanted:
            assert expected[each.name].reason in {Reason.DEPENDENCY_NOT_ENABLED, Reason.ANY_OF, Reason.NONE_OF}


def test_admission_looks_at_requirements_only() -> None:
    assert unmet_gate(module("m"), FACTS, {}) is None
    assert unmet_gate(module("m", "db"), FACTS, {"db": "1.0.0"}) is None
    refused = unmet_gate(module("m", "db"), FACTS, {})
    assert refused is not None
    assert (refused.reason, refused.message) == (Reason.DEPENDENCY_NOT_ENABLED, "dependency db is not enabled")
    assert unmet_gate(node("a", none_of=[group("g", "a")]), FACTS, {"a": "1.0.0"}) is None
