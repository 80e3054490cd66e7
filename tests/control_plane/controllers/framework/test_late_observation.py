"""The annotation ``wharfinger.dev/observed-after``: the time after which a controller observes a change of the workload."""

import pytest
import trio
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import key, look, open_cluster, workload
from wharfinger.formats.json.value import find_int


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
async def test_a_generation_is_observed_after_the_delay(autojump_clock: MockClock, kind: str) -> None:
    async with open_cluster() as client:
        annotations: dict[str, str] = {"wharfinger.dev/observed-after": "4"}
        await client.create(workload(kind, "web", annotations={**annotations}))
        seen = []
        for _ in range(2):
            for wait_s in (3, 2):
                await trio.sleep(wait_s)
                found = await look(client, "apps/v1", kind, "web")
                generation = find_int(found, "metadata", "generation")
                seen.append((generation, find_int(found, "status", "observedGeneration")))
            place = await key(client, "apps/v1", kind, "web")
            await client.merge_patch(place, {"spec": {"minReadySeconds": 1}})
        assert seen == [(1, 0), (1, 1), (2, 1), (2, 2)]
        await client.delete(await key(client, "apps/v1", kind, "web"))
        await trio.sleep(10)
        assert await look(client, "apps/v1", kind, "web") is None
