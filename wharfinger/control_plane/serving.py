"""The control plane as a process: it listens, prints its address, and answers requests until it is stopped."""

import errno
import gc
import ipaddress
import os
import signal
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import trio

from wharfinger.control_plane.access.kubeconfig_file import kubeconfig, write_secret_file
from wharfinger.control_plane.faults.rule import Rule
from wharfinger.control_plane.service import ControlPlane, open_control_plane
from wharfinger.control_plane.storage.interface import Storage, StorageError
from wharfinger.formats.json.value import encode_json
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.server import open_server

WATCH_PACE_S: Final = 0.0005
"""The assumed time, in seconds, to send one chunk to one watch. A watch pauses between two chunks for this time multiplied by the
number of watches of its collection, but at most for ``MAX_PACE_S`` of :mod:`~wharfinger.control_plane.verbs.watching`."""
GC_THRESHOLDS: Final = (20_000, 20, 50)
"""The thresholds of Python's garbage collector in a process that only runs a control plane. With the default thresholds, every
write spends a tenth of its time in the collector."""
GRACE_S: Final = 10.0
"""The maximum time, in seconds, for which a server that is being stopped waits for requests in flight."""
LIMITS: Final = HttpLimits(connections=1024, header_bytes=1024 * 1024)


@dataclass(frozen=True, slots=True)
class Address:
    """The address to listen on: an IP address and a port (0: any free one)."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Return whether only this machine can reach the address."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def url_host(self) -> str:
        """The host as it is written in a URL: an IPv6 address is in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_address(text: str) -> Address:
    """Parse an address such as ``127.0.0.1:0``, ``localhost:8001`` or ``[::1]:0``. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if host.startswith("[") else host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not an address; write it as 127.0.0.1:0")
    return Address(str(ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)), int(port))


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults to inject; the same seed and requests cause the same faults."""

    rules: tuple[Rule, ...] = ()
    seed: int = 0


NO_FAULTS: Final = Faults()


class ControlPlaneStartError(Exception):
    """The control plane cannot be served, for example because the port is taken or the kubeconfig cannot be written."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A control plane that accepts connections: its address and its kubeconfig."""

    control_plane: ControlPlane
    address: Address
    kubeconfig: Path
    tls: bool = False

    @property
    def url(self) -> str:
        """The URL of the server, such as ``https://127.0.0.1:6443``."""
        return f"{'https' if self.tls else 'http'}://{self.address.url_host}:{self.address.port}"


@dataclass(frozen=True, slots=True)
class _ServerSockets:
    """The listening sockets and their TLS settings; without TLS, ``context`` is None and ``authority`` is ""."""

    sockets: list[trio.SocketListener]
    address: Address
    context: ssl.SSLContext | None
    authority: str

    def listeners(self) -> list[trio.abc.Listener[trio.abc.Stream]]:
        """Return the listeners of the server; the TLS handshake happens when the first request is read."""
        if self.context is None:
            return [*self.sockets]
        return [trio.SSLListener(listener, self.context, https_compatible=True) for listener in self.sockets]


@asynccontextmanager
async def serve_control_plane(
    address: Address,
    kubeconfig_path: Path,
    token: str,
    *,
    storage: Storage | None = None,
    simulate: bool = True,
    faults: Faults = NO_FAULTS,
    tls: bool = False,
    command_folder: Path | None = None,
) -> AsyncGenerator[Serving, None]:
    """Run a control plane on a TCP port for as long as the block runs; the kubeconfig exists when the block begins.

    ``storage`` is in memory unless given. With ``tls``, the authority that signs the server's certificate is kept in a folder
    ``tls`` beside the kubeconfig.

    Leaving the block drains the server: it accepts no more connections, ends watches, and answers requests in flight. Raises
    ControlPlaneStartError.
    """
    sockets = await _listen(address, kubeconfig_path, token, tls=tls)
    async with _serve(
        sockets,
        kubeconfig_path,
        token,
        storage=storage,
        simulate=simulate,
        faults=faults,
        command_folder=command_folder,
    ) as serving:
        yield serving


@asynccontextmanager
async def _serve(
    sockets: _ServerSockets,
    kubeconfig_path: Path,
    token: str,
    *,
    storage: Storage | None,
    simulate: bool,
    faults: Faults,
    command_folder: Path | None,
) -> AsyncGenerator[Serving, None]:
    with ExitStack() as closing:
        for listener in sockets.sockets:
            # This closes the sockets if an error occurs before ``open_server`` is entered; from then on, the server closes them.
            closing.callback(listener.socket.close)
        async with open_control_plane(
            storage=storage,
            token=token,
            simulate=simulate,
            root_ca=sockets.authority,
            faults=faults.rules,
            fault_seed=faults.seed,
            command_folder=command_folder,
        ) as control_plane:
            control_plane.handler.address = f"{sockets.address.url_host}:{sockets.address.port}"
            control_plane.handler.pace_watches(WATCH_PACE_S)
            async with open_server(sockets.listeners(), control_plane.front, LIMITS):
                yield Serving(control_plane, sockets.address, kubeconfig_path, tls=sockets.context is not None)


