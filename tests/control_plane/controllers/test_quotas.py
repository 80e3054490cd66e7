"""The numbers of existing objects in ``status.used`` of ResourceQuotas."""

from trio.testing import MockClock

from tests.control_plane.support.controller_harness import config_map, job, key, look, obj, open_cluster, settle
from wharfinger.formats.json.value import find


async def test_a_quota_counts_stored_objects(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(config_map("a"))
        await client.create(obj("v1", "ResourceQuota", "q", spec={"hard": {"count/configmaps": "5", "pods": "2"}}))
        await settle()
        where = await key(client, "v1", "ResourceQuota", "q")
        assert find(await client.get(where), "status", "used") == {"count/configmaps": "2", "pods": "0"}
        await client.delete(await key(client, "v1", "ConfigMap", "a"))
        await client.create(job("j"))
        await settle()
        assert find(await client.get(where), "status", "used") == {"count/configmaps": "1", "pods": "0"}
        await client.merge_patch(where, {"spec": {"hard": {"pods": None}}})
        await settle()
        assert find(await look(client, "v1", "ResourceQuota", "q"), "status", "used") == {"count/configmaps": "1"}
