"""Shared sweeps. One round kills the processes of all runs whose callers are waiting. No caller waits forever, whatever happens
to other callers and to rounds.

Some tests have real processes. With random rounds, these invariants hold: at most one round runs at a time; each round covers all
callers that are not done; each caller gets the result of its own run, or the error of a round that it conducted.
"""

import errno
from collections.abc import Sequence

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.process.children import alive_with, shell
from wharfinger.process.descendants import Mark
from wharfinger.process.run import start
from wharfinger.process.shared_sweep import SharedSweep, shared_sweep
from wharfinger.process.sweep import SweepResult, SweptRun, sweep_round

LONG = 30.0


class Rounds:
    """A replacement for sweep rounds that ends no processes. Each round takes the next item of ``script``: the number of runs
    that it ends, or None for an error.
    """

    def __init__(self, script: Sequence[int | None]) -> None:
        self.script = list(script)
        self.seen: list[set[str]] = []
        self.running = False

    def __call__(self, runs: Sequence[SweptRun]) -> None:
        assert not self.running
        self.running = True
        self.seen.append({swept.mark.token for swept in runs})
        assert all(swept.result is None for swept in runs)
        over = self.script.pop(0) if self.script else len(runs)
        self.running = False
        if over is None:
            raise OSError(errno.EIO, "the disk of /proc is broken")
        for swept in runs[-over:] if over else []:
            swept.result = SweepResult(int(swept.mark.token), 0)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=8),
    st.lists(st.none() | st.integers(0, 4), max_size=8),
    st.sets(st.integers(0, 7), max_size=3),
)
def test_every_caller_gets_a_result(arrivals: list[int], script: list[int | None], cancelled: set[int]) -> None:
    """Random callers arrive after some turns of the event loop (``arrivals``), and some are ``cancelled`` one turn later."""
    rounds = Rounds(script)
    outcomes: dict[int, SweepResult | OSError | None] = {}

    async def ask(shared: SharedSweep, number: int, turns: int) -> None:
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        with trio.CancelScope() as scope:
            if number in cancelled:
                trio.lowlevel.current_trio_token().run_sync_soon(scope.cancel)
            try:
                outcomes[number] = await shared.sweep(Mark(str(number)), LONG)
            except OSError as error:
                outcomes[number] = error
        if scope.cancelled_caught:
            outcomes[number] = None

    async def main() -> None:
        shared = SharedSweep(rounds)
        with trio.fail_after(LONG):
            async with trio.open_nursery() as everybody:
                for number, turns in enumerate(arrivals):
                    everybody.start_soon(ask, shared, number, turns)

    trio.run(main)
    assert set(outcomes) == set(range(len(arrivals)))
    errors = sum(isinstance(outcome, OSError) for outcome in outcomes.values())
    assert errors <= script.count(None)
    for number, outcome in outcomes.items():
        if isinstance(outcome, SweepResult):
            assert outcome == SweepResult(number, 0)
        elif outcome is None:
            assert number in cancelled


async def test_callers_of_the_same_turn_share_every_round() -> None:
    rounds = Rounds([0, 3])
    shared = SharedSweep(rounds)
    async with trio.open_nursery() as everybody:
        for number in range(5):
            everybody.start_soon(shared.sweep, Mark(str(number)), LONG)
    everyone, ended = rounds.seen[0], rounds.seen[0] - rounds.seen[2]
    assert everyone == {"0", "1", "2", "3", "4"}
    assert rounds.seen[1] == everyone
    assert len(ended) == 3
    assert len(rounds.seen) == 3


async def test_an_error_is_raised_in_the_conducting_task() -> None:
    shared = SharedSweep(Rounds([None]))
    got: list[str] = []

    async def ask(number: int) -> None:
        try:
            await shared.sweep(Mark(str(number)), LONG)
        except OSError:
            got.append("error")
        else:
            got.append("result")

    async with trio.open_nursery() as everybody:
        for number in range(3):
            everybody.start_soon(ask, number)
    assert sorted(got) == ["error", "result", "result"]


def test_each_trio_run_has_its_own_shared_sweep() -> None:
    async def look() -> SharedSweep:
        assert shared_sweep() is shared_sweep()
        return shared_sweep()

    assert trio.run(look) is not trio.run(look)


async def test_many_real_runs_end_in_a_few_rounds(tag: str) -> None:
    rounds: list[int] = []

    def counted(runs: Sequence[SweptRun]) -> None:
        rounds.append(len(runs))
        sweep_round(runs)

    shared = SharedSweep(counted)
    script = "trap '' TERM; sleep 1000 & setsid sleep 1000 & wait"
    children = [await start(shell(script, tag), None) for _ in range(20)]
    results: list[SweepResult] = []

    async def sweep(mark: Mark) -> None:
        results.append(await shared.sweep(mark, LONG))

    async with trio.open_nursery() as everybody:
        for child in children:
            everybody.start_soon(sweep, child.mark)
    for child in children:
        child.popen.wait()
        child.close()
    assert alive_with(tag) == []
    assert {result.left for result in results} == {0}
    assert rounds[0] == len(children)
    assert len(rounds) < len(children) / 2


@pytest.mark.parametrize("conducts", [True, False])
async def test_a_cancelled_caller_does_not_block_others(conducts: bool) -> None:
    """Callers should shield their sweep from cancellation. If one caller does not, the others still get their results."""
    shared = SharedSweep(Rounds([]))
    results: list[SweepResult] = []

    async def leave() -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await shared.sweep(Mark("1"), LONG)

    async def stay() -> None:
        results.append(await shared.sweep(Mark("2"), LONG))

    async with trio.open_nursery() as everybody:
        for task in (leave, stay) if conducts else (stay, leave):
            everybody.start_soon(task)
            if not conducts:
                await trio.lowlevel.checkpoint()
    assert results == [SweepResult(2, 0)]
