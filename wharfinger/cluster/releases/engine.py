"""The release engine: it installs and upgrades releases, keeps them in their desired state, and uninstalls them, with Helm's
semantics, by server-side apply.

    async with open_release_engine(client, watches, options) as engine:
        result = await engine.upgrade(request)

The desired state is one table of objects (:mod:`~wharfinger.cluster.objects.desired`); a reconciler makes the cluster match it,
each object separately, and retries transient failures. An upgrade is a sequence of steps on that table
(:mod:`~wharfinger.cluster.releases.upgrade`), and so is an uninstall (:mod:`~wharfinger.cluster.releases.uninstall`). Applied
objects are then watched: fields of ours that other managers change are corrected (:mod:`~wharfinger.cluster.drift.monitor`), the
health of each release is known at any time (:mod:`~wharfinger.cluster.health.monitor`), and changes by a user's helm are noticed
and not undone (:mod:`~wharfinger.cluster.records.release_heads`).

Invariants:

* At most one operation of a release runs at a time; operations of different releases may run at the same time.
* A request that equals the last applied one makes no API request, as long as no watch has reported a change.
* If the last operation of a release failed, its unfinished rows were removed, so each remaining row is done. A release is
  *whole* if all its objects have rows. A prune deletes objects without a row only in whole releases.
* Revisions of other tools are not undone: after such a revision, the release's drift is reported but not corrected, until the
  next upgrade by this engine.
"""

from collections.abc import AsyncGenerator, Container, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.apply.unattended import Unattended
from wharfinger.cluster.crds.kept_definitions import KeptDefinitions
from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.drift.monitor import Corrected, DriftMonitor
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.health.monitor import HealthMonitor
from wharfinger.cluster.health.rules import HealthRule
from wharfinger.cluster.objects.accounts import Accounts
from wharfinger.cluster.objects.desired import DesiredObject, DesiredTable, Identity
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.live_objects import LiveObjects
from wharfinger.cluster.objects.lookup import rows_of
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.objects.scope import check_scope, is_outside, only_inside
from wharfinger.cluster.reconciler.retries import Failure
from wharfinger.cluster.reconciler.service import Reconciler
from wharfinger.cluster.records.release import Release, ReleaseStatus
from wharfinger.cluster.records.release_heads import ReleaseHeads
from wharfinger.cluster.records.release_store import ReleaseBusyError
from wharfinger.cluster.releases.confirmation import confirmed
from wharfinger.cluster.releases.object_states import ObjectState, object_states
from wharfinger.cluster.releases.options import EngineListener, EngineStatistics
from wharfinger.cluster.releases.prediction import Prediction, predict
from wharfinger.cluster.releases.release_registry import Known, ReleaseRegistry
from wharfinger.cluster.releases.request import Outcome, ReleaseRequest, ReleaseResult, UninstallResult
from wharfinger.cluster.releases.uninstall import Uninstall
from wharfinger.cluster.releases.upgrade import OneWay, Tools, Upgrade, apply_early
from wharfinger.cluster.tables.table import Initializer
from wharfinger.cluster.watch.object_waits import Progress, WaitReport, silent
from wharfinger.formats.json.value import JsonObject, ShapeError
from wharfinger.kube.resource import ObjectKey
from wharfinger.kube.service_account import ServiceAccount

COMPARED_PATIENCE_S: Final = 20.0
"""The longest time, in seconds, for which the first upgrade after a restore waits until all objects were compared with their
rows. This wait saves a GET for each object."""
SYNC_PATIENCE_S: Final = 5.0
"""The longest time, in seconds, for which a restore waits until the records of all releases are known. This wait saves a list
request for each release."""


