"""Access of operations to the records of releases: an operation writes and completes the record of its revision, and reads the
objects of earlier revisions from their records.

Requests that fail transiently are retried (:mod:`wharfinger.cluster.api.retrying`). A write that got no answer may have
succeeded. So if the next attempt meets a conflict, the stored record is read: if it equals the record that was to be written,
the earlier attempt caused the conflict, and the write is done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

import trio

from wharfinger.cluster.api.errors import ConflictError, ReleaseError
from wharfinger.cluster.api.interruption import WaitInterruptedError
from wharfinger.cluster.api.retrying import with_retries
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.objects.ownership import Owner, flattened
from wharfinger.cluster.records.record_cache import Stored
from wharfinger.cluster.records.release import STAMP_LABEL, Release, ReleaseStatus, new_release
from wharfinger.cluster.records.release_store import ReleaseBusyError, ReleaseStore
from wharfinger.cluster.releases.hooks import Hook, hooks_of
from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml_all

SETTLE_S: Final = 10.0
"""The time limit in seconds for recording that an operation failed."""
THREAD_BYTES: Final = 100_000
"""The number of characters above which a manifest is parsed in a thread."""
SLACK: Final = 10
"""A history that exceeds the number of kept revisions by this number is trimmed immediately."""
ATTEMPTS: Final = 3
"""The limit on the attempts to write a record, if each attempt fails with a conflict that no other writer has caused."""
_MANIFEST_LIMITS: Final = YamlLimits(max_bytes=64 * 1024 * 1024, max_characters=256 * 1024 * 1024)


class RecordKeeper:
    """Access of operations to the records of releases. ``history`` is the number of revisions that are kept of a release."""

    def __init__(self, store: ReleaseStore, now: Callable[[], datetime], holder: Holder, history: int) -> None:
        self._store = store
        self._now = now
        self._holder = holder
        self._history = history

    @property
    def cached(self) -> tuple[int, int]:
        """The number of revisions that are kept in memory, and their size in bytes."""
        return self._store.cached

    async def history(self, owner: Owner) -> list[Stored]:
        """Return all revisions, oldest first."""
        return await with_retries(partial(self._store.history, owner.name, owner.namespace))

    async def settled(self, owner: Owner) -> list[Stored]:
        """Return the history; if its last operation was interrupted, mark that revision as failed first.

        Raises ReleaseBusyError if another process may be at work.
        """
        return await with_retries(partial(self._store.settled, owner.name, owner.namespace))

    async def pending(self, owner: Owner) -> Stored | None:
        """Return the last revision if it is pending and was written by this process; None otherwise."""
        history = await self.history(owner)
        last = history[-1] if history else None
        is_ours = last is not None and last.release.status.pending and last.release.written_by == self._holder
        return last if is_ours else None

    async def whole(self, release: Release) -> Release | None:
        """Return the whole record of a revision, of which ``release`` may be only a summary. Return None if the revision is
        gone. Raises ReleaseRecordError.
        """
        return release if release.whole else await with_retries(partial(self._store.revision, release))

    async def begin(
        self, request: ReleaseRequest, last: Release | None, hooks: list[JsonObject], *, back: bool = False
    ) -> Stored:
        """Write the pending record of a new revision; ``back``: the revision is a rollback. Raises ReleaseBusyError if
        another process was first.
        """
        status, description = ReleaseStatus.PENDING_UPGRADE, "Preparing upgrade"
        if last is None:
            status, description = ReleaseStatus.PENDING_INSTALL, "Initial install underway"
        elif back:
            status, description = ReleaseStatus.PENDING_ROLLBACK, rollback_text(request.rollback_to)
        return await self._create(self._revision(request, last, hooks, status, description))

    async def write(
        self,
        request: ReleaseRequest,
        last: Release | None,
        hooks: list[JsonObject],
        status: ReleaseStatus,
        description: str,
    ) -> Stored:
        """Write the record of a new revision whose operation is over. Raises ReleaseBusyError if another process was first."""
        return await self._create(self._revision(request, last, hooks, status, description))

    def _revision(
        self,
        request: ReleaseRequest,
        last: Release | None,
        hooks: list[JsonObject],
        status: ReleaseStatus,
        description: str,
    ) -> Release:
        revision = 1 if last is None else last.revision + 1
        stamp = {STAMP_LABEL: f"{revision}.{request.stamp}"} if request.stamp else {}
        return new_release(
            name=request.name,
            namespace=request.namespace,
            revision=revision,
            status=status,
            description=description,
            chart=request.chart,
            values=request.values,
            manifest=request.manifest,
            hooks=hooks,
            now=self._now(),
            first_deployed="" if last is None else last.first_deployed,
            labels={**request.labels, **request.marks, **stamp},
            holder=self._holder,
            notes=request.notes,
            base=request.base,
            inputs=request.inputs,
        )

    async def mark(self, stored: Stored, status: ReleaseStatus, description: str) -> Stored:
        """Give a record another status. Raises ReleaseBusyError if another process wrote the record."""
        return await self._update(stored, stored.release.with_status(status, description))

    async def label(self, stored: Stored, labels: Mapping[str, str]) -> Stored:
        """Add labels to a record. Raises ReleaseBusyError if another process wrote the record."""
        return await self._update(stored, replace(stored.release, labels={**stored.release.labels, **labels}))

    async def note_inputs(self, stored: Stored, inputs: bytes) -> Stored:
        """Replace the inputs in a record. Raises ReleaseBusyError if another process wrote the record."""
        return await self._update(stored, stored.release.with_inputs(inputs))

    async def _update(self, stored: Stored, release: Release) -> Stored:
        now = stored

        async def update() -> Stored:
            return await self._store.update(now, release)

        for _ in range(ATTEMPTS - 1):
            try:
                return await with_retries(update)
            except ReleaseBusyError:
                there = await self._find(release)
                if there is None or there.release.written_by != release.written_by:
                    raise
                if (there.release.document, there.release.labels) == (release.document, release.labels):
                    return there
                if there.release.status is not stored.release.status:
                    raise
                now = there
        return await with_retries(update)

    async def fail(self, stored: Stored, history: Sequence[Stored], description: str) -> None:
        """Mark a record as failed, and trim the history."""
        await self.trim([*history, await self.mark(stored, ReleaseStatus.FAILED, description)])

    async def trim(self, history: Sequence[Stored]) -> None:
        """Remove the oldest revisions beyond the number that is kept."""
        await self._store.trim(history, self._history)

    def is_long(self, history: Sequence[Stored]) -> bool:
        """Return whether a history exceeds the number of kept revisions by so much that it is trimmed immediately."""
        return len(history) >= self._history + SLACK

    async def tidy(self, history: Sequence[Stored]) -> None:
        """Supersede and trim older revisions, after the newest one was deployed.

        If another writer's operation began meanwhile, the history is not changed any further, because the release returns to the
        deployed revision if that operation fails.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await with_retries(partial(self._store.tidy, history, self._history))
            except ReleaseBusyError:  # maybe no other writer has caused the conflict: read the records again
                release = history[-1].release
                history = await self.history(Owner(release.name, release.namespace))
                if not history or history[-1].release.status is not ReleaseStatus.DEPLOYED:
                    return None
        return await with_retries(partial(self._store.tidy, history, self._history))

    async def remove_all(self, owner: Owner) -> None:
        """Delete all records of a release."""
        for stored in await self.history(owner):
            await with_retries(partial(self._store.remove, stored), also=(ConflictError,))

    async def objects_of(self, release: Release) -> list[JsonObject]:
        """Return the objects of a revision's manifest. Raises ReleaseError if it cannot be read."""
        what = f"manifest of release {release.namespace}/{release.name} revision {release.revision}"

        def parse() -> list[JsonObject]:
            documents = read_yaml_all(release.manifest, what=what, limits=_MANIFEST_LIMITS)
            return flattened([as_object(document, what) for document in documents])

        try:
            if len(release.manifest) > THREAD_BYTES:
                return await trio.to_thread.run_sync(parse, abandon_on_cancel=True)
            return parse()
        except FormatError as error:
            raise ReleaseError(
                f"{error}; so the objects of this revision are not known; check `helm get manifest`"
            ) from error

    async def possible_objects(self, history: Sequence[Stored]) -> list[list[JsonObject]]:
        """Return the objects that may be in the cluster, one list for each revision: the last deployed one, and every attempt
        after it.
        """
        revisions = [stored.release for stored in history]
        deployed = [at for at, one in enumerate(revisions) if one.status is ReleaseStatus.DEPLOYED]
        return [await self.objects_of(release) for release in revisions[deployed[-1] if deployed else 0 :]]

    async def _create(self, release: Release) -> Stored:
        create = partial(self._store.create, release)
        for _ in range(ATTEMPTS - 1):
            try:
                return await with_retries(create)
            except ReleaseBusyError:
                there = await self._find(release)
                if there is None:
                    continue
                if there.release.written_by == release.written_by and there.release.document == release.document:
                    return there
                raise
        return await with_retries(create)

    async def _find(self, release: Release) -> Stored | None:
        history = await self.history(Owner(release.name, release.namespace))
        return next((stored for stored in history if stored.release.revision == release.revision), None)


def recorded_hooks(release: Release) -> list[Hook]:
    """Return the hooks of a revision. Raises ReleaseError if they cannot be read."""
    try:
        return hooks_of(release)
    except FormatError as error:
        raise ReleaseError(f"{error}; the hooks of the revision cannot be read; check `helm get hooks`") from error


def rollback_text(revision: int) -> str:
    """Return the description of a revision that returns to an earlier one, as Helm writes it."""
    return f"Rollback to {revision}"


def failure_text(error: BaseException, verb: str) -> str:
    """Return the description of a revision that failed; ``verb``: Install, Upgrade or Rollback."""
    what = f"{verb} {error}" if isinstance(error, WaitInterruptedError) else f"{verb} failed: {_why(error)}"
    return what[:1100]


def _why(error: BaseException) -> str:
    others = error.split(trio.Cancelled)[1] if isinstance(error, BaseExceptionGroup) else error
    return "interrupted" if others is None or isinstance(others, trio.Cancelled) else str(others)[:1000]
