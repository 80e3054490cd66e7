"""The decisions of the guard: who stands in the way, who goes first, and that somebody always may."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.packages.definition.requirements import Dependency, DependencyGroup, Requirements
from wharfinger.runtime.controllers.holds import (
    is_ignoring,
    is_installed,
    is_off_by_default,
    is_version,
    judge,
    judge_unknown,
    needs,
    reaches,
    was_being_removed,
)
from wharfinger.runtime.resources.resources import IGNORE_DEPENDENTS
from wharfinger.runtime.scheduler.graph import Node, Verdict
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler.scheduler import Broken
from wharfinger.runtime.status.reasons import Reason

ANY = parse_constraint("")
NOTHING = Requirements(None, None, (), (), (), ())


def broken(*names: str) -> list[Broken]:
    return [Broken(name, "DependencyNotEnabled", f"{name} lacks it") for name in names]


def test_who_stays_is_named_before_who_goes() -> None:
    hold = judge("the removal", broken("b", "a"), {"c"})
    assert hold is not None
    assert hold.reason is Reason.WOULD_BREAK_DEPENDENTS
    assert hold.message == "the removal would break a, b (a: a lacks it)"
    assert hold.waits == {"c"}


def test_who_breaks_for_no_other_is_explained() -> None:
    hold = judge("version 2.0.0", broken("b", "a", "c"), (), {"c", "b"})
    assert hold is not None
    assert hold.message == "version 2.0.0 would break a, b, c (b: b lacks it)"


@pytest.mark.parametrize(
    ("waits", "verb"), [({"c"}, "c, which is uninstalled"), ({"d", "c"}, "c, d, which are uninstalled")]
)
def test_who_goes_is_waited_for(waits: set[str], verb: str) -> None:
    hold = judge("version 2.0.0", [], waits)
    assert hold is not None
    assert hold.reason is Reason.WAITING_FOR_DEPENDENTS
    assert hold.message == f"version 2.0.0 waits for {verb} first"


def test_no_one_in_the_way() -> None:
    assert judge("the removal", [], set()) is None


def test_of_many_five_are_named() -> None:
    hold = judge_unknown("the removal", set("abcdefg"))
    assert "a, b, c, d, e and 2 more not loaded yet" in hold.message
    assert hold.unknown


def test_what_a_package_builds_on() -> None:
    group = DependencyGroup("either", "", (Dependency("d", ANY), Dependency("self", ANY)))
    none = DependencyGroup("none", "", (Dependency("e", ANY),))
    wanted = Requirements(None, None, (Dependency("a", ANY),), (Dependency("b", ANY),), (group,), (none,))
    assert needs(Node("self", "1.0.0", wanted)) == {"a", "b", "d"}
    assert needs(None) == frozenset()


@pytest.mark.parametrize(("text", "expected"), [("1.2.3", True), ("v1.2.3", True), ("latest", False), ("", False)])
def test_what_can_be_compared(text: str, expected: bool) -> None:
    assert is_version(text) is expected


@pytest.mark.parametrize(("said", "expected"), [(None, False), ("true", True), ("false", False), ("yes", False)])
def test_a_user_says_it_in_one_word(said: str | None, expected: bool) -> None:
    annotations: JsonObject = {} if said is None else {IGNORE_DEPENDENTS: said}
    assert is_ignoring({"metadata": {"annotations": annotations}}) is expected


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("Removing", "Removing", True),
        ("Removing", "PackageHookFailed", True),
        ("Removing", "WouldBreakDependents", False),
        ("Removing", "WaitingForDependents", False),
        ("Ready", "Ready", False),
    ],
)
def test_what_had_begun_says_its_status(state: str, reason: str, expected: bool) -> None:
    others: JsonObject = {"type": "Managed", "reason": "Removing"}
    status: JsonObject = {"summary": {"state": state}, "conditions": [others, {"type": "Ready", "reason": reason}]}
    assert was_being_removed({"status": status}) is expected
    assert not was_being_removed({})


def test_what_is_installed_says_its_status() -> None:
    assert is_installed({"status": {"currentVersion": {"version": "1.0.0"}}})
    assert not is_installed({"status": {}})


@pytest.mark.parametrize(
    ("floor", "bundle", "bundles", "expected"),
    [
        (Verdict.DISABLE, "Default", {("ee", "Default")}, False),
        (Verdict.DISABLE, "Default", {("ce", "Default"), ("ee", "Minimal")}, True),
        (Verdict.DISABLE, "", {("ee", "Default")}, False),
        (Verdict.ENABLE, "Default", set(), False),
    ],
)
def test_who_is_off_where_no_one_says_so(
    floor: Verdict, bundle: str, bundles: set[tuple[str, str]], expected: bool
) -> None:
    facts = Facts(edition="ee", bundle=bundle)
    node = Node("a", "1.0.0", NOTHING, floor=floor, bundles=frozenset(bundles))
    assert is_off_by_default(node, facts) is expected
    assert not is_off_by_default(None, facts)


NAMES = st.sampled_from("abcdefgh")


@given(st.lists(st.tuples(NAMES, st.frozensets(NAMES, max_size=5)), max_size=30))
def test_another_process_may_always_go(asked: list[tuple[str, frozenset[str]]]) -> None:
    """Edges that close no circle leave one who waits for nobody that waits, in whatever order they are judged."""
    waits: dict[str, frozenset[str]] = {}
    for name, going in asked:
        waits[name] = frozenset(each for each in going - {name} if not reaches(waits, each, name))
        assert any(not (each & waits.keys()) for each in waits.values())
