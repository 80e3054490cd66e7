"""The rules for lists in the schemas of CustomResourceDefinitions."""

from wharfinger.control_plane.api.apiextensions.lists import key_errors, list_errors
from wharfinger.formats.json.value import JsonObject


def test_lists_of_schemas_and_keys() -> None:
    several: JsonObject = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": [{"type": "object"}],
    }
    assert "must only have a single schema" in str(list_errors(several, "x", check_sets=True)[0])
    none: JsonObject = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    assert [str(error) for error in list_errors(none, "x", check_sets=True)] == [
        "x.items: Required value: must have a schema if x-kubernetes-list-type is map"
    ]
    assert key_errors(none, "x") == []
