"""Warnings about deprecated settings."""

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas import deprecations as schema_deprecations
from wharfinger.formats.schemas.deprecations import MAX_FOUND
from wharfinger.formats.schemas.openapi_schema import compile_schema

SCHEMA: JsonObject = {
    "properties": {
        "old": {"deprecated": True, "properties": {"inner": {"deprecated": True}}},
        "why": {"x-deprecated": "use\n  new"},
        "long": {"x-deprecated": "x" * 500},
        "doc": {"x-doc-deprecated": True, "default": 1},
        "not": {"deprecated": False, "x-deprecated": ""},
        "list": {"items": {"properties": {"x": {"deprecated": True}}}},
        "map": {"additionalProperties": {"properties": {"y": {"deprecated": True}}}},
        "deprecated": {"type": "string"},
    },
    "allOf": [{"properties": {"both": {"deprecated": True}, "old": {"deprecated": True}}}],
}


def warned(value: JsonObject, schema: JsonObject = SCHEMA) -> list[str]:
    return [str(problem) for problem in compile_schema(schema, what="s").warnings(value)]


@pytest.mark.parametrize(
    ("value", "warnings"),
    [
        ({}, []),
        ({"new": 1, "not": 1, "deprecated": "x"}, []),
        ({"old": {"inner": 1}}, ["old: is deprecated"]),
        ({"old": None}, []),
        ({"old": False}, ["old: is deprecated"]),
        ({"why": 1}, ["why: is deprecated: use new"]),
        ({"doc": 1}, ["doc: is deprecated"]),
        ({"list": [{}, {"x": 1}]}, ["list[1].x: is deprecated"]),
        ({"map": {"k": {"y": 1, "z": 1}}}, ["map.k.y: is deprecated"]),
        ({"both": 1}, ["both: is deprecated"]),
    ],
)
def test_deprecated_fields_cause_warnings(value: JsonObject, warnings: list[str]) -> None:
    assert warned(value) == warnings


def test_long_deprecation_texts_are_truncated() -> None:
    assert warned({"long": 1}) == ["long: is deprecated: " + "x" * 200 + "…"]


def test_the_root_is_never_deprecated() -> None:
    assert warned({"a": 1}, {"deprecated": True, "properties": {"a": {}}}) == []


def test_the_number_of_deprecation_warnings_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    schema: JsonObject = {"additionalProperties": {"deprecated": True}}
    value: JsonObject = {f"a{index}": 1 for index in range(100)}
    assert len(warned(value, schema)) == MAX_FOUND
    monkeypatch.setattr(schema_deprecations, "MAX_CHECKED", 5)
    assert len(warned(value, schema)) == 4
