"""Compiled schemas: valid values, and problems of invalid ones. No schema hangs or reveals secrets."""

import copy
import threading
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.schemas import schemas, structural, values
from tests.formats.support.values import json_values
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, ShapeError, canonical_json
from wharfinger.formats.schemas.document import SchemaError
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.schemas.transforms import closed

SETTINGS: Final[JsonObject] = {
    "type": "object",
    "required": ["host"],
    "properties": {
        "host": {"type": "string", "pattern": "^[a-z.]+$"},
        "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2},
        "mode": {"type": "string", "enum": ["Fast", "Slow"], "nullable": True},
        "sets": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "minLength": 2},
                    "port": {"x-kubernetes-int-or-string": True},
                    "weight": {"type": "integer", "default": 5},
                },
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "password": {"type": "string", "writeOnly": True, "minLength": 8},
    },
}


def said(document: JsonObject, value: JsonValue) -> list[str]:
    return [str(problem) for problem in compile_schema(document, what="schema").problems(value)]


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({"host": "a.b"}, []),
        ({"host": "a", "mode": None, "sets": [{"name": "ab", "port": "80"}, {"name": "cd", "port": 80}]}, []),
        ({}, ["host: is required"]),
        (None, ["expected an object, found null"]),
        ({"host": "A"}, ['host: must match ^[a-z.]+$, found "A"']),
        ({"host": 5}, ["host: expected a string, found an integer"]),
        ({"host": "a", "replicas": 0}, ["replicas: must be at least 1, found 0"]),
        ({"host": "a", "replicas": None}, ["replicas: expected an integer, found null"]),
        (
            {"host": "a", "mode": "fsat"},
            ['mode: must be one of "Fast", "Slow", null, found "fsat"; did you mean "Fast"?'],
        ),
        (
            {"host": "a", "sets": [{"name": "ab"}, {"name": "b", "port": True, "nmae": 1}]},
            [
                "sets[1].name: must have at least 2 characters, has 1",
                "sets[1].port: expected an integer or a string, found a boolean",
                "sets[1].nmae: is not a known setting; known: name, port, weight; did you mean name?",
            ],
        ),
        ({"host": "a", "labels": {"a/b": 1}}, ['labels["a/b"]: expected a string, found an integer']),
        (
            {"host": "a", "Replicas": 1},
            ["Replicas: is not a known setting; known: host, replicas, mode, sets, labels, "],
        ),
    ],
)
def test_problems_have_the_path_and_the_expectation(value: JsonValue, problems: list[str]) -> None:
    found = said(closed(SETTINGS), value)

    assert len(found) == len(problems)
    for text, expected in zip(found, problems, strict=True):
        assert text.startswith(expected)


def test_no_message_contains_a_secret() -> None:
    document = closed(SETTINGS)

    secrets: list[JsonValue] = ["hunter2", ["hunter2"], {"hunter2": "hunter2"}]
    for value in secrets:
        texts = said(document, {"host": "a", "password": value})
        assert texts
        assert "hunter2" not in "".join(texts)
    assert said(document, {"host": "a", "password": "short"}) == ["password: must have at least 8 characters"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "enum": ["a"]},
        {"type": "string", "pattern": "^a$"},
        {"type": "string", "format": "ipv4"},
        {"type": "string", "maxLength": 2},
        {"type": "integer"},
        {"const": "a"},
        {"not": {"type": "string"}},
        {"anyOf": [{"enum": ["a"]}, {"pattern": "^b$"}]},
        {"oneOf": [{"type": "string"}, {"minLength": 1}]},
        {"allOf": [{"maxLength": 1}]},
        {"type": "object", "properties": {"a": {"enum": [1]}}},
    ],
)
@pytest.mark.parametrize("around", ["property", "map", "item", "branch", "key"])
def test_no_problem_of_a_secret_contains_its_value(schema: JsonObject, around: str) -> None:
    secret: JsonObject = {**schema, "writeOnly": True}
    documents: dict[str, tuple[JsonObject, JsonValue]] = {
        "property": ({"properties": {"a": secret}}, {"a": "hunter2"}),
        "map": ({"additionalProperties": secret}, {"a": "hunter2"}),
        "item": ({"items": secret}, ["hunter2"]),
        "branch": ({"anyOf": [{"properties": {"a": secret}}, {"required": ["b"]}]}, {"a": "hunter2"}),
        "key": ({"properties": {"password": schema}}, {"password": "hunter2"}),
    }
    document, value = documents[around]

    texts = said(document, value)

    assert texts
    assert "hunter2" not in "".join(texts)


