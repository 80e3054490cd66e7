"""Group commit: concurrent requests wait for the disk together, and no answer shows a state that is not committed yet.

The first request that has to wait lets all other ready tasks run, and then commits the writes of all of them. A read also waits
while there are uncommitted writes, because its answer may show one of them.
"""

import trio

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.storage.interface import CommitError


class Commits:
    """The group commit of one backend: each call of `settle` waits for a commit that includes all earlier writes."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._over: trio.Event | None = None

    async def settle(self) -> None:
        """Wait until all writes so far are committed; return immediately if they already are. Raises CommitError."""
        if self._backend.settled:
            return
        failed_before = self._backend.failed_commits
        if self._over is not None:
            await self._over.wait()
        else:
            over = self._over = trio.Event()
            await trio.lowlevel.cancel_shielded_checkpoint()  # lets other requests write first
            self._over = None
            try:
                self._backend.commit()
            finally:
                over.set()
        if self._backend.failed_commits != failed_before:  # true for every request that waited for this commit
            raise CommitError("the writes could not be committed and were undone; check the disk")
