"""The module-wide phase of CustomResourceDefinitions: whoever may use them waits until they have been tried, and no longer.

A chart may use kinds of a package that it does not name as a dependency (spec/runtime §5.2). So before a package is applied, the
definitions of all packages that are loaded and on are ensured, each in a lane of its own and independent of orders. One that
cannot be had holds up its own package, for as long as it takes, and the others for one attempt (spec §13 item 11).
"""

from dataclasses import dataclass, field

import trio


@dataclass(slots=True)
class CrdPhase:
    """Which packages' definitions have not been tried yet."""

    _trying: set[str] = field(default_factory=set)
    _changed: trio.Event = field(default_factory=trio.Event)

    def begin(self, package: str) -> None:
        """Its definitions are about to be ensured."""
        self._trying.add(package)

    def end(self, package: str) -> None:
        """They have been tried, or will not be."""
        if package in self._trying:
            self._trying.discard(package)
            self._changed.set()
            self._changed = trio.Event()

    def trying(self) -> tuple[str, ...]:
        """Those that are waited for, sorted."""
        return tuple(sorted(self._trying))

    async def wait(self) -> None:
        """Return once all have been tried."""
        while self._trying:
            await self._changed.wait()
