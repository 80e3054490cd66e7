"""The versions of a custom kind. The recording ``hunt3-crd-versions`` has the answers of a real API server."""

from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.custom_kinds import kind_of_definition
from wharfinger.control_plane.catalog.custom_versions import shown_custom, stored_custom, undeclared, version_of
from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.formats.json.value import JsonObject


def version(name: str, *, storage: bool = False, served: bool = True, **properties: JsonObject) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": {"spec": {"type": "object", "properties": {**properties}}}}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}}


def kind() -> Kind:
    spec: JsonObject = {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "as", "kind": "A"},
        "versions": [
            version("v1", storage=True, served=False, a={"type": "string", "default": "one"}, c={"type": "string"}),
            version("v2", a={"type": "string"}, d={"type": "string", "default": "two"}),
            version("v3", a={"type": "string"}),
        ],
    }
    return kind_of_definition({"spec": spec})


def served(name: str) -> Served:
    found = kind().version(name)
    assert found is not None
    return Served(kind(), found)


def thing(name: str, **spec: str) -> JsonObject:
    return {"apiVersion": f"example.com/{name}", "kind": "A", "metadata": {"name": "a"}, "spec": {**spec}}


def test_conversion_applies_only_defaults_of_the_stored_version() -> None:
    assert shown_custom(served("v2"), thing("v1", c="x")) == thing("v2", a="one")
    assert stored_custom(served("v2"), thing("v2", a="x", d="y")) == thing("v1", a="x")


def test_unserved_versions_are_known_and_undeclared_versions_are_not() -> None:
    assert version_of(kind(), "example.com/v1") is not None
    assert version_of(kind(), "example.com/v4") is None
    assert version_of(kind(), "example.org/v1") is None
    assert shown_custom(served("v3"), thing("v4", a="x")) == thing("v3", a="x")


def test_changed_fields_undeclared_in_another_version_are_reported() -> None:
    entries: JsonObject = {"metadata": {"managedFields": [{"apiVersion": "example.com/v3"}, {"apiVersion": "x"}]}}
    assert undeclared(served("v2"), entries, thing("v2", a="x")) == ""
    assert undeclared(served("v2"), entries, thing("v2", a="x"), thing("v2", d="x")) == (
        ".spec.d: field not declared in schema"
    )
    assert undeclared(served("v3"), entries, thing("v3", d="x")) == ""
