"""The tasks of a package's life: Download → Install → Load, then Configure → Run → WaitReady; Uninstall → Undeploy at its end.

Each task does one thing through one seam, reports its stage's outcome to the package's status, and raises TaskFailed for
what can be expected to fail; the package's queue does the rest (order, retry, parking, cancellation). A task is written to
be run again at any moment: after a crash, the pipeline starts from the top and finds most of its work done.

The tasks see a package as an :class:`Instance`, which the runtime owns; they are the only writers of its fetched, loaded and
configured parts, and run strictly one after the other, so no lock is needed.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

import trio

from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.object_waits import Laggards, wait_ready
from wharfinger.cluster.release import ReleaseStatus
from wharfinger.cluster.release_engine import ReleaseEngine, ReleaseRequest
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject
from wharfinger.packages.address import RepositoryAddress, tag_of_version
from wharfinger.packages.chart import Chart, read_chart
from wharfinger.packages.registry import Manifest, Registry
from wharfinger.packages.renderer import Renderer, RenderRequest
from wharfinger.packages.store import Store
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import TaskFailed
from wharfinger.runtime.failures import EXPECTED, Failure, WorkloadError, classify
from wharfinger.runtime.identity import AppId, IdentityError
from wharfinger.runtime.status import PackageStatus, Stage

SHOWN_LAGGARDS: Final = 5


class RegistryOpener(Protocol):
    """Opens the registry that a repository's address names."""

    def __call__(self, repository: RepositoryAddress, /) -> AbstractAsyncContextManager[Registry]:
        """A context manager around an open Registry."""
        ...


@dataclass(frozen=True, slots=True)
class Tools:
    """What the tasks work with; one of each for all packages. ``downloads`` bounds those of the whole daemon."""

    open_registry: RegistryOpener
    store: Store
    renderer: Renderer
    cluster: ClusterClient
    releases: ReleaseEngine
    holder: str
    """What the release records we write name as their holder."""
    downloads: trio.CapacityLimiter
    stopping: WorkScope
    """Cancelled when the daemon stops: what only waits does not hold it up."""


@dataclass(slots=True)
class Instance:
    """One package as it lives in the runtime; the tasks fill in what they fetched, loaded and configured."""

    id: AppId
    status: PackageStatus
    package: str = ""
    version: str = ""
    repository: RepositoryAddress | None = None
    wanted_settings: JsonObject = field(default_factory=dict)
    manifest: Manifest | None = None
    tree: Path | None = None
    chart: Chart | None = None
    settings: JsonObject = field(default_factory=dict)
    objects: tuple[ObjectKey, ...] = ()
    begun: datetime | None = None
    """When its latest update was begun."""


class Reporter(Protocol):
    """Where tasks report to: the runtime, which keeps the status and tells the controller."""

    def progressed(self, instance: Instance, stage: Stage, reason: str, message: str) -> None:
        """A stage is at work."""
        ...

    def succeeded(self, instance: Instance, stage: Stage) -> None:
        """A stage is done."""
        ...

    def failed(self, instance: Instance, stage: Stage, failure: Failure) -> None:
        """A stage failed."""
        ...

    def released(self, instance: Instance, revision: int) -> None:
        """The version is applied as this revision of its release."""
        ...

    def removing(self, instance: Instance, reason: str, message: str) -> None:
        """What the removal waits for, or what went wrong with it."""
        ...


@dataclass(frozen=True, slots=True)
class ScopedReporter:
    """Passes on what a task says for as long as its operation stands: a superseded task has no say any more."""

    reporter: Reporter
    scope: WorkScope

    def progressed(self, instance: Instance, stage: Stage, reason: str, message: str) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.progressed(instance, stage, reason, message)

    def succeeded(self, instance: Instance, stage: Stage) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.succeeded(instance, stage)

    def failed(self, instance: Instance, stage: Stage, failure: Failure) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.failed(instance, stage, failure)

    def released(self, instance: Instance, revision: int) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.released(instance, revision)

    def removing(self, instance: Instance, reason: str, message: str) -> None:
        """See Reporter."""
        if not self.scope.cancelled:
            self.reporter.removing(instance, reason, message)


