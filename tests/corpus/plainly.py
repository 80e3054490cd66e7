"""A decorator for tests: a single error is raised without the nested exception groups of trio's nurseries."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec

Parameters = ParamSpec("Parameters")


def plainly(test: Callable[Parameters, Awaitable[None]]) -> Callable[Parameters, Awaitable[None]]:
    """Return a test that raises a single error without its exception groups. Several errors are still raised as a group."""

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
    """Return all errors in nested exception groups."""
    found: list[BaseException] = []
    for error in group.exceptions:
        found += leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
