"""The objects that the daemon applies, corrects, keeps or deletes: at repeated reconciliations, after changes by users, during
suspension and maintenance, and under each removal policy.
"""

import dataclasses
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from tests.runtime.core.test_release_events import (
    OWNER,
    SHOP,
    instance_of,
    message_of,
    open_shop,
    persons_revision,
    set_text,
    text_of,
    until,
    warnings_of,
)
from tests.runtime.support.killing import held, held_hook
from tests.runtime.support.world import PATIENCE_S, World, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import hooked
from tests.scale import scaled
from wharfinger.cluster.api.client import ClusterClient, ObjectList
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject, find, find_int, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.packages.rendering.renderer import Rendered, Renderer, RenderRequest
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import CONFIG_MAP
from wharfinger.runtime.scheduler.events import Rescheduled

CLAIMS = ResourceType("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)
CLAIM = (
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
)
KEPT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n"
FILES = {"templates/claim.yaml": CLAIM, "templates/kept.yaml": KEPT}


@dataclass(slots=True)
class Calls:
    """The requests to the API server, by method."""

    made: Counter[str] = field(default_factory=Counter)


class CountedClient(LimitedClient):
    """A client that counts the requests that read or write objects, except watches, JSON patches and deletions."""

    def __init__(self, client: ClusterClient, calls: Calls) -> None:
        super().__init__(client, Slots(SlotLimits()))
        self._made = calls.made

    async def get(self, key: ObjectKey) -> JsonObject:
        self._made["get"] += 1
        return await super().get(key)

    async def list(
        self, resource: ResourceType, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        self._made["list"] += 1
        return await super().list(resource, namespace, label_selector=label_selector, field_selector=field_selector)

    async def create(self, obj: JsonObject) -> JsonObject:
        self._made["create"] += 1
        return await super().create(obj)

    async def replace(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        self._made["replace"] += 1
        return await super().replace(obj, subresource=subresource)

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        self._made["apply"] += 1
        return await super().apply(obj, field_manager=field_manager, force=force, dry_run=dry_run)

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        self._made["patch"] += 1
        return await super().merge_patch(key, patch, subresource=subresource)


def look_again(world: World, *names: str) -> None:
    """Make the scheduler run packages again, although nothing has changed."""
    for name in names:
        world.runtime.packages.send(Rescheduled(name, "again"))


def versions(world: World) -> dict[str, str]:
    """Return the resource versions of all Applications."""
    objects = world.applications.objects()
    return {key.name: find_str(obj, "metadata", "resourceVersion") for key, obj in objects.items()}


# -- repeated reconciliations


@pytest.mark.slow
async def test_a_second_reconciliation_makes_no_requests(tmp_path: Path) -> None:
    calls, number = Calls(), scaled(50, 5)
    async with open_ground(tmp_path, lambda client: CountedClient(client, calls)) as ground:
        counted = dataclasses.replace(ground, engine_client=CountedClient(ground.client, calls))
        async with counted.open_world() as world:
            claim = CLAIM.replace("name: data", 'name: "{{ .Release.Name }}"')
            await world.push("web", "1.0.0", {"templates/claim.yaml": claim})
            await world.repository()
            names = [f"s{at}" for at in range(number)]
            for name in names:
                await world.create("prod", name, settings={"text": f"of {name}"})
            for name in names:
                await world.until_state("prod", name, "Ready")
                await world.until("prod", name, lambda obj: find(obj, "status", "progress") is None)
            packages = [f"prod.{name}" for name in names]
            before = versions(world), [world.runtime.status(name) for name in packages]
            calls.made.clear()
            look_again(world, *packages)
            for name in packages:
                await world.runtime.queues.wait_idle(name)
            assert calls.made == {}
            assert (versions(world), [world.runtime.status(name) for name in packages]) == before
            assert all(world.runtime.instances[name].applied.verified for name in packages)


async def test_the_same_content_in_another_version_updates_only_the_version(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        await world.push_folder(tmp_path / "web-1.0.0", "web", "1.0.1")
        await world.change("prod", "shop", {"packageVersion": "1.0.1"})
        ready = await world.until_state("prod", "shop", "Ready")
        assert find_str(ready, "status", "currentVersion", "version") == "1.0.1"
        assert find_int(ready, "status", "release", "revision") == 1


class Looking:
    """A renderer for which the templates of every chart seem to have looked up objects in the cluster.

    The output of such a chart may change at any time, so it has to be rendered at each reconciliation.
    """

    def __init__(self, inner: Renderer) -> None:
        self._inner = inner
        self.renders = 0

    async def render(self, request: RenderRequest) -> Rendered:
        self.renders += 1
        return dataclasses.replace(await self._inner.render(request), looked=True)


async def test_a_chart_with_lookups_is_rendered_each_time(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        looking = Looking(world.runtime.tools.renderer)
        world.runtime.packages.tools = dataclasses.replace(world.runtime.tools, renderer=looking)
        await world.change("prod", "shop", {"settings": {"text": "looked up"}})
        await world.until_state("prod", "shop", "Ready")
        for renders in (1, 2, 3):
            assert looking.renders == renders
            assert instance_of(world).applied.brought is None
            look_again(world, "prod.shop")
            await world.runtime.queues.wait_idle("prod.shop")
        ready = await world.until_state("prod", "shop", "Ready")
        assert (await text_of(world), find_int(ready, "status", "release", "revision")) == ("looked up", 2)


# -- changes by users


@pytest.mark.slow
async def test_a_users_revision_is_not_changed_also_over_a_restart(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0")
            await world.repository()
            await world.create("prod", "shop")
            await world.until_state("prod", "shop", "Ready")
            await persons_revision(world, 2)
            await world.until("prod", "shop", lambda obj: "(revision 2)" in warnings_of(obj))
            await set_text(world, "theirs", by="helm")
            await until(lambda: bool(world.runtime.tools.releases.drifts(OWNER)))
        async with ground.open_world() as world:
            await until(lambda: "prod.shop" in world.runtime.instances and instance_of(world).applied.verified)
            told = await world.until("prod", "shop", lambda obj: "(revision 2)" in warnings_of(obj))
            assert "a helm command" in warnings_of(told)
            assert await text_of(world) == "theirs"
            await world.change("prod", "shop", {"settings": {"text": "ours"}})
            after = await world.until_state("prod", "shop", "Ready")
            assert (await text_of(world), find(after, "status", "warnings")) == ("ours", None)


# -- suspension and maintenance


@pytest.mark.slow
async def test_drift_of_a_suspended_package_is_corrected_after_resume(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0")
            await world.repository()
            await world.create("prod", "shop")
            await world.until_state("prod", "shop", "Ready")
            await world.change("prod", "shop", {"suspend": True})
            await world.until_state("prod", "shop", "Suspended")
            await set_text(world, "mine")
            await until(lambda: bool(world.runtime.tools.releases.drifts(OWNER)))
            assert await text_of(world) == "mine"
        async with ground.open_world() as world:
            await until(lambda: bool(world.runtime.tools.releases.drifts(OWNER)))
            assert await text_of(world) == "mine"
            await world.change("prod", "shop", {"suspend": None})
            await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")
            await world.until_state("prod", "shop", "Ready")
            await set_text(world, "mine again")
            await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")


async def test_objects_applied_before_a_suspension_are_managed_after_resume(tmp_path: Path) -> None:
    """The package is suspended after its objects were applied, while its afterHelm hook runs.

    After the package is resumed, drift of these objects is corrected.
    """
    os.mkfifo(tmp_path / "held")
    after = held_hook(tmp_path, "{configVersion: v1, afterHelm: 1}", "after")
    out = ObjectKey(CONFIG_MAP, "prod", "out")
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(hooked(tmp_path / "hooked", {"a.sh": after}), "hooked", "1.0.0")
        await world.create("prod", "app", package="hooked")
        await trio.to_thread.run_sync(held, tmp_path)
        await world.change("prod", "app", {"suspend": True})
        await world.until_state("prod", "app", "Suspended")
        await world.runtime.queues.wait_idle("prod.app")
        (tmp_path / "go").touch()
        await world.change("prod", "app", {"suspend": None})
        ready = await world.until_state("prod", "app", "Ready")
        assert find_int(ready, "status", "release", "revision") == 1
        theirs: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "out", "namespace": "prod"}}
        await world.client.apply({**theirs, "data": {"seen": "7"}}, field_manager="somebody", force=True)
        await world.until_object(out, lambda obj: find_str(obj, "data", "seen") == "0")


async def test_drift_is_not_checked_during_maintenance(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        await world.change("prod", "shop", {"maintenance": "NoResourceReconciliation"})
        await world.until_state("prod", "shop", "Ready")
        await set_text(world, "by a person")
        look_again(world, "prod.shop")
        await world.runtime.queues.wait_idle("prod.shop")
        assert await text_of(world) == "by a person"
        assert world.runtime.tools.releases.drifts(OWNER) == ()
        await world.change("prod", "shop", {"maintenance": None})
        await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")


# -- removal policies


async def left(world: World, namespace: str, release: str) -> set[str]:
    """Return the names of the release's objects (two ConfigMaps and a PersistentVolumeClaim) that still exist."""
    found: set[str] = set()
    for key in (
        ObjectKey(CONFIG_MAP, namespace, release),
        ObjectKey(CONFIG_MAP, namespace, "kept"),
        ObjectKey(CLAIMS, namespace, "data"),
    ):
        try:
            await world.client.get(key)
            found.add(key.name)
        except NotFoundError:
            continue
    return found


POLICIES = pytest.mark.parametrize(
    ("policy", "stays"), [("Delete", {"kept", "data"}), ("DeleteAll", {"kept"}), ("Orphan", {"own", "kept", "data"})]
)


@pytest.mark.sampled
@POLICIES
async def test_a_removal_deletes_objects_by_its_policy(tmp_path: Path, policy: str, stays: set[str]) -> None:
    async with open_shop(tmp_path, {"deletionPolicy": policy}, FILES) as world:
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        assert await left(world, "prod", "shop") == {name.replace("own", "shop") for name in stays}
        with trio.fail_after(PATIENCE_S):  # The release engine keeps nothing of the release either.
            while world.runtime.tools.releases.statistics().table.rows:
                await trio.lowlevel.checkpoint()
        assert world.runtime.tools.releases.statistics().whole == 0


@pytest.mark.sampled
@POLICIES
async def test_a_disabled_module_leaves_objects_by_policy_and_adopts_them_again(
    tmp_path: Path, policy: str, stays: set[str]
) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", FILES)
        await world.repository()
        await world.create_module("web", spec={"deletionPolicy": policy})
        await world.until_state("", "web", "Ready")
        await world.change("", "web", {"enabled": False})
        await world.until_state("", "web", "Disabled")
        await world.runtime.queues.wait_idle("web")
        assert await left(world, SYSTEM_NAMESPACE, "web") == {name.replace("own", "web") for name in stays}
        await world.change("", "web", {"enabled": True})
        await world.until_state("", "web", "Ready")
        assert await left(world, SYSTEM_NAMESPACE, "web") == {"web", "kept", "data"}


@pytest.mark.slow
async def test_a_changed_policy_applies_to_a_waiting_removal(tmp_path: Path) -> None:
    """An object with a finalizer blocks the removal. The user ends the removal with the policy Orphan, which leaves all remaining
    objects in the cluster.
    """
    stuck = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stuck, finalizers: [example.com/held]}\n"
    async with open_shop(tmp_path, None, {**FILES, "templates/stuck.yaml": stuck}) as world:
        await world.delete("prod", "shop")
        await world.until("prod", "shop", lambda obj: "prod/stuck" in message_of(obj))
        await world.change("prod", "shop", {"deletionPolicy": "Orphan"})
        await world.until_gone("prod", "shop")
        key = ObjectKey(CONFIG_MAP, "prod", "stuck")
        assert find_str(await world.client.get(key), "metadata", "deletionTimestamp")
        assert await left(world, "prod", "shop") >= {"kept", "data"}


@pytest.mark.slow
async def test_an_invalid_spec_does_not_change_its_deletion_policy(tmp_path: Path) -> None:
    async with open_shop(tmp_path, None, FILES) as world:
        rule: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "current": "true"}
        await world.change("prod", "shop", {"deletionPolicy": "DeleteAll", "healthChecks": [rule, rule]})
        await world.until_state("prod", "shop", "Degraded")
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        assert await left(world, "prod", "shop") == {"kept"}


@pytest.mark.slow
async def test_a_package_recreated_after_a_suspended_one_is_not_suspended(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as world:
        await world.change("prod", "shop", {"suspend": True})
        await world.until_state("prod", "shop", "Suspended")
        await world.delete("prod", "shop")
        await world.until_gone("prod", "shop")
        world.generations.clear()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await set_text(world, "changed")
        await world.until_object(SHOP, lambda obj: find_str(obj, "data", "text") == "none")
        assert Owner("shop", "prod") == OWNER
