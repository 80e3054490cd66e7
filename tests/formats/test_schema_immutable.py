"""What may not be changed once it is set."""

import pytest
from hypothesis import given

from tests.formats.values import json_values
from wharfinger.formats import schema_immutable
from wharfinger.formats.json_value import JsonObject, JsonValue
from wharfinger.formats.openapi_schema import compile_schema
from wharfinger.formats.schema_immutable import has_immutable, immutable_problems

FIXED: JsonObject = {"x-deckhouse-immutable": True}
SCHEMA: JsonObject = {
    "properties": {
        "a": FIXED,
        "free": {"properties": {"deep": FIXED}},
        "map": {"additionalProperties": FIXED},
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
        ({"tuple": [2, 2]}, {"tuple": [1, 1]}, ["tuple[1]"]),
        ({"either": {"x": 2, "y": 2}}, {"either": {"x": 1, "y": 1}}, ["either.x", "either.y"]),
        ({"both": 2}, {"both": 1}, ["both"]),
        ({"unknown": 2}, {"unknown": 1}, []),
    ],
)
def test_changes(value: JsonObject, old: JsonObject, paths: list[str]) -> None:
    assert changed(value, old) == paths


def test_what_is_said() -> None:
    (problem,) = compile_schema(SCHEMA, what="s").changes({"a": "topsecret"}, {"a": "other"})
    assert str(problem) == "a: cannot be changed once it is set"


@given(json_values(), json_values())
def test_the_same_is_never_a_change(value: JsonValue, other: JsonValue) -> None:
    schema: JsonObject = {**FIXED, "additionalProperties": FIXED}
    assert immutable_problems(value, value, schema) == ()
    assert immutable_problems(value, None, schema) == ()
    assert immutable_problems(value, other, {"additionalProperties": {}}) == ()


def test_whether_there_is_anything_to_look_for() -> None:
    assert has_immutable(SCHEMA)
    assert not has_immutable({"properties": {"a": {"x-deckhouse-immutable": False}}, "enum": [None, [1]]})
    assert compile_schema({"properties": {"a": {}}}, what="s").changes({"a": 1}, {"a": 2}) == ()


def test_what_is_too_large_or_has_no_form(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = compile_schema(SCHEMA, what="s")
    assert [str(problem) for problem in schema.changes({"a": "\ud800"}, {"a": "x"})] == [
        "has something in it that has no form in JSON"
    ]
    monkeypatch.setattr(schema_immutable, "MAX_COMPARED", 5)
    (problem,) = schema.changes({"map": {str(i): i for i in range(9)}}, {"map": {str(i): i for i in range(9)}})
    assert "too large to be compared" in problem.message
