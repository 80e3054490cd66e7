"""The first attempts of packages to ensure their CRDs, and to load their files. Other packages wait for these attempts.

A chart may use kinds that another package defines, even if that package is not named as a dependency (spec/runtime §5.2). So
before any package is applied, the CRDs of all packages that are loaded and on are ensured. Each package does this in a separate
lane, whatever the package's order is. If the CRDs of a package cannot be ensured, this package waits until a later attempt
succeeds, but all other packages wait only for the first attempt (spec/runtime §13 item 11). In the same way, global hooks, which
see all Modules, wait for the first attempt to load each Module that is being loaded.

:meth:`Tries.wait` waits only for the attempts that were under way when the wait began, so new packages cannot prolong the wait
forever.
"""

from dataclasses import dataclass, field

import trio


@dataclass(slots=True)
class Tries:
    """The packages whose first attempt to ensure CRDs or to load files is under way. Each attempt has a number."""

    _trying: dict[str, int] = field(default_factory=dict)
    _last: int = 0
    _changed: trio.Event = field(default_factory=trio.Event)

    def begin(self, package: str) -> None:
        """Record that the first attempt of a package has begun, so that others wait for its end."""
        self._last += 1
        self._trying[package] = self._last

    def attempt(self, package: str) -> int:
        """Return the number of the package's first attempt, if it is under way; otherwise 0."""
        return self._trying.get(package, 0)

    def end(self, package: str, attempt: int | None = None) -> None:
        """End a package's attempt, whether it has succeeded or not. If ``attempt`` is given, end only the attempt with this
        number.
        """
        if package in self._trying and attempt in (None, self._trying[package]):
            del self._trying[package]
            self._changed.set()
            self._changed = trio.Event()

    def trying(self) -> tuple[str, ...]:
        """Return the packages whose attempts are under way, sorted."""
        return tuple(sorted(self._trying))

    async def wait(self) -> None:
        """Wait until the attempts that are under way now have ended.

        If a package begins another attempt before the waiting task has noticed the end of the awaited one, the task waits for
        the new attempt as well.
        """
        awaited = set(self._trying)
        while awaited:
            await self._changed.wait()
            awaited &= self._trying.keys()
