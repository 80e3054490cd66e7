"""The daemon: everything put up in order, kept up until it is told to stop, and taken down in reverse.

The nesting of the context managers below *is* the order (style: start order; leaving the bodies is the stop order):
state folder → process ledger → client → CRDs → store, renderer, releases → runtime with its queues → controller → debug
socket. On SIGTERM or SIGINT the body is left: the socket closes, intake stops, running tasks finish, and one hard deadline
(``grace_s``) bounds the whole. A second signal ends it at once.
"""

import logging
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import trio

import wharfinger
from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.connection import Connection, load_connection
from wharfinger.cluster.errors import ClusterError
from wharfinger.cluster.http_client import open_client
from wharfinger.cluster.release_engine import ReleaseEngine
from wharfinger.packages.address import RepositoryAddress
from wharfinger.packages.disk_store import open_store
from wharfinger.packages.helm_renderer import HelmRenderer
from wharfinger.packages.oci_registry import open_registry
from wharfinger.packages.registry import Registry
from wharfinger.process.ledger import ProcessLedger, kill_left_behind, open_ledger
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.controller import open_controller
from wharfinger.runtime.inspector import Inspector
from wharfinger.runtime.own_crds import ensure_crds
from wharfinger.runtime.pipeline import Tools
from wharfinger.runtime.runtime import open_runtime
from wharfinger.runtime.service_manager import ServiceManager, open_watchdog
from wharfinger.runtime.snapshots import RuntimeInspector
from wharfinger.runtime.state_dir import hold_state_dir
from wharfinger.runtime.work_keys import WorkKeys

log = logging.getLogger(__name__)

FIELD_MANAGER: Final = "wharfinger"
HOLDER: Final = "wharfinger"
CONCURRENT_DOWNLOADS: Final = 4
CLUSTER_RETRY_S: Final = 2.0

ServeInspector = Callable[[Path, Inspector], AbstractAsyncContextManager[None]]
"""Serves an Inspector on a Unix socket; given by the composition root, because `runtime` does not know `debug`."""


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """What a daemon is told when it is started. ``grace_s`` bounds the whole shutdown."""

    kubeconfig: Path | None
    context: str
    state_dir: Path
    socket: Path
    helm: Path
    grace_s: float


def now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


async def run_daemon(
    config: DaemonConfig,
    serve_inspector: ServeInspector,
    manager: ServiceManager,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> bool:
    """Run until SIGTERM or SIGINT; True if everything ended within the grace time.

    Raises StateDirError, ConnectionConfigError and what opening the debug socket raises: a daemon that cannot start says so.
    """
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals, trio.CancelScope() as hard:
        async with trio.open_nursery() as nursery:
            stop = trio.Event()
            nursery.start_soon(_listen, signals, stop, hard, name="signals")
            async with open_daemon(config, serve_inspector, manager, stop):
                task_status.started()
                await stop.wait()
                manager.notify("STOPPING=1")
                log.info("stopping; %.0f s for what runs", config.grace_s)
                hard.deadline = trio.current_time() + config.grace_s
            nursery.cancel_scope.cancel()
    if hard.cancelled_caught:
        log.warning("stopped before everything had ended")
        return False
    log.info("stopped")
    return True


async def _listen(signals: AsyncIterator[int], stop: trio.Event, hard: trio.CancelScope) -> None:
    async for number in signals:
        name = signal.Signals(number).name
        if stop.is_set():
            log.warning("%s again: stopping at once", name)
            hard.cancel(f"{name} twice")
            return
        log.info("%s", name)
        stop.set()


@asynccontextmanager
async def open_daemon(
    config: DaemonConfig, serve_inspector: ServeInspector, manager: ServiceManager, stop: trio.Event
) -> AsyncIterator[None]:
    """Put everything up. If ``stop`` comes while the cluster is awaited, the body runs with nothing behind it."""
    with hold_state_dir(config.state_dir) as state, open_ledger(state / "journal.db") as ledger:
        if ledger.warning:
            log.warning("%s", ledger.warning)
        if killed := await kill_left_behind(ledger):
            log.warning("killed %d processes that an earlier daemon left", killed)
        connection = await trio.to_thread.run_sync(load_connection, config.kubeconfig, config.context)
        async with open_watchdog(manager), open_client(connection) as client:
            inspector = RuntimeInspector(cluster=connection.server, started=now())
            async with serve_inspector(config.socket, inspector):
                if not await _await_cluster(client, connection, stop):
                    yield
                    return
                async with _open_runtime(config, state, ledger, client, inspector):
                    manager.notify("READY=1")
                    log.info(
                        "wharfinger %s ready: %s, socket %s", wharfinger.__version__, connection.server, config.socket
                    )
                    yield
                    inspector.draining = True


@asynccontextmanager
async def _open_runtime(
    config: DaemonConfig, state: Path, ledger: ProcessLedger, client: ClusterClient, inspector: RuntimeInspector
) -> AsyncIterator[None]:
    keys = WorkKeys()
    scratch = state / "scratch"
    await trio.to_thread.run_sync(_clear, scratch)
    async with open_store(state) as store:
        tools = Tools(
            open_registry=_open_registry,
            store=store,
            renderer=HelmRenderer(config.helm, scratch, ledger),
            cluster=client,
            releases=ReleaseEngine(client, field_manager=FIELD_MANAGER, now=now, holder=HOLDER),
            holder=HOLDER,
            downloads=trio.CapacityLimiter(CONCURRENT_DOWNLOADS),
            stopping=WorkScope("the daemon"),
        )
        async with open_runtime(tools, now, keys.add) as runtime, open_controller(client, runtime, keys):
            inspector.runtime = runtime
            yield


def _clear(scratch: Path) -> None:
    """An empty folder for what runs need while they run; what a killed daemon left there had values in it."""
    if scratch.exists():
        shutil.rmtree(scratch)
    scratch.mkdir(mode=0o700)


async def _await_cluster(client: ClusterClient, connection: Connection, stop: trio.Event) -> bool:
    """Put the CRDs in place, as often as it takes; False if told to stop first."""
    while not stop.is_set():
        try:
            await ensure_crds(client, FIELD_MANAGER)
        except ClusterError as error:
            log.warning("%s: %s; trying again in %.0f s", connection.server, error, CLUSTER_RETRY_S)
        else:
            return True
        with trio.move_on_after(CLUSTER_RETRY_S):
            await stop.wait()
    return False


def _open_registry(repository: RepositoryAddress) -> AbstractAsyncContextManager[Registry]:
    return open_registry(repository.registry, scheme=repository.scheme)
