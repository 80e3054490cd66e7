"""The pools of warm hooks and of persistent hooks as snapshots, and their names."""

from collections.abc import Iterator, Sequence

from wharfinger.pools.interpreters.pool import InterpreterPool
from wharfinger.pools.interpreters.warm_start import WarmStarts
from wharfinger.pools.persistent.programs import PersistentPrograms, ProgramCounts
from wharfinger.runtime.daemon_details import WarmPoolSnapshot


def named_pools(pools: Sequence[InterpreterPool]) -> Iterator[tuple[str, InterpreterPool]]:
    """Yield each pool with its name: the program, and a number if an earlier pool has the same program."""
    seen: dict[str, int] = {}
    for pool in pools:
        program = pool.interpreter.program
        seen[program] = number = seen.get(program, 0) + 1
        yield (program if number == 1 else f"{program} #{number}"), pool


def warm_pools(starts: WarmStarts) -> tuple[WarmPoolSnapshot, ...]:
    """Return the open pools, sorted by name."""
    return tuple(
        _snapshot(name, pool, starts.budget.limit_bytes)
        for name, pool in sorted(named_pools(starts.pools()), key=lambda named: named[0])
    )


def persistent_pools(programs: PersistentPrograms) -> tuple[WarmPoolSnapshot, ...]:
    """Return the persistent hooks whose processes are kept running, sorted by name."""
    return tuple(_persistent(kept, programs) for kept in programs.kept())


def _persistent(kept: ProgramCounts, programs: PersistentPrograms) -> WarmPoolSnapshot:
    return WarmPoolSnapshot(
        name=kept.owner,
        state="serving",
        size=len(kept.pids),
        ready=len(kept.pids) - kept.busy,
        reserved=kept.busy,
        waiting=0,
        started=kept.runs,
        conflicts=0,
        failed=0,
        expired=0,
        refused=0,
        restarts=0,
        kind="persistent",
        memory_bytes=programs.budget.size_of(kept.pids),
        memory_limit_bytes=programs.budget.limit_bytes,
    )


def _snapshot(name: str, pool: InterpreterPool, limit_bytes: int) -> WarmPoolSnapshot:
    now, counters = pool.snapshot(), pool.metrics.counters
    return WarmPoolSnapshot(
        name=name,
        state="unfit" if pool.unfit else "serving" if pool.serves else "starting",
        size=pool.size,
        ready=now.ready,
        reserved=now.reserved,
        waiting=now.waiting,
        started=counters.succeeded,
        conflicts=counters.conflicts,
        failed=counters.failed,
        expired=counters.expired,
        refused=pool.metrics.refused,
        restarts=pool.restarts,
        problem=pool.unfit,
        memory_bytes=pool.memory_bytes(),
        memory_limit_bytes=limit_bytes,
    )
