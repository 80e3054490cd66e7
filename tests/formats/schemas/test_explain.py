"""Explanations of why a value is invalid. Each has at least one problem and at most ``limit`` of them.

This holds whatever errors the two libraries (jsonschema and jsonschema-rs) return.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.schemas import schemas, values
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.conversion import Converted
from wharfinger.formats.schemas.explain import _Explanation, explain
from wharfinger.formats.schemas.openapi_schema import compile_schema


def explained(document: JsonObject, value: JsonValue, limit: int = 20) -> list[str]:
    schema = compile_schema(document, what="s")
    secrets = schema.write_only_paths(value)
    return list(map(str, explain(schema._converted, schema._decider, value, secrets, limit)))


def decided(document: JsonObject, value: JsonValue, limit: int = 20) -> list[str]:
    """Return the problems that `explain` derives from the errors of jsonschema-rs, which it does only if jsonschema finds no
    error.
    """
    schema = compile_schema(document, what="s")
    explanation = _Explanation(schema._converted, schema.write_only_paths(value), limit)
    return list(map(str, explanation.of_decisions(schema._decider.iter_errors(value), value)))


@pytest.mark.parametrize(
    ("document", "value", "problem"),
    [
        ({"properties": {"a": {"writeOnly": True, "required": ["b"]}}}, {"a": {"b2": 1}}, "a.b: is required"),
        (
            {"properties": {"a": {"writeOnly": True, "additionalProperties": {"required": ["b"]}}}},
            {"a": {"key": {}}},
            "a: lacks a required member",
        ),
        (
            {"properties": {"a": {"writeOnly": True, "additionalProperties": {"type": "string"}}}},
            {"a": {"key": 1}},
            "a: expected a string, found an integer",
        ),
        (
            {"properties": {"a": {"writeOnly": True, "additionalProperties": False}}},
            {"a": {"key": 1}},
            "a: has a member that is not a known setting; none are known here",
        ),
        (
            {"properties": {"a": {"writeOnly": True, "oneOf": [{"required": ["b"]}, {"required": ["c"]}]}}},
            {"a": {}},
            "a: fits none of 2 alternatives: b: is required; or c: is required",
        ),
        ({"properties": {"a": False}}, {"a": 1}, "a: is not allowed here"),
        ({"items": [{}], "additionalItems": False}, [1, 2], "has more items than are allowed"),
        (
            {"allOf": [{"anyOf": [{"minItems": 1}, {"const": 1}]}]},
            [],
            "fits none of 2 alternatives: must have at least 1 item, has 0; or must be 1",
        ),
    ],
)
def test_each_kind_of_problem_is_explained(document: JsonObject, value: JsonValue, problem: str) -> None:
    assert explained(document, value) == [problem]


@given(schemas, values, st.integers(1, 3))
def test_explanations_of_both_engines_have_problems_within_the_limit(
    document: JsonObject, value: JsonValue, limit: int
) -> None:
    if not compile_schema(document, what="s").problems(value):
        return

    by_jsonschema = explained(document, value, limit)
    by_decider = decided(document, value, limit)

    assert 1 <= len(by_jsonschema) <= limit
    assert 1 <= len(by_decider) <= limit
    assert "does not fit the schema" not in "".join(by_decider)


@pytest.mark.parametrize(
    ("document", "value", "problems"),
    [
        ({"properties": {"n": {"maximum": 3}}}, {"n": 4}, ["n: must be at most 3, found 4"]),
        (
            {"properties": {"password": {"maxLength": 3}}},
            {"password": "hunter2"},
            ["password: must have at most 3 characters"],
        ),
        (
            {"properties": {"a": {"writeOnly": True, "oneOf": [{}, {}]}}},
            {"a": "hunter2"},
            ["a: the value is valid under more than one"],
        ),
        ({"required": ["a", "b"]}, {}, ["a: is required", "b: is required"]),
        (
            {"additionalProperties": False},
            {"a": 1, "b": 2},
            ["a: is not a known setting; none", "b: is not a known setting; none"],
        ),
        (
            {"items": {"properties": {"name": {}}, "additionalProperties": False}},
            [{"nmae": 1}],
            ["[0].nmae: is not a known setting; known: name; did you mean name?"],
        ),
        ({"properties": {"a": False}}, {"a": 1}, ["a: is not allowed here"]),
        ({"pattern": "[[]x"}, "y", ['must match [[]x, found "y"']),
        ({"items": {"type": "string"}}, [1] * 50, [f"[{n}]: expected a string, found an integer" for n in range(20)]),
    ],
)
def test_errors_of_the_deciding_engine_become_problems(
    document: JsonObject, value: JsonValue, problems: list[str]
) -> None:
    found = decided(document, value)

    assert len(found) == len(problems)
    assert all(text.startswith(expected) for text, expected in zip(found, problems, strict=True))


def test_a_problem_is_reported_even_if_the_engines_disagree() -> None:
    schema = compile_schema({"type": "string"}, what="s")

    agreed = explain(Converted({}, {}), schema._decider, 5, (), 20)
    nobody = explain(Converted({}, {}), schema._decider, "fits", (), 20)

    assert [str(problem) for problem in agreed] == ["expected a string, found an integer"]
    assert [str(problem) for problem in nobody] == ["does not fit the schema"]


def test_a_keyword_without_its_own_message_is_reported() -> None:
    schema = compile_schema({}, what="s")

    found = explain(Converted({"contains": {"type": "string"}}, {}), schema._decider, [1], (), 20)

    assert [str(problem) for problem in found] == ["does not fit the schema"]
