"""The idle workers of one interpreter as a backend of the claim scheduler: a claim gives a worker its script.

Workers are used once. A claimed worker leaves the pool, and the caller gets a child process that runs the script.
"""

import json
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import trio

from wharfinger.pools.claims.backend import Claimed, ClaimError, ConflictError
from wharfinger.pools.claims.events import Lost, Member, Seen
from wharfinger.pools.interpreters.scripts import WarmStart
from wharfinger.pools.interpreters.zygote import Idle, forget
from wharfinger.pools.memory.budget import IdleProcess
from wharfinger.process.command import Command, Limits
from wharfinger.process.descendants import last_pid, ticks_now
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.proc_stat import MARKER, marker_value
from wharfinger.process.run import Run, wait_zombie
from wharfinger.process.spawn import Adopted

START_S: Final = 5.0
"""The time in which a worker must have started its script."""
_STARTED: Final = b"S"
_ANSWER_BYTES: Final = 1024
_VERSION: Final = 1
_LIMITS: Final = (
    ("RLIMIT_AS", "memory_bytes"),
    ("RLIMIT_NPROC", "processes"),
    ("RLIMIT_NOFILE", "open_files"),
    ("RLIMIT_FSIZE", "file_bytes"),
)


class RefusedError(ClaimError):
    """A worker cannot run the script as a new process would. The worker has ended, and the script has not begun."""


@dataclass(frozen=True, slots=True)
class Job:
    """A script to start in a worker: the command, the limits (the kernel enforces them), and the warm start."""

    command: Command
    limits: Limits
    start: WarmStart

    def encoded(self, token: str) -> bytes:
        """Return the job in the form in which a worker reads it."""
        command = self.command
        marker = marker_value(os.environ.get(MARKER, ""), token)
        found = {
            "name": self.start.name,
            "argv": self.start.argv,
            "interpreter": self.start.words,
            "cwd": str(command.cwd),
            "environment": {MARKER: marker, **{name: value for name, value in command.env.items() if name != MARKER}},
            "user": (command.user.uid, command.user.gid) if command.user is not None else None,
            "limits": dict(_bounds(self.limits)),
        }
        data = json.dumps(found).encode()
        return len(data).to_bytes(4, "big") + data


def _bounds(limits: Limits) -> list[tuple[str, int]]:
    found = ((name, getattr(limits, field)) for name, field in _LIMITS)
    return [(name, value) for name, value in found if value is not None]


@dataclass(eq=False, slots=True)
class _Watched:
    """An idle worker, and the task that watches it. To end the task, cancel ``scope``. ``over`` is set when the task has ended.

    Only one task at a time may wait for the end of a process. Therefore a task that removes a worker waits for ``over`` before
    it waits for the process.
    """

    idle: Idle
    since: float = field(default_factory=trio.current_time)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    over: trio.Event = field(default_factory=trio.Event)


class ClaimedWorker:
    """A worker that runs a script. The backend is responsible for the worker until `take` is called, and the caller
    afterwards.
    """

    def __init__(self, workers: "WarmWorkers", child: Adopted) -> None:
        self._workers = workers
        self._child = child

    def take(self) -> Adopted:
        """Return the child, which now belongs to the caller. Raises ConflictError if the child was ended when its pool closed."""
        return self._workers.release(self._child)


