"""Conditions in statuses. The times of a condition stay the same until the condition changes."""

from datetime import UTC, datetime, timedelta
from typing import Final

from wharfinger.control_plane.controllers.framework.conditions import Condition, conditions
from wharfinger.formats.json.value import JsonObject

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
THEN: Final = NOW + timedelta(hours=1)
STARTED: Final = "2026-01-01T00:00:00Z"
LATER: Final = "2026-01-01T01:00:00Z"


def after(*said: Condition, updated: str = "") -> JsonObject:
    return {"status": {"conditions": conditions({}, said, NOW, updated=updated)}}


def test_a_new_condition_gets_transition_times() -> None:
    assert conditions({}, [Condition("A", "True", "R", "m")], NOW) == [
        {"type": "A", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": STARTED}
    ]
    assert conditions({}, [Condition("A", "True")], NOW, updated="lastUpdateTime", probed=True) == [
        {
            "type": "A",
            "status": "True",
            "lastTransitionTime": STARTED,
            "lastUpdateTime": STARTED,
            "lastProbeTime": STARTED,
        }
    ]


def test_an_unchanged_condition_keeps_its_times() -> None:
    old = after(Condition("A", "True", "R", "m"), updated="lastUpdateTime")
    assert {"conditions": conditions(old, [Condition("A", "True", "R", "m")], THEN, updated="lastUpdateTime")} == old[
        "status"
    ]


def test_a_changed_reason_is_an_update_without_a_transition() -> None:
    old = after(Condition("A", "True", "R"), updated="lastUpdateTime")
    assert conditions(old, [Condition("A", "True", "S")], THEN, updated="lastUpdateTime") == [
        {"type": "A", "status": "True", "reason": "S", "lastTransitionTime": STARTED, "lastUpdateTime": LATER}
    ]


def test_a_changed_status_is_a_transition_of_this_condition_only() -> None:
    old = after(Condition("A", "True"), Condition("B", "True"))
    assert conditions(old, [Condition("A", "False")], THEN) == [
        {"type": "B", "status": "True", "lastTransitionTime": STARTED},
        {"type": "A", "status": "False", "lastTransitionTime": LATER},
    ]
