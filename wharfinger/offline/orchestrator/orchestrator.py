"""The orchestrator of one tree: `bootstrap`, `run`, `render` and `stop`.

=========  =================================================================================================================
bootstrap  discovers the tree. Again it does nothing; after a failure it can be repeated, and nothing of the failed one stays
run        bootstraps, runs the controllers until nothing is left to do, and returns the result
render     the same, once: a second call returns the same result or raises the same error
stop       deletes what the orchestrator wrote, once. Errors of `run` and `render` stop it, too
=========  =================================================================================================================

Fetchers are set before bootstrap; afterwards `with_fetcher` raises FetchersFrozenError. An orchestrator is used for one tree
and one run, inside its own ``async with`` block.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from wharfinger.offline.building.charts import ChartRenders, FolderDigests
from wharfinger.offline.building.kustomize import KustomizeBuilder
from wharfinger.offline.controllers.argo_application import ArgoApplicationController, ArgoSources
from wharfinger.offline.controllers.controller import Controller, Desk, RunOptions
from wharfinger.offline.controllers.helm_release import ChartSources, HelmReleaseController
from wharfinger.offline.controllers.kustomization import FolderController, KustomizationController
from wharfinger.offline.controllers.package import MODULES, PackageController, PackageTools
from wharfinger.offline.controllers.source import SourceController
from wharfinger.offline.discovery.tree import BOOTSTRAP_SOURCE, Tree, discover
from wharfinger.offline.orchestrator.bodies import TreeBodies
from wharfinger.offline.orchestrator.collect import collected
from wharfinger.offline.orchestrator.confinement import confined
from wharfinger.offline.orchestrator.gates import judged
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.sources.fetcher import Fetcher
from wharfinger.offline.sources.fetchers import Fetchers
from wharfinger.offline.sources.helm_repository import HelmRepositories
from wharfinger.offline.sources.oci import OciFetcher
from wharfinger.offline.sources.retry import RetryPolicy
from wharfinger.offline.store.identity import DEFAULT_NAMESPACE, kind_id
from wharfinger.offline.store.kinds import (
    ARGO_APPLICATION,
    FOLDER,
    HELM_RELEASE,
    KUSTOMIZATION,
    MODULE,
    PACKAGES,
    SCHEDULABLE,
    SOURCES,
)
from wharfinger.offline.store.store import Change, ObjectStore, Place
from wharfinger.packages.rendering.renderer import Renderer
from wharfinger.runtime.fixpoint.converge import World, converge
from wharfinger.runtime.fixpoint.model import Emission, Id
from wharfinger.runtime.scheduler.rules import Facts

DEFAULT_CONCURRENCY: Final = 8


@dataclass(frozen=True, slots=True)
class Config:
    """The tree to build, and how. ``root`` is what ``spec.path`` is relative to; None finds it."""

    path: Path
    options: RunOptions
    root: Path | None = None
    namespace: str = DEFAULT_NAMESPACE
    concurrency: int = DEFAULT_CONCURRENCY
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    applications_reach_cluster: bool = False
    """True if the daemon is run with ``--application-scope cluster``."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs and stores that an orchestrator works with; several orchestrators can share them."""

    scratch: Path
    renderer: Renderer
    digests: FolderDigests
    kustomize: KustomizeBuilder
    packages: PackageTools
    oci: OciFetcher
    helm_repositories: HelmRepositories
    fetchers: Mapping[str, Fetcher]


class StoppedError(Exception):
    """The orchestrator was stopped; make another one."""


