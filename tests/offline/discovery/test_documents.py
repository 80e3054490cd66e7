"""Documents of a file, with their lines. Problems are part of the result."""

import base64

from wharfinger.formats.json.value import find_str
from wharfinger.offline.discovery.documents import read_documents


def test_each_document_has_the_line_on_which_it_starts() -> None:
    text = b"# a comment\n---\nkind: A\napiVersion: v1\nmetadata: {name: a}\n---\nkind: B\napiVersion: v1\nmetadata: {name: b}\n"
    found = read_documents(text, "f.yaml")
    assert [(find_str(each.object, "kind"), str(each.place)) for each in found.documents] == [
        ("A", "f.yaml:2"),
        ("B", "f.yaml:6"),
    ]
    assert found.problems == ()


def test_values_and_kustomizations_are_not_manifests() -> None:
    text = b"replicas: 1\n---\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n---\n[1, 2]\n"
    assert read_documents(text, "f.yaml").documents == ()


def test_a_list_is_replaced_by_its_items() -> None:
    text = b"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n"
    assert [find_str(each.object, "kind") for each in read_documents(text, "f.yaml").documents] == ["A"]


def test_problems_of_documents_have_a_line() -> None:
    (problem,) = read_documents(b"a: b\n  c: d\n", "f.yaml").problems
    assert str(problem).startswith("f.yaml:2: not readable YAML:")
    (problem,) = read_documents(b"# first\n---\nkind: A\napiVersion: v1\n", "f.yaml").problems
    assert str(problem) == "f.yaml:2: a A without metadata.name; give it a name"


def test_encrypted_values_become_placeholders() -> None:
    text = b"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: 'ENC[AES256,data:x]', b: cGxhaW4=}\nsops: {mac: x}\n"
    (document,) = read_documents(text, "f.yaml").documents
    assert document.encrypted
    assert "sops" not in document.object
    assert base64.b64decode(find_str(document.object, "data", "a")) == b"..PLACEHOLDER_a.."
    assert find_str(document.object, "data", "b") == "cGxhaW4="


def test_encrypted_string_data_becomes_plain_placeholders() -> None:
    text = (
        b"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: 'ENC[x]', l: ['ENC[y]']}\nsops: {mac: x}\n"
    )
    (document,) = read_documents(text, "f.yaml").documents
    assert document.object["stringData"] == {"a": "..PLACEHOLDER_a..", "l": ["..PLACEHOLDER_l.."]}


def test_a_typed_list_is_replaced_by_items_of_its_kind() -> None:
    text = b"apiVersion: v1\nkind: SecretList\nitems:\n- metadata: {name: a}\n- {kind: Secret, metadata: {name: b}}\n"
    assert [each.object["kind"] for each in read_documents(text, "x").documents] == ["Secret", "Secret"]


def test_a_list_with_invalid_items_is_treated_as_an_object() -> None:
    assert [str(each) for each in read_documents(b"apiVersion: v1\nkind: List\nitems: 5\n", "x").problems] == [
        "x:1: a List without metadata.name; give it a name"
    ]
