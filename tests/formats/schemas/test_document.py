import copy
from typing import Final

import pytest
from hypothesis import given

from tests.formats.support.schemas import schemas
from tests.formats.support.values import json_values
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue
from wharfinger.formats.schemas import document as schema_document
from wharfinger.formats.schemas.document import (
    MAX_ALL_BRANCHES,
    MAX_BRANCHES,
    SchemaError,
    ValuePath,
    alternatives,
    expanded,
    is_nullable,
    item_schema,
    path_text,
    properties,
    types,
)

PORT: Final[JsonObject] = {"type": "integer", "maximum": 65535}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("sets", 2, "name"), "sets[2].name"),
        ((0, "a"), "[0].a"),
        (("labels", "app/name"), 'labels["app/name"]'),
        (("", "a"), '[""].a'),
        (("ключ", 'a"b', "\ud800\n"), '["ключ"]["a\\"b"]["\\ud800\\n"]'),
        (("x" * 101,), '["' + "x" * 100 + '…"]'),
    ],
)
def test_paths_are_formatted_as_text(path: ValuePath, text: str) -> None:
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("document", "result"),
    [
        ({"properties": {"a": None, "b": True, "c": False}}, {"properties": {"a": {}, "b": {}, "c": {"not": {}}}}),
        ({"items": None, "required": None, "default": None, "const": None}, {"default": None, "const": None}),
        ({"additionalProperties": False, "x-a": {"$ref": 1}}, {"additionalProperties": False, "x-a": {"$ref": 1}}),
        ({"properties": {"$ref": {"type": "string"}}}, {"properties": {"$ref": {"type": "string"}}}),
        (
            {"properties": {"a": {"$ref": "#/definitions/port"}}, "definitions": {"port": PORT}},
            {"properties": {"a": PORT}},
        ),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": PORT}}, PORT),
        (
            {"items": {"$ref": "#/components/a/p", "default": 80, "maximum": 99}, "components": {"a": {"p": PORT}}},
            {"items": {"type": "integer", "maximum": 99, "default": 80}},
        ),
        (
            {"properties": {"a/b~ c": PORT, "d": {"$ref": "#/properties/a~1b~0%20c"}}},
            {"properties": {"a/b~ c": PORT, "d": PORT}},
        ),
        ({"allOf": [PORT, {"$ref": "#/allOf/0"}]}, {"allOf": [PORT, PORT]}),
        ({"items": [PORT, {"not": {"$ref": "#/items/0"}}]}, {"items": [PORT, {"not": PORT}]}),
    ],
)  # fmt: skip
def test_references_are_replaced(document: JsonObject, result: JsonObject) -> None:
    before = copy.deepcopy(document)

    found = expanded(document, what="schema")

    assert found == result
    assert document == before
    assert expanded(found, what="schema") == found


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("a", "s: a schema is an object, found a string"),
        ({"properties": []}, "s: properties: expected an object of schemas, found a list"),
        ({"properties": {"a": 5}}, "s: properties.a: a schema is an object, found an integer"),
        ({"allOf": {}}, "s: allOf: expected a list of schemas, found none"),
        ({"anyOf": {"a": 1}}, "s: anyOf: expected a list of schemas, found an object"),
        ({"oneOf": []}, "s: oneOf: expected a list of schemas, found none"),
        ({"allOf": [{}, 1]}, "s: allOf[1]: a schema is an object, found an integer"),
        ({"not": "x"}, "s: not: a schema is an object, found a string"),
        ({"items": "x"}, "s: items: a schema is an object, found a string"),
        ({"additionalProperties": "yes"}, "s: additionalProperties: a schema is an object, found a string"),
        ({"items": {"$ref": 5}}, "s: items.$ref: a reference is a string, found an integer"),
        ({"$ref": "other.yaml#/a"}, "s: $ref: 'other.yaml#/a' is not in this document: only references that start "),
        ({"$ref": "#/definitions/a"}, "s: $ref: '#/definitions/a' leads nowhere: there is no 'definitions'"),
        ({"$ref": "#/allOf/7", "allOf": [{}]}, "s: $ref: '#/allOf/7' leads nowhere: there is no '7'"),
        ({"$ref": "#/type", "type": "string"}, "s: a schema is an object, found a string"),
        ({"$ref": "#"}, "s: $ref: '#' leads back to itself: schemas that contain themselves are not supported"),
        (
            {"properties": {"a": {"$ref": "#/properties/a"}}},
            "s: properties.a.$ref: '#/properties/a' leads back to itself: ",
        ),
        (
            {
                "items": {"$ref": "#/$defs/a"},
                "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}},
            },
            "s: items.not.$ref: '#/$defs/a' leads back to itself: ",
        ),
    ],
)
def test_invalid_schemas_are_refused(document: JsonValue, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        expanded(document, what="s")

    assert str(caught.value).startswith(said)


def test_references_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_document, "MAX_NODES", 5_000)
    definitions: JsonObject = {"d0": PORT}
    for level in range(1, 30):
        both: list[JsonValue] = [{"$ref": f"#/definitions/d{level - 1}"}] * 2
        definitions[f"d{level}"] = {"allOf": both}

    with pytest.raises(SchemaError, match="more than 5000 values after its references are replaced"):
        expanded({"$ref": "#/definitions/d29", "definitions": definitions}, what="s")


