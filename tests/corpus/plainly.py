"""Tests that fail with the error itself, and not with the dozen groups of the tasks that surround it."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec

Parameters = ParamSpec("Parameters")


def plainly(test: Callable[Parameters, Awaitable[None]]) -> Callable[Parameters, Awaitable[None]]:
    """A test whose only error is raised by itself; several still come as a group."""

    @wraps(test)
    async def run(*arguments: Parameters.args, **options: Parameters.kwargs) -> None:
        try:
            await test(*arguments, **options)
        except BaseExceptionGroup as group:
            errors = leaves(group)
            if len(errors) > 1:
                raise
            raise errors[0] from None

    return run


def leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """The errors in a group of groups."""
    found: list[BaseException] = []
    for error in group.exceptions:
        found += leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
