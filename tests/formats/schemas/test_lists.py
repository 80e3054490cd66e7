"""Lists that are declared as sets or as maps."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas import lists as schema_lists
from wharfinger.formats.schemas.document import SchemaError
from wharfinger.formats.schemas.openapi_schema import compile_schema

SET: JsonObject = {"type": "array", "x-kubernetes-list-type": "set"}
MAP: JsonObject = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name", "port"],
    "items": {"type": "object", "properties": {"tags": SET}},
}
RESOURCE: JsonObject = {"type": "object", "x-kubernetes-embedded-resource": True}


def said(schema: JsonObject, value: JsonValue) -> list[str]:
    return [str(problem) for problem in compile_schema(schema, what="s").problems(value)]


@pytest.mark.parametrize(
    ("schema", "value", "problems"),
    [
        (SET, [], []),
        (SET, [1, "1", True], []),
        (
            SET,
            [1, 2, 1, 1.0],
            ["[2]: is equal to item 0; each may occur only once", "[3]: is equal to item 0; each may occur only once"],
        ),
        (SET, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], ["[1]: is equal to item 0; each may occur only once"]),
        (MAP, [{"name": "a"}, {"name": "a", "port": 1}, {"name": "b"}], []),
        (
            MAP,
            [{"name": "a"}, {"name": "a", "other": 1}],
            ["[1]: has the same name, port as item 0; each may occur only once"],
        ),
        (MAP, [{"name": "a", "tags": [1, 1]}], ["[0].tags[1]: is equal to item 0; each may occur only once"]),
        ({"type": "array", "x-kubernetes-list-type": "atomic"}, [1, 1], []),
        ({"additionalProperties": SET}, {"x": [1, 1]}, ["x[1]: is equal to item 0; each may occur only once"]),
        ({"items": [{}, SET]}, [[1, 1], [2, 2]], ["[1][1]: is equal to item 0; each may occur only once"]),
        (RESOURCE, {"apiVersion": "v1", "kind": "Pod", "metadata": {}}, []),
        (
            RESOURCE,
            {"apiVersion": "", "metadata": []},
            [f"{name}: is required in an embedded resource" for name in ("apiVersion", "kind", "metadata")],
        ),
    ],
)
def test_duplicates_in_sets_and_map_lists_are_reported(
    schema: JsonObject, value: JsonValue, problems: list[str]
) -> None:
    assert said(schema, value) == problems


def test_problems_of_lists_follow_other_problems() -> None:
    schema: JsonObject = {"properties": {"a": {"type": "integer"}, "b": SET, "c": MAP}}
    assert said(schema, {"a": "x", "b": [1, 1], "c": ["x", "x"]}) == [
        "a: expected an integer, found a string",
        "c[0]: expected an object, found a string",
        "c[1]: expected an object, found a string",
        "b[1]: is equal to item 0; each may occur only once",
    ]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"x-kubernetes-list-type": "bag"}, "s: x-kubernetes-list-type: is not one of atomic, set, map"),
        ({"x-kubernetes-list-type": []}, "is not one of"),
        (
            {"items": {"x-kubernetes-list-type": "map"}},
            "s: items.x-kubernetes-list-map-keys: required for a list of type map",
        ),
        ({"properties": {"a": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [1]}}}, "name its keys"),
    ],
)
def test_invalid_list_declarations_are_refused(schema: JsonObject, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        compile_schema(schema, what="s")


def test_the_number_of_list_problems_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = compile_schema({"items": SET}, what="s")
    many: JsonValue = [[1, 1]] * 50
    assert len(schema.problems(many)) == 20
    assert len(schema.problems(many, limit=3)) == 3
    assert schema.problems([["\ud800"]])[0].message.endswith("no JSON form")
    monkeypatch.setattr(schema_lists, "MAX_CHECKED", 10)
    assert [str(problem) for problem in schema.problems(many)] == [
        "[0][1]: is equal to item 0; each may occur only once",
        "[1][1]: is equal to item 0; each may occur only once",
        "[2][1]: is equal to item 0; each may occur only once",
        "has more than 10 parts to be checked for duplicates",
    ]
    assert [problem.path for problem in schema.problems(many, limit=2)] == ["[0][1]", ""]
