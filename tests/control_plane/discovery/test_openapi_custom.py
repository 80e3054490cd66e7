import pytest

from tests.control_plane.support.samples import definition
from wharfinger.control_plane.catalog.catalog import Catalog, Served
from wharfinger.control_plane.catalog.custom_kinds import kind_of_definition
from wharfinger.control_plane.discovery.openapi_custom import parts, schema_name
from wharfinger.formats.json.value import JsonObject, encode_json, find, find_object

FIELDS: JsonObject = {
    "port": {"x-kubernetes-int-or-string": True},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "list": {"type": "array", "nullable": True, "items": {"type": "string"}},
    "some": {"type": "string", "default": "x", "minLength": 0, "uniqueItems": False},
    "made": {"type": "object", "x-kubernetes-embedded-resource": True},
    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "either": {"type": "string", "anyOf": [{"pattern": "a"}, {"pattern": "b"}]},
}
SPEC: JsonObject = {"type": "object", "required": ["list", "some"], "properties": FIELDS}


def served() -> Served:
    schema: JsonObject = {"type": "object", "properties": {"spec": SPEC}}
    catalog = Catalog()
    catalog.set_custom(kind_of_definition(definition(schema={"openAPIV3Schema": schema})))
    found = catalog.find("example.com", "v1", "widgets")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("version", "name", "expected"),
    [
        ("v3", "port", {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
        ("v2", "port", {"x-kubernetes-int-or-string": True}),
        ("v3", "free", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        ("v2", "free", {"x-kubernetes-preserve-unknown-fields": True}),
        ("v3", "list", {"type": "array", "nullable": True, "items": {"type": "string"}}),
        ("v2", "list", {}),
        ("v3", "some", {"type": "string", "default": "x", "minLength": 0}),
        ("v2", "some", {"type": "string", "minLength": 0}),
        ("v2", "either", {"type": "string"}),
        ("v3", "map", {"type": "object", "additionalProperties": {"type": "integer"}}),
    ],
)
def test_custom_schemas_differ_between_openapi_versions(version: str, name: str, expected: JsonObject) -> None:
    schema = find_object(parts(served(), version), "definitions", "com.example.v1.Widget")

    assert find(schema, "properties", "spec", "properties", name) == expected


def test_embedded_objects_have_the_fields_of_all_objects() -> None:
    schema = find_object(parts(served(), "v3"), "definitions", "com.example.v1.Widget")

    made = find_object(schema, "properties", "spec", "properties", "made")
    assert sorted(find_object(made, "properties")) == ["apiVersion", "kind", "metadata"]
    assert made["required"] == ["kind", "apiVersion"]


def test_version_2_does_not_require_nullable_fields() -> None:
    schema = find_object(parts(served(), "v2"), "definitions", "com.example.v1.Widget")

    assert find(schema, "properties", "spec", "required") == ["some"]


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_all_sample_names_are_replaced(version: str) -> None:
    found = parts(served(), version)

    text = encode_json(found)
    assert not any(
        word in text for word in (b"Kindtoken", b"Listtoken", b"grouptoken", b"Grouptoken", b"v7beta3", b"V7beta3")
    )
    assert "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}" in find_object(found, "paths")
    operation = find_object(found, "paths", "/apis/example.com/v1/widgets", "get")
    assert operation["operationId"] == "listExampleComV1WidgetForAllNamespaces"
    assert operation["tags"] == ["exampleCom_v1"]
    assert schema_name(served(), "WidgetList") in find_object(found, "definitions")
