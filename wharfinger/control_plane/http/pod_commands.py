"""Commands in simulated Pods (``exec``): processes on the machine of the control plane, in a folder that belongs to the Pod.

Commands are run only if the control plane was started with a folder for them, because a client with the permission to exec can
run any program as the user of the control plane. A command runs without a container and without an image.
:mod:`wharfinger.process` confines the command, as it does with every program: the command has its own session, resource limits,
and an environment of a few variables; when it ends, all processes that it has started are ended, too. An empty folder is
created for a Pod before its first command starts. When the Pod is deleted, its running commands are ended, and its folder is
removed.

The streams are described in :mod:`wharfinger.kube.remote_command`. Stdin and stdout are passed on without a buffer, so a slow
reader slows down the writer. Only stderr is buffered; a command is ended if more than STDERR_CHUNKS chunks of its stderr wait to
be sent.
"""

import logging
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import trio

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.special_endpoints.endpoint import PodCommand
from wharfinger.control_plane.storage.interface import Change, ChangeType
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import encode_json, find_str
from wharfinger.httpd.messages import Request, Upgrade
from wharfinger.kube.remote_command import (
    PROTOCOL,
    Arrived,
    Channel,
    ChannelEnded,
    RemoteStreams,
    SocketClosed,
    StreamError,
    accept_token,
    error_status,
    exit_status,
)
from wharfinger.process.command import Command, Limits
from wharfinger.process.errors import ProcessError
from wharfinger.process.remove_tree import remove_tree
from wharfinger.process.worker import Worker, open_worker

log = logging.getLogger(__name__)

READ_BYTES: Final = 64 * 1024
STDERR_CHUNKS: Final = 256
"""The maximum number of chunks of stderr, of at most 16 KiB each, that wait to be sent to the client."""
GRACE_S: Final = 1.0
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIMITS: Final = Limits(wall_s=3600.0, stdout_bytes=0, open_files=1024, file_bytes=256 * 1024 * 1024)
"""The resource limits of each command."""
_PODS: Final = "pods"


