"""The rows of releases in the desired table: written wave by wave, removed in reverse, forgotten if they failed.

    put      A row is written if it is new or changed, or if its object may differ from it; then the reconciler applies it. Any
             other row is kept unchanged. The wave is over when each of its rows is done, or one has failed permanently or too
             often.
    remove   The row is removed. Its object is deleted if the deletion was decided before.
    forget   The row is removed, and its object is kept unchanged. This happens to the rows that a failed operation did not
             finish, including its deletions, because they are not retried outside of an operation. The next operation creates
             the rows from the records again.

A kind is watched for as long as it has rows.
"""

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import trio

from wharfinger.cluster.api.interruption import Interruption
from wharfinger.cluster.apply.operations import ApplyOperations
from wharfinger.cluster.apply.removal import RemovalDecision
from wharfinger.cluster.apply.writer import rules_of
from wharfinger.cluster.drift.comparison import find_drift, is_in_doubt
from wharfinger.cluster.fields.conflicts import FieldConflict
from wharfinger.cluster.objects.applied_objects import AppliedObjects
from wharfinger.cluster.objects.desired import DesiredObject, DesiredTable, Identity, check_free
from wharfinger.cluster.objects.live_objects import LiveObjects
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.reconciler.service import Reconciler
from wharfinger.cluster.reconciler.status import Kind
from wharfinger.cluster.tables.transaction import write
from wharfinger.cluster.watch.object_waits import Progress
from wharfinger.cluster.watch.readiness import Failed, InProgress
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType

MANY: Final = 50
SHOWN_STUCK: Final = 3
TELL_S: Final = 0.1
"""If a report was about more than MANY objects, the next report follows after this time in seconds, or later."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The deleted objects; ``ending``: those that may still exist, with their UIDs."""

    deleted: list[ObjectKey] = field(default_factory=list)
    ending: dict[ObjectKey, str] = field(default_factory=dict)


