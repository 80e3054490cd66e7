"""The shards that the labels of namespaces name: each change of a label is reported."""

import trio
from trio.testing import MockClock

from tests.cluster.support.clusters import memory_cluster
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.application_scope import NAMESPACE
from wharfinger.runtime.shards.labels import open_shard_labels
from wharfinger.runtime.shards.ownership import MAIN, SHARD_LABEL


async def test_each_change_of_a_label_is_reported(autojump_clock: MockClock) -> None:
    heard: list[tuple[str, str]] = []
    async with memory_cluster() as client, open_shard_labels(client) as labels, trio.open_nursery() as nursery:
        nursery.start_soon(labels.follow, lambda namespace: heard.append((namespace, labels.of(namespace))))
        await labels.informer.wait_synced()
        assert labels.of("default") == MAIN
        for shard in ("blue", "red", None):
            patch: JsonObject = {"metadata": {"labels": {SHARD_LABEL: shard}}}
            await client.merge_patch(ObjectKey(NAMESPACE, "", "default"), patch)
            await trio.sleep(1)
            assert heard[-1] == ("default", shard or MAIN)
        nursery.cancel_scope.cancel()
