"""The start and stop of the runtime, with its release engine, its queues and its hook services.

The order of the nested blocks is the start order. The stop ends the intake of work before the work itself: hooks get no more
events, tasks that only wait are interrupted, the monitors and the clock of hooks end, and then the queues drain; the caller
sets a deadline for the drain. The release engine, and the watches that it shares with the hooks, are started before the queues
and stopped after them, so that running tasks can still use them.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.records.release_heads import ReleaseHeads
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.service import open_release_engine
from wharfinger.cluster.watch.shared_watches import SharedWatches, open_shared_watches
from wharfinger.hooks.running.hook_services import HookServices, open_hook_services
from wharfinger.hooks.watching.filters import Filters
from wharfinger.kube.resource import ObjectKey
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.service import open_queues
from wharfinger.queue.state import Rules
from wharfinger.runtime.core.bootstrap import open_bootstrap
from wharfinger.runtime.core.confinement import Confinement
from wharfinger.runtime.core.observers import UNOBSERVED, Observers
from wharfinger.runtime.core.packages import Packages
from wharfinger.runtime.core.release_accounts import ReleaseAccounts
from wharfinger.runtime.core.release_events import Charging
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.core.status_changes import Clock, StatusChanges
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.resources.release_claims import ReleaseClaims
from wharfinger.runtime.scheduler import rules
from wharfinger.runtime.scheduler.events import FactsChanged, Resumed
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.tasks.synchronizations import remember
from wharfinger.runtime.tracing.tracer import Tracer

log = logging.getLogger(__name__)

REMEMBER_S: Final = 5.0
REMEMBER_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class Facts:
    """The environment in which packages run: the versions of Kubernetes and of the platform ("" if not known), and the time
    zone for schedules that do not name one.

    ``edition`` and ``bundle`` determine which Modules are on by default; either both or neither are given. ``bootstrapped_by``
    is the ConfigMap that exists as soon as the cluster is bootstrapped; None if the cluster always counts as bootstrapped.
    """

    kubernetes_version: str
    platform_version: str
    zone: tzinfo
    edition: str = ""
    bundle: str = ""
    bootstrapped_by: ObjectKey | None = None

    def gate_facts(self, *, bootstrapped: bool) -> rules.Facts:
        """Return the facts that decide which packages may be on."""
        return rules.Facts(
            kubernetes=self.kubernetes_version,
            platform=self.platform_version,
            bootstrapped=bootstrapped,
            edition=self.edition,
            bundle=self.bundle,
        )


@asynccontextmanager
async def open_runtime(
    make_tools: Callable[[HookServices, ReleaseEngine], Tools],
    client: ClusterClient,
    filters: Filters,
    facts: Facts,
    *,
    now: Clock,
    on_change: Callable[[str], None],
    on_status: Callable[[str, PackageStatus, PackageStatus], None] | None = None,
    backoff: BackoffPolicy | None = None,
    limited: ClusterClient | None = None,
    engine: EngineOptions | None = None,
    require_account: bool = False,
    observers: Observers = UNOBSERVED,
    tracer: Tracer | None = None,
    watches: SharedWatches | None = None,
    heads: ReleaseHeads | None = None,
) -> AsyncIterator[Runtime]:
    """Open the runtime while the body runs; then stop it as the module's docstring describes.

    ``limited`` is the client of the release engine, and ``engine`` has the options of that engine. With ``require_account``, no
    release may act without a service account. ``observers`` are called for each step of the runtime's state machines.
    ``tracer`` opens a span for each run of a task. ``watches`` and ``heads`` are the ones that the daemon opened on standby;
    without them, this function opens its own.
    """
    claims, instances = ReleaseClaims(on_change), dict[str, Instance]()
    confinement = Confinement(claims, instances)
    accounts = ReleaseAccounts(claims, instances, required=require_account)
    trace = tracer.task if tracer is not None else None
    async with (
        nullcontext(watches) if watches is not None else open_shared_watches(client) as watches,
        open_release_engine(
            limited or client,
            watches,
            replace(engine or EngineOptions(), during=Charging(claims), confined=confinement, account=accounts),
            heads,
        ) as releases,
        open_queues(Rules(backoff=backoff or BackoffPolicy()), observe=observers.queue, trace=trace) as queues,
        open_hook_services(client, watches, filters, now, facts.zone) as services,
        trio.open_nursery() as nursery,
    ):
        changes = StatusChanges(now, on_change, on_status)
        packages = Packages(
            make_tools(services, releases), queues, changes, instances, facts.kubernetes_version, observers
        )
        runtime = Runtime(packages, queues, claims, confinement)
        services.listen(packages.tell_hook, runtime.tick)
        releases.listen(runtime.releases)
        if facts.bootstrapped_by is None:
            _resume(runtime, facts, bootstrapped=True)
        else:
            nursery.start_soon(_await_bootstrap, runtime, client, facts, facts.bootstrapped_by, name="bootstrap")
        nursery.start_soon(runtime.run, name="clean-up of removed packages")
        yield runtime
        await _remember(runtime)
        runtime.stop("the daemon stops")
        nursery.cancel_scope.cancel()


async def _remember(runtime: Runtime) -> None:
    """Record which objects the hooks of packages have seen, so that these hooks are not synchronized again at the next start.

    Nothing is recorded for a package with a running hook. If the record of a hook is not written in time, the hook is
    synchronized again at the next start.
    """
    packages = [one for one in runtime.instances.values() if one.hooks.started is not None]
    limiter = trio.CapacityLimiter(REMEMBER_AT_ONCE)

    async def remember_one(instance: Instance) -> None:
        async with limiter:
            try:
                await remember(instance, runtime.tools)
            except ClusterError as error:
                log.info(
                    "%s: cannot record the objects that its hooks have seen, so the next start synchronizes its hooks again: %s",
                    instance.id,
                    error,
                )

    with trio.move_on_after(REMEMBER_S):
        async with trio.open_nursery() as nursery:
            for instance in packages:
                if not runtime.tools.synchronization.always(instance.loaded().layout):
                    nursery.start_soon(remember_one, instance)


def _resume(runtime: Runtime, facts: Facts, *, bootstrapped: bool) -> None:
    runtime.packages.send(FactsChanged(facts.gate_facts(bootstrapped=bootstrapped)))
    runtime.packages.send(Resumed())


async def _await_bootstrap(runtime: Runtime, client: ClusterClient, facts: Facts, marker: ObjectKey) -> None:
    """Resume the scheduler once it is known whether the cluster is bootstrapped; if it is not, notify the scheduler as soon as
    the cluster is bootstrapped.
    """
    async with open_bootstrap(client, marker) as bootstrap:
        _resume(runtime, facts, bootstrapped=bootstrap.finished)
        if bootstrap.finished:
            return
        await bootstrap.wait_finished()
    runtime.packages.send(FactsChanged(facts.gate_facts(bootstrapped=True)))
