"""The cost of a check, which is computed in advance. The tests compare figures, and do not measure time."""

import pytest
from hypothesis import given

from tests.formats.support.schemas import schemas
from tests.formats.support.values import json_values
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.cost import MAX_COST, size, width
from wharfinger.formats.schemas.openapi_schema import compile_schema


def test_costs_of_alternatives_add_up_but_those_of_properties_do_not() -> None:
    branch: JsonObject = {"type": "string"}
    one = width({"properties": {"a": branch}})

    assert width({"properties": {f"p{n}": branch for n in range(100)}}) < 100 + 2 * one
    for keyword in ("allOf", "anyOf", "oneOf"):
        assert width({keyword: [branch] * 100}) >= 100 * width(branch)
        assert width({"additionalProperties": {keyword: [branch] * 100}}) >= 100 * width(branch)
        # The costs of alternatives for the same member add up, too.
        assert width({keyword: [{"properties": {"a": {"enum": [1.5] * 9}}}] * 100}) >= 100 * width({"enum": [1.5] * 9})
    assert width({"patternProperties": {f"p{n}": branch for n in range(100)}}) >= 100 * width(branch)
    assert width({"if": branch, "then": branch, "else": branch, "not": branch}) > 4 * width(branch)


@pytest.mark.parametrize(
    "costly",
    [
        {"pattern": "a"},
        {"format": "email"},
        {"format": "cidr"},
        {"multipleOf": 0.1},
        {"enum": [1, 2]},
        {"enum": [1.5]},
        {"const": {"a": [1]}},
        {"required": ["a", "b"]},
        {"uniqueItems": True},
        {"prefixItems": [{"pattern": "a"}]},
    ],
)
def test_expensive_keywords_cost_more_than_a_type(costly: JsonObject) -> None:
    assert width(costly) > width({"type": "string"})


def test_an_enum_of_texts_costs_less_than_a_mixed_enum() -> None:
    assert width({"enum": ["a"] * 500}) < width({"enum": ["a", 1]})


def test_the_size_of_a_value_counts_parts_and_long_texts() -> None:
    assert size(None, 10) == 1
    assert size({"a": [1, {"b": "c"}]}, 10) == 5
    assert size("x" * 1_600, 1_000) == 101
    assert size({"x" * 1_600: 1}, 1_000) == 102
    assert size([[0] * 1_000] * 1_000, 50) > 50


@given(schemas, json_values())
def test_any_schema_and_value_have_a_cost(document: JsonObject, value: JsonValue) -> None:
    assert width(document) >= 1
    assert size(value, 1_000_000) >= 1


def test_a_value_too_large_for_its_schema_is_refused_unchecked() -> None:
    branches: list[JsonValue] = [{"type": "integer"} for _ in range(250)]
    schema = compile_schema({"additionalProperties": {"anyOf": [*branches, {"type": "string"}]}}, what="schema")
    most = MAX_COST // width({"additionalProperties": {"anyOf": [*branches, {"type": "string"}]}})
    fits: JsonObject = {str(number): "x" for number in range(1_000)}
    too_large: JsonObject = {str(number): "x" for number in range(most + 1)}

    assert schema.problems(fits) == ()
    (problem,) = schema.problems(too_large)
    assert problem.path == ""
    assert problem.message.endswith(f"with this schema at most {most} can be checked")
