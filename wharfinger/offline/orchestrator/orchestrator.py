"""The orchestrator of one tree. These are its main methods:

=========  =================================================================================================================
bootstrap  discovers the tree. A second call does nothing; after a failure it can be called again, and starts from the beginning
run        bootstraps, runs the controllers until nothing is left to do, and returns the result
render     calls `run` once: a second call returns the same result, or raises the same error
survey     bootstraps, and returns the inputs of releases instead of rendering them; then `finish` renders some of them
stop       deletes the scratch files. An error of `run`, `render`, `survey` or `finish` stops the orchestrator, too
=========  =================================================================================================================

Fetchers can be replaced only before bootstrap; afterwards `with_fetcher` raises FetchersFrozenError. An orchestrator is used
for one tree and one run, inside its own ``async with`` block.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from wharfinger.offline.building.chart_dependencies import ChartDependencies
from wharfinger.offline.building.chart_makers import ChartMakers
from wharfinger.offline.building.charts import ChartRenders, FolderDigests
from wharfinger.offline.building.resource_templates import TemplateEngine
from wharfinger.offline.building.stand_ins import stand_in
from wharfinger.offline.controllers.argo_application import ArgoApplicationController, ArgoSources
from wharfinger.offline.controllers.artifact_generator import ArtifactGeneratorController, sources_of
from wharfinger.offline.controllers.controller import Controller, RunContext, RunOptions
from wharfinger.offline.controllers.helm_release import ChartSources, HelmReleaseController
from wharfinger.offline.controllers.kustomization import FolderController, KustomizationController
from wharfinger.offline.controllers.package import MODULES, PackageController, PackageTools
from wharfinger.offline.controllers.readiness import Readiness
from wharfinger.offline.controllers.resource_set import ResourceSetController, SetTools
from wharfinger.offline.controllers.selections import Selections
from wharfinger.offline.controllers.source import SourceController
from wharfinger.offline.controllers.survey import (
    UNCHANGED,
    Survey,
    SurveyedBuilds,
    SurveyedReleases,
    SurveyedSources,
)
from wharfinger.offline.discovery.builders import source_of
from wharfinger.offline.discovery.repository_address import Repository
from wharfinger.offline.discovery.tree import BOOTSTRAP_SOURCE, Tree, discover
from wharfinger.offline.orchestrator.bodies import TreeBodies
from wharfinger.offline.orchestrator.collect import collected
from wharfinger.offline.orchestrator.confinement import confined
from wharfinger.offline.orchestrator.filter import Filter
from wharfinger.offline.orchestrator.gates import judged
from wharfinger.offline.orchestrator.progress import Progress
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.selection import check_filters, selected, selection_of
from wharfinger.offline.orchestrator.tree_packs import TreePacks, pack_name
from wharfinger.offline.sources.fetcher import Fetcher
from wharfinger.offline.sources.fetchers import Fetchers
from wharfinger.offline.sources.helm_repository import HelmRepositories
from wharfinger.offline.sources.oci import OciFetcher
from wharfinger.offline.sources.retry import RetryPolicy
from wharfinger.offline.store.identity import DEFAULT_NAMESPACE, kind_id, object_id
from wharfinger.offline.store.kinds import (
    ARGO_APPLICATION,
    ARTIFACT_GENERATOR,
    FOLDER,
    HELM_RELEASE,
    KUSTOMIZATION,
    MODULE,
    PACKAGES,
    RESOURCE_SET,
    RESOURCE_SET_INPUT_PROVIDER,
    SCHEDULABLE,
    SOURCES,
    STANDINS,
)
from wharfinger.offline.store.status import State, Status
from wharfinger.offline.store.store import Change, ObjectStore, Place, Stored
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder
from wharfinger.packages.rendering.renderer import Renderer
from wharfinger.runtime.fixpoint.converge import Report, World, converge
from wharfinger.runtime.fixpoint.model import Emission, Id
from wharfinger.runtime.scheduler.rules import Facts

DEFAULT_CONCURRENCY: Final = 8
MAX_REFIRES: Final = 32
"""In one run, only this many calls of `ObjectStore.refire` for a node make it run again; the next call makes it fail. In the
fixpoint engine, the default limit on reruns that are caused by changes is the same.
"""


@dataclass(frozen=True, slots=True)
class Config:
    """The tree to build, and the options. Each ``spec.path`` in the tree is relative to the folder ``root``; if ``root`` is None,
    `root_of` finds this folder.

    ``path`` and ``others`` together are the paths of the tree; their order does not matter.
    """

    path: Path
    options: RunOptions
    root: Path | None = None
    namespace: str = DEFAULT_NAMESPACE
    concurrency: int = DEFAULT_CONCURRENCY
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    applications_reach_cluster: bool = False
    """True if the objects are meant for a daemon with ``--application-scope cluster``."""
    repository: Repository | None = None
    """The git repository to which the tree belongs; None: the git repository in the root folder."""
    limit: Path | None = None
    """The folder in which all files that kustomizations load must lie; None: the folder of the git repository, else the root."""
    others: tuple[Path, ...] = ()
    pack: tuple[Path, ...] = ()
    """The paths that identify the pack of cache entries (``tree_packs.py``) to use. If empty, the paths of the tree are used.

    Several versions of a tree can share a pack.
    """
    filters: tuple[Filter, ...] = ()
    """The filters of the result; if empty, the result has everything."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs and stores that an orchestrator works with; several orchestrators can share them."""

    scratch: Path
    renderer: Renderer
    digests: FolderDigests
    kustomize: KustomizeBuilder
    templates: TemplateEngine
    packages: PackageTools
    oci: OciFetcher
    helm_repositories: HelmRepositories
    fetchers: Mapping[str, Fetcher]
    makers: ChartMakers = field(default_factory=ChartMakers)
    packs: TreePacks = field(default_factory=TreePacks)
    progress: Progress = field(default_factory=Progress)
    """The progress of all orchestrators that share these tools."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The result of a survey: the digest of the inputs of each release that was not rendered, and the ids that each node reads.

    ``unsearched`` has the releases for which it is not known whether they make nodes, because their charts were not fetched.
    """

    inputs: Mapping[Id, str]
    reads: Mapping[Id, tuple[Id, ...]]
    unsearched: frozenset[Id] = frozenset()


