"""Redacted manifests, which contain the same objects without secrets."""

import pytest
import yaml
from hypothesis import given

from tests.debug.support.samples import HOSTILE, JSON_OBJECTS, MANIFEST
from wharfinger.debug.server.manifests import redacted_manifest
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.redaction.redaction import redact_object
from wharfinger.formats.redaction.redaction_text import MARK
from wharfinger.formats.terminal_text import is_safe
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.formats.yaml.writer import write_yaml, write_yaml_all


def test_only_values_of_secrets_are_redacted() -> None:
    shown = redacted_manifest(MANIFEST, ())
    assert shown == MANIFEST.replace("aHVudGVyMg==", "'***'")
    secret, config = yaml.safe_load_all(shown)
    assert secret["data"] == {"password": MARK}
    assert config["data"] == {"greeting": "hello"}


@pytest.mark.parametrize("manifest", ["", "\n\n", "---\n", "--- \n---\n", "# only\n"])
def test_an_empty_manifest_stays_empty(manifest: str) -> None:
    assert redacted_manifest(manifest, ()) == ""


def test_known_secrets_are_masked_anywhere_in_the_manifest() -> None:
    manifest = "# made for hunter2\nkind: Pod\nargs: [--user, a, x-hunter2-y]\nblob: aHVudGVyMg==\n"
    shown = redacted_manifest(manifest, {"hunter2"})
    assert shown.splitlines()[:2] == ["---", f"# made for {MARK}"]
    assert yaml.safe_load(shown) == {"kind": "Pod", "args": ["--user", "a", f"x-{MARK}-y"], "blob": MARK}


def test_secrets_in_lists_and_in_both_fields_are_redacted() -> None:
    manifest = """\
kind: List
items:
- kind: Secret
  stringData: {a: plain}
  data: {b: cGxhaW4=}
---
kind: SecretList
items:
- data: {c: cGxhaW4=}
"""
    shown = redacted_manifest(manifest, ())
    assert "plain" not in shown
    assert "cGxhaW4=" not in shown
    assert [document["kind"] for document in yaml.safe_load_all(shown)] == ["List", "SecretList"]


def test_separators_in_texts_do_not_separate_documents() -> None:
    manifest = (
        "kind: ConfigMap\ndata:\n  a: |\n    ---\n    kind: Secret\n  b: '---x'\n---   # here\nkind: B\n...\n---\n"
    )
    documents = [each for each in yaml.safe_load_all(redacted_manifest(manifest, ())) if each is not None]
    assert documents == [
        {"kind": "ConfigMap", "data": {"a": "---\nkind: Secret\n", "b": "---x"}},
        {"kind": "B"},
    ]


def test_documents_after_yaml_line_breaks_are_redacted() -> None:
    shown = redacted_manifest("# one\na: 1\r---\r# two\rkind: Secret\rdata: {a: Yg==}\n", ())
    assert shown == f"---\n# one\na: 1\n---\nkind: Secret\ndata:\n  a: '{MARK}'\n"


def test_documents_on_the_line_of_a_separator_are_redacted() -> None:
    shown = redacted_manifest(
        "kind: Secret\ndata: {a: Yg==}\n...\n---\nkind: A\n--- {kind: Secret, data: {a: Yg==}}\r\n", ()
    )
    assert "Yg==" not in shown
    assert [document["kind"] for document in yaml.safe_load_all(shown)] == ["Secret", "A", "Secret"]


@pytest.mark.parametrize("manifest", ["a: {", "a: b\n---\n\t- x", "a: &x [*x]"])
def test_invalid_yaml_is_refused(manifest: str) -> None:
    with pytest.raises(FormatError, match="the rendered manifest"):
        redacted_manifest(manifest, ())


def test_control_characters_in_manifests_are_escaped() -> None:
    text = HOSTILE.replace("\ud800", "")
    shown = redacted_manifest(f"# \u202egnp\n{write_yaml({'a': text})}", ())
    assert shown.startswith("---\n# \\u202egnp\n")
    assert is_safe(shown, allow="\n")
    assert yaml.safe_load(shown) == {"a": text}


@given(JSON_OBJECTS, JSON_OBJECTS)
def test_any_objects_are_redacted_in_their_order(first: JsonObject, second: JsonObject) -> None:
    shown = redacted_manifest(write_yaml_all([first, second]), ())
    assert read_yaml_all(shown, what="x") == [redact_object(first), redact_object(second)]
    assert redacted_manifest(shown, ()) == shown
