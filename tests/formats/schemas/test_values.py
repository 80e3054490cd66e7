"""Defaults and pruning, with the examples of the Kubernetes documentation and of the tests of apiextensions-apiserver."""

from typing import Final

import pytest

from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, ShapeError
from wharfinger.formats.schemas import values as schema_values
from wharfinger.formats.schemas.document import ValuePath
from wharfinger.formats.schemas.values import defaulted, has_write_only, pruned, write_only_paths

FOO: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "foo": {"type": "string", "nullable": False, "default": "default"},
        "bar": {"type": "string", "nullable": True},
        "baz": {"type": "string"},
    },
}


@pytest.mark.parametrize(
    ("schema", "value", "result"),
    [
        # the example of the documentation in "Defaulting and Nullable"
        (FOO, {"foo": None, "bar": None, "baz": None}, {"foo": "default", "bar": None}),
        (FOO, {}, {"foo": "default"}),
        (FOO, {"foo": "x", "baz": "y"}, {"foo": "x", "baz": "y"}),
        ({"properties": {"a": {"default": 1, "nullable": True}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {"default": 1}}}, {"a": None}, {"a": 1}),
        ({"properties": {"a": {}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {"type": "object", "properties": {"b": {"default": 1}}}}}, {}, {}),
        ({"properties": {"a": {"type": "object", "properties": {"b": {"default": 1}}}}}, {"a": {}}, {"a": {"b": 1}}),
        (
            {"properties": {"a": {"default": {"c": 2}, "properties": {"b": {"default": 1}}}}},
            {},
            {"a": {"c": 2, "b": 1}},
        ),
        ({"additionalProperties": {"default": 7}}, {"a": None, "b": 1}, {"a": 7, "b": 1}),
        ({"additionalProperties": {"type": "string"}}, {"a": None}, {"a": None}),
        ({"additionalProperties": {"properties": {"b": {"default": 1}}}}, {"a": {}}, {"a": {"b": 1}}),
        ({"additionalProperties": True, "properties": {"a": {"default": 1}}}, {"z": {}}, {"z": {}, "a": 1}),
        ({"items": {"default": 7}}, [None, 1], [7, 1]),
        ({"items": {"properties": {"b": {"default": 1}}}}, [{}, {"b": 2}], [{"b": 1}, {"b": 2}]),
        ({"items": [{"default": 1}], "additionalItems": {"default": 2}}, [None, None], [1, 2]),
        ({"anyOf": [{"properties": {"a": {"default": 1}}}]}, {}, {}),
        ({"properties": {"a": {"type": ["string", "null"], "default": "x"}}}, {"a": None}, {"a": None}),
        ({"default": {"a": 1}}, None, {"a": 1}),
        ({"properties": {"a": {"default": 1}}}, "text", "text"),
        ({"properties": {"a": {"default": False}, "b": {"default": ""}}}, {}, {"a": False, "b": ""}),
    ],
)
def test_defaults_are_set_for_absent_values(schema: JsonObject, value: JsonValue, result: JsonValue) -> None:
    assert defaulted(value, schema) == result


def test_defaults_are_not_shared() -> None:
    schema: JsonObject = {"items": {"default": {"a": [1]}}, "additionalProperties": True}

    found = defaulted([None, None], schema)

    assert isinstance(found, list)
    for item in found:
        assert isinstance(item, dict)
        inner = item["a"]
        assert isinstance(inner, list)
        inner.append(2)
    assert found == [{"a": [1, 2]}] * 2
    assert schema["items"] == {"default": {"a": [1]}}


def test_defaults_that_multiply_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_values, "MAX_NODES", 5_000)
    schema: JsonObject = {"items": {"default": [0] * 1_000}}

    defaulted([None] * 4, schema)
    with pytest.raises(ShapeError, match="more than 5000 parts"):
        defaulted([None] * 5, schema)


@pytest.mark.parametrize("schema", [{}, {"additionalProperties": True}])
def test_nesting_is_limited(schema: JsonObject) -> None:
    value: JsonValue = 1
    for _ in range(MAX_DEPTH):
        value = {"a": value}
    pruned(value, schema)
    assert defaulted(value, schema) == value

    for work in (defaulted, pruned):
        with pytest.raises(ShapeError, match="nested deeper"):
            work({"a": value}, {"additionalProperties": True, "x-kubernetes-preserve-unknown-fields": True})


PRESERVE: Final = {"x-kubernetes-preserve-unknown-fields": True}
A: Final[JsonObject] = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "value", "result"),
    [
        (A, {"a": "x", "b": 1}, {"a": "x"}),
        (A, {"a": {"b": 1}}, {"a": {}}),
        ({"type": "object"}, {"a": 1}, {}),
        ({"type": "object", "additionalProperties": A}, {"k": {"a": "x", "b": 1}}, {"k": {"a": "x"}}),
        ({"type": "object", "additionalProperties": True}, {"k": {"b": 1}}, {"k": {"b": 1}}),
        ({"type": "object", "additionalProperties": False}, {"k": 1}, {}),
        ({"type": "array", "items": A}, [{"a": "x", "b": 1}, 5], [{"a": "x"}, 5]),
        ({"type": "array"}, [{"a": 1}, [{"b": 1}]], [{}, [{}]]),
        # "Controlling pruning" in the documentation: unknown fields are retained, but declared objects below are pruned again
        ({**A, **PRESERVE}, {"a": "x", "b": {"c": 1}}, {"a": "x", "b": {"c": 1}}),
        (
            {"properties": {"spec": {"properties": {"d": A}, **PRESERVE}}},
            {"spec": {"z": {"y": 1}, "d": {"a": "x", "b": 1}}, "gone": 1},
            {"spec": {"z": {"y": 1}, "d": {"a": "x"}}},
        ),
        ({"items": A, **PRESERVE}, [{"a": "x", "b": {"c": 1}}], [{"a": "x", "b": {"c": 1}}]),
        ({"items": {"properties": {"d": A}}, **PRESERVE}, [{"d": {"b": 1}, "e": 1}], [{"d": {}, "e": 1}]),
        (PRESERVE, [[{"a": 1}]], [[{"a": 1}]]),
        ({"additionalProperties": A, **PRESERVE}, {"k": {"b": 1}}, {"k": {}}),
        (
            {**A, "x-kubernetes-embedded-resource": True},
            {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "b": 1},
            {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}},
        ),
        ({"patternProperties": {"^k": {}}}, {"k": {"b": 1}}, {"k": {"b": 1}}),
        ({"anyOf": [A]}, {"a": "x"}, {}),
        (A, [{"a": 1}], [{}]),
        (A, "text", "text"),
    ],
)
def test_undeclared_fields_are_pruned(schema: JsonObject, value: JsonValue, result: JsonValue) -> None:
    assert pruned(value, schema) == result


