"""The removal of other managers' fields from an object before it is applied. No other fields are removed."""

import pytest

from wharfinger.cluster.drift.field_removal import without_fields
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.field_sets import FieldSet

OBJECT: JsonObject = {
    "map": {"a": 1, "b": {"c": 2, "d": 3}},
    "items": [{"name": "x", "v": 1, "w": 2}, {"name": "y", "v": 1}, {"name": "z"}],
    "set": ["p", "q"],
    "list": [1, 2],
    "scalar": 5,
    "empty": {},
}


@pytest.mark.parametrize(
    ("others", "segments", "changes"),
    [
        ({"f:map": {"f:a": {}}}, ["map", "a"], {"map": {"b": {"c": 2, "d": 3}}}),
        ({"f:map": {"f:a": {}}}, ["map", "b"], {}),
        ({"f:map": {"f:a": {}}}, [], {"map": {"b": {"c": 2, "d": 3}}}),
        ({"f:map": {"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}}}, ["map"], {"map": None}),
        ({"f:map": {"f:b": {"f:c": {}}}}, ["*", "*", "c"], {"map": {"a": 1, "b": {"d": 3}}}),
        ({"f:map": {}}, ["map", "a"], {}),
        ({"f:map": {}}, ["map"], {"map": None}),
        ({"f:scalar": {}, "f:list": {}}, ["list"], {"list": None}),
        ({"f:scalar": {"f:deeper": {}}}, [], {}),
        ({"f:none": {}}, [], {}),
        (
            {"f:items": {'k:{"name":"x"}': {".": {}, "f:v": {}}}},
            ["items", "0"],
            {"items": [{"name": "x", "w": 2}, {"name": "y", "v": 1}, {"name": "z"}]},
        ),
        (
            {"f:items": {'k:{"name":"x"}': {"f:name": {}, "f:v": {}, "f:w": {}}, 'k:{"name":"z"}': {}}},
            ["items", "*"],
            {"items": [{"name": "x"}, {"name": "y", "v": 1}]},
        ),
        (
            {"f:items": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:v": {}, "f:w": {}}}},
            ["items", "*"],
            {"items": [{"name": "y", "v": 1}, {"name": "z"}]},
        ),
        ({"f:items": {'k:{"name":"x"}': {"f:v": {}}}}, ["items", "1"], {}),
        ({"f:set": {'v:"q"': {}}}, ["set"], {"set": ["p"]}),
        ({"f:set": {'v:"q"': {}, 'v:"p"': {}}}, ["set"], {"set": None}),
        ({"f:empty": {"f:x": {}}}, [], {}),
    ],
)
def test_fields_owned_by_others_are_left_out(others: JsonObject, segments: list[str], changes: JsonObject) -> None:
    """Exactly the fields in ``others`` at and below the path ``segments`` are left out of the object.

    ``changes`` has the members that differ afterwards, with None for a removed member.
    """
    left = without_fields(OBJECT, segments, FieldSet.from_fields_v1(others))

    assert left == {name: value for name, value in {**OBJECT, **changes}.items() if value is not None}


def test_removing_the_only_field_leaves_an_empty_object() -> None:
    assert without_fields({"a": 1}, [], FieldSet.of_paths([("f:a",)])) == {}
