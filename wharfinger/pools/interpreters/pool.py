"""The pool of one interpreter: its zygote (the process that forks workers), its idle workers, and the scheduler that hands them
out.

If the zygote ends, another one is started, and the workers that the old one forked stay in use. The zygote forks
workers until the wanted number is ready, and one more for each waiting request. If a request did not need its worker in the end,
the surplus worker is ended after a while.
"""

import logging
import math
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from wharfinger.pools.claims.events import Limits as PoolLimits
from wharfinger.pools.claims.metrics import PoolMetrics, Snapshot
from wharfinger.pools.claims.scheduler import PoolScheduler, open_pool_scheduler
from wharfinger.pools.interpreters.scripts import Interpreter
from wharfinger.pools.interpreters.workers import ClaimedWorker, Job, WarmWorkers
from wharfinger.pools.interpreters.zygote import Zygote, ZygoteError, open_zygote
from wharfinger.pools.memory.budget import IdleProcess, MemoryBudget
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger

log = logging.getLogger(__name__)

CLAIM_S: Final = 2.0
"""The time in which a script must get a worker; otherwise it is started as a new process."""
RESTART_S: Final = 0.1
"""The shortest pause before an ended zygote is replaced. If a zygote has not run for longer than SOUND_S, the next pause is
twice as long, up to RESTART_MAX_S.
"""
RESTART_MAX_S: Final = 60.0
MAX_FAILED_STARTS: Final = 5
"""The number of failed starts in a row after which an interpreter is given up, until its pool is opened again."""
SOUND_S: Final = 30.0
"""The running time after which a zygote counts as sound. Before the replacement of a sound zygote, the pause is RESTART_S."""
SURPLUS_S: Final = 10.0
"""The time without a claim after which surplus workers are ended."""
_LIMITS: Final = PoolLimits(waiting=256, in_flight=32, attempts=4, expires_claims=False)
"""Claims do not expire: each request waits for the end of its claim, because the worker may have begun the script, which must
not be started a second time. This end comes soon, because a worker that has not answered within START_S of
:mod:`wharfinger.pools.interpreters.workers` is killed.
"""


