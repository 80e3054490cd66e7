"""Kubernetes objects that are embedded in custom resources."""

from wharfinger.control_plane.custom.embedded_objects import coerced, coerced_metadata, embedded_errors
from wharfinger.formats.json.value import JsonObject

SCHEMA: JsonObject = {"properties": {"l": {"items": {"x-kubernetes-embedded-resource": True}}}}


def test_embedded_objects_are_validated() -> None:
    assert [str(error) for error in embedded_errors(SCHEMA, {"l": [{"kind": 5}]})] == [
        "l[0].apiVersion: Required value",
        "l[0].kind: Invalid value: 5: must be a string",
    ]
    found = coerced(SCHEMA, {"l": [{"kind": 5}]})
    assert str(found) == "l[0].kind: Invalid value: 5: must be a string"
    assert coerced(SCHEMA, {"l": []}) is None


def test_embedded_metadata_is_pruned() -> None:
    assert coerced_metadata(SCHEMA, {"l": [{"metadata": {"name": "a", "x": 1}}]}) == (
        {"l": [{"metadata": {"name": "a"}}]},
        ["l[0].metadata.x"],
    )
    assert coerced_metadata({}, {"a": 1}) == ({"a": 1}, [])
