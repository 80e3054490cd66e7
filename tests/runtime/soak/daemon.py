"""The whole daemon in this process, on virtual time. Its parts are real, except for what would need real time: its client is in
memory, its renderer is simulated, and it uses neither threads nor child processes.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar, TypeVarTuple

import httpx
import pytest
import trio

from tests.runtime.soak.charts import SimulatedHelm
from tests.runtime.soak.server import virtual_now
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.lease.lease import LeaseLostError
from wharfinger.control_plane.service import LOCAL
from wharfinger.hooks.containment.containment import Containment
from wharfinger.runtime.daemon import daemon
from wharfinger.runtime.daemon.config import DaemonConfig
from wharfinger.runtime.daemon.daemon import open_daemon
from wharfinger.runtime.daemon.service_manager import ServiceManager
from wharfinger.runtime.inspector import Inspector
from wharfinger.runtime.resources.application_scope import ApplicationScope

GRACE_S: Final = 30.0
_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")
SUPERVISOR_S: Final = 5.0
"""The pause of the supervisor before it restarts a daemon that ended by itself."""


async def _inline(
    function: Callable[[*_Arguments], _Result],
    *arguments: *_Arguments,
    limiter: trio.CapacityLimiter | None = None,
    abandon_on_cancel: bool = False,
) -> _Result:
    """Run a function directly instead of in a thread, because virtual time does not wait for threads."""
    await trio.lowlevel.checkpoint()
    return function(*arguments)


async def _tried(_containment: Containment) -> None:
    """Skip the trial of containment, because no package of the simulation has hooks."""
    await trio.lowlevel.checkpoint()


async def _connected(*_: object) -> Connection:
    """Return a connection without starting the child process that reads a kubeconfig."""
    await trio.lowlevel.checkpoint()
    return Connection(LOCAL, bearer(""))


def on_virtual_time(patch: pytest.MonkeyPatch, transport: Callable[[], httpx.AsyncBaseTransport]) -> None:
    """Let all later daemons use this transport, and no threads, child processes or wall clock."""

    @asynccontextmanager
    async def in_memory(connection: Connection, *, options: ClientOptions) -> AsyncIterator[HttpClusterClient]:
        async with open_client(connection, transport=transport(), options=options) as client:
            yield client

    patch.setattr(trio.to_thread, "run_sync", _inline)
    patch.setattr(trio.from_thread, "check_cancelled", lambda: None)
    patch.setattr(daemon, "try_cell", _tried)
    patch.setattr(daemon, "open_client", in_memory)
    patch.setattr(daemon, "read_connection", _connected)
    patch.setattr(daemon, "boot_clock", trio.current_time)
    patch.setattr(daemon, "HelmRenderer", SimulatedHelm)
    patch.setattr(daemon, "now", virtual_now)


@asynccontextmanager
async def _nowhere(_place: object, _inspector: Inspector) -> AsyncIterator[None]:
    yield


class Daemon:
    """The daemon of one host, which is started several times with the same state folder."""

    def __init__(self, state: Path, packages: list[Path]) -> None:
        self._config = DaemonConfig(
            kubeconfig=None,
            context="",
            state_dir=state,
            socket=state / "socket",
            helm=Path("helm"),
            grace_s=GRACE_S,
            local_packages=tuple(packages),
            application_scope=ApplicationScope.CLUSTER,
        )
        self.lives = 0
        self._wanted = trio.Event()
        self._stop = trio.Event()
        self._ended = trio.Event()
        self._life = trio.CancelScope()

    def start(self) -> None:
        """Start the daemon."""
        self._ended = trio.Event()
        self._wanted.set()

    async def stop(self, *, crash: bool) -> None:
        """Stop the daemon gracefully as SIGTERM does, or immediately as a crash does, and return when it has ended."""
        self._wanted = trio.Event()
        if crash:
            self._life.cancel()
        else:
            self._life.deadline = trio.current_time() + GRACE_S
            self._stop.set()
        await self._ended.wait()

    async def run(self) -> None:
        """Supervise the daemon, and restart it after it has lost its Lease."""
        while True:
            await self._wanted.wait()
            self.lives += 1
            self._stop, self._life = trio.Event(), trio.CancelScope()
            try:
                with self._life:
                    async with open_daemon(self._config, _nowhere, ServiceManager(), _nowhere):
                        await self._stop.wait()
            except* LeaseLostError:
                await trio.sleep(SUPERVISOR_S)
            if not self._wanted.is_set():
                self._ended.set()