@pytest.mark.parametrize("wrap", ["items", "x-any"])
def test_nesting_is_limited(wrap: str) -> None:
    document: JsonObject = {}
    for _ in range(MAX_DEPTH - 1):
        document = {wrap: document}
    expanded(document, what="s")

    with pytest.raises(SchemaError, match=f"nested deeper than {MAX_DEPTH} levels"):
        expanded({wrap: document}, what="s")


def test_accessors_return_the_parts_of_a_schema() -> None:
    schema = expanded(
        {
            "properties": {"a": PORT},
            "allOf": [{}],
            "oneOf": [PORT, {}],
            "items": [PORT],
            "additionalItems": {"type": "null"},
        },
        what="s",
    )

    assert properties(schema) == {"a": PORT}
    assert properties(schema, "patternProperties") == {}
    assert list(alternatives(schema)) == [{}, PORT, {}]
    assert [item_schema(schema, index) for index in range(3)] == [PORT, {"type": "null"}, {"type": "null"}]
    assert item_schema({"items": PORT}, 9) == PORT
    assert item_schema({}, 0) is None


@pytest.mark.parametrize(
    ("schema", "names", "nullable"),
    [
        ({}, (), False),
        ({"type": "string"}, ("string",), False),
        ({"type": ["string", "null"]}, ("string", "null"), True),
        ({"type": "string", "nullable": True}, ("string",), True),
        ({"type": "int-or-string"}, ("integer", "string"), False),
        ({"type": "string", "format": "int-or-string"}, ("integer", "string"), False),
        ({"x-kubernetes-int-or-string": True, "nullable": True}, ("integer", "string"), True),
        ({"x-kubernetes-int-or-string": False, "type": "object"}, ("object",), False),
    ],
)
def test_types_and_nullability_of_a_schema_are_read(schema: JsonObject, names: tuple[str, ...], nullable: bool) -> None:
    assert (types(schema), is_nullable(schema)) == (names, nullable)


@given(schemas)
def test_expanding_a_schema_is_idempotent(document: JsonObject) -> None:
    once = expanded(document, what="s")

    assert expanded(once, what="s") == once


@given(json_values())
def test_any_document_is_expanded_or_refused(document: JsonValue) -> None:
    try:
        expanded(document, what="s")
    except SchemaError as error:
        assert str(error).startswith("s: ")


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_the_number_of_alternatives_is_limited(keyword: str) -> None:
    branches: list[JsonValue] = [{"type": "string"}] * MAX_BRANCHES
    expanded({keyword: branches}, what="schema")
    with pytest.raises(
        SchemaError, match=f"schema: {keyword}: has {MAX_BRANCHES + 1} alternatives; the limit is {MAX_BRANCHES}"
    ):
        expanded({"properties": {"b": {}}, keyword: [*branches, {}]}, what="schema")

    most: JsonObject = {f"p{number}": {keyword: branches} for number in range(MAX_ALL_BRANCHES // MAX_BRANCHES)}
    expanded({"properties": most}, what="schema")
    with pytest.raises(SchemaError, match=f"more than {MAX_ALL_BRANCHES} alternatives"):
        expanded({"properties": {**most, "more": {keyword: branches}}}, what="schema")
