"""Errors that show empty values as they were sent.

The recording ``recorded_answers/recordings/hunt3-kinds-empties.jsonl`` has the messages of a real API server.
"""

import pytest

from wharfinger.control_plane.verbs.empty_values_in_errors import as_sent, with_empties
from wharfinger.control_plane.wire.field_errors import invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("obj", "sent", "whole"),
    [
        ({"a": 1}, {"a": 1, "b": []}, {"a": 1, "b": []}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": {}}}, {"a": {"b": 1, "c": {}}}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": ""}]}, {"a": [{"b": 1, "c": ""}]}),
        ({"a": ["default"]}, {"a": []}, {"a": ["default"]}),
        ({"a": [1, 2]}, {"a": [{"b": []}]}, {"a": [1, 2]}),
        ({"a": "x"}, {"a": {"b": []}}, {"a": "x"}),
    ],
)
def test_empty_values_are_restored(obj: JsonObject, sent: JsonObject, whole: JsonObject) -> None:
    assert with_empties(obj, sent) == whole
    if obj == whole:
        assert with_empties(obj, sent) is obj


def test_errors_differ_only_in_the_values_that_they_show() -> None:
    def shown(obj: JsonObject) -> list[FieldError]:
        return [invalid("a", obj.get("a"), "odd")]

    def other(obj: JsonObject) -> list[FieldError]:
        return [required("b")] if "a" in obj else shown(obj)

    before = shown({})
    assert as_sent(before, {}, {"a": []}, shown) == shown({"a": []})
    assert as_sent(before, {}, {"a": []}, other) == before
    assert as_sent(before, {}, {}, other) is before