class Orchestrator:
    """An orchestrator; see the module. Made by :func:`open_orchestrator`."""

    def __init__(self, config: Config, tools: Tools) -> None:
        self.store = ObjectStore()
        """The objects of this run: those that files declare, and those that nodes render."""
        self._config = config
        self._tools = tools
        self._work = Path(tempfile.mkdtemp(prefix="run-", dir=tools.scratch))
        self._fetchers = Fetchers(tools.fetchers, config.retries)
        self._tree: Tree | None = None
        self._lock = trio.Lock()
        self._stopped = False
        self._outcome: Result | BaseException | None = None

    @property
    def tree(self) -> Tree:
        """The tree as it was discovered. Raises RuntimeError before `bootstrap`."""
        if self._tree is None:
            raise RuntimeError("the tree is known after bootstrap()")
        return self._tree

    def with_fetcher(self, kind: str, fetcher: Fetcher | None) -> "Orchestrator":
        """Replace the fetcher of a Flux source, such as ``Bucket``; None removes it. Return this orchestrator.

        Raises FetchersFrozenError after `bootstrap`.
        """
        self._fetchers.set(kind_id("source.toolkit.fluxcd.io", kind), fetcher)
        return self

    async def bootstrap(self) -> None:
        """Discover the tree, unless that was done. Raises TreeError, after which it can be called again."""
        if self._stopped:
            raise StoppedError("the orchestrator was stopped; make another one")
        if self._tree is not None:
            return
        config = self._config
        tree = await trio.to_thread.run_sync(
            lambda: discover(config.path, root=config.root, namespace=config.namespace)
        )
        self._fetchers.freeze()
        self._tree = tree
        for each in tree.loaded:
            self.store.add(each.id, each.document.object, place=each.document.place)
        for folder in tree.folders:
            self.store.add(Id(FOLDER, "", folder), {"kind": FOLDER, "path": folder}, place=Place(folder))
        if self.store.get(BOOTSTRAP_SOURCE) is None and BOOTSTRAP_SOURCE in tree.local_sources:
            # It stands for the tree if nothing declares it, as after `flux bootstrap`.
            self.store.add(BOOTSTRAP_SOURCE, {"kind": "GitRepository", "spec": {"url": "the working tree"}})

    async def run(self) -> Result:
        """Run the controllers to their fixpoint, and return the result. Raises TreeError."""
        try:
            await self.bootstrap()
            return await self._converged()
        except BaseException:
            await self.stop()
            raise

    async def render(self) -> Result:
        """Run once; another call returns the same result, or raises the same error."""
        async with self._lock:
            if self._outcome is None:
                try:
                    self._outcome = await self.run()
                except Exception as error:
                    self._outcome = error
                    raise
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome

    async def stop(self) -> None:
        """Accept no more work, and delete its scratch files; a second call does nothing."""
        if not self._stopped:
            self._stopped = True
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(lambda: shutil.rmtree(self._work, ignore_errors=True))

    async def _converged(self) -> Result:
        tree, world = self.tree, World()
        controllers, packages = self._controllers(tree)
        bodies = TreeBodies(tree, self.store, controllers, world)
        seeds = [each.id for each in self.store.list() if each.id.kind in SCHEDULABLE]

        def changed(change: Change, who: Id) -> None:
            """Report changes from outside of the bodies, and the set of Modules, which has no producer."""
            stored = self.store.get(who)
            if change is Change.ADDED and stored is not None and stored.producer is None:
                world.arrived(Emission(who, stored.digest, runnable=who.kind in SCHEDULABLE))
            elif change is Change.REFIRED:
                world.asked(who)
            if who.kind == MODULE and change in {Change.ADDED, Change.REMOVED}:
                digests = " ".join(f"{each.id.name}={each.digest}" for each in self.store.list(MODULE))
                world.arrived(Emission(MODULES, digests, runnable=False))

        with self.store.subscribed(changed):
            report = await converge(bodies, seeds, limit=max(self._config.concurrency, 1), world=world)
        facts = Facts(kubernetes=self._config.options.kube_version, bootstrapped=True)
        result = await judged(collected(tree, self.store, bodies, report), packages.loaded, facts, tree)
        return result if self._config.applications_reach_cluster else confined(result, tree)

    def _controllers(self, tree: Tree) -> tuple[dict[str, Controller], PackageController]:
        tools, options = self._tools, self._config.options
        desk = Desk(tree, self.store, options, self._work, self._config.retries)
        charts = ChartRenders(tools.renderer, tools.digests, options.kube_version, options.api_versions)
        sources = SourceController(desk, self._fetchers)
        chart_sources = ChartSources(tools.oci, tools.helm_repositories, sources)
        argo_sources = ArgoSources(self._fetchers, tools.oci, tools.helm_repositories)
        packages = PackageController(desk, charts, tools.packages)
        controllers: dict[str, Controller] = {
            **dict.fromkeys(SOURCES, sources),
            KUSTOMIZATION: KustomizationController(desk, tools.kustomize),
            FOLDER: FolderController(desk, tools.kustomize),
            HELM_RELEASE: HelmReleaseController(desk, charts, chart_sources, tools.kustomize),
            ARGO_APPLICATION: ArgoApplicationController(desk, charts, argo_sources, tools.kustomize),
            **dict.fromkeys(PACKAGES, packages),
        }
        return controllers, packages


@asynccontextmanager
async def open_orchestrator(config: Config, tools: Tools) -> AsyncIterator[Orchestrator]:
    """Yield an orchestrator, which is stopped at the end of the block."""
    orchestrator = Orchestrator(config, tools)
    try:
        yield orchestrator
    finally:
        await orchestrator.stop()
