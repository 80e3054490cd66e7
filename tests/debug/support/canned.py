"""An Inspector (`wharfinger.runtime.inspector`) with the answers that a test gives to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from tests.debug.support.samples import (
    ANSWERS,
    CLUSTER_EVENTS,
    DAEMON,
    DAEMON_TASKS,
    DIFFERENCE,
    EXPLANATIONS,
    HISTORIES,
    HISTORY,
    HOOK_METRICS,
    HOOK_SNAPSHOTS,
    LOG,
    MEMORY,
    METRICS,
    NODES,
    PACKAGES,
    POOLS,
    RENDERED,
    REPOSITORIES,
    RESOURCES,
    STATISTICS,
)
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.daemon_details import (
    DaemonSnapshot,
    MemorySnapshot,
    RequirementsSnapshot,
    StatisticsSnapshot,
    WarmPoolSnapshot,
)
from wharfinger.runtime.inspector import (
    HistorySnapshot,
    PackageSnapshot,
    QueueSnapshot,
    RenderSnapshot,
    RepositorySnapshot,
    SettingsAnswer,
    ValidSettings,
)
from wharfinger.runtime.package_details import (
    ClusterEventSnapshot,
    DaemonTaskSnapshot,
    DifferenceSnapshot,
    HookSnapshotsSnapshot,
    LogSnapshot,
    ResourceSnapshot,
)
from wharfinger.runtime.scheduler_details import ExplanationSnapshot, NodeSnapshot

FACTS = RequirementsSnapshot("1.34.1", "1.70.0", "EE", "Default", bootstrapped=True)


@dataclass
class CannedInspector:
    """An Inspector with fixed answers. It sorts and counts packages as the Inspector of a daemon does."""

    contents: tuple[PackageSnapshot, ...] = PACKAGES
    base: DaemonSnapshot = DAEMON
    nodes: tuple[NodeSnapshot, ...] = NODES
    rendered: Mapping[str, RenderSnapshot] = field(default_factory=lambda: RENDERED)
    answers: Mapping[str, SettingsAnswer] = field(default_factory=lambda: ANSWERS)
    explanations: Mapping[str, ExplanationSnapshot] = field(default_factory=lambda: EXPLANATIONS)
    histories: Mapping[str, HistorySnapshot] = field(default_factory=lambda: HISTORIES)
    begins: datetime = HISTORY.events[0].time
    counted: StatisticsSnapshot | None = STATISTICS
    warm: tuple[WarmPoolSnapshot, ...] = POOLS
    sources: tuple[RepositorySnapshot, ...] = REPOSITORIES
    objects: tuple[ResourceSnapshot, ...] = RESOURCES
    happened: tuple[ClusterEventSnapshot, ...] = CLUSTER_EVENTS
    logged: LogSnapshot = LOG
    next_apply: DifferenceSnapshot = DIFFERENCE
    seen_by_hooks: tuple[HookSnapshotsSnapshot, ...] = HOOK_SNAPSHOTS
    running: tuple[DaemonTaskSnapshot, ...] = DAEMON_TASKS
    remembered: MemorySnapshot = MEMORY
    measured: str = METRICS
    published: str = HOOK_METRICS
    asked: list[tuple[str, JsonObject, int]] = field(default_factory=list)
    facts: RequirementsSnapshot | None = FACTS
    seen_by: list[str] = field(default_factory=list)

    async def daemon(self) -> DaemonSnapshot:
        """Return the snapshot of the daemon, with the number of its packages."""
        return replace(self.base, packages=len(self.contents))

    async def statistics(self) -> StatisticsSnapshot | None:
        """Return the statistics that the test has set, or None if it has set none."""
        return self.counted

    async def memory(self) -> MemorySnapshot:
        return self.remembered

    async def metrics(self) -> str:
        return self.measured

    async def hook_metrics(self) -> str:
        return self.published

    async def packages(self) -> tuple[PackageSnapshot, ...]:
        """Return all packages, sorted by name."""
        return tuple(sorted(self.contents, key=lambda package: package.name))

    async def package(self, name: str) -> PackageSnapshot | None:
        """Return the package with this name, or None if there is none."""
        return next((package for package in self.contents if package.name == name), None)

    async def queues(self) -> tuple[QueueSnapshot, ...]:
        """Return all queues, sorted by name."""
        return tuple(package.queue for package in await self.packages())

    async def pools(self) -> tuple[WarmPoolSnapshot, ...]:
        return self.warm

    async def repositories(self) -> tuple[RepositorySnapshot, ...]:
        return self.sources

    async def scheduler(self) -> tuple[NodeSnapshot, ...]:
        """Return all nodes, sorted by name."""
        return tuple(sorted(self.nodes, key=lambda node: node.name))

    async def why(self, name: str, at: datetime | None = None) -> ExplanationSnapshot | None:
        """Return the explanation that the test has set for a package. If it has set none, return one that says that the package
        is ready.

        Return None for an unknown package, and for times before ``begins``.
        """
        if at is not None and at < self.begins:
            return None
        known = any(package.name == name for package in self.contents)
        unexplained = ExplanationSnapshot(name, ready=True, causes=(), remedy="")
        return self.explanations.get(name, unexplained) if known else None

    async def history(self, name: str) -> HistorySnapshot | None:
        """Return the history that the test has set for a package, or None if it has set none."""
        return self.histories.get(name)

    async def resources(self, name: str) -> tuple[ResourceSnapshot, ...] | None:
        return tuple(each for each in self.objects if each.package == name) if self._knows(name) else None

    async def events(self, name: str | None) -> tuple[ClusterEventSnapshot, ...] | None:
        return self.happened if name is None or self._knows(name) else None

    async def logs(self, name: str, after: int = 0) -> LogSnapshot | None:
        """Return the lines of ``logged`` with numbers above ``after``, if it is the log of this package.

        Return an empty log for another package, and None for an unknown one.
        """
        if self.logged.package != name:
            return LogSnapshot(name, (), run="1") if self._knows(name) else None
        return replace(self.logged, lines=tuple(line for line in self.logged.lines if line.number > after))

    async def difference(self, name: str) -> DifferenceSnapshot | None:
        return replace(self.next_apply, package=name) if self._knows(name) else None

    async def hook_snapshots(self, name: str) -> tuple[HookSnapshotsSnapshot, ...] | None:
        return self.seen_by_hooks if self._knows(name) else None

    async def tasks(self) -> tuple[DaemonTaskSnapshot, ...]:
        return self.running

    def _knows(self, name: str) -> bool:
        return any(package.name == name for package in self.contents)

    async def requirements(self) -> RequirementsSnapshot | None:
        return self.facts

    async def render(self, name: str, *, shown_to: str = "") -> RenderSnapshot | None:
        """Return the test's rendering of a package, or a rendering without a chart. Return None for an unknown package."""
        if shown_to:
            self.seen_by.append(shown_to)
        known = any(package.name == name for package in self.contents)
        return self.rendered.get(name, RenderSnapshot("", problem="", has_chart=False)) if known else None

    async def validate(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
        """Return the test's answer about settings, or the answer that they are valid. Return None for an unknown package."""
        self.asked.append((name, settings, version))
        known = any(package.name == name for package in self.contents)
        return self.answers.get(name, ValidSettings("1.2.3")) if known else None
