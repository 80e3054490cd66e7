"""Placeholders for the values of Secrets."""

import base64

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.redaction.redaction import LAST_APPLIED
from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.output.wiped_secrets import wiped, with_wiped_secrets
from wharfinger.runtime.fixpoint.model import Id

SECRET = Manifest(
    Id("Secret", "a", "b"),
    {"kind": "Secret", "metadata": {"name": "b"}, "data": {"key": "dmFsdWU="}, "stringData": {"word": "hidden"}},
)


def test_only_secret_values_are_replaced_with_placeholders() -> None:
    encoded = base64.b64encode(b"..PLACEHOLDER_key..").decode()
    assert wiped(SECRET).object == {
        "kind": "Secret",
        "metadata": {"name": "b"},
        "data": {"key": encoded},
        "stringData": {"word": "..PLACEHOLDER_word.."},
    }
    assert SECRET.object["data"] == {"key": "dmFsdWU="}


def test_other_kinds_and_empty_secrets_are_unchanged() -> None:
    other = Manifest(Id("ConfigMap", "a", "b"), {"data": {"key": "value"}})
    empty = Manifest(Id("Secret", "a", "c"), {"kind": "Secret"})
    who = Id("Files", "", "x")
    assert with_wiped_secrets({who: (other, empty)}) == {who: (other, empty)}


def test_copies_and_malformed_values_are_wiped() -> None:
    copy: JsonObject = {"annotations": {LAST_APPLIED: '{"data": {"key": "HUNTER"}}', "team": "a"}, "name": "b"}
    secret = Manifest(SECRET.id, {**SECRET.object, "metadata": copy, "data": "HUNTER", "more": ["HUNTER"]})
    found = wiped(secret).object
    assert "HUNTER" not in str(found)
    assert found["metadata"] == {"annotations": {"team": "a"}, "name": "b"}
