"""The runtime's Inspector, which returns the present state as frozen snapshots (see :mod:`wharfinger.runtime.inspector`)."""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import trio

import wharfinger
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.lease.record import LeaseRecord
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.exposition import exposition
from wharfinger.formats.json.value import JsonObject, find_object
from wharfinger.formats.redaction.redaction import redacted_texts
from wharfinger.hooks.metrics.hook_metrics import HookMetrics
from wharfinger.kube.resource import ObjectKey
from wharfinger.pools.pods.pod_pools import PodPools
from wharfinger.queue.lane import acting_for
from wharfinger.runtime.cluster_events.package_events import nothing_found
from wharfinger.runtime.core.package_snapshot import (
    Surroundings,
    queue_snapshot,
    surrounded,
    surroundings,
    waiting_queue,
)
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.daemon_details import (
    DaemonSnapshot,
    LeaderSnapshot,
    MemorySnapshot,
    RequirementsSnapshot,
    StatisticsSnapshot,
    WarmPoolSnapshot,
)
from wharfinger.runtime.inspection.claim_explanations import CLAIM, explain_claim
from wharfinger.runtime.inspection.daemon_metrics import daemon_lines
from wharfinger.runtime.inspection.daemon_tasks import daemon_tasks
from wharfinger.runtime.inspection.difference import difference_of
from wharfinger.runtime.inspection.event_list import daemon_events, package_events
from wharfinger.runtime.inspection.hook_snapshots import hook_snapshots
from wharfinger.runtime.inspection.package_logs import PackageLogs
from wharfinger.runtime.inspection.pod_pools import pod_pools
from wharfinger.runtime.inspection.recorder_metrics import recorder_families
from wharfinger.runtime.inspection.repository_snapshots import repository_snapshots
from wharfinger.runtime.inspection.resources import resource_snapshots
from wharfinger.runtime.inspection.statistics import memory_of_processes, memory_parts, slots_of, statistics
from wharfinger.runtime.inspection.version_advice import Advice, VersionAdvice
from wharfinger.runtime.inspection.warm_pools import persistent_pools, warm_pools
from wharfinger.runtime.inspection.watch_metrics import stale_watches, watch_families
from wharfinger.runtime.inspector import (
    HistorySnapshot,
    PackageSnapshot,
    QueueSnapshot,
    RenderSnapshot,
    RepositorySnapshot,
    SettingsAnswer,
)
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.package_details import (
    ClusterEventSnapshot,
    DaemonTaskSnapshot,
    DetailsUnavailableError,
    DifferenceSnapshot,
    HookSnapshotsSnapshot,
    LogSnapshot,
    ResourceSnapshot,
)
from wharfinger.runtime.recording.flight_log import FlightLog
from wharfinger.runtime.recording.history import history_of
from wharfinger.runtime.recording.past_explanation import explain_at
from wharfinger.runtime.recording.recorder import Recorder
from wharfinger.runtime.repositories.repository_controller import Repositories
from wharfinger.runtime.resources.identity import has_release, package_id
from wharfinger.runtime.resources.resources import Directives, resource_key
from wharfinger.runtime.scheduler.package_node import node_of
from wharfinger.runtime.scheduler_details import ExplanationSnapshot, NodeSnapshot
from wharfinger.runtime.status.failures import EXPECTED, classify
from wharfinger.runtime.tasks.rendering import rendered
from wharfinger.runtime.why.causes import Known
from wharfinger.runtime.why.explanation import explain

log = logging.getLogger(__name__)

LINES_AT_ONCE: Final = 1_000


