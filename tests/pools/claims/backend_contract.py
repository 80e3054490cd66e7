"""The contract of every backend of the claim scheduler. Test classes derive from `BackendContract`, and open a backend with
three idle members.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Generic

import pytest
import trio

from wharfinger.pools.claims.backend import Backend, Claimed, ConflictError, Result, Spec
from wharfinger.pools.claims.events import Lost, Member, Seen


class BackendContract(ABC, Generic[Spec, Result]):
    """The tests of the contract. Derived classes define how the backend is opened."""

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[tuple[Backend[Spec, Result], Spec]]:
        """Open a backend with three idle members, which its ``changes`` have not reported yet. Yield the backend, and the owner
        for which tests claim members.
        """

    def other(self, spec: Spec) -> Spec:
        """Return another owner than ``spec``, or ``spec`` itself if the backend does not distinguish owners."""
        return spec

    async def test_the_first_changes_show_all_members_and_the_second_none(self) -> None:
        async with self.opened() as (backend, _):
            members = shown(backend)
            assert len({member.uid for member in members}) == 3
            assert all(member.idle and not member.protected for member in members)
            assert list(backend.changes()) == []

    async def test_a_claim_is_shown_afterwards(self) -> None:
        async with self.opened() as (backend, spec):
            member = shown(backend)[0]
            claimed = await backend.claim(member, spec)
            assert claimed.version > member.version
            change = backend.changes()[-1]
            assert change == Lost(member.uid) or (
                isinstance(change, Seen) and change.member.version >= claimed.version and not change.member.idle
            )

    async def test_of_two_claims_at_one_version_one_succeeds(self) -> None:
        async with self.opened() as (backend, spec):
            member = shown(backend)[0]
            ends: list[Claimed[Result] | ConflictError] = []

            async def claim(spec: Spec) -> None:
                try:
                    ends.append(await backend.claim(member, spec))
                except ConflictError as error:
                    ends.append(error)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(claim, spec)
                nursery.start_soon(claim, self.other(spec))
            assert sorted(type(end).__name__ for end in ends) == ["Claimed", "ConflictError"]

    async def test_a_claim_of_a_missing_member_is_a_conflict(self) -> None:
        async with self.opened() as (backend, spec):
            with pytest.raises(ConflictError):
                await backend.claim(Member("no-such-member", 1), spec)

    async def test_recycling_a_missing_member_does_nothing(self) -> None:
        async with self.opened() as (backend, _):
            shown(backend)
            await backend.recycle("no-such-member")
            assert list(backend.changes()) == []

    async def test_a_recycled_member_is_idle_again_or_deleted(self) -> None:
        async with self.opened() as (backend, spec):
            member = shown(backend)[0]
            await backend.claim(member, spec)
            await backend.recycle(member.uid)
            change = backend.changes()[-1]
            assert change == Lost(member.uid) or (isinstance(change, Seen) and change.member.idle)
            with pytest.raises(ConflictError):
                await backend.claim(member, spec)


def shown(backend: Backend[Spec, Result]) -> list[Member]:
    """Return the members that the new changes of the backend report."""
    return [change.member for change in backend.changes() if isinstance(change, Seen)]
