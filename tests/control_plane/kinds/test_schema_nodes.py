"""Helpers that read OpenAPI schemas."""

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.formats.json.value import JsonObject

ODD: JsonObject = {
    "type": 5,
    "properties": [],
    "items": [{"type": "string"}],
    "required": ["a", 1],
    "maximum": 10**400,
    "maxLength": True,
    "additionalProperties": True,
}


def test_values_of_wrong_types_read_as_absent() -> None:
    assert (
        schemas.text(ODD, "type"),
        schemas.properties(ODD),
        schemas.items(ODD),
        schemas.strings(ODD, "required"),
    ) == ("", {}, None, ["a"])
    assert (
        schemas.number(ODD, "maximum"),
        schemas.whole(ODD, "maxLength"),
        schemas.additional(ODD),
        schemas.has_additional(ODD),
    ) == (None, None, None, True)
    assert schemas.properties(None) == {}


def test_walked_yields_all_nested_schemas() -> None:
    leaf: JsonObject = {"type": "string"}
    schema: JsonObject = {
        "properties": {"a": leaf},
        "items": leaf,
        "anyOf": [leaf],
        "not": leaf,
        "additionalProperties": leaf,
    }
    assert len(list(schemas.walked(schema))) == 6
    assert schemas.has(schema, lambda node: node is leaf)
    assert schemas.rules({"x-kubernetes-validations": [{"rule": "a"}]}) == [{"rule": "a"}]
