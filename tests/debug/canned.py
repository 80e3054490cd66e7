"""An Inspector that answers what a test put into it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.debug.samples import DAEMON, NODES, PACKAGES, RENDERED
from wharfinger.runtime.inspector import DaemonSnapshot, NodeSnapshot, PackageSnapshot, QueueSnapshot, RenderSnapshot


@dataclass
class CannedInspector:
    """Fixed answers, sorted and counted as a daemon does it."""

    contents: tuple[PackageSnapshot, ...] = PACKAGES
    base: DaemonSnapshot = DAEMON
    nodes: tuple[NodeSnapshot, ...] = NODES
    rendered: Mapping[str, RenderSnapshot] = field(default_factory=lambda: RENDERED)

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

    async def scheduler(self) -> tuple[NodeSnapshot, ...]:
        """All nodes, sorted by name."""
        return tuple(sorted(self.nodes, key=lambda node: node.name))

    async def render(self, name: str) -> RenderSnapshot | None:
        """What a package renders to; one that nothing was said about has no chart."""
        known = any(package.name == name for package in self.contents)
        return self.rendered.get(name, RenderSnapshot("", problem="", has_chart=False)) if known else None
