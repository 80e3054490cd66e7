"""Messages for values that do not match a shape, with their path."""

import pytest

from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.config.shapes import Flag, Forbidden, ListOf, MapOf, Record, Shape, Text, Whole, problems, whole


@pytest.mark.parametrize(
    ("value", "shape", "found"),
    [
        ("a", Text(), []),
        ("", Text(), []),
        ("", Text(filled=True), ["p is required"]),
        (None, Text(), ['p must be of type string: "null"']),
        ("c", Text(("a", "b")), ["p should be one of [a b]"]),
        (True, Flag(), []),
        (0, Flag(), ['p must be of type boolean: "number"']),
        (3, Whole(), []),
        (3.0, Whole(), []),
        (3.5, Whole(), ['p must be of type integer: "number"']),
        (True, Whole(), ['p must be of type integer: "boolean"']),
        (-1, Whole(range(2)), ["p should be from 0 to 1"]),
        (2**63, Whole(), [f"p should be from {-(2**63)} to {2**63 - 1}"]),
        ([], ListOf(Text()), []),
        ([], ListOf(Text(), least=1), ["p should have at least 1 items"]),
        (["a", "b"], ListOf(Text(), most=1), ["p should have at most 1 items, has 2"]),
        (["a", 1, {}], ListOf(Text()), ['p must be of type string: "number"', 'p must be of type string: "object"']),
        ({}, ListOf(Text()), ['p must be of type array: "object"']),
        ({"k": "v"}, MapOf(Text()), []),
        ({"k": []}, MapOf(Text()), ['p.k must be of type string: "array"']),
        ("k=v", MapOf(Text()), ['p must be of type object: "string"']),
        ({}, Record({"a": Text()}, required=("a",)), ["p.a is required"]),
        ({"b": 1}, Record({"a": Text()}), ["p.b is a forbidden property"]),
        ({"b": 1}, Record({"a": Text()}, free=True), []),
        ({}, Record({"a": Text()}, least=1), ["p should have at least 1 properties"]),
        ([], Record({}), ['p must be of type object: "array"']),
        (1, Forbidden("it belongs elsewhere"), ["p is a forbidden property: it belongs elsewhere"]),
    ],
)
def test_mismatches_of_values_and_shapes_are_described(value: JsonValue, shape: Shape, found: list[str]) -> None:
    assert list(problems(value, shape, "p")) == found


def test_problems_of_the_document_itself_name_no_path() -> None:
    shape = Record({"a": Text()}, required=("a",), least=1)
    assert list(problems([], shape)) == ['it must be of type object: "array"']
    assert list(problems({}, shape)) == ["a is required", "it should have at least 1 properties"]
    assert list(problems({"x": 1}, shape)) == ["x is a forbidden property", "a is required"]


def test_long_unknown_keys_are_truncated() -> None:
    (problem,) = problems({"k" * 1000: 1}, Record({}))
    assert problem == "k" * 60 + "… is a forbidden property"


@pytest.mark.parametrize(
    ("value", "number"), [(1, 1), (-2.0, -2), (1.5, None), (True, None), ("1", None), (None, None)]
)
def test_only_integral_numbers_are_whole(value: JsonValue, number: int | None) -> None:
    assert whole(value) == number
