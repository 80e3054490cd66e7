"""Custom resources as values of CEL expressions."""

import pytest

from wharfinger.control_plane.cel.values.objects import ListView, ObjectView, list_kind, viewed
from wharfinger.control_plane.cel.values.values import CelError, Timestamp
from wharfinger.formats.json.value import JsonObject, JsonValue


def test_fields_have_escaped_names() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a-b": {"type": "integer"}, "n": {"type": "number"}}}
    view = viewed({"a-b": 1, "n": 2, "x": 3}, schema)
    assert isinstance(view, ObjectView)
    assert (view.find("a__dash__b"), view.find("n"), view.find("x"), view.find(1)) == (
        (True, 1),
        (True, 2.0),
        (False, None),
        (False, None),
    )
    assert (list(view.keys()), len(view)) == (["a__dash__b", "n"], 3)


def test_maps_and_lists_are_viewed_by_schema() -> None:
    view = viewed(
        {"k": [1]},
        {
            "type": "object",
            "additionalProperties": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
        },
    )
    assert isinstance(view, ObjectView)
    found = view.find("k")[1]
    assert isinstance(found, ListView)
    assert (list_kind(found), found.at(0), list(found)) == ("set", 1, [1])


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (None, {"type": "string"}),
        (1.5, {"x-kubernetes-int-or-string": True}),
        ("a", {"type": "integer"}),
        ([], {"type": "object"}),
        ({}, {"type": "array"}),
        ("x", {"type": "string", "format": "date-time"}),
    ],
)
def test_values_of_a_wrong_type_are_errors(value: JsonValue, schema: JsonObject) -> None:
    with pytest.raises(CelError):
        viewed(value, schema)


def test_formatted_texts_become_times_and_bytes() -> None:
    assert isinstance(viewed("2026-01-02", {"type": "string", "format": "date"}), Timestamp)
    assert viewed("YQ==", {"type": "string", "format": "byte"}) == b"a"
