"""Lists in custom resources that the schema declares as sets or as maps."""

from wharfinger.control_plane.custom.lists import list_errors
from wharfinger.formats.json.value import JsonObject


def test_duplicates_in_sets_and_maps() -> None:
    schema: JsonObject = {"additionalProperties": {"x-kubernetes-list-type": "set", "items": {}}}
    assert [str(error) for error in list_errors(schema, {"k": [1, True, 1, 1, 1.0]})] == ["[k][2]: Duplicate value: 1"]
    keyed: JsonObject = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}
    assert [str(error) for error in list_errors(keyed, [None, {}], "l")] == ["l[1]: Duplicate value: {}"]
    assert [str(error) for error in list_errors(keyed, [5], "l")] == [
        "l[0]: Invalid value: 5: must be an object for an array of list-type map"
    ]
