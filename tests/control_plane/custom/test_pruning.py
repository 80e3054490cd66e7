"""The pruning of undeclared fields of custom resources."""

from wharfinger.control_plane.custom.pruning import pruned
from wharfinger.formats.json.value import JsonObject

SCHEMA: JsonObject = {
    "properties": {
        "a": {"additionalProperties": True},
        "p": {"x-kubernetes-preserve-unknown-fields": True, "properties": {"k": {"properties": {}}}},
        "l": {"items": {"properties": {"x": {}}}},
    }
}


def test_undeclared_fields_are_pruned_and_listed() -> None:
    obj: JsonObject = {
        "kind": "K",
        "a": {"b": {"c": 1}, "d": 2},
        "p": {"z": {"y": 1}, "k": {"q": 1}},
        "l": [{"x": 1, "y": 2}],
        "o": 1,
    }
    kept, unknown = pruned(SCHEMA, obj, root=True)
    assert kept == {"kind": "K", "a": {"b": {}, "d": 2}, "p": {"z": {"y": 1}, "k": {}}, "l": [{"x": 1}]}
    assert unknown == ["a.b.c", "l[0].y", "o", "p.k.q"]
