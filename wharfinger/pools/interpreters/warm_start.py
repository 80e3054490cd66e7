"""The runs of commands: a script is started warm if possible, and everything else is started as a new process.

An interpreter gets a pool when its first script is run. Even a script that can be started warm is started as a new process in
these cases: its interpreter has no pool yet, or the pool is still starting; the limit of pools or of memory is reached; no worker
is free in time; or a worker finds that the script would behave differently in the worker.
"""

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio

from wharfinger.pools.claims.backend import ConflictError
from wharfinger.pools.claims.scheduler import NoMemberError, PoolFullError
from wharfinger.pools.interpreters.pool import InterpreterPool, open_interpreter_pool
from wharfinger.pools.interpreters.scripts import Interpreter, WarmStart, warm_start
from wharfinger.pools.interpreters.workers import Job, RefusedError
from wharfinger.pools.memory.budget import MemoryBudget
from wharfinger.process.child import conduct, run_child
from wharfinger.process.command import NO_SINKS, Command, Limits, Outcome, Sinks
from wharfinger.process.ledger import ProcessLedger

log = logging.getLogger(__name__)

MAX_INTERPRETERS: Final = 4
"""The largest number of pools. Scripts share a pool if their interpreter is the same, and the environment variables that the
interpreter reads when it starts have the same values.
"""
IDLE_S: Final = 300.0
"""The time without a started script after which a pool is closed."""
_EXAMINED_AT_ONCE: Final = 8
"""The largest number of runs that are prepared and examined at the same time."""
_MAX_COLD: Final = 4096


class WarmStarts:
    """A runner of commands, which runs a command in a warm worker if possible. Made by :func:`open_warm_starts`.

    ``warm`` counts the runs in a worker, and ``cold`` the runs in a new process.
    """

    def __init__(self, size: int, ledger: ProcessLedger | None, budget: MemoryBudget, nursery: trio.Nursery) -> None:
        self.warm = 0
        self.cold = 0
        self.budget = budget
        self._size = size
        self._ledger = ledger
        self._nursery = nursery
        self._pools: dict[Interpreter, InterpreterPool | None] = {}
        self._never: OrderedDict[str, None] = OrderedDict()
        self._examiners = trio.CapacityLimiter(_EXAMINED_AT_ONCE)

    def pools(self) -> tuple[InterpreterPool, ...]:
        """Return the pools that are open."""
        return tuple(pool for pool in self._pools.values() if pool is not None)

    async def run(
        self,
        command: Command,
        limits: Limits,
        *,
        sinks: Sinks = NO_SINKS,
        prepare: Callable[[], None] | None = None,
    ) -> Outcome:
        """Run a command within its limits. Raises the errors of `run_child`."""
        key = "\0".join(command.argv[:2])
        if key in self._never or not self._size:
            self.cold += 1
            return await run_child(command, limits, sinks=sinks, ledger=self._ledger, prepare=prepare)

        def examine() -> tuple[WarmStart | None, InterpreterPool | None]:
            if prepare is not None:
                prepare()
            found = warm_start(command)
            pool = self._pools.get(found.interpreter) if found is not None else None
            return found, pool if pool is not None and pool.has_changed() else None

        start, changed = await trio.to_thread.run_sync(examine, limiter=self._examiners)
        if changed is not None:
            changed.renew()
        if start is None:
            self._remember_cold(key)
        elif (pool := self._pool(start.interpreter)) is not None and pool.serves and pool.expects_worker():
            try:
                child = (await pool.claim(Job(command, limits, start))).take()
            except (PoolFullError, NoMemberError, ConflictError) as error:
                why = error.__cause__ or error
                log.debug(
                    "%s is started as a new process, because no warm interpreter took it: %s", command.argv[0], why
                )
                if isinstance(error.__cause__, RefusedError):
                    self._remember_cold(key)
            else:
                self.warm += 1
                return await conduct(child, command, limits, sinks=sinks, ledger=self._ledger)
        self.cold += 1
        return await run_child(command, limits, sinks=sinks, ledger=self._ledger)

    def _remember_cold(self, program: str) -> None:
        """Remember that this program is always started as a new process, without reading its script again.

        If the script later changes so that a warm worker could run it, it still runs correctly, only slower.
        """
        self._never[program] = None
        if len(self._never) > _MAX_COLD:
            self._never.popitem(last=False)

    def _pool(self, interpreter: Interpreter) -> InterpreterPool | None:
        """Return the pool of an interpreter; None while it is not open. Begin to open it if the limits allow one more pool."""
        if interpreter not in self._pools and len(self._pools) < MAX_INTERPRETERS and self.budget.admits():
            self._pools[interpreter] = None
            self._nursery.start_soon(self._keep, interpreter, name=f"pool of {interpreter.program}")
        return self._pools.get(interpreter)

    async def _keep(self, interpreter: Interpreter) -> None:
        """Keep a pool open until no script was started in it for IDLE_S seconds."""
        try:
            async with open_interpreter_pool(interpreter, self._size, self._ledger, self.budget) as pool:
                self._pools[interpreter] = pool
                while trio.current_time() < pool.used_at + IDLE_S:  # noqa: ASYNC110 - a time that moves, no event
                    await trio.sleep_until(pool.used_at + IDLE_S)
                self._pools[interpreter] = None
        finally:
            del self._pools[interpreter]


@asynccontextmanager
async def open_warm_starts(size: int, ledger: ProcessLedger | None, budget: MemoryBudget) -> AsyncGenerator[WarmStarts]:
    """Start scripts in warm workers while the block runs. For each interpreter, ``size`` idle workers are kept; 0 turns warm
    starts off.

    When the block is left, no idle worker and no zygote is alive. All runs must have ended before the block is left.
    """
    async with trio.open_nursery() as nursery:
        try:
            yield WarmStarts(size, ledger, budget, nursery)
        finally:
            nursery.cancel_scope.cancel()
