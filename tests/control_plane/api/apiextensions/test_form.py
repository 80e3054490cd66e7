"""The internal form of CustomResourceDefinitions."""

from wharfinger.control_plane.api.apiextensions.form import set_field_names, shown_schema, shown_versions, spec_of
from wharfinger.formats.json.value import JsonObject


def test_shared_fields_are_moved_out_of_the_versions() -> None:
    schema: JsonObject = {"openAPIV3Schema": {"type": "object"}}
    versions: list[JsonObject] = [
        {"name": "v1", "schema": schema, "selectableFields": [{"jsonPath": ".a"}]},
        {
            "name": "v2",
            "schema": schema,
            "subresources": {"scale": {}, "status": {}},
            "additionalPrinterColumns": [{"name": "A"}],
        },
    ]
    spec = spec_of({"spec": {"versions": [*versions]}})
    assert spec.shared == {"schema": schema}
    assert "schema" not in spec.versions[0]
    assert len(str(shown_versions(spec))) > 100


def test_schemas_are_formatted_for_errors() -> None:
    leaf: JsonObject = {"type": "string"}
    shown = shown_schema(
        {
            "items": leaf,
            "not": leaf,
            "anyOf": [leaf],
            "properties": {"a": leaf},
            "additionalProperties": False,
            "externalDocs": {"url": "u"},
            "x-kubernetes-validations": [{"rule": "r"}],
        }
    )
    assert shown["AdditionalProperties"] == {"Allows": False, "Schema": None}
    assert set_field_names({"type": "object", "nullable": False, "maximum": 1}) == ["Type", "Maximum"]
