"""The uninstall of one release, step by step.

Pre-delete hooks → custom resources → all other objects, wave by wave in reverse → post-delete hooks → records. Custom resources
are deleted before the other objects, and waited for, while the controllers that clear their finalizers are still running. Some
objects are kept (:mod:`wharfinger.cluster.apply.removal`). In a namespace that is being deleted, the server deletes all
objects: none of them is deleted or waited for here, and no hook can run there. With ``orphan``, only the records and our label
on the objects are removed, and the objects are kept.

If an uninstall is interrupted, the next one finds a record with the status "uninstalling", and continues. If there is no record,
the objects are found by the release's label (:mod:`wharfinger.cluster.apply.left_objects`). This is necessary because records are
deleted with their namespace, but objects elsewhere are not.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.apply.left_objects import find_remaining
from wharfinger.cluster.apply.removal import disown, judge_leaving
from wharfinger.cluster.objects.desired import DesiredObject, Identity
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.install_order import Wave
from wharfinger.cluster.objects.lookup import CONCURRENCY, is_namespace_deleted, look_up, rows_of
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.objects.scope import outside_of
from wharfinger.cluster.records.release import Release, ReleaseStatus
from wharfinger.cluster.releases.hooks import Hook, HookEvent, HookRunner
from wharfinger.cluster.releases.record_keeper import recorded_hooks
from wharfinger.cluster.releases.request import UninstallResult
from wharfinger.cluster.releases.upgrade import Tools
from wharfinger.cluster.watch.object_waits import Progress, wait_gone
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey

log = logging.getLogger(__name__)

_UNWATCHED = DriftPolicy(DriftMode.OFF)


class Uninstall:
    """One uninstall of one release."""

    def __init__(
        self,
        tools: Tools,
        owner: Owner,
        progress: Progress,
        *,
        delete_protected: bool,
        orphan: bool,
        applied: bool = True,
    ) -> None:
        self._tools = tools
        self._owner = owner
        self._progress = progress
        self._delete_protected = delete_protected
        self._orphan = orphan
        self._applied = applied

    async def run(self) -> UninstallResult:
        """Uninstall the release. Raises ReleaseBusyError, HookFailedError, ReleaseError, and the errors of the client."""
        keeper, owner = self._tools.keeper, self._owner
        history = await keeper.settled(owner)
        if not history:
            return await self._without_record()
        rows = await self._rows(list(chain.from_iterable(await keeper.possible_objects(history))))
        last = history[-1]
        if self._orphan:
            result = await self._leave_behind(rows)
        else:
            await keeper.mark(last, ReleaseStatus.UNINSTALLING, "Deletion in progress")
            try:
                result = await self._delete(
                    rows,
                    await self._hooks(last.release),
                    going=await is_namespace_deleted(self._tools.client, self._owner.namespace),
                )
            except BaseException:
                self._tools.rows.forget(rows)
                raise
        await keeper.remove_all(owner)
        return result

    async def _without_record(self) -> UninstallResult:
        """Uninstall a release without records. Its objects are those with its label, and those in its rows. No Helm hook is
        run.
        """
        known = self._tools.rows.of(self._owner)
        going = await is_namespace_deleted(self._tools.client, self._owner.namespace)
        if not (going or known or self._applied):
            return UninstallResult(found=False)
        left = await find_remaining(self._tools.client, self._owner, self._tools.manager)
        rows = tuple({row.identity: row for row in (*left, *known)}.values())
        if self._orphan:
            return replace(await self._leave_behind(rows), found=False)
        try:
            return replace(await self._delete(rows, (), going=going), found=False)
        except BaseException:
            self._tools.rows.forget(rows)
            raise

    async def _rows(self, recorded: Sequence[JsonObject]) -> tuple[DesiredObject, ...]:
        """Return the rows of all objects that may exist: rows in the table, and rows of the records."""
        there: dict[Identity, DesiredObject] = {row.identity: row for row in self._tools.rows.of(self._owner)}
        for row in await rows_of(self._tools.client, self._owner, recorded, _UNWATCHED):
            there.setdefault(row.identity, row)
        return tuple(there.values())

    async def _delete(self, rows: Sequence[DesiredObject], recorded: Sequence[Hook], *, going: bool) -> UninstallResult:
        confined_to = self._owner if self._tools.confined(self._owner) else None
        hooks = () if going else recorded
        client = self._tools.acting(self._owner) if rows or hooks else self._tools.client
        runner = HookRunner(client, self._owner.namespace, self._progress, confined_to=confined_to)
        await runner.run(hooks, HookEvent.PRE_DELETE)
        if going:  # the server deletes all objects in the namespace
            inside = [row for row in rows if row.key.namespace == self._owner.namespace]
            self._tools.rows.forget(inside)
            rows = [row for row in rows if row.key.namespace != self._owner.namespace]
        deleted: list[ObjectKey] = []
        kept: dict[ObjectKey, str] = {}
        custom = [row for row in rows if row.wave == Wave.CUSTOM]
        for part in (custom, [row for row in rows if row.wave != Wave.CUSTOM]):
            decision = await judge_leaving(client, part, delete_protected=self._delete_protected)
            removed = await self._tools.rows.remove(part, decision, self._progress)
            if removed.ending and not going:
                await self._await_gone(removed.ending)
            deleted += removed.deleted
            kept |= decision.kept
        await runner.run(hooks, HookEvent.POST_DELETE)
        return UninstallResult(found=True, deleted=tuple(deleted), kept=kept)

    async def _hooks(self, last: Release) -> list[Hook]:
        """Return the hooks of a record, without the hooks that a confined release may not run, because these must not prevent a
        removal.
        """
        hooks, owner = recorded_hooks(last), self._owner
        if not self._tools.confined(owner):
            return hooks
        outside = await outside_of(self._tools.client, owner, [hook.obj for hook in hooks])
        for hook, out in zip(hooks, outside, strict=True):
            if out and hook.events & {HookEvent.PRE_DELETE, HookEvent.POST_DELETE}:
                log.warning(
                    "release %s: %s is outside of the namespace %s, to which an Application is confined; it is not run",
                    owner,
                    hook,
                    owner.namespace,
                )
        return [hook for hook, out in zip(hooks, outside, strict=True) if not out]

    async def _await_gone(self, deleted: Mapping[ObjectKey, str]) -> None:
        """Wait until the deleted objects are gone. First read each object once, because most of them may be gone already."""
        still: dict[ObjectKey, str] = {}

        async def look(key: ObjectKey) -> None:
            live = await look_up(self._tools.acting(self._owner), key)
            if live is not None and find_str(live, "metadata", "uid") == deleted[key]:
                still[key] = deleted[key]

        await each(deleted, look, limit=CONCURRENCY)
        if still:
            await wait_gone(self._tools.client, still, progress=self._progress)

    async def _leave_behind(self, rows: Sequence[DesiredObject]) -> UninstallResult:
        self._tools.rows.forget(rows)
        client = self._tools.acting(self._owner)
        await each(rows, lambda row: disown(client, row.key, self._owner), limit=CONCURRENCY)
        return UninstallResult(found=True, kept={row.key: "kept, as requested" for row in rows})
