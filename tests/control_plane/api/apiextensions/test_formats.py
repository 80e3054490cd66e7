"""String formats that the API server does not recognize, in the schemas of CustomResourceDefinitions."""

from wharfinger.control_plane.api.apiextensions.form import spec_of
from wharfinger.control_plane.api.apiextensions.formats import unrecognized_formats
from wharfinger.formats.json.value import JsonObject


def test_unrecognized_string_formats_are_listed() -> None:
    schema: JsonObject = {
        "properties": {"a": {"type": "string", "format": "x"}, "b": {"type": "integer", "format": "int32"}}
    }
    assert unrecognized_formats(
        spec_of({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
    ) == ["x"]
