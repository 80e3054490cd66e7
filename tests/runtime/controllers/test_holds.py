"""The guard of dependents holds changes that would break dependents. The tests check its decisions: because of which dependents a
change is held, for which removals it waits, and that every removal is possible in the end.
"""

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


def test_broken_dependents_are_reported_before_pending_removals() -> None:
    hold = judge("the removal", broken("b", "a"), {"c"})
    assert hold is not None
    assert hold.reason is Reason.WOULD_BREAK_DEPENDENTS
    assert hold.message == "the removal would break a, b (a: a lacks it)"
    assert hold.waits == {"c"}


def test_only_directly_broken_dependents_are_explained() -> None:
    hold = judge("version 2.0.0", broken("b", "a", "c"), (), {"c", "b"})
    assert hold is not None
    assert hold.message == "version 2.0.0 would break a, b, c (b: b lacks it)"


@pytest.mark.parametrize(
    ("waits", "verb"), [({"c"}, "c, which is uninstalled"), ({"d", "c"}, "c, d, which are uninstalled")]
)
def test_a_change_waits_for_pending_removals(waits: set[str], verb: str) -> None:
    hold = judge("version 2.0.0", [], waits)
    assert hold is not None
    assert hold.reason is Reason.WAITING_FOR_DEPENDENTS
    assert hold.message == f"version 2.0.0 waits for {verb} first"


def test_a_change_without_dependents_is_not_held() -> None:
    assert judge("the removal", [], set()) is None


def test_five_of_many_unknown_packages_are_named() -> None:
    hold = judge_unknown("the removal", set("abcdefg"))
    assert "a, b, c, d, e and 2 more are not loaded yet" in hold.message
    assert hold.unknown


def test_needs_of_a_node_are_its_required_packages() -> None:
    group = DependencyGroup("either", "", (Dependency("d", ANY), Dependency("self", ANY)))
    none = DependencyGroup("none", "", (Dependency("e", ANY),))
    wanted = Requirements(None, None, (Dependency("a", ANY),), (Dependency("b", ANY),), (group,), (none,))
    assert needs(Node("self", "1.0.0", wanted)) == {"a", "b", "d"}
    assert needs(None) == frozenset()


@pytest.mark.parametrize(("text", "expected"), [("1.2.3", True), ("v1.2.3", True), ("latest", False), ("", False)])
def test_only_versions_can_be_compared(text: str, expected: bool) -> None:
    assert is_version(text) is expected


@pytest.mark.parametrize(("said", "expected"), [(None, False), ("true", True), ("false", False), ("yes", False)])
def test_only_the_value_true_ignores_dependents(said: str | None, expected: bool) -> None:
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
def test_the_status_tells_whether_a_removal_had_begun(state: str, reason: str, expected: bool) -> None:
    others: JsonObject = {"type": "Managed", "reason": "Removing"}
    status: JsonObject = {"summary": {"state": state}, "conditions": [others, {"type": "Ready", "reason": reason}]}
    assert was_being_removed({"status": status}) is expected
    assert not was_being_removed({})


def test_the_status_tells_whether_a_package_is_installed() -> None:
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
def test_modules_outside_of_the_bundle_are_off_by_default(
    floor: Verdict, bundle: str, bundles: set[tuple[str, str]], expected: bool
) -> None:
    facts = Facts(edition="ee", bundle=bundle)
    node = Node("a", "1.0.0", NOTHING, floor=floor, bundles=frozenset(bundles))
    assert is_off_by_default(node, facts) is expected
    assert not is_off_by_default(None, facts)


NAMES = st.sampled_from("abcdefgh")


@given(st.lists(st.tuples(NAMES, st.frozensets(NAMES, max_size=5)), max_size=30))
def test_at_least_one_held_change_waits_for_no_other_held_one(asked: list[tuple[str, frozenset[str]]]) -> None:
    """A hold is recorded only if it closes no cycle. So at least one held package waits for no other held package, in any order
    of checks.
    """
    waits: dict[str, frozenset[str]] = {}
    for name, going in asked:
        waits[name] = frozenset(each for each in going - {name} if not reaches(waits, each, name))
        assert any(not (each & waits.keys()) for each in waits.values())
