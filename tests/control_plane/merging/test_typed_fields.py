"""The fields that an applied object sets, and the differences between two documents."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.merging.typed_fields import compare, fields_of, with_named_parents
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.field_sets import EMPTY, FieldPath, FieldSet, path_text

POD: Final = builtin_list_types("", "v1", "Pod")


def paths_of(fields: FieldSet) -> set[FieldPath]:
    return set(fields.paths())


def test_fields_of_an_applied_object_are_collected() -> None:
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
    assert fields_of(pod, POD).to_fields_v1() == {
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
    owned = fields_of({"spec": {"a": {"b": 1}, "l": [{"name": "x"}]}}, thing)
    assert owned.to_fields_v1() == {"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}}}


def test_parents_of_named_fields_are_added() -> None:
    fields = FieldSet.of_paths(
        [("f:spec", "f:containers", 'k:{"name":"a"}', "f:image"), ("f:metadata", "f:labels", "f:x")]
    )
    assert paths_of(with_named_parents(fields, POD)) == paths_of(fields) | {
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
            {'.spec.containers[name="a"]', '.spec.containers[name="a"].name'},
            set(),
            {'.spec.containers[name="a"]'},
        ),
        (
            {"spec": {"containers": [container("a")]}},
            {"spec": {"containers": [container("a"), container("a", image="2")]}},
            {'.spec.containers[name="a"]'},
            set(),
            {'.spec.containers[name="a"]', '.spec.containers[name="a"].name'},
        ),
        (
            {"spec": {"containers": [container("a"), container("a", image="1")]}},
            {"spec": {"containers": [container("a"), container("a", image="2")]}},
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
def test_compare_finds_added_modified_and_removed_fields(
    before: JsonObject, after: JsonObject, added: set[str], modified: set[str], removed: set[str]
) -> None:
    found = compare(before, after, POD)
    assert [{path_text(path) for path in fields.paths()} for fields in found] == [added, modified, removed]


@given(st.lists(st.sampled_from("abc"), max_size=4), st.lists(st.sampled_from("abc"), max_size=4))
def test_a_reversed_comparison_swaps_added_and_removed(left: list[str], right: list[str]) -> None:
    def pod(names: list[str]) -> JsonObject:
        return {"metadata": {"labels": dict.fromkeys(names, "1")}, "spec": {"containers": [{"name": n} for n in names]}}

    there, back = compare(pod(left), pod(right), POD), compare(pod(right), pod(left), POD)
    assert (there.added, there.modified, there.removed) == (back.removed, back.modified, back.added)
    assert compare(pod(left), pod(left), POD) == (EMPTY, EMPTY, EMPTY)