class PodCommands:
    """The commands of all Pods. Made by :func:`open_pod_commands`."""

    def __init__(self, root: Path, nursery: trio.Nursery) -> None:
        self._root = root
        self._nursery = nursery
        self._running: dict[str, set[_Running]] = {}
        self._changed = trio.Event()
        self._used: set[str] = set()
        """The uids of Pods that have a folder."""

    def answer(self, request: Request, command: PodCommand) -> Upgrade:
        """Return the answer to a request for a command.

        Raises StatusError if the request does not ask for a WebSocket, or does not offer the subprotocol ``PROTOCOL``.
        """
        headers = request.headers
        key = headers.get("sec-websocket-key", "")
        if headers.get("upgrade", "").lower() != "websocket" or headers.get("sec-websocket-version") != "13" or not key:
            raise status.bad_request("Upgrade request required: this server runs commands over WebSockets only")
        offered = [word.strip() for word in headers.get("sec-websocket-protocol", "").split(",")]
        if PROTOCOL not in offered:
            found = ", ".join(offered) or "none"
            raise status.bad_request(f"unable to upgrade: expected the subprotocol {PROTOCOL}, found {found}")
        self._used.add(command.uid)  # from now on, `observe` handles the deletion of the Pod
        accepted = (("sec-websocket-accept", accept_token(key)), ("sec-websocket-protocol", PROTOCOL))
        return Upgrade("websocket", partial(self.run, command), accepted)

    async def run(self, command: PodCommand, stream: trio.abc.Stream) -> None:
        """Run a command with its streams over a connection, until it has ended or the client is gone."""
        running = _Running(RemoteStreams(client=False), stream)
        self._running.setdefault(command.uid, set()).add(running)
        try:
            folder = self._root
            if command.uid in self._used:
                folder = await self._folder(command.uid)
            else:
                running.scope.cancel(reason="its Pod was deleted")
            await running.run_to_end(command, folder)
        finally:
            self._running[command.uid].discard(running)
            if not self._running[command.uid]:
                del self._running[command.uid]
            self._signal()

    async def wait_ended(self, uid: str) -> None:
        """Wait until no command of a Pod runs."""
        while uid in self._running:
            await self._changed.wait()

    async def wait_removed(self, uid: str) -> None:
        """Wait until the folder of a deleted Pod is removed."""
        while uid in self._used:
            await self._changed.wait()

    def _signal(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _folder(self, uid: str) -> Path:
        folder = self._root / uid
        await trio.to_thread.run_sync(lambda: folder.mkdir(mode=0o700, parents=True, exist_ok=True))
        return folder

    def observe(self, change: Change) -> None:
        """Handle a change of the backend: after the deletion of a Pod, end its commands and remove its folder."""
        if change.type is not ChangeType.DELETED or change.key.collection.plural != _PODS:
            return
        uid = find_str(change.obj, "metadata", "uid")
        if uid not in self._used:
            return
        for running in self._running.get(uid, set()):
            running.scope.cancel(reason="its Pod was deleted")
        self._nursery.start_soon(self._remove, uid)

    async def _remove(self, uid: str) -> None:
        await self.wait_ended(uid)
        with trio.CancelScope(shield=True):
            try:
                with suppress(FileNotFoundError):  # no command of the Pod has begun
                    await trio.to_thread.run_sync(remove_tree, self._root / uid)
            except OSError as error:
                log.warning("the folder of a deleted Pod cannot be removed: %s", error)
        self._used.discard(uid)
        self._signal()


@dataclass(eq=False)
class _Running:
    """A running command with its streams."""

    streams: RemoteStreams
    stream: trio.abc.Stream

    def __post_init__(self) -> None:
        self.scope = trio.CancelScope()
        self._sending = trio.Lock()
        self._overflow = False

    async def run_to_end(self, command: PodCommand, folder: Path) -> None:
        """Run the command, and report how it ended unless the client is gone."""
        code, problem = 0, ""
        with self.scope:
            try:
                code = await self._execute(command, folder)
            except ProcessError as error:
                problem = str(error)
            except _NotFoundError as error:
                problem = str(error)
        if self._overflow:
            problem = "the command was ended, because its output on stderr was not read in time"
        elif self.scope.cancelled_caught:
            problem = "the command was ended, because its Pod was deleted or its client is gone"
        document = error_status(problem) if problem else exit_status(code if code >= 0 else 128 - code)
        with trio.move_on_after(GRACE_S):
            with suppress(StreamError):  # the client has closed the WebSocket
                await self._send(self.streams.send(Channel.ERROR, encode_json(document)))
            await self._send(self.streams.close())
            await self._discard_rest()

    async def _discard_rest(self) -> None:
        """Read and discard the rest of the client's data.

        Otherwise the connection is reset when it is closed, perhaps before the client has read the status.
        """
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while await self.stream.receive_some(READ_BYTES):
                pass

    async def _execute(self, command: PodCommand, folder: Path) -> int:
        environment = _environment(command, folder)
        program = shutil.which(command.argv[0], path=environment["PATH"])
        if program is None and "/" not in command.argv[0]:
            raise _NotFoundError(f'exec: "{command.argv[0]}": executable file not found in $PATH')
        argv = (program or command.argv[0], *command.argv[1:])
        into, errors = trio.open_memory_channel[bytes](STDERR_CHUNKS)

        def take(chunk: bytes) -> None:
            try:
                into.send_nowait(chunk)
            except trio.WouldBlock:
                self._overflow = True
                self.scope.cancel(reason="stderr is not read")

        async with (
            open_worker(
                Command(argv, folder, environment),
                bounds=LIMITS,
                term_grace_s=GRACE_S,
                on_stderr=take,
                open_stdin=command.stdin,
            ) as worker,
            trio.open_nursery() as reading,
        ):
            reading.start_soon(self._read, worker)
            async with trio.open_nursery() as writing:
                writing.start_soon(self._write_errors, errors)
                while chunk := await worker.receive_some(READ_BYTES):
                    await self._forward(Channel.STDOUT, chunk)
                code = await worker.wait()
                into.close()
            reading.cancel_scope.cancel(reason="the command has ended")
        return code

    async def _write_errors(self, errors: trio.MemoryReceiveChannel[bytes]) -> None:
        async for chunk in errors:
            await self._forward(Channel.STDERR, chunk)

    async def _forward(self, channel: Channel, chunk: bytes) -> None:
        try:
            data = self.streams.send(channel, chunk)
        except StreamError:
            self.scope.cancel(reason="the client is gone")
        else:
            await self._send(data)

    async def _read(self, worker: Worker) -> None:
        """Pass the client's stdin to the command, and end the command when the client is gone."""
        open_ = True
        while True:
            try:
                data = await self.stream.receive_some(READ_BYTES)
                events = self.streams.receive(bytes(data))
            except (trio.BrokenResourceError, StreamError):
                events = [SocketClosed()]
            if replies := self.streams.replies():
                await self._send(replies)
            for event in events:
                if isinstance(event, SocketClosed):
                    self.scope.cancel(reason="the client is gone")
                    return
                if isinstance(event, Arrived) and event.channel == Channel.STDIN and open_:
                    with suppress(
                        trio.BrokenResourceError, trio.ClosedResourceError
                    ):  # a program may exit without reading all
                        await worker.send(event.data)
                if isinstance(event, ChannelEnded) and event.channel == Channel.STDIN and open_:
                    open_ = False
                    worker.end_input()

    async def _send(self, data: bytes) -> None:
        """Send data to the client, or end the command if the client is gone."""
        if data:
            async with self._sending:
                try:
                    await self.stream.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self.scope.cancel(reason="the client is gone")


class _NotFoundError(Exception):
    """The program that a command names does not exist."""


def _environment(command: PodCommand, folder: Path) -> Mapping[str, str]:
    return {"PATH": PATH, "HOME": str(folder), "TMPDIR": str(folder), "HOSTNAME": command.pod}


@asynccontextmanager
async def open_pod_commands(backend: Backend, root: Path) -> AsyncGenerator[PodCommands]:
    """Run commands of Pods for as long as the block runs, in folders below ``root``.

    When the block ends, all folders are removed. Close the server before the block ends, because requests that run commands are
    tasks of the server.
    """
    async with trio.open_nursery() as nursery:
        commands = PodCommands(root, nursery)
        backend.observe(commands.observe)
        try:
            yield commands
        finally:
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(_remove_all, root)


def _remove_all(root: Path) -> None:
    for folder in root.iterdir() if root.is_dir() else ():
        with suppress(OSError):
            remove_tree(folder)
