"""The daemon: all parts are started in order, run until a signal stops the daemon, and are stopped in reverse order.

The nesting of the context managers below determines the start order, and in reverse the stop order: state folder → process
ledger → (embedded control plane) → client → debug socket → services of a daemon on standby → Lease → CRDs → release engine →
runtime with its queues and hooks → controllers. The socket is opened early and closed late, so that a daemon that waits for its
cluster, or drains, can be inspected. On SIGTERM or SIGINT the blocks of the context managers are left: the intake of work
stops, running tasks finish, and one hard deadline (``grace_s``) limits the whole stop. If the daemon is still starting, the
start is cancelled, because no tasks are running that have to finish. A second signal ends the daemon immediately.
"""

import gc
import logging
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import trio

import wharfinger
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import ApiError, ClusterError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.embedded import open_embedded
from wharfinger.cluster.lease.fence import Fence, suspended_too
from wharfinger.cluster.lease.lease import Lease
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.watch.work_queue import WorkKeys
from wharfinger.hooks.containment.cluster_access import ClusterAccess
from wharfinger.hooks.containment.contained_run import try_cell
from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.containment.hook_environment import hook_environment, reach_directly
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.metrics.hook_metrics import HookMetrics
from wharfinger.hooks.running.config_reader import ProcessConfigReader
from wharfinger.hooks.running.hook_services import HookServices
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.packages.kustomizing.engine_kustomize import kustomize_builder
from wharfinger.packages.registry.connection import Timeouts
from wharfinger.packages.registry.docker_logins import DockerLogins, default_file
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.helm_renderer import HelmRenderer, RenderLimits
from wharfinger.packages.sources.source import Network, open_source
from wharfinger.pools.pods.pod_pools import open_pod_pools
from wharfinger.pools.pods.pod_run import PodRuns
from wharfinger.process.command import Limits
from wharfinger.process.ledger import ProcessLedger, kill_left_behind, open_ledger
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.slots import Slots
from wharfinger.runtime.admission.hook_webhooks import HookWebhooks
from wharfinger.runtime.cluster_events.package_events import PackageEvents
from wharfinger.runtime.cluster_events.recorder import open_recorder
from wharfinger.runtime.controllers.last_statuses import open_last_statuses
from wharfinger.runtime.controllers.modules_dir import open_modules_dir
from wharfinger.runtime.controllers.service import open_controller
from wharfinger.runtime.controllers.state_dir import StartError, empty_folder, hold_state_dir
from wharfinger.runtime.core.observers import Observers
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.core.service import Facts, open_runtime
from wharfinger.runtime.daemon.cluster_connection import read_connection
from wharfinger.runtime.daemon.config import DaemonConfig
from wharfinger.runtime.daemon.engine import find_kubectl, package_renderer
from wharfinger.runtime.daemon.hook_options import AddonFolders
from wharfinger.runtime.daemon.leadership import identity_of, open_leadership, report_leader
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.daemon.repeated_warning import RepeatedWarning
from wharfinger.runtime.daemon.rights import FOR_ACCOUNTS, FOR_POOLS, NEEDED, rights_of_admission
from wharfinger.runtime.daemon.service_manager import ServiceManager, open_reloads, open_watchdog
from wharfinger.runtime.daemon.standby import Standby, open_standby
from wharfinger.runtime.daemon.traces import open_traces
from wharfinger.runtime.inspection.package_logs import open_package_logs
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.inspection.watch_metrics import stale_watches
from wharfinger.runtime.inspector import Inspector
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.package.instance import Tools
from wharfinger.runtime.resources.custom_resources import check_crds, ensure_crds
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.shards.ownership import LEASE_FAMILY, lease_name
from wharfinger.runtime.shards.seizure import Seizures
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.writer import StatusWriter
from wharfinger.runtime.tasks.health_expressions import HealthExpressions

log = logging.getLogger(__name__)

FIELD_MANAGER: Final = "wharfinger"
OWN_REQUESTS: Final = 32
LEASE_REQUESTS: Final = 16
POOL_REQUESTS: Final = 32
"""The number of concurrent requests about the pods of WorkerPools. They are made by a client of their own, so that they never
delay the renewal of the Lease.
"""
CLUSTER_RETRY_S: Final = 2.0
CLUSTER_RETRY_MOST_S: Final = 60.0
GC_THRESHOLDS: Final = (50_000, 20, 50)
"""The thresholds of the garbage collector. With Python's default thresholds, the collector pauses a daemon with 100,000 rows
for 0.2 s at a time (docs/reconciler.md).
"""
HOOK_OUTPUT_BYTES: Final = 64 * 1024 * 1024

