import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.control_plane.json_patch import (
    MAX_OPERATIONS,
    JsonPatchError,
    JsonPatchFailedError,
    apply_json_patch,
)
from wharfinger.formats.json_value import JsonValue

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("target", "operation", "result"),
    [  # RFC 6902, appendix A, and what follows from §4
        ({"foo": "bar"}, {"op": "add", "path": "/baz", "value": "qux"}, {"baz": "qux", "foo": "bar"}),
        ({"foo": ["bar", "baz"]}, {"op": "add", "path": "/foo/1", "value": "qux"}, {"foo": ["bar", "qux", "baz"]}),
        ({"foo": ["bar"]}, {"op": "add", "path": "/foo/-", "value": ["abc"]}, {"foo": ["bar", ["abc"]]}),
        ({"foo": "bar"}, {"op": "add", "path": "/child", "value": {"g": {}}}, {"foo": "bar", "child": {"g": {}}}),
        ({"baz": "qux", "foo": "bar"}, {"op": "remove", "path": "/baz"}, {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, {"op": "remove", "path": "/foo/1"}, {"foo": ["bar", "baz"]}),
        ({"a": [{"b": 1}]}, {"op": "remove", "path": "/a/0/b"}, {"a": [{}]}),
        ({"baz": "qux"}, {"op": "replace", "path": "/baz", "value": "boo"}, {"baz": "boo"}),
        ({"a": [1, 2]}, {"op": "replace", "path": "/a/0", "value": 9}, {"a": [9, 2]}),
        ({"a": [{"b": 1}]}, {"op": "replace", "path": "/a/0/b", "value": 2}, {"a": [{"b": 2}]}),
        ({"a": 1}, {"op": "replace", "path": "", "value": {"b": 2}}, {"b": 2}),
        ({"a": {"b": 1}, "c": {}}, {"op": "move", "from": "/a/b", "path": "/c/d"}, {"a": {}, "c": {"d": 1}}),
        ({"foo": [1, 2, 3]}, {"op": "move", "from": "/foo/0", "path": "/foo/2"}, {"foo": [2, 3, 1]}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"~1": 10, "/": 9}, {"op": "test", "path": "/~01", "value": 10}, {"~1": 10, "/": 9}),
        ({"/": 9}, {"op": "test", "path": "/~1", "value": 9}, {"/": 9}),
        ({"a": [1, {"b": None}]}, {"op": "test", "path": "/a", "value": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        ({"": 1}, {"op": "remove", "path": "/"}, {}),
        ({"a": 1}, {"op": "remove", "path": ""}, None),
    ],
)
def test_operations(target: JsonValue, operation: dict[str, JsonValue], result: JsonValue) -> None:
    before = json.dumps(target)

    assert apply_json_patch(target, [operation]) == result
    assert json.dumps(target) == before


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/x"},
        {"op": "remove", "path": "/list/9"},
        {"op": "remove", "path": "/list/-"},
        {"op": "remove", "path": "/list/01"},
        {"op": "remove", "path": "/text/x"},
        {"op": "replace", "path": "/x", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/list/3", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "add", "path": "/text/x", "value": 1},
        {"op": "add", "path": "/x"},
        {"op": "add", "path": "x", "value": 1},
        {"op": "add", "value": 1},
        {"op": "test", "path": "/list", "value": [True]},
        {"op": "test", "path": "/list", "value": {}},
        {"op": "move", "path": "/a"},
        {"op": "copy", "from": "/x", "path": "/a"},
        {"op": "frobnicate", "path": "/a"},
        {"op": 5, "path": "/a"},
        {},
        "add",
    ],
)
def test_operations_that_cannot_be_done(operation: JsonValue) -> None:
    with pytest.raises(JsonPatchFailedError):
        apply_json_patch({"list": [1, 2], "text": "t"}, [operation])


def test_what_is_no_patch() -> None:
    with pytest.raises(JsonPatchError, match="a list of operations"):
        apply_json_patch({}, {"op": "add"})
    with pytest.raises(JsonPatchError, match="allowed maximum operations"):
        apply_json_patch({}, [None] * (MAX_OPERATIONS + 1))


def test_operations_are_done_in_order() -> None:
    patch: JsonValue = [
        {"op": "add", "path": "/a", "value": []},
        {"op": "add", "path": "/a/-", "value": 1},
        {"op": "test", "path": "/a/0", "value": 1},
    ]

    assert apply_json_patch({}, patch) == {"a": [1]}


@given(VALUES, VALUES)
def test_a_whole_replacement_replaces(target: JsonValue, value: JsonValue) -> None:
    assert apply_json_patch(target, [{"op": "add", "path": "", "value": value}]) == value


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=3), st.text(max_size=4), VALUES)
def test_what_was_added_can_be_tested_and_removed(target: dict[str, JsonValue], name: str, value: JsonValue) -> None:
    path = "/" + name.replace("~", "~0").replace("/", "~1")

    patched = apply_json_patch(
        target,
        [
            {"op": "add", "path": path, "value": value},
            {"op": "test", "path": path, "value": value},
            {"op": "remove", "path": path},
        ],
    )

    assert patched == {key: item for key, item in target.items() if key != name}


@given(VALUES, VALUES)
def test_any_patch_is_applied_or_refused(target: JsonValue, patch: JsonValue) -> None:
    try:
        apply_json_patch(target, patch)
    except JsonPatchError:
        return
