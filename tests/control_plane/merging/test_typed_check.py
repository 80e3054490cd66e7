"""The check that a document matches the types of its kind."""

import pytest

from wharfinger.control_plane.kinds.type_shapes import builtin_list_types, crd_list_types
from wharfinger.control_plane.merging.typed_check import type_problems
from wharfinger.formats.json.value import JsonObject

POD = builtin_list_types("", "v1", "Pod")
SETS = crd_list_types(
    {
        "type": "object",
        "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k", "l"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "l": {"type": "string"}}},
            },
        },
    }
)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"priority": "x"}, ".spec.priority: expected numeric (int or float), got string"),
        ({"hostname": {"a": [1, None]}}, 'Value:map[string]interface {}{"a":[]interface {}{1, interface {}(nil)}}}'),
        ({"hostIPC": [1]}, ".spec.hostIPC: expected boolean, got &{[1]}"),
        ({"containers": 5}, ".spec.containers: expected list, got &{5}"),
        ({"containers": [None]}, ".spec.containers: element 0: associative list with keys may not have a null element"),
        ({"overhead": {"cpu": {}}}, ".spec.overhead.cpu: expected any scalar, got &{map[]}"),
        ({"tolerations": [{"x": 1}]}, ".spec.tolerations[0].x: field not declared in schema"),
    ],
)  # fmt: skip
def test_fields_of_a_wrong_type_are_reported(spec: JsonObject, problem: str) -> None:
    (found,) = type_problems({"spec": spec}, POD)
    assert problem in found


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ({"set": [{}]}, "an element that's a map type"),
        ({"set": [[]]}, "with lists as elements"),
        ({"set": [None]}, "an explicit null"),
        ({"set": ["a", "a"]}, '.set: duplicate entries for key [="a"]'),
        ({"map": [{"x": 1}]}, 'omits all key fields ["k" "l"]'),
        ({"map": ["x"]}, "may not have non-map elements"),
    ],
)
def test_invalid_sets_and_keyed_lists_are_reported(obj: JsonObject, words: str) -> None:
    assert words in next(type_problems(obj, SETS))


def test_valid_values_have_no_problems() -> None:
    assert list(type_problems({"spec": {"containers": [{"image": "i"}], "hostname": None}}, POD)) == []
