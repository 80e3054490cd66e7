"""The services that a daemon opens before it holds the Lease, so that a daemon on standby can begin to work soon after the
leader is gone.

On standby, the chart engine runs already, the pools of workers are open (their workers start on demand), and the daemon watches
Applications, Modules, PackageRepositories, labels of namespaces and the records of all releases. It only reads; the fence
refuses every write until the Lease is held.
"""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.lease.fencing import Holder
from wharfinger.cluster.records.release_heads import ReleaseHeads, open_release_heads
from wharfinger.cluster.releases.lookup_proxy import LookupAccess, open_lookup_access
from wharfinger.cluster.watch.shared_watches import SharedWatches, open_shared_watches
from wharfinger.hooks.watching.jq_pool import JqPool, open_jq_pool
from wharfinger.packages.rendering.chart_engine import ChartEngine
from wharfinger.packages.rendering.helm_renderer import RenderLimits
from wharfinger.packages.settings.cel_pool import CelPool, open_cel_pool
from wharfinger.packages.store.disk_store import open_store
from wharfinger.packages.store.store import Store
from wharfinger.pools.interpreters.warm_start import WarmStarts, open_warm_starts
from wharfinger.pools.memory.budget import POOLS_SHARE, open_memory_budget
from wharfinger.pools.memory.footprint import memory_of_machine
from wharfinger.pools.persistent.programs import PersistentPrograms, open_persistent_programs
from wharfinger.process.ledger import ProcessLedger
from wharfinger.runtime.controllers.caches import Caches, open_caches
from wharfinger.runtime.controllers.state_dir import StartError
from wharfinger.runtime.daemon.config import DaemonConfig
from wharfinger.runtime.daemon.engine import open_engine
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.recording.flight_log import FlightLog, open_flight_log
from wharfinger.runtime.recording.recorder import Recorder
from wharfinger.runtime.resources.resources import APPLICATION, MODULE, PACKAGE_REPOSITORY


@dataclass(frozen=True, slots=True)
class Standby:
    """The services that are open before the Lease is held. ``caches`` is None if the daemon's CRDs did not exist at the start."""

    store: Store
    filters: JqPool
    rules: CelPool
    looking: LookupAccess
    engine: ChartEngine | None
    warm: WarmStarts
    programs: PersistentPrograms
    recorder: Recorder
    watches: SharedWatches
    heads: ReleaseHeads
    caches: Caches | None


@asynccontextmanager
async def open_standby(
    config: DaemonConfig,
    state: Path,
    scratch: Path,
    ledger: ProcessLedger,
    client: ClusterClient,
    connection: Connection,
    inspector: RuntimeInspector,
    identity: str,
) -> AsyncIterator[Standby]:
    """Open the services that a daemon uses on standby, for as long as the block runs. The caches may still be filling when the
    block begins.

    ``identity`` is this daemon's identity in the Lease. Raises StoreError and StartError.
    """
    at_once = RenderLimits(at_once=config.slots.renders)
    async with (
        open_store(state) as store,
        open_jq_pool(ledger) as filters,
        open_cel_pool(ledger) as rules,
        open_lookup_access(connection) as looking,
        open_engine(config.engine, scratch, ledger, at_once) as engine,
        open_memory_budget(config.pool_memory or memory_of_machine() // POOLS_SHARE) as budget,
        open_warm_starts(config.warm_hooks, ledger, budget) as warm,
        open_persistent_programs(ledger, budget) as programs,
        open_recorder_of(config, inspector) as recorder,
        open_shared_watches(client) as watches,
        open_release_heads(watches, Holder(identity)) as heads,
        AsyncExitStack() as stack,
    ):
        caches = None
        if await _is_defined(client):
            caches = await stack.enter_async_context(open_caches(client, config.application_scope))
        yield Standby(store, filters, rules, looking, engine, warm, programs, recorder, watches, heads, caches)


async def _is_defined(client: ClusterClient) -> bool:
    """Return whether the API server serves Wharfinger's own kinds. If it does not, watches of these kinds would only fail,
    with long pauses.
    """
    try:
        for kind in (APPLICATION, MODULE, PACKAGE_REPOSITORY):
            await client.resource_type(kind.api_version, kind.kind)
    except ClusterError:
        return False
    return True


@asynccontextmanager
async def open_recorder_of(config: DaemonConfig, inspector: RuntimeInspector) -> AsyncIterator[Recorder]:
    """Run the flight recorder, which records the daemon's events, while the body runs. Raises StartError if the folder of the
    log cannot be used.
    """
    async with AsyncExitStack() as stack:
        flight_log: FlightLog | None = None
        if config.flight_recorder is not None:
            opening = open_flight_log(config.flight_recorder, time.time, max_bytes=config.flight_recorder_bytes)
            try:
                flight_log = await stack.enter_async_context(opening)
            except OSError as error:
                raise StartError(
                    f"--flight-recorder {config.flight_recorder}: {error.strerror or error}; name a folder that can be written"
                ) from error
        inspector.flight_log = flight_log
        inspector.recorder = Recorder(inspector.secrets_of, flight_log)
        try:
            yield inspector.recorder
        finally:
            inspector.recorder.end()
