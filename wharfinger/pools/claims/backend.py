"""The protocol between the claim scheduler and the members of a pool, which are processes, pods, or fakes in tests.

A backend watches its members and changes them. All implementations pass `tests/pools/claims/backend_contract.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from wharfinger.pools.claims.events import Lost, Member, Seen

Spec = TypeVar("Spec")
Spec_contra = TypeVar("Spec_contra", contravariant=True)
Result = TypeVar("Result")


class ClaimError(Exception):
    """A claim failed. After a ConflictError, others may have changed the member. After any other ClaimError, the member is
    unchanged, or has left the pool.
    """


class ConflictError(ClaimError):
    """A claim came too late: the member was changed or removed by others, or is not idle any more."""


@dataclass(frozen=True, slots=True)
class Claimed(Generic[Result]):
    """A claimed member: its version after the claim, and the result for the caller."""

    version: int
    result: Result


class Backend(Protocol[Spec_contra, Result]):
    """A pool of members. The scheduler calls no method once its own ``async with`` block has ended."""

    def changes(self) -> Sequence[Seen | Lost]:
        """Return what has changed in the backend's cache of members since the last call. The first call returns all members.
        Never waits.

        The backend calls `PoolScheduler.notify_idle` when there are more changes.
        """
        ...

    async def claim(self, member: Member, spec: Spec_contra, /) -> Claimed[Result]:
        """Claim a member at exactly the version ``member.version``, all or nothing.

        If several callers claim the member at the same version, at most one claim succeeds. A claim that succeeds returns a
        version that is higher than ``member.version``; later, `changes` returns the member with at least this version, or reports
        it as lost. Raises ConflictError if the claim came too late, and ClaimError for any other reason. A claim takes a bounded
        time. A cancelled call may have claimed the member, so the scheduler then calls `recycle`.
        """
        ...

    async def recycle(self, uid: str) -> None:
        """Take back or remove a member that no caller wants; do nothing if there is no such member. Raises no errors."""
        ...