Work = Callable[[Instance, Tools, Reporter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StageTask:
    """A task whose outcome is its stage's; ``work`` is one of the functions below. ``stage`` None: it is part of a removal."""

    name: str
    stage: Stage | None
    ends_stage: bool
    work: Work
    instance: Instance
    tools: Tools
    reporter: Reporter

    async def execute(self) -> None:
        """Do the work once. Raises TaskFailed; a defect is reported, too, and let through to the queue's guard."""
        try:
            await self.work(self.instance, self.tools, self.reporter)
        except EXPECTED as error:
            failure = self._report(classify(error))
            raise TaskFailed(f"{failure.reason}: {failure.message}", permanent=failure.permanent) from error
        except TaskFailed:
            raise
        except Exception as error:
            self._report(Failure("Internal", f"{type(error).__name__}: {error}", permanent=True))
            raise
        if self.stage is not None and self.ends_stage:
            self.reporter.succeeded(self.instance, self.stage)

    def _report(self, failure: Failure) -> Failure:
        if self.stage is not None:
            self.reporter.failed(self.instance, self.stage, failure)
            return failure
        # Nothing that a person can edit unparks a removal: it is tried again, whatever it was.
        self.reporter.removing(self.instance, failure.reason, failure.message)
        return replace(failure, permanent=False)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Makes the tasks of one operation of one package."""

    instance: Instance
    tools: Tools
    reporter: Reporter
    scope: WorkScope

    def update(self) -> tuple[StageTask, ...]:
        """What brings a version here and loads it."""
        version = self.instance.version
        return (
            self._task(f"Download:{version}", download, Stage.FETCHED, ends_stage=False),
            self._task(f"Install:{version}", install, Stage.FETCHED),
            self._task("Load", load, Stage.LOADED),
        )

    def reconciliation(self) -> tuple[StageTask, ...]:
        """What configures and runs a loaded version."""
        return (
            self._task("Configure", configure, Stage.CONFIGURED),
            self._task("Run", run, Stage.APPLIED),
            self._task("WaitReady", await_ready, Stage.SCALED),
        )

    def removal(self) -> tuple[StageTask, ...]:
        """What takes everything away."""
        return (self._task("Uninstall", uninstall, None), self._task("Undeploy", undeploy, None))

    def _task(self, name: str, work: Work, stage: Stage | None, *, ends_stage: bool = True) -> StageTask:
        return StageTask(
            name, stage, ends_stage, work, self.instance, self.tools, ScopedReporter(self.reporter, self.scope)
        )


async def download(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Resolve the version to a digest, and bring every blob of that manifest to disk, verified while streaming."""
    reporter.progressed(instance, Stage.FETCHED, "Downloading", f"downloading {instance.package} {instance.version}")
    if instance.repository is None:
        raise AssertionError(f"{instance.id}: Download before anything was wanted")
    address = instance.repository.child(instance.package)
    async with tools.downloads, tools.open_registry(address) as registry:
        descriptor = await registry.resolve(address.path, tag_of_version(instance.version))
        manifest = await registry.manifest(address.path, descriptor.digest)
        await tools.store.download(registry, address.path, manifest)
    instance.manifest = manifest


async def install(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Unpack what was downloaded, and point the package's name at it, atomically."""
    manifest = _fetched(instance)
    reporter.progressed(instance, Stage.FETCHED, "Installing", f"unpacking {manifest.descriptor.digest}")
    await tools.store.install(manifest)
    instance.tree = await tools.store.deploy(instance.id.name, manifest)


async def load(instance: Instance, _tools: Tools, _reporter: Reporter) -> None:
    """Read the package: its chart's name, version and metadata."""
    if instance.tree is None:
        raise AssertionError(f"{instance.id}: Load before Install")
    instance.chart = await trio.to_thread.run_sync(read_chart, instance.tree)


async def configure(instance: Instance, _tools: Tools, _reporter: Reporter) -> None:
    """The only place where settings reach an instance; they are read late, so the latest wish is the one that counts."""
    instance.settings = instance.wanted_settings


async def run(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Render with the real Helm, and apply what came out as one release."""
    if instance.chart is None or instance.tree is None:
        raise AssertionError(f"{instance.id}: Run before Load")
    reporter.progressed(instance, Stage.APPLIED, "ApplyingManifests", "rendering the chart")
    history = await tools.releases.history(instance.id.release, instance.id.namespace)
    request = RenderRequest(
        chart=instance.tree,
        chart_digest=str(_fetched(instance).descriptor.digest),
        release=instance.id.release,
        namespace=instance.id.namespace,
        values=instance.settings,
        kube_version=await tools.cluster.server_version(),
        api_versions=await tools.cluster.api_versions(),
        is_upgrade=any(release.status is ReleaseStatus.DEPLOYED for release in history),
    )
    rendered = await tools.renderer.render(request)
    reporter.progressed(instance, Stage.APPLIED, "ApplyingManifests", f"applying {len(rendered.objects)} objects")
    result = await tools.releases.upgrade(
        ReleaseRequest(
            name=request.release,
            namespace=request.namespace,
            chart=instance.chart.metadata,
            values=instance.settings,
            manifest=rendered.manifest,
            crds=rendered.crds,
            objects=rendered.objects,
            hooks=rendered.hooks,
        )
    )
    instance.objects = result.objects
    reporter.released(instance, result.revision)


async def await_ready(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Wait until what was applied is ready, naming the laggards. No limit of its own: a new wish or the end interrupts it."""

    def progress(laggards: Laggards) -> None:
        if laggards:
            reporter.progressed(instance, Stage.SCALED, "NotReady", waiting_for(laggards))

    with trio.CancelScope() as wait:
        forget = tools.stopping.on_cancel(wait.cancel)
        try:
            report = await wait_ready(tools.cluster, instance.objects, progress=progress)
        finally:
            forget()
        if report.failed:
            raise WorkloadError(waiting_for(report.failed))
    if wait.cancelled_caught:
        raise TaskFailed(f"stopped waiting: {tools.stopping.cause}")


def waiting_for(laggards: Laggards) -> str:
    """``Deployment.apps prod/web: 1 of 2 available; ...``, sorted, at most SHOWN_LAGGARDS of them."""
    lines = [f"{key}: {state.message}" for key, state in sorted(laggards.items())]
    more = len(lines) - SHOWN_LAGGARDS
    return "; ".join(lines[:SHOWN_LAGGARDS]) + (f"; and {more} more" if more > 0 else "")


async def uninstall(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Take the release away, and wait until its objects are gone. No release, or none that we ever wrote, is success."""

    def progress(laggards: Laggards) -> None:
        if laggards:
            reporter.removing(instance, "Removing", f"waiting until it is gone: {waiting_for(laggards)}")

    try:
        name, namespace = instance.id.release, instance.id.namespace
    except IdentityError:
        return  # under this name nothing can ever have been installed
    history = await tools.releases.history(name, namespace)
    if any(release.holder == tools.holder for release in history):
        await tools.releases.uninstall(name, namespace, progress=progress)


async def undeploy(instance: Instance, tools: Tools, _reporter: Reporter) -> None:
    """Take the package off the disk; what no other package uses is collected."""
    await tools.store.undeploy(instance.id.name)
    await tools.store.collect()


def _fetched(instance: Instance) -> Manifest:
    if instance.manifest is None:
        raise AssertionError(f"{instance.id}: nothing was downloaded")
    return instance.manifest
