"""Settings that cannot be changed once they are set."""

import pytest
from hypothesis import given

from tests.formats.support.values import json_values
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas import immutable as schema_immutable
from wharfinger.formats.schemas.document import SchemaError
from wharfinger.formats.schemas.immutable import has_immutable, immutable_problems
from wharfinger.formats.schemas.openapi_schema import compile_schema

FIXED: JsonObject = {"x-deckhouse-immutable": True}
SCHEMA: JsonObject = {
    "properties": {
        "a": FIXED,
        "free": {"properties": {"deep": FIXED}},
        "map": {"additionalProperties": FIXED},
        "named": {"properties": {"a": {}}, "additionalProperties": FIXED},
        "list": {"items": {"properties": {"id": FIXED}}},
        "tuple": {"items": [{}, FIXED]},
        "either": {"anyOf": [{"properties": {"x": FIXED}}, {"oneOf": [{"properties": {"y": FIXED}}]}]},
    },
    "allOf": [{"properties": {"both": FIXED, "a": FIXED}}],
}


def changed(value: JsonObject, old: JsonObject) -> list[str]:
    return [problem.path for problem in compile_schema(SCHEMA, what="s").changes(value, old)]


@pytest.mark.parametrize(
    ("value", "old", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": {"x": 1, "y": [2]}}, {"a": {"y": [2], "x": 1}}, []),
        ({"a": 2}, {"a": 1}, ["a"]),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, ["a"]),
        ({"a": 1}, {}, []),
        ({"a": 1}, {"a": None}, []),
        ({}, {"a": 1}, ["a"]),
        ({"a": None}, {"a": 1}, ["a"]),
        ({"free": {"deep": 2, "other": 2}}, {"free": {"deep": 1, "other": 1}}, ["free.deep"]),
        ({}, {"free": {"deep": 1}}, ["free.deep"]),
        ({"free": 1}, {"free": {"deep": 1}}, ["free.deep"]),
        ({"map": {"k": 2, "new": 1}}, {"map": {"k": 1, "gone": 1}}, ["map.k"]),
        ({"list": [{"id": 2}, {"id": 5}]}, {"list": [{"id": 1}]}, ["list[0].id"]),
        ({"list": []}, {"list": [{"id": 1}]}, []),
        ({"list": [{"id": 2}, {"id": 1}]}, {"list": [{"id": 1}, {"id": 2}]}, ["list[0].id", "list[1].id"]),
        ({"tuple": [2, 2]}, {"tuple": [1, 1]}, ["tuple[1]"]),
        ({"named": {"k": 2, "a": 2}}, {"named": {"k": 1, "a": 1}}, ["named.k"]),
        ({"either": {"x": 2, "y": 2}}, {"either": {"x": 1, "y": 1}}, ["either.x", "either.y"]),
        ({"both": 2}, {"both": 1}, ["both"]),
        ({"unknown": 2}, {"unknown": 1}, []),
    ],
)
def test_changes_of_immutable_parts_are_reported(value: JsonObject, old: JsonObject, paths: list[str]) -> None:
    assert changed(value, old) == paths


BY_NAME: JsonObject = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
DISK: JsonObject = {"properties": {"name": {}, "id": FIXED}}


@pytest.mark.parametrize(
    "schema",
    [
        {**BY_NAME, "items": DISK},
        {**BY_NAME, "allOf": [{"items": DISK}]},
        {**BY_NAME, "items": {"allOf": [{"anyOf": [DISK]}]}},
    ],
)
@pytest.mark.parametrize(
    ("value", "old", "paths"),
    [
        # Items in another order are not a change.
        ([{"name": "b", "id": 2}, {"name": "a", "id": 1}], [{"name": "a", "id": 1}, {"name": "b", "id": 2}], []),
        # A changed item must be compared even if an item was inserted before it.
        ([{"name": "new", "id": 0}, {"name": "a", "id": 9}], [{"name": "a", "id": 1}], ["l[1].id"]),
        ([{"name": "a"}], [{"name": "b", "id": 2}, {"name": "a", "id": 1}], ["l[0].id"]),
        # A removed item and a new item are not changes.
        ([{"name": "b", "id": 2}], [{"name": "a", "id": 1}, {"name": "b", "id": 2}], []),
        ([{"name": "new", "id": 1}], [{"name": "a", "id": 2}], []),
        ([], [{"name": "a", "id": 1}], []),
        # A key that both items lack counts as equal. An item that is not an object has no key. The first of equal items counts.
        ([{"id": 2}, "x"], ["y", {"id": 1}], ["l[0].id"]),
        ([{"name": "a", "id": 2}], [{"name": "a", "id": 1}, {"name": "a", "id": 2}], ["l[0].id"]),
    ],
)
def test_items_of_a_map_list_are_matched_by_their_keys(
    schema: JsonObject, value: JsonValue, old: JsonValue, paths: list[str]
) -> None:
    found = compile_schema({"properties": {"l": schema}}, what="s").changes({"l": value}, {"l": old})
    assert [problem.path for problem in found] == paths


