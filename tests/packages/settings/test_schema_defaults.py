"""Defaults in a schema that do not match the schema itself."""

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.packages.settings.schema_defaults import MAX_PROBLEMS, schema_default_problems


def problems(**properties: JsonObject) -> list[str]:
    document: JsonObject = {"type": "object", "properties": dict(properties)}
    return [str(each.problem) for each in schema_default_problems(compile_schema(document, what="the schema"))]


def test_defaults_that_fit_their_schemas_have_no_problems() -> None:
    assert problems(
        who={"type": "string", "default": "world"},
        port={"type": "integer", "minimum": 9, "default": 9},
        database={"type": "object", "default": {}, "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}},
        nothing={"type": "string", "nullable": True, "default": None},
    ) == []  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string", "default": 5}, "x: its default is refused by its schema: expected a string, found an integer"),
        ({"type": "integer", "minimum": 9, "default": 5}, "x: its default is refused by its schema: "),
        ({"type": "object", "properties": {"y": {"enum": ["a"], "type": "string", "default": "b"}}}, "x.y: its default "),
        ({"type": "array", "items": {"type": "object", "properties": {"y": {"type": "boolean", "default": 1}}}}, "x[].y: its "),
        ({"type": "object", "additionalProperties": {"type": "object", "properties": {"y": {"type": "string", "default": 1}}}},
         "x.*.y: its default "),
        ({"type": "object", "default": {}, "required": ["host"], "properties": {"host": {"type": "string"}}}, "x: its default "),
    ],
)  # fmt: skip
def test_a_default_that_its_schema_refuses_is_reported(schema: JsonObject, problem: str) -> None:
    (found,) = problems(x=schema)
    assert found.startswith(problem)


def test_a_secret_default_is_not_quoted() -> None:
    (found,) = problems(x={"type": "string", "writeOnly": True, "maxLength": 3, "default": "planted-value"})
    assert "planted-value" not in found


def test_the_number_of_reported_defaults_is_bounded() -> None:
    refused: JsonObject = {"type": "string", "default": 1}
    assert len(problems(**dict.fromkeys((f"p{number}" for number in range(50)), refused))) == MAX_PROBLEMS
