"""The takeover of Applications from a shard that has no daemon."""

from datetime import UTC, datetime
from pathlib import Path

from tests.runtime.support.sharded import KEY, kept_by, label, open_shard, prepared, versions
from tests.runtime.support.world import one_error, open_ground
from wharfinger.cluster.lease.lease import open_lease
from wharfinger.cluster.lease.record import LEASE_API
from wharfinger.formats.json.value import find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.shards.ownership import MAIN, lease_name
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
