"""The release engine as the tests of the corpus open and use it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from tests.corpus.charts import Version
from tests.corpus.server import NAMESPACE, RELEASE
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.request import ReleaseRequest, ReleaseResult, UninstallResult
from wharfinger.cluster.releases.service import open_release_engine
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.charts.chart import read_chart
from wharfinger.packages.rendering.renderer import Rendered


@dataclass(slots=True)
class Told:
    """A listener that records the reports of an engine."""

    drifts: list[str] = field(default_factory=list)
    foreign: list[tuple[Owner, int]] = field(default_factory=list)
    health: dict[Owner, Health] = field(default_factory=dict)
    news: trio.Event = field(default_factory=trio.Event)
    """An event that is set at the next foreign revision, and then replaced by a new one."""

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        """Record the drift and the fights."""
        self.drifts += [f"{owner}: {drift}" for drift in (*drifts, *fights)]

    def health_changed(self, owner: Owner, health: Health) -> None:
        """Record the health of the release."""
        self.health[owner] = health

    def pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        """Ignore the report about pruned objects."""

    def troubled(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        """Ignore the report about troubles of a release."""

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        """Record the revision, and wake the tasks that wait for a foreign revision."""
        self.foreign.append((owner, release_revision))
        news, self.news = self.news, trio.Event()
        news.set()


@dataclass(frozen=True, slots=True)
class Engine:
    """An open engine, with the reports that its listener got."""

    releases: ReleaseEngine
    told: Told

    async def bring(
        self, version: Version, rendered: Rendered, *, release: str = RELEASE, namespace: str = NAMESPACE
    ) -> ReleaseResult:
        """Install or upgrade a release."""
        return await self.releases.upgrade(request(version, rendered, release=release, namespace=namespace))

    async def uninstall(
        self, *, delete_protected: bool = False, release: str = RELEASE, namespace: str = NAMESPACE
    ) -> UninstallResult:
        """Uninstall a release."""
        return await self.releases.uninstall(release, namespace, delete_protected=delete_protected)


def request(
    version: Version, rendered: Rendered, *, release: str = RELEASE, namespace: str = NAMESPACE
) -> ReleaseRequest:
    """Return the request that the daemon would make for a rendered chart."""
    return ReleaseRequest(
        name=release,
        namespace=namespace,
        chart=read_chart(version.folder).metadata,
        values=version.values,
        manifest=rendered.manifest,
        crds=rendered.crds,
        objects=rendered.objects,
        hooks=rendered.hooks,
        notes=rendered.notes,
    )


@asynccontextmanager
async def open_engine(client: ClusterClient) -> AsyncIterator[Engine]:
    """Open an engine, with the watches that it needs and a listener."""
    told = Told()
    async with (
        open_shared_watches(client, jitter=lambda: 0.5) as watches,
        open_release_engine(client, watches, EngineOptions()) as releases,
    ):
        releases.listen(told)
        yield Engine(releases, told)
