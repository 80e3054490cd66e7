"""Releases after they were applied: what the status of their packages reports."""

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.support.notes import put
from tests.runtime.support.world import PATIENCE_S, World, open_ground, open_world
from wharfinger.cluster.api.errors import ApiError
from wharfinger.cluster.drift.comparison import Drift, DriftedField
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.health.health import health_of
from wharfinger.cluster.objects.desired import identity_of
from wharfinger.cluster.objects.ownership import Owner, owned
from wharfinger.cluster.records.release import from_secret, to_secret
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness
from wharfinger.formats.json.value import JsonObject, find, find_int, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.queue.lane import current_package
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.core.release_events import Charging
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.package.events import Progressed, Succeeded
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import CONFIG_MAP, SECRET
from wharfinger.runtime.scheduler.events import Rescheduled
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.summary import summarize

THING = ObjectKey(ResourceType("example.com", "v1", "Thing", "things", namespaced=True), "prod", "front")
SHOP = ObjectKey(CONFIG_MAP, "prod", "shop")
OWNER = Owner("shop", "prod")
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
THING_YAML = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: front}\nspec: {copies: 1}\n"
DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)
DEPLOYMENT_YAML = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: front
  annotations: {wharfinger.dev/observed-after: "1.5", wharfinger.dev/ready-after: "1.5"}
spec:
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec: {containers: [{name: main, image: "registry.example/front:1"}]}
"""
RULE: JsonObject = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "current": "status.phase == 'Done'",
    "failed": "status.phase == 'Broken'",
}


@asynccontextmanager
async def open_shop(
    folder: Path, more: JsonObject | None = None, files: dict[str, str] | None = None
) -> AsyncIterator[World]:
    """Open a `World` with a package that is ready."""
    async with open_world(folder) as world:
        await world.push("web", "1.0.0", files)
        await world.repository()
        await world.create("prod", "shop", more=more)
        await world.until_state("prod", "shop", "Ready")
        yield world


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition that no object reports."""
    with trio.fail_after(PATIENCE_S):
        while not holds():
            await trio.testing.wait_all_tasks_blocked(0.005)


async def set_text(world: World, text: str, *, by: str = "somebody") -> None:
    """Change a field of the release's ConfigMap as another writer."""
    data: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop", "namespace": "prod"}}
    await world.client.apply({**data, "data": {"text": text}}, field_manager=by, force=True)


async def text_of(world: World) -> str:
    return find_str(await world.client.get(SHOP), "data", "text")


def warnings_of(obj: JsonObject) -> str:
    return str(find(obj, "status", "warnings"))


def message_of(obj: JsonObject) -> str:
    return find_str(obj, "status", "summary", "message")


def reason_of(world: World, obj: JsonObject) -> str:
    return find_str(world.condition(obj, "Ready"), "reason")


async def set_phase(world: World, phase: str) -> None:
    """Write a phase into the status, as the controller of the custom resource would."""
    await world.until_object(THING, lambda _obj: True)
    await world.client.merge_patch(THING, {"status": {"phase": phase}}, subresource="status")


@asynccontextmanager
async def open_thing(folder: Path) -> AsyncIterator[World]:
    """Open a `World` with a ready package that has a custom resource. If the resource is unready for longer than half a second,
    the package becomes Degraded.
    """
    async with open_world(folder, grace_s=0.5) as world:
        await install_thing(world)
        yield world


async def install_thing(world: World) -> None:
    """Install a package that has a custom resource, and let the custom resource become ready."""
    await world.allow_cluster()
    await world.push("web", "1.0.0", {"crds/things.yaml": DEFINITION, "templates/thing.yaml": THING_YAML})
    await world.repository()
    await world.create("prod", "shop", more={"healthChecks": [RULE]})
    waits = await world.until("prod", "shop", lambda obj: reason_of(world, obj) == "NotReady")
    assert "Thing.example.com prod/front" in message_of(waits)
    await set_phase(world, "Done")
    await world.until_state("prod", "shop", "Ready")