@dataclass(slots=True)
class RuntimeInspector:
    """The Inspector of a running daemon. Before the runtime has started, there are no packages, and the daemon is not ready."""

    cluster: str
    started: datetime
    runtime: Runtime | None = None
    draining: bool = False
    standby: str = ""
    leader: LeaderSnapshot = LeaderSnapshot()  # noqa: RUF009 - frozen
    """The holder of the Lease, as it was last seen."""
    clients: list[tuple[str, HttpClusterClient]] = field(default_factory=list)
    """The clients of the API server whose watches and limits are shown, each with its name."""
    measured: HookMetrics = field(default_factory=HookMetrics)
    scans: Repositories | None = None
    """The controller of PackageRepositories; None before the runtime has started."""
    pods: PodPools | None = None
    """The pools of pods; None without `--worker-pools`."""
    recorder: Recorder | None = None
    """The flight recorder; None before the daemon has opened it."""
    flight_log: FlightLog | None = None
    """The log of the flight recorder; None without `--flight-recorder`."""
    kept_logs: PackageLogs | None = None
    """The last log lines of each package; None before logging is set up."""
    find: Callable[[ObjectKey], JsonObject | None] = nothing_found
    """The function that returns an Application or a Module as it was last seen."""
    advised: dict[tuple[str, str], Advice] = field(default_factory=dict)
    """The last advice for each package about other versions that would work. The keys are the package and its version."""
    _secrets: dict[str, tuple[JsonObject, JsonObject, tuple[str, ...]]] = field(default_factory=dict)
    """For each package: its settings, its values, and the texts in both whose keys look like keys of secrets, such as
    ``password``.
    """

    async def daemon(self) -> DaemonSnapshot:
        """Return the snapshot of the daemon."""
        return DaemonSnapshot(
            version=wharfinger.__version__,
            pid=os.getpid(),
            started=self.started,
            ready=self.runtime is not None and not self.draining,
            cluster=self.cluster,
            packages=len(self.runtime.instances) if self.runtime else 0,
            draining=self.draining,
            standby=self.standby,
            leader=self.leader,
            stale_watches=stale_watches(self.clients),
        )

    def stand_by(self, why: str) -> None:
        """Store the reason why the daemon waits on standby; ``why`` is "" once there is no such reason any more."""
        self.standby = " ".join(why.split())

    def lease_seen(self, lease: str, identity: str, record: LeaseRecord) -> None:
        """Store the content of the Lease ``lease`` as it was just read; ``identity`` is this daemon's own identity."""
        leads = record.holder == identity and bool(identity)
        self.leader = LeaderSnapshot(lease, record.holder, record.fence, identity, leads)

    async def statistics(self) -> StatisticsSnapshot | None:
        """Return the daemon's counts, or None before the runtime has started."""
        return statistics(self.runtime) if self.runtime is not None else None

    async def memory(self) -> MemorySnapshot:
        """Return the memory by part. The kernel's numbers are read in a thread, because this takes some milliseconds."""
        parts = memory_parts(self.runtime, self.measured, self.kept_logs, self.recorder)
        return replace(await trio.to_thread.run_sync(memory_of_processes), parts=parts)

    async def metrics(self) -> str:
        """Return the daemon's own metrics, including those of hooks' runs."""
        lines: list[str] = []
        recorded = recorder_families(self.recorder, self.flight_log) if self.recorder is not None else ()
        others = (*watch_families(self.clients, time.time()), *recorded)
        for line in daemon_lines(await self.daemon(), self.runtime, self.pods, others):
            lines.append(line)
            if len(lines) % LINES_AT_ONCE == 0:  # all numbers were read before the first line
                await trio.lowlevel.checkpoint()
        return exposition(lines) + self.measured.exposition()

    async def hook_metrics(self) -> str:
        """Return the metrics that hooks publish."""
        return self.measured.exposition_hooks()

    async def packages(self) -> tuple[PackageSnapshot, ...]:
        """Return all packages, sorted by name."""
        if self.runtime is None:
            return ()
        around = surroundings(self.runtime.tools, self.runtime.now())
        return tuple(
            self._labelled(surrounded(package, around, self._release(package.name))) for package in self.runtime.dump()
        )

    async def package(self, name: str) -> PackageSnapshot | None:
        """Return one package; None if there is no such package."""
        found = self.runtime.dump_by_name(name) if self.runtime is not None else None
        if self.runtime is None or found is None:
            return None
        around = surroundings(self.runtime.tools, self.runtime.now())
        return self._labelled(surrounded(found, around, self._release(name)))

    def _labelled(self, package: PackageSnapshot) -> PackageSnapshot:
        """Return the package with the labels of its resource."""
        obj = self.find(resource_key(package_id(package.name)))
        return package if obj is None else replace(package, labels=find_object(obj, "metadata", "labels"))

    def _instance(self, name: str) -> Instance | None:
        return self.runtime.instances.get(name) if self.runtime is not None else None

    def _release(self, name: str) -> Owner | None:
        return release_of(self.runtime, name) if self.runtime is not None else None

    async def queues(self) -> tuple[QueueSnapshot, ...]:
        """Return all queues, sorted by name; a package that never had a task has an empty queue."""
        if self.runtime is None:
            return ()
        around = surroundings(self.runtime.tools, self.runtime.now())
        names = sorted({*self.runtime.queues.names(), *self.runtime.instances})
        return tuple(self._queue(self.runtime, name, around) for name in names)

    async def pools(self) -> tuple[WarmPoolSnapshot, ...]:
        """Return the pools of warm hooks, of persistent hooks and of WorkerPools, each kind sorted by name."""
        found: list[WarmPoolSnapshot] = []
        if self.runtime is not None:
            warm, programs = self.runtime.tools.warm, self.runtime.tools.persistent
            found += warm_pools(warm) if warm is not None else ()
            found += persistent_pools(programs) if programs is not None else ()
        return (*found, *(pod_pools(self.pods) if self.pods is not None else ()))

    async def repositories(self) -> tuple[RepositorySnapshot, ...]:
        """Return all PackageRepositories, sorted by name."""
        return repository_snapshots(self.scans) if self.scans is not None else ()

    async def scheduler(self) -> tuple[NodeSnapshot, ...]:
        """Return all nodes of the scheduler, sorted by name."""
        return self.runtime.scheduler.nodes() if self.runtime is not None else ()

    async def why(self, name: str, at: datetime | None = None) -> ExplanationSnapshot | None:
        """Explain the state of a package, or of a WorkerClaim; None if there is no such package or claim.

        With ``at``, explain the state of a package at that time; return None if the recorded events do not reach back so far.
        """
        if at is not None:
            return explain_at(self.recorder.rings, name, at) if self.recorder is not None else None
        if name.startswith(CLAIM):
            return explain_claim(name, self.pods) if self.pods is not None else None
        if self.runtime is None or (found := explain(name, _known(self.runtime))) is None:
            return None
        return await VersionAdvice(self.runtime, self.scans, self.find, self.advised).add_to(found)

    async def history(self, name: str) -> HistorySnapshot | None:
        """Return the last events of a package; None if there are none."""
        return history_of(self.recorder.rings, name) if self.recorder is not None else None

    def secrets_of(self, name: str) -> tuple[str, ...]:
        """Return the texts of a package that must not be recorded: known secrets, and texts in settings and values whose
        keys look like keys of secrets.
        """
        instances = self.runtime.instances if self.runtime is not None else {}
        instance = instances.get(name)
        if instance is None:
            return ()
        settings, values = instance.desired.settings.settings, instance.configuration.values
        known = self._secrets.get(name)
        if known is None or known[0] is not settings or known[1] is not values:
            # Settings and values are searched only once, because this method is called for each new text. If they change,
            # they are new objects.
            found = (*redacted_texts(settings), *redacted_texts(values))
            known = self._secrets[name] = settings, values, found
            if len(self._secrets) > len(instances):  # the texts of packages that are gone are forgotten
                self._secrets = {each: kept for each, kept in self._secrets.items() if each in instances}
        return (*instance.secrets, *known[2])

    async def resources(self, name: str) -> tuple[ResourceSnapshot, ...] | None:
        """Return the objects of a package's release; None if there is no such package."""
        instance = self._instance(name)
        return resource_snapshots(self.runtime, instance) if self.runtime is not None and instance is not None else None

    async def events(self, name: str | None) -> tuple[ClusterEventSnapshot, ...] | None:
        """Return the Events about a package; None if there is no such package. If ``name`` is None, return all Events that
        daemons wrote in this cluster.

        Raises DetailsUnavailableError.
        """
        instance = self._instance(name) if name is not None else None
        if self.runtime is None or (name is not None and instance is None):
            return None if name is not None else ()
        client = self.runtime.tools.cluster
        try:
            return await package_events(client, instance.id) if instance is not None else await daemon_events(client)
        except ClusterError as error:
            raise DetailsUnavailableError(f"the Events cannot be read: {error}") from error

    async def logs(self, name: str, after: int = 0) -> LogSnapshot | None:
        """Return a package's kept log lines whose numbers are above ``after``; None if the package is unknown and none of its
        lines is kept.
        """
        if self.kept_logs is None:
            return None
        found = self.kept_logs.of(name, after)
        return self.kept_logs.empty(name) if found is None and self._instance(name) is not None else found

    async def difference(self, name: str) -> DifferenceSnapshot | None:
        """Return what the next apply of a package would change; None if there is no such package."""
        instance = self._instance(name)
        if self.runtime is None or instance is None:
            return None
        return await difference_of(instance, self.runtime.tools, self.runtime.packages)

    async def hook_snapshots(self, name: str) -> tuple[HookSnapshotsSnapshot, ...] | None:
        """Return the snapshots that the hooks of a package would get now; None if there is no such package."""
        instance = self._instance(name)
        return hook_snapshots(instance) if instance is not None else None

    async def tasks(self) -> tuple[DaemonTaskSnapshot, ...]:
        """Return the tasks of this process as a tree."""
        return daemon_tasks({queue.name: queue for queue in await self.queues()})

    async def requirements(self) -> RequirementsSnapshot | None:
        """Return the facts that packages may require; None before the runtime has started."""
        if self.runtime is None:
            return None
        facts = self.runtime.scheduler.facts
        return RequirementsSnapshot(facts.kubernetes, facts.platform, facts.edition, facts.bundle, facts.bootstrapped)

    async def render(self, name: str, *, shown_to: str = "") -> RenderSnapshot | None:
        """Render the manifests that a package would have now; None if there is no such package."""
        instance = self.runtime.instances.get(name) if self.runtime is not None else None
        if self.runtime is None or instance is None:
            return None
        if shown_to:
            with acting_for(name):
                log.warning("%s: its manifests, including secrets, are shown to %s", name, shown_to)
        if instance.files.definition is None:
            return RenderSnapshot("", "the package is not loaded yet", has_chart=True)
        if instance.files.definition.chart is None:
            return RenderSnapshot("", "", has_chart=False)
        try:
            found = await rendered(instance, self.runtime.tools, self.runtime.packages)
        except EXPECTED as error:
            return RenderSnapshot("", instance.masked(classify(error).message), has_chart=True)
        return RenderSnapshot(found.manifest, "", has_chart=True)

    async def validate(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
        """Check whether the package would accept these settings; None if there is no such package."""
        instance = self.runtime.instances.get(name) if self.runtime is not None else None
        if self.runtime is None or instance is None:
            return None
        return await self.runtime.validate_settings(name, settings, version)

    @staticmethod
    def _queue(runtime: Runtime, name: str, around: Surroundings) -> QueueSnapshot:
        instance = runtime.instances.get(name)
        established = instance is None or instance.crds.established is not None
        return waiting_queue(queue_snapshot(runtime.queues.dump_one(name)), around, established=established)


def _needed(instance: Instance) -> frozenset[str]:
    """Return the packages that are named in the requirements of the loaded version."""
    if instance.files.definition is None:
        return frozenset()
    return frozenset(node_of(instance.id, instance.files.definition, instance.desired.directives).names())


def _asked(instance: Instance | None) -> tuple[str, ...]:
    """Return the packages that are named in the resource's ``spec.dependsOn``, but not in the requirements of the loaded
    version.
    """
    if instance is None or instance.files.definition is None:
        return ()
    own = node_of(instance.id, instance.files.definition, Directives()).dependencies()
    names = {each.package for each in instance.desired.directives.depends_on} - {each.name for each, _ in own}
    return tuple(sorted(names))


def release_of(runtime: Runtime, name: str) -> Owner | None:
    """Return the release of a package; None if the package has no release or is not known."""
    instance = runtime.instances.get(name)
    return Owner(instance.id.release, instance.id.namespace) if instance and has_release(instance.id) else None


def _known(runtime: Runtime) -> Known:
    """Return the data from which the state of a package is explained. They are consistent, because this function does not
    await.
    """
    around = surroundings(runtime.tools, runtime.now())

    def package(name: str) -> PackageSnapshot | None:
        found = runtime.dump_by_name(name)
        return surrounded(found, around, release_of(runtime, name)) if found is not None else None

    def leaving(name: str) -> tuple[str, ...]:
        gone = [each for each in runtime.instances.values() if runtime.lifecycle.is_removing(each.id.name)]
        needing = (each.id.name for each in gone if name in _needed(each))
        return tuple(sorted(needing))

    return Known(
        now=runtime.now(),
        package=package,
        node=runtime.scheduler.snapshot,
        holders=runtime.scheduler.holders,
        leaving=leaving,
        asks_daemon=True,
        by_resource=lambda name: _asked(runtime.instances.get(name)),
        slots=slots_of(runtime.tools.slots),
        trying_crds=around.trying_crds,
    )