class ReleaseRows:
    """The rows of releases in the table of wanted objects. No other class writes to this table."""

    def __init__(
        self,
        table: DesiredTable,
        reconciler: Reconciler[Identity, DesiredObject],
        operations: ApplyOperations,
        applied: AppliedObjects,
        live: LiveObjects,
        interruption: Interruption | None = None,
    ) -> None:
        self._table = table
        self._reconciler = reconciler
        self._operations = operations
        self._applied = applied
        self._live = live
        self._interruption = interruption or Interruption()
        self._kinds: Counter[ResourceType] = Counter()

    def of(self, owner: Owner) -> tuple[DesiredObject, ...]:
        """Return all rows of a release."""
        return tuple(entry.row for entry in self._table.snapshot().find("owner", owner))

    def left(self, rows: Iterable[DesiredObject]) -> dict[ObjectKey, tuple[FieldConflict, ...]]:
        """Return the fields that were left to other managers, by object."""
        return {row.key: left for row in rows if (left := self._operations.left(row.identity))}

    def uids(self, rows: Iterable[DesiredObject]) -> frozenset[str]:
        """Return the UIDs of the objects that were applied for these rows."""
        known = (self._applied.get(row.identity) for row in rows)
        return frozenset(applied.uid for applied in known if applied is not None)

    def settled(self, groups: Iterable[Hashable]) -> bool:
        """Return whether all rows of these waves are done."""
        return not any(self._reconciler.progress(group) for group in groups)

    async def put(
        self,
        rows: Sequence[DesiredObject],
        lives: Mapping[Identity, JsonObject | None],
        before: Mapping[Identity, PackedJson],
        progress: Progress,
        *,
        unread: Container[Identity] = (),
        known: Container[Identity] = (),
        unsure: Container[Identity] = (),
    ) -> None:
        """Apply the rows of one wave. ``lives``: objects as they were read just now; ``before``: objects as they were applied
        before.

        ``unread``: objects that are known to be as wanted, and were not read for that reason. ``known``: objects that are known
        to be as they were applied before, without fields of other managers. ``unsure``: objects that are applied in any
        case, because an attempt that did not end may have changed them.

        Raises ForeignObjectError if another release has one of the objects by now. If a row fails permanently, or too often,
        its error is raised.
        """
        for row in rows:
            check_free(self._table.snapshot(), row.identity, row.owner)
        changed = [row for row in rows if row.identity in unsure or not self._is_done(row, lives, before, unread)]
        for row in changed:
            if (body := before.get(row.identity)) is not None:
                self._operations.replaces(row.identity, body)
            if row.identity in lives:
                self._operations.saw(row.identity, lives[row.identity])
            elif row.identity in known and row.identity not in unsure:
                self._operations.knows(row.identity)
        revision = self._insert(changed)
        written = {row.identity for row in changed}
        done = [row for row in rows if row.identity not in written]
        self._assume(done, lives)
        await self._settle(
            revision, {row.group: None for row in changed}, {row.identity: row.key for row in rows}, progress
        )

    def fill(self, rows: Iterable[DesiredObject]) -> None:
        """Insert the rows of a release record. They count as done without an operation, because nothing else is known about
        their objects.
        """
        missing = [row for row in rows if row.identity not in self._table.snapshot()]
        self._assume(missing, {})

    async def remove(self, rows: Sequence[DesiredObject], decision: RemovalDecision, progress: Progress) -> Removed:
        """Delete the objects that ``decision`` wants to be deleted, in the reverse order of waves. Forget all other rows in
        ``rows``, whose objects stay.

        An object that did not exist when the deletion was decided is read again if an apply of ours may have created it since.
        """
        going = [row for row in rows if row.identity in decision.to_delete or self._may_come(row, decision)]
        here = {row.identity for row in going}
        self.forget([row for row in rows if row.identity not in here])
        removed = Removed()
        for wave in sorted({row.wave for row in going}, reverse=True):
            part = [row for row in going if row.wave == wave]
            planned = [
                self._operations.plan_delete(
                    row.identity,
                    decision.to_delete.get(row.identity, ""),
                    delete_protected=decision.delete_protected,
                )
                for row in part
            ]
            # A row that comes from a record is not in the table, and is inserted first: only the removal of a row deletes its
            # object.
            self._insert([row for row in part if row.identity not in self._table.snapshot()])
            revision = self._delete(part)
            keys = {row.identity: row.key for row in part}
            await self._settle(revision, {row.group: None for row in part}, keys, progress)
            for row, one in zip(part, planned, strict=True):
                if uid := one.deleted or one.uid:
                    removed.deleted.append(row.key)
                    if not one.is_gone:
                        removed.ending[row.key] = uid
        return removed

    def forget(self, rows: Iterable[DesiredObject]) -> None:
        """Remove rows and keep their objects, including objects that are still to be deleted."""
        snapshot = self._table.snapshot()
        rows = tuple(rows)
        for row in rows:
            self._operations.interrupt(row.identity)
        there = [entry.row for row in rows if (entry := snapshot.get(row.identity)) is not None]
        there += [row for row in rows if row.identity not in snapshot and self._reconciler.status(row.identity)]
        self._insert([row.as_orphan() for row in there if not row.orphan])
        self._delete(there)

    def forget_unfinished(self, owner: Owner, leaving: Iterable[DesiredObject] = ()) -> None:
        """Remove the owner's rows that are not done. For objects in ``leaving`` that have no row, also drop the unfinished
        deletion.
        """
        snapshot = self._table.snapshot()
        unfinished = [row for row in self.of(owner) if not self._is_kind(row.identity, Kind.DONE, Kind.REFRESHING)]
        self.forget([*unfinished, *(row for row in leaving if row.identity not in snapshot)])

    # -- what is known of a row

    def _may_come(self, row: DesiredObject, decision: RemovalDecision) -> bool:
        """Return whether the object, which was absent before, may exist by now, because an apply has created it or may still
        create it.
        """
        known = row.identity in self._table.snapshot() or self._reconciler.status(row.identity) is not None
        return known and row.identity in decision.absent

    def _is_done(
        self,
        row: DesiredObject,
        lives: Mapping[Identity, JsonObject | None],
        before: Mapping[Identity, PackedJson],
        unread: Container[Identity],
    ) -> bool:
        """Return whether the object was applied as it is wanted now, and has not changed since."""
        if row.identity in unread:
            return self._is_kind(row.identity, Kind.DONE)
        live = lives.get(row.identity)
        entry = self._table.snapshot().get(row.identity)
        if live is None or find_str(live, "metadata", "deletionTimestamp") or before.get(row.identity) != row.body:
            return False
        if entry is not None and (entry.row.key != row.key or not self._is_kind(row.identity, Kind.DONE)):
            return False
        applied = self._applied.get(row.identity)
        seen = find_str(live, "metadata", "resourceVersion")
        if applied is not None and not applied.partial and applied.resource_version == seen:
            return True
        if applied is None and is_in_doubt(row, live, self._applied.manager):
            return False
        return find_drift(row.object(), applied, live, self._applied.manager, rules_of(row.drift)) is None

    def _is_kind(self, identity: Identity, *kinds: Kind) -> bool:
        status = self._reconciler.status(identity)
        return status is not None and status.kind in kinds

    # -- writing

    def _assume(self, rows: Iterable[DesiredObject], lives: Mapping[Identity, JsonObject | None]) -> None:
        """Insert these rows as done, without performing an operation, on the assumption that their objects match them."""
        snapshot, other = self._table.snapshot(), list[DesiredObject]()
        for row in rows:
            entry = snapshot.get(row.identity)
            if entry is not None and (entry.row.drift, entry.row.digest) == (row.drift, row.digest):
                continue
            live = lives.get(row.identity)
            if live is not None and self._applied.get(row.identity) is None:
                self._applied.record(row.identity, live)
            other.append(row)
        self._insert(other)
        inserted = self._table.snapshot()
        for row in other:
            if (entry := inserted.get(row.identity)) is not None:
                self._reconciler.assume_done(row.identity, entry.revision)

    def _insert(self, rows: Iterable[DesiredObject]) -> int:
        """Insert the rows into the table, and return the table's revision after that."""
        with write(self._table) as transaction:
            for row in rows:
                old = transaction.insert(self._table, row)
                self._count(row.key.resource, None if old is None else old.row.key.resource)
        return self._table.snapshot().revision

    def _delete(self, rows: Iterable[DesiredObject]) -> int:
        with write(self._table) as transaction:
            for row in rows:
                if (old := transaction.delete(self._table, row.identity)) is not None:
                    self._count(None, old.row.key.resource)
        return self._table.snapshot().revision

    def _count(self, more: ResourceType | None, less: ResourceType | None) -> None:
        if more is not None:
            self._kinds[more] += 1
            self._live.attend(more)
        if less is not None:
            self._kinds[less] -= 1
            if not self._kinds[less]:
                del self._kinds[less]
                self._live.release(less)

    # -- waiting

    async def _settle(
        self, revision: int, groups: Iterable[Hashable], keys: Mapping[Identity, ObjectKey], progress: Progress
    ) -> None:
        for group in groups:
            stuck: list[ObjectKey] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._tell, group, keys, progress)
                nursery.start_soon(self._give_up, group, keys, stuck, nursery.cancel_scope)
                await self._reconciler.wait_until_reconciled(revision, group, until_settled=True, keys=keys)
                nursery.cancel_scope.cancel()
            if stuck:
                raise self._interruption.error(", ".join(sorted(map(str, stuck[:SHOWN_STUCK]))))
            failures = [failure for failure in self._reconciler.failures(group) if failure.key in keys]
            if failures:
                raise min(failures, key=lambda failure: (not failure.permanent, str(failure.key))).error

    async def _give_up(
        self, group: Hashable, keys: Mapping[Identity, ObjectKey], stuck: list[ObjectKey], wait: trio.CancelScope
    ) -> None:
        """After an interruption, end the wait for ``keys``, the objects that are applied together (a wave), as soon as each
        unfinished object has failed and waits for a retry. Append the unfinished objects to ``stuck``.
        """
        await self._interruption.asked.wait()
        while True:
            watch = self._reconciler.watch(group)
            failing = {failure.key for failure in self._reconciler.failures(group)}
            left = [identity for identity in self._reconciler.progress(group) if identity in keys]
            if left and failing.issuperset(left):
                stuck += [keys[identity] for identity in left]
                wait.cancel()
                return
            await watch.wait()

    async def _tell(self, group: Hashable, keys: Mapping[Identity, ObjectKey], progress: Progress) -> None:
        """Report the objects of a wave that are not applied yet, and those that fail."""
        while True:
            watch = self._reconciler.watch(group)
            laggards: dict[ObjectKey, InProgress | Failed] = {
                keys[identity]: InProgress("being applied")
                for identity in self._reconciler.progress(group)
                if identity in keys
            }
            for failure in self._reconciler.failures(group):
                if failure.key in keys:
                    state = Failed(str(failure.error)) if failure.permanent else InProgress(str(failure.error))
                    laggards[keys[failure.key]] = state
            progress(laggards)
            if len(laggards) > MANY:
                await trio.sleep(TELL_S)  # thousands of objects are not reported at each step
            await watch.wait()
