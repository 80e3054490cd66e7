"""One sweep for all runs that end at the same time. A *sweep* kills all processes of a run (:mod:`wharfinger.process.sweep`).

A sweep scans /proc, in one or more rounds. The cost of a scan grows with the number of processes. With one scan for each run, the
total cost would grow with the square of the number of runs. So runs that are swept at the same time share rounds: each round is
for all runs for which a sweep was requested and has not ended.

This module has no task and no thread of its own: one of the waiting tasks conducts rounds for all, and hands over to another
task when its own run is done. Invariant: while tasks wait, one of them conducts a round, or is about to. An error in a round
is raised in the task that conducted it; the others continue with another round.

The `SharedSweep` object is a variable of the trio run (like trio's limiter for worker threads), and not an argument, because
runs that end at the same time (hooks, renders, filters) belong to independent parts of the program.
"""

from collections.abc import Callable, Sequence
from typing import Final

import trio

from wharfinger.process.descendants import Mark
from wharfinger.process.sweep import SweepResult, SweptRun, sweep_round


class SharedSweep:
    """Kills the leftover processes of all runs that end at the same time. ``one_round`` performs one round for several runs; it
    blocks, so it runs in a worker thread.
    """

    def __init__(self, one_round: Callable[[Sequence[SweptRun]], None] = sweep_round) -> None:
        self._round = one_round
        self._waiting: dict[SweptRun, trio.Event] = {}
        self._conducted = False

    async def sweep(self, mark: Mark, limit_s: float) -> SweepResult:
        """Sweep one run (:func:`~wharfinger.process.sweep.sweep`) in a worker thread, together with other runs.

        Call it shielded from cancellation: a sweep that is broken off leaves processes alive.
        """
        swept = SweptRun(mark, limit_s)
        self._waiting[swept] = trio.Event()
        try:
            while (result := swept.result) is None:
                if self._conducted:
                    self._waiting[swept] = trio.Event()  # no await between the check and the next line
                    await self._waiting[swept].wait()
                else:
                    await self._conduct()
        finally:
            del self._waiting[swept]
            if not self._conducted:
                self._hand_over()
        return result

    async def _conduct(self) -> None:
        """Perform one round of sweeping (ending leftover processes) for all waiting runs, and wake the tasks of the runs whose
        sweep is complete.
        """
        self._conducted = True
        try:
            await trio.lowlevel.checkpoint()  # runs that are added in this turn of the loop join this round
            runs = [swept for swept in self._waiting if swept.result is None]
            await trio.to_thread.run_sync(self._round, runs, limiter=trio.CapacityLimiter(1))
        finally:
            self._conducted = False
            for swept, over in self._waiting.items():
                if swept.result is not None:
                    over.set()

    def _hand_over(self) -> None:
        """Wake another waiting task, so that it conducts the next round."""
        for swept, turn in self._waiting.items():
            if swept.result is None:
                turn.set()
                return


_OF_THIS_RUN: Final = trio.lowlevel.RunVar[SharedSweep]("shared sweep")


def shared_sweep() -> SharedSweep:
    """Return the sweep that all tasks of this trio run share."""
    try:
        return _OF_THIS_RUN.get()
    except LookupError:
        made = SharedSweep()
        _OF_THIS_RUN.set(made)
        return made
