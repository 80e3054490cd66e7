import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.pointers import pointer_of, pointer_steps
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, encode_json
from wharfinger.kube.json_patch import (
    MAX_COPIED,
    MAX_OPERATIONS,
    JsonPatchError,
    JsonPatchFailedError,
    apply_json_patch,
    list_index,
    value_at,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
POINTERS = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "", "~0", "~1", "9" * 30]), max_size=3).map(
    lambda steps: "".join(f"/{step}" for step in steps)
)
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": POINTERS},
    optional={"from": POINTERS, "value": VALUES},
)


@pytest.mark.parametrize(
    ("target", "operation", "result"),
    [  # RFC 6902, appendix A, and cases that follow from §4
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
def test_operations_change_a_copy(target: JsonValue, operation: dict[str, JsonValue], result: JsonValue) -> None:
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
def test_impossible_operations_are_refused(operation: JsonValue) -> None:
    with pytest.raises(JsonPatchFailedError):
        apply_json_patch({"list": [1, 2], "text": "t"}, [operation])


def test_the_number_of_operations_is_limited() -> None:
    test: JsonValue = {"op": "test", "path": "", "value": {}}

    assert apply_json_patch({}, [test] * MAX_OPERATIONS) == {}
    with pytest.raises(JsonPatchError, match="allowed maximum operations in a JSON patch is 10000, got 10001"):
        apply_json_patch({}, [test] * (MAX_OPERATIONS + 1))


@pytest.mark.parametrize(
    ("operation", "said", "missing"),
    [
        ({"op": "remove", "path": "/a~1b/c"}, "operation 1 (remove /a~1b/c): path /a~1b does not exist", True),
        ({"op": "replace", "path": "/l/1", "value": 1}, "operation 1 (replace /l/1): path /l/1 does not exist", True),
        ({"op": "move", "path": "/x", "from": "/y"}, "operation 1 (move /x): path /y does not exist", True),
        (
            {"op": "move", "path": "/a/b", "from": "/a"},
            "operation 1 (move /a/b): /a cannot be moved into itself",
            False,
        ),
        ({"op": "test", "path": "/a", "value": 2}, "operation 1 (test /a): the value differs", False),
        ({"op": "add", "path": "/a"}, "operation 1 (add /a): it has no value", False),
        ({"op": "add", "value": 1}, "operation 1 (add): it has no 'path'", False),
        (
            {"op": "add", "path": "a"},
            "operation 1 (add a): path: 'a' is not a JSON pointer; expected a leading /",
            False,
        ),
        (
            {"path": "/a"},
            "operation 1 (/a): '' is not an operation; expected add, remove, replace, move, copy or test",
            False,
        ),
        ({"op": 5, "path": 6}, "operation 1: op: expected a string, found an integer", False),
        (5, "operation 1: an operation: expected an object, found an integer", False),
    ],
)
def test_an_error_names_the_operation(operation: JsonValue, said: str, missing: bool) -> None:
    with pytest.raises(JsonPatchFailedError) as caught:
        apply_json_patch({"a": {}, "l": [1]}, [{"op": "test", "path": "/l/0", "value": 1}, operation])

    assert (str(caught.value), caught.value.index, caught.value.missing) == (said, 1, missing)
    assert isinstance(caught.value, FormatError)


def test_copying_a_list_into_itself_repeatedly_is_refused() -> None:
    bomb: list[JsonValue] = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(100)]

    with pytest.raises(JsonPatchFailedError, match=f"copies add up to more than {MAX_COPIED} bytes"):
        apply_json_patch({"a": ["x"]}, bomb)


def test_long_strings_and_names_count_as_copied() -> None:
    copy: JsonValue = {"op": "copy", "from": "/a", "path": "/b"}

    values: list[JsonValue] = ["x" * (MAX_COPIED // 3), {"x" * (MAX_COPIED // 3): 1}]
    for value in values:
        apply_json_patch({"a": value}, [copy])
        with pytest.raises(JsonPatchFailedError, match=r"^operation 2 .*copies add up"):
            apply_json_patch({"a": value}, [copy, copy, copy])


def test_moving_deeper_repeatedly_is_refused() -> None:
    there_and_back: list[JsonValue] = [
        {"op": "move", "from": "/a", "path": "/b/c"},
        {"op": "move", "from": "/b/c", "path": "/a"},
    ]

    with pytest.raises(JsonPatchFailedError, match="copies add up"):
        apply_json_patch({"a": [0] * 10_000, "b": {}}, there_and_back * (MAX_OPERATIONS // 2))


def test_the_depth_of_the_result_is_limited() -> None:
    deeper: list[JsonValue] = [{"op": "add", "path": "/a" * depth, "value": {}} for depth in range(1, MAX_DEPTH)]
    deepest = apply_json_patch({}, deeper)
    inside: JsonObject = {"op": "add", "path": "/a" * MAX_DEPTH, "value": {}}

    encode_json(apply_json_patch(deepest, [{**inside, "value": 1}]))
    with pytest.raises(JsonPatchFailedError, match=f"more than {MAX_DEPTH} nested levels"):
        apply_json_patch(deepest, [inside])
    with pytest.raises(JsonPatchFailedError, match="path is deeper than"):
        apply_json_patch({}, [{"op": "add", "path": "/a" * (MAX_DEPTH + 1), "value": 1}])
    with pytest.raises(JsonPatchFailedError, match="leads to more than"):
        apply_json_patch(deepest, [{"op": "copy", "from": "", "path": "/b"}])
    with pytest.raises(JsonPatchFailedError, match="leads to more than"):
        apply_json_patch(
            deepest, [{"op": "add", "path": "/b", "value": {}}, {"op": "move", "from": "/a", "path": "/b/c"}]
        )
    with pytest.raises(JsonPatchError, match="the document to be patched has more than"):
        apply_json_patch([deepest], [])


def test_the_result_shares_nothing_with_its_inputs() -> None:
    target: JsonValue = {"a": {"b": []}}
    value: JsonValue = [1]

    patched = apply_json_patch(
        target, [{"op": "add", "path": "/c", "value": value}, {"op": "copy", "from": "/c", "path": "/d"}]
    )

    assert patched == {"a": {"b": []}, "c": [1], "d": [1]}
    assert isinstance(patched, dict)
    for name in ("c", "d"):
        inner = patched[name]
        assert isinstance(inner, list)
        inner.append(name)
    assert patched == {"a": {"b": []}, "c": [1, "c"], "d": [1, "d"]}
    assert (target, value) == ({"a": {"b": []}}, [1])


def test_operations_are_applied_in_order() -> None:
    patch: list[JsonValue] = [
        {"op": "add", "path": "/a", "value": []},
        {"op": "add", "path": "/a/-", "value": 1},
        {"op": "test", "path": "/a/0", "value": 1},
    ]

    assert apply_json_patch({}, patch) == {"a": [1]}


@given(VALUES, VALUES)
def test_replacing_the_whole_document_returns_the_value(target: JsonValue, value: JsonValue) -> None:
    assert apply_json_patch(target, [{"op": "add", "path": "", "value": value}]) == value


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=3), st.text(max_size=4), VALUES)
def test_an_added_value_can_be_tested_and_removed(target: dict[str, JsonValue], name: str, value: JsonValue) -> None:
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


@given(VALUES, st.lists(OPERATIONS | VALUES, max_size=6))
def test_any_patch_is_applied_or_refused(target: JsonValue, patch: list[JsonValue]) -> None:
    before = json.dumps([target, patch])
    try:
        patched = apply_json_patch(target, patch)
    except JsonPatchError:
        patched = None
    assert json.dumps([target, patch]) == before
    encode_json(patched)


@given(st.lists(st.text(max_size=4), max_size=5))
def test_pointers_are_split_into_steps(steps: list[str]) -> None:
    assert pointer_steps(pointer_of(steps)) == tuple(steps)


@pytest.mark.parametrize(
    ("path", "found", "value"),
    [
        ((), True, {"a": [1, None], "01": 2}),
        (("a", "0"), True, 1),
        (("a", "1"), True, None),
        (("01",), True, 2),
        (("a", "2"), False, None),
        (("a", "-"), False, None),
        (("a", "00"), False, None),
        (("a", "\u0661"), False, None),
        (("a", "9" * 5_000), False, None),
        (("a", "0", "x"), False, None),
        (("b",), False, None),
    ],
)
def test_values_are_found_by_their_paths(path: tuple[str, ...], found: bool, value: JsonValue) -> None:
    assert value_at({"a": [1, None], "01": 2}, path) == (found, value)


def test_indexes_of_a_list_are_parsed() -> None:
    assert [list_index(step, 2) for step in ("0", "2", "3", "-", "", "02", "+1", " 1")] == [0, 2, *[None] * 6]
    assert list_index("0", -1) is None
