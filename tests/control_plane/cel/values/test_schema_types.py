"""The CEL types that schemas declare."""

import pytest

from wharfinger.control_plane.cel.values.schema_types import REQUEST_BYTES, TypeTable, escaped
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("a-b", "a__dash__b"),
        ("namespace", "__namespace__"),
        ("a__b", "a__underscores__b"),
        ("1a", None),
        ("a b", None),
        ("", None),
    ],
)
def test_property_names_are_escaped(name: str, known: str | None) -> None:
    assert escaped(name) == known


@pytest.mark.parametrize(
    ("schema", "kind", "most"),
    [
        ({"type": "string", "maxLength": 3}, "string", 12),
        ({"type": "string", "enum": ["abc"]}, "string", 3),
        ({"type": "string", "format": "byte"}, "bytes", REQUEST_BYTES - 2),
        ({"type": "array", "maxItems": 2, "items": {"type": "integer"}}, "list(int)", 2),
        (
            {"type": "object", "additionalProperties": {"type": "boolean"}},
            "map(string, bool)",
            (REQUEST_BYTES - 2) // 10,
        ),
        ({"x-kubernetes-int-or-string": True}, "dyn", REQUEST_BYTES - 2),
    ],
)
def test_schemas_declare_types_and_sizes(schema: JsonObject, kind: str, most: int) -> None:
    declared = TypeTable().declared(schema, "x", root=False)
    assert declared is not None
    assert (str(declared.type), declared.most) == (kind, most)


def test_a_schema_without_a_type_declares_no_type() -> None:
    assert TypeTable().declared({"x-kubernetes-preserve-unknown-fields": True}, "x", root=False) is None
    table = TypeTable()
    assert table.declared({"type": "object"}, "x", root=True) is not None
    assert sorted(table.fields["x"]) == ["apiVersion", "kind", "metadata"]
