"""The transformations of schemas that addon-operator makes: `closed`, `extended` and `required_for_helm`."""

import copy

import pytest
from hypothesis import given

from tests.formats.support.schemas import schemas
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.document import SchemaError
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.schemas.transforms import closed, extended, required_for_helm


@pytest.mark.parametrize(
    ("document", "result"),
    [
        ({"type": "object"}, {"type": "object", "additionalProperties": False}),
        ({"type": "string"}, {"type": "string"}),
        ({}, {}),
        ({"properties": {}}, {"properties": {}, "additionalProperties": False}),
        ({"type": ["object", "null"]}, {"type": ["object", "null"], "additionalProperties": False}),
        (
            {"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "string"}}},
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {"a": {"type": "object", "additionalProperties": False}, "b": {"type": "string"}},
            },
        ),
        (
            {"type": "array", "items": {"type": "object"}},
            {"type": "array", "items": {"type": "object", "additionalProperties": False}},
        ),
        (
            {"type": "array", "items": [{"type": "object"}]},
            {"type": "array", "items": [{"type": "object", "additionalProperties": False}]},
        ),
        # The root is always closed; below the root, an explicit additionalProperties ends the descent.
        (
            {"additionalProperties": True, "properties": {"a": {"type": "object"}}},
            {"additionalProperties": True, "properties": {"a": {"type": "object", "additionalProperties": False}}},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"additionalProperties": True, "properties": {"b": {"type": "object"}}}},
            },
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {"a": {"additionalProperties": True, "properties": {"b": {"type": "object"}}}},
            },
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            {"type": "object", "anyOf": [{"properties": {"a": {}}}]},
            {"type": "object", "anyOf": [{"properties": {"a": {}}}], "additionalProperties": False},
        ),
        (
            {"properties": {"a": {"$ref": "#/definitions/o"}}, "definitions": {"o": {"type": "object"}}},
            {"properties": {"a": {"type": "object", "additionalProperties": False}}, "additionalProperties": False},
        ),
    ],
)
def test_closing_a_schema_forbids_undeclared_properties(document: JsonObject, result: JsonObject) -> None:
    before = copy.deepcopy(document)

    assert closed(document) == result
    assert closed(result) == result
    assert document == before


def test_only_a_closed_schema_reports_a_misspelt_setting() -> None:
    document: JsonObject = {"type": "object", "properties": {"paramArray": {"type": "array"}}}

    assert compile_schema(document, what="s").problems({"paramArrayy": []}) == ()
    (problem,) = compile_schema(closed(document), what="s").problems({"paramArrayy": []})
    assert str(problem) == "paramArrayy: is not a known setting; known: paramArray; did you mean paramArray?"


BASE: JsonObject = {
    "type": "object",
    "title": "base",
    "description": "of the base",
    "x-base": 1,
    "x-both": "base",
    "required": ["a"],
    "definitions": {"port": {"type": "integer"}, "name": {"type": "string"}},
    "properties": {"a": {"$ref": "#/definitions/port"}, "both": {"type": "string"}},
    "patternProperties": {"^x": {"$ref": "#/definitions/name"}},
    "additionalProperties": True,
    "minProperties": 1,
}


def test_an_extended_schema_inherits_from_its_base() -> None:
    document: JsonObject = {
        "x-extend": {"schema": "config-values.yaml"},
        "x-both": "own",
        "title": "own",
        "type": "object",
        "required": ["b", "a"],
        "definitions": {"port": {"type": "string"}},
        "properties": {"b": {"$ref": "#/definitions/port"}, "n": {"$ref": "#/definitions/name"}, "both": {}},
    }
    before = copy.deepcopy((document, BASE))

    assert extended(document, BASE) == {
        "x-extend": {"schema": "config-values.yaml"},
        "x-base": 1,
        "x-both": "own",
        "title": "own",
        "description": "of the base",
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"type": "integer"}, "both": {}, "b": {"type": "string"}, "n": {"type": "string"}},
        "patternProperties": {"^x": {"type": "string"}},
    }
    assert (document, BASE) == before


@pytest.mark.parametrize(
    "extension", [{}, {"x-extend": None}, {"x-extend": "config-values.yaml"}, {"x-extend": {"a": 1}}]
)
def test_a_schema_without_x_extend_is_not_extended(extension: JsonObject) -> None:
    found = extended({"properties": {"b": {}}, **extension}, BASE)

    assert found["properties"] == {"b": {}}
    assert "required" not in found


def test_extending_an_empty_schema_changes_nothing() -> None:
    extension: JsonObject = {"x-extend": {"schema": "config-values.yaml"}}

    assert extended(extension, {}) == extension
    with pytest.raises(SchemaError, match=r"the schema that is extended: properties.a: a schema is an object"):
        extended(extension, {"properties": {"a": 1}})


def test_required_for_helm_becomes_required() -> None:
    document: JsonObject = {
        "x-required-for-helm": ["a", "b"],
        "required": ["b", "c"],
        "properties": {
            "a": {"x-required-for-helm": "d", "properties": {"d": {}}},
            "l": {"items": {"x-required-for-helm": ["e"]}},
            "m": {"additionalProperties": {"x-required-for-helm": "f"}},
            "o": {"additionalProperties": False},
        },
    }
    before = copy.deepcopy(document)

    found = required_for_helm(document)

    assert found["required"] == ["b", "c", "a"]
    schema = compile_schema(found, what="s")
    value: JsonValue = {"b": 1, "c": 1, "a": {}, "l": [{}], "m": {"k": {}}}
    assert [str(problem) for problem in schema.problems(value)] == [
        "a.d: is required",
        "l[0].e: is required",
        "m.k.f: is required",
    ]
    assert compile_schema(document, what="s").problems({"b": 1, "c": 1, "a": {}}) == ()
    assert required_for_helm(found) == found
    assert document == before


@pytest.mark.parametrize("wrong", [5, {"a": 1}, ["a", 5]])
def test_invalid_names_for_helm_are_refused(wrong: JsonValue) -> None:
    with pytest.raises(
        SchemaError, match=r"schema: properties.a.x-required-for-helm: expected a name or a list of names"
    ):
        required_for_helm({"properties": {"a": {"x-required-for-helm": wrong}}})


@given(schemas)
def test_closing_a_schema_is_idempotent(document: JsonObject) -> None:
    once = closed(document)

    assert closed(once) == once
    compile_schema(required_for_helm(once), what="s")
