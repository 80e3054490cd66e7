"""Manifests as text."""

import json

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.output.documents import json_documents, ordered, yaml_documents
from wharfinger.offline.store.identity import object_id

OBJECT: JsonObject = {
    "spec": {"b": [{"z": 1, "a": 2}], "a": 1},
    "metadata": {"name": "x", "labels": {}},
    "kind": "A",
    "apiVersion": "v1",
}


def test_keys_are_printed_in_a_fixed_order() -> None:
    assert list(ordered(OBJECT)) == ["apiVersion", "kind", "metadata", "spec"]
    backwards: JsonObject = dict(reversed(OBJECT.items()))
    one, other = (Manifest(object_id(each), each) for each in (OBJECT, backwards))
    assert yaml_documents([one]) == yaml_documents([other])
    assert json_documents([one]) == json_documents([other])


def test_printed_documents_can_be_parsed_again() -> None:
    manifest = Manifest(object_id(OBJECT), OBJECT)
    assert read_yaml_all(yaml_documents([manifest, manifest]), what="text") == [OBJECT, OBJECT]
    assert json.loads(json_documents([manifest]))["items"] == [OBJECT]
