"""The keeper of a shard: it decides which resources this daemon acts on, and claims, hands over or observes the other
resources.

Before an Application moves to another shard, this daemon stops all work on it. The Application is handed over once no work on
it runs here any more. An Application of another shard is observed as a neighbour. After the owner of a resource was written,
the resource is ignored until the watch reports a newer state of it, because the known state still names the former owner.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.resources.identity import PackageId
from wharfinger.runtime.shards.handing_over import set_owner
from wharfinger.runtime.shards.labels import ShardLabels
from wharfinger.runtime.shards.neighbours import Neighbours
from wharfinger.runtime.shards.ownership import MAIN, Verdict, judge, owner_of

Moved: TypeAlias = Callable[[JsonObject, str], None]
"""A callback for an Application that was handed over, called with the Application and its new shard."""


def report_nothing(_obj: JsonObject, _shard: str) -> None:
    """Do nothing; the default for ``moved``."""


def want_nothing(_owner: str) -> None:
    """Do nothing; the default for ``want``."""


class ShardKeeper:
    """The keeper of one shard.

    ``want`` is called with each shard that has to hand over an Application to this shard. It requests a takeover, in case the
    other shard has no daemon. ``moved`` is called for each Application that this daemon has handed over.
    """

    def __init__(
        self,
        client: ClusterClient,
        runtime: Runtime,
        labels: ShardLabels,
        shard: str = MAIN,
        want: Callable[[str], None] = want_nothing,
        moved: Moved = report_nothing,
    ) -> None:
        self.shard = shard
        self.labels = labels
        self.neighbours = Neighbours(runtime.packages)
        self._client = client
        self._runtime = runtime
        self._want = want
        self._moved = moved
        self._written: dict[str, str] = {}
        """For each package whose owner this daemon has written, the resourceVersion that the resource had before the write."""
        self._doubtful: set[str] = set()
        """The packages in ``_written`` for which it is not known whether the write has succeeded."""
        self._others: set[str] = set()
        """The packages that belonged to another shard when their resources were last checked."""

    def owns(self, key: ObjectKey, obj: JsonObject) -> bool:
        """Return whether the resource belongs to this shard and stays in it."""
        return self._judge(key, obj) is Verdict.OURS

    def awaited(self, owner: str, objects: Callable[[], Mapping[ObjectKey, JsonObject]]) -> list[ObjectKey]:
        """Return the Applications that ``owner`` manages, but that belong to this shard according to the labels of their
        namespaces.
        """
        return [
            key
            for key, obj in objects().items()
            if self._judge(key, obj) is Verdict.AWAITED and (owner_of(obj) or MAIN) == owner
        ]

    async def is_ours(self, identity: PackageId, key: ObjectKey, obj: JsonObject) -> bool:
        """Return whether this daemon manages the resource now. If not, begin the next step: claim the resource for this shard,
        hand it over to another shard, or record its owner. Raises ClusterError.
        """
        name, version = identity.name, find_str(obj, "metadata", "resourceVersion")
        if self._written.get(name) == version and not await self._is_unwritten(name, key, version):
            return False
        self._forget_write(name)
        verdict = self._judge(key, obj)
        if verdict is Verdict.OURS:
            return not self._runtime.is_leaving(name)  # the package is enqueued again when its work has ended
        self._others.add(name)
        match verdict:
            case Verdict.CLAIM:
                await self._write(name, key, obj, self.shard)
            case Verdict.HAND_OVER:
                if self._runtime.leave(identity):
                    await self._give(name, key, obj)
            case Verdict.AWAITED | Verdict.FOREIGN:
                if self._runtime.leave(identity):  # work has to be stopped only if somebody else has changed the owner
                    self.neighbours.seen(name, obj)
                if verdict is Verdict.AWAITED:
                    self._want(owner_of(obj) or MAIN)
            case _:
                assert_never(verdict)
        return False

    def arrives(self, name: str) -> bool:
        """Return whether a package of this shard belonged to another shard before. Each arrival is reported only once."""
        if name not in self._others:
            return False
        self._others.discard(name)
        self.neighbours.forget(name)
        return True

    def gone(self, name: str) -> None:
        """Forget a package whose resource is gone."""
        self._forget_write(name)
        self._others.discard(name)
        self.neighbours.seen(name, None)

    def _judge(self, key: ObjectKey, obj: JsonObject) -> Verdict:
        return judge(self.shard, key, obj, self.labels.of(key.namespace) if key.namespace else MAIN)

    async def _give(self, name: str, key: ObjectKey, obj: JsonObject) -> None:
        wanted = self.labels.of(key.namespace)
        if await self._write(name, key, obj, wanted):
            self._moved(obj, wanted)
            self.neighbours.seen(name, obj)

    async def _write(self, name: str, key: ObjectKey, obj: JsonObject, shard: str) -> bool:
        self._written[name] = find_str(obj, "metadata", "resourceVersion")
        self._doubtful.add(name)  # if the answer is lost, the write may have succeeded
        done = await set_owner(self._client, key, obj, shard)
        if done:
            self._doubtful.discard(name)
        return done

    async def _is_unwritten(self, name: str, key: ObjectKey, version: str) -> bool:
        """Return True if this daemon tried to write the owning shard into the resource, and this write is known to have failed:
        the resource in the cluster still has the resourceVersion from before the write.
        """
        if name not in self._doubtful:
            return False
        try:
            return find_str(await self._client.get(key), "metadata", "resourceVersion") == version
        except NotFoundError:
            return False

    def _forget_write(self, name: str) -> None:
        self._written.pop(name, None)
        self._doubtful.discard(name)
