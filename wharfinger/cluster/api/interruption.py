"""Interruption of all waits of a release engine, when the program that uses it stops.

When the program stops, all waits end immediately, because a wait may last forever (a definition that is never established, a
hook's Job that never ends). A write always ends, so it is not interrupted, and the record of the release contains everything
that an operation has done. Code that waits does so inside a block:

    with interruption.waiting("hook Job migrate"):
        await ...

No I/O. Only for the event loop's thread.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from wharfinger.cluster.api.errors import ReleaseError


class WaitInterruptedError(ReleaseError):
    """A wait was ended because the program stops; the awaited state may still be reached."""

    transient = True


class Interruption:
    """The switch that ends all waits of an engine (`interrupt`). It keeps the waits that are under way."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self._cause = ""
        self._waits: set[trio.CancelScope] = set()

    def interrupt(self, cause: str) -> None:
        """End all waits under way, and each later wait as soon as it begins. ``cause`` is shown to users. Idempotent."""
        if self.asked.is_set():
            return
        self._cause = cause
        self.asked.set()
        for wait in self._waits:
            wait.cancel(cause)

    def error(self, what: str) -> WaitInterruptedError:
        """Return the error that an interrupted wait raises; ``what`` names what it was waiting for."""
        return WaitInterruptedError(
            f"interrupted while waiting for {what}: {self._cause}; the operation continues at the next start"
        )

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Let `interrupt` end the block, which waits for ``what``. Raises WaitInterruptedError if the block was ended in this
        way.
        """
        with trio.CancelScope() as wait:
            self._waits.add(wait)
            try:
                if self.asked.is_set():
                    wait.cancel(self._cause)
                yield
            finally:
                self._waits.discard(wait)
        if wait.cancelled_caught:
            raise self.error(what)
