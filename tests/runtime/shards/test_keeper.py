"""Daemons of several shards with one control plane: which Applications each of them manages, and how an Application moves."""

import random
from functools import partial
from pathlib import Path

import pytest
import trio.testing

from tests.runtime.support.sharded import KEY, kept_by, label, open_shard, prepared, versions
from tests.runtime.support.world import World, one_error, open_ground
from tests.runtime.tasks.test_hook_runs import bash, config_map, hooked
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import UnreachableError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.shards.keeper import ShardKeeper
from wharfinger.runtime.shards.labels import ShardLabels
from wharfinger.runtime.shards.ownership import MAIN


class Deaf(LimitedClient):
    """A client that loses the answers to its merge patches."""

    def __init__(self, client: ClusterClient) -> None:
        super().__init__(client, Slots(SlotLimits()))
        self.arrives = True
        """True if the server receives the patches."""

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        if self.arrives:
            await super().merge_patch(key, patch, subresource=subresource)
        raise UnreachableError("no answer")


class Labels(ShardLabels):
    """Labels that name the same shard for all namespaces."""

    shard = MAIN

    def __init__(self) -> None:
        pass

    def of(self, namespace: str) -> str:
        return self.shard


def is_kept_by(shard: str, obj: JsonObject) -> bool:
    return kept_by(obj, shard)


def knows(world: World) -> bool:
    return "prod.app" in world.runtime.instances


async def test_each_daemon_owns_its_namespaces_and_a_label_moves_them(tmp_path: Path) -> None:
    """A move does not change the objects of the package. After a move, only the new owner applies changes and the removal."""
    with one_error():
        async with open_ground(tmp_path) as ground, ground.open_world() as main, open_shard(ground, "blue") as blue:
            await prepared(main)
            await main.create("prod", "app", package="page")
            await main.until_state("prod", "app", "Ready")
            assert "prod.app" not in blue.runtime.instances
            before = await versions(main)
            for owner, other, shard in ((blue, main, "blue"), (main, blue, MAIN)):
                await label(main, shard or None)
                await main.until("prod", "app", partial(is_kept_by, shard))
                await owner.until_runtime(partial(knows, owner))
                await owner.until_state("prod", "app", "Ready")
                assert "prod.app" not in other.runtime.instances
                assert await versions(main) == before
            await label(main, "blue")
            await main.until("prod", "app", lambda obj: kept_by(obj, "blue"))
            await main.change("prod", "app", {"settings": {"text": "other"}})
            await blue.until_runtime(lambda: "prod.app" in blue.runtime.instances)
            page = ObjectKey(await main.client.resource_type("v1", "ConfigMap"), "prod", "app-page")
            await main.until_object(page, lambda obj: find_str(obj, "data", "text") == "other")
            # The revision is recorded after its objects were applied.
            secret = await main.client.resource_type("v1", "Secret")
            await main.until_object(ObjectKey(secret, "prod", "sh.helm.release.v1.app.v2"), lambda record: True)
            assert (await versions(main))[2] == before[2] + 1
            await main.delete("prod", "app")
            await main.until_gone("prod", "app")
            assert await main.config_map("prod", "app-page") is None


async def test_a_run_is_ended_before_its_package_moves(tmp_path: Path) -> None:
    """The hook would run for ten minutes, so the first owner kills it. Then the new owner runs the hook again, and the first
    owner runs nothing any more.
    """
    notes = tmp_path / "notes"
    hook = bash("{configVersion: v1, beforeHelm: 1}", f'echo "$$" >>"{notes}"; [ -e "{tmp_path}/go" ] || sleep 600')
    with one_error():
        async with open_ground(tmp_path) as ground, ground.open_world() as main, open_shard(ground, "blue") as blue:
            await prepared(main)
            hooked(tmp_path / "packages" / "slow", {"a.sh": hook}, name="slow")
            await main.create("prod", "app", package="slow")
            await main.until_runtime(notes.exists)
            (tmp_path / "go").touch()
            await label(main, "blue")
            await main.until("prod", "app", lambda obj: kept_by(obj, "blue"))
            assert "prod.app" not in main.runtime.instances
            assert len(notes.read_text().split()) == 2
            assert not Path(f"/proc/{notes.read_text().split()[0]}").exists()
            assert "prod.app" in blue.runtime.instances


