"""The structural schemas that apply to the parts of a value."""

from typing import Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.structural import members, parts, sorted_parts

TEXT: Final[JsonObject] = {"type": "string"}
NUMBER: Final[JsonObject] = {"type": "integer"}


def test_members_have_a_declared_or_the_additional_schema() -> None:
    schema: JsonObject = {"properties": {"b": TEXT, "odd": True}, "additionalProperties": NUMBER}
    found = list(members(schema, {"c": 1, "b": "x", "odd": 2}))
    assert found == [("c", 1, NUMBER, True), ("b", "x", TEXT, True), ("odd", 2, None, True)]
    assert list(parts(schema, {"c": 1, "b": "x"})) == [("c", 1, NUMBER), ("b", "x", TEXT)]
    assert sorted_parts(schema, {"c": 1, "b": "x"}) == [("b", "x", TEXT), ("c", 1, NUMBER)]


def test_a_boolean_declares_every_member_without_a_schema() -> None:
    for additional in (True, False):
        assert list(members({"additionalProperties": additional}, {"a": 1})) == [("a", 1, None, True)]
    assert list(members({}, {"a": 1})) == [("a", 1, None, False)]
    assert list(members(None, {"a": 1})) == [("a", 1, None, False)]
    assert list(members({"properties": 1, "additionalProperties": 1}, {"a": 1})) == [("a", 1, None, False)]


def test_items_have_one_common_schema_or_one_each() -> None:
    assert list(parts({"items": TEXT}, ["x", "y"])) == [(0, "x", TEXT), (1, "y", TEXT)]
    each: JsonObject = {"items": [TEXT], "additionalItems": NUMBER}
    assert sorted_parts(each, ["x", 1]) == [(0, "x", TEXT), (1, 1, NUMBER)]
    assert list(parts(None, ["x"])) == [(0, "x", None)]


def test_a_scalar_has_no_parts() -> None:
    assert list(parts({"properties": {"a": TEXT}, "items": TEXT}, "text")) == []


def test_branches_of_alternatives_are_not_visited() -> None:
    assert list(parts({"allOf": [{"properties": {"a": TEXT}}]}, {"a": "x"})) == [("a", "x", None)]
