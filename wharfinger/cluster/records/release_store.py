"""The store of release records in a cluster. It reads and writes records, marks interrupted revisions as failed, and removes
old revisions.

The order of writes leaves a readable history after a crash at any point: a pending record exists before any object is changed
(except for a quick change, :mod:`~wharfinger.cluster.releases.revision_record`), it becomes deployed after the last change, and
only then is the record before it superseded. A failed revision supersedes nothing: the last deployed revision remains the
revision to return to. A pending record whose holder is gone is marked failed by the next operation
(:meth:`ReleaseStore.settled`).

With :class:`~wharfinger.cluster.records.release_heads.ReleaseHeads`, a history that did not change since it was read or written
here costs no request. Any other history costs at most one list, and one request for each chunk. Records before the last
deployed one are kept in memory as summaries, because no operation here rolls back to them.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError, ReleaseError
from wharfinger.cluster.lease.fencing import AtWork, Fencing, Holder
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.chunk_store import ChunkStore
from wharfinger.cluster.records.record_cache import RecordCache, Stored, slim
from wharfinger.cluster.records.release import (
    SECRET_TYPE,
    Release,
    ReleaseRecordError,
    ReleaseStatus,
    from_secret,
    holder_annotations,
)
from wharfinger.cluster.records.release_chunks import (
    CHUNK_BYTES,
    PackedRelease,
    index_of,
    pack_release,
    repack_head,
    without_stand_in,
)
from wharfinger.cluster.records.release_heads import ReleaseHeads
from wharfinger.formats.json.shared_texts import with_shared_texts
from wharfinger.formats.json.value import JsonObject, ShapeError, as_object, decode_json, find_object, find_str
from wharfinger.kube.resource import ObjectKey, name_of, namespace_of

log = logging.getLogger(__name__)

Result = TypeVar("Result")
THREAD_BYTES: Final = 100_000
"""The size above which a record is packed and unpacked in a thread."""
MAX_SECRET_BYTES: Final = 16 * 1024 * 1024
HISTORY: Final = 10
"""The number of revisions kept per release, as in Helm."""


class ReleaseBusyError(ReleaseError):
    """Another process is working on the release. Transient."""

    transient = True


class ReleaseStore:
    """The records of all releases.

    ``now`` is the wall clock, ``holder`` is this process. ``heads`` knows the newest revisions from a watch, so that fewer
    records have to be read.
    """

    def __init__(
        self,
        client: ClusterClient,
        now: Callable[[], datetime],
        *,
        holder: Holder | None = None,
        heads: ReleaseHeads | None = None,
    ) -> None:
        self._client = client
        self._now = now
        ours = holder or Holder("wharfinger")
        self._heads = heads if heads is not None else ReleaseHeads(ours)
        self._fencing = Fencing(client, ours)
        # Chunks of all releases are collected, also of those that another daemon of our family manages.
        self._chunks = ChunkStore(client, Fencing(client, replace(ours, family="")))
        self._cache = RecordCache()
        self._doubtful: set[Owner] = set()
        """The releases for which a write of this store has failed, because another writer had changed the record first. The
        heads may not show that change yet, so the records are read again.
        """

    @property
    def cached(self) -> tuple[int, int]:
        """The number of revisions in the cache, and their size in bytes."""
        return self._cache.count, self._cache.held_bytes

    # -- reading

    async def history(self, name: str, namespace: str) -> list[Stored]:
        """Return all revisions, oldest first; revisions before the last deployed one are summaries. Raises ReleaseRecordError for
        a record that cannot be read.
        """
        owner = Owner(name, namespace)
        texts: tuple[bytes, ...] = ()
        if self._heads.synced and owner not in self._doubtful:
            known, state = self._cache.get(owner), self._heads.state(owner)
            if known is None and state == frozenset():
                self._cache.put(owner, ())
                return []
            if known is not None and self._cache.state(owner) == state:
                return [*known]
            texts = self._heads.take_records(owner)
        history = await self._read([_secret_of(text) for text in texts] if texts else await self._listed(owner))
        self._cache.put(owner, history)
        self._doubtful.discard(owner)
        return history

    async def revision(self, release: Release) -> Release | None:
        """Read the complete record of a revision that a history only summarizes. Return None if the record was deleted
        meanwhile. Raises ReleaseRecordError.
        """
        resource = await self._client.resource_type("v1", "Secret")
        try:
            secret = await self._client.get(ObjectKey(resource, release.namespace, release.secret_name))
        except NotFoundError:
            return None
        return (await self._whole(await self._opened(secret))).release

    async def settled(self, name: str, namespace: str) -> list[Stored]:
        """Return the history, after marking a pending record as failed if its holder is gone.

        Raises ReleaseBusyError if the record's writer may still be working; the error names the writer, and how long to wait.
        """
        history = await self.history(name, namespace)
        if not history or not history[-1].release.status.pending:
            return history
        last = history[-1]
        release, (_, uid, version) = last.release, last.state
        verdict = await self._fencing.verdict(release.written_by, uid, version)
        if isinstance(verdict, AtWork):
            raise ReleaseBusyError(
                f"release {namespace}/{name}: {verdict.by} is at work on revision {release.revision} "
                f"({release.status}); {verdict.until}"
            )
        failed = release.with_status(ReleaseStatus.FAILED, f"interrupted while {release.status}: {verdict.why}")
        return [*history[:-1], await self.update(last, failed)]

    async def _listed(self, owner: Owner) -> list[JsonObject]:
        resource = await self._client.resource_type("v1", "Secret")
        listed = await self._client.list(resource, owner.namespace, label_selector=f"owner=helm,name={owner.name}")
        return [secret for secret in listed.items if find_str(secret, "type") == SECRET_TYPE]

    async def _read(self, secrets: Sequence[JsonObject]) -> list[Stored]:
        found = [await self._opened(secret) for secret in secrets]
        found.sort(key=lambda stored: stored.release.revision)
        return [await self._whole(stored) if stored.release.whole else stored for stored in slim(found)]

    async def _opened(self, secret: JsonObject) -> Stored:
        """Return the record in a Secret, with the index of its chunks if it has any; the chunks are not read."""
        size = len(find_str(secret, "data", "release"))
        release = await _off_the_loop(size, partial(from_secret, secret))
        index = None
        with suppress(ReleaseRecordError):  # `_whole` raises the error
            index = index_of(release)
        return Stored(release, _metadata_of(secret), index=index, packed_bytes=size)

    async def _whole(self, stored: Stored) -> Stored:
        index = index_of(stored.release)
        if index is None:
            release = without_stand_in(stored.release)
            return (
                stored if release is stored.release else replace(stored, release=release, cut=stored.release.document)
            )
        try:
            release = await self._chunks.read(stored.release, index)
        except ReleaseRecordError:
            now = await self._read_again(stored)
            if now is None:
                raise
            return await self._whole(now)
        size = stored.packed_bytes + len(index.digests) * CHUNK_BYTES
        return Stored(release, stored.metadata, stored.release.document, index, size)

    async def _read_again(self, stored: Stored) -> Stored | None:
        """Read a record again after its chunks could not be read, because another process may have changed the record. Return
        the new record; None if the record is unchanged or was deleted.
        """
        resource = await self._client.resource_type("v1", "Secret")
        try:
            secret = await self._client.get(ObjectKey(resource, stored.release.namespace, stored.release.secret_name))
        except NotFoundError:
            return None
        is_changed = find_str(secret, "metadata", "resourceVersion") != find_str(stored.metadata, "resourceVersion")
        return await self._opened(secret) if is_changed else None

    # -- writing

    async def create(self, release: Release) -> Stored:
        """Write a new revision. Raises ReleaseBusyError if another process has just written it."""
        packed = await self._pack(release)
        async with self._chunks.writing(packed.chunks):
            await self._chunks.write(packed.chunks)
            try:
                with self._heads.writing(release.namespace, release.secret_name) as wrote:
                    secret = await self._client.create(packed.head)
                    wrote(secret)
            except ConflictError as error:
                self._doubtful.add(Owner(release.name, release.namespace))
                raise ReleaseBusyError(
                    f"release {release.namespace}/{release.name}: revision {release.revision} was written by another process "
                    "just now; a retry continues from that revision"
                ) from error
            await self._chunks.set_owner(secret, packed.chunk_names)
        return self._keep(release, secret, packed)

    async def update(self, stored: Stored, release: Release) -> Stored:
        """Replace the record of a revision. Its chunks are written again only if their content changes.

        Raises ReleaseBusyError if the revision changed since it was read.
        """
        packed = await self._packed_again(stored, release)
        async with self._chunks.writing(packed.chunks):
            await self._chunks.write(packed.chunks)
            secret = await self._replace(stored, release, packed.head)
            await self._chunks.set_owner(secret, packed.chunk_names)
        kept = self._keep(release, secret, packed)
        await self._delete_former(stored, packed, release)
        return kept

    async def _delete_former(self, stored: Stored, packed: PackedRelease, release: Release) -> None:
        """Delete the chunks that a record does not name any more. If this fails, they are collected later."""
        if stored.index is None or stored.index == packed.index:
            return
        named = packed.index.names(release.name) if packed.index is not None else ()
        names = [name for name in stored.index.names(release.name) if name not in named]
        try:
            await self._chunks.delete(release.namespace, names)
        except ClusterError as error:
            log.info("release %s/%s: former chunks are deleted later: %s", release.namespace, release.name, error)

    async def _packed_again(self, stored: Stored, release: Release) -> PackedRelease:
        cut = stored.cut
        if not release.whole:
            resource = await self._client.resource_type("v1", "Secret")
            secret = await self._client.get(ObjectKey(resource, release.namespace, release.secret_name))
            cut = (await self._opened(secret)).release.document
        if cut is None or (release.whole and not _differ_in_info_only(stored.release, release)):
            return await self._pack(release)
        head = await _off_the_loop(stored.packed_bytes, partial(repack_head, cut, release, self._now()))
        return PackedRelease(head, cut, stored.index)

    async def _replace(self, stored: Stored, release: Release, secret: JsonObject) -> JsonObject:
        annotations = find_object(stored.metadata, "annotations")
        if release.holder:
            annotations = {**annotations, **holder_annotations(release.written_by)}
        metadata: JsonObject = {
            "name": name_of(secret),
            "namespace": namespace_of(secret),
            "labels": {**find_object(stored.metadata, "labels"), **find_object(secret, "metadata", "labels")},
            "resourceVersion": find_str(stored.metadata, "resourceVersion"),
            "annotations": annotations,
        }
        try:
            with self._heads.writing(release.namespace, release.secret_name) as wrote:
                written = await self._client.replace({**secret, "metadata": metadata})
                wrote(written)
        except ConflictError as error:
            self._doubtful.add(Owner(release.name, release.namespace))
            raise ReleaseBusyError(
                f"release {release.namespace}/{release.name}: the record of revision {release.revision} was changed by "
                "another process meanwhile; the retry continues from there"
            ) from error
        return written

    async def tidy(self, history: Sequence[Stored], keep: int) -> None:
        """Trim the history, and mark deployed revisions before the newest one as superseded. The newest must be deployed."""
        for earlier in await self.trim(history, keep):
            release = earlier.release
            if release.status is ReleaseStatus.DEPLOYED:
                await self.update(earlier, release.with_status(ReleaseStatus.SUPERSEDED, release.description))

    async def trim(self, history: Sequence[Stored], keep: int) -> list[Stored]:
        """Remove the oldest revisions, so that ``keep`` are left, but never the last deployed one, which a rollback needs.

        Return the revisions that are left, without the newest.
        """
        deployed = [stored for stored in history if stored.release.status is ReleaseStatus.DEPLOYED][-1:]
        kept = {stored.release.revision for stored in deployed}
        others = [stored for stored in history if stored.release.revision not in kept]
        gone = others[: max(0, len(history) - keep)]
        for old in gone:
            await self.remove(old)
        numbers = {stored.release.revision for stored in gone}
        return [stored for stored in history[:-1] if stored.release.revision not in numbers]

    async def remove(self, stored: Stored) -> None:
        """Delete a record, then its chunks; objects that are gone already are ignored."""
        release = stored.release
        resource = await self._client.resource_type("v1", "Secret")
        key = ObjectKey(resource, release.namespace, release.secret_name)
        try:
            with self._heads.writing(release.namespace, release.secret_name) as wrote:
                with suppress(NotFoundError):
                    await self._client.delete(key, uid=find_str(stored.metadata, "uid"))
                wrote(None)
        except ConflictError as error:
            self._doubtful.add(Owner(release.name, release.namespace))
            raise ReleaseBusyError(
                f"release {release.namespace}/{release.name}: another process deleted revision {release.revision} and wrote it "
                "anew meanwhile; a retry continues from that revision"
            ) from error
        if stored.index is not None:
            await self._chunks.delete(release.namespace, stored.index.names(release.name))
        self._cache.drop_one(Owner(release.name, release.namespace), release.revision)

    async def collect_chunks(self) -> tuple[str, ...]:
        """Delete, in all namespaces, the Secrets with chunks that crashes left behind. Return ``namespace/name`` of each
        deleted Secret.
        """
        return await self._chunks.collect()

    async def collect_regularly(self, every_s: float) -> None:
        """Delete chunks that belong to no release record: once as soon as the records are known, and then every ``every_s``
        seconds until cancelled. If ``every_s`` is 0, delete them only once.
        """
        while True:
            try:
                await self._heads.wait_synced()
                for name in await self.collect_chunks():
                    log.info("deleted %s, a chunk of a release record that was never completed", name)
            except (ClusterError, ShapeError) as error:
                log.info("chunks that belong to no release record cannot be deleted: %s", error)
            if not every_s:
                return
            await trio.sleep(every_s)

    def _keep(self, release: Release, secret: JsonObject, packed: PackedRelease) -> Stored:
        size = len(find_str(packed.head, "data", "release")) + sum(
            len(find_str(chunk, "data", "chunk")) for chunk in packed.chunks
        )
        cut = None if packed.index is None else packed.cut
        stored = Stored(release, _metadata_of(secret), cut, packed.index, size)
        self._cache.put_one(Owner(release.name, release.namespace), stored)
        return stored

    async def _pack(self, release: Release) -> PackedRelease:
        return await _off_the_loop(len(release.manifest), partial(pack_release, release, self._now()))


def _differ_in_info_only(one: Release, other: Release) -> bool:
    """Return whether two records differ at most in their ``info``. In that case, only the head is packed again, because
    ``info`` is never stored in chunks, apart from the notes.
    """
    return one.whole and {**one.document, "info": None} == {**other.document, "info": None}


def _metadata_of(secret: JsonObject) -> JsonObject:
    """Return the metadata of a Secret without ``managedFields``, which is larger than the rest."""
    metadata = find_object(secret, "metadata")
    return with_shared_texts({name: value for name, value in metadata.items() if name != "managedFields"})


def _secret_of(text: bytes) -> JsonObject:
    return as_object(decode_json(text, max_bytes=MAX_SECRET_BYTES, what="a record"), "a record")


async def _off_the_loop(size: int, work: Callable[[], Result]) -> Result:
    """Pack or unpack a record, in a thread if the record is large, so that no other task has to wait."""
    if size > THREAD_BYTES:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
    return work()
