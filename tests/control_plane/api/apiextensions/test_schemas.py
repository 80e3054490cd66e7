"""Checks of schemas in CustomResourceDefinitions, and checks that are skipped for existing definitions."""

from wharfinger.control_plane.api.apiextensions.schemas import Leniency, Place, schema_errors
from wharfinger.formats.json.value import JsonObject


def test_leniency_skips_checks() -> None:
    schema: JsonObject = {"type": "text"}
    assert [str(error) for error in schema_errors(schema, "x", Place(), Leniency(), None).plain] == [
        'x.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"'
    ]
    assert schema_errors(schema, "x", Place(), Leniency(types=True), None).plain == []
    assert [
        str(error)
        for error in schema_errors(
            {"type": "string", "default": 1}, "x", Place(no_defaults="here"), Leniency(), None
        ).plain
    ] == ["x.default: Forbidden: must not be set here"]
