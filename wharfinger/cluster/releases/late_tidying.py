"""The tidying of histories some time after their last revision: older revisions are marked as superseded, and the oldest are
removed.

If the record of a revision is written only once (:mod:`~wharfinger.cluster.releases.revision_record`), the preceding revision
stays marked as deployed. If several revisions are marked as deployed, Helm and this engine use the newest of them, so the older
ones need not be marked as superseded immediately. This is done TIDY_S later, one release after the other; by then, a change of
many packages is usually over. A daemon that is restarted before the tidying finds such revisions when it reads the history of
the release.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.record_cache import Stored
from wharfinger.cluster.records.release import ReleaseStatus
from wharfinger.cluster.releases.record_keeper import RecordKeeper
from wharfinger.formats.json.value import ShapeError

TIDY_S: Final = 60.0
"""The time in seconds from the first change of a release since its history was last tidied to the next tidying."""

log = logging.getLogger(__name__)


class LateTidying:
    """The releases whose histories are to be tidied. ``turn`` returns a context manager, in whose block no other operation runs
    on a release; ``is_busy`` returns whether an operation runs on a release now.
    """

    def __init__(
        self,
        keeper: RecordKeeper,
        turn: Callable[[Owner], AbstractAsyncContextManager[None]],
        is_busy: Callable[[Owner], bool],
    ) -> None:
        self._keeper = keeper
        self._turn = turn
        self._is_busy = is_busy
        self._due: dict[Owner, float] = {}
        self._added = trio.Event()

    def add(self, owner: Owner) -> None:
        """Plan to tidy the history of a release in TIDY_S seconds. If that is already planned, the earlier time stays."""
        self._due.setdefault(owner, trio.current_time() + TIDY_S)
        self._added.set()

    def add_if_needed(self, owner: Owner, history: Sequence[Stored]) -> None:
        """Plan the tidying of a release's history if a revision other than the last one is marked as deployed."""
        if any(stored.release.status is ReleaseStatus.DEPLOYED for stored in history[:-1]):
            self.add(owner)

    def drop(self, owner: Owner) -> None:
        """Forget a release, because it has no history any more, or another daemon manages it."""
        self._due.pop(owner, None)

    def __len__(self) -> int:
        """Return the number of releases that wait."""
        return len(self._due)

    async def run(self) -> None:
        """Tidy histories when they are due, until cancelled."""
        while True:
            while not self._due:
                self._added = trio.Event()
                await self._added.wait()
            owner, due_s = next(iter(self._due.items()))
            await trio.sleep_until(due_s)
            if self._due.pop(owner, None) is not None:
                await self._tidy(owner)

    async def _tidy(self, owner: Owner) -> None:
        if self._is_busy(owner):  # an operation may take hours, and the other releases must not wait for it
            self.add(owner)
            return
        try:
            async with self._turn(owner):
                history = await self._keeper.history(owner)
                last = history[-1].release if history else None
                if last is not None and last.holder and last.status is ReleaseStatus.DEPLOYED:
                    await self._keeper.tidy(history)
        except (ClusterError, ShapeError) as error:
            log.info("release %s: cannot mark its older revisions as superseded; trying again later: %s", owner, error)
            self.add(owner)
