"""The conversion of schemas: the resulting JSON Schema, and the values that it accepts."""

import jsonschema_rs
import pytest
from hypothesis import given

from tests.formats.support.schemas import schemas
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.conversion import MAX_PATTERNS, to_json_schema
from wharfinger.formats.schemas.document import SchemaError, expanded
from wharfinger.formats.schemas.openapi_schema import compile_schema


def converted(document: JsonObject) -> JsonObject:
    return to_json_schema(expanded(document, what="s"), what="s").schema


@pytest.mark.parametrize(
    ("document", "result"),
    [
        ({"description": "d", "x-a": 1, "example": 1, "$id": "a", "$schema": "b", "title": "t", "format": "x"}, {}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"], "nullable": True}, {"type": ["string", "null"]}),
        ({"enum": ["a"], "nullable": True}, {"enum": ["a", None]}),
        ({"enum": [None], "nullable": True}, {"enum": [None]}),
        ({"enum": ["a"], "nullable": False}, {"enum": ["a"]}),
        (
            {"nullable": True, "type": "object", "anyOf": [{"required": ["a"]}], "not": {"nullable": True}},
            {
                "type": ["object", "null"],
                "if": {"type": "null"},
                "else": {"anyOf": [{"required": ["a"]}], "not": {}},
            },
        ),
        ({"x-kubernetes-int-or-string": True}, {"type": ["integer", "string"]}),
        ({"type": "int-or-string", "nullable": True}, {"type": ["integer", "string", "null"]}),
        ({"type": "string", "format": "int-or-string"}, {"type": ["integer", "string"]}),
        ({"minimum": 3, "exclusiveMinimum": True}, {"exclusiveMinimum": 3}),
        ({"minimum": 3, "exclusiveMinimum": False}, {"minimum": 3}),
        ({"exclusiveMinimum": True}, {}),
        ({"minimum": 3, "exclusiveMinimum": 4}, {"minimum": 3, "exclusiveMinimum": 4}),
        ({"maximum": 3, "exclusiveMaximum": True}, {"exclusiveMaximum": 3}),
        ({"type": "integer", "format": "int32"}, {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}),
        (
            {"type": "integer", "format": "uint32", "minimum": -5, "maximum": 7},
            {"type": "integer", "minimum": 0, "maximum": 7},
        ),
        ({"type": "string", "format": "int32"}, {"type": "string"}),
        ({"minLength": 2.0, "maxItems": 3}, {"minLength": 2, "maxItems": 3}),
        ({"format": "date"}, {"format": "date"}),
        ({"pattern": "[[a]"}, {"pattern": r"[\[a]"}),
        ({"patternProperties": {"[[]": {"type": "null"}}}, {"patternProperties": {r"[\[]": {"type": "null"}}}),
        (
            {"items": [{"minLength": 1}, False], "additionalItems": False},
            {"prefixItems": [{"minLength": 1}, {"not": {}}], "items": False},
        ),
        ({"items": {"maxItems": 1}, "additionalItems": False}, {"items": {"maxItems": 1}}),
        ({"additionalProperties": {"nullable": True, "type": "null"}}, {"additionalProperties": {"type": ["null"]}}),
        ({"allOf": [{}], "oneOf": [{}], "const": None}, {"allOf": [{}], "oneOf": [{}], "const": None}),
        ({"required": ["a"], "properties": {"a": {}}}, {"required": ["a"], "properties": {"a": {}}}),
    ],
)
def test_openapi_keywords_are_converted_to_json_schema(document: JsonObject, result: JsonObject) -> None:
    assert converted(document) == result


@pytest.mark.parametrize(
    ("document", "fitting", "other"),
    [
        ({"type": "string", "nullable": True}, ["a", None], [1]),
        ({"type": "string"}, ["a"], [None]),
        ({"type": "string", "enum": ["a"], "nullable": True}, ["a", None], ["b"]),
        ({"nullable": True, "not": {"type": "null"}}, [None, 1], []),
        ({"nullable": True, "allOf": [{"type": "string"}]}, [None, "a"], [1]),
        ({"nullable": True, "const": 3}, [None, 3], [4]),
        ({"x-kubernetes-int-or-string": True}, [1, "1"], [1.5, None, True, []]),
        ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"}, [1, "10%"], ["10"]),
        (
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            [1, "a"],
            [True],
        ),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2], [1]),
        ({"type": "integer"}, [1, 1.0, 10**30], [1.5, "1", True]),
        ({"type": "integer", "format": "int32"}, [2**31 - 1], [2**31]),
        ({"type": "number", "multipleOf": 0.01}, [0.07, 3], [0.075]),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, [{"a": 1}], [1]),
        ({"type": "string", "format": "password"}, ["a"], [1]),
        ({"type": "string", "format": "date-time"}, ["2026-01-01T00:00:00Z"], ["yesterday"]),
        ({"uniqueItems": True}, [[1, True, "1"]], [[1, 1.0], [{"a": 1}, {"a": 1}]]),
    ],
)
def test_converted_schemas_accept_the_same_values(
    document: JsonObject, fitting: list[JsonValue], other: list[JsonValue]
) -> None:
    schema = compile_schema(document, what="s")

    assert [value for value in fitting if schema.problems(value)] == []
    assert [value for value in other if not schema.problems(value)] == []


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"type": 5}, "s: type: an integer is not a type; known: string, integer, "),
        ({"items": {"type": "text"}}, "s: items.type: 'text' is not a type; known: "),
        ({"type": []}, "s: type: the list is empty; name at least one type"),
        ({"type": ["string", "any"]}, "s: type: 'any' is not a type"),
        ({"nullable": "yes"}, "s: nullable: expected true or false, found a string"),
        ({"minLength": -1}, "s: minLength: expected a whole number from 0, found -1"),
        ({"maxItems": 1.5}, "s: maxItems: expected a whole number from 0, found 1.5"),
        ({"minItems": True}, "s: minItems: expected a whole number from 0, found a boolean"),
        ({"multipleOf": 0}, "s: multipleOf: expected a number above 0, found 0"),
        ({"uniqueItems": 1}, "s: uniqueItems: expected true or false, found 1"),
        ({"enum": []}, "s: enum: expected a list of at least one value, found a list"),
        ({"minimum": "1"}, "s: minimum: expected a number, found a string"),
        ({"exclusiveMaximum": []}, "s: exclusiveMaximum: expected true, false or a number, found a list"),
        ({"required": True}, "s: required: expected a list of names, found a boolean: a schema lists the names "),
        ({"required": [1]}, "s: required: expected a list of names, found a list"),
        ({"pattern": 1}, "s: pattern: expected a regular expression, found an integer"),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "s: properties.a.pattern: '(?=a)' has a look-ahead: "),
        ({"patternProperties": {"(": {}}}, "s: patternProperties[\"(\"]: '(' is not a valid regular expression"),
        ({"format": 1}, "s: format: expected a string, found an integer"),
        ({"maximum": 10**400, "minimum": [10**400]}, "s: minimum: expected a number, found a list"),
        (
            {"minLength": -(10**5000)},
            "s: minLength: expected a whole number from 0, found an",
        ),
    ],
)
def test_keywords_with_invalid_values_are_refused(document: JsonObject, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        converted(document)

    assert str(caught.value).startswith(said)


def test_the_number_of_patterns_is_limited() -> None:
    same: JsonObject = {"properties": {f"p{n}": {"pattern": "a"} for n in range(MAX_PATTERNS + 1)}}
    different: JsonObject = {"properties": {f"p{n}": {"pattern": f"a{n}"} for n in range(MAX_PATTERNS + 1)}}

    converted(same)
    with pytest.raises(SchemaError, match=f"more than {MAX_PATTERNS} different patterns"):
        converted(different)


def test_converted_patterns_are_mapped_to_their_original() -> None:
    found = to_json_schema({"anyOf": [{"pattern": "[[a]"}]}, what="s")

    assert found.patterns == {r"[\[a]": "[[a]"}


@given(schemas)
def test_the_result_is_valid_json_schema(document: JsonObject) -> None:
    jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **converted(document)})
