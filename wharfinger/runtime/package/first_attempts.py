"""The first attempts of packages: a package that may need any other package waits until each of the others was tried once.

A chart may use kinds of a package that it does not name as a dependency (spec/runtime §5.2). So before a package is applied,
the definitions of all packages that are loaded and on are ensured, each in a lane of its own and independent of orders. If
definitions cannot be ensured, their own package waits until that succeeds, but the other packages wait for one attempt only (spec
§13 item 11). In the same way, global hooks, which see all Modules, wait until all Modules that are being loaded have been tried.

A wait covers only the attempts that were under way when it began, so a stream of new packages cannot starve it.
"""

from dataclasses import dataclass, field

import trio


@dataclass(slots=True)
class Tries:
    """The packages that are being tried for the first time; each beginning is an attempt with a number."""

    _trying: dict[str, int] = field(default_factory=dict)
    _last: int = 0
    _changed: trio.Event = field(default_factory=trio.Event)

    def begin(self, package: str) -> None:
        """Begin an attempt for a package."""
        self._last += 1
        self._trying[package] = self._last

    def attempt(self, package: str) -> int:
        """Return the number of the package's attempt under way; 0: no attempt is under way."""
        return self._trying.get(package, 0)

    def end(self, package: str, attempt: int | None = None) -> None:
        """End a package's attempt, even an unfinished one. With a number, only if that attempt is under way."""
        if package in self._trying and attempt in (None, self._trying[package]):
            del self._trying[package]
            self._changed.set()
            self._changed = trio.Event()

    def trying(self) -> tuple[str, ...]:
        """Return the packages that are being tried, sorted."""
        return tuple(sorted(self._trying))

    async def wait(self) -> None:
        """Return once the attempts that are under way now have ended.

        A package that ends and begins again in the same step still counts as being tried.
        """
        awaited = set(self._trying)
        while awaited:
            await self._changed.wait()
            awaited &= self._trying.keys()
