"""The validator of jsonschema with our keywords. Its work is bounded, and it accepts the same values as jsonschema-rs."""

import pytest
from hypothesis import given

from tests.formats.support.schemas import schemas, values
from tests.formats.support.values import json_values
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.conversion import to_json_schema
from wharfinger.formats.schemas.document import expanded
from wharfinger.formats.schemas.keywords import explaining_validator, quiet
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.schemas.work import WorkError

WORK = 100_000


@given(schemas, values)
def test_the_explaining_engine_agrees_with_the_deciding_engine(document: JsonObject, value: JsonValue) -> None:
    converted = to_json_schema(expanded(document, what="s"), what="s")

    explaining = explaining_validator(converted.schema, WORK).is_valid(quiet(value))

    assert explaining == (not compile_schema(document, what="s").problems(value))


@given(json_values())
def test_a_quiet_value_equals_its_value_and_has_a_short_text(value: JsonValue) -> None:
    assert quiet(value) == value
    assert len(repr(quiet([value, value]))) < 10
    assert len(repr(quiet({"a": value}))) < 10


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        ({"required": ["a", "b"]}, {"a": 1}, [((), "b")]),
        ({"required": ["a"]}, [], []),
        (
            {"additionalProperties": False, "properties": {"a": {}}, "patternProperties": {"^b": True}},
            {"a": 1, "bb": 1, "c": 1},
            [((), "c")],
        ),
        ({"additionalProperties": {"pattern": "^x$"}}, {"a": "y"}, [(("a",), "pattern")]),
        ({"additionalProperties": False}, 5, []),
        ({"patternProperties": {"^(a+)+$": {"format": "ipv4"}}}, {"a" * 100 + "!": "x", "aa": "y"}, [(("aa",), "format")]),
        ({"patternProperties": {"a": False}}, 5, []),
        ({"pattern": "^(a+)+$"}, "a" * 100_000 + "!", [((), "pattern")]),
        ({"uniqueItems": True}, [{"a": [1]}, {"a": [1.0]}], [((), "uniqueItems")]),
        ({"uniqueItems": True}, [1, True, "1", {"a": 1}, [1]], []),
        ({"uniqueItems": False}, [1, 1], []),
        ({"multipleOf": 0.01}, 0.07, []),
        ({"multipleOf": 3}, 10**400, [((), "multipleOf")]),
        ({"multipleOf": 3}, True, []),
        ({"multipleOf": 3}, float("inf"), []),
    ],
)  # fmt: skip
def test_the_explaining_validator_checks_each_keyword(
    schema: JsonObject, value: JsonValue, errors: list[tuple[tuple[str, ...], str]]
) -> None:
    found = explaining_validator(schema, WORK).iter_errors(quiet(value))

    assert [(tuple(error.path), error.message) for error in found] == errors


def test_a_long_list_of_objects_is_compared_in_linear_time() -> None:
    value: JsonValue = [{"n": n} for n in range(50_000)]

    assert explaining_validator({"uniqueItems": True}, WORK).is_valid(quiet(value))


@pytest.mark.parametrize(
    ("schema", "value", "work"),
    [
        ({"anyOf": [{"minimum": n} for n in range(9, 0, -1)]}, 1, 1 + 9 * 6 + 9),
        ({"properties": {str(n): {} for n in range(9)}}, {}, 10),
        ({"enum": list(range(9))}, 1, 10),
        ({"items": {"type": "string"}}, ["a", "b"], 6),
        ({"multipleOf": 2}, 4, 6),
    ],
)
def test_a_validation_over_the_work_limit_fails(schema: JsonObject, value: JsonValue, work: int) -> None:
    assert explaining_validator(schema, work).is_valid(quiet(value))
    with pytest.raises(WorkError):
        explaining_validator(schema, work - 1).is_valid(quiet(value))
