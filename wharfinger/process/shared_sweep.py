"""One sweep for all runs that end at the same time.

Looking through /proc costs as much as there are processes, so a hundred runs that each look for themselves cost a hundred
times a hundred. Here whoever sweeps at the same time is swept together: each round (:mod:`wharfinger.process.sweep`) is for
everybody who has asked so far, and whoever is done goes.

There is no task and no thread that belongs to this: one of those who wait conducts a round for all, and hands over when
its own run is over. Invariant: while somebody waits, somebody conducts or is about to, so nobody waits for nobody. What
goes wrong in a round is raised to whom it happened to; the others go on with another one.

/proc is one for all, and those who end at the same time (hooks, renders, filters) do not know of each other. So they meet
in the run loop, as the users of trio's worker threads do, and not in something that is handed to all of them.
"""

from collections.abc import Callable, Sequence
from typing import Final

import trio

from wharfinger.process.descendants import Mark
from wharfinger.process.sweep import Hunt, SweepResult, sweep_round


class SharedSweep:
    """Where those meet who sweep at the same time. ``one_round`` blocks, and is run in a worker thread."""

    def __init__(self, one_round: Callable[[Sequence[Hunt]], None] = sweep_round) -> None:
        self._round = one_round
        self._waiting: dict[Hunt, trio.Event] = {}
        self._conducted = False

    async def sweep(self, mark: Mark, limit_s: float) -> SweepResult:
        """:func:`~wharfinger.process.sweep.sweep` for one run, in a worker thread, together with all who ask meanwhile.

        To be called where it cannot be cancelled: a sweep that is broken off leaves somebody alive.
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
        """A round for all who wait; those that are over by it go on."""
        self._conducted = True
        try:
            await trio.lowlevel.checkpoint()  # whoever asks in this turn of the loop comes along
            hunts = [hunt for hunt in self._waiting if hunt.result is None]
            await trio.to_thread.run_sync(self._round, hunts, limiter=trio.CapacityLimiter(1))
        finally:
            self._conducted = False
            for hunt, over in self._waiting.items():
                if hunt.result is not None:
                    over.set()

    def _hand_over(self) -> None:
        """Let one of those who wait conduct the next round."""
        for hunt, turn in self._waiting.items():
            if hunt.result is None:
                turn.set()
                return


_OF_THIS_RUN: Final = trio.lowlevel.RunVar[SharedSweep]("shared sweep")


def shared_sweep() -> SharedSweep:
    """The one of this trio run."""
    try:
        return _OF_THIS_RUN.get()
    except LookupError:
        made = SharedSweep()
        _OF_THIS_RUN.set(made)
        return made
