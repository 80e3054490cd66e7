"""Receipts (`wharfinger package rights`) are sufficient and necessary: a package works with exactly the roles of its receipt, and
fails if any one rule is missing.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.packages.support.charts import chart
from tests.programs import ROOT
from tests.runtime.receipts.support import open_judge, plan, programs
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.access_rules import Access
from wharfinger.runtime.receipts.receipt import make_receipt
from wharfinger.runtime.receipts.rights import Part, single_rules, without
from wharfinger.runtime.receipts.trial import run_trial

EXAMPLES = ROOT / "examples"
RELOADED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: page
  namespace: default
  labels: {wharfinger.dev/reload: "true"}
  annotations: {wharfinger.dev/reload-targets: web}
data: {colour: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}
"""
MANAGED = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {namespace-defaults/managed: 'true'}}\n"
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
"""


DRAWN = "apiVersion: v1\nkind: Secret\nmetadata: {name: drawn-{{ randAlphaNum 8 | lower }}}\n"


def objects(text: str) -> tuple[JsonObject, ...]:
    return tuple(yaml.safe_load_all(text))


async def check(folder: Path, work: Path, more: str = "") -> int:
    """Make the receipt, check for each of its rules that a trial without this rule fails, and return the number of rules."""
    wanted = plan(folder, objects=objects(more))
    receipt = await make_receipt(wanted, programs(), open_judge, work / "receipt")
    rules = single_rules(receipt.grant)
    for number, (place, access) in enumerate(rules):
        less = without(receipt.grant, place, access)
        record = await run_trial(wanted, less, programs(), open_judge, work / f"without-{number}")
        assert record.failure, f"{access.rule()} is not needed"
        refused = {request.refused() for _, request in record.refusals(wanted.subject.account.user)}
        rules_of_refusals = {(each.group, each.resource, each.verb) for each in refused}
        assert (access.group, access.resource, access.verb) in rules_of_refusals
    return len(rules)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "more"),
    [("reloader", RELOADED), ("web-service", ""), ("todo-api", ""), ("namespace-defaults", MANAGED)],
)
async def test_the_receipts_of_the_examples_are_sufficient_and_necessary(tmp_path: Path, name: str, more: str) -> None:
    assert await check(EXAMPLES / name, tmp_path, more) >= 6


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_rules_can_be_restricted_to_the_names_of_objects(tmp_path: Path) -> None:
    """The package works if the rules name exactly its objects, and fails if one rule names another object."""
    wanted = plan(chart(tmp_path / "web", "web", "1.0.0", {"templates/drawn.yaml": DRAWN}))
    receipt = await make_receipt(wanted, programs(), open_judge, tmp_path / "work", with_names=True)
    patch = Access("", "configmaps", "patch", "default")
    assert receipt.names[Part.PACKAGE][patch] == {"web"}
    assert Access("", "configmaps", "create", "default") not in receipt.names[Part.PACKAGE]
    assert Access("", "secrets", "patch", "default") not in receipt.names[Part.PACKAGE], "its name differs each time"
    other = replace(receipt.grant, names={**receipt.grant.names, patch: frozenset({"other"})})
    record = await run_trial(wanted, other, programs(), open_judge, tmp_path / "other")
    assert record.failed_in is Part.PACKAGE


@pytest.mark.slow
async def test_a_package_that_grants_a_role_needs_the_rights_in_it(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0", {"templates/role.yaml": ROLE})
    receipt = await make_receipt(plan(folder), programs(), open_judge, tmp_path / "work")
    assert Access("", "pods", "list", "default") in receipt.rights[Part.PACKAGE]