async def persons_revision(world: World, revision: int) -> None:
    """Write one more revision that looks as if a helm command had written it instead of a daemon."""
    name = f"sh.helm.release.v1.shop.v{revision - 1}"
    ours = from_secret(await world.client.get(ObjectKey(SECRET, "prod", name)))
    theirs = replace(ours, document={**ours.document, "version": revision}, holder="")
    await world.client.create(to_secret(theirs, datetime.now(UTC)))


def instance_of(world: World) -> Instance:
    return world.runtime.instances["prod.shop"]


# -- drift


async def test_corrected_drift_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="wharfinger.runtime.core.packages")
    async with open_shop(tmp_path) as world:
        before = await world.until_state("prod", "shop", "Ready")
        await set_text(world, "changed")
        await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")
        await until(lambda: not world.runtime.tools.releases.drifts(OWNER))
        assert instance_of(world).applied.drift == ()
        assert caplog.messages == ["prod/shop: drift: ConfigMap prod/shop: /data/text by somebody"]
        after = await world.until_state("prod", "shop", "Ready")
        assert find_object(after, "status") == find_object(before, "status")


async def test_a_deleted_object_is_restored(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        uid = find_str(await world.client.get(SHOP), "metadata", "uid")
        await world.client.delete(SHOP)
        await world.until_object(SHOP, lambda obj: find_str(obj, "metadata", "uid") != uid)


@pytest.mark.slow
async def test_drift_is_a_warning_in_mode_warn_until_it_ends(tmp_path: Path) -> None:
    async with open_shop(tmp_path, {"drift": {"mode": "warn"}}) as world:
        await set_text(world, "changed")
        warned = await world.until("prod", "shop", lambda obj: "drift" in warnings_of(obj))
        assert "drift: ConfigMap prod/shop: /data/text by somebody" in warnings_of(warned)
        assert find_str(warned, "status", "summary", "state") == "Ready"
        assert await text_of(world) == "changed"
        # The next change of the settings does not correct the drift, and the warning stays.
        await world.change("prod", "shop", {"settings": {"more": 1}})
        still = await world.until_state("prod", "shop", "Ready")
        assert await text_of(world) == "changed"
        await world.until("prod", "shop", lambda obj: "/data/text by somebody" in warnings_of(obj))
        await world.change("prod", "shop", {"drift": None})
        await world.until_state("prod", "shop", "Ready")
        await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")
        await world.until("prod", "shop", lambda obj: "drift" not in warnings_of(obj))
        assert find_int(still, "status", "release", "revision") > 0


async def test_pruned_objects_are_logged_with_the_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="wharfinger.runtime.core.release_events")
    async with open_shop(tmp_path) as world:
        await world.until_state("prod", "shop", "Ready")
        stray = owned(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stray", "namespace": "prod"}}, OWNER
        )
        await world.client.apply(stray, field_manager="wharfinger", force=True)
        world.runtime.tools.releases.prune()
        await until(lambda: world.runtime.tools.releases.statistics().pruned == 1)
        reason = "it has the label of release prod/shop, which no longer contains it"
        assert f"prod/shop: deleted ConfigMap prod/stray: {reason}" in caplog.messages


@pytest.mark.slow
async def test_problems_of_a_release_are_warnings_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="wharfinger.runtime.core.packages")
    async with open_shop(tmp_path) as world:
        keeping, text = world.runtime.releases, "the drift of ConfigMap prod/shop cannot be corrected: forbidden"
        for _ in range(2):
            keeping.troubled(OWNER, (text,))
        warned = await world.until("prod", "shop", lambda obj: text in warnings_of(obj))
        assert find_str(warned, "status", "summary", "state") == "Ready"
        assert caplog.messages.count(f"prod/shop: {text}") == 1
        keeping.troubled(OWNER, ())
        await world.until("prod", "shop", lambda obj: find(obj, "status", "warnings") is None)
        assert caplog.messages[-1] == "prod/shop: all corrections and deletions of objects succeed again"
        keeping.troubled(Owner("nobody", "prod"), (text,))
        assert caplog.messages[-1] == f"prod/nobody: {text}"


