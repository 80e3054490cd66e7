"""Statuses as text and JSON, and the statuses of several reconcilers for one object."""

from datetime import UTC, datetime, timedelta

import pytest

from wharfinger.cluster.reconciler.status import Kind, Status, Statuses, StatusSet
from wharfinger.formats.json.value import JsonValue, ShapeError

TODAY = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
DONE = Status(Kind.DONE, 3, 90.0)
FAILED = Status(Kind.ERROR, 4, 98.0, "no such kind")
PENDING = Status(Kind.PENDING, 5, 99.5)


def test_a_status_is_formatted_as_text() -> None:
    assert [status.text(100.0) for status in (DONE, FAILED, PENDING, Status(Kind.REFRESHING, 1, 101.0))] == [
        "Done (10.0s ago)",
        "Error: no such kind (2.0s ago)",
        "Pending (0.5s ago)",
        "Refreshing (0.0s ago)",
    ]


def test_a_status_is_formatted_as_json() -> None:
    assert DONE.as_json(100.0, TODAY) == {"kind": "Done", "id": 3, "updated-at": "2026-05-04T11:59:50Z"}
    assert FAILED.as_json(100.0, TODAY) == {
        "kind": "Error",
        "id": 4,
        "updated-at": "2026-05-04T11:59:58Z",
        "error": "no such kind",
    }


def test_statuses_of_a_set_are_pending_by_default() -> None:
    empty = StatusSet({}, id=7, updated_at=5.0)
    assert empty.text(100.0) == "Pending"
    assert empty.get("apply") == Status(Kind.PENDING, 7, 5.0)


def test_a_set_is_sorted_and_immutable() -> None:
    first = StatusSet({"labels": DONE})
    second = first.set("apply", FAILED).set("health", PENDING)
    assert list(first.statuses) == ["labels"]
    assert list(second.statuses) == ["apply", "health", "labels"]
    assert second.get("apply") == FAILED
    assert second.text(100.0) == "Errored: apply (no such kind), Pending: health, Done: labels (0.5s ago)"
    assert second.set("apply", DONE).text(100.0) == "Pending: health, Done: apply labels (0.5s ago)"
    assert first.set("labels", Status(Kind.REFRESHING, 9, 99.0)).text(100.0) == "Pending: labels (1.0s ago)"
    assert second.as_json(100.0, TODAY) == {
        name: status.as_json(100.0, TODAY) for name, status in second.statuses.items()
    }


def test_a_set_can_be_reset_to_pending_with_one_id() -> None:
    pending = StatusSet({"apply": DONE, "labels": FAILED}).pending(12, 100.0)
    assert {name: (status.kind, status.id) for name, status in pending.statuses.items()} == {
        "apply": (Kind.PENDING, 12),
        "labels": (Kind.PENDING, 12),
    }
    assert pending.get("health").id == 12


def test_statuses_of_all_reconcilers_of_a_table_are_combined() -> None:
    statuses = Statuses[str]()
    known = {"a": DONE}
    statuses.join("apply", known.get)
    statuses.join("labels", {"b": FAILED}.get)
    assert list(statuses.names) == ["apply", "labels"]
    assert dict(statuses.of("a").statuses) == {"apply": DONE}
    assert dict(statuses.of("c").statuses) == {}
    with pytest.raises(ValueError, match="'apply'"):
        statuses.join("apply", known.get)
    statuses.leave("apply")
    assert dict(statuses.of("a").statuses) == {}


def test_a_set_is_read_back_unchanged() -> None:
    told = StatusSet({"apply": FAILED, "labels": DONE})
    read = StatusSet.from_json(told.as_json(100.0, TODAY), 100.0, TODAY)
    assert read.statuses == told.statuses
    later = StatusSet.from_json(told.as_json(100.0, TODAY), 7.0, TODAY + timedelta(seconds=60))
    assert later.get("labels").updated_at == pytest.approx(7.0 - 70.0)
    assert later.text(7.0) == "Errored: apply (no such kind), Done: labels (62.0s ago)"


@pytest.mark.parametrize(
    "value", [[], {"a": 1}, {"a": {"kind": "Odd", "id": 1, "updated-at": TODAY.isoformat()}}, {"a": {"kind": "Done"}}]
)
def test_malformed_sets_of_statuses_are_refused(value: JsonValue) -> None:
    with pytest.raises(ShapeError):
        StatusSet.from_json(value, 0.0, TODAY)
