"""The daemon: everything put up in order, kept up until it is told to stop, and taken down in reverse.

The nesting of the context managers below *is* the order (style: start order; leaving the bodies is the stop order):
state folder → process ledger → client → debug socket → CRDs → store → runtime with its queues → controller. The socket is up
first and down last, so that a daemon that waits for its cluster, or drains, can be asked. On SIGTERM or SIGINT the body is
left: intake stops, running tasks finish, and one hard deadline (``grace_s``) bounds the whole; while it is still starting,
starting is cancelled, for there is nothing to finish. A second signal ends it at once.
"""

import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
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
from wharfinger.process.ledger import kill_left_behind, open_ledger
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.controller import open_controller
from wharfinger.runtime.inspector import Inspector
from wharfinger.runtime.own_crds import ensure_crds
from wharfinger.runtime.pipeline import Tools
from wharfinger.runtime.runtime import open_runtime
from wharfinger.runtime.service_manager import ServiceManager, open_watchdog
from wharfinger.runtime.snapshots import RuntimeInspector
from wharfinger.runtime.state_dir import empty_folder, hold_state_dir
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


@dataclass(slots=True)
class _Stopping:
    """What a signal does: cancel the start, or ask the body to leave and bound how long that takes."""

    grace_s: float
    starting: trio.CancelScope
    hard: trio.CancelScope
    up: bool = False
    asked: trio.Event = field(default_factory=trio.Event)

    async def listen(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            name = signal.Signals(number).name
            if self.asked.is_set():
                log.warning("%s again: stopping at once", name)
                self.hard.cancel(f"{name} twice")
                return
            log.info("%s", name)
            self.asked.set()
            self.hard.deadline = trio.current_time() + self.grace_s
            if not self.up:
                self.starting.cancel(name)


async def run_daemon(config: DaemonConfig, serve_inspector: ServeInspector, manager: ServiceManager) -> bool:
    """Run until SIGTERM or SIGINT; True if everything ended within the grace time.

    Raises StartError, ConnectionConfigError, LedgerError or StoreError: a daemon that cannot start says so.
    """
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals, trio.CancelScope() as hard:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as starting:
                stopping = _Stopping(config.grace_s, starting, hard)
                nursery.start_soon(stopping.listen, signals, name="signals")
                async with open_daemon(config, serve_inspector, manager):
                    stopping.up = True
                    await stopping.asked.wait()
                    manager.notify("STOPPING=1")
                    log.info("stopping; %.0f s for what runs", config.grace_s)
            nursery.cancel_scope.cancel()
    if hard.cancelled_caught:
        log.warning("stopped before everything had ended")
        return False
    log.info("stopped")
    return True


@asynccontextmanager
async def open_daemon(
    config: DaemonConfig, serve_inspector: ServeInspector, manager: ServiceManager
) -> AsyncIterator[None]:
    """Put everything up; the body runs once all of it is."""
    with hold_state_dir(config.state_dir) as state, open_ledger(state / "journal.db") as ledger:
        if ledger.warning:
            log.warning("%s", ledger.warning)
        if killed := await kill_left_behind(ledger):
            log.warning("killed %d processes that an earlier daemon left", killed)
        # What a killed daemon left there had values in it.
        scratch = await trio.to_thread.run_sync(empty_folder, state / "scratch")
        # Abandoned when cancelled: an exec plugin of the kubeconfig may hang for as long as it likes.
        connection = await trio.to_thread.run_sync(
            load_connection, config.kubeconfig, config.context, abandon_on_cancel=True
        )
        async with open_watchdog(manager), open_client(connection) as client:
            inspector = RuntimeInspector(cluster=connection.server, started=now())
            async with serve_inspector(config.socket, inspector):
                await _prepare_cluster(client, connection)
                renderer = HelmRenderer(config.helm, scratch, ledger)
                async with _open_runtime(state, renderer, client, inspector):
                    manager.notify("READY=1")
                    log.info(
                        "wharfinger %s ready: %s, socket %s", wharfinger.__version__, connection.server, config.socket
                    )
                    yield
                    inspector.draining = True


@asynccontextmanager
async def _open_runtime(
    state: Path, renderer: HelmRenderer, client: ClusterClient, inspector: RuntimeInspector
) -> AsyncIterator[None]:
    keys = WorkKeys()
    async with open_store(state) as store:
        tools = Tools(
            open_registry=_open_registry,
            store=store,
            renderer=renderer,
            cluster=client,
            releases=ReleaseEngine(client, field_manager=FIELD_MANAGER, now=now, holder=HOLDER),
            holder=HOLDER,
            downloads=trio.CapacityLimiter(CONCURRENT_DOWNLOADS),
            stopping=WorkScope("the daemon"),
        )
        async with open_runtime(tools, now, keys.add) as runtime, open_controller(client, runtime, keys):
            inspector.runtime = runtime
            yield


async def _prepare_cluster(client: ClusterClient, connection: Connection) -> None:
    """Put the CRDs in place, as often as it takes."""
    while True:
        try:
            await ensure_crds(client, FIELD_MANAGER)
        except ClusterError as error:
            log.warning("%s: %s; trying again in %.0f s", connection.server, error, CLUSTER_RETRY_S)
            await trio.sleep(CLUSTER_RETRY_S)
        else:
            return


def _open_registry(repository: RepositoryAddress) -> AbstractAsyncContextManager[Registry]:
    return open_registry(repository.registry, scheme=repository.scheme)
