"""The end of all waits of a release engine: asked for when its user stops.

A wait may take for ever (a definition that is never established, a hook's Job that never ends), a write doesn't. So a stop ends
the waits at once and lets each write come to its end, and what an operation has done so far stands in its record. Code that
waits says so:

    with interruption.waiting("hook Job migrate"):
        await ...

No I/O. Only for the event loop's thread.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from wharfinger.cluster.api.errors import ReleaseError


class WaitInterruptedError(ReleaseError):
    """A wait was ended because its user stops; what it waited for may still come."""

    transient = True


class Interruption:
    """Whether waits are to end, and those that are under way."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self._cause = ""
        self._waits: set[trio.CancelScope] = set()

    def interrupt(self, cause: str) -> None:
        """End all waits, those that begin later as well. ``cause`` is shown to people. Idempotent."""
        if self.asked.is_set():
            return
        self._cause = cause
        self.asked.set()
        for wait in self._waits:
            wait.cancel(cause)

    def error(self, what: str) -> WaitInterruptedError:
        """The error of a wait that is ended."""
        return WaitInterruptedError(f"interrupted while waiting for {what}: {self._cause}; the next start goes on")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Wait inside the block. Raises WaitInterruptedError where the wait was ended."""
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