async def _listen(address: Address, path: Path, token: str, *, tls: bool) -> _ServerSockets:
    """Listen, and write the kubeconfig with the address. Connections wait in the kernel until the server accepts them.

    Raises ControlPlaneStartError.
    """
    try:
        listeners = await trio.open_tcp_listeners(address.port, host=address.host)
    except OSError as error:
        raise ControlPlaneStartError(
            f"cannot listen on {address.host} port {address.port}: {error}; choose another address with --listen"
        ) from error
    port: int = listeners[0].socket.getsockname()[1]
    try:
        context, authority = (
            await trio.to_thread.run_sync(_tls_context, path.parent / "tls", address.host) if tls else (None, "")
        )
        content = encode_json(kubeconfig(address.url_host, port, token, authority)) + b"\n"
        await trio.to_thread.run_sync(write_secret_file, path, content)
    except BaseException as error:
        for listener in listeners:
            listener.socket.close()
        if isinstance(error, OSError):
            raise ControlPlaneStartError(
                f"cannot write the kubeconfig {path}: {error.strerror or error}; {_disk_remedy(error)}"
            ) from error
        raise
    return _ServerSockets(listeners, Address(address.host, port), context, authority)


def _tls_context(folder: Path, host: str) -> tuple[ssl.SSLContext, str]:
    """Return the TLS context of a server on this host, and the certificate of its authority. Raises ControlPlaneStartError."""
    # Imported here, because only a control plane with TLS needs it.
    from wharfinger.control_plane.access import certificates  # noqa: PLC0415

    now = datetime.now(UTC)
    try:
        authority = certificates.kept_authority(folder, now)
        return certificates.server_context(authority, host, now), authority.pem
    except certificates.CertificateError as error:
        raise ControlPlaneStartError(f"cannot use the certificate authority for TLS in {folder}: {error}") from error
    except OSError as error:
        raise ControlPlaneStartError(
            f"cannot use the certificate authority for TLS in {folder}: {error.strerror or error}; "
            f"{_disk_remedy(error)}"
        ) from error


def _disk_remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some disk space"
    return "check the permissions, or choose another folder with --kubeconfig"


async def run_until_stopped(
    address: Address,
    kubeconfig_path: Path,
    token: str,
    print_line: Callable[[str], None],
    *,
    storage: Storage | None = None,
    simulate: bool = True,
    lifeline: int | None = None,
    faults: Faults = NO_FAULTS,
    tls: bool = False,
    command_folder: Path | None = None,
) -> None:
    """Run a control plane until SIGTERM or SIGINT, then drain for at most :data:`GRACE_S`; a second signal ends the drain.

    ``storage`` is in memory unless given. ``lifeline`` is a file descriptor, such as the read end of a pipe from the parent
    process. Its end of file shows that the parent has ended, and stops the server like a first signal.

    Raises ControlPlaneStartError and StorageError, which are not wrapped in an exception group.
    """
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            sockets = await _listen(address, kubeconfig_path, token, tls=tls)
            opened = _serve(
                sockets,
                kubeconfig_path,
                token,
                storage=storage,
                simulate=simulate,
                faults=faults,
                command_folder=command_folder,
            )
            await _serve_until(opened, print_line, signals, lifeline)
    except ExceptionGroup as group:
        failed, others = group.split(StorageError)
        if failed is None or others is not None:
            raise
        raise StorageError(str(failed.exceptions[0])) from group


async def _serve_until(
    opened: AbstractAsyncContextManager[Serving],
    print_line: Callable[[str], None],
    signals: AsyncIterator[int],
    lifeline: int | None,
) -> None:
    stop, hard = trio.Event(), trio.CancelScope()
    with hard:
        async with trio.open_nursery() as nursery:
            async with opened as serving:
                gc.set_threshold(*GC_THRESHOLDS)
                gc.collect()
                gc.freeze()  # the objects that exist now live as long as the server, so the collector can skip them
                print_line(f"control plane ready at {serving.url}, kubeconfig {serving.kubeconfig}")
                nursery.start_soon(_stop_at_signals, signals, stop, hard)
                if lifeline is not None:
                    nursery.start_soon(_stop_at_end_of_file, lifeline, stop)
                await stop.wait()
                hard.deadline = trio.current_time() + GRACE_S
            nursery.cancel_scope.cancel(reason="the control plane has stopped")


async def _stop_at_signals(signals: AsyncIterator[int], stop: trio.Event, hard: trio.CancelScope) -> None:
    """Set ``stop`` at the first signal; cancel ``hard`` at a signal that arrives when ``stop`` is already set."""
    async for _ in signals:
        if stop.is_set():
            hard.cancel(reason="a second signal arrived")
        stop.set()


async def _stop_at_end_of_file(lifeline: int, stop: trio.Event) -> None:
    """Set ``stop`` when the file descriptor ``lifeline`` reaches its end of file."""
    async with trio.lowlevel.FdStream(os.dup(lifeline)) as stream:
        async for _ in stream:
            pass
    stop.set()
