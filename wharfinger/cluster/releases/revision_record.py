"""The record of the revision that an operation makes. It is either *announced*, that is, written as pending before any object is
changed, or it is written only when the operation is over.

A pending record says that objects of its revision may be in the cluster. An operation announces its revision if a later process
could not see from the objects themselves what was applied. A change needs no announcement if each of its objects carries the
digest of the row for which it was applied (:data:`~wharfinger.cluster.objects.desired.DIGEST_ANNOTATION`). Its record is
written once, when the change is complete. If the change takes longer than QUICK_S, the revision is announced nevertheless, so
that users see that the release is being changed, and a user's helm refuses to change it meanwhile.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

import trio

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.records.record_cache import Stored
from wharfinger.cluster.records.release import Release, ReleaseStatus
from wharfinger.cluster.releases.record_keeper import SETTLE_S, RecordKeeper, failure_text
from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.formats.json.value import JsonObject

QUICK_S: Final = 1.0
"""If a change is still under way after this time in seconds, its revision is announced, even if the change needs no
announcement.
"""

Result = TypeVar("Result")


@dataclass(slots=True)
class RevisionRecord:
    """The record of one new revision. ``last`` is the revision before it; ``back``: the revision is a rollback."""

    keeper: RecordKeeper
    request: ReleaseRequest
    last: Release | None
    hooks: list[JsonObject]
    back: bool = False
    stored: Stored | None = None
    _is_begun: bool = False
    """True once the write of the pending record has begun. From then on, the record may exist, even if the API server did not
    answer.
    """

    async def announce(self) -> None:
        """Write the pending record. Raises ReleaseBusyError if another process was first."""
        self._is_begun = True
        self.stored = await self.keeper.begin(self.request, self.last, self.hooks, back=self.back)

    async def announce_late(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Run ``work`` and return its result; if it takes longer than QUICK_S, write the pending record meanwhile.

        Raises ReleaseBusyError if another process wrote its record first, and the errors of ``work``.
        """
        results: list[Result] = []
        patience = trio.CancelScope()

        async def do() -> None:
            results.append(await work())
            patience.cancel(reason="the change is complete")

        async def announce() -> None:
            with patience:
                await trio.sleep(QUICK_S)
            if not patience.cancel_called:
                await self.announce()  # not cancelled when the work is done, as the server may have written it already

        await each((do, announce), lambda act: act(), limit=2)
        return results[0]

    async def complete(self, description: str) -> Stored:
        """Record that the revision is deployed. Raises ReleaseBusyError if another process has written the record meanwhile."""
        if self.stored is not None:
            return await self.keeper.mark(self.stored, ReleaseStatus.DEPLOYED, description)
        return await self.keeper.write(self.request, self.last, self.hooks, ReleaseStatus.DEPLOYED, description)

    async def fail(self, history: Sequence[Stored], error: BaseException, verb: str) -> None:
        """Record that the revision failed, even after a cancellation.

        If the write fails, the record stays pending, or is missing; the next attempt finds out what was applied. No record is
        written for a revision that was cancelled before the write of its pending record began.
        """
        with trio.CancelScope(shield=True, deadline=trio.current_time() + SETTLE_S), suppress(ClusterError):
            description = failure_text(error, verb)
            if self.stored is None and self._is_begun:
                self.stored = await self.keeper.pending(self.request.owner)
            if self.stored is not None:
                await self.keeper.fail(self.stored, history, description)
            elif not is_cancelled(error):
                failed = await self.keeper.write(self.request, self.last, self.hooks, ReleaseStatus.FAILED, description)
                await self.keeper.trim([*history, failed])


def is_cancelled(error: BaseException) -> bool:
    """Return whether an error consists only of a cancellation."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)
