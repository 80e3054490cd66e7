"""Upgrades that fail halfway. The package returns to its former revision and is Ready, or reports why it cannot return."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.runtime.support.upgraded import DRAWN, JOB, deployment, install, password, revisions, text
from tests.runtime.support.world import World, open_world
from wharfinger.cluster.records.release import ReleaseStatus
from wharfinger.formats.json.value import JsonObject, find, find_int, find_object, find_str

pytestmark = pytest.mark.unmeasured

CRD: Final = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: hams.example.com}\n"
    "spec:\n  group: example.com\n  names: {kind: Ham, plural: hams}\n  scope: Cluster\n  versions:\n"
    "  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, %s}}}\n"
)
DENIED: Final = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: denied, labels: {example.com/forbidden: 'yes'}}\ndata: {a: b}\n"
)
POLICY: Final[tuple[JsonObject, ...]] = (
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "nothing-forbidden"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ]
            },
            "validations": [
                {
                    "expression": "!('example.com/forbidden' in object.metadata.?labels.orValue({}))",
                    "message": "forbidden",
                }
            ],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "nothing-forbidden"},
        "spec": {"policyName": "nothing-forbidden", "validationActions": ["Deny"]},
    },
)
HOOK: Final = '#!/bin/sh\n[ "$1" = --config ] && { echo "configVersion: v1"; echo "beforeHelm: 1"; exit 0; }\n%s\n'
REFUSING: Final = '{"type": "object", "properties": {"text": {"type": "integer"}}}'


@dataclass(frozen=True)
class Case:
    """An upgrade that fails. ``reason`` is a text that ``status.rollback.message`` contains afterwards. ``wrote`` tells whether
    the upgrade recorded a revision.
    """

    reason: str
    new: Mapping[str, str]
    old: Mapping[str, str] = field(default_factory=dict)
    wrote: bool = True
    upgrade: Mapping[str, str | int] = field(default_factory=dict)
    policy: bool = False
    version: str = "2.0.0"


CORPUS: Final[dict[str, Case]] = {
    "pre-upgrade hook fails": Case("HookFailed", {"templates/j.yaml": JOB % ("early", "helm.sh/hook: pre-upgrade,")}),
    "post-upgrade hook fails": Case("HookFailed", {"templates/j.yaml": JOB % ("late", "helm.sh/hook: post-upgrade,")}),
    "immutable field": Case(
        "ApplyFailed",
        {"templates/d.yaml": deployment(selector="other")},
        {"templates/d.yaml": deployment()},
    ),
    "admission refuses": Case("forbidden", {"templates/denied.yaml": DENIED}, policy=True),
    "never ready": Case(
        "not Ready after",
        {"templates/d.yaml": deployment(version="2", of_pod="wharfinger.dev/never-ready: 'true'")},
        {"templates/d.yaml": deployment()},
        upgrade={"timeout": "3s"},
    ),
    "a workload fails": Case("WorkloadFailed", {"templates/j.yaml": JOB % ("broken", "")}),
    "the chart does not render": Case("RenderFailed", {"templates/x.yaml": '{{ fail "no" }}'}, wrote=False),
    "the schema refuses the settings": Case("RenderFailed", {"values.schema.json": REFUSING}, wrote=False),
    "a definition that would lose data": Case(
        "DefinitionUnsafe",
        {"crds/ham.yaml": CRD % "required: [cure]"},
        {"crds/ham.yaml": CRD % "properties: {cure: {type: string}}"},
        wrote=False,
    ),
    "the version is not there": Case("ArtifactNotFound", {}, wrote=False, version="9.9.9"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPUS)
async def test_a_failed_upgrade_is_rolled_back(name: str, tmp_path: Path) -> None:
    case = CORPUS[name]
    async with open_world(tmp_path) as world:
        await world.allow_cluster()
        for obj in POLICY if case.policy else ():
            await world.client.create(obj)
        drawn = await install(world, case.old, more={**case.upgrade})
        await world.push("web", "2.0.0", {"templates/drawn.yaml": DRAWN, **case.old, **case.new})
        changed: JsonObject = {"packageVersion": case.version, "settings": {"text": "second"}}
        await world.change("prod", "shop", changed)
        shop = await world.until_state("prod", "shop", "RolledBack")
        # The former revision runs, and is unchanged.
        assert find_str(shop, "status", "currentVersion", "version") == "1.0.0"
        assert await text(world) == "first"
        assert await password(world) == drawn
        # The version that the resource requests is reported separately.
        told = find_object(shop, "status", "rollback")
        assert (told["revision"], told["version"], told["wanted"]) == (1, "1.0.0", case.version)
        assert told["reason"] == "UpgradeFailed"
        assert case.reason in find_str(told, "message")
        ready, stalled, reconciling = (World.condition(shop, kind) for kind in ("Ready", "Stalled", "Reconciling"))
        assert (find_str(ready, "status"), find_str(ready, "reason")) == ("True", "RolledBack")
        assert find_int(ready, "observedGeneration") < find_int(shop, "metadata", "generation")
        assert (find_str(stalled, "status"), find_str(reconciling, "status")) == ("True", "False")
        # The newest record is one that Helm could have written.
        last = (await revisions(world))[-1]
        assert last[1] == ReleaseStatus.DEPLOYED
        assert last[2] == ("Rollback to 1" if case.wrote else "Install complete")
        # The package stays at this revision until the resource is changed.
        await world.runtime.queues.wait_idle("prod.shop")
        assert (await revisions(world))[-1] == last
        await world.change("prod", "shop", {"packageVersion": "1.0.0", "settings": {"text": "third"}})
        shop = await world.until_state("prod", "shop", "Ready")
        assert find(shop, "status", "rollback") is None
        assert await text(world) == "third"