async def test_state_recorded_by_the_previous_owner_is_used(tmp_path: Path) -> None:
    """A daemon lists the states of all packages when it starts. Later a hook changes the values of a package, and the package
    moves to this daemon. The daemon uses the changed values.
    """
    config = (
        "{configVersion: v1, kubernetes: [{apiVersion: v1, kind: ConfigMap, nameSelector: {matchNames: [trigger]}, "
        "executeHookOnSynchronization: false}]}"
    )
    patch = '{"op":"add","path":"/app/seen","value":2}'
    with one_error():
        async with open_ground(tmp_path) as ground, ground.open_world() as main:
            await prepared(main)
            hooked(
                tmp_path / "packages" / "app",
                {"a.sh": bash(config, f"echo '{patch}' >\"$VALUES_JSON_PATCH_PATH\"")},
                name="app",
            )
            await main.create("prod", "app", package="app")
            await main.until_state("prod", "app", "Ready")
            assert seen(main) == "0"
            async with open_shard(ground, "blue") as blue:
                await main.client.create(config_map("trigger"))
                await main.until_runtime(lambda: seen(main) == "2")
                await main.runtime.queues.wait_idle("prod.app")
                await label(main, "blue")
                await main.until("prod", "app", partial(is_kept_by, "blue"))
                await blue.until_runtime(partial(is_verified, blue, "prod.app"))
                assert seen(blue) == "2"


def seen(world: World) -> str:
    """Return the value in the ConfigMap that the release engine of a daemon applies, or "" if the engine applies none."""
    found = world.runtime.tools.releases.wanted(Owner("app", "prod"), {"ConfigMap"})
    return find_str(found[0], "data", "seen") if found else ""


@pytest.mark.slow
async def test_frequent_label_changes_leave_one_owner_and_one_revision(tmp_path: Path) -> None:
    """The labels change while packages are installed, moved and verified. At no time do two daemons work on the same package."""
    names = [f"app{number}" for number in range(4)]
    with one_error():
        async with (
            open_ground(tmp_path) as ground,
            ground.open_world() as main,
            open_shard(ground, "blue") as blue,
            open_shard(ground, "red") as red,
        ):
            await prepared(main)
            for name in names:
                await main.create("prod", name, package="page")
            worlds = (main, blue, red)
            draw = random.Random(23)  # noqa: S311 - the same changes each time
            for _ in range(40):
                await label(main, draw.choice(("blue", "red", None)))
                for _ in range(draw.randrange(6)):
                    await trio.testing.wait_all_tasks_blocked(0.005)
                    for name in names:
                        working = [each for each in worlds if f"prod.{name}" in each.runtime.instances]
                        assert len([each for each in working if not each.runtime.is_leaving(f"prod.{name}")]) <= 1
            await label(main, "red")
            for name in names:
                await main.until("prod", name, lambda obj: kept_by(obj, "red"))
                await red.until_runtime(partial(is_verified, red, f"prod.{name}"))
            await main.until_runtime(lambda: not main.runtime.instances and not blue.runtime.instances)
            resource = await main.client.resource_type("v1", "Secret")
            records = (await main.client.list(resource, "prod", label_selector="owner=helm")).items
            assert len(records) == len(names), [find_str(each, "metadata", "name") for each in records]


def is_verified(world: World, name: str) -> bool:
    status = world.runtime.status(name)
    return status is not None and not status.is_being_verified


@pytest.mark.parametrize("arrives", [True, False])
async def test_after_a_write_without_an_answer_the_owner_is_read_first(tmp_path: Path, *, arrives: bool) -> None:
    """The daemon writes another shard as the owner into the status of an Application, and gets no answer. Then the label of the
    namespace is changed back, before the watch shows whether the write has arrived.
    """
    with one_error():
        async with open_ground(tmp_path) as ground, open_shard(ground, "other") as world:
            await world.create("prod", "app", package="page")
            await world.client.merge_patch(KEY, {"status": {"observedGeneration": 1}}, subresource="status")
            client, labels, identity = Deaf(world.client), Labels(), AppId("prod", "app")
            keeper = ShardKeeper(client, world.runtime, labels)
            client.arrives = arrives
            before = await world.client.get(KEY)
            labels.shard = "blue"
            with pytest.raises(UnreachableError):
                await keeper.is_ours(identity, KEY, before)
            labels.shard = MAIN
            assert await keeper.is_ours(identity, KEY, before) is not arrives
            after = await world.client.get(KEY)
            assert find_str(after, "status", "shard") == ("blue" if arrives else "")
            assert await keeper.is_ours(identity, KEY, after) is not arrives
            keeper.gone("prod.app")
