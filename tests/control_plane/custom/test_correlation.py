"""The correlation of the values of a custom resource with their old values."""

import pytest

from wharfinger.control_plane.custom.correlation import Pair, equal, keyed_items
from wharfinger.formats.json.value import JsonObject, JsonValue

LIST: JsonObject = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"v": {}}},
}


@pytest.mark.parametrize(
    ("one", "other", "same"), [(1, 1.0, False), (True, 1, False), ([1], [1], True), ({"a": 1}, {"a": 2}, False)]
)
def test_numbers_and_booleans_of_different_types_are_unequal(one: JsonValue, other: JsonValue, same: bool) -> None:
    assert equal(one, other) is same


def test_items_of_map_lists_correlate_by_key() -> None:
    one: JsonValue = {"k": "a", "v": 1}
    other: JsonValue = {"k": "b", "v": 2}
    pair = Pair([one, other, {"v": 3}], [other, one], LIST)
    first = pair.item(0)
    assert first is not None
    assert first.old == one
    assert pair.item(2) is None
    assert Pair([one], [one], {"type": "array", "items": {}}).item(0) is None
    assert list(keyed_items(LIST, [one, 5])) == [(("str", "a"),)]


def test_members_correlate_by_name_and_report_equality() -> None:
    schema: JsonObject = {"properties": {"a": {"type": "object"}}, "additionalProperties": {"type": "integer"}}
    pair = Pair({"a": 1, "b": 2}, {"a": 1, "b": 3}, schema)
    same, changed = pair.member("a"), pair.member("b")
    assert same is not None
    assert changed is not None
    assert (same.same(), changed.same(), pair.same(), pair.member("c")) == (True, False, False, None)
