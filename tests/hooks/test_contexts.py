"""Binding contexts against the examples of the contract: equal documents, so also nothing more than they have."""

from dataclasses import replace

import pytest

from tests.hooks.configs import PODS
from wharfinger.formats.json_value import JsonObject
from wharfinger.hooks.config import ScheduleBinding, WatchVerb
from wharfinger.hooks.contexts import combined, event, helm_binding, on_startup, schedule, synchronization

TICK = ScheduleBinding(
    "every 10 sec", "*/10 * * * * *", allow_failure=False, queue="main", group="", include_snapshots_from=()
)
NAMED = replace(PODS, name="pods")
POD: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "d"}}
ITEM: JsonObject = {"object": POD, "filterResult": {"n": "a", "p": "Running"}}


def group(name: str, binding: str = "x") -> JsonObject:
    return {"binding": binding, "type": "Group", "groupName": name, "snapshots": {}}


def test_on_startup_is_nothing_but_its_name() -> None:
    assert on_startup() == {"binding": "onStartup"}


def test_a_schedule_and_its_snapshots() -> None:
    assert schedule(TICK, {}) == {"binding": "every 10 sec", "type": "Schedule"}
    binding = replace(TICK, include_snapshots_from=("pods", "none"))
    assert schedule(binding, {"pods": [{"object": POD}], "others": [ITEM]}) == {
        "binding": "every 10 sec",
        "type": "Schedule",
        "snapshots": {"pods": [{"object": POD}], "none": []},
    }


def test_a_synchronization_always_has_its_objects() -> None:
    assert synchronization(NAMED, [ITEM], {}) == {"binding": "pods", "type": "Synchronization", "objects": [ITEM]}
    assert synchronization(replace(NAMED, include_snapshots_from=("pods",)), (), {"pods": [ITEM]}) == {
        "binding": "pods",
        "type": "Synchronization",
        "objects": [],
        "snapshots": {"pods": [ITEM]},
    }


@pytest.mark.parametrize("verb", WatchVerb)
def test_an_event_has_the_fields_of_its_item(verb: WatchVerb) -> None:
    assert event(NAMED, verb, ITEM, {}) == {
        "binding": "pods",
        "type": "Event",
        "watchEvent": verb.value,
        "object": POD,
        "filterResult": {"n": "a", "p": "Running"},
    }
    assert event(NAMED, verb, {"filterResult": None}, {}) == {
        "binding": "pods",
        "type": "Event",
        "watchEvent": verb.value,
        "filterResult": None,
    }


def test_an_event_with_snapshots() -> None:
    binding = replace(NAMED, include_snapshots_from=("pods",))
    assert event(binding, WatchVerb.ADDED, {"object": POD}, {"pods": []}) == {
        "binding": "pods",
        "type": "Event",
        "watchEvent": "Added",
        "object": POD,
        "snapshots": {"pods": []},
    }


def test_a_group_tells_its_snapshots_and_nothing_else() -> None:
    binding = replace(NAMED, name="secret", group="main", include_snapshots_from=("deployment", "secret"))
    expected: JsonObject = {
        "binding": "secret",
        "type": "Group",
        "groupName": "main",
        "snapshots": {"deployment": [{"object": {}}], "secret": []},
    }
    snapshots: dict[str, list[JsonObject]] = {"deployment": [{"object": {}}], "secret": []}
    assert synchronization(binding, [ITEM], snapshots) == expected
    assert event(binding, WatchVerb.DELETED, ITEM, snapshots) == expected
    ticking = replace(TICK, group="main", include_snapshots_from=("deployment", "secret"))
    assert schedule(ticking, snapshots) == {**expected, "binding": "every 10 sec"}
    assert schedule(replace(TICK, group="lonely"), {}) == group("lonely", "every 10 sec")


def test_helm_bindings_have_all_snapshots_and_no_type() -> None:
    assert helm_binding("beforeHelm", {}) == {"binding": "beforeHelm", "snapshots": {}}
    assert helm_binding("afterDeleteHelm", {"pods": (ITEM,)}) == {
        "binding": "afterDeleteHelm",
        "snapshots": {"pods": [ITEM]},
    }


@pytest.mark.parametrize(
    ("verb", "name"), [(WatchVerb.ADDED, "add"), (WatchVerb.MODIFIED, "update"), (WatchVerb.DELETED, "delete")]
)
def test_version_0_has_its_own_words(verb: WatchVerb, name: str) -> None:
    binding = replace(NAMED, name="monitor pods", legacy=True)
    assert event(binding, verb, ITEM, {}) == {
        "binding": "monitor pods",
        "resourceEvent": name,
        "resourceNamespace": "d",
        "resourceKind": "Pod",
        "resourceName": "a",
    }
    assert schedule(replace(TICK, name="schedule", legacy=True), {}) == {"binding": "schedule"}


def test_of_each_row_of_one_group_the_last_stays() -> None:
    tick = schedule(TICK, {})
    rows = [tick, group("a", "1"), group("a", "2"), tick, group("a", "3"), group("b", "4"), group("b", "5"), tick, tick]
    assert combined(rows) == (tick, group("a", "2"), tick, group("a", "3"), group("b", "5"), tick, tick)
    assert combined([group("a", "1")]) == (group("a", "1"),)
    assert combined([]) == ()