def test_messages_about_changes_contain_no_value() -> None:
    (problem,) = compile_schema(SCHEMA, what="s").changes({"a": "topsecret"}, {"a": "other"})
    assert str(problem) == "a: cannot be changed once it is set"


@given(json_values(), json_values())
def test_an_equal_value_is_never_a_change(value: JsonValue, other: JsonValue) -> None:
    schema: JsonObject = {**FIXED, "additionalProperties": FIXED}
    assert immutable_problems(value, value, schema) == ()
    assert immutable_problems(value, None, schema) == ()
    assert immutable_problems(value, other, {"additionalProperties": {}}) == ()


def test_immutable_marks_are_detected_in_every_part_of_a_schema() -> None:
    assert has_immutable(SCHEMA, what="s")
    assert not has_immutable({"properties": {"a": {"x-deckhouse-immutable": False}}, "enum": [None, [1]]}, what="s")
    assert not has_immutable({"default": FIXED, "x-other": {"a": FIXED}, "not": {"enum": [1]}}, what="s")
    assert has_immutable({"items": [{}, FIXED]}, what="s")
    assert has_immutable({"items": [{}], "additionalItems": FIXED}, what="s")
    assert has_immutable({"oneOf": [{}, FIXED]}, what="s")
    assert compile_schema({"properties": {"a": {}}}, what="s").changes({"a": 1}, {"a": 2}) == ()


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"patternProperties": {"^a": {"type": "string", **FIXED}}}, "patternProperties"),
        ({"properties": {"a": {"not": {"properties": {"b": FIXED}}}}}, "properties.a.not"),
        ({"items": {"patternProperties": {"a": {"allOf": [FIXED]}}}}, "items.patternProperties"),
        ({"items": [{}, {"patternProperties": {"a": FIXED}}]}, "items[1].patternProperties"),
        ({"additionalProperties": {"patternProperties": {"a": FIXED}}}, "additionalProperties.patternProperties"),
        ({"allOf": [{"patternProperties": {"a": FIXED}}]}, "allOf[0].patternProperties"),
        ({"patternProperties": {"a": {"patternProperties": {"b": FIXED}}}}, "patternProperties"),
    ],
)
def test_an_immutable_mark_in_an_unchecked_part_is_refused(schema: JsonObject, place: str) -> None:
    """In some parts of a schema, the mark ``x-deckhouse-immutable`` is not checked, so a mark there must be refused. If it were
    accepted, the setting could still be changed.
    """
    with pytest.raises(SchemaError) as caught:
        compile_schema(schema, what="s")
    keyword = place.rpartition(".")[2]
    assert str(caught.value) == (
        f"s: {place}: has x-deckhouse-immutable in it, which would not be checked there; move it out of {keyword}"
    )


def test_an_unchanged_value_is_never_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_immutable, "MAX_COMPARED", 0)
    schema = compile_schema(SCHEMA, what="s")
    assert schema.changes({"a": 1, "b": [{}, None]}, {"b": [{}, None], "a": 1.0}) == ()
    assert schema.changes({"a": 1}, {"a": True}) != ()


def test_values_too_large_or_without_a_json_form_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = compile_schema(SCHEMA, what="s")
    assert [str(problem) for problem in schema.changes({"a": "\ud800"}, {"a": "x"})] == [
        "contains a value that has no JSON form"
    ]
    monkeypatch.setattr(schema_immutable, "MAX_COMPARED", 5)
    (problem,) = schema.changes({"b": 1, "map": {str(i): i for i in range(9)}}, {"map": {str(i): i for i in range(9)}})
    assert "too large to be compared" in problem.message
    by_name = compile_schema({"properties": {"l": {**BY_NAME, "items": DISK}}}, what="s")
    items: list[JsonValue] = [{"name": str(i)} for i in range(4)]
    (problem,) = by_name.changes({"l": []}, {"l": items})
    assert "too large to be compared" in problem.message
