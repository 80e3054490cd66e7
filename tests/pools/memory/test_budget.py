"""The memory budget: the processes that it refuses and ends, and its effect on the real processes of all pools."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.pools.interpreters.warm import LIMITS, command_of, package, until, until_ready
from tests.pools.persistent.programs import run_of, serving
from wharfinger.pools.interpreters.warm_start import open_warm_starts
from wharfinger.pools.memory import budget as module
from wharfinger.pools.memory.budget import TYPICAL, IdleProcess, MemoryBudget, longest_idle, open_memory_budget
from wharfinger.pools.memory.footprint import Footprint, footprint
from wharfinger.pools.persistent.programs import open_persistent_programs

MIB = 1024**2


@dataclass(eq=False)
class Holder:
    """A fake pool. Its processes are only numbers in ``busy`` and ``idle``."""

    busy: list[int] = field(default_factory=list)
    idle: dict[int, float] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)

    def busy_processes(self) -> list[int]:
        return self.busy

    def idle_processes(self) -> Iterator[IdleProcess]:
        for pid, since in list(self.idle.items()):
            yield IdleProcess(pid, since, lambda pid=pid: self.end(pid))  # type: ignore[misc]

    def end(self, pid: int) -> None:
        self.ended.append(pid)
        del self.idle[pid]


def sizes(monkeypatch: pytest.MonkeyPatch, found: dict[int, int]) -> None:
    monkeypatch.setattr(
        module, "footprint", lambda pid: Footprint(found[pid], found[pid] // 2) if pid in found else None
    )


async def test_a_process_counts_as_typical_until_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes(monkeypatch, {1: MIB, 2: 20 * MIB})
    budget = MemoryBudget(30 * MIB)
    holder = Holder(busy=[2], idle={1: 0.0})
    with budget.joined(holder):
        assert budget.used == 2 * TYPICAL
        assert budget.admits()
        await budget.measure()
        assert budget.used == 21 * MIB
        holder.idle[3] = 1.0
        assert budget.used == 21 * MIB + TYPICAL
        assert budget.admits()
        holder.idle[4] = 1.0
        assert not budget.has_room()
        assert not budget.admits()
        assert (budget.refused, holder.ended) == (1, [])
    assert budget.used == 0


async def test_one_more_process_counts_as_much_as_the_largest_idle_one_of_its_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes(monkeypatch, {1: 10 * MIB, 2: 9 * MIB, 3: MIB})
    budget = MemoryBudget(28 * MIB)
    large, small = Holder(idle={1: 1.0, 2: 2.0}), Holder(idle={3: 3.0})
    with budget.joined(large), budget.joined(small):
        await budget.measure()
        assert [budget.has_room(holder) for holder in (large, small, None)] == [False, True, True]
        large.end(1)  # Now 10 MiB are used, and 10 MiB more fit.
        assert budget.has_room(large)
        large.idle[4] = 4.0
        assert [budget.has_room(holder) for holder in (large, small, None)] == [True, True, True]


async def test_the_size_of_an_ended_process_is_forgotten_gradually(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    sizes(monkeypatch, {1: 40 * MIB})
    budget = MemoryBudget(12 * MIB)
    holder = Holder(idle={1: 0.0})
    admitted = []
    with budget.joined(holder):
        await budget.measure()
        assert holder.ended == [1]
        for _ in range(5):
            admitted.append(budget.has_room(holder))
            await trio.sleep(module.FORGET_S / 2)
            await budget.measure()
    assert admitted == [False, False, False, False, True]  # The expected sizes are 40, 40, 20, 20 and 10 MiB.


async def test_the_longest_idle_processes_of_all_pools_end_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes(monkeypatch, {1: 10 * MIB, 2: 10 * MIB, 3: 10 * MIB, 4: 10 * MIB, 9: 10 * MIB})
    budget = MemoryBudget(42 * MIB)
    one, other = Holder(busy=[9], idle={1: 5.0, 2: 1.0}), Holder(idle={3: 4.0, 4: 3.0})
    with budget.joined(one), budget.joined(other):
        await budget.measure()  # The processes use 50 MiB, and ending one is expected to free half of its size.
        assert (one.ended, other.ended, budget.ended) == ([2], [4], 2)
        await budget.measure()
        assert budget.ended == 2


async def test_processes_are_measured_at_intervals(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes(monkeypatch, {1: 50 * MIB})
    holder = Holder(idle={1: 0.0})
    async with open_memory_budget(10 * MIB) as budget:
        with budget.joined(holder):
            await budget.wait_measured()
            assert holder.ended == [1]
            assert trio.current_time() == module.MEASURE_S
            await budget.wait_measured()
            assert budget.has_room()


@pytest.mark.parametrize(
    ("admitted", "after_s"), [(True, 1 + module.MEASURE_S), (False, module.EMPTY_S + module.MEASURE_S)]
)
async def test_without_processes_measurements_are_rare_until_an_admission(
    admitted: bool, after_s: float, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes(monkeypatch, {})
    async with open_memory_budget(10 * MIB) as budget:
        with budget.joined(Holder()):
            await trio.sleep(1)
            if admitted:
                assert budget.admits()
            await budget.wait_measured()
            assert trio.current_time() == after_s


async def test_an_admission_during_the_pause_is_remembered(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may be admitted in the pause before a measurement, and start only after the measurement. In that case another
    measurement follows.
    """
    sizes(monkeypatch, {1: 50 * MIB})
    holder = Holder()
    async with open_memory_budget(100 * MIB) as budget:
        with budget.joined(holder):
            await trio.sleep(1)
            assert budget.admits()
            await trio.sleep(0.8 * module.MEASURE_S)
            assert budget.admits()
            await budget.wait_measured()
            holder.idle[1] = 0.0
            await budget.wait_measured()
            assert (trio.current_time(), budget.used) == (1 + 2 * module.MEASURE_S, 50 * MIB)