class ReleaseEngine:
    """The releases of one cluster. Made by :func:`open_release_engine`."""

    def __init__(
        self,
        tools: Tools,
        table: DesiredTable,
        reconciler: Reconciler[Identity, DesiredObject],
        drift: DriftMonitor,
        heads: ReleaseHeads,
        health: HealthMonitor,
        live: LiveObjects,
        board: ReleaseRegistry,
        kept: KeptDefinitions,
        unattended: Unattended,
        account: Accounts,
        *,
        force: bool,
    ) -> None:
        """Initialize the engine; callers use `open_release_engine`."""
        self._account = account
        self._tools = tools
        self._table = table
        self._reconciler = reconciler
        self._drift = drift
        self._heads = heads
        self._health = health
        self._live = live
        self._board = board
        self._kept = kept
        self._unattended = unattended
        self._force = force
        self._initializers: dict[Owner, Initializer] = {}

    def listen(self, listener: EngineListener) -> None:
        """Report all events of releases to this listener from now on."""
        self._board.listeners = (*self._board.listeners, listener)

    def listen_to_corrections(self, corrected: Corrected) -> None:
        """Call ``corrected`` from now on for each object whose drift is corrected."""
        self._board.correction_listeners = (*self._board.correction_listeners, corrected)

    # -- operations

    def unchanged(self, request: ReleaseRequest) -> ReleaseResult | None:
        """Return the last result if the request equals the request that this engine applied last, and nothing is known to
        have changed since: no other revision was written, every row is done, and nothing has drifted. Otherwise return None.
        No API request is made.
        """
        return self.as_applied(request.owner, request.fingerprint)

    def as_applied(self, owner: Owner, fingerprint: str) -> ReleaseResult | None:
        """Do the same as `unchanged` for the request that has this fingerprint. A caller that keeps only the fingerprint need
        not make the request again.
        """
        known = self._board.known.get(owner)
        if known is None or known.fingerprint != fingerprint or self._board.is_busy(owner):
            return None
        newest = self._heads.newest(owner) if self._heads.synced else None
        if newest is None or (newest.revision, newest.status) != (known.result.revision, ReleaseStatus.DEPLOYED):
            return None
        if known.confined != self._tools.confined(owner):
            return None  # the permitted scope of the release has changed
        if known.account != self._account(owner):
            return None  # the release acts as another account now
        if not self._tools.rows.settled(known.groups) or self.drifts(owner):
            return None
        return known.result

    async def upgrade(
        self, request: ReleaseRequest, *, progress: Progress = silent, told: OneWay | None = None
    ) -> ReleaseResult:
        """Install or upgrade; ``told`` is called with the changes that cannot be undone, before the first write.

        Raises ReleaseError and its subclasses, ConflictError, and the errors of the client.
        """
        if (same := self.unchanged(request)) is not None:
            await trio.lowlevel.checkpoint()
            return same
        owner = request.owner
        await self._until_compared(owner)
        async with self._expected_turn(owner):
            whole, confined = owner in self._board.whole, self._tools.confined(owner)
            account = self._account(owner)
            anew = owner in self._board.accounts and self._board.accounts[owner] != account
            self._board.forget(owner)
            self._health.set_rules(owner, request.health)
            done = await Upgrade(self._tools, request, progress, whole=whole, anew=anew, told=told).run()
            await self._kept.keep(owner, "release", request.crds, request.drift.mode)
            self._applied(request, done.result, done.rows, confined=confined, account=account)
        return done.result

    async def confirm(self, request: ReleaseRequest) -> ReleaseResult | None:
        """Confirm that a restored release needs no upgrade, and return the result that an upgrade would have. Return None if it
        is not certain that the release has the requested state.

        The request has neither definitions nor hooks. It need not have objects, because its manifest is compared with the
        record. Raises ReleaseError, and the errors of the client.
        """
        owner, board = request.owner, self._board
        await self._until_compared(owner)
        async with board.turn(owner):
            restored, account = board.restored.get(owner), self._account(owner)
            confined, rows = self._tools.confined(owner), self._tools.rows.of(owner)
            if not restored or board.accounts.get(owner, account) != account:
                return None
            if confined and any(is_outside(row.key, owner) for row in rows):
                return None  # they were restored before the release was confined
            result = await confirmed(self._tools, request, restored)
            if result is not None:
                board.forget(owner)
                self._health.set_rules(owner, request.health)
                self._applied(request, result, rows, confined=confined, account=account)
        return result

    async def _until_compared(self, owner: Owner) -> None:
        """If the rows of a release were restored from its record, or are about to be restored, wait for a limited time until
        its live objects were compared with the rows.
        """
        if owner in self._board.restored or owner in self._initializers:
            with trio.move_on_after(COMPARED_PATIENCE_S):
                await self._drift.wait_compared()

    def _applied(
        self,
        request: ReleaseRequest,
        result: ReleaseResult,
        rows: Iterable[DesiredObject],
        *,
        confined: bool,
        account: ServiceAccount | None,
    ) -> None:
        """Record that the release was applied as requested, so that the same request needs no further upgrade."""
        owner = request.owner
        self._attend(owner)
        self._board.whole.add(owner)
        unchanged = replace(result, outcome=Outcome.UNCHANGED, pruned=(), kept={})
        groups = tuple({row.group: None for row in rows})
        self._board.known[owner] = Known(request.fingerprint, unchanged, groups, confined, account)
        self._board.accounts[owner] = account

    async def uninstall(
        self,
        name: str,
        namespace: str,
        *,
        delete_protected: bool = False,
        orphan: bool = False,
        applied: bool = True,
        progress: Progress = silent,
    ) -> UninstallResult:
        """Delete the objects that the release applied, wait until they are gone, then delete the release's records. A second
        call deletes nothing.

        ``delete_protected``: delete volumes, claims, namespaces and definitions as well. ``orphan``: delete only the records,
        and our label on the objects. ``applied`` is False if the caller knows that the release never applied an object. Then,
        without a record, the engine looks for objects only if it has rows of the release, or if the release's namespace is being
        deleted.
        """
        owner = Owner(name, namespace)
        async with self._expected_turn(owner):
            self._board.forget(owner)
            uninstall = Uninstall(
                self._tools, owner, progress, delete_protected=delete_protected, orphan=orphan, applied=applied
            )
            self._kept.stop_keeping(owner)
            self._tools.tidying.drop(owner)
            result = await uninstall.run()
            self._board.accounts.pop(owner, None)
            self._health.set_rules(owner, ())
            self.resume(owner)
            self._attend(owner)
        return result

    async def history(self, name: str, namespace: str) -> list[Release]:
        """Return all revisions of a release, oldest first; revisions before the last deployed one are summaries."""
        return [stored.release for stored in await self._tools.keeper.history(Owner(name, namespace))]

    async def whole(self, release: Release) -> Release | None:
        """Return the complete record of a revision from :meth:`history`; None if it is gone by now. Raises ReleaseRecordError."""
        return await self._tools.keeper.whole(release)

    async def objects(self, name: str, namespace: str) -> tuple[ObjectKey, ...]:
        """Return the objects in the manifest of a release's last revision, if their kinds are served; () without a revision."""
        owner = Owner(name, namespace)
        if (known := self._board.known.get(owner)) is not None:
            return known.result.objects
        history = await self._tools.keeper.history(owner)
        if not history:
            return ()
        objects = await self._tools.keeper.objects_of(history[-1].release)
        return tuple(row.key for row in await rows_of(self._tools.client, owner, objects, DriftPolicy()))

    async def ensure_crds(
        self,
        name: str,
        namespace: str,
        crds: Sequence[JsonObject],
        *,
        step: str = "early",
        drift: DriftPolicy | None = None,
        progress: Progress = silent,
    ) -> tuple[ObjectKey, ...]:
        """Apply definitions that a release is going to need, and wait until they are established. Definitions belong to no
        release.

        From then on, the deletion of one of these definitions is noticed, and the definition is restored if ``drift`` says so.
        ``step`` is a name that the caller chooses. Definitions that an earlier call with the same ``step`` applied for the
        release are no longer watched, unless ``crds`` contains them, too.

        Raises OutsideNamespaceError and UnsafeDefinitionError before the first write, CrdError, and the errors of the
        client.
        """
        owner = Owner(name, namespace)
        if self._tools.confined(owner):
            await check_scope(self._tools.client, owner, (), crds)
        survey = await self._tools.surveyor.survey(owner, (), crds, DriftPolicy())
        keys = await self._tools.definitions.apply(owner, crds, survey.definitions, progress)
        await self._kept.keep(owner, step, crds, (drift or DriftPolicy()).mode)
        return keys

    async def apply_early(
        self, name: str, namespace: str, objects: Sequence[JsonObject], *, drift: DriftPolicy | None = None
    ) -> tuple[ObjectKey, ...]:
        """Apply some objects of a release before the release itself is applied, and return their keys. The manifest of the
        release will contain these objects.

        Raises OutsideNamespaceError, ForeignObjectError and UnknownKindError before the first write, and the errors of the
        client.
        """
        owner = Owner(name, namespace)
        async with self._board.turn(owner):
            self._board.forget(owner)
            return await apply_early(self._tools, owner, objects, drift or DriftPolicy())

    # -- after a restart

    def expect(self, owners: Iterable[Owner]) -> None:
        """Expect these releases to be restored, upgraded or uninstalled. Nothing is pruned until this is done for all of them."""
        for owner in owners:
            if owner not in self._initializers:
                self._initializers[owner] = self._table.initializer(f"release {owner}")

    async def restore(
        self, name: str, namespace: str, *, drift: DriftPolicy | None = None, health: tuple[HealthRule, ...] = ()
    ) -> tuple[ObjectKey, ...] | None:
        """Fill the rows of a release from its records, without applying an object: its last objects are watched from now on.

        Returns the objects of the last revision, as `objects` does; None if they were not read.

        Nothing is filled if the last operation failed, or was made by a user's helm; an operation of a user is reported. A
        pending record whose writer is gone is marked failed, because a user's helm would refuse to work on the release
        otherwise. Objects outside of the namespace of a confined release are left out.
        """
        owner = Owner(name, namespace)
        with trio.move_on_after(SYNC_PATIENCE_S), suppress(ClusterError, ShapeError):
            await self._heads.wait_synced()  # one list for all releases, instead of one for each
        async with self._expected_turn(owner):
            try:
                history = await self._tools.keeper.settled(owner)
            except ReleaseBusyError:
                history = []
            last = history[-1].release if history else None
            if last is not None and last.status is ReleaseStatus.DEPLOYED:
                if last.holder:
                    self._tools.tidying.add_if_needed(owner, history)
                    self._health.set_rules(owner, health)
                    objects = await self._tools.keeper.objects_of(last)
                    rows = await rows_of(self._tools.client, owner, objects, drift or DriftPolicy())
                    inside = only_inside(owner, rows) if self._tools.confined(owner) else rows
                    self._tools.rows.fill(inside)
                    if len(inside) == len(rows):
                        self._board.whole.add(owner)
                        # An object has no row if its kind is not served, or if another release has it. An upgrade reports that.
                        has_all = len(self._tools.rows.of(owner)) == len(objects)
                        self._board.restored[owner] = last.revision if has_all else 0
                    return tuple(row.key for row in rows)
                self._board.report_foreign(owner, last.revision, str(last.written_by))
        return None

    async def forget(self, owner: Owner) -> None:
        """Forget a release that has no record, or that this daemon does not manage: remove its rows, and leave its objects
        unchanged.
        """
        async with self._expected_turn(owner):
            self._board.forget(owner)
            self._kept.stop_keeping(owner)
            self._tools.tidying.drop(owner)
            self._tools.rows.forget(self._tools.rows.of(owner))
            self._health.set_rules(owner, ())

    def interrupt(self, cause: str) -> None:
        """End all present and future waits, and stop correcting drift.

        An operation that waits raises WaitInterruptedError; a write that has begun is completed.
        """
        self._drift.stop_correcting()
        self._tools.interruption.interrupt(cause)

    def suspend(self, owner: Owner) -> None:
        """Suspend the release: report its drift without correcting it, until `resume`."""
        self._board.suspended.add(owner)
        self._drift.pause_corrections(owner)

    def resume(self, owner: Owner) -> None:
        """Resume the correction of drift of a suspended release."""
        if owner in self._board.suspended:
            self._board.suspended.discard(owner)
            if owner not in self._board.left_alone:
                self._drift.resume_corrections(owner)
                self._kept.resume(owner)

    def prune(self) -> None:
        """Request a prune as soon as all expected releases are restored. It deletes objects that have our label, but no row;
        releases that are not *whole* are left out (see the docstring of this module).
        """
        self._reconciler.prune()

    # -- the state

    def wanted(self, owner: Owner, kinds: Container[str]) -> tuple[JsonObject, ...]:
        """Return the desired objects of a release that are of these kinds."""
        return tuple(row.object() for row in self._tools.rows.of(owner) if row.key.resource.kind in kinds)

    def is_confined(self, owner: Owner) -> bool:
        """Return whether a release may hold objects of its own namespace only."""
        return self._tools.confined(owner)

    def drifts(self, owner: Owner) -> tuple[Drift, ...]:
        """Return the objects of a release that differ now from what was applied. Missing objects and CRDs are included."""
        return (*self._drift.drifts(owner), *self._kept.missing(owner))

    def object_states(self, owner: Owner) -> tuple[ObjectState, ...]:
        """Return the state of each object for which the release has a row, sorted by the key of the object."""
        return object_states(
            self._tools.rows.of(owner), self._health.readiness, self._reconciler.status, self._drift.drifts(owner)
        )

    async def predict(self, request: ReleaseRequest) -> Prediction:
        """Return what `upgrade` would change in the cluster, by dry runs of the API server. Nothing is written.

        Raises the errors that `upgrade` would raise before its first write.
        """
        return await predict(self._tools, request, self._force, whole=request.owner in self._board.whole)

    def failures(self) -> dict[Owner, list[Failure[Identity]]]:
        """Return the failures of applying and deleting objects, by release; the object that has failed longest comes first."""
        found: dict[Owner, list[Failure[Identity]]] = {}
        for row, failure in self._reconciler.failing_rows():
            found.setdefault(row.owner, []).append(failure)
        return found

    def health(self, owner: Owner) -> Health:
        """Return the present health of a release."""
        return self._health.health(owner)

    async def wait_ready(self, name: str, namespace: str, *, progress: Progress = silent) -> WaitReport:
        """Wait until all objects of a release are ready, or one has failed. The caller sets a time limit, if any."""
        return await self._health.wait_ready(Owner(name, namespace), progress=progress)

    def statistics(self) -> EngineStatistics:
        """Return the statistics, for metrics and dumps."""
        records, record_bytes = self._tools.keeper.cached
        return EngineStatistics(
            table=self._table.statistics(),
            reconciler=self._reconciler.statistics(),
            drift=self._drift.statistics(),
            health=self._health.statistics(),
            live=self._live.statistics(),
            apply_health=self._reconciler.health(),
            pruned=self._unattended.count,
            whole=len(self._board.whole),
            left_alone=len(self._board.left_alone),
            busy=self._board.busy,
            cached_records=records,
            cached_record_bytes=record_bytes,
        )

    # -- about one release

    def _attend(self, owner: Owner) -> None:
        """Correct the drift of a release again that was left alone because another tool made its last revision. If the release
        is suspended, its drift is corrected only after it is resumed.
        """
        if owner in self._board.left_alone:
            self._board.left_alone.discard(owner)
            if owner in self._board.suspended:
                return
            self._drift.resume_corrections(owner)
            self._kept.resume(owner)

    @asynccontextmanager
    async def _expected_turn(self, owner: Owner) -> AsyncGenerator[None, None]:
        """Let no other operation run on a release during the block (`ReleaseRegistry.turn`).

        If prunes wait for the release (`expect`), they no longer do so after the block. If the block fails, the objects of the
        release are not pruned, because its rows may be incomplete.
        """
        async with self._board.turn(owner):
            try:
                yield
            finally:
                if (initializer := self._initializers.pop(owner, None)) is not None:
                    initializer.done()
