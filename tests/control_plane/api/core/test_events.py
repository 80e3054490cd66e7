import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.core.events import EVENT_RULES, STRICT_EVENT_RULES
from wharfinger.formats.json.value import JsonObject, JsonValue


def event(**fields: JsonValue) -> JsonObject:
    return {
        "metadata": {"name": "a", "namespace": "n"},
        "involvedObject": {"namespace": "n"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingComponent": "a",
        "reportingInstance": "b",
        "action": "c",
        "reason": "d",
        "type": "Normal",
        **fields,
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, ""),
        ({"eventTime": None}, ""),
        ({"involvedObject": {}}, "does not match event.namespace"),
        ({"reason": "x" * 129}, 'reason: Invalid value: "": can have at most 128 characters'),
        ({"message": "x" * 1025}, "can have at most 1024 characters"),
        ({"action": ""}, "action: Required value"),
        ({"reportingComponent": "a b"}, "reportingComponent: Invalid value"),
    ],
)
def test_invalid_events_are_refused(fields: JsonObject, said: str) -> None:
    errors = [str(error) for error in EVENT_RULES.update(event(**fields), {})]

    assert not errors if not said else any(said in error for error in errors)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, ""),
        ({"eventTime": None}, "eventTime: Required value"),
        ({"type": "Odd"}, "has invalid value: Odd"),
        ({"count": 1}, 'count: Invalid value: "": needs to be unset'),
        ({"source": {"host": "a"}}, "source: Invalid value"),
        ({"series": {"count": 1}}, 'series.count: Invalid value: "": should be at least 2'),
        ({"series": {"count": 2}}, "series.lastObservedTime: Required value"),
    ],
)
def test_invalid_strict_events_are_refused(fields: JsonObject, said: str) -> None:
    errors = [str(error) for error in STRICT_EVENT_RULES.create(event(**fields))]

    assert not errors if not said else any(said in error for error in errors)


def test_only_the_series_of_strict_events_may_change() -> None:
    series: JsonObject = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}

    assert STRICT_EVENT_RULES.update(event(series=series), event()) == []
    changed = event(
        reason="x", reportingComponent="y", involvedObject={"namespace": "n", "uid": "u"}, source={"host": "h"}
    )
    fields = [error.field for error in STRICT_EVENT_RULES.update(changed, event())]
    assert fields == ["involvedObject", "reason", "source", "reason", "reportingController"]


@given(shapes("metadata", "involvedObject", "series", "eventTime", "source", "namespace", "count"))
def test_arbitrary_objects_do_not_crash(obj: JsonObject) -> None:
    EVENT_RULES.create(obj), STRICT_EVENT_RULES.create(obj), STRICT_EVENT_RULES.update(obj, {})
