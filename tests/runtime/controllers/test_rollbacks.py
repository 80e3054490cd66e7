"""Rollbacks after a restart, rollbacks requested by a user, and cases in which no rollback is possible."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

import pytest

from tests.runtime.lifecycle.test_package_state import APP, open_cluster
from tests.runtime.support.upgraded import CLAIM, DRAWN, JOB, LIMITS, deployment, install, password, revisions, text
from tests.runtime.support.world import SOON, World, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import bash, hooked
from wharfinger.cluster.records.release import ReleaseStatus
from wharfinger.formats.json.value import JsonObject, find, find_int, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.controllers.rollbacks import Rollbacks
from wharfinger.runtime.core.runtime import STALLED_RETRY, Runtime
from wharfinger.runtime.lifecycle.listed_states import ListedStates
from wharfinger.runtime.lifecycle.package_state import StateRecord, state_record
from wharfinger.runtime.resources.resources import REQUESTED
from wharfinger.runtime.resources.upgrade_policy import ROLLBACK

FORBIDS_FIRST: Final[tuple[JsonObject, ...]] = (
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "not-again"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}
                ]
            },
            "validations": [{"expression": "object.data.?text.orValue('') != 'first'", "message": "not again"}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "not-again"},
        "spec": {"policyName": "not-again", "validationActions": ["Deny"]},
    },
)


async def test_a_package_created_again_has_a_new_record() -> None:
    """A blocked package is deleted before the runtime gets its state record. A new package of the same name gets a new record."""
    known: list[StateRecord] = []
    async with open_cluster() as client:
        runtime = SimpleNamespace(instances={}, tools=SimpleNamespace(cluster=client, states=ListedStates()))
        rollbacks = Rollbacks(cast("Runtime", runtime), lambda name: None, lambda name, delay_s: None)
        asked: JsonObject = {"spec": {"upgrade": {}}}
        record = state_record(client, APP)
        await record.update(lambda state: state.startup_done("hooks/a.sh"))
        await rollbacks.prepare(APP, asked)
        await record.delete()
        rollbacks.forget(APP.name)
        await rollbacks.prepare(APP, asked)
        runtime.instances[APP.name] = SimpleNamespace(record=None, know_record=known.append)
        rollbacks.share(APP.name)
    assert [record.state.started for record in known] == [frozenset()]


@pytest.mark.slow
@pytest.mark.unmeasured
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
            await world.until_runtime(lambda: world.runtime.instances["prod.shop"].desired.version == "1.0.0")
            await world.runtime.queues.wait_idle("prod.shop")
            await world.until_state("prod", "shop", "RolledBack")
            assert await revisions(world) == before
            # A request retries the desired version once. It fails again.
            await world.annotate("prod", "shop", REQUESTED, "now")
            await world.until_runtime(
                lambda: world.runtime.instances["prod.shop"].desired.directives.requested == "now"
            )
            await world.until_runtime(lambda: world.runtime.instances["prod.shop"].desired.version == "2.0.0")
            await world.until("prod", "shop", lambda obj: find_str(obj, "status", "summary", "state") != "RolledBack")
            await world.until_state("prod", "shop", "RolledBack")
            assert len(await revisions(world)) == len(before) + 2


@pytest.mark.slow
async def test_an_impossible_rollback_is_reported(tmp_path: Path) -> None:
    fixed = {
        "templates/c.yaml": LIMITS % ("true", "2"),
        "templates/j.yaml": JOB % ("late", "helm.sh/hook: post-upgrade,"),
    }
    async with open_world(tmp_path) as world:
        await install(world, {"templates/c.yaml": LIMITS % ("false", "1")})
        await world.push("web", "2.0.0", {"templates/drawn.yaml": DRAWN, **fixed})
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})

        def judged(obj: JsonObject) -> bool:
            return "become mutable again" in find_str(obj, "status", "summary", "message")

        shop = await world.until("prod", "shop", judged)
        message = find_str(shop, "status", "summary", "message")
        assert "returning to revision 1 (1.0.0), because 2.0.0 failed (HookFailed" in message
        assert "ConfigMap prod/limits: it is immutable, and cannot become mutable again; nothing was changed" in message
        assert find_str(shop, "status", "summary", "state") == "Degraded"
        # This is the revision of the upgrade, because the rollback wrote none.
        assert (await revisions(world))[-1][1] == ReleaseStatus.FAILED
        # The rollback ends as soon as the desired version can be applied.
        await world.push("web", "2.0.1", {"templates/drawn.yaml": DRAWN, "templates/c.yaml": LIMITS % ("true", "2")})
        await world.change("prod", "shop", {"packageVersion": "2.0.1"})
        shop = await world.until_state("prod", "shop", "Ready")
        assert find(shop, "status", "rollback") is None


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_failed_rollback_is_reported_and_not_reversed(tmp_path: Path) -> None:
    """After the failure, the package does not return to the newer version. Only when the resource requests another version does
    the rollback end.
    """
    old = {"templates/j.yaml": JOB % ("back", "helm.sh/hook: pre-rollback,")}
    new = {"templates/j.yaml": JOB % ("late", "helm.sh/hook: post-upgrade,")}
    async with open_world(tmp_path) as world:
        await install(world, old)
        await world.push("web", "2.0.0", {"templates/drawn.yaml": DRAWN, **new})
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})

        def failed(obj: JsonObject) -> bool:
            message = find_str(obj, "status", "summary", "message")
            return "pre-rollback hook Job back failed" in message

        shop = await world.until("prod", "shop", failed)
        message = find_str(shop, "status", "summary", "message")
        assert message.startswith(
            "returning to revision 1 (1.0.0), because 2.0.0 failed (HookFailed: post-upgrade hook Job late"
        )
        assert find_str(shop, "status", "summary", "state") == "Degraded"
        assert world.runtime.instances["prod.shop"].desired.version == "1.0.0"
        assert [description.split(":")[0] for _, _, description in await revisions(world)][:3] == [
            "Install complete",
            "Upgrade failed",
            "Rollback failed",
        ]
        await world.push("web", "2.0.1", {"templates/drawn.yaml": DRAWN})
        await world.change("prod", "shop", {"packageVersion": "2.0.1"})
        shop = await world.until_state("prod", "shop", "Ready")
        assert find(shop, "status", "rollback") is None
        assert find_str(shop, "status", "currentVersion", "version") == "2.0.1"


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_failed_rollback_is_retried_until_it_succeeds(tmp_path: Path) -> None:
    """The rollback is retried although nobody changes the resource. A hook of the former revision fails while a file exists."""
    config, blocks = "{configVersion: v1, beforeHelm: 1}", tmp_path / "blocks"
    tries = tmp_path / "tries"
    back = f"echo try >> {tries}; [ ! -e {blocks} ] || {{ echo 'the database is not there' >&2; exit 1; }}"
    async with open_ground(tmp_path) as ground, replace(ground, backoff=SOON).open_world() as world:
        await world.repository()
        for version, then in (("1.0.0", back), ("2.0.0", f"touch {blocks}; echo broken >&2; exit 1")):
            folder = hooked(tmp_path / version, {"a.sh": bash(config, then)})
            file = folder / "package.yaml"
            file.write_text(file.read_text().replace("1.0.0", version))
            await world.push_folder(folder, "hooked", version)
        more: JsonObject = {"upgrade": {"rollbackOnFailure": True, "retries": 0}}
        await world.create("prod", "shop", package="hooked", more=more)
        await world.until_state("prod", "shop", "Ready")
        before = tries.read_text().count("try")
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})

        def failed(obj: JsonObject) -> bool:
            degraded = find_str(obj, "status", "summary", "state") == "Degraded"
            return degraded and "the database is not there" in find_str(obj, "status", "summary", "message")

        shop = await world.until("prod", "shop", failed)
        message = find_str(shop, "status", "summary", "message")
        assert message.startswith("returning to revision 1 (1.0.0), because 2.0.0 failed (PackageHookFailed")
        await world.until_runtime(lambda: tries.read_text().count("try") >= before + 2)
        assert world.runtime.instances["prod.shop"].desired.version == "1.0.0"
        blocks.unlink()
        shop = await world.until_state("prod", "shop", "RolledBack")
        assert find_str(shop, "status", "currentVersion", "version") == "1.0.0"
        assert find_str(shop, "status", "rollback", "reason") == "UpgradeFailed"
        assert find_str(World.condition(shop, "Ready"), "status") == "True"


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_rollback_refused_by_the_server_is_retried_until_it_is_allowed(tmp_path: Path) -> None:
    """A policy forbids the content of the former revision for a while. Ten minutes later, the rollback is tried again without a
    change of the spec.
    """
    new = {"templates/j.yaml": JOB % ("late", "helm.sh/hook: post-upgrade,")}
    async with open_world(tmp_path) as world:
        await install(world, {})
        await world.push("web", "2.0.0", {"templates/drawn.yaml": DRAWN, **new})
        for obj in FORBIDS_FIRST:
            await world.client.create(obj)
        await world.change("prod", "shop", {"packageVersion": "2.0.0", "settings": {"text": "second"}})

        def refused(obj: JsonObject) -> bool:
            degraded = find_str(obj, "status", "summary", "state") == "Degraded"
            return degraded and "not again" in find_str(obj, "status", "summary", "message")

        shop = await world.until("prod", "shop", refused)
        message = find_str(shop, "status", "summary", "message")
        assert message.startswith("returning to revision 1 (1.0.0), because 2.0.0 failed (HookFailed")
        assert await text(world) == "second"
        for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
            resource = await world.client.resource_type("admissionregistration.k8s.io/v1", kind)
            await world.client.delete(ObjectKey(resource, "", "not-again"))
        now = world.runtime.now
        world.runtime.now = lambda: now() + STALLED_RETRY
        await world.annotate("prod", "shop", "example.com/look", "again")
        await world.until_state("prod", "shop", "RolledBack")
        assert await text(world) == "first"


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_an_irreversible_change_is_warned_about_before_the_upgrade(tmp_path: Path) -> None:
    slow = deployment(version="2", of_pod="wharfinger.dev/never-ready: 'true'")
    async with open_world(tmp_path) as world:
        await install(world, {"templates/c.yaml": CLAIM % "1Gi"}, more={"retries": 5, "timeout": "1h"})
        await world.push("web", "2.0.0", {"templates/c.yaml": CLAIM % "2Gi", "templates/d.yaml": slow})
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        shop = await world.until("prod", "shop", lambda obj: bool(find(obj, "status", "warnings")))
        told = (
            "rollback: once this upgrade is applied, the package cannot return to revision 1: "
            "PersistentVolumeClaim prod/data: "
        )
        assert find(shop, "status", "warnings") == [f"{told}it has 2Gi and cannot shrink to 1Gi"]


@pytest.mark.slow
async def test_a_user_can_request_a_rollback(tmp_path: Path) -> None:
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
        # An impossible request changes nothing, and is reported.
        await world.annotate("prod", "shop", ROLLBACK, "77")
        shop = await world.until(
            "prod", "shop", lambda obj: find_str(obj, "status", "rollback", "reason") == "NoWayBack"
        )
        assert "there is no revision 77" in find_str(shop, "status", "rollback", "message")


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_rollback_restores_hooks_and_secret_settings(tmp_path: Path) -> None:
    config = "{configVersion: v1, beforeHelm: 1}"
    came = tmp_path / "came"
    async with open_ground(tmp_path) as ground, replace(ground, backoff=SOON).open_world() as world:
        await world.repository()
        await world.secret("login", password="the-first-password")
        for version, then in (("1.0.0", f"echo one >> {came}"), ("2.0.0", "echo broken >&2; exit 1")):
            folder = hooked(tmp_path / version, {"a.sh": bash(config, then)})
            file = folder / "package.yaml"
            file.write_text(file.read_text().replace("1.0.0", version))
            await world.push_folder(folder, "hooked", version)
        more: JsonObject = {
            "upgrade": {"rollbackOnFailure": True, "retries": 1},
            "settingsFrom": [{"kind": "Secret", "name": "login", "key": "password", "path": "mode"}],
        }
        await world.create("prod", "shop", package="hooked", more=more)
        await world.until_state("prod", "shop", "Ready")
        runs = came.read_text().count("one")
        # The version and the Secret change together, and the daemon may see either change first.
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        shop = await world.until_state("prod", "shop", "RolledBack")
        told = find_str(shop, "status", "rollback", "message")
        assert told.startswith("PackageHookFailed: ")
        assert told.endswith("(after 2 attempts)")
        assert came.read_text().count("one") > runs
        instance = world.runtime.instances["prod.shop"]
        assert instance.configuration.settings["mode"] == "the-first-password"
        assert "the-first-password" in instance.secrets
        # Another text in the Secret makes another desired state, so the upgrade is tried again.
        await world.secret("login", password="the-second-password")
        await world.until_runtime(lambda: instance.desired.version == "2.0.0")
        await world.until_runtime(lambda: instance.desired.version == "1.0.0")
        await world.until_state("prod", "shop", "RolledBack")
        assert instance.configuration.settings["mode"] == "the-first-password"


@pytest.mark.slow
async def test_a_failed_upgrade_without_a_policy_is_not_rolled_back(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await install(world, {}, more={"rollbackOnFailure": False})
        await world.push("web", "2.0.0", {"templates/x.yaml": '{{ fail "no" }}'})
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        shop = await world.until_state("prod", "shop", "Failed")
        assert find(shop, "status", "rollback") is None
        # The policy may be added after the failure, because the former revision is found by its record.
        await world.change("prod", "shop", {"upgrade": {"rollbackOnFailure": True}})
        shop = await world.until_state("prod", "shop", "RolledBack")
        assert find_int(shop, "status", "rollback", "revision") == 1
