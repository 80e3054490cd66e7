"""Concurrent calls of one function for many items, with a limit. A ClusterError of a call is raised without an ExceptionGroup."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

import trio

from wharfinger.cluster.api.errors import ClusterError

Item = TypeVar("Item")
Result = TypeVar("Result")


async def each(items: Iterable[Item], act: Callable[[Item], Awaitable[Result]], *, limit: int) -> list[Result]:
    """Call ``act`` for each item, with at most ``limit`` calls under way, and return the results in the order of the items.

    The first ClusterError cancels all other calls, and is raised unchanged. Any other exception is a bug, and is raised in an
    ExceptionGroup.
    """
    numbered = list(enumerate(items))
    results: dict[int, Result] = {}
    errors: dict[int, ClusterError] = {}
    queue: Iterator[tuple[int, Item]] = iter(numbered)

    async def work(scope: trio.CancelScope) -> None:
        for number, item in queue:
            try:
                results[number] = await act(item)
            except ClusterError as error:
                errors[number] = error
                scope.cancel()
                return

    async with trio.open_nursery() as nursery:
        for _ in range(min(limit, len(numbered))):
            nursery.start_soon(work, nursery.cancel_scope)
    if errors:
        raise errors[min(errors)]
    return [results[number] for number, _ in numbered]
