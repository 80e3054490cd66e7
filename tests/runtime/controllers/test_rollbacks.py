"""Upgrades that fail in the middle: the package comes back to its former revision, Ready, or says why it cannot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.runtime.support.world import World, open_ground, open_world
from wharfinger.cluster.records.release import ReleaseStatus
from wharfinger.formats.json.value import JsonObject, find, find_int, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.resources import REQUESTED
from wharfinger.runtime.resources.upgrade_policy import ROLLBACK

pytestmark = pytest.mark.unmeasured

JOB: Final = (
    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: %s\n  annotations: {%s wharfinger.dev/fail: 'true'}\n"
    "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n"
)
DEPLOYMENT: Final = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop, annotations: {%s}}\n"
    "spec:\n  selector: {matchLabels: {app: %s}}\n"
    "  template:\n    metadata: {labels: {app: %s, version: '%s'}%s}\n"
    "    spec: {containers: [{name: a, image: 'registry.example/web:1'}]}\n"
)
DRAWN: Final = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-drawn}\n"
    "stringData: {password: {{ randAlphaNum 9 }}}\n"
)
CLAIM: Final = (
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}\n"
)
LIMITS: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits}\nimmutable: %s\ndata: {most: '%s'}\n"
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
    """An upgrade to 2.0.0 that fails; ``reason`` is in the message, ``wrote`` whether a revision of it was recorded."""

    reason: str
    new: Mapping[str, str]
    old: Mapping[str, str] = field(default_factory=dict)
    wrote: bool = True
    upgrade: Mapping[str, str | int] = field(default_factory=dict)
    policy: bool = False
    version: str = "2.0.0"


def deployment(*, selector: str = "shop", version: str = "1", of_pod: str = "", more: str = "") -> str:
    return DEPLOYMENT % (more, selector, selector, version, f", annotations: {{{of_pod}}}" if of_pod else "")


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


async def install(world: World, old: Mapping[str, str], *, more: JsonObject | None = None) -> str:
    """Install 1.0.0 with a setting; return the password that its chart drew."""
    await world.push("web", "1.0.0", {"templates/drawn.yaml": DRAWN, **old})
    await world.repository()
    upgrade: JsonObject = {"upgrade": {"rollbackOnFailure": True, "retries": 0, **(more or {})}}
    await world.create("prod", "shop", settings={"text": "first"}, more=upgrade)
    await world.until_state("prod", "shop", "Ready")
    return await password(world)


async def password(world: World) -> str:
    key = ObjectKey(await world.client.resource_type("v1", "Secret"), "prod", "shop-drawn")
    return find_str(await world.client.get(key), "data", "password")


async def text(world: World) -> str:
    found = await world.config_map("prod", "shop")
    return find_str(found or {}, "data", "text")


async def revisions(world: World) -> list[tuple[int, str, str]]:
    history = await world.runtime.tools.releases.history("shop", "prod")
    return [(one.revision, str(one.status), one.description) for one in history]


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPUS)
async def test_a_failed_upgrade_comes_back(name: str, tmp_path: Path) -> None:
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
        # What runs is the former revision, as it was.
        assert find_str(shop, "status", "currentVersion", "version") == "1.0.0"
        assert await text(world) == "first"
        assert await password(world) == drawn
        # What the resource asks for is told apart from that.
        told = find_object(shop, "status", "rollback")
        assert (told["revision"], told["version"], told["wanted"]) == (1, "1.0.0", case.version)
        assert told["reason"] == "UpgradeFailed"
        assert case.reason in find_str(told, "message")
        ready, stalled, reconciling = (World.condition(shop, kind) for kind in ("Ready", "Stalled", "Reconciling"))
        assert (find_str(ready, "status"), find_str(ready, "reason")) == ("True", "RolledBack")
        assert find_int(ready, "observedGeneration") < find_int(shop, "metadata", "generation")
        assert (find_str(stalled, "status"), find_str(reconciling, "status")) == ("True", "False")
        # Its release is recorded as Helm does it.
        last = (await revisions(world))[-1]
        assert last[1] == ReleaseStatus.DEPLOYED
        assert last[2] == ("Rollback to 1" if case.wrote else "Install complete")
        # It stays there, until the resource asks for something else.
        await world.runtime.queues.wait_idle("prod.shop")
        assert (await revisions(world))[-1] == last
        await world.change("prod", "shop", {"packageVersion": "1.0.0", "settings": {"text": "third"}})
        shop = await world.until_state("prod", "shop", "Ready")
        assert find(shop, "status", "rollback") is None
        assert await text(world) == "third"


@pytest.mark.slow
async def test_a_rollback_survives_a_restart_and_a_new_request_tries_again(tmp_path: Path) -> None:
    failing = {"templates/j.yaml": JOB % ("early", "helm.sh/hook: pre-upgrade,")}
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await install(world, {})
            await world.push("web", "2.0.0", failing)
            await world.change("prod", "shop", {"packageVersion": "2.0.0"})
            await world.until_state("prod", "shop", "RolledBack")
            before = await revisions(world)
        async with ground.open_world() as world:
            await world.until_runtime(lambda: world.runtime.status("prod.shop") is not None)
            await world.until_runtime(lambda: world.runtime.instances["prod.shop"].wish.version == "1.0.0")
            await world.runtime.queues.wait_idle("prod.shop")
            await world.until_state("prod", "shop", "RolledBack")
            assert await revisions(world) == before
            # A request tries again what the resource asks for, and fails again, once.
            await world.annotate("prod", "shop", REQUESTED, "now")
            await world.until_runtime(lambda: world.runtime.instances["prod.shop"].wish.directives.requested == "now")
            await world.until_runtime(lambda: world.runtime.instances["prod.shop"].wish.version == "2.0.0")
            await world.until("prod", "shop", lambda obj: find_str(obj, "status", "summary", "state") != "RolledBack")
            await world.until_state("prod", "shop", "RolledBack")
            assert len(await revisions(world)) == len(before) + 2


@pytest.mark.slow
async def test_there_may_be_no_way_back(tmp_path: Path) -> None:
    fixed = {
        "templates/c.yaml": LIMITS % ("true", "2"),
        "templates/j.yaml": JOB % ("late", "helm.sh/hook: post-upgrade,"),
    }
    async with open_world(tmp_path) as world:
        await install(world, {"templates/c.yaml": LIMITS % ("false", "1")})
        await world.push("web", "2.0.0", {"templates/drawn.yaml": DRAWN, **fixed})
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})

        def judged(obj: JsonObject) -> bool:
            return "stays so" in find_str(obj, "status", "summary", "message")

        shop = await world.until("prod", "shop", judged)
        message = find_str(shop, "status", "summary", "message")
        assert "returning to revision 1 (1.0.0), because 2.0.0 failed (HookFailed" in message
        assert "ConfigMap prod/limits: it is immutable, and stays so; nothing was changed" in message
        assert find_str(shop, "status", "summary", "state") == "Degraded"
        assert (await revisions(world))[-1][1] == ReleaseStatus.FAILED  # of the upgrade; the rollback wrote nothing
        # A resource that asks for something possible ends it.
        await world.push("web", "2.0.1", {"templates/drawn.yaml": DRAWN, "templates/c.yaml": LIMITS % ("true", "2")})
        await world.change("prod", "shop", {"packageVersion": "2.0.1"})
        shop = await world.until_state("prod", "shop", "Ready")
        assert find(shop, "status", "rollback") is None


@pytest.mark.slow
async def test_what_cannot_be_undone_is_said_before(tmp_path: Path) -> None:
    slow = deployment(version="2", of_pod="wharfinger.dev/never-ready: 'true'")
    async with open_world(tmp_path) as world:
        await install(world, {"templates/c.yaml": CLAIM % "1Gi"}, more={"retries": 5, "timeout": "1h"})
        await world.push("web", "2.0.0", {"templates/c.yaml": CLAIM % "2Gi", "templates/d.yaml": slow})
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        shop = await world.until("prod", "shop", lambda obj: bool(find(obj, "status", "warnings")))
        told = "rollback: once this upgrade is applied, there is no way back to revision 1: PersistentVolumeClaim prod/data: "
        assert find(shop, "status", "warnings") == [f"{told}it has 2Gi and cannot shrink to 1Gi"]


@pytest.mark.slow
async def test_a_user_asks_for_a_rollback(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/drawn.yaml": DRAWN})
        await world.push("web", "2.0.0", {"templates/drawn.yaml": DRAWN})
        await world.repository()
        await world.create("prod", "shop", settings={"text": "first"})
        await world.until_state("prod", "shop", "Ready")
        drawn = await password(world)
        for version, said in (("1.0.0", "second"), ("2.0.0", "third")):
            await world.change("prod", "shop", {"packageVersion": version, "settings": {"text": said}})
            await world.until_state("prod", "shop", "Ready")
        await world.annotate("prod", "shop", ROLLBACK, "former")
        shop = await world.until_state("prod", "shop", "RolledBack")
        assert find_str(shop, "status", "rollback", "reason") == "Requested"
        assert find_int(shop, "status", "rollback", "revision") == 2
        assert await text(world) == "second"
        await world.annotate("prod", "shop", ROLLBACK, "1@again")
        await world.until("prod", "shop", lambda obj: find_int(obj, "status", "rollback", "revision") == 1)
        await world.until_state("prod", "shop", "RolledBack")
        assert await text(world) == "first"
        assert await password(world) == drawn
        assert [description for _, _, description in await revisions(world)][-2:] == ["Rollback to 2", "Rollback to 1"]
        # An impossible one changes nothing, and says why.
        await world.annotate("prod", "shop", ROLLBACK, "77")
        shop = await world.until(
            "prod", "shop", lambda obj: find_str(obj, "status", "rollback", "reason") == "NoWayBack"
        )
        assert "there is no revision 77" in find_str(shop, "status", "rollback", "message")