@given(st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(schemas, min_size=1, max_size=3))
def test_no_generated_schema_reveals_a_secret(keyword: str, branches: list[JsonObject]) -> None:
    branches_json: list[JsonValue] = list(branches)
    document: JsonObject = {"type": "object", "additionalProperties": {keyword: branches_json, "writeOnly": True}}
    schema = compile_schema(document, what="schema")

    secrets: list[JsonValue] = ["hunter2", {"hunter2": ["hunter2"], "zz": "hunter2"}, ["hunter2", {"a": "hunter2"}]]
    for value in secrets:
        assert "hunter2" not in "".join(map(str, schema.problems({"member": value})))


@pytest.mark.parametrize(
    ("document", "value", "problem"),
    [
        (
            {"properties": {"to": {"oneOf": [{"required": ["s3"]}, {"required": ["disk"]}]}}},
            {"to": {}},
            "to: fits none of 2 alternatives: s3: is required; or disk: is required",
        ),
        (
            {"properties": {"to": {"oneOf": [{"required": ["s3"]}, {"required": ["disk"]}]}}},
            {"to": {"s3": 1, "disk": 1}},
            "to: fits more than one of 2 alternatives, and may fit only one",
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "object", "required": ["name"]}]},
            {},
            "name: is required",
        ),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, [], "expected a string or an integer, found a list"),
        (
            {"anyOf": [{"type": "string", "nullable": True}, {"type": "integer"}]},
            [],
            "expected a string or null or an integer, found a list",
        ),
        (
            {"items": {"anyOf": [{"maxLength": 1}, {"pattern": "^a"}, {"minLength": 3}, {"enum": ["c"]}]}},
            ["xx"],
            (
                '[0]: fits none of 4 alternatives: must have at most 1 character, has 2; or must match ^a, found "xx"; '
                "or must have at least 3 characters, has 2"
            ),
        ),
        (
            {"nullable": True, "anyOf": [{"type": "string"}, {"type": "integer"}]},
            True,
            "expected a string or an integer, found a boolean",
        ),
    ],
)
def test_problems_of_alternatives_are_explained(document: JsonObject, value: JsonValue, problem: str) -> None:
    assert said(document, value) == [problem]


def test_the_number_of_problems_is_limited() -> None:
    schema = compile_schema({"items": {"type": "string"}}, what="schema")

    assert len(schema.problems([1] * 100)) == 20
    assert schema.problems([1] * 100, limit=2) == (
        Problem("[0]", "expected a string, found an integer"),
        Problem("[1]", "expected a string, found an integer"),
    )
    assert len(schema.problems([1], limit=0)) == 1


def test_patterns_never_backtrack() -> None:
    schema = compile_schema({"pattern": "^(a+)+$", "patternProperties": {"^(b+)+$": False}}, what="schema")

    assert schema.problems("a" * 50_000 + "!")
    assert schema.problems({"b" * 50_000: 1})


def test_values_that_are_too_deep_are_problems() -> None:
    schema = compile_schema({"type": "object", "additionalProperties": {"type": "object"}}, what="schema")
    deep: JsonValue = []
    for _ in range(5_000):
        deep = {"a": deep}

    assert schema.problems([deep]) == (Problem("", f"is nested deeper than {MAX_DEPTH} levels"),)
    assert schema.problems({"a": "\ud800"}) == (Problem("a", "expected an object, found a string"),)
    text = compile_schema({"additionalProperties": {"enum": [1], "minLength": 3}, "required": ["b"]}, what="schema")
    broken: list[JsonValue] = [{"a": "\ud800"}, {"\ud800": "a"}, {"\ud800": {"\ud800": 1}, "b": 1}]
    for value in broken:
        assert "\ud800" not in "".join(map(str, text.problems(value)))
    patterns = compile_schema({"pattern": "a", "items": {"pattern": "a"}, "uniqueItems": True}, what="schema")
    broken = ["\ud800", ["b", "\ud800"], ["b", float("nan"), "b"]]
    for value in broken:
        assert patterns.problems(value) == (Problem("", "contains a value that has no JSON form"),)
    assert schema.problems(float("nan")) == (Problem("", "expected an object, found a number"),)
    with pytest.raises(ShapeError, match="nested deeper"):
        schema.defaulted(deep)


