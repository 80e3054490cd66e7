"""Retries of source fetches: bounded, and only for errors that another attempt may resolve.

An error is permanent unless it is marked as transient. Waits double from `RetryPolicy.first_s` up to `RetryPolicy.most_s`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import trio

from wharfinger.offline.sources.fetcher import SourceError
from wharfinger.packages.errors import PackageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of attempts in total, and the waits between them."""

    attempts: int = 3
    first_s: float = 0.2
    most_s: float = 3.0


async def with_retries(call: Callable[[], Awaitable[T]], policy: RetryPolicy) -> T:
    """Return the result of ``call``, attempted again after a transient error. Raises SourceError or PackageError."""
    wait = policy.first_s
    for attempt in range(1, max(policy.attempts, 1) + 1):
        try:
            return await call()
        except (SourceError, PackageError) as error:
            if not error.transient or attempt >= policy.attempts:
                raise
        await trio.sleep(wait)
        wait = min(wait * 2, policy.most_s)
    raise AssertionError("the last attempt neither returned nor raised")