class RefusingClient(LimitedClient):
    """A client that refuses every apply while ``refuses`` is true."""

    refuses = False

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        if self.refuses:
            raise ApiError(403, "Forbidden", "a policy forbids it")
        return await super().apply(obj, field_manager=field_manager, force=force, dry_run=dry_run)


@pytest.mark.slow
async def test_a_refused_correction_is_a_warning_with_the_next_attempt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_ground(tmp_path) as ground:
        client = RefusingClient(ground.client, Slots(SlotLimits()))
        async with replace(ground, engine_client=client).open_world() as world:
            await world.push("web", "1.0.0")
            await world.repository()
            await world.create("prod", "shop")
            await world.until_state("prod", "shop", "Ready")
            client.refuses = True
            await set_text(world, "changed")
            warned = await world.until("prod", "shop", lambda obj: "cannot be corrected" in warnings_of(obj))
            found = re.search(r"the drift of ConfigMap prod/shop.*403 Forbidden\)", str(warnings_of(warned)))
            assert found is not None
            text = found.group()
            pattern = (
                r"the drift of ConfigMap prod/shop \((/data/text by \S+)\) cannot be corrected: a policy forbids it .*"
            )
            named = re.fullmatch(pattern, text)
            assert named is not None, text
            assert find_str(warned, "status", "summary", "state") == "Ready"
            assert caplog.messages.count(f"prod/shop: {text}") == 1
            inspector = RuntimeInspector("test", datetime(2026, 1, 1, tzinfo=UTC), world.runtime)
            told = await inspector.why("prod.shop")
            assert told is not None
            assert told.ready
            [also] = told.also
            begin = f"prod.shop: ConfigMap prod/shop ({named.group(1)}): a policy forbids it (403 Forbidden); attempt "
            assert also.startswith(begin)
            assert re.search(r" failed, (next at |attempt \d+ is under way)", also)
            counted = await inspector.statistics()
            assert counted is not None
            assert counted.objects is not None
            assert (counted.objects.health, counted.objects.failing) == ("Degraded, 1 error", 1)
            client.refuses = False
            await world.change("prod", "shop", {"settings": {"text": "other"}})
            await world.until("prod", "shop", lambda obj: find(obj, "status", "warnings") is None)


async def test_drift_is_not_detected_in_mode_off(tmp_path: Path) -> None:
    async with open_shop(tmp_path, {"drift": {"mode": "warn"}}) as world:
        await set_text(world, "changed")
        await world.until("prod", "shop", lambda obj: "drift" in warnings_of(obj))
        await world.change("prod", "shop", {"drift": {"mode": "off"}})
        await world.until_state("prod", "shop", "Ready")
        await world.until("prod", "shop", lambda obj: find(obj, "status", "warnings") is None)
        await set_text(world, "again")
        await world.client.delete(ObjectKey(CONFIG_MAP, "prod", "shop"))
        await world.runtime.queues.wait_idle("prod.shop")
        assert await world.config_map("prod", "shop") is None
        assert instance_of(world).applied.drift == ()