@pytest.mark.slow
@pytest.mark.unmeasured
def test_explaining_a_large_value_under_many_alternatives_is_bounded() -> None:
    alternatives: list[JsonValue] = [{"type": "object", "required": [f"r{n}"]} for n in range(200)]
    items: JsonObject = {"items": {"oneOf": alternatives}}
    fitting: JsonValue = [{"r1": 1}] * 2_000
    before: JsonObject = {"properties": {"n": {"maximum": 3}, "all": items}}
    behind: JsonObject = {"properties": {"all": items, "n": {"maximum": 3}}}

    assert said(before, {"all": fitting, "n": 3}) == []
    assert said(before, {"all": fitting, "n": 4}) == ["n: must be at most 3, found 4"]
    (problem,) = said(behind, {"all": fitting, "n": 4})
    assert problem == "does not fit the schema, which has too many alternatives to find the one that fits best"
    assert len(said(behind, {"all": [{}] * 2_000})) == 20


def test_a_schema_can_be_used_by_many_threads() -> None:
    schema = compile_schema(closed(SETTINGS), what="schema")
    expected = schema.problems({"host": "A", "sets": [{}], "x": 1})
    found: list[tuple[Problem, ...]] = []

    def ask() -> None:
        found.extend(schema.problems({"host": "A", "sets": [{}], "x": 1}) for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 80


def test_schemas_with_equal_documents_are_equal() -> None:
    assert compile_schema(SETTINGS, what="a") == compile_schema(copy.deepcopy(SETTINGS), what="b")
    assert compile_schema(SETTINGS, what="a") != compile_schema(closed(SETTINGS), what="a")
    assert "x-mine" in compile_schema({"x-mine": {"any": ["thing"]}}, what="a").document


def test_a_schema_defaults_prunes_and_finds_secrets() -> None:
    schema = compile_schema(SETTINGS, what="schema")
    value: JsonValue = {"sets": [{"name": "ab", "old": 1}], "replicas": None, "password": "x", "gone": 1}

    assert schema.defaulted(value) == {
        "sets": [{"name": "ab", "old": 1, "weight": 5}],
        "replicas": 2,
        "password": "x",
        "gone": 1,
    }
    assert schema.pruned(value) == {"sets": [{"name": "ab"}], "replicas": None, "password": "x"}
    assert schema.write_only_paths(value) == (("password",),)


@given(schemas, values)
def test_only_invalid_values_have_problems(document: JsonObject, value: JsonValue) -> None:
    schema = compile_schema(document, what="schema")
    before = copy.deepcopy((document, value))

    problems = schema.problems(value)

    assert (document, value) == before
    assert len(problems) <= 20
    assert all(problem.message for problem in problems)
    assert len(set(problems)) == len(problems)
    # The engine is called directly, because its answer must not depend on the explanation.
    assert bool(problems) != schema._decider.is_valid(value)


@given(structural, values)
def test_defaulting_is_idempotent_and_keeps_valid_values_valid(document: JsonObject, value: JsonValue) -> None:
    schema = compile_schema(document, what="schema")

    once = schema.defaulted(value)

    assert canonical_json(schema.defaulted(once)) == canonical_json(once)
    if not schema.problems(value):
        assert not schema.problems(once)


@given(structural, values)
def test_pruning_is_idempotent_and_only_removes(document: JsonObject, value: JsonValue) -> None:
    schema = compile_schema(document, what="schema")

    once = schema.pruned(value)

    assert canonical_json(schema.pruned(once)) == canonical_json(once)
    assert _is_part(once, value)


def _is_part(part: JsonValue, whole: JsonValue) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and _is_part(item, whole[name]) for name, item in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(_is_part, part, whole))
    return part == whole


@given(json_values())
def test_any_document_is_a_schema_or_a_schema_error(document: JsonValue) -> None:
    try:
        schema = compile_schema(document, what="the file")
    except SchemaError as error:
        assert str(error).startswith("the file: ")
    else:
        schema.problems({"a": 1})


@given(schemas, json_values())
def test_any_value_can_be_validated(document: JsonObject, value: JsonValue) -> None:
    schema = compile_schema(document, what="schema")

    schema.problems(value)
    schema.write_only_paths(value)
    schema.pruned(schema.defaulted(value))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "openapi/values.yaml: a schema is an object, found a list"),
        ({"type": "strin"}, "openapi/values.yaml: type: 'strin' is not a type; known: string, "),
        (
            {"properties": {"a": {"minLength": -1}}},
            "openapi/values.yaml: properties.a.minLength: expected a whole number",
        ),
        ({"maximum": float("nan")}, "openapi/values.yaml: "),
        ({"properties": {"\ud800": {"type": "string"}}}, "openapi/values.yaml: "),
    ],
)
def test_an_invalid_schema_is_refused_with_its_path(document: JsonValue, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        compile_schema(document, what="openapi/values.yaml")

    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
