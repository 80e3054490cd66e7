"""The programs of all hooks that keep running: the choice of the program for a run, and the end of each program.

A run gets an idle program of its hook, or a new program. At most MAX_PROGRAMS are kept, within the memory budget of the pools. If
there are MAX_PROGRAMS already, the one that has been idle longest ends to make room. If none is idle, or if the
memory budget allows no further program, the run is a separate process.

A program also ends in these cases: it has been idle for IDLE_S; it has done MAX_RUNS runs; the file, the arguments or the
environment of its hook have changed, for example with a new version of the package; it breaks the protocol; its run is cancelled;
or it is idle when the pools take more memory than the budget.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

import trio

from wharfinger.pools.memory.budget import IdleProcess, MemoryBudget
from wharfinger.pools.persistent.program import NotBegunError, Program
from wharfinger.process.child import run_child
from wharfinger.process.command import NO_SINKS, Command, Limits, Outcome, Sinks
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.run import in_thread

log = logging.getLogger(__name__)

MAX_PROGRAMS: Final = 16
MAX_RUNS: Final = 1000
"""A program ends after this number of runs, so that a memory leak in it does not grow forever."""
IDLE_S: Final = 300.0
_LOOK_S: Final = 10.0
"""The time between two searches for programs that have been idle for long."""

_Kind: TypeAlias = tuple[object, ...]
"""Everything that the runs of one program have in common: the command with its environment, the limits, and the files that the
command names. A run for which any of these differs needs another program.
"""


@dataclass(frozen=True, slots=True)
class PersistentRun:
    """A run of a hook. ``owner`` is the name of the hook, unique among all packages.

    ``command`` is equal for all runs that one program serves. ``variables`` are the environment variables of this run alone.
    """

    owner: str
    command: Command
    variables: Mapping[str, str]


@dataclass(slots=True)
class Counters:
    """Sums since the start. ``runs``: runs that a persistent program served. ``alone``: runs for which a process of their own
    was started. ``broken``: programs that ended during a run.
    """

    runs: int = 0
    alone: int = 0
    started: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True)
class ProgramCounts:
    """The programs of one hook that run now: their process ids, how many of them serve a run, and the runs they have served."""

    owner: str
    pids: tuple[int, ...]
    busy: int
    runs: int


@dataclass(eq=False, slots=True)
class _Kept:
    """A program, the hook that it belongs to, and whether it serves a run now."""

    owner: str
    kind: _Kind
    program: Program
    busy: bool = True


class PersistentPrograms:
    """A runner of commands in programs that keep running. Made by :func:`open_persistent_programs`."""

    def __init__(self, ledger: ProcessLedger | None, budget: MemoryBudget, nursery: trio.Nursery) -> None:
        self.counters = Counters()
        self._ledger = ledger
        self._budget = budget
        self._nursery = nursery
        self._kept: list[_Kept] = []
        self._newest: dict[str, _Kind] = {}

    def __len__(self) -> int:
        """Return the number of programs that run."""
        return len(self._kept)

    def kept(self) -> tuple[ProgramCounts, ...]:
        """Return the counts of the running programs, one entry for each hook, sorted by the hook's name."""
        found: dict[str, list[_Kept]] = {}
        for each in self._kept:
            found.setdefault(each.owner, []).append(each)
        return tuple(
            ProgramCounts(
                owner,
                tuple(each.program.pid for each in of_owner),
                sum(each.busy for each in of_owner),
                sum(each.program.runs for each in of_owner),
            )
            for owner, of_owner in sorted(found.items())
        )

    @property
    def budget(self) -> MemoryBudget:
        """The memory budget that the programs share with other pools."""
        return self._budget

    def busy_processes(self) -> Iterator[int]:
        """Yield the process ids of the programs that serve a run."""
        return (kept.program.pid for kept in self._kept if kept.busy)

    def idle_processes(self) -> Iterator[IdleProcess]:
        """Yield the processes of the programs that wait for a run."""
        return (
            IdleProcess(kept.program.pid, kept.program.idle_since, kept.program.end)
            for kept in self._kept
            if not kept.busy
        )

    async def run(
        self,
        run: PersistentRun,
        limits: Limits,
        *,
        sinks: Sinks = NO_SINKS,
        prepare: Callable[[], None] | None = None,
    ) -> Outcome:
        """Serve a run within its limits. ``prepare`` is called once, in a thread. Raises the errors of `run_child`.

        If the call is cancelled during the run, the program is dead when the call raises.
        """

        def begin() -> tuple[object, ...]:
            if prepare is not None:
                prepare()
            return _identity(run.command.argv)

        kind = _kind_of(run.command, limits, await in_thread(begin))
        self._newest[run.owner] = kind
        self._end_outdated(run.owner)
        while (kept := self._idle(run.owner, kind) or await self._started(run, kind, limits)) is not None:
            try:
                outcome = await kept.program.run(run.variables, limits, sinks)
            except NotBegunError:  # only a program that has served a run before raises this
                continue
            finally:
                await self._give_back(kept)
            self.counters.runs += 1
            return outcome
        self._forget(run.owner)
        self.counters.alone += 1
        environment = {**run.command.env, **run.variables}
        return await run_child(replace(run.command, env=environment), limits, sinks=sinks, ledger=self._ledger)

    def _idle(self, owner: str, kind: _Kind) -> _Kept | None:
        """Return a hook's most recently used idle program, marked as busy; None if there is none.

        Because the most recently used one is chosen, surplus programs stay idle until they end.
        """
        found = [kept for kept in self._kept if kept.owner == owner and kept.kind == kind and not kept.busy]
        for kept in sorted(found, key=lambda each: each.program.idle_since, reverse=True):
            if kept.program.usable:
                kept.busy = True
                return kept
            kept.program.end()
        return None

    async def _started(self, run: PersistentRun, kind: _Kind, limits: Limits) -> _Kept | None:
        """Start a program for a run; return None if a limit is reached. Raises ProcessError."""
        if not self._make_room():
            return None
        kept = _Kept(run.owner, kind, Program(run.command, limits))
        self._kept.append(kept)
        try:
            await self._nursery.start(self._live, kept)
        except BaseException:
            if kept in self._kept:
                self._kept.remove(kept)
            raise
        self.counters.started += 1
        return kept

    def _make_room(self) -> bool:
        """End idle programs until there are fewer than MAX_PROGRAMS; return False if a limit still allows no further program."""
        while len([kept for kept in self._kept if kept.busy or kept.program.usable]) >= MAX_PROGRAMS:
            idle = [kept for kept in self._kept if not kept.busy and kept.program.usable]
            if not idle:
                return False
            min(idle, key=lambda kept: kept.program.idle_since).program.end()
        return self._budget.admits(self)

    async def _live(self, kept: _Kept, *, task_status: trio.TaskStatus[None]) -> None:
        """Run a program until it has ended. Raises ProcessError if it could not be started."""
        try:
            await kept.program.live(self._ledger, task_status=task_status)
        except ProcessError as error:
            if not kept.program.pid:
                raise
            log.warning("the program of hook %s: %s", kept.owner, error)
        finally:
            self._kept.remove(kept)
            self._forget(kept.owner)

    def _forget(self, owner: str) -> None:
        """If the hook has no running program any more, forget the kind of its newest run."""
        if not any(kept.owner == owner for kept in self._kept):
            self._newest.pop(owner, None)

    async def _give_back(self, kept: _Kept) -> None:
        """Take back a program after a run. Make it idle if it can serve further runs of its hook; otherwise end it, and wait
        until it is dead. This wait cannot be cancelled, and is bounded in time.
        """
        program = kept.program
        if program.over.is_set():
            self.counters.broken += 1
        elif program.runs >= MAX_RUNS or kept.kind != self._newest.get(kept.owner) or not program.usable:
            program.end()
            with trio.CancelScope(shield=True):
                await program.over.wait()
        kept.busy = False

    def _end_outdated(self, owner: str) -> None:
        """End the idle programs of a hook that could not serve its newest run, because that run needs a program of another
        kind.
        """
        for kept in self._kept:
            if kept.owner == owner and not kept.busy and kept.kind != self._newest[owner]:
                kept.program.end()

    async def end_idle(self) -> None:
        """End each program that has been idle for IDLE_S seconds. Runs until cancelled."""
        while True:
            await trio.sleep(_LOOK_S)
            for kept in self._kept:
                if not kept.busy and kept.program.idle_since + IDLE_S <= trio.current_time():
                    kept.program.end()


def _identity(argv: tuple[str, ...]) -> tuple[object, ...]:
    """Return values that change if a file of the command line is replaced. Blocking."""
    found: list[object] = []
    for word in argv:
        if word.startswith("/"):
            with suppress(OSError):
                status = Path(word).stat()
                found += (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
    return tuple(found)


def _kind_of(command: Command, limits: Limits, identity: tuple[object, ...]) -> _Kind:
    bounds = (limits.memory_bytes, limits.processes, limits.open_files, limits.file_bytes)
    environment = tuple(sorted(command.env.items()))
    return command.argv, str(command.cwd), environment, command.user, command.wrapper, bounds, identity


@asynccontextmanager
async def open_persistent_programs(
    ledger: ProcessLedger | None, budget: MemoryBudget
) -> AsyncGenerator[PersistentPrograms]:
    """Keep programs of hooks running while the block runs; all programs are dead when it is left. All runs must have ended before
    the block is left.
    """
    async with trio.open_nursery() as nursery:
        programs = PersistentPrograms(ledger, budget, nursery)
        nursery.start_soon(programs.end_idle, name="idle programs of hooks")
        with budget.joined(programs):
            try:
                yield programs
            finally:
                nursery.cancel_scope.cancel()
