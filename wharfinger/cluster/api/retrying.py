"""Retries of requests to an API server after transient errors: no answer, an overload, an internal error of the server.

These retries are for single requests of callers other than the reconciler, which has its own retries. A ``Retry-After`` of
the server is obeyed; otherwise the delays double, with jitter. An error about the object itself (404, 409, 422, 403) is
raised without a retry, unless the caller lists it in ``also``.
"""

from collections.abc import Awaitable, Callable
from random import random
from typing import Final, TypeVar

import trio

from wharfinger.cluster.api.errors import ApiError, ClusterError, UnreachableError

Result = TypeVar("Result")
ATTEMPTS: Final = 5
FIRST_S: Final = 0.1
PASSING: Final = frozenset({408, 429})


def is_retryable(error: ClusterError) -> bool:
    """Return whether the same request may succeed if it is repeated soon."""
    if isinstance(error, ApiError):
        return error.code in PASSING or error.code >= 500
    return isinstance(error, UnreachableError)


async def with_retries(
    act: Callable[[], Awaitable[Result]],
    *,
    also: tuple[type[ClusterError], ...] = (),
    attempts: int = ATTEMPTS,
    draw: Callable[[], float] = random,
) -> Result:
    """Return the result of ``act``, tried up to ``attempts`` times after transient errors and after the errors in ``also``.

    Raises the last error. ``draw`` returns a number in [0, 1), for the jitter.
    """
    for number in range(attempts - 1):
        try:
            return await act()
        except ClusterError as error:
            if not is_retryable(error) and not isinstance(error, also):
                raise
            asked = error.retry_after_s
        await trio.sleep((FIRST_S * 2**number if asked is None else asked) * (1 + draw() / 4))
    return await act()
