"""Commands in pods (`exec`): one WebSocket for each, with the subprotocol of :mod:`wharfinger.kube.remote_command`.

A request that may have arrived is never repeated, because the command could then run twice. If the connection is lost, the
command may still run in the pod; a caller that has to end it must delete the pod.
"""

import base64
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.http_session import Call, HttpSession
from wharfinger.kube.remote_command import (
    MAX_STATUS_BYTES,
    PIECE_BYTES,
    PROTOCOL,
    Arrived,
    Channel,
    RemoteStreams,
    SocketClosed,
    StreamError,
    accept_token,
    read_exit_status,
)
from wharfinger.kube.resource import ObjectKey

_READ_BYTES: Final = 64 * 1024


class CommandError(ClusterError):
    """A command in a pod could not be run, or its result is not known because the connection was lost."""

    transient = True


@dataclass(frozen=True, slots=True)
class PodCommand:
    """A command to run in a pod. ``container`` may be empty if the pod has only one container."""

    pod: ObjectKey
    argv: tuple[str, ...]
    container: str = ""
    stdin: bytes | None = None


Sink = Callable[[bytes], None]
"""A callback for output as it arrives; must not block. If it raises, the command is abandoned."""


class PodExecutor:
    """A client that runs commands in pods (``exec``) with the requests of a session."""

    def __init__(self, session: HttpSession) -> None:
        self._session = session

    async def run(self, command: PodCommand, *, stdout: Sink, stderr: Sink) -> int:
        """Run a command to its end; return its exit code. The caller limits the time.

        Raises ApiError if the server refuses the command, UnreachableError if it does not answer, CommandError, and other
        ClusterErrors. If this call is cancelled, the connection is closed.
        """
        key = base64.b64encode(os.urandom(16)).decode()
        call = _call(command, key)
        async with self._session.upgrade(call) as (headers, stream):
            if headers.get("sec-websocket-accept") != accept_token(key) or (
                headers.get("sec-websocket-protocol") != PROTOCOL
            ):
                raise CommandError(
                    f"{call.what}: expected a WebSocket with {PROTOCOL}, which Kubernetes has since 1.29"
                )
            return await _Conversation(call.what, stream, stdout, stderr).to_end(command.stdin)


class _Conversation:
    """The exchange with a pod while one command runs: stdin is sent, and stdout, stderr and the exit status are received."""

    def __init__(self, what: str, stream: trio.abc.Stream, stdout: Sink, stderr: Sink) -> None:
        self._what = what
        self._stream = stream
        self._sinks = {int(Channel.STDOUT): stdout, int(Channel.STDERR): stderr, int(Channel.ERROR): self._take_status}
        self._streams = RemoteStreams(client=True)
        self._sending = trio.Lock()
        self._status = bytearray()

    async def to_end(self, stdin: bytes | None) -> int:
        """Send stdin and pass the output on, until the command has ended. Return its exit code. Raises CommandError."""
        try:
            async with trio.open_nursery() as nursery:
                if stdin is not None:
                    nursery.start_soon(self._send_stdin, stdin)
                await self._receive()
                nursery.cancel_scope.cancel(reason="the command has ended")
        except* (trio.BrokenResourceError, trio.ClosedResourceError, StreamError) as group:
            raise CommandError(f"{self._what}: the connection was lost: {group.exceptions[0]}") from group
        if not self._status:
            raise CommandError(f"{self._what}: the connection was closed before the command had ended")
        found = read_exit_status(bytes(self._status))
        if isinstance(found, str):
            raise CommandError(f"{self._what}: {found}")
        return found

    async def _receive(self) -> None:
        while True:
            for event in self._streams.receive(bytes(await self._stream.receive_some(_READ_BYTES))):
                if isinstance(event, SocketClosed):
                    return
                if isinstance(event, Arrived) and (sink := self._sinks.get(event.channel)) is not None:
                    sink(event.data)
            await self._send(self._streams.replies())

    async def _send_stdin(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), PIECE_BYTES):
                await self._send(self._streams.send(Channel.STDIN, data[start : start + PIECE_BYTES]))
            await self._send(self._streams.end(Channel.STDIN))
        except (trio.BrokenResourceError, StreamError):
            pass  # the task that receives the output reports the cause

    async def _send(self, data: bytes) -> None:
        if data:
            async with self._sending:
                await self._stream.send_all(data)

    def _take_status(self, data: bytes) -> None:
        if len(self._status) + len(data) > MAX_STATUS_BYTES:
            raise StreamError(f"expected a status of at most {MAX_STATUS_BYTES} bytes")
        self._status += data


def _call(command: PodCommand, key: str) -> Call:
    pod = command.pod
    params: dict[str, str | tuple[str, ...]] = {"command": command.argv, "stdout": "true", "stderr": "true"}
    if command.stdin is not None:
        params["stdin"] = "true"
    if command.container:
        params["container"] = command.container
    return Call(
        "GET",
        f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/exec",
        f"run a command in {pod}",
        params=params,
        headers=(
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", key),
            ("sec-websocket-protocol", PROTOCOL),
        ),
        repeatable=False,
        commands=True,
    )
