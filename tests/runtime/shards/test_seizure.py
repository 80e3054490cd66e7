"""The takeover of Applications from a shard that has no daemon."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.runtime.support.beginning import storage_to_begin_with
from tests.runtime.support.sharded import KEY, kept_by, label, open_shard, prepared, versions
from tests.runtime.support.world import one_error, open_ground
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.lease.lease import open_lease
from wharfinger.cluster.lease.record import LEASE_API
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import APPLICATION
from wharfinger.runtime.shards.ownership import MAIN, lease_name, owner_of
from wharfinger.runtime.shards.seizure import Seizures


async def test_a_shard_without_a_daemon_is_taken_over_when_its_lease_is_free(tmp_path: Path) -> None:
    with one_error():
        async with open_ground(tmp_path) as ground:
            async with ground.open_world() as main:
                await prepared(main)
                await main.create("prod", "app", package="page")
                await main.until_state("prod", "app", "Ready")
                before = await versions(main)
            await ground.client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
            )

            def now() -> datetime:
                return datetime.now(UTC)

            holding = open_lease(ground.client, SYSTEM_NAMESPACE, lease_name(MAIN), "one", duration_s=15, now=now)
            seizures = Seizures(ground.client, ground.client, "blue", "two", 15, now)
            async with open_shard(ground, "blue", seizures) as blue:
                async with holding:
                    await label(blue, "blue")
                    await blue.until_runtime(lambda: bool(seizures.waiting_for))
                    obj = await ground.client.get(KEY)
                    assert find_str(obj, "status", "shard") == ""
                await blue.until("prod", "app", lambda obj: kept_by(obj, "blue"))
                await blue.until_runtime(lambda: "prod.app" in blue.runtime.instances)
                await blue.until_state("prod", "app", "Ready")
                assert await versions(blue) == before
                await blue.until_runtime(lambda: not seizures.waiting_for)
            lease = await ground.client.get(
                ObjectKey(await ground.client.resource_type(*LEASE_API), SYSTEM_NAMESPACE, lease_name(MAIN))
            )
            assert find_str(lease, "spec", "holderIdentity") == ""


@pytest.mark.parametrize("owner", ["a/../b", "Blue", "x" * 64])
async def test_an_owner_with_an_invalid_name_has_no_lease(owner: str, caplog: pytest.LogCaptureFixture) -> None:
    """The name may be invalid because any user with the right to write statuses can write ``status.shard``."""
    async with open_client(Connection(LOCAL)) as client:
        seizures = Seizures(client, client, "blue", "me", 15, lambda: datetime.now(UTC))
        seizures.want(owner)
    assert seizures.waiting_for == ()
    assert "is not the name of a shard" in caplog.text


class Watched:
    """Applications in their own namespaces (``a``, ``b`` and so on), as the shard that takes them over sees them in its watch."""

    def __init__(self, client: ClusterClient) -> None:
        self.client = client
        self.owners: dict[ObjectKey, str] = {}

    async def create(self, namespace: str, owner: str) -> ObjectKey:
        key = ObjectKey(APPLICATION, namespace, "app")
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        metadata: JsonObject = {"name": "app", "namespace": namespace}
        await self.client.create(
            {
                "apiVersion": APPLICATION.api_version,
                "kind": "Application",
                "metadata": metadata,
                "spec": {"packageRepositoryName": "local", "packageName": "page", "packageVersion": "1.0.0"},
            }
        )
        await self.client.merge_patch(key, {"status": {"shard": owner}}, subresource="status")
        return key

    def awaited(self, owner: str) -> list[ObjectKey]:
        return [key for key, named in self.owners.items() if named == owner]

    async def until_kept_by(self, key: ObjectKey, shard: str) -> None:
        while owner_of(await self.client.get(key)) != shard:  # noqa: ASYNC110
            await trio.sleep(0.1)


async def test_applications_labelled_during_a_takeover_are_taken_over(autojump_clock: MockClock) -> None:
    """The takeover is repeated while Applications are waiting. A shard whose daemon is running does not delay other shards."""
    async with (
        open_control_plane(storage=await storage_to_begin_with()) as control_plane,
        open_client(Connection(LOCAL, bearer("")), transport=control_plane.transport()) as client,
    ):
        watched = Watched(client)
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})
        slow, one, two = [await watched.create(*each) for each in (("a", "green"), ("b", "red"), ("c", "red"))]
        watched.owners = {slow: "green", one: "red"}

        def now() -> datetime:
            return datetime.now(UTC)

        seizures = Seizures(client, client, "blue", "me", 15, now)
        async with (
            open_lease(client, SYSTEM_NAMESPACE, lease_name("green"), "it", duration_s=15, now=now),
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(seizures.run, watched.awaited)
            seizures.want("green")
            seizures.want("red")
            with trio.fail_after(60):
                await watched.until_kept_by(one, "blue")
                # the namespace of this Application is labelled before the watch reports the change of the first one
                watched.owners[two] = "red"
                await trio.sleep(3)
                del watched.owners[one]
                await watched.until_kept_by(two, "blue")
                del watched.owners[two]
                while seizures.waiting_for != ("green",):  # noqa: ASYNC110
                    await trio.sleep(0.1)
            assert owner_of(await client.get(slow)) == "green"
            nursery.cancel_scope.cancel()
