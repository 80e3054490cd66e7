"""Kinds and definitions that several test modules use."""

from datetime import UTC, datetime

from wharfinger.control_plane.catalog.catalog import Catalog, Served
from wharfinger.formats.json.value import JsonObject, JsonValue

NOW = datetime(2026, 11, 21, 4, 0, 0, tzinfo=UTC)


def builtin(group: str, version: str, plural: str) -> Served:
    """Return a built-in kind as the catalog serves it."""
    found = Catalog().find(group, version, plural)
    assert found is not None
    return found


def definition(**version: JsonValue) -> JsonObject:
    """Return the CustomResourceDefinition of Widget in example.com, with additions to its only version."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}, **version}
            ],
        },
    }


SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"size": {"type": "integer"}, "replicas": {"type": "integer"}, "color": {"type": "string"}},
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "ready": {"type": "boolean"}}},
    },
}
