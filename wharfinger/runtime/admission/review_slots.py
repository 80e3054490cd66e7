"""The slots of reviews: how many hooks answer API servers at once, in total and for each package.

A package whose hooks are slow, or are asked often, takes its own slots only, so the reviews of other packages do not wait for it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

AT_ONCE: Final = 16
OF_ONE_PACKAGE: Final = 8
"""The number of slots that one package may take: the others are left to other packages."""


@dataclass(slots=True)
class _Share:
    """The slots of one package, and the number of its runs that have one or wait for one."""

    limiter: trio.CapacityLimiter
    runs: int = 0


@dataclass(slots=True)
class ReviewSlots:
    """The slots of a daemon. Runs wait in the order of their arrival."""

    _all: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(AT_ONCE))
    _shares: dict[str, _Share] = field(default_factory=dict)

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that have slots or wait for some."""
        return tuple(self._shares)

    @asynccontextmanager
    async def use(self, package: str) -> AsyncIterator[None]:
        """Hold a slot for the block; first wait for one of the package's, then for one of all."""
        share = self._shares.setdefault(package, _Share(trio.CapacityLimiter(OF_ONE_PACKAGE)))
        share.runs += 1
        holder = object()  # not the task: it may hold slots of two runs
        try:
            async with _held(share.limiter, holder), _held(self._all, holder):
                yield
        finally:
            share.runs -= 1
            if not share.runs:
                del self._shares[package]


@asynccontextmanager
async def _held(limiter: trio.CapacityLimiter, holder: object) -> AsyncIterator[None]:
    await limiter.acquire_on_behalf_of(holder)
    try:
        yield
    finally:
        limiter.release_on_behalf_of(holder)
