"""Ask an API server again after what passes by itself: no answer, an overload, an error of its own.

For single requests of whoever has no reconciler to try again for him. What the server asked for (``Retry-After``) is waited;
otherwise the waits double, with jitter. What says something about the object (404, 409, 422, 403) is raised at once.
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


def is_passing(error: ClusterError) -> bool:
    """Whether the same request may well succeed in a moment."""
    if isinstance(error, ApiError):
        return error.code in PASSING or error.code >= 500
    return isinstance(error, UnreachableError)


async def patiently(
    act: Callable[[], Awaitable[Result]],
    *,
    also: tuple[type[ClusterError], ...] = (),
    attempts: int = ATTEMPTS,
    draw: Callable[[], float] = random,
) -> Result:
    """What ``act`` gives, tried up to ``attempts`` times after errors that pass, and after ``also``.

    Raises the last error. ``draw`` gives [0, 1), for the jitter.
    """
    for number in range(attempts - 1):
        try:
            return await act()
        except ClusterError as error:
            if not is_passing(error) and not isinstance(error, also):
                raise
            asked = error.retry_after_s
        await trio.sleep((FIRST_S * 2**number if asked is None else asked) * (1 + draw() / 4))
    return await act()
