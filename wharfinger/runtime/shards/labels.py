"""The label of a namespace that names the shard of its Applications. One watch follows the namespaces that have the label."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.formats.json.value import find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.application_scope import NAMESPACE
from wharfinger.runtime.shards.ownership import MAIN, SHARD_LABEL


class ShardLabels:
    """The shards of namespaces. Made by `open_shard_labels`."""

    def __init__(self, informer: Informer) -> None:
        self.informer = informer

    def of(self, namespace: str) -> str:
        """Return the shard that the label of a namespace names, or the main shard if there is no label."""
        found = self.informer.get(ObjectKey(NAMESPACE, "", namespace))
        return find_str(find_object(found, "metadata", "labels"), SHARD_LABEL) if found is not None else MAIN

    async def follow(self, changed: Callable[[str], None]) -> None:
        """Call ``changed`` with the name of each namespace whose shard label is added, removed or changed, until cancelled."""
        with self.informer.changes() as changes:
            while True:
                for key in sorted(await changes.wait()):
                    changed(key.name)


@asynccontextmanager
async def open_shard_labels(client: ClusterClient) -> AsyncIterator[ShardLabels]:
    """Follow the labels that name the shards of namespaces while the body runs. The body does not wait for the first list of
    namespaces.
    """
    async with open_informer(client, NAMESPACE, label_selector=SHARD_LABEL) as informer:
        yield ShardLabels(informer)
