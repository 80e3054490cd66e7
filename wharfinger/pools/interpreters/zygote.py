"""A zygote: an interpreter that has started, and forks workers for this process. The program is :mod:`zygote_program`.

A worker is a child of this process: it is waited for, measured, signaled and ended like any child that this process starts
itself. The ledger of processes (:mod:`wharfinger.process.ledger`) has an entry for a worker before the worker exists. The worker
waits on its control socket, and ends when the socket is closed, so a daemon that was killed leaves no idle workers behind.
"""

import json
import os
import secrets
import signal
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.pools.interpreters import zygote_program
from wharfinger.pools.interpreters.scripts import Interpreter
from wharfinger.process.command import Command
from wharfinger.process.descendants import Mark, read_stat
from wharfinger.process.errors import LedgerError
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.run import in_thread
from wharfinger.process.spawn import Adopted
from wharfinger.process.worker import Worker, open_worker

START_S: Final = 20.0
"""The time in which an interpreter must have started."""
FORK_S: Final = 10.0
"""The time in which a worker must have been forked."""
NO_HOME: Final = "/nonexistent"
_PROGRAM: Final = str(Path(zygote_program.__file__).absolute())
_TERM_GRACE_S: Final = 0.5
_MAX_LINE: Final = 4096
_NUMBER_BYTES: Final = 4


class ZygoteError(Exception):
    """A zygote (the process that forks warm workers) cannot serve, or has ended. If ``lasting`` is true, another zygote of the
    same interpreter could not serve either.
    """

    def __init__(self, why: str, *, lasting: bool = False) -> None:
        super().__init__(why)
        self.lasting = lasting


@dataclass(eq=False, slots=True)
class Idle:
    """An idle worker: the child, and its control socket."""

    child: Adopted
    control: socket.socket

    @property
    def uid(self) -> str:
        """The token that marks this worker's processes; no other worker has the same token."""
        return self.child.mark.token


class Zygote:
    """A running zygote, the process that forks the warm workers of one interpreter. Made by :func:`open_zygote`."""

    def __init__(
        self, worker: Worker, own: socket.socket, ledger: ProcessLedger | None, folders: Mapping[str, int]
    ) -> None:
        self.pid = worker.pid
        self.folders = folders
        """The folders from which the zygote has loaded modules, except for Python's own folders, each with the time of its last
        change.
        """
        self._worker = worker
        self._own = own
        self._ledger = ledger
        self._late: list[tuple[str, socket.socket]] = []
        """The token and the control socket of each fork that the zygote did not report in time. `end_late` ends these
        workers.
        """

    async def wait(self) -> None:
        """Wait until the zygote has ended. Raises StuckError."""
        await self._worker.wait()

    async def fork(self) -> Idle:
        """Fork a worker. Raises ZygoteError, and LedgerError.

        After an error, there is no worker, except if the zygote did not report the fork in time; `end_late` ends that worker
        later. If the caller is cancelled, the fork is completed, and the new worker is ended.
        """
        token = secrets.token_hex(16)
        ledger = self._ledger
        if ledger is not None:
            await in_thread(lambda: ledger.intend(token))
        try:
            return await self._forked(token)
        except BaseException:
            if not any(late == token for late, _ in self._late):
                await forget(ledger, token)
            raise

    async def end_late(self) -> None:
        """End workers whose fork was not reported in time; call it when the zygote has ended. Shielded.

        Once the zygote has ended, no process except the worker has the other end of the worker's socket. So the worker's report,
        or the end of the stream, can be read without delay.
        """
        with trio.CancelScope(shield=True):
            while self._late:
                token, control = self._late.pop()
                pid = int.from_bytes(await _receive(control, _NUMBER_BYTES), "big")
                control.close()
                if pid:
                    await _reap(pid)
                await forget(self._ledger, token)

    async def _forked(self, token: str) -> Idle:
        ours: list[int] = []
        theirs: list[int] = []
        control, other = socket.socketpair()
        try:
            for _ in range(2):
                read, write = os.pipe2(os.O_CLOEXEC)
                ours.append(read)
                theirs.append(write)
            await self._ask(token, [other.fileno(), *theirs])
        except BaseException:
            control.close()
            _close(ours)
            raise
        finally:
            other.close()
            _close(theirs)
        return await self._take(token, control, ours)

    async def _ask(self, token: str, fds: list[int]) -> None:
        while True:
            try:
                socket.send_fds(self._own, [token.encode()], fds)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._own)
            except OSError as error:
                raise ZygoteError(f"the zygote has ended: {error.strerror}") from error
            else:
                return

    async def _take(self, token: str, control: socket.socket, pipes: list[int]) -> Idle:
        """Wait for the worker's report, and take the worker over."""
        control.setblocking(False)  # noqa: FBT003 - the library's
        pid, is_late = 0, False
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + FORK_S) as scope:
                pid = int.from_bytes(await _receive(control, _NUMBER_BYTES), "big")
            is_late = scope.cancelled_caught
            stat = read_stat(pid) if pid else None
            if stat is None:
                raise ZygoteError("the zygote has ended, or forked no worker in time")
            if (ledger := self._ledger) is not None:
                await in_thread(lambda: ledger.complete(token, pid, stat.start_ticks))
            pidfd = os.pidfd_open(pid)
        except BaseException:
            _close(pipes)
            if is_late:
                self._late.append((token, control))
                raise
            control.close()
            if pid:
                await _reap(pid)
            raise
        for fd in pipes:
            os.set_blocking(fd, False)
        mark = Mark(token, pid, stat.start_ticks, held=True)
        return Idle(Adopted(mark, pidfd, pipes[0], pipes[1]), control)


