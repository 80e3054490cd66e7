"""Placeholders for the values of Secrets."""

import base64

from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.output.wiped_secrets import wiped, with_wiped_secrets
from wharfinger.runtime.fixpoint.model import Id

SECRET = Manifest(
    Id("Secret", "a", "b"),
    {"kind": "Secret", "metadata": {"name": "b"}, "data": {"key": "dmFsdWU="}, "stringData": {"word": "hidden"}},
)


def test_each_value_becomes_a_placeholder_and_nothing_else_changes() -> None:
    encoded = base64.b64encode(b"..PLACEHOLDER_key..").decode()
    assert wiped(SECRET).object == {
        "kind": "Secret",
        "metadata": {"name": "b"},
        "data": {"key": encoded},
        "stringData": {"word": "..PLACEHOLDER_word.."},
    }
    assert SECRET.object["data"] == {"key": "dmFsdWU="}


def test_other_kinds_and_empty_secrets_are_kept() -> None:
    other = Manifest(Id("ConfigMap", "a", "b"), {"data": {"key": "value"}})
    empty = Manifest(Id("Secret", "a", "c"), {"kind": "Secret"})
    who = Id("Files", "", "x")
    assert with_wiped_secrets({who: (other, empty)}) == {who: (other, empty)}
