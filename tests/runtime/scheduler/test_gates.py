"""Decisions about packages that refer to each other, the admission of packages, and the votes that are shown. Single rules are
tested in test_rules.py.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.support.deciding import FACTS, decisions, on, only
from tests.runtime.support.nodes import graphs, group, module, node, ordered
from tests.scale import scaled
from wharfinger.runtime.scheduler import rules
from wharfinger.runtime.scheduler.gates import Decision, decide, decide_affected, votes_of
from wharfinger.runtime.scheduler.graph import Node, Verdict, topology
from wharfinger.runtime.scheduler.rules import Facts, Opinion, ScriptVote
from wharfinger.runtime.status.reasons import Reason


def test_a_dependency_that_is_pending_is_not_enabled_yet() -> None:
    assert only(node("app", "db"), node("db", script=True)).reason is Reason.DEPENDENCY_NOT_ENABLED


# References between packages


def test_a_disabled_package_disables_its_dependents() -> None:
    chain = (node("a"), node("b", "a"), node("c", "b"), node("d", optional=["b"]))
    assert on(*chain) == {"a", "b", "c", "d"}
    assert on(*chain, opinions={"a": Opinion(intent=False)}) == {"d"}


def test_of_two_mutually_exclusive_packages_one_is_on_in_any_order() -> None:
    a, b = node("a", none_of=[group("g", "b")]), node("b", none_of=[group("g", "a")])
    assert on(a, b) == on(b, a) == {"b"}
    assert on(a, b, opinions={"b": Opinion(intent=False)}) == {"a"}


def test_a_package_that_excludes_its_dependent_is_stably_on() -> None:
    a, b = node("a", none_of=[group("g", "b <2")]), node("b", "a")
    assert on(a, b) == {"a"}
    assert decisions(a, b)["b"] == Decision(
        Verdict.FORBID, Reason.NONE_OF_UNMET, "a is on, and excludes the group 'g', which contains b 1.0.0"
    )
    assert on(a, node("b", "a", version="2.0.0")) == {"a", "b"}
    assert on(a, node("b", "a", version="latest")) == {"a"}


def test_a_late_any_of_member_counts_once_another_reason_enables_it() -> None:
    m, n = node("m", any_of=[group("g", "n", "k")]), node("n", any_of=[group("g", "m")])
    assert on(m, n) == set()
    assert on(m, n, node("k")) == {"m", "n", "k"}
    a, b = node("a", any_of=[group("g", "b")]), node("b", any_of=[group("g", "a", "k")])
    assert on(a, b, node("k")) == {"a", "b", "k"}
    assert on(a, b) == set()


def test_a_contradictory_cycle_is_decided_in_a_fixed_way() -> None:
    """Package m needs x, x needs n, and n excludes m. If m were on, n would have to be off, and then x and m, too. So m stays
    off, although x is on.
    """
    m, x, n = node("m", any_of=[group("g", "x")]), node("x", "n", optional=["m"]), node("n", none_of=[group("g", "m")])
    assert ordered(m, x, n) == ("m", "n", "x")
    assert on(m, x, n) == on(n, x, m) == {"n", "x"}
    assert on(m, x, n, node("y", any_of=[group("g", "m", "x")])) == {"n", "x", "y"}
    m = node("m", any_of=[group("g", "x", "k")])
    assert on(m, x, n, node("k")) == {"m", "k"}


@given(graphs(), st.sets(st.sampled_from("abcdef"), max_size=3), st.randoms(use_true_random=False))
def test_decisions_are_consistent_for_any_order_of_nodes(
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
            assert expected[each.name].reason in {
                Reason.DEPENDENCY_NOT_ENABLED,
                Reason.ANY_OF_UNMET,
                Reason.NONE_OF_UNMET,
            }


def plain_decisions(nodes: dict[str, Node], opinions: dict[str, Opinion]) -> dict[str, Decision]:
    """Return the decisions of a simple algorithm. It decides a whole knot several times, each time with the results of the
    previous pass, until nothing changes.
    """
    order = topology(nodes)
    decided: dict[str, Decision] = {}

    def judge(name: str, seen: set[str], late: dict[str, str]) -> None:
        enabled = {each: nodes[each].version for each in seen if decided[each].on}
        knot = order.knots.get(name)
        refusers = tuple(nodes[each] for each in (knot.refused_by.get(name, ()) if knot else ()) if decided[each].on)
        opinion = opinions.get(name, Opinion())
        cast = [*rules.votes(nodes[name], FACTS, rules.Others(enabled, nodes, late, refusers), opinion)]
        against = [vote for vote in cast if vote.verdict is Verdict.FORBID]
        against.sort(key=lambda vote: vote.reason is not Reason.DYNAMICALLY_DISABLED)
        counts = next(iter(against), cast[-1])
        decided[name] = Decision(counts.verdict, counts.reason, counts.message, opinion.intent is False)

    seen: set[str] = set()
    for name in order.sorted(nodes, nodes):
        members = order.knots[name].members if name in order.knots else (name,)
        if name != members[-1]:
            continue  # a knot is judged as a whole when its last member is reached
        assumed: set[str] = set()
        refuted: set[str] = set()
        while True:
            for at, each in enumerate(members):
                judge(each, seen | {*members[:at]}, {one: nodes[one].version for one in assumed})
            late = order.knots[name].late if name in order.knots else frozenset[str]()
            on = {each for each in late if decided[each].on}
            refuted |= assumed - on
            if (assumed | on) - refuted == assumed:
                break
            assumed = (assumed | on) - refuted
        seen.update(members)
    return decided


@pytest.mark.slow
@given(graphs(), st.sets(st.sampled_from("abcdef"), max_size=3))
@settings(max_examples=scaled(1_000, 100), deadline=None)
def test_decisions_equal_those_of_repeated_full_evaluation(nodes: list[Node], unwanted: set[str]) -> None:
    opinions = {name: Opinion(intent=False) for name in unwanted}
    expected = plain_decisions({each.name: each for each in nodes}, opinions)
    assert decisions(*nodes, opinions=opinions) == expected


def test_a_long_chain_of_late_members_is_judged_in_linear_time() -> None:
    """Each package of the chain names the next one in an any-of group, and the next one depends on it optionally. So the next
    package is decided later. The work must be linear in the length of the chain.
    """
    count = 300
    chain = [
        node(
            f"n{at:03}",
            optional=[f"n{at - 1:03}"] if at else [],
            any_of=[group("g", f"n{at + 1:03}")] if at < count - 1 else [],
        )
        for at in range(count)
    ]
    by_name = {each.name: each for each in chain}
    order = topology(by_name)
    assert len(order.knots["n000"].late) == count - 1
    asked: list[str] = []

    def opinion(name: str) -> Opinion:
        asked.append(name)
        return Opinion()

    names = order.sorted(by_name, by_name)
    decided = decide_affected(names, by_name, order, FACTS, opinion, lambda _: None)
    assert all(decision.on for decision in decided.values())
    assert len(asked) < 5 * count


# Votes and partial decisions


def votes(subject: Node, *others: Node, facts: Facts = FACTS, opinion: Opinion | None = None) -> list[Reason]:
    nodes = {each.name: each for each in (subject, *others)}
    opinions = {subject.name: opinion or Opinion()}
    decided = decide(nodes, topology(nodes), facts, opinions)
    found = votes_of(
        subject.name, nodes, topology(nodes), facts, lambda name: opinions.get(name, Opinion()), decided.get
    )
    return [vote.reason for vote in found]


def test_votes_of_all_rules_are_listed_in_order() -> None:
    subject = module("m", "gone", bundles=[("", "All")], script=True)
    assert votes(module("m")) == [Reason.DISABLED_BY_DEFAULT]
    facts = Facts(bootstrapped=False, bundle="All")
    assert votes(subject, facts=facts, opinion=Opinion(intent=True)) == [
        Reason.DISABLED_BY_DEFAULT,
        Reason.BOOTSTRAP_UNMET,
        Reason.DEPENDENCY_NOT_ENABLED,
        Reason.ENABLED_IN_BUNDLE,
        Reason.DYNAMICALLY_ENABLED,
        Reason.SCRIPT_PENDING,
    ]
    everything = node(
        "a",
        "gone",
        kubernetes=">=2",
        platform=">=2",
        any_of=[group("g", "x")],
        none_of=[group("h", "y"), group("i", "y")],
    )
    assert votes(everything, node("y"), opinion=Opinion(False, ScriptVote(enabled=False))) == [
        Reason.ENABLED_BY_DEFAULT,
        Reason.KUBERNETES_UNMET,
        Reason.PLATFORM_UNMET,
        Reason.DEPENDENCY_NOT_ENABLED,
        Reason.ANY_OF_UNMET,
        Reason.NONE_OF_UNMET,
        Reason.NONE_OF_UNMET,
        Reason.DYNAMICALLY_DISABLED,
        Reason.DISABLED_BY_SCRIPT,
    ]


def test_votes_about_a_knot_are_those_of_its_decision() -> None:
    """Package m needs x, and x is on. But m stays off: if m were on, n would be off, and so would x, because x needs n."""
    m, x, n = node("m", any_of=[group("g", "x")]), node("x", "n", optional=["m"]), node("n", none_of=[group("g", "m")])
    assert on(m, x, n) == {"n", "x"}
    assert votes(m, x, n) == [Reason.ENABLED_BY_DEFAULT, Reason.ANY_OF_UNMET]
    a, b = node("a", none_of=[group("g", "b")]), node("b", none_of=[group("g", "a")])
    assert votes(a, b) == [
        Reason.ENABLED_BY_DEFAULT,
        Reason.NONE_OF_UNMET,
        Reason.NONE_OF_UNMET,
    ]  # one vote is about a, and one about b
    assert votes(b, a) == [Reason.ENABLED_BY_DEFAULT]


def test_partial_decisions_use_standing_decisions_of_other_packages() -> None:
    nodes = {each.name: each for each in (node("db"), node("app", "db"), node("top", "app"))}
    order, off = topology(nodes), Decision(Verdict.DISABLE, Reason.DISABLED_BY_DEFAULT, "")
    asked: list[str] = []

    def standing(name: str) -> Decision | None:
        asked.append(name)
        return off

    decided = decide_affected(("app", "top"), nodes, order, FACTS, lambda _: Opinion(), standing)
    assert [decision.reason for decision in decided.values()] == [Reason.DEPENDENCY_NOT_ENABLED] * 2
    assert asked == ["db"]
    undecided = decide_affected(("app",), nodes, order, FACTS, lambda _: Opinion(), lambda _: None)
    assert not undecided["app"].on


def test_a_knot_is_always_decided_as_a_whole() -> None:
    a, b = node("a", any_of=[group("g", "b", "k")]), node("b", any_of=[group("g", "a")])
    nodes = {each.name: each for each in (a, b, node("k"))}
    order = topology(nodes)
    assert order.affected_by(nodes, ["a"]) == order.affected_by(nodes, ["b"]) == ("b", "a")
    stale = decide(nodes, order, FACTS, {"k": Opinion(intent=False)})
    assert not stale["a"].on
    standing = {**stale, **decide_affected(("k",), nodes, order, FACTS, lambda _: Opinion(), stale.get)}
    decided = decide_affected(("b", "a"), nodes, order, FACTS, lambda _: Opinion(), standing.get)
    assert {name for name, decision in decided.items() if decision.on} == {"a", "b"}
