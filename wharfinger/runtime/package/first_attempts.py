"""Who is being tried for the first time: others that build on all of them wait until each was tried once, and no longer.

A chart may use kinds of a package that it does not name as a dependency (spec/runtime §5.2). So before a package is applied, the
definitions of all packages that are loaded and on are ensured, each in a lane of its own and independent of orders. One that
cannot be had holds up its own package, for as long as it takes, and the others for one attempt (spec §13 item 11). In the same
way global hooks, which speak of all Modules, wait until those that are being loaded have been.

Who waits, waits for those that were being tried when the wait began: a stream of newcomers starves nobody.
"""

from dataclasses import dataclass, field

import trio


@dataclass(slots=True)
class Tries:
    """Which packages have not been tried yet; each beginning is an attempt with a number."""

    _trying: dict[str, int] = field(default_factory=dict)
    _last: int = 0
    _changed: trio.Event = field(default_factory=trio.Event)

    def begin(self, package: str) -> None:
        """It is about to be tried."""
        self._last += 1
        self._trying[package] = self._last

    def attempt(self, package: str) -> int:
        """The number of the attempt that is waited for; 0: none is."""
        return self._trying.get(package, 0)

    def end(self, package: str, attempt: int | None = None) -> None:
        """It has been tried, or will not be. With a number, only if it is that attempt that is waited for."""
        if package in self._trying and attempt in (None, self._trying[package]):
            del self._trying[package]
            self._changed.set()
            self._changed = trio.Event()

    def trying(self) -> tuple[str, ...]:
        """Those that are waited for, sorted."""
        return tuple(sorted(self._trying))

    async def wait(self) -> None:
        """Return once all that are being tried now have been; one that begins again in the same step goes on being tried."""
        awaited = set(self._trying)
        while awaited:
            await self._changed.wait()
            awaited &= self._trying.keys()