SECRET: Final[JsonObject] = {"type": "string", "writeOnly": True}


@pytest.mark.parametrize(
    ("schema", "value", "paths"),
    [
        ({"properties": {"a": SECRET, "b": {}}}, {"b": 1, "a": "x"}, [("a",)]),
        ({"properties": {"a": SECRET}}, {"a": None}, []),
        ({"properties": {"a": {"writeOnly": False}}}, {"a": "x"}, []),
        ({"properties": {"a": {"properties": {"b": SECRET}}}}, {"a": {"b": ""}}, [("a", "b")]),
        ({"properties": {"a": {**SECRET, "properties": {"b": SECRET}}}}, {"a": {"b": "x"}}, [("a",)]),
        ({"items": {"properties": {"a": SECRET}}}, [{"a": "x"}, {}, {"a": "y"}], [(0, "a"), (2, "a")]),
        ({"items": [{}, SECRET]}, ["a", "b", "c"], [(1,)]),
        ({"additionalProperties": SECRET, "properties": {"b": {}}}, {"a": "x", "b": "y"}, [("a",)]),
        ({"patternProperties": {"^z": SECRET}}, {"a": "x"}, [("a",)]),
        ({"anyOf": [{"properties": {"a": SECRET}}, {"properties": {"b": SECRET}}]}, {"a": 1, "b": 2}, [("a",), ("b",)]),
        ({"properties": {"a": {"oneOf": [{"allOf": [SECRET]}]}}}, {"a": [1]}, [("a",)]),
        ({"allOf": [{"items": SECRET}], "items": {"type": "string"}}, ["a"], [(0,)]),
        (SECRET, "x", [()]),
        ({}, {"a": 1}, []),
    ],
)
def test_paths_of_write_only_values_are_found(schema: JsonObject, value: JsonValue, paths: list[ValuePath]) -> None:
    assert list(write_only_paths(value, schema)) == paths
    assert has_write_only(schema) or not paths


def test_write_only_marks_in_alternatives_are_detected() -> None:
    assert not has_write_only({"properties": {"a": {"anyOf": [{"writeOnly": False}]}}})
    assert has_write_only({"properties": {"a": {"anyOf": [{}, SECRET]}}})


def test_secrets_of_a_large_map_under_many_alternatives_are_found() -> None:
    """A thousand schemas apply to each of ten thousand members. Each schema is visited only once."""
    branches: list[JsonValue] = [{"minLength": number} for number in range(1_000)]
    schema: JsonObject = {"additionalProperties": {"anyOf": [*branches, {"writeOnly": True}]}}
    value: JsonObject = {f"k{number}": "x" for number in range(10_000)}

    assert write_only_paths(value, schema) == tuple((name,) for name in value)


def test_a_value_too_large_to_search_is_secret_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_values, "MAX_SEARCHED", 1_000)
    secret: JsonObject = {"properties": {"a": {"writeOnly": True}}}
    branches: list[JsonValue] = [{"additionalProperties": {"minLength": number}} for number in range(300)]

    assert write_only_paths({"a": 1}, secret) == (("a",),)
    assert write_only_paths({"a": [1] * 2_000}, {"anyOf": [*branches, secret]}) == ((),)
    assert write_only_paths([1] * 2_000, {"items": secret}) == ((),)


def test_a_repeated_schema_is_visited_once() -> None:
    """A schema may contain the same part many times. If the part were visited each time, the work would double at each level."""
    shared: JsonObject = {"writeOnly": True}
    for _ in range(100):
        shared = {"anyOf": [shared, shared]}

    assert write_only_paths("x", shared) == ((),)
    assert write_only_paths(["x"], {"items": shared}) == ((0,),)


def test_wide_schemas_cost_nothing_for_empty_values() -> None:
    """A schema with ten thousand properties applies to a hundred thousand empty objects. Empty objects must not cost anything."""
    names: list[str] = [f"p{number}" for number in range(10_000)]
    schema: JsonObject = {"items": {"type": "object", "properties": {name: {"type": "string"} for name in names}}}
    value: list[JsonValue] = [{} for _ in range(100_000)]

    assert defaulted(value, schema) == value
    assert pruned(value, schema) == value
    keeping: JsonObject = {"items": [{}], "x-kubernetes-preserve-unknown-fields": True, "additionalItems": schema}
    assert pruned([{"a": {"b": 1}}, [{}, {"z": 1}], 2], keeping) == [{"a": {"b": 1}}, [{}, {"z": 1}], 2]
