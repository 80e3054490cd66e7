"""Retries: which errors are retried, when, and how often."""

import pytest
import trio
from trio.testing import MockClock

from wharfinger.cluster.api.errors import (
    ClusterError,
    ConflictError,
    InvalidError,
    NotFoundError,
    UnreachableError,
    api_error,
)
from wharfinger.cluster.api.retrying import ATTEMPTS, is_retryable, with_retries


class Failing:
    """An action that raises these errors one after another and then succeeds."""

    def __init__(self, *errors: ClusterError) -> None:
        self.errors = list(errors)
        self.at: list[float] = []

    async def __call__(self) -> str:
        self.at.append(trio.current_time())
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.mark.parametrize("code", [408, 429, 500, 503, 504])
async def test_transient_errors_are_retried_with_backoff(code: int, autojump_clock: MockClock) -> None:
    act = Failing(api_error(code, "Busy", "not now"), UnreachableError("gone"))
    start = trio.current_time()
    assert await with_retries(act, draw=lambda: 0.0) == "done"
    assert [round(at - start, 6) for at in act.at] == [0, 0.1, 0.3]


async def test_the_servers_retry_after_is_respected(autojump_clock: MockClock) -> None:
    act = Failing(api_error(429, "TooManyRequests", "later", retry_after_s=7.0))
    start = trio.current_time()
    await with_retries(act, draw=lambda: 0.0)
    assert round(act.at[1] - start, 6) == 7


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 422])
async def test_permanent_errors_are_raised_at_once(code: int) -> None:
    error = api_error(code, "No", "no")
    act = Failing(error)
    with pytest.raises(ClusterError) as caught:
        await with_retries(act)
    assert caught.value is error
    assert not is_retryable(error)


async def test_further_error_types_can_be_retried(autojump_clock: MockClock) -> None:
    assert await with_retries(Failing(ConflictError(409, "Conflict", "raced")), also=(ConflictError,)) == "done"


async def test_retries_are_limited(autojump_clock: MockClock) -> None:
    act = Failing(*(UnreachableError(f"number {number}") for number in range(9)))
    with pytest.raises(UnreachableError, match="number 4"):
        await with_retries(act)
    assert len(act.at) == ATTEMPTS


def test_permanent_errors_are_not_retryable() -> None:
    assert not is_retryable(ClusterError("no"))
    assert not is_retryable(InvalidError(422, "Invalid", "no"))
    assert not is_retryable(NotFoundError(404, "NotFound", "no"))
