"""Tests of the offline check of CustomResourceDefinitions. tests/control_plane/api/apiextensions tests the rules."""

from wharfinger.control_plane.definition_check import refused_fields
from wharfinger.formats.json.value import JsonObject

SOUND: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "pages.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "pages", "kind": "Page"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


def test_a_valid_definition_has_no_refused_fields() -> None:
    assert refused_fields(SOUND) == []


def test_refused_fields_are_named() -> None:
    (refused,) = refused_fields({**SOUND, "metadata": {"name": "page"}})
    assert refused[0] == "metadata.name"
    assert refused[1].startswith('metadata.name: Invalid value: "page": must be spec.names.plural')


def test_an_undecodable_document_is_refused_at_spec() -> None:
    ((field, why),) = refused_fields({**SOUND, "spec": {"group": ["a"]}})
    assert field == "spec"
    assert "cannot be handled as a CustomResourceDefinition" in why
