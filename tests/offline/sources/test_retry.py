"""Retries, which are limited in number and follow only transient errors."""

import pytest
import trio
from trio.testing import MockClock

from wharfinger.offline.sources.fetcher import SourceError
from wharfinger.offline.sources.retry import RetryPolicy, with_retries


class Failing:
    """A call that fails a given number of times and then succeeds."""

    def __init__(self, times: int, *, transient: bool = True) -> None:
        self.calls = 0
        self._times = times
        self._transient = transient

    async def __call__(self) -> str:
        await trio.lowlevel.checkpoint()
        self.calls += 1
        if self.calls <= self._times:
            raise SourceError("not now", transient=self._transient)
        return "done"


async def test_a_transient_error_is_retried_with_growing_waits(autojump_clock: MockClock) -> None:
    call = Failing(4)
    start = trio.current_time()
    assert await with_retries(call, RetryPolicy(attempts=5, first_s=0.2, most_s=0.5)) == "done"
    assert call.calls == 5
    assert trio.current_time() - start == pytest.approx(0.2 + 0.4 + 0.5 + 0.5)


async def test_attempts_are_bounded(autojump_clock: MockClock) -> None:
    call = Failing(9)
    with pytest.raises(SourceError, match="not now"):
        await with_retries(call, RetryPolicy(attempts=3))
    assert call.calls == 3


@pytest.mark.parametrize("attempts", [0, 1])
async def test_at_least_one_attempt_is_made(attempts: int, autojump_clock: MockClock) -> None:
    call = Failing(1)
    with pytest.raises(SourceError):
        await with_retries(call, RetryPolicy(attempts=attempts))
    assert call.calls == 1


async def test_a_permanent_error_is_not_retried(autojump_clock: MockClock) -> None:
    call = Failing(1, transient=False)
    with pytest.raises(SourceError):
        await with_retries(call, RetryPolicy())
    assert call.calls == 1
