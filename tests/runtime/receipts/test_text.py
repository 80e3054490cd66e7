"""Receipts as YAML that can be applied, and as JSON."""

from dataclasses import replace

import yaml

from tests.programs import ROOT
from wharfinger.kube.access_rules import Access
from wharfinger.runtime.receipts.receipt import Receipt
from wharfinger.runtime.receipts.rights import Part, grant_of
from wharfinger.runtime.receipts.subject import read_subject
from wharfinger.runtime.receipts.text import growth_text, receipt_json, receipt_text

SUBJECT = read_subject(ROOT / "examples" / "reloader", "", {})
GET, NODES = Access("", "configmaps", "get", "default"), Access("", "nodes", "get")
RIGHTS = {part: frozenset({GET, NODES}) if part is Part.PACKAGE else frozenset[Access]() for part in Part}
RECEIPT = Receipt(RIGHTS, grant_of(RIGHTS, {"default"}))


def test_the_roles_can_be_applied() -> None:
    text = receipt_text(SUBJECT, RECEIPT)
    documents = [document for document in yaml.safe_load_all(text) if document is not None]
    rule = {"apiGroups": [""], "verbs": ["get"]}
    assert [(document["kind"], document["metadata"], document["rules"]) for document in documents] == [
        ("ClusterRole", {"name": "reloader-package"}, [{**rule, "resources": ["nodes"]}]),
        ("Role", {"name": "reloader-package", "namespace": "default"}, [{**rule, "resources": ["configmaps"]}]),
    ]
    assert "# removal: its removal\n# (no rights)" in text


def test_a_package_that_was_not_ready_is_named_with_its_reason() -> None:
    receipt = replace(RECEIPT, unready="Deployment.apps demo/web: 0 of 1 pods are ready")
    text = receipt_text(SUBJECT, receipt)
    assert (
        "not ready. Rights that it needs only once it is ready are missing.\n# Reason: Deployment.apps demo/web: 0 of 1"
        in text
    )
    assert receipt_json(SUBJECT, receipt, None)["notReady"] == receipt.unready
    assert "not ready" not in receipt_text(SUBJECT, RECEIPT)
    assert "notReady" not in receipt_json(SUBJECT, RECEIPT, None)


def test_a_message_of_the_package_is_never_a_part_of_the_roles() -> None:
    receipt = replace(RECEIPT, unready="not ready\n---\nkind: ClusterRoleBinding\nmetadata: {name: mine}\x1b[2J")
    text = receipt_text(SUBJECT, receipt)
    assert [each["kind"] for each in yaml.safe_load_all(text) if each is not None] == ["ClusterRole", "Role"]
    assert "\x1b" not in text


def test_added_rights_are_printed_with_part_namespace_and_rule() -> None:
    text = growth_text({Part.HOOKS: frozenset({GET, NODES})}, "old")
    assert "#   hooks, in the namespace default:\n" in text
    assert '#     - {apiGroups: [""], resources: [nodes], verbs: [get]}' in text
    assert growth_text({}, "old") == "# No rights are needed beyond those of old.\n"


def test_json_has_each_access() -> None:
    document = receipt_json(SUBJECT, RECEIPT, {Part.PACKAGE: frozenset({GET})})
    access = {"apiGroup": "", "resource": "configmaps", "verb": "get", "namespace": "default"}
    assert document["grown"] == {"package": [access]}
    assert access in document["rights"]["package"]  # type: ignore[index,operator,call-overload]
    assert "grown" not in receipt_json(SUBJECT, RECEIPT, None)
