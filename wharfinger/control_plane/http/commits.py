"""One wait for the disk for all requests of one moment: an answer is sent after the commit of the state that it shows.

The first request that has to wait lets all other tasks run that are ready, then commits the writes of all of them. Reads
wait too while something is uncommitted, because they may have seen it.
"""

import trio

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.storage.interface import CommitError


class Commits:
    """The commits of one backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._over: trio.Event | None = None

    async def settle(self) -> None:
        """Return when all that was written by now is committed, at once where it is. Raises CommitError."""
        if self._backend.settled:
            return
        failed_before = self._backend.failed_commits
        if self._over is not None:
            await self._over.wait()
        else:
            over = self._over = trio.Event()
            await trio.lowlevel.cancel_shielded_checkpoint()  # others wait for this one
            self._over = None
            try:
                self._backend.commit()
            finally:
                over.set()
        if self._backend.failed_commits != failed_before:  # whichever request tried to commit
            raise CommitError("what was written could not be kept, and was undone; look at the disk")
