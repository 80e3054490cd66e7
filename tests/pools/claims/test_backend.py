"""The backend of the tests satisfies the contract, so it can represent the real backends."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.pools.claims.backend_contract import BackendContract
from tests.pools.claims.fake_backend import FakeBackend
from wharfinger.pools.claims.backend import Backend, ClaimError, ConflictError


class TestFakeBackend(BackendContract[str, str]):
    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[tuple[Backend[str, str], str]]:
        backend = FakeBackend()
        backend.put("a", "b", "c")
        yield backend, "one"


async def test_the_cache_of_the_fake_lags_until_it_catches_up() -> None:
    backend = FakeBackend()
    backend.put("a")
    backend.changes()
    backend.change_unseen("a")
    assert list(backend.changes()) == []
    backend.catch_up()
    assert len(backend.changes()) == 1


def test_a_conflict_is_a_failed_claim() -> None:
    assert issubclass(ConflictError, ClaimError)
    with pytest.raises(ClaimError, match="late"):
        raise ConflictError("late")
