"""The validation of defaults in the schemas of CustomResourceDefinitions."""

from wharfinger.control_plane.api.apiextensions.defaults import default_errors, has_unpruned_defaults
from wharfinger.formats.json.value import JsonObject


def test_unknown_fields_and_rules() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "default": {"x": 1}},
            "b": {"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 1"}]},
        },
    }
    assert [str(error) for error in default_errors(schema, "s", pruned=True)] == [
        's.properties[a].default: Invalid value: {"x":1}: must not have unknown fields',
        "s.properties[b].default: Invalid value: 1: failed rule: self > 1",
    ]
    assert has_unpruned_defaults(schema)
    assert not has_unpruned_defaults({"type": "string"})
