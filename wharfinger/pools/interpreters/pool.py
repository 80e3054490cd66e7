"""The pool of one interpreter: its zygote, its idle workers, and the scheduler that hands them out.

The zygote is kept: if it ends, another one is started, and the workers that the old one forked serve on. It forks a worker
whenever fewer than the wanted number are ready, one more for each request that waits. Workers that were forked for requests
which did not need them in the end are ended after a while.
"""

import logging
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import trio

from wharfinger.pools.claims.events import Limits as PoolLimits
from wharfinger.pools.claims.metrics import PoolMetrics, Snapshot
from wharfinger.pools.claims.scheduler import PoolScheduler, open_pool_scheduler
from wharfinger.pools.interpreters.scripts import Interpreter
from wharfinger.pools.interpreters.workers import Handed, Job, WarmWorkers
from wharfinger.pools.interpreters.zygote import Zygote, ZygoteError, open_zygote
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger

log = logging.getLogger(__name__)

CLAIM_S: Final = 2.0
"""The time in which a script must get a worker; then it is started as a new process."""
RESTART_S: Final = 0.1
"""The pause before a zygote that ended is replaced; twice as long after each further end, up to RESTART_MAX_S."""
RESTART_MAX_S: Final = 60.0
MAX_FAILED_STARTS: Final = 5
"""An interpreter that could not be started so many times in a row is given up, until its pool is opened again."""
SOUND_S: Final = 30.0
"""A zygote that served as long as this was sound, and its end is the first one again."""
SURPLUS_S: Final = 10.0
"""The time without a claim after which surplus workers are ended."""
_LIMITS: Final = PoolLimits(waiting=256, in_flight=32, attempts=4)


class InterpreterPool:
    """The pool of one interpreter. Made by :func:`open_interpreter_pool`.

    ``unfit`` is the reason why the interpreter cannot be kept warm; empty if it can, or if that is not known yet.
    """

    def __init__(
        self, interpreter: Interpreter, size: int, workers: WarmWorkers, scheduler: PoolScheduler[Job, Handed]
    ) -> None:
        self.interpreter = interpreter
        self.unfit = ""
        self.zygote_pid = 0
        self.restarts = 0
        self.used_at = trio.current_time()
        self._started = False
        self.size = size
        self._workers = workers
        self._scheduler = scheduler

    @property
    def serves(self) -> bool:
        """A zygote runs, so that a request is worth its wait."""
        return self.zygote_pid > 0

    @property
    def metrics(self) -> PoolMetrics:
        """The latencies and sums of its claims."""
        return self._scheduler.metrics

    def snapshot(self) -> Snapshot:
        """Return the numbers of the pool."""
        return self._scheduler.snapshot()

    async def claim(self, job: Job) -> Handed:
        """Start a script in a worker. Raises PoolFullError and NoMemberError; the script has not begun then."""
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
            except* (ZygoteError, ProcessError, OSError) as errors:
                problem = _first(errors)
            finally:
                self.zygote_pid = 0
            failed_starts = 0 if self._started else failed_starts + 1
            if failed_starts == MAX_FAILED_STARTS or (isinstance(problem, ZygoteError) and problem.lasting):
                self.unfit = str(problem)
                log.info("scripts of %s are not started warm: %s", self.interpreter.program, problem)
                return
            pause = RESTART_S if trio.current_time() - begun > SOUND_S else min(2 * pause, RESTART_MAX_S)
            log.warning(
                "the zygote of %s is replaced in %g s: %s", self.interpreter.program, pause, problem or "it has ended"
            )
            self.restarts += 1
            await trio.sleep(pause)

    async def _serve(self, zygote: Zygote) -> None:
        """Fork workers as they are needed, until the zygote ends."""
        self.zygote_pid, self._started = zygote.pid, True
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                await zygote.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            while True:
                if (missing := self._missing()) > 0:
                    self._workers.add(await zygote.fork())
                    await trio.lowlevel.checkpoint()
                    continue
                with trio.move_on_after(SURPLUS_S if missing < 0 else math.inf):
                    await self._scheduler.wait_change()
                    continue
                while self._missing() < 0:
                    await self._workers.retire_one()

    def _missing(self) -> int:
        """Return the number of workers to fork: enough for all requests that wait, and the wanted number of idle ones.

        A negative number is that of the surplus workers.
        """
        found = self._scheduler.snapshot()
        return found.waiting + self.size - len(self._workers)


def _first(errors: BaseExceptionGroup[BaseException]) -> Exception | None:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found if isinstance(found, Exception) else None


@asynccontextmanager
async def open_interpreter_pool(
    interpreter: Interpreter, size: int, ledger: ProcessLedger | None
) -> AsyncGenerator[InterpreterPool]:
    """Keep ``size`` idle workers of an interpreter ready, for the block; then all that are not taken are ended."""
    async with trio.open_nursery() as watching:
        workers = WarmWorkers(watching, ledger)
        try:
            async with open_pool_scheduler(workers, _LIMITS) as scheduler:
                workers.on_change = scheduler.notify_idle
                pool = InterpreterPool(interpreter, size, workers, scheduler)
                async with trio.open_nursery() as keeping:
                    keeping.start_soon(pool.keep, ledger, name=f"zygote of {interpreter.program}")
                    try:
                        yield pool
                    finally:
                        keeping.cancel_scope.cancel()
        finally:
            await workers.close()
            watching.cancel_scope.cancel()
