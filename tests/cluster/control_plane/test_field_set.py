"""Field sets: FieldsV1, the algebra, and what differs between two documents."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.control_plane.field_set import (
    EMPTY,
    FieldPath,
    FieldSet,
    FieldSetError,
    compare,
    path_text,
    same_value,
)
from wharfinger.cluster.control_plane.list_types import builtin_list_types
from wharfinger.formats.json_value import JsonObject, JsonValue

ELEMENTS: Final = st.sampled_from(
    ["f:a", "f:b", "f:.dot", 'k:{"name":"a"}', 'k:{"name":"b","port":80}', 'v:"x"', "v:1", "i:0"]
)
PATHS: Final = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS: Final = st.lists(PATHS, max_size=8).map(FieldSet.of_paths)
POD: Final = builtin_list_types("", "v1", "Pod")


def paths_of(fields: FieldSet) -> set[FieldPath]:
    return set(fields.paths())


@given(SETS)
def test_fields_v1_round_trip(fields: FieldSet) -> None:
    assert FieldSet.from_fields_v1(fields.to_fields_v1()) == fields


@given(SETS, SETS)
def test_the_algebra_is_that_of_sets_of_paths(left: FieldSet, right: FieldSet) -> None:
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
def test_membership(fields: FieldSet) -> None:
    assert all(path in fields for path in fields.paths())
    assert ("f:a", "f:never") not in fields


def test_reading_fields_v1() -> None:
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
def test_what_is_no_fields_v1(fields: JsonValue) -> None:
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
    ],
)
def test_paths_as_the_server_prints_them(path: FieldPath, text: str) -> None:
    assert path_text(path) == text


def test_what_an_applied_object_owns() -> None:
    pod: JsonObject = {
        "metadata": {"labels": {"a": "1"}, "finalizers": ["x"], "annotations": {}},
        "spec": {
            "containers": [{"name": "a", "args": ["1"], "ports": [{"containerPort": 80}], "resources": {}}],
            "initContainers": [],
            "nodeSelector": {"disk": "ssd"},
            "hostname": None,
            "dnsConfig": {"nameservers": []},
        },
    }
    assert FieldSet.of_object(pod, POD).to_fields_v1() == {
        "f:metadata": {"f:annotations": {}, "f:finalizers": {'v:"x"': {}}, "f:labels": {"f:a": {}}},
        "f:spec": {
            "f:containers": {
                'k:{"name":"a"}': {
                    ".": {},
                    "f:args": {},
                    "f:name": {},
                    "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                    "f:resources": {},
                }
            },
            "f:dnsConfig": {"f:nameservers": {}},
            "f:hostname": {},
            "f:nodeSelector": {},
        },
    }


def test_unknown_fields_merge_by_their_form() -> None:
    thing = builtin_list_types("example.com", "v1", "Thing")
    owned = FieldSet.of_object({"spec": {"a": {"b": 1}, "l": [{"name": "x"}]}}, thing)
    assert owned.to_fields_v1() == {"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}}}


def test_named_parents() -> None:
    fields = FieldSet.of_paths(
        [("f:spec", "f:containers", 'k:{"name":"a"}', "f:image"), ("f:metadata", "f:labels", "f:x")]
    )
    assert paths_of(fields.with_named_parents(POD)) == paths_of(fields) | {
        ("f:spec",),
        ("f:spec", "f:containers"),
        ("f:metadata",),
        ("f:metadata", "f:labels"),
    }


def container(name: str, **fields: JsonValue) -> JsonObject:
    return {"name": name, **fields}


@pytest.mark.parametrize(
    ("before", "after", "added", "modified", "removed"),
    [
        ({}, {"spec": {"hostname": "h"}}, {".spec", ".spec.hostname"}, set(), set()),
        ({"spec": {}}, {"spec": {"hostname": "h"}}, {".spec.hostname"}, set(), set()),
        ({"spec": {"hostname": "h"}}, {"spec": {"hostname": "i"}}, set(), {".spec.hostname"}, set()),
        ({"spec": {"hostname": "h"}}, {"spec": {}}, set(), set(), {".spec.hostname"}),
        ({"spec": {"hostname": "h"}}, {}, set(), set(), {".spec", ".spec.hostname"}),
        ({"spec": {"hostname": None}}, {"spec": {"hostname": "h"}}, set(), {".spec.hostname"}, set()),
        (
            {"spec": {"containers": None}},
            {"spec": {"containers": [{"name": "a"}]}},
            {'.spec.containers[name="a"]', '.spec.containers[name="a"].name'},
            set(),
            set(),
        ),
        (
            {"spec": {"containers": [container("a", image="1"), container("b")]}},
            {"spec": {"containers": [container("b"), container("a", image="2")]}},
            set(),
            {'.spec.containers[name="a"].image'},
            set(),
        ),
        (
            {"spec": {"containers": [container("a"), container("a", image="2")]}},
            {"spec": {"containers": [container("a")]}},
            set(),
            {'.spec.containers[name="a"]'},
            set(),
        ),
        (
            {"spec": {"nodeSelector": {"a": "1"}}},
            {"spec": {"nodeSelector": {"a": "2"}}},
            set(),
            {".spec.nodeSelector"},
            set(),
        ),
        ({"metadata": {"labels": {}}}, {"metadata": {}}, set(), set(), {".metadata.labels"}),
        ({"metadata": {"labels": {}}}, {"metadata": {"labels": None}}, set(), {".metadata.labels"}, set()),
        ({"spec": {"volumes": "odd"}}, {"spec": {"volumes": [{"name": "v"}]}}, set(), {".spec.volumes"}, set()),
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["c", "b"]}},
            {'.metadata.finalizers[="c"]'},
            set(),
            {'.metadata.finalizers[="a"]'},
        ),
    ],
)
def test_comparing(
    before: JsonObject, after: JsonObject, added: set[str], modified: set[str], removed: set[str]
) -> None:
    found = compare(before, after, POD)
    assert [{path_text(path) for path in fields.paths()} for fields in found] == [added, modified, removed]


@given(st.lists(st.sampled_from("abc"), max_size=4), st.lists(st.sampled_from("abc"), max_size=4))
def test_comparing_backwards_swaps_added_and_removed(left: list[str], right: list[str]) -> None:
    def pod(names: list[str]) -> JsonObject:
        return {"metadata": {"labels": dict.fromkeys(names, "1")}, "spec": {"containers": [{"name": n} for n in names]}}

    there, back = compare(pod(left), pod(right), POD), compare(pod(right), pod(left), POD)
    assert (there.added, there.modified, there.removed) == (back.removed, back.modified, back.added)
    assert compare(pod(left), pod(left), POD) == (EMPTY, EMPTY, EMPTY)


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
    ],
)
def test_equality_of_json(left: JsonValue, right: JsonValue, *, same: bool) -> None:
    assert same_value(left, right) is same
