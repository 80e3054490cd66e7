"""The selectable fields of CustomResourceDefinitions."""

from wharfinger.control_plane.api.apiextensions.selectable_fields import selectable_errors
from wharfinger.formats.json.value import JsonObject


def test_fields_without_a_schema_or_over_the_limit_are_refused() -> None:
    assert len(selectable_errors([{"jsonPath": ".a"}], None, "x", crowded=False)) == 1
    schema: JsonObject = {"properties": {f"f{n}": {"type": "string"} for n in range(9)}}
    fields: list[JsonObject] = [{"jsonPath": f".f{n}"} for n in range(9)]
    assert selectable_errors(fields, schema, "x", crowded=True) == []
    assert len(selectable_errors(fields, schema, "x", crowded=False)) == 1