class InterpreterPool:
    """The pool of one interpreter. Made by :func:`open_interpreter_pool`.

    ``unfit`` is the reason why the interpreter cannot be kept warm; empty if it can be kept warm, or if this is not known yet.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        size: int,
        workers: WarmWorkers,
        scheduler: PoolScheduler[Job, ClaimedWorker],
        budget: MemoryBudget,
    ) -> None:
        self.interpreter = interpreter
        self.unfit = ""
        self.zygote_pid = 0
        self.restarts = 0
        self.used_at = trio.current_time()
        self._started = False
        self._folders: Mapping[str, int] = {}
        self._outdated = trio.Event()
        self.size = size
        self._workers = workers
        self._scheduler = scheduler
        self._budget = budget

    @property
    def serves(self) -> bool:
        """True if a zygote runs and is not about to be replaced. Only then does it make sense to wait for a worker."""
        return self.zygote_pid > 0 and not self._outdated.is_set()

    def expects_worker(self) -> bool:
        """Return whether a request would get a worker: either a worker is idle, or the memory budget allows another one."""
        return len(self._workers) > 0 or self._budget.admits(self)

    def busy_processes(self) -> tuple[int, ...]:
        """Return the process id of the zygote, for the memory budget, which counts this process but never ends it; () if no
        zygote runs.
        """
        return (self.zygote_pid,) if self.zygote_pid else ()

    def memory_bytes(self) -> int:
        """Return the memory of the zygote and of the idle workers in bytes, as measured last."""
        return self._budget.size_of((*self.busy_processes(), *(each.pid for each in self.idle_processes())))

    def idle_processes(self) -> Iterator[IdleProcess]:
        """Yield the idle workers."""
        return self._workers.processes()

    def has_changed(self) -> bool:
        """Return whether any modules were reinstalled after the zygote had loaded them. Blocking."""
        return any(_changed_at(folder) != changed for folder, changed in self._folders.items())

    def renew(self) -> None:
        """Request that the zygote and its idle workers are replaced. Until that is done, no script starts in an idle worker."""
        self._outdated.set()

    @property
    def metrics(self) -> PoolMetrics:
        """The latencies and counters of the pool's claims."""
        return self._scheduler.metrics

    def snapshot(self) -> Snapshot:
        """Return the state of the pool at this moment: its members, and the requests and claims under way."""
        return self._scheduler.snapshot()

    async def claim(self, job: Job) -> ClaimedWorker:
        """Start a script in a worker. Raises PoolFullError if the pool accepts no more requests now, and NoMemberError if no
        worker was claimed in time. In both cases, the script has not begun.
        """
        self.used_at = trio.current_time()
        return await self._scheduler.claim(job, self.used_at + CLAIM_S)

    async def keep(self, ledger: ProcessLedger | None) -> None:
        """Keep a zygote running, until it turns out that the interpreter is unfit."""
        pause = RESTART_S
        failed_starts = 0
        while not self.unfit:
            begun, self._started = trio.current_time(), False
            problem: Exception | None = None
            try:
                async with open_zygote(self.interpreter, ledger) as zygote:
                    await self._serve(zygote)
                    await self._retire_outdated()
                    problem = (
                        ZygoteError("modules that it has loaded were replaced") if self._outdated.is_set() else None
                    )
            except* (ZygoteError, ProcessError, OSError) as errors:
                problem = _first(errors)
            finally:
                self.zygote_pid = 0
            failed_starts = 0 if self._started else failed_starts + 1
            if failed_starts == MAX_FAILED_STARTS or (isinstance(problem, ZygoteError) and problem.lasting):
                self.unfit = str(problem)
                log.info(
                    "%s is not kept warm, so each of its scripts starts a new interpreter: %s",
                    self.interpreter.program,
                    problem,
                )
                return
            pause = RESTART_S if trio.current_time() - begun > SOUND_S else min(2 * pause, RESTART_MAX_S)
            log.warning(
                "the zygote of %s has ended (%s); another one is started in %g s",
                self.interpreter.program,
                problem or "without an error",
                pause,
            )
            self.restarts += 1
            await trio.sleep(pause)

    async def _serve(self, zygote: Zygote) -> None:
        """Fork workers as they are needed, until the zygote ends, or is to be replaced."""
        self._folders, self._outdated = zygote.folders, trio.Event()
        self.zygote_pid, self._started = zygote.pid, True
        self._budget.note_start()
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                await zygote.wait()
                nursery.cancel_scope.cancel()

            async def end_outdated() -> None:
                await self._outdated.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)

            async def note_measurements() -> None:
                while True:
                    await self._budget.wait_measured()
                    self._scheduler.notify_idle()  # the budget may now allow a worker that it refused before

            nursery.start_soon(end_outdated)
            nursery.start_soon(note_measurements)
            while True:
                if (missing := self._missing()) > 0 and self._budget.has_room(self):
                    self._workers.add(await zygote.fork())
                    await trio.lowlevel.checkpoint()
                    continue
                with trio.move_on_after(SURPLUS_S if missing < 0 else math.inf):
                    await self._scheduler.wait_change()
                    continue
                while self._missing() < 0:
                    await self._workers.retire_one()

    async def _retire_outdated(self) -> None:
        """End all idle workers if a replacement of the zygote was requested by `renew`."""
        while self._outdated.is_set() and len(self._workers):
            await self._workers.retire_one()

    def _missing(self) -> int:
        """Return the number of workers to fork: enough for all requests that wait, and the wanted number of idle ones.

        A negative number is the number of surplus workers.
        """
        found = self._scheduler.snapshot()
        return found.waiting + self.size - len(self._workers)


def _changed_at(folder: str) -> int:
    """Return the time of a folder's last change; 0 if there is no such folder."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def _first(errors: BaseExceptionGroup[BaseException]) -> Exception | None:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found if isinstance(found, Exception) else None


@asynccontextmanager
async def open_interpreter_pool(
    interpreter: Interpreter, size: int, ledger: ProcessLedger | None, budget: MemoryBudget
) -> AsyncGenerator[InterpreterPool]:
    """Keep ``size`` idle workers of an interpreter ready while the block runs, as far as the budget allows.

    When the block is left, all workers that no caller has taken are ended.
    """
    async with trio.open_nursery() as watching:
        workers = WarmWorkers(watching, ledger)
        try:
            async with open_pool_scheduler(workers, _LIMITS) as scheduler:
                workers.on_change = scheduler.notify_idle
                pool = InterpreterPool(interpreter, size, workers, scheduler, budget)
                with budget.joined(pool):
                    async with trio.open_nursery() as keeping:
                        keeping.start_soon(pool.keep, ledger, name=f"zygote of {interpreter.program}")
                        try:
                            yield pool
                        finally:
                            keeping.cancel_scope.cancel()
        finally:
            await workers.close()
            watching.cancel_scope.cancel()
