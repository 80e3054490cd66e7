"""An Inspector that answers what a test put into it."""

from dataclasses import dataclass, replace

from tests.debug.samples import DAEMON, PACKAGES
from wharfinger.runtime.inspector import DaemonSnapshot, PackageSnapshot, QueueSnapshot


@dataclass
class CannedInspector:
    """Fixed answers, sorted and counted as a daemon does it."""

    contents: tuple[PackageSnapshot, ...] = PACKAGES
    base: DaemonSnapshot = DAEMON

    async def daemon(self) -> DaemonSnapshot:
        """The daemon, with the number of its packages."""
        return replace(self.base, packages=len(self.contents))

    async def packages(self) -> tuple[PackageSnapshot, ...]:
        """All packages, sorted by name."""
        return tuple(sorted(self.contents, key=lambda package: package.name))

    async def package(self, name: str) -> PackageSnapshot | None:
        """One package by its name, or None."""
        return next((package for package in self.contents if package.name == name), None)

    async def queues(self) -> tuple[QueueSnapshot, ...]:
        """All queues, sorted by name."""
        return tuple(package.queue for package in await self.packages())