@asynccontextmanager
async def open_zygote(interpreter: Interpreter, ledger: ProcessLedger | None) -> AsyncGenerator[Zygote]:
    """Start a zygote, and end it when the block is left. Workers that it has forked may live on.

    Raises ZygoteError if the interpreter cannot serve, and the errors of `open_worker`.
    """
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with own, other:
        own.setblocking(False)  # noqa: FBT003 - the library's
        environment = {**dict(interpreter.variables), "HOME": NO_HOME, "PATH": os.defpath}
        argv = (interpreter.program, _PROGRAM, str(other.fileno()))
        command = Command(argv, Path("/"), environment, descriptors=(other.fileno(),))
        async with (
            AsyncExitStack() as stack,
            open_worker(command, ledger=ledger, term_grace_s=_TERM_GRACE_S, open_stdin=False) as worker,
        ):
            other.close()
            line = b""
            with trio.move_on_after(START_S):
                line = await _packet(own)
            zygote = Zygote(worker, own, ledger, _check(_read(line), worker))
            stack.push_async_callback(zygote.end_late)
            yield zygote


async def forget(ledger: ProcessLedger | None, token: str) -> None:
    """Remove the entry of a dead worker from the ledger. Shielded. A remaining entry is harmless, because no process has its
    token.
    """
    if ledger is not None:
        with trio.CancelScope(shield=True), suppress(LedgerError):
            await in_thread(lambda: ledger.forget(token))


def _read(line: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _check(found: Mapping[str, object], worker: Worker) -> dict[str, int]:
    """Check the report of a zygote. Return the folders from which its modules came, each with the time of its last change.
    Raises ZygoteError if the zygote cannot serve.
    """
    if "unfit" in found:
        raise ZygoteError(f"the interpreter cannot fork workers: {found['unfit']}", lasting=True)
    if "version" not in found:
        last_line = worker.stderr_tail().decode(errors="replace").strip().splitlines()[-1:]
        raise ZygoteError(
            f"the interpreter did not start within {START_S:g} s{': ' if last_line else ''}{''.join(last_line)}"
        )
    folders = found.get("folders")
    named = folders.items() if isinstance(folders, dict) else ()
    return {path: changed for path, changed in named if isinstance(path, str) and isinstance(changed, int)}


async def _packet(own: socket.socket) -> bytes:
    await trio.lowlevel.wait_readable(own)
    return own.recv(_MAX_LINE)


async def _receive(control: socket.socket, size: int) -> bytes:
    """Return exactly ``size`` bytes; no bytes if the socket is closed before that."""
    data = b""
    while len(data) < size:
        await trio.lowlevel.wait_readable(control)
        try:
            chunk = control.recv(size - len(data))
        except BlockingIOError:
            continue
        except OSError:
            return b""
        if not chunk:
            return b""
        data += chunk
    return data


async def _reap(pid: int) -> None:
    """Kill and reap a child that has no script yet. Shielded."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with trio.CancelScope(shield=True), suppress(ChildProcessError):
        await trio.to_thread.run_sync(os.waitpid, pid, 0)


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