class WarmWorkers:
    """The workers of one interpreter. ``nursery`` runs the tasks that watch idle workers."""

    def __init__(self, nursery: trio.Nursery, ledger: ProcessLedger | None) -> None:
        self._nursery = nursery
        self._ledger = ledger
        self._idle: dict[str, _Watched] = {}
        self._handed: dict[str, Adopted] = {}
        self._changes: deque[Seen | Lost] = deque()
        self.on_change: Callable[[], None] = lambda: None
        """A callback that is called when there are changes to read. It must not block."""

    def __len__(self) -> int:
        """Return the number of idle workers."""
        return len(self._idle)

    def processes(self) -> Iterator[IdleProcess]:
        """Yield the idle workers in the order in which they were added."""
        for uid, watched in self._idle.items():
            yield IdleProcess(watched.idle.child.mark.pid, watched.since, partial(self._start_retiring, uid))

    def add(self, idle: Idle) -> None:
        """Add an idle worker, and watch for its end."""
        watched = self._idle[idle.uid] = _Watched(idle)
        self._changes.append(Seen(Member(idle.uid, _VERSION)))
        self._nursery.start_soon(self._watch, watched, name=f"idle worker {idle.child.mark.pid}")
        self.on_change()

    def changes(self) -> Sequence[Seen | Lost]:
        """Return the workers that were added or removed since the last call."""
        found = tuple(self._changes)
        self._changes.clear()
        return found

    async def claim(self, member: Member, job: Job, /) -> Claimed[ClaimedWorker]:
        """Give a worker its script, and wait until the script has started."""
        watched = self._removed(member.uid)
        if watched is None:
            raise ConflictError("the worker has ended")
        idle = watched.idle
        self._handed[idle.uid] = idle.child
        with trio.CancelScope(shield=True):
            await watched.over.wait()
        idle.child.mark = replace(idle.child.mark, work_number=int(last_pid() or 0), work_ticks=ticks_now())
        try:
            answer = await self._started(idle, job)
        finally:
            idle.control.close()
        if answer.startswith(_STARTED):
            if job.command.user is not None:
                idle.child.mark = replace(idle.child.mark, uid=job.command.user.uid)
            return Claimed(_VERSION + 1, ClaimedWorker(self, idle.child))
        await self.recycle(idle.uid)
        if answer:
            raise RefusedError(answer[1:].decode("utf-8", "replace"))
        raise ConflictError("the worker ended before it started its script")

    async def recycle(self, uid: str) -> None:
        """End a worker that was given a script, and all processes of the script."""
        child = self._handed.pop(uid, None)
        if child is not None:
            await end_child(child, self._ledger)

    def release(self, child: Adopted) -> Adopted:
        """Return a claimed worker to its caller, and stop being responsible for it. Raises ConflictError if it was ended."""
        if self._handed.pop(child.mark.token, None) is None:
            raise ConflictError("the worker was ended, because its pool was closed")
        return child

    async def retire_one(self) -> None:
        """End the idle worker that was added last, if there is one. The call is shielded; the worker is killed immediately."""
        uid = next(reversed(self._idle), None)
        if uid is not None:
            await self._retire(uid)

    async def close(self) -> None:
        """End all workers that are idle, or that run a script but were not taken. Shielded; they are killed immediately."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                for uid in tuple(self._idle):
                    nursery.start_soon(self._retire, uid)
                for uid in tuple(self._handed):
                    nursery.start_soon(self.recycle, uid)

    def _removed(self, uid: str) -> _Watched | None:
        """Remove an idle worker from the pool, and stop watching it; None if it is not idle any more."""
        watched = self._idle.pop(uid, None)
        if watched is not None:
            watched.scope.cancel()
            self._changes.append(Lost(uid))
            self.on_change()
        return watched

    def _start_retiring(self, uid: str) -> None:
        self._nursery.start_soon(self._retire, uid, name=f"end of idle worker {uid}")

    async def _retire(self, uid: str) -> None:
        """End an idle worker. Shielded: once it is removed from the pool, nothing else would end it."""
        with trio.CancelScope(shield=True):
            watched = self._removed(uid)
            if watched is not None:
                await watched.over.wait()
                await self._end_idle(watched.idle)

    async def _watch(self, watched: _Watched) -> None:
        """Wait until an idle worker ends unexpectedly, for example because the kernel kills it, and remove it from the pool."""
        try:
            with watched.scope:
                if not watched.scope.cancel_called:
                    await wait_zombie(watched.idle.child.pidfd)
        finally:
            watched.over.set()
        if not watched.scope.cancelled_caught and self._idle.get(watched.idle.uid) is watched:
            self._removed(watched.idle.uid)
            await self._end_idle(watched.idle)

    async def _started(self, idle: Idle, job: Job) -> bytes:
        """Send the job, and return the answer; empty if the worker ended without an answer. In this case, the script has not
        begun.
        """
        with trio.move_on_after(START_S):
            try:
                await _send(idle, job.encoded(idle.uid))
                return await _answer(idle)
            except OSError:
                return b""
        # Only once the worker is dead is it certain whether the script has started.
        signal.pidfd_send_signal(idle.child.pidfd, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await wait_zombie(idle.child.pidfd)
        try:
            return idle.control.recv(_ANSWER_BYTES)
        except OSError:
            return b""

    async def _end_idle(self, idle: Idle) -> None:
        """End a worker that has no script yet, and so has no child processes."""
        with trio.CancelScope(shield=True):
            idle.control.close()
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(idle.child.pidfd, signal.SIGKILL)
            await wait_zombie(idle.child.pidfd)
            os.waitpid(idle.child.mark.pid, 0)  # noqa: ASYNC222 - it has ended
            idle.child.close()
            await forget(self._ledger, idle.uid)


async def end_child(child: Adopted, ledger: ProcessLedger | None) -> None:
    """End a child that no caller waits for, with all processes that it has started. Shielded, and bounded in time."""
    limits = Limits(wall_s=0.0, stdout_bytes=0, term_grace_s=0.0, cancel_grace_s=0.0)
    run = Run(child, f"worker {child.mark.pid}", limits)
    run.request_end()
    try:
        await run.to_end({}, pipes=0, ledger=ledger)
    finally:
        child.close()


async def _send(idle: Idle, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[idle.control.send(rest) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(idle.control)


async def _answer(idle: Idle) -> bytes:
    while True:
        await trio.lowlevel.wait_readable(idle.control)
        with suppress(BlockingIOError):
            return idle.control.recv(_ANSWER_BYTES)
