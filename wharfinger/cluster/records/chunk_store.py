"""The chunks of large records in a cluster. They are written before their head, read with it, and deleted if no head names them.

The *head* of a record is the Secret that Helm reads; it names the chunks (:mod:`~wharfinger.cluster.records.release_chunks`).
If the daemon is killed before it has written a head, chunks without a head remain; :meth:`ChunkStore.collect` deletes them. If
the daemon is killed just after it has written the head, the head does not own its chunks yet; :meth:`ChunkStore.collect` makes
the head their owner. Chunks without a head are skipped while another process may still be writing the head. The rules for this
are the same as for pending records (:mod:`~wharfinger.cluster.lease.fencing`).
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ConflictError, NotFoundError
from wharfinger.cluster.lease.fencing import Abandoned, Fencing
from wharfinger.cluster.records.release import Release, ReleaseRecordError, from_secret, read_holder
from wharfinger.cluster.records.release_chunks import CHUNK_OWNER, CHUNK_TYPE, ChunkIndex, assemble, index_of
from wharfinger.formats.json.value import JsonObject, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of, namespace_of

AT_ONCE: Final = 4


class ChunkStore:
    """The chunks of all releases of a cluster."""

    def __init__(self, client: ClusterClient, fencing: Fencing) -> None:
        self._client = client
        self._fencing = fencing
        self._in_use: dict[tuple[str, str], int] = {}
        self._deleting = trio.Lock()

    @asynccontextmanager
    async def writing(self, chunks: Sequence[JsonObject]) -> AsyncGenerator[None, None]:
        """Protect chunks from :meth:`collect` while the block writes them and their head."""
        places = [(namespace_of(chunk), name_of(chunk)) for chunk in chunks]
        if places:
            async with self._deleting:  # wait for a deletion under way, so that `write` creates the chunk again
                for place in places:
                    self._in_use[place] = self._in_use.get(place, 0) + 1
        try:
            yield
        finally:
            for place in places:
                self._in_use[place] -= 1
                if not self._in_use[place]:
                    del self._in_use[place]

    async def write(self, chunks: Sequence[JsonObject]) -> None:
        """Create the chunks.

        A chunk may exist already, for example because a process was killed after it had written the chunk. The existing chunk has
        the same content, because its name contains the digest of its content.
        """

        async def create(chunk: JsonObject) -> None:
            with suppress(ConflictError):
                await self._client.create(chunk)

        await each(chunks, create, limit=AT_ONCE)

    async def set_owner(self, head: JsonObject, names: Iterable[str]) -> None:
        """Make a record's Secret the owner of its chunks, so that they are deleted with it."""
        namespace = namespace_of(head)
        owner: JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "name": name_of(head),
            "uid": find_str(head, "metadata", "uid"),
        }
        resource = await self._client.resource_type("v1", "Secret")

        async def give(name: str) -> None:
            with suppress(NotFoundError):
                key = ObjectKey(resource, namespace, name)
                await self._client.merge_patch(key, {"metadata": {"ownerReferences": [owner]}})

        await each(names, give, limit=AT_ONCE)

    async def read(self, head: Release, index: ChunkIndex) -> Release:
        """Return the complete record. Raises ReleaseRecordError if a chunk is missing or damaged."""
        resource = await self._client.resource_type("v1", "Secret")

        async def get(name: str) -> JsonObject | None:
            try:
                return await self._client.get(ObjectKey(resource, head.namespace, name))
            except NotFoundError:
                return None

        chunks = await each(index.names(head.name), get, limit=AT_ONCE)
        return await trio.to_thread.run_sync(assemble, head, index, chunks, abandon_on_cancel=True)

    async def delete(self, namespace: str, names: Iterable[str]) -> None:
        """Delete chunks; chunks that are gone already are ignored."""
        resource = await self._client.resource_type("v1", "Secret")

        async def delete(name: str) -> None:
            with suppress(NotFoundError):
                await self._client.delete(ObjectKey(resource, namespace, name))

        await each(names, delete, limit=AT_ONCE)

    async def collect(self) -> tuple[str, ...]:
        """Delete the chunks that no release record names, in all namespaces; return their ``namespace/name``.

        Keep a chunk if its writer may still be writing the record, or if the record cannot be read. If a record names a chunk but
        does not own it, make the record's Secret the owner of the chunk.
        """
        resource = await self._client.resource_type("v1", "Secret")
        listed = await self._client.list(
            resource, label_selector=f"owner={CHUNK_OWNER}", field_selector=f"type={CHUNK_TYPE}"
        )
        heads: dict[tuple[str, str], _Head] = {}
        collected: list[str] = []
        for chunk in listed.items:
            namespace, name = namespace_of(chunk), name_of(chunk)
            place = (namespace, _head_name(chunk))
            if place not in heads:
                heads[place] = await self._head(ObjectKey(resource, *place))
            head = heads[place]
            if name in head.names:
                if not find_list(chunk, "metadata", "ownerReferences"):
                    await self.set_owner(head.secret, [name])
            elif head.readable and await self._abandoned(chunk) and await self._delete_unused(resource, chunk):
                collected.append(f"{namespace}/{name}")
        return tuple(collected)

    async def _delete_unused(self, resource: ResourceType, chunk: JsonObject) -> bool:
        """Delete a chunk, and return whether it was deleted. It is kept if this process is writing it or its head, if its head
        names it by now, or if it was created anew.
        """
        namespace, name = namespace_of(chunk), name_of(chunk)
        async with self._deleting:
            if (namespace, name) in self._in_use:
                return False
            head = await self._head(ObjectKey(resource, namespace, _head_name(chunk)))
            if name in head.names or not head.readable:
                return False  # the head was written since the collection read it
            with suppress(NotFoundError, ConflictError):
                await self._client.delete(ObjectKey(resource, namespace, name), uid=find_str(chunk, "metadata", "uid"))
                return True
        return False

    async def _head(self, key: ObjectKey) -> "_Head":
        try:
            secret = await self._client.get(key)
            release = from_secret(secret)
            index = index_of(release)
            return _Head(secret, index.names(release.name) if index is not None else ())
        except NotFoundError:
            return _Head({}, ())
        except ReleaseRecordError:
            return _Head({}, (), readable=False)  # the unreadable head may name chunks

    async def _abandoned(self, chunk: JsonObject) -> bool:
        metadata = find_object(chunk, "metadata")
        verdict = await self._fencing.verdict(
            read_holder(find_object(metadata, "annotations")),
            find_str(metadata, "uid"),
            find_str(metadata, "resourceVersion"),
        )
        return isinstance(verdict, Abandoned)


class _Head:
    """The head of a large record (the Secret that lists the record's chunks) to which a chunk belongs according to its labels,
    and the names of the chunks that this head lists.
    """

    def __init__(self, secret: JsonObject, names: tuple[str, ...], *, readable: bool = True) -> None:
        self.secret = secret
        self.names = names
        self.readable = readable


def _head_name(chunk: JsonObject) -> str:
    labels = find_object(chunk, "metadata", "labels")
    return f"sh.helm.release.v1.{find_str(labels, 'name')}.v{find_str(labels, 'version')}"
