"""Field sets: their FieldsV1 form, operations on sets, and how paths are printed."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.field_sets import FieldPath, FieldSet, FieldSetError, path_text, read_fields_v1, same_value

ELEMENTS: Final = st.sampled_from(
    ["f:a", "f:b", "f:.dot", 'k:{"name":"a"}', 'k:{"name":"b","port":80}', 'v:"x"', "v:1", "i:0"]
)
PATHS: Final = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS: Final = st.lists(PATHS, max_size=8).map(FieldSet.of_paths)


def paths_of(fields: FieldSet) -> set[FieldPath]:
    return set(fields.paths())


@given(SETS)
def test_fields_v1_round_trip(fields: FieldSet) -> None:
    assert FieldSet.from_fields_v1(fields.to_fields_v1()) == fields


@given(SETS)
def test_equal_fields_are_read_once(fields: FieldSet) -> None:
    written = fields.to_fields_v1()
    assert read_fields_v1(written) == fields
    assert read_fields_v1({**written}) is read_fields_v1(written)


def test_large_fields_are_not_cached() -> None:
    written: JsonObject = {f"f:{'x' * 100}{number}": {} for number in range(100)}
    assert read_fields_v1(written) == FieldSet.from_fields_v1(written)
    assert read_fields_v1(written) is not read_fields_v1(written)


@pytest.mark.parametrize("written", [None, [], "f:a", {"a": {}}, {"f:a": 1}])
def test_invalid_fields_are_refused_each_time(written: JsonValue) -> None:
    for _ in range(2):
        with pytest.raises(FieldSetError):
            read_fields_v1(written)


@given(SETS, SETS)
def test_operations_equal_those_of_sets_of_paths(left: FieldSet, right: FieldSet) -> None:
    assert paths_of(left.union(right)) == paths_of(left) | paths_of(right)
    assert paths_of(left.intersection(right)) == paths_of(left) & paths_of(right)
    assert paths_of(left.difference(right)) == paths_of(left) - paths_of(right)
    assert bool(left) == bool(paths_of(left))


@given(SETS, SETS)
def test_equal_sets_are_equal_values(left: FieldSet, right: FieldSet) -> None:
    assert (left == right) == (paths_of(left) == paths_of(right))
    assert left.union(right) == right.union(left)
    assert left.difference(right).union(left.intersection(right)) == left


@given(SETS)
def test_all_paths_of_a_set_are_members(fields: FieldSet) -> None:
    assert all(path in fields for path in fields.paths())
    assert ("f:a", "f:never") not in fields


def test_fields_v1_are_read_with_sorted_keys() -> None:
    fields: JsonObject = {
        ".": {},
        "f:data": {".": {}, "f:x": {}},
        "f:ports": {'k:{"protocol":"TCP", "port":80}': {".": {}, "f:port": {}}},
        "f:finalizers": {'v:"a"': {}, "i:3": {}},
    }
    read = FieldSet.from_fields_v1(fields)
    assert ("f:data",) in read
    assert ("f:data", "f:x") in read
    assert ("f:ports",) not in read
    assert ("f:ports", 'k:{"port":80,"protocol":"TCP"}') in read, "keys are sorted"
    assert read.to_fields_v1() == {
        "f:data": {".": {}, "f:x": {}},
        "f:finalizers": {'v:"a"': {}, "i:3": {}},
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
    }


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        {"x": {}},
        {"f:a": 1},
        {"k:[]": {}},
        {"k:{": {}},
        {"i:x": {}},
        {"i:true": {}},
        {"i:1.5": {}},
        {"v:": {}},
    ],
)
def test_invalid_fields_v1_are_refused(fields: JsonValue) -> None:
    with pytest.raises(FieldSetError):
        FieldSet.from_fields_v1(fields)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:data", "f:x"), ".data.x"),
        (("f:spec", "f:containers", 'k:{"name":"a"}', "f:image"), '.spec.containers[name="a"].image'),
        (("f:ports", 'k:{"port":80,"protocol":"TCP"}'), '.ports[port=80,protocol="TCP"]'),
        (("f:metadata", "f:finalizers", 'v:"x/y"'), '.metadata.finalizers[="x/y"]'),
        (("f:list", "i:2"), ".list[2]"),
        ((f'k:{{"name":"{"a" * 100_000}"}}',), f'[name="{"a" * 100_000}"]'),
    ],
)
def test_paths_are_formatted_like_the_server_does(path: FieldPath, text: str) -> None:
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        ([0], [False], False),
        ({"a": True}, {"a": 1}, False),
        ({"a": [1]}, {"a": [1]}, True),
        (None, False, False),
        ({"a": 1}, {"b": 1}, False),
        ([1], [1, 1], False),
        ({"a": {"x": 1, "y": [True]}}, {"a": {"y": [True], "x": 1.0}}, True),
        ({"a": {"x": 1, "y": [True]}}, {"a": {"y": [1], "x": 1}}, False),
        ({"a": None, "b": [{}]}, {"b": [{}], "a": None}, True),
        ({"a": {}}, {"a": []}, False),
    ],
)
def test_equality_of_json_distinguishes_types(left: JsonValue, right: JsonValue, *, same: bool) -> None:
    assert same_value(left, right) is same


def test_an_operation_without_effect_returns_the_same_object() -> None:
    fields = FieldSet.of_paths([("f:a",), ("f:b", "f:c"), ("f:b", "f:d")])
    assert fields.difference(FieldSet.of_paths([("f:x",), ("f:b", "f:e")])) is fields
    assert fields.difference(FieldSet.of_paths([("f:b", "f:c"), ("f:b", "f:d")])) == FieldSet.of_paths([("f:a",)])
    assert fields.union(FieldSet()) is fields
    assert FieldSet().union(fields) is fields
