"""The release engine as a service: its parts are made, connected, and run for as long as it is used.

::

    async with open_release_engine(client, watches, options) as engine:
        result = await engine.upgrade(request)
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.interruption import Interruption
from wharfinger.cluster.apply.operations import ApplyOperations
from wharfinger.cluster.apply.unattended import Unattended
from wharfinger.cluster.apply.writer import ObjectWriter
from wharfinger.cluster.crds.definitions import Definitions
from wharfinger.cluster.crds.kept_definitions import KeptDefinitions
from wharfinger.cluster.drift.foreign_changes import ForeignChanges
from wharfinger.cluster.drift.monitor import DriftMonitor
from wharfinger.cluster.health.monitor import HealthMonitor, open_health_monitor
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.objects.accounts import OwnerClients
from wharfinger.cluster.objects.applied_objects import AppliedObjects
from wharfinger.cluster.objects.desired import DesiredObject, DesiredTable, Identity, desired_table
from wharfinger.cluster.objects.live_objects import open_live_objects
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.objects.unmarked_names import UnmarkedNames
from wharfinger.cluster.reconciler.service import Reconciler, open_reconciler
from wharfinger.cluster.reconciler.status import Kind
from wharfinger.cluster.records.release_heads import ReleaseHeads, open_release_heads
from wharfinger.cluster.records.release_store import ReleaseStore
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.late_tidying import LateTidying
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.preflight import Surveyor
from wharfinger.cluster.releases.record_keeper import RecordKeeper
from wharfinger.cluster.releases.release_registry import ReleaseRegistry
from wharfinger.cluster.releases.rows import ReleaseRows
from wharfinger.cluster.releases.upgrade import Tools
from wharfinger.cluster.watch.shared_watches import SharedWatches


@asynccontextmanager
async def open_release_engine(
    client: ClusterClient,
    watches: SharedWatches,
    options: EngineOptions | None = None,
    heads: ReleaseHeads | None = None,
) -> AsyncGenerator[ReleaseEngine, None]:
    """Run an engine for as long as the block runs. Leaving the block ends the tasks; operations must have ended before that.

    ``heads`` follows the records of releases. If it is given, it must be open already, for the holder in ``options``; if it is
    None, it is opened here.

    Resources: the tasks of the reconciler, of the monitors, and for the upkeep of records; watches of each kind of which releases
    have objects; watches of definitions and of records.
    """
    options = options or EngineOptions()
    holder = options.holder if isinstance(options.holder, Holder) else Holder(options.holder)
    table, applied, board = desired_table(), AppliedObjects(options.field_manager), ReleaseRegistry()
    unattended = Unattended(board.report_pruned, board.report_troubles, board.drifted_fields)
    writer = ObjectWriter(client, options.field_manager, options.force)
    acting = OwnerClients(client, options.account)
    async with (
        open_live_objects(client, watches, unmarked=UnmarkedNames(watches)) as live,
        nullcontext(heads) if heads is not None else open_release_heads(watches, holder) as heads,
        open_health_monitor(
            table,
            client,
            live,
            expressions=options.expressions,
            told=board.report_health,
            now=options.now,
            grace_s=options.grace_s,
        ) as health,
        _applying(client, table, writer, applied, health, board, unattended, options, acting) as (
            operations,
            reconciler,
        ),
        trio.open_nursery() as nursery,
    ):
        drift = DriftMonitor(
            table,
            applied,
            client,
            correct=reconciler.refresh,
            told=board.report_drift,
            settled=lambda identity: is_done(reconciler, identity),
            full_s=options.full_s,
            corrected=board.report_corrected,
        )

        def left_alone(owner: Owner) -> None:
            board.forget(owner)
            if tools.rows.of(owner):  # not for releases that users manage with helm alone
                board.left_alone.add(owner)
                drift.pause_corrections(owner)

        foreign = ForeignChanges(client, nursery, left_alone=left_alone, told=board.report_foreign)
        interruption = Interruption()
        definitions = Definitions(client, writer, interruption, options.now, acting)
        kept = KeptDefinitions(
            client,
            watches,
            definitions,
            corrections_paused=board.corrections_paused,
            confined=options.confined,
            told=board.report_missing,
            back=drift.suspect_kind,
        )
        live.listen(drift.changed)
        heads.listen(foreign.heard)
        nursery.start_soon(kept.run, name="definitions")
        nursery.start_soon(drift.run, name="drift monitor")
        store = ReleaseStore(client, options.now, holder=holder, heads=heads)
        nursery.start_soon(store.collect_regularly, options.prune_s, name="chunks of records")
        keeper = RecordKeeper(store, options.now, holder, options.history)
        tidying = LateTidying(keeper, board.turn, board.is_busy)
        nursery.start_soon(tidying.run, name="histories of releases")
        tools = Tools(
            client,
            keeper,
            ReleaseRows(table, reconciler, operations, applied, live, interruption),
            Surveyor(
                client,
                table,
                options.field_manager,
                lambda identity: is_done(reconciler, identity) and drift.is_as_applied(identity),
                applied.is_shared,
                live.is_absent,
                acting,
            ),
            definitions,
            options.confined,
            options.field_manager,
            acting,
            tidying,
            interruption,
        )
        yield ReleaseEngine(
            tools,
            table,
            reconciler,
            drift,
            heads,
            health,
            live,
            board,
            kept,
            unattended,
            options.account,
            force=options.force,
        )
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _applying(
    client: ClusterClient,
    table: DesiredTable,
    writer: ObjectWriter,
    applied: AppliedObjects,
    health: HealthMonitor,
    board: ReleaseRegistry,
    unattended: Unattended,
    options: EngineOptions,
    acting: OwnerClients,
) -> AsyncGenerator[tuple[ApplyOperations, Reconciler[Identity, DesiredObject]], None]:
    """Run the reconciler of the desired table, and its operations."""
    operations = ApplyOperations(
        client,
        writer,
        applied,
        health.applied,
        board.may_prune,
        board.corrections_paused,
        options.confined,
        unattended.pruned,
        acting,
    )
    async with open_reconciler(
        table,
        operations,
        name="apply",
        owner=lambda row: row.group,
        options=replace(options.reconciler, prune_s=options.prune_s),
        during=lambda row: options.during(row.owner),
        attempted=unattended.attempted,
    ) as reconciler:
        yield operations, reconciler


def is_done(reconciler: Reconciler[Identity, DesiredObject], identity: Identity) -> bool:
    """Return whether the object matches its row, according to the last operation on it."""
    status = reconciler.status(identity)
    return status is not None and status.kind is Kind.DONE