@pytest.mark.slow
async def test_contested_drift_is_reported_with_the_other_writer(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        with trio.fail_after(PATIENCE_S):
            for number in range(6):
                await set_text(world, f"mine {number}", by="stubborn")
                if number < 5:
                    await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")
        fought = await world.until_state("prod", "shop", "Degraded")
        assert reason_of(world, fought) == "DriftFought"
        assert "stubborn" in message_of(fought)
        assert find_str(world.condition(fought, "Stalled"), "status") == "False"
        # Another run finds the same problem, and does not report success.
        world.runtime.packages.send(Rescheduled("prod.shop", "again"))
        assert instance_of(world).applied.fought
        await world.change("prod", "shop", {"drift": {"ignore": [{"paths": ["/data/text"]}]}})
        await world.until_state("prod", "shop", "Ready")
        await world.runtime.queues.wait_idle("prod.shop")
        assert (await text_of(world)).startswith("mine")


SHOP_ID = identity_of(SHOP)


def fight(name: str) -> Fight:
    return Fight(SHOP_ID, (name,), 0.0, 5, 15.0)


@pytest.mark.slow
async def test_contested_objects_are_listed_up_to_a_limit_and_reported_after_a_run(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        keeping, runtime, instance = world.runtime.releases, world.runtime, instance_of(world)
        drift = Drift(SHOP_ID, missing=False, fields=(DriftedField("/data/text", "a"),))
        runtime.packages.emit(instance, Progressed(Stage.APPLIED, "ApplyingManifests", "at work"))
        keeping.drifted(OWNER, (drift,), tuple(fight(name) for name in "abcde"))
        assert instance.status.stages[Stage.APPLIED].reason == "ApplyingManifests"
        runtime.packages.emit(instance, Succeeded(Stage.APPLIED))
        runtime.packages.emit(instance, Succeeded(Stage.SCALED))
        state, message, _ = summarize(instance.status)
        assert (state, message.count("changed again"), message.endswith("; and 2 more")) == ("Degraded", 3, True)
        keeping.drifted(OWNER, (), ())
        assert summarize(instance.status).state == "Ready"


@pytest.mark.slow
async def test_events_of_unknown_releases_are_ignored(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        keeping, stranger = world.runtime.releases, Owner("stranger", "prod")
        before = instance_of(world).status
        keeping.drifted(stranger, (), (fight("x"),))
        keeping.foreign_revision(stranger, 7, "a helm command")
        keeping.health_changed(stranger, health_of({SHOP: Failed("broken")}))
        assert instance_of(world).status is before


async def test_texts_from_the_cluster_are_masked(tmp_path: Path) -> None:
    secret = "t0psecret-t0psecret"
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.secret("login", text=secret)
        more: JsonObject = {"settingsFrom": [{"kind": "Secret", "name": "login", "key": "text", "path": "text"}]}
        await world.create("prod", "shop", more=more)
        await world.until_state("prod", "shop", "Ready")
        keeping, instance = world.runtime.releases, instance_of(world)
        assert secret in instance.secrets
        said: list[tuple[Readiness, list[ObjectKey], str]] = [
            (Failed(f"exec: {secret}: not found"), [], "Degraded"),
            (InProgress(f"waiting for {secret}"), [], "Ready"),
            (InProgress(f"waiting for {secret}"), [SHOP], "Degraded"),
        ]
        for state, stalled, expected in said:
            keeping.health_changed(OWNER, health_of({SHOP: state}, stalled=stalled))
            assert summarize(instance.status).state == expected
            assert secret not in str(instance.status)
            keeping.health_changed(OWNER, health_of({SHOP: Current()}))
        drift = Drift(SHOP_ID, missing=False, fields=(DriftedField(f"/data/{secret}", secret),))
        keeping.drifted(OWNER, (drift,), (fight(secret),))
        keeping.foreign_revision(OWNER, 2, secret)
        assert summarize(instance.status).state == "Degraded"
        assert secret not in f"{instance.status} {instance.applied.drift} {instance.applied.fought} {instance.warnings}"


# -- health


@pytest.mark.slow
async def test_a_failed_workload_is_reported_until_it_recovers(tmp_path: Path) -> None:
    """The workload is a custom resource, and ``healthChecks`` in the Application's spec decides whether it has failed."""
    async with open_thing(tmp_path) as world:
        for phase, reason in (("Busy", "Unhealthy"), ("Broken", "WorkloadFailed")):
            await set_phase(world, phase)
            down = await world.until_state("prod", "shop", "Degraded")
            assert reason_of(world, down) == reason
            assert "Thing.example.com prod/front" in message_of(down)
            assert find_str(world.condition(down, "Scaled"), "status") == "False"
            assert find_str(world.condition(down, "Stalled"), "status") == "False"
            await set_phase(world, "Done")
            up = await world.until_state("prod", "shop", "Ready")
            assert find_str(world.condition(up, "Scaled"), "status") == "True"


@pytest.mark.slow
async def test_a_workload_that_failed_while_no_daemon_ran_is_reported(tmp_path: Path) -> None:
    """The package was Ready, so no task waits for its objects after the start. The daemon has to check their health itself."""
    async with open_ground(tmp_path) as plain:
        ground = replace(plain, grace_s=0.2)
        async with ground.open_world() as world:
            await install_thing(world)
        await ground.client.merge_patch(THING, {"status": {"phase": "Busy"}}, subresource="status")
        async with ground.open_world() as world:
            down = await world.until_state("prod", "shop", "Degraded")
            assert reason_of(world, down) == "Unhealthy"
            assert "Thing.example.com prod/front" in message_of(down)
            await set_phase(world, "Done")
            await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_scaling_a_deployment_leaves_its_package_ready(tmp_path: Path) -> None:
    """An HPA changes the replicas. The new generation is observed some time later, and the pods become ready even later."""
    async with open_shop(tmp_path, files={"templates/web.yaml": DEPLOYMENT_YAML}) as world:
        deployment = ObjectKey(DEPLOYMENT, "prod", "front")
        seen: list[tuple[str, str, str, str]] = []
        rolling = "version 1.0.0 is installed and ready; Deployment.apps prod/front: "
        with world.applications.changes() as changes:
            await world.client.merge_patch(deployment, {"spec": {"replicas": 3}}, subresource="scale")
            with trio.fail_after(PATIENCE_S):
                while not seen or seen[-1][2] == "True" or len(seen) < 2:
                    await changes.wait()
                    (shop,) = world.applications.objects().values()
                    is_ready = find_str(world.condition(shop, "Ready"), "status")
                    reconciles = find_str(world.condition(shop, "Reconciling"), "status")
                    seen.append((find_str(shop, "status", "summary", "state"), is_ready, reconciles, message_of(shop)))
        assert {one[:2] for one in seen} == {("Ready", "True")}
        assert any(one[2:] == ("True", f"{rolling}generation 2 is not observed yet") for one in seen)
        assert any(one[2:] == ("True", f"{rolling}1 of 3 replicas available") for one in seen)
        assert seen[-1] == ("Ready", "True", "False", "version 1.0.0 is installed and ready")


@pytest.mark.slow
async def test_a_workload_that_failed_during_a_run_is_reported_after_it(tmp_path: Path) -> None:
    """The wait for readiness is over, but a hook has not run yet. A failure at that moment must not be lost."""
    async with open_thing(tmp_path) as world:
        runtime, instance = world.runtime, instance_of(world)
        runtime.packages.emit(instance, Progressed(Stage.APPLIED, "ApplyingManifests", "at work"))
        runtime.packages.emit(instance, Succeeded(Stage.APPLIED))
        assert summarize(instance.status).state == "Updating"
        await set_phase(world, "Busy")
        await until(lambda: bool(runtime.tools.releases.health(OWNER).laggards))
        assert summarize(instance.status).state == "Updating"
        runtime.packages.emit(instance, Succeeded(Stage.SCALED))
        assert instance.status.stages[Stage.SCALED].reason == "RollingOut"
        down = await world.until_state("prod", "shop", "Degraded")
        assert reason_of(world, down) == "Unhealthy"
        await set_phase(world, "Done")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_a_rollout_during_a_run_is_not_a_failure(tmp_path: Path) -> None:
    """While a run applies objects, only the run itself, which waits for the objects, decides whether they are ready."""
    async with open_shop(tmp_path) as world:
        instance = instance_of(world)
        world.runtime.packages.emit(instance, Progressed(Stage.APPLIED, "ApplyingManifests", "at work"))
        world.runtime.releases.health_changed(OWNER, health_of({SHOP: InProgress("0 of 1 available")}))
        assert (summarize(instance.status).state, summarize(instance.status).message) == ("Updating", "at work")


# -- users


@pytest.mark.slow
async def test_a_users_revision_is_reported_and_stays_until_the_next_change(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        await persons_revision(world, 2)
        warned = await world.until("prod", "shop", lambda obj: "release:" in warnings_of(obj))
        assert "a helm command (field manager wharfinger) changed the release last (revision 2)" in warnings_of(warned)
        assert find_str(warned, "status", "summary", "state") == "Ready"
        await set_text(world, "theirs", by="helm")
        await until(lambda: bool(world.runtime.tools.releases.drifts(OWNER)))
        # Another run with the same resource is not a new desired state.
        world.runtime.packages.send(Rescheduled("prod.shop", "again"))
        await world.runtime.queues.wait_idle("prod.shop")
        assert await text_of(world) == "theirs"
        told = await world.until("prod", "shop", lambda obj: "drift: ConfigMap prod/shop" in warnings_of(obj))
        assert "(revision 2)" in warnings_of(told)
        assert find_str(told, "status", "summary", "state") == "Ready"
        await world.change("prod", "shop", {"settings": {"text": "ours"}})
        after = await world.until_state("prod", "shop", "Ready")
        assert (await text_of(world), find(after, "status", "warnings")) == ("ours", None)
        assert find_int(after, "status", "release", "revision") == 3
        await set_text(world, "theirs again", by="helm")
        await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "ours")


@pytest.mark.slow
async def test_a_forced_run_reverts_a_users_revision(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        await persons_revision(world, 2)
        await world.until("prod", "shop", lambda obj: "(revision 2)" in warnings_of(obj))
        await set_text(world, "theirs", by="helm")
        await until(lambda: bool(world.runtime.tools.releases.drifts(OWNER)))
        await world.annotate("prod", "shop", "wharfinger.dev/force-requested-at", "now")
        await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")
        await world.until("prod", "shop", lambda obj: find(obj, "status", "warnings") is None)


@pytest.mark.slow
async def test_an_uninstalled_package_has_no_warnings(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create_module("web")
        await world.until_state("", "web", "Ready")
        record = ObjectKey(SECRET, SYSTEM_NAMESPACE, "sh.helm.release.v1.web.v1")
        ours = from_secret(await world.client.get(record))
        theirs = replace(ours, document={**ours.document, "version": 2}, holder="")
        await world.client.create(to_secret(theirs, datetime.now(UTC)))
        await world.until("", "web", lambda obj: "(revision 2)" in warnings_of(obj))
        await world.change("", "web", {"enabled": False})
        gone = await world.until_state("", "web", "Disabled")
        assert find(gone, "status", "warnings") is None


# -- packages that are charged


async def test_work_is_charged_to_the_owner_of_the_release(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        charging = Charging(world.runtime.claims)
        with charging(OWNER):
            assert current_package() == "prod.shop"
        with charging(Owner("stranger", "prod")):
            assert current_package() == ""


@pytest.mark.sampled
@pytest.mark.parametrize("stage", [Stage.HOOKS, Stage.LOADED])
async def test_other_stages_do_not_change_the_report_of_drift(tmp_path: Path, stage: Stage) -> None:
    async with open_shop(tmp_path) as world:
        instance = instance_of(world)
        put(instance, applied={"fought": ("x",)})
        before = instance.status
        world.runtime.packages.emit(instance, Succeeded(stage))
        assert instance.status is before
