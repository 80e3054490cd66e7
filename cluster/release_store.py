"""The records of releases in a cluster: read, write ahead, settle, trim.

The order that a crash at any point leaves readable: a pending record is there before anything is changed, it becomes
deployed after the last change, and only then is the record before it superseded. A failed revision supersedes nothing: the
last deployed one stays the one to return to.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

import trio

from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.errors import ConflictError, NotFoundError
from wharfinger.cluster.release import (
    HOLDER_ANNOTATION,
    SECRET_TYPE,
    Release,
    ReleaseError,
    ReleaseStatus,
    from_secret,
    to_secret,
)
from wharfinger.cluster.resource import ObjectKey, name_of, namespace_of
from wharfinger.formats.json_value import JsonObject, find_object, find_str

Result = TypeVar("Result")
THREAD_BYTES: Final = 100_000
"""A record over this is packed and unpacked in a thread."""
HISTORY: Final = 10
"""Revisions kept per release, as Helm does."""


class ReleaseBusyError(ReleaseError):
    """Somebody else is at work on the release; it may be over soon."""

    transient = True


@dataclass(frozen=True, slots=True)
class Stored:
    """A record and the metadata of its Secret as it was read."""

    release: Release
    metadata: JsonObject


class ReleaseStore:
    """Records of any release; ``now`` is the wall clock."""

    def __init__(self, client: ClusterClient, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now

    async def history(self, name: str, namespace: str) -> list[Stored]:
        """All revisions, oldest first. Raises ReleaseRecordError for one that cannot be read."""
        resource = await self._client.resource_type("v1", "Secret")
        listed = await self._client.list(resource, namespace, label_selector=f"owner=helm,name={name}")
        found: list[Stored] = []
        for secret in listed.items:
            if find_str(secret, "type") == SECRET_TYPE:
                size = len(find_str(secret, "data", "release"))
                release = await _off_the_loop(size, partial(from_secret, secret))
                found.append(Stored(release, find_object(secret, "metadata")))
        return sorted(found, key=lambda stored: stored.release.revision)

    async def create(self, release: Release) -> Stored:
        """Write a new revision. Raises ReleaseBusyError where somebody else just wrote it."""
        try:
            secret = await self._client.create(await self._pack(release))
        except ConflictError as error:
            raise ReleaseBusyError(
                f"release {release.namespace}/{release.name}: revision {release.revision} was written by somebody else "
                "just now; trying again will go on from there"
            ) from error
        return Stored(release, find_object(secret, "metadata"))

    async def update(self, stored: Stored, release: Release) -> Stored:
        """Write a revision anew. Raises ReleaseBusyError where it changed since it was read."""
        secret = await self._pack(release)
        annotations = find_object(stored.metadata, "annotations")
        labels = {**find_object(stored.metadata, "labels"), **find_object(secret, "metadata", "labels")}
        metadata: JsonObject = {
            "name": name_of(secret),
            "namespace": namespace_of(secret),
            "labels": labels,
            "resourceVersion": find_str(stored.metadata, "resourceVersion"),
            "annotations": {**annotations, HOLDER_ANNOTATION: release.holder} if release.holder else annotations,
        }
        try:
            written = await self._client.replace({**secret, "metadata": metadata})
        except ConflictError as error:
            raise ReleaseBusyError(
                f"release {release.namespace}/{release.name}: the record of revision {release.revision} was changed by "
                "somebody else meanwhile; trying again will go on from there"
            ) from error
        return Stored(release, find_object(written, "metadata"))

    async def tidy(self, history: Sequence[Stored], keep: int) -> None:
        """After the newest revision was deployed: supersede deployed ones before it, and trim."""
        for earlier in history[:-1]:
            if earlier.release.status is ReleaseStatus.DEPLOYED:
                release = earlier.release
                await self.update(earlier, release.with_status(ReleaseStatus.SUPERSEDED, release.description))
        await self.trim(history, keep)

    async def trim(self, history: Sequence[Stored], keep: int) -> None:
        """Remove the oldest beyond ``keep``, but not the last deployed one: it is the one to return to."""
        deployed = [stored for stored in history if stored.release.status is ReleaseStatus.DEPLOYED][-1:]
        others = [stored for stored in history if stored not in deployed]
        for old in others[: max(0, len(history) - keep)]:
            await self.remove(old)

    async def remove(self, stored: Stored) -> None:
        """Delete a record; one that is gone already is fine."""
        resource = await self._client.resource_type("v1", "Secret")
        key = ObjectKey(resource, stored.release.namespace, stored.release.secret_name)
        with suppress(NotFoundError):
            await self._client.delete(key, uid=find_str(stored.metadata, "uid"))

    async def _pack(self, release: Release) -> JsonObject:
        return await _off_the_loop(len(release.manifest), partial(to_secret, release, self._now()))


async def _off_the_loop(size: int, work: Callable[[], Result]) -> Result:
    """Packing or unpacking; a large record in a thread, so that nothing else waits for it."""
    if size > THREAD_BYTES:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
    return work()
