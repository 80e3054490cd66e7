"""One sweep for all runs that end at the same time.

A scan of /proc costs as much as there are processes, so a hundred runs that scan separately cost a hundred times a hundred.
Runs that are swept at the same time are therefore swept together: each round (:mod:`wharfinger.process.sweep`) is for all
runs that have asked so far, and a run that is done leaves.

No task and no thread belongs to this module: one of the waiting tasks conducts a round for all, and hands over when its own
run is over. Invariant: while a task waits, one conducts or is about to. An error in a round is raised in the task that
conducted it; the others continue with another round.

There is one /proc for all, and runs that end at the same time (hooks, renders, filters) do not know of each other. So they
meet in the run loop, as the users of trio's worker threads do, and not in an object that is passed to all of them.
"""

from collections.abc import Callable, Sequence
from typing import Final

import trio

from wharfinger.process.descendants import Mark
from wharfinger.process.sweep import Hunt, SweepResult, sweep_round


class SharedSweep:
    """The meeting point of runs that are swept at the same time. ``one_round`` blocks, and is run in a worker thread."""

    def __init__(self, one_round: Callable[[Sequence[Hunt]], None] = sweep_round) -> None:
        self._round = one_round
        self._waiting: dict[Hunt, trio.Event] = {}
        self._conducted = False

    async def sweep(self, mark: Mark, limit_s: float) -> SweepResult:
        """Sweep one run (:func:`~wharfinger.process.sweep.sweep`) in a worker thread, together with all that ask meanwhile.

        To be called where it cannot be cancelled: a sweep that is broken off leaves processes alive.
        """
        hunt = Hunt(mark, limit_s)
        self._waiting[hunt] = trio.Event()
        try:
            while (result := hunt.result) is None:
                if self._conducted:
                    self._waiting[hunt] = trio.Event()  # no await between the check and the next line
                    await self._waiting[hunt].wait()
                else:
                    await self._conduct()
        finally:
            del self._waiting[hunt]
            if not self._conducted:
                self._hand_over()
        return result

    async def _conduct(self) -> None:
        """Conduct a round for all waiting runs, and wake those that it ended."""
        self._conducted = True
        try:
            await trio.lowlevel.checkpoint()  # runs that ask in this turn of the loop join this round
            hunts = [hunt for hunt in self._waiting if hunt.result is None]
            await trio.to_thread.run_sync(self._round, hunts, limiter=trio.CapacityLimiter(1))
        finally:
            self._conducted = False
            for hunt, over in self._waiting.items():
                if hunt.result is not None:
                    over.set()

    def _hand_over(self) -> None:
        """Let another waiting task lead the next round."""
        for hunt, turn in self._waiting.items():
            if hunt.result is None:
                turn.set()
                return


_OF_THIS_RUN: Final = trio.lowlevel.RunVar[SharedSweep]("shared sweep")


def shared_sweep() -> SharedSweep:
    """Return the shared sweep of this trio run."""
    try:
        return _OF_THIS_RUN.get()
    except LookupError:
        made = SharedSweep()
        _OF_THIS_RUN.set(made)
        return made
