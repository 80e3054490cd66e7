"""The operations that the reconciler performs for a row of the desired table: apply its object, or delete it.

Before each apply the live object is read. There are two exceptions: a caller has just read the object and passed it on, or a
caller knows that the object is as it was applied and that no other manager has fields of it. The apply fails if the object does
not belong to the release, or is being deleted. The rules for fields of other managers are in
:mod:`~wharfinger.cluster.apply.writer`. The server's answer to an apply is kept as the baseline of drift
(:mod:`~wharfinger.cluster.objects.applied_objects`).

When an object leaves its release, the caller decides whether it is deleted or kept (`plan_delete`), and deletes its row. The
delete operation follows this decision. It decides by itself if there is no decision, or if an apply of ours created the object
after the decision.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, InvalidError
from wharfinger.cluster.apply.removal import Deletion, Pruner, PruneReport, delete_exactly, ignore_report, why_kept
from wharfinger.cluster.apply.writer import ObjectWriter, Written
from wharfinger.cluster.fields.conflicts import FieldConflict
from wharfinger.cluster.fields.owners import own_entry
from wharfinger.cluster.objects.accounts import Acting, always
from wharfinger.cluster.objects.applied_objects import AppliedObjects
from wharfinger.cluster.objects.desired import DesiredObject, Identity
from wharfinger.cluster.objects.lookup import look_up
from wharfinger.cluster.objects.ownership import Owner, check_owner, owner_of
from wharfinger.cluster.objects.scope import Confined, check_key, unconfined
from wharfinger.cluster.reconciler.operations import Attempt
from wharfinger.cluster.tables.snapshot import Snapshot
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_str
from wharfinger.kube.resource import ObjectKey

FRESH_S: Final = 30.0
"""The age in seconds from which an object that a caller has read is read again before its apply, because a hook may have
changed it."""


class InterruptedApplyError(ClusterError):
    """An apply was interrupted, because its object is not wanted any more."""


class BeingDeletedError(ClusterError):
    """The object is being deleted; anything written now would be deleted with it."""

    retry_after_s: float | None = 1.0


@dataclass(frozen=True, slots=True)
class LastRead:
    """An object as it was read at a time (trio's clock); ``live`` is None if it did not exist.

    ``is_known``: the object was not read, because it is known to be as it was applied, and to have no fields of other managers.
    """

    live: JsonObject | None
    at: float
    is_known: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """The content of an object as it was applied before its row changed. It is kept until an attempt at the present row
    succeeds, because each attempt needs it.
    """

    body: PackedJson


@dataclass(slots=True)
class PlannedDelete:
    """The decision about the object of a deleted row: ``uid`` is the UID of the object to delete, "" if there was no object.

    ``deleted`` is the UID of the deleted object, and ``is_gone`` is True if that object does not exist any more.
    """

    uid: str
    delete_protected: bool
    deleted: str = ""
    is_gone: bool = False


class ApplyOperations:
    """The operations for the rows of the desired table.

    ``answered`` is called with each applied object, ``pruned`` with the report of each prune. ``whole`` returns whether every
    wanted object of a release has a row, ``corrections_paused`` whether the correction of a release's drift is paused,
    ``confined`` whether a release may write only in its own namespace. ``acting`` returns the client of a release; without it,
    ``client`` is used for all releases.
    """

    def __init__(
        self,
        client: ClusterClient,
        writer: ObjectWriter,
        applied: AppliedObjects,
        answered: Callable[[ObjectKey, JsonObject], None],
        whole: Callable[[Owner], bool],
        corrections_paused: Callable[[Owner], bool],
        confined: Confined = unconfined,
        pruned: Callable[[PruneReport], None] = ignore_report,
        acting: Acting | None = None,
    ) -> None:
        self._acting = acting or always(client)
        self._writer = writer
        self._applied = applied
        self._answered = answered
        self._corrections_paused = corrections_paused
        self._confined = confined
        self._pruner = Pruner(client, whole, writer.manager, pruned, self._acting)
        self._last_reads: dict[Identity, LastRead] = {}
        self._before: dict[Identity, Before] = {}
        self._planned: dict[Identity, PlannedDelete] = {}
        self._left: dict[Identity, tuple[FieldConflict, ...]] = {}
        self._running: dict[Identity, trio.CancelScope] = {}

    def saw(self, identity: Identity, live: JsonObject | None) -> None:
        """Record the live object, so that the next update of this object need not read it."""
        self._last_reads[identity] = LastRead(live, trio.current_time())

    def knows(self, identity: Identity) -> None:
        """Record that the object is as it was applied, and has no fields of other managers: the next update need not read it."""
        self._last_reads[identity] = LastRead(None, trio.current_time(), is_known=True)

    def replaces(self, identity: Identity, body: PackedJson) -> None:
        """Remember the state that was applied before the row changed.

        Until the row is applied, the fields of that earlier state count as drift if another manager has taken them.
        """
        self._before[identity] = Before(body)

    def plan_delete(self, identity: Identity, uid: str, *, delete_protected: bool = False) -> PlannedDelete:
        """Record that the next delete has to delete the object with this UID, and no other object.

        If ``uid`` is "", no object existed when the delete was planned; then the delete concerns an object that an apply may
        have created meanwhile.
        """
        planned = self._planned[identity] = PlannedDelete(uid, delete_protected)
        return planned

    def left(self, identity: Identity) -> tuple[FieldConflict, ...]:
        """Return the fields that the last apply left to the managers that took them."""
        return self._left.get(identity, ())

    def interrupt(self, identity: Identity) -> None:
        """Cancel the apply of a row that is not wanted any more, and discard what was recorded for its next apply and delete."""
        self._last_reads.pop(identity, None)
        self._before.pop(identity, None)
        self._planned.pop(identity, None)
        if (scope := self._running.get(identity)) is not None:
            scope.cancel(reason="the row is gone")

    def forget(self, identity: Identity) -> None:
        """Discard the state of an object that is deleted or no longer ours.

        What `saw` and `replaces` recorded is kept, because it is for the next row of the object, and that row may exist already.
        """
        self._planned.pop(identity, None)
        self._left.pop(identity, None)
        self._applied.forget(identity)

    async def update(self, attempt: Attempt[Identity, DesiredObject]) -> None:
        """Apply the object.

        Raises OutsideNamespaceError, ForeignObjectError, FieldConflictError, BeingDeletedError, InterruptedApplyError, and the
        client's errors.
        """
        if attempt.refreshing and self._corrections_paused(attempt.row.owner):
            await trio.lowlevel.checkpoint()  # the refresh was requested before the corrections were paused
            return
        if self._confined(attempt.row.owner):
            check_key(attempt.row.key, attempt.row.owner)
        with trio.CancelScope() as scope:
            self._running[attempt.key] = scope
            try:
                await self._update(attempt)
            finally:
                del self._running[attempt.key]
        if scope.cancelled_caught:
            raise InterruptedApplyError(
                f"{attempt.row.key}: the apply was stopped, because this daemon no longer applies this object"
            )

    async def _update(self, attempt: Attempt[Identity, DesiredObject]) -> None:
        row, identity = attempt.row, attempt.key
        known = None if attempt.refreshing else self._before.get(identity)

        def before() -> JsonObject | None:
            if attempt.refreshing:
                return row.object()
            return None if known is None else as_object(known.body.value(), str(row.key))

        written = await self._write(attempt, before)
        _check_staying(row.key, written.live)
        # No await from here on, so that no other task sees only a part of the new state of the object.
        self._applied.record(identity, written.live, partial=bool(written.left))
        self._answered(row.key, written.live)
        if known is not None and self._before.get(identity) is known:
            del self._before[identity]  # a newer entry is for the next row, which waits for this attempt to end
        self._left.pop(identity, None)
        if written.left:
            self._left[identity] = written.left

    async def _write(
        self, attempt: Attempt[Identity, DesiredObject], before: Callable[[], JsonObject | None]
    ) -> Written:
        row, last_read = attempt.row, self._last_reads.pop(attempt.key, None)
        client = self._acting(row.owner)
        writer = replace(self._writer, client=client)
        if (
            attempt.number > 1
            or attempt.refreshing
            or last_read is None
            or trio.current_time() - last_read.at >= FRESH_S
        ):
            live = await look_up(client, row.key)
        elif not last_read.is_known:
            live = last_read.live
        else:
            applied = self._applied.get(attempt.key)
            if applied is not None and not self._applied.is_shared(attempt.key):
                with suppress(ConflictError, InvalidError):
                    return await writer.write_unread(row.to_apply(), applied.uid)
            live = await look_up(client, row.key)  # the object has been changed or replaced just now
        if live is not None:
            self._check_owner(row, live)
            _check_staying(row.key, live)
        return await writer.write(
            row.key, row.to_apply(), live, before=before, drift=row.drift, correcting=attempt.refreshing
        )

    async def delete(self, attempt: Attempt[Identity, DesiredObject]) -> None:
        """Delete the object, unless the row is an orphan or the object is to be kept."""
        row, identity = attempt.row, attempt.key
        if not row.orphan:
            client = self._acting(row.owner)
            planned = self._planned.get(identity) or PlannedDelete("", delete_protected=False)
            uid, deletion = planned.uid, Deletion.NOTHING
            if uid:
                deletion = await delete_exactly(client, row.key, uid)
            if deletion is Deletion.NOTHING:
                # An apply that ran while the caller decided is over by now, and may have made another object.
                uid = await self._judge(row, delete_protected=planned.delete_protected)
                if uid:
                    deletion = await delete_exactly(client, row.key, uid)
            planned.deleted = uid
            planned.is_gone = deletion is Deletion.GONE
        self.forget(identity)

    async def prune(self, snapshot: Snapshot[Identity, DesiredObject]) -> None:
        """Delete objects that have our label but no row. A release is pruned only if every wanted object of it has a row."""
        await self._pruner.prune(snapshot)

    async def _judge(self, row: DesiredObject, *, delete_protected: bool) -> str:
        """Return the UID of the object to delete; "" if there is no object, if it is to be kept, or if we did not apply it."""
        live = await look_up(self._acting(row.owner), row.key)
        if live is None or own_entry(live, self._writer.manager) is None:
            return ""
        if why_kept(row.key, row.object(), live, row.owner, delete_protected=delete_protected):
            return ""
        return find_str(live, "metadata", "uid")

    def _check_owner(self, row: DesiredObject, live: JsonObject) -> None:
        """Raise ForeignObjectError for an object that does not belong to the release of the row.

        An object that we applied is still ours if it lost the annotations that name its release.
        """
        found, applied = owner_of(live), self._applied.get(row.identity)
        stripped = not found.name and not found.namespace
        if not stripped or applied is None or applied.uid != find_str(live, "metadata", "uid"):
            check_owner(row.key, live, row.owner)


def _check_staying(key: ObjectKey, live: JsonObject) -> None:
    if find_str(live, "metadata", "deletionTimestamp"):
        finalizers = ", ".join(str(one) for one in find_list(live, "metadata", "finalizers"))
        why = f"; it waits for finalizers: {finalizers}" if finalizers else ""
        raise BeingDeletedError(f"{key} is being deleted{why}")