@dataclass(frozen=True, slots=True)
class _Build:
    """The controllers of one build."""

    bodies: TreeBodies
    packages: PackageController
    selections: Selections
    survey: Survey | None


class StoppedError(Exception):
    """The orchestrator was stopped; make another one."""


class Orchestrator:
    """The orchestrator of one build of a tree; the docstring of this module describes its methods. Made by
    :func:`open_orchestrator`.
    """

    def __init__(self, config: Config, tools: Tools) -> None:
        self.store = ObjectStore()
        """The objects of this run: those that files declare, and those that nodes render."""
        self._config = config
        self._tools = tools
        self._work = Path(tempfile.mkdtemp(prefix="run-", dir=tools.scratch))
        self._pack = pack_name(config.pack or (config.path, *config.others))
        self._fetchers = Fetchers(tools.fetchers, config.retries)
        self._tree: Tree | None = None
        self._lock = trio.Lock()
        self._stopped = False
        self._outcome: Result | BaseException | None = None
        self._build: _Build | None = None

    @property
    def filter(self) -> tuple[Filter, ...]:
        """The filters of the result; without filters, the result has everything."""
        return self._config.filters

    @property
    def tree(self) -> Tree:
        """The tree as it was discovered. Raises RuntimeError before `bootstrap`."""
        if self._tree is None:
            raise RuntimeError("the tree is known after bootstrap()")
        return self._tree

    def with_fetcher(self, kind: str, fetcher: Fetcher | None) -> "Orchestrator":
        """Replace the fetcher of a kind of Flux source, such as ``Bucket``; None removes it. Return this orchestrator.

        Raises FetchersFrozenError after `bootstrap`.
        """
        self._fetchers.set(kind_id("source.toolkit.fluxcd.io", kind), fetcher)
        return self

    async def bootstrap(self) -> None:
        """Discover the tree, unless this was done before. Raises TreeError, after which it can be called again."""
        if self._stopped:
            raise StoppedError("the orchestrator was stopped; make another orchestrator")
        if self._tree is not None:
            return
        config = self._config
        await self._tools.packs.open(self._pack)
        tree = await trio.to_thread.run_sync(
            lambda: discover(
                config.path,
                *config.others,
                root=config.root,
                namespace=config.namespace,
                repository=config.repository,
                limit=config.limit,
                texts=self._tools.packs.texts,
            )
        )
        self._fetchers.freeze()
        self._tree = tree
        for each in tree.loaded:
            self.store.add(each.id, each.document.object, place=each.document.place)
        for each in tree.loaded:
            made = stand_in(each.document.object, each.id.namespace)
            if made is not None and self.store.get(object_id(made)) is None:
                self.store.add(object_id(made), made, place=each.document.place)
        for folder in tree.folders:
            self.store.add(Id(FOLDER, "", folder), {"kind": FOLDER, "path": folder}, place=Place(folder))
        if self.store.get(BOOTSTRAP_SOURCE) is None and BOOTSTRAP_SOURCE in tree.local_sources:
            # `flux bootstrap` creates this source in the cluster. If the tree does not declare it, it is added here.
            self.store.add(BOOTSTRAP_SOURCE, {"kind": "GitRepository", "spec": {"url": "the working tree"}})

    async def run(self) -> Result:
        """Run the controllers to their fixpoint, and return the result. If there are filters, return only the part of the
        result that they choose. Raises TreeError.
        """
        try:
            await self.bootstrap()
            build = self._prepare_build()
            return await self._result(build, await self._run_to_fixpoint(build, self._nodes()))
        except BaseException:
            await self.stop()
            raise

    async def render(self) -> Result:
        """Call `run` once. Each further call returns the same result, or raises the same error."""
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

    async def survey(self, *, strict: bool = False) -> Surveyed | None:
        """Build everything except releases, and return the inputs of the releases; None if the tree must be built as a whole.

        Some releases must be rendered nevertheless, for example those whose charts may make further nodes. With ``strict``, this
        includes releases whose charts have to be fetched, unless these charts are known to make no nodes.

        The tree must be built as a whole if anything fails, or if a node reads an object that does not exist, because a release
        that was not rendered may make this object. Raises TreeError.
        """
        try:
            await self.bootstrap()
            survey = Survey(strict=strict)
            build = self._prepare_build(survey)
            report = await self._run_to_fixpoint(build, self._nodes())
        except BaseException:
            await self.stop()
            raise
        self._build = build
        if any(status.has_failed for _, status in self.store.statuses()) or report.crashed or report.unresolved:
            return None
        read = {each for reads in build.bodies.reads.values() for each in reads}
        if any(each.kind not in SCHEDULABLE | STANDINS and self.store.get(each) is None for each in read):
            return None
        return Surveyed(dict(survey.inputs), build.bodies.reads, frozenset(survey.unsearched))

    async def finish(self, releases: Collection[Id]) -> Result | None:
        """After `survey`, render some of the releases, fetch the sources that they read, and return the result.

        Return None if the tree must be built as a whole, because a release has made a node that reads an unfetched source.
        """
        build = self._build
        if build is None or build.survey is None:
            raise RuntimeError("call survey() before finish()")
        try:
            build.survey.end()
            known = [who for who in sorted(releases) if self.store.get(who) is not None]
            read = {each for who in known for each in build.bodies.reads.get(who, ())}
            # The status of these nodes is from the survey, so they run before any node relies on it.
            seeds = [*sorted(filter(self._is_unfetched, read)), *known]
            for who in seeds:
                self.store.refire(who)
            report = await self._run_to_fixpoint(build, seeds)
            read = {each for who in report.runs for each in build.bodies.reads.get(who, ())}
            if any(map(self._is_unfetched, read)):
                return None
            return await self._result(build, report)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Accept no more work, and delete the scratch files; a second call does nothing."""
        if not self._stopped:
            self._stopped = True
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(lambda: shutil.rmtree(self._work, ignore_errors=True))

    async def _run_to_fixpoint(self, build: "_Build", seeds: Sequence[Id]) -> Report:
        """Run the nodes of ``seeds``, and all nodes that these create, until nothing is left to do."""
        world = World()
        build.bodies.world = world
        build.bodies.progress.known.update(seeds)
        refires: Counter[Id] = Counter()

        def changed(change: Change, who: Id) -> None:
            """Pass a change of the store to the engine, if no result of a body contains the change.

            Such a change is a new object that no node has produced, a request to run a node again, or a new value of an id that
            no node produces (the set of Modules, and the selections of ResourceSets).
            """
            stored = self.store.get(who)
            if change is Change.ADDED and stored is not None and stored.producer is None:
                world.arrived(Emission(who, stored.digest, runnable=who.kind in SCHEDULABLE))
            elif change is Change.REFIRED:
                refires[who] += 1
                if refires[who] <= MAX_REFIRES:
                    world.asked(who)
                else:
                    message = (
                        f"was refired more than {MAX_REFIRES} times in one run; a listener must not refire it each time"
                    )
                    self.store.set_status(who, Status(State.FAILED, message))
            if who.kind == MODULE and change in {Change.ADDED, Change.REMOVED}:
                digests = " ".join(f"{each.id.name}={each.digest}" for each in self.store.list(MODULE))
                world.arrived(Emission(MODULES, digests, runnable=False))
            if who.kind == RESOURCE_SET_INPUT_PROVIDER and change in {Change.ADDED, Change.REMOVED}:
                for emission in build.selections.emissions():
                    world.arrived(emission)

        with self.store.subscribed(changed):
            return await converge(build.bodies, seeds, limit=max(self._config.concurrency, 1), world=world)

    async def _result(self, build: "_Build", report: Report) -> Result:
        tree = self.tree
        facts = Facts(kubernetes=self._config.options.kube_version, bootstrapped=True)
        collection = collected(tree, self.store, build.bodies, report)
        await self._tools.packs.save(self._pack)
        result = await judged(collection, build.packages.loaded, facts, tree)
        if not self._config.applications_reach_cluster:
            result = confined(result, tree)
        if not self.filter:
            return result
        check_filters(self.filter, result)
        return selected(result, selection_of(result, self.filter))

    def _is_unfetched(self, who: Id) -> bool:
        """Return whether this is a source that the survey has not fetched."""
        return who.kind in SOURCES and self.store.status(who) == Status(State.SKIPPED, UNCHANGED)

    def _nodes(self) -> list[Id]:
        return [each.id for each in self.store.list() if each.id.kind in SCHEDULABLE]

    def _prepare_build(self, survey: Survey | None = None) -> "_Build":
        """Return the controllers of a build, which starts with ``survey`` if there is one."""
        tree, tools, options = self.tree, self._tools, self._config.options
        run = RunContext(tree, self.store, options, self._work, self._config.retries, texts=tools.packs.texts)
        charts = ChartRenders(tools.renderer, tools.digests, options.kube_version, options.api_versions, tools.makers)
        sources = SourceController(run, self._fetchers)
        dependencies = ChartDependencies(tools.oci, tools.helm_repositories, self._work, self._config.retries)
        chart_sources = ChartSources(tools.oci, tools.helm_repositories, sources, dependencies)
        argo_sources = ArgoSources(self._fetchers, tools.oci, tools.helm_repositories, dependencies)
        packages = PackageController(run, charts, tools.packages)
        readiness, selections = Readiness(self.store, tools.packages.rules), Selections(self.store)
        releases = HelmReleaseController(run, charts, chart_sources, tools.kustomize, readiness)
        applications = ArgoApplicationController(run, charts, argo_sources, tools.kustomize)
        kustomizations = KustomizationController(run, tools.kustomize, readiness)
        generators = ArtifactGeneratorController(run, tools.digests)
        controllers: dict[str, Controller] = {
            **dict.fromkeys(SOURCES, sources if survey is None else SurveyedSources(survey, sources, run)),
            KUSTOMIZATION: kustomizations
            if survey is None
            else SurveyedBuilds(survey, kustomizations, sources, run, _source_of),
            ARTIFACT_GENERATOR: generators
            if survey is None
            else SurveyedBuilds(survey, generators, sources, run, _sources_of_generator),
            FOLDER: FolderController(run, tools.kustomize),
            RESOURCE_SET: ResourceSetController(run, SetTools(tools.templates, selections, readiness)),
            HELM_RELEASE: releases if survey is None else SurveyedReleases(survey, releases, sources, run),
            ARGO_APPLICATION: applications if survey is None else SurveyedReleases(survey, applications, sources, run),
            **dict.fromkeys(PACKAGES, packages),
        }
        return _Build(
            TreeBodies(tree, self.store, controllers, World(), tools.progress.run()), packages, selections, survey
        )


def _source_of(stored: Stored) -> tuple[Id, ...]:
    return (source_of(stored.object, stored.id.namespace),)


def _sources_of_generator(stored: Stored) -> tuple[Id, ...]:
    return tuple(sources_of(stored).values())


@asynccontextmanager
async def open_orchestrator(config: Config, tools: Tools) -> AsyncIterator[Orchestrator]:
    """Yield an orchestrator, which is stopped at the end of the block."""
    orchestrator = Orchestrator(config, tools)
    try:
        yield orchestrator
    finally:
        await orchestrator.stop()