ServeInspector = Callable[[Path, Inspector], AbstractAsyncContextManager[None]]
"""The function that serves an Inspector on a Unix socket. The composition root passes it, because `runtime` must not import
`debug`.
"""
ServeMetrics = Callable[[str, Inspector], AbstractAsyncContextManager[None]]
"""The function that serves an Inspector's metrics on an address of this machine."""


boot_clock = suspended_too
"""The clock of the `Fence`, which permits writes only while the Lease is held. The clock also counts the time while the machine
is suspended. The soak test (``tests/runtime/soak/daemon.py``) replaces it by virtual time.
"""


def now() -> datetime:
    """Return the time of the wall clock."""
    return datetime.now(UTC)


@dataclass(slots=True)
class _Stopping:
    """The handler of signals. The first signal cancels the start of the daemon, or begins its stop, which may take ``grace_s``.
    A second signal stops the daemon immediately.
    """

    grace_s: float
    starting: trio.CancelScope
    hard: trio.CancelScope
    up: bool = False
    asked: trio.Event = field(default_factory=trio.Event)

    async def listen(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            name = signal.Signals(number).name
            if self.asked.is_set():
                log.warning("%s again: stopping immediately", name)
                self.hard.cancel(f"{name} twice")
                return
            log.info("%s", name)
            self.asked.set()
            self.hard.deadline = trio.current_time() + self.grace_s
            if not self.up:
                self.starting.cancel(name)


async def run_daemon(
    config: DaemonConfig, serve_inspector: ServeInspector, manager: ServiceManager, serve_metrics: ServeMetrics
) -> bool:
    """Run until SIGTERM or SIGINT; return True if all parts stopped within the grace time.

    Raises StartError, ConnectionConfigError, EmbeddedError, LedgerError, JournalError or StoreError if the daemon cannot start,
    and LeaseLostError if another daemon has taken the Lease, or if the Lease could not be renewed in time. All of them are
    raised in exception groups.
    """
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals, trio.CancelScope() as hard:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as starting:
                stopping = _Stopping(config.grace_s, starting, hard)
                nursery.start_soon(stopping.listen, signals, name="signals")
                async with open_daemon(config, serve_inspector, manager, serve_metrics):
                    stopping.up = True
                    await stopping.asked.wait()
                    manager.notify("STOPPING=1\nSTATUS=stopping; running tasks finish")
                    log.info("stopping; running tasks have %.0f s to finish", config.grace_s)
            nursery.cancel_scope.cancel()
    if hard.cancelled_caught:
        log.warning("stopped before all running tasks had ended")
        return False
    log.info("stopped")
    return True


@asynccontextmanager
async def open_daemon(
    config: DaemonConfig, serve_inspector: ServeInspector, manager: ServiceManager, serve_metrics: ServeMetrics
) -> AsyncIterator[None]:
    """Start all parts; the body runs once all of them have started."""
    with hold_state_dir(config.state_dir) as state:
        _warn_of_lost_journal(state)
        with open_ledger(state / "journal.db") as ledger:
            async with _open_all(config, serve_inspector, manager, serve_metrics, state, ledger):
                yield


def _warn_of_lost_journal(state: Path) -> None:
    """Warn if the state folder has packages but no journal. Without a journal, it is not known which operations were
    interrupted, and the state of packages is read from the cluster.
    """
    if (state / "store").exists() and not (state / "journal.db").exists():
        log.warning(
            "the journal %s is gone: interrupted operations begin from the first step, and processes that an "
            "earlier daemon may have left behind were not killed",
            state / "journal.db",
        )


@asynccontextmanager
async def _open_all(
    config: DaemonConfig,
    serve_inspector: ServeInspector,
    manager: ServiceManager,
    serve_metrics: ServeMetrics,
    state: Path,
    ledger: ProcessLedger,
) -> AsyncIterator[None]:
    """Start all parts that need the journal."""
    gc.set_threshold(*GC_THRESHOLDS)
    journal = Journal(ledger.file)
    ledger.file.report_to(partial(log.warning, "%s"))
    if killed := await kill_left_behind(ledger):
        log.warning("killed the processes that an earlier daemon left behind: %d", killed)
    # A killed daemon may have left files with values, which may contain secrets, in the scratch folder.
    scratch = await trio.to_thread.run_sync(empty_folder, state / "scratch")
    async with AsyncExitStack() as stack:
        kubeconfig = config.kubeconfig
        if config.embedded:
            kubeconfig = await stack.enter_async_context(
                open_embedded(state / "embedded", ledger, options=config.embedded_options)
            )
        certificates = scratch / "certificates"
        stack.callback(partial(shutil.rmtree, certificates, ignore_errors=True))
        connection = await read_connection(kubeconfig, config.context, certificates, ledger)
        clients: list[tuple[str, HttpClusterClient]] = []
        await stack.enter_async_context(open_watchdog(manager, lambda: "; ".join(stale_watches(clients))))
        # There are more connections than slots: requests without a slot are status patches, and watches that are being opened.
        fence = Fence(boot_clock=boot_clock)
        options = ClientOptions(concurrency=config.slots.api + OWN_REQUESTS, before_write=fence.check)
        client = await stack.enter_async_context(open_client(connection, options=options))
        # The Lease has a client of its own, so that no other request delays its renewal.
        for_lease = await stack.enter_async_context(
            open_client(connection, options=ClientOptions(concurrency=LEASE_REQUESTS))
        )
        inspector = RuntimeInspector(cluster=connection.server, started=now(), clients=clients)
        run = f"{os.getpid()}-{inspector.started.timestamp():.0f}"
        inspector.kept_logs = stack.enter_context(open_package_logs(inspector.secrets_of, run))
        inspector.clients += [("main", client), ("lease", for_lease)]
        await stack.enter_async_context(serve_inspector(config.socket, inspector))
        if config.metrics_address:
            await stack.enter_async_context(serve_metrics(config.metrics_address, inspector))
        await _try_containment(config.containment)
        identity = await trio.to_thread.run_sync(identity_of, state)
        standby = await stack.enter_async_context(
            open_standby(config, state, scratch, ledger, client, connection, inspector, identity)
        )
        needed = (*NEEDED, *(FOR_POOLS if config.worker_pools else ()))
        needed += rights_of_admission(config.admission.service, config.admission.pod) if config.admission else ()
        needed += FOR_ACCOUNTS if config.require_account else ()
        lease = await stack.enter_async_context(
            open_leadership(
                for_lease,
                state,
                now,
                partial(_stand_by, inspector, manager),
                needed,
                name=lease_name(config.shard),
                duration_s=config.lease_s,
                fence=fence,
                seen=partial(inspector.lease_seen, f"{SYSTEM_NAMESPACE}/{lease_name(config.shard)}", identity),
            )
        )
        recorder = await stack.enter_async_context(open_recorder(client, now, lease.identity, config.shard))
        await report_leader(client, lease, recorder, lease_name(config.shard))
        version = await _prepare_cluster(client, connection, config)
        seizures = Seizures(client, for_lease, config.shard, lease.identity, config.lease_s, now)
        events = PackageEvents(recorder)
        look_again = await stack.enter_async_context(
            _open_runtime(
                config,
                state,
                scratch,
                ledger,
                journal,
                client,
                version,
                inspector,
                connection,
                lease,
                events,
                standby,
                fence,
                seizures,
            )
        )
        gc.collect()
        gc.freeze()  # the objects that exist now live until the end, so the garbage collector need not scan them
        await stack.enter_async_context(open_reloads(manager, look_again))  # before a user can request a reload
        manager.notify(f"READY=1\nSTATUS=at work on {connection.server}")
        log.info("wharfinger %s ready: %s, socket %s", wharfinger.__version__, connection.server, config.socket)
        yield
        inspector.draining = True


def _stand_by(inspector: RuntimeInspector, manager: ServiceManager, why: str) -> None:
    """Record why the daemon does not work yet ("" if it begins to work now), and report it to the service manager."""
    inspector.stand_by(why)
    manager.notify(f"STATUS={f'on standby: {inspector.standby}' if why else 'starting to work'}")


@asynccontextmanager
async def _open_runtime(
    config: DaemonConfig,
    state: Path,
    scratch: Path,
    ledger: ProcessLedger,
    journal: Journal,
    client: ClusterClient,
    kubernetes_version: str,
    inspector: RuntimeInspector,
    connection: Connection,
    lease: Lease,
    events: PackageEvents,
    standby: Standby,
    fence: Fence,
    seizures: Seizures,
) -> AsyncIterator[Callable[[], None]]:
    """Start the runtime and its controllers. Yield the function that checks all packages again."""
    keys = WorkKeys()
    writer = StatusWriter(keys.add, keys.add_later)

    def changed(name: str, before: PackageStatus, after: PackageStatus) -> None:
        writer.changed(name, before, after, trio.current_time())
        events.status_changed(name, before, after)

    limits = Limits(wall_s=config.hook_timeout_s, stdout_bytes=HOOK_OUTPUT_BYTES)
    facts = Facts(
        kubernetes_version,
        config.platform_version,
        local_zone(),
        edition=config.edition,
        bundle=config.bundle,
        bootstrapped_by=config.bootstrapped_by,
    )
    access = ClusterAccess(connection, os.environ)
    inherited = _environment_of_hooks(config, access)
    folders = await trio.to_thread.run_sync(_with_global, config.folders, state)
    slots, measured = Slots(config.slots), HookMetrics()
    inspector.measured = measured
    limited = LimitedClient(client, slots)
    holding = EngineOptions(
        field_manager=FIELD_MANAGER,
        now=now,
        holder=replace(lease.holder, family=LEASE_FAMILY),
        prune_s=config.applying.prune_s,
        reconciler=config.applying,
    )
    recorder, filters, rules = standby.recorder, standby.filters, standby.rules
    warm, programs = (standby.warm, standby.programs) if config.warm_hooks else (None, None)
    async with _open_pod_runs(config, connection, fence) as runs, open_traces(config) as tracer:
        journal.observe = recorder.journal
        at_once = RenderLimits(at_once=config.slots.renders)
        helm = HelmRenderer(config.helm, scratch, ledger, at_once, standby.looking.open, standby.engine)
        renders = EntryCache(state / "renders")
        builder = kustomize_builder(standby.engine, find_kubectl(), scratch, renders)
        renderer = package_renderer(helm, builder, renders)
        logins = DockerLogins(default_file(), ledger=ledger)
        network = Network(config.sources.proxies, config.sources.rules, logins, Timeouts(least=config.least_speed))

        webhooks = HookWebhooks(client, FIELD_MANAGER) if config.admission is not None else None

        def make_tools(services: HookServices, releases: ReleaseEngine) -> Tools:
            releases.listen_to_corrections(events.drift_corrected)
            return Tools(
                open_source=partial(open_source, network=network),
                store=standby.store,
                renderer=renderer,
                cluster=limited,
                releases=releases,
                hook_runner=ProcessHookRunner(
                    scratch,
                    limits,
                    ledger,
                    environment=inherited,
                    cluster=access,
                    containment=config.containment,
                    warm=warm,
                    persistent=programs,
                    pods=runs,
                ),
                config_reader=ProcessConfigReader(ledger, environment=inherited, containment=config.containment),
                filters=filters,
                rules=rules,
                hook_services=services,
                journal=journal,
                slots=slots,
                stopping=WorkScope("the daemon"),
                metrics=measured,
                on_startup=config.on_startup,
                synchronization=config.synchronization,
                hook_credentials=config.hook_credentials,
                require_account=config.require_account,
                kustomize=builder,
                engine=standby.engine,
                warm=warm,
                persistent=programs,
                tracer=tracer,
                webhooks=webhooks,
            )

        async with (
            open_last_statuses(client, writer) as last,
            open_runtime(
                make_tools,
                client,
                filters,
                facts,
                now=now,
                on_change=keys.add,
                on_status=changed,
                backoff=config.backoff,
                limited=limited,
                engine=replace(holding, expressions=HealthExpressions(rules)),
                require_account=config.require_account,
                observers=Observers(recorder.lifecycle, recorder.scheduler, recorder.queue, recorder.package),
                tracer=tracer,
                watches=standby.watches,
                heads=standby.heads,
            ) as runtime,
            open_controller(
                client,
                runtime,
                keys,
                writer,
                local_packages=(*config.local_packages, *folders.folders()),
                token_folders=config.sources.tokens,
                enabled_by_default=None if config.bundle else True,
                application_scope=config.application_scope,
                caches=standby.caches,
                require_account=config.require_account,
                shard=config.shard,
                seizures=seizures,
                moved=events.moved,
            ) as controller,
        ):
            inspector.scans = controller.versions.repositories
            inspector.runtime, last.status_of = runtime, runtime.status
            events.runtime, events.find, inspector.find = runtime, controller.find, controller.find
            async with AsyncExitStack() as stack:
                if folders:
                    await stack.enter_async_context(
                        open_modules_dir(
                            client,
                            folders.modules,
                            global_hooks=folders.global_hooks,
                            config_map=folders.config_map,
                        )
                    )
                if config.admission is not None:
                    from wharfinger.runtime.admission.judgement import Judge  # noqa: PLC0415 - an extra has its library
                    from wharfinger.runtime.admission.server import open_admission  # noqa: PLC0415

                    roots = (*config.local_packages, *folders.folders())
                    judge = Judge(runtime, roots, None if config.bundle else True, tuple(config.sources.tokens))
                    await stack.enter_async_context(
                        open_admission(client, judge, config.admission, now, FIELD_MANAGER, webhooks)
                    )
                if config.worker_pools:
                    options = ClientOptions(concurrency=POOL_REQUESTS, before_write=fence.check)
                    for_pools = await stack.enter_async_context(open_client(connection, options=options))
                    inspector.clients.append(("pools", for_pools))
                    inspector.pods = await stack.enter_async_context(open_pod_pools(for_pools, now=now))
                yield partial(_look_again, runtime, keys)


def _look_again(runtime: Runtime, keys: WorkKeys) -> None:
    """Reconcile all packages and their resources again, because a user requested a reload."""
    for name in runtime.instances:
        keys.add(name)


@asynccontextmanager
async def _open_pod_runs(config: DaemonConfig, connection: Connection, fence: Fence) -> AsyncIterator[PodRuns | None]:
    """Yield the runner of hooks in pods, which has a client of its own; yield None if no pools of pods are configured."""
    if not config.worker_pools:
        yield None
        return
    options = ClientOptions(concurrency=POOL_REQUESTS, before_write=fence.check)
    async with open_client(connection, options=options) as client:
        runs = PodRuns(client, client.executor)
        try:
            await runs.remove_leftovers()
        except ClusterError as error:
            log.warning("WorkerClaims that hooks of an earlier daemon left behind cannot be deleted: %s", error)
        yield runs


def _environment_of_hooks(config: DaemonConfig, access: ClusterAccess) -> dict[str, str]:
    """Return the environment variables that every hook gets, and log the warnings about them."""
    made = hook_environment(os.environ, config.hook_env)
    for warning in made.warnings:
        log.warning("hooks: %s", warning)
    return reach_directly(made.variables, access.host)


async def _try_containment(containment: Containment) -> None:
    """Log how hooks are contained, and check that the containment works on this machine. Raises StartError if hooks cannot be
    contained as requested.
    """
    for measure in containment.enforced():
        if measure.holds:
            log.info("hooks: %s", measure.what)
        else:
            log.warning("a limit of hooks cannot be enforced: %s: %s", measure.what, measure.why)
    try:
        await try_cell(containment)
    except HookError as error:
        raise StartError(f"hooks cannot be contained as requested: {error}") from error


def _with_global(folders: AddonFolders, state: Path) -> AddonFolders:
    """Return the folders; if there are modules but no folder of global hooks, add a folder without hooks, because modules
    need global values. Blocks.
    """
    if not folders or folders.global_hooks is not None:
        return folders
    empty = state / "no-global-hooks"
    empty.mkdir(mode=0o700, exist_ok=True)
    (empty / "README.md").write_text(
        "This folder is used in place of a folder of global hooks, because none was given.\n"
    )  # an empty folder is not a package
    return replace(folders, global_hooks=empty)


async def _prepare_cluster(client: ClusterClient, connection: Connection, config: DaemonConfig) -> str:
    """Apply the CRDs, with retries until they are applied, and return the cluster's Kubernetes version. The daemon of a shard
    only waits for the CRDs, because the main daemon applies them.
    """
    said, pause = RepeatedWarning(log, CLUSTER_RETRY_MOST_S), CLUSTER_RETRY_S
    while True:
        try:
            if config.shard:
                await check_crds(client)
            else:
                await ensure_crds(client, FIELD_MANAGER, now, worker_pools=config.worker_pools)
            return await client.server_version()
        except ClusterError as error:
            said.warn(f"{connection.server}: {error}; trying again, at most {CLUSTER_RETRY_MOST_S:.0f} s apart")
            refused = isinstance(error, ApiError)  # an error that the server has returned usually lasts long
            await trio.sleep(pause)
            pause = min(pause * 2, CLUSTER_RETRY_MOST_S) if refused else CLUSTER_RETRY_S


def local_zone() -> tzinfo:
    """Return the time zone of this machine, with daylight saving time, for schedules that name no time zone."""
    name = os.environ.get("TZ", "").lstrip(":") or os.path.realpath("/etc/localtime").rpartition("/zoneinfo/")[2]
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return datetime.now().astimezone().tzinfo or UTC
