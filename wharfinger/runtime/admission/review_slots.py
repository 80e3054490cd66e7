"""The slots of reviews: they limit how many hooks answer API servers at the same time.

A free slot goes to the waiting package with the fewest slots. A package without a slot may get any free slot. Slots beyond the
first one of a package are *further* slots. At most eight of the sixteen slots may be further slots, over all packages. So a
package without a slot does not wait while fewer than eight other packages have slots.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

AT_ONCE: Final = 16
FURTHER: Final = 8
"""The limit on additional slots, counted over all packages. The first slot of each package is not an additional slot."""


@dataclass(slots=True)
class ReviewSlots:
    """The slots for the reviews of one daemon. Runs of one package wait in the order of their arrival."""

    _free: int = field(default_factory=lambda: AT_ONCE)
    _used: dict[str, int] = field(default_factory=dict)
    """The number of slots of each package that has at least one."""
    _waiting: dict[trio.Event, str] = field(default_factory=dict)
    """The packages of the runs that wait, in the order of their arrival."""

    @property
    def packages(self) -> frozenset[str]:
        """The packages that have a slot or wait for one."""
        return frozenset((*self._used, *self._waiting.values()))

    @asynccontextmanager
    async def use(self, package: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it for the block."""
        turn = trio.Event()
        self._waiting[turn] = package
        self._hand_out()
        try:
            await turn.wait()
            yield
        finally:
            if self._waiting.pop(turn, None) is None:
                self._release(package)

    def _hand_out(self) -> None:
        """Give free slots to the waiting runs that may have a slot."""
        while self._free and self._waiting:
            turn = min(self._waiting, key=lambda each: self._used.get(self._waiting[each], 0))
            package = self._waiting[turn]
            used = self._used.get(package, 0)
            if used and AT_ONCE - self._free - len(self._used) >= FURTHER:
                return  # every waiting run belongs to a package that has a slot
            del self._waiting[turn]
            self._used[package] = used + 1
            self._free -= 1
            turn.set()

    def _release(self, package: str) -> None:
        self._free += 1
        self._used[package] -= 1
        if not self._used[package]:
            del self._used[package]
        self._hand_out()
