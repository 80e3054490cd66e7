"""JSON patches and merge patches, applied as the kube-apiserver's library applies them."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.kube.server_patch import OperationError, json_patched, merge_patched

DOCUMENT: JsonObject = {"b": {"y": 1, "x": [1, 2, 3]}, "a": "t"}


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "replace", "path": "/b/z", "value": 2}, {"a": "t", "b": {"x": [1, 2, 3], "y": 1, "z": 2}}),
        ({"op": "add", "path": "/c"}, {**DOCUMENT, "c": None}),
        ({"op": "add", "path": "/b/x/-1", "value": 9}, {"a": "t", "b": {"y": 1, "x": [1, 2, 3, 9]}}),
        ({"op": "add", "path": "/b/x/-", "value": 9}, {"a": "t", "b": {"y": 1, "x": [1, 2, 3, 9]}}),
        ({"op": "replace", "path": "/b/x/+01", "value": 9}, {"a": "t", "b": {"y": 1, "x": [1, 9, 3]}}),
        ({"op": "remove", "path": "/b/x/-3"}, {"a": "t", "b": {"y": 1, "x": [2, 3]}}),
        ({"op": "move", "from": "/b/x/0", "path": "/c~1~0"}, {"a": "t", "b": {"y": 1, "x": [2, 3]}, "c/~": 1}),
        ({"op": "copy", "from": "/nope", "path": "/c"}, {**DOCUMENT, "c": None}),
        ({"op": "test", "path": "/nope", "value": None}, DOCUMENT),
        ({"op": "test", "path": "", "value": DOCUMENT}, DOCUMENT),
        ({"op": "replace", "path": "", "value": [1]}, [1]),
    ],
)
def test_operations_change_the_document(operation: JsonObject, result: JsonValue) -> None:
    assert json_patched(DOCUMENT, [operation]) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "zap", "path": "/a"},
        {"op": "add", "value": 1},
        {"op": "add", "path": "", "value": 1},
        {"op": "add", "path": "/nope/x", "value": 1},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "add", "path": "/b/x/9", "value": 1},
        {"op": "add", "path": "/b/x/one", "value": 1},
        {"op": "remove", "path": "/nope"},
        {"op": "remove", "path": "/b/x/3"},
        {"op": "replace", "path": "", "value": 5},
        {"op": "test", "path": "/b/y", "value": 1.0},
        {"op": "test", "path": "/a/b/c", "value": 1},
        {"op": "move", "from": "/b", "path": "/b/c"},
        {"op": "add", "path": "/x" * 300, "value": 1},
    ],
)
def test_impossible_operations_are_refused(operation: JsonObject) -> None:
    with pytest.raises(OperationError):
        json_patched(DOCUMENT, [operation])


def test_the_size_of_copies_is_limited() -> None:
    twice: JsonObject = {"op": "copy", "from": "/b", "path": "/b/x/-"}
    with pytest.raises(OperationError):
        json_patched(DOCUMENT, [twice] * 40)


def test_the_depth_is_limited() -> None:
    deep: JsonValue = 1
    for _ in range(150):
        deep = [deep]
    with pytest.raises(OperationError):
        json_patched({"a": {"b": deep}}, [{"op": "copy", "from": "/a/b", "path": "/a/b" + "/0" * 150}])


def test_objects_on_the_path_are_sorted() -> None:
    assert list(merge_patched(DOCUMENT, {"c": {"z": 1, "d": None}})) == ["a", "b", "c"]
    assert merge_patched(DOCUMENT, {"b": {"y": None, "x": {"q": None}}, "a": {"n": [None]}}) == {
        "a": {"n": [None]},
        "b": {"x": {}},
    }


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "add", "path": "/b/a", "value": 0}],
        [{"op": "replace", "path": "/b/a", "value": 0}],
        [{"op": "copy", "from": "/b/y", "path": "/b/a"}],
    ],
)
def test_objects_on_the_paths_of_operations_are_sorted(operations: list[JsonObject]) -> None:
    patched = json_patched({**DOCUMENT, "c": {"z": 1, "d": 1}}, operations)

    assert isinstance(patched, dict)
    assert [list(patched), list(find_object(patched, "b")), list(find_object(patched, "c"))] == [
        ["a", "b", "c"],
        ["a", "x", "y"],
        ["z", "d"],
    ]


def test_moved_values_have_a_limited_depth() -> None:
    deep: JsonValue = 1
    for _ in range(150):
        deep = [deep]
    with pytest.raises(OperationError):
        json_patched({"a": deep, "b": deep}, [{"op": "move", "from": "/b", "path": f"/a{'/0' * 150}"}])