async def test_a_process_that_starts_late_is_measured_soon(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes(monkeypatch, {1: 50 * MIB})
    holder = Holder()
    async with open_memory_budget(100 * MIB) as budget:
        with budget.joined(holder):
            assert budget.admits()
            await budget.wait_measured()
            holder.idle[1] = 0.0
            budget.note_start()
            await budget.wait_measured()
            assert trio.current_time() == 2 * module.MEASURE_S


@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 50), st.integers(0, 50)), max_size=12), st.integers(-10, 300)
)
def test_no_more_processes_end_than_needed(found: list[tuple[float, int, int]], excess: int) -> None:
    idle = [IdleProcess(pid, since, lambda: None) for pid, (since, _, _) in enumerate(found)]
    known = {pid: Footprint(private + shared, private) for pid, (_, private, shared) in enumerate(found)}
    chosen = longest_idle(idle, known, excess)
    freed = [known[process.pid].private for process in chosen]
    assert sum(freed[:-1]) < max(excess, 1)
    assert sum(freed) >= excess or len(chosen) == len(idle)
    rest = [process.since for process in idle if process not in chosen]
    assert all(process.since <= later for process in chosen for later in rest)


async def test_idle_workers_end_and_runs_start_cold_while_the_budget_is_exceeded(tmp_path: Path) -> None:
    """Real zygotes, workers and a persistent hook share a budget. The processes that are idle the longest end, no new process
    is forked, and each run succeeds.
    """
    script = package(tmp_path / "package", "print('done')")
    program = serving(tmp_path)
    budget = MemoryBudget(1024 * MIB)
    async with open_warm_starts(3, None, budget) as starts, open_persistent_programs(None, budget) as programs:
        await starts.run(command_of(script, tmp_path / "first"), LIMITS)
        await until(starts.pools)
        (pool,) = starts.pools()
        await until_ready(pool, 3)
        assert (await programs.run(run_of(program), LIMITS)).ok
        await budget.measure()
        whole = budget.used
        processes = budget._processes()
        assert len(processes) == 5
        really = [size.total for size in map(footprint, processes) if size is not None]
        assert abs(whole - sum(really)) < whole / 4
        (longest,) = {pid for pid in processes if pid in {next(pool.idle_processes()).pid}}

        budget.limit_bytes = budget.used - budget.used // 50  # One process is too many.
        await budget.measure()
        assert budget.ended == 1
        await until(lambda: not Path(f"/proc/{longest}").exists())
        await budget.measure()
        assert budget.used < whole
        assert len(pool._workers) == 2
        assert not budget.has_room()

        budget.limit_bytes = MIB
        await budget.measure()
        await until(lambda: not len(pool._workers) and not len(programs))
        assert (await starts.run(command_of(script, tmp_path / "second"), LIMITS)).stdout == b"done\n"
        assert (
            await programs.run(run_of(program), LIMITS)
        ).ok  # The program runs on its own, without the variable of persistent runs, and reads the end of its input.
        assert programs.counters.alone == 1
        assert starts.warm == 0
        assert budget.refused >= 2
        assert len(pool._workers) == 0

        budget.limit_bytes = 1024 * MIB
        await budget.measure()
        await until_ready(pool, 3)
        assert (await starts.run(command_of(script, tmp_path / "third"), LIMITS)).stdout == b"done\n"
        assert starts.warm == 1
