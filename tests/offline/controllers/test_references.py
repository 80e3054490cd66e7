"""References to the data of ConfigMaps and Secrets."""

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.controllers.gate import ReconcileError
from wharfinger.offline.controllers.references import secret_bytes, texts_of, with_encoded_data
from wharfinger.offline.store.store import Place, Stored
from wharfinger.runtime.fixpoint.model import Id


def stored(kind: str, obj: JsonObject) -> Stored:
    return Stored(Id(kind, "a", "x"), obj, "", Place("a.yaml", 2))


def test_texts_of_config_maps_and_secrets_are_read() -> None:
    assert texts_of(stored("ConfigMap", {"data": {"a": "x", "b": 1}})) == {"a": "x"}
    secret: JsonObject = {"data": {"a": "eA==", "b": "eQ=="}, "stringData": {"b": "z"}}
    assert texts_of(stored("Secret", secret)) == {"a": "x", "b": "z"}


def test_a_secret_that_cannot_be_decoded_is_reported_with_its_place() -> None:
    with pytest.raises(ReconcileError, match=r"Secret a/x: data.a: not base64") as error:
        secret_bytes(stored("Secret", {"data": {"a": "!"}}))
    assert str(error.value.place) == "a.yaml:2"


def test_string_data_is_encoded_as_a_server_stores_it() -> None:
    secret: JsonObject = {"kind": "Secret", "stringData": {"b": "z"}}
    assert with_encoded_data(secret, {"b": b"z"}) == {"kind": "Secret", "data": {"b": "eg=="}}
