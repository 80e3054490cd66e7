"""Concurrent calls of one function for many items, a few at a time. A ClusterError is raised as by a single call."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

import trio

from wharfinger.cluster.api.errors import ClusterError

Item = TypeVar("Item")
Result = TypeVar("Result")


async def each(items: Iterable[Item], act: Callable[[Item], Awaitable[Result]], *, limit: int) -> list[Result]:
    """Return the results in the order of the items, with at most ``limit`` calls under way.

    The first ClusterError cancels the remaining calls and is raised unchanged; any other exception is a bug and is raised in
    a group.
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
