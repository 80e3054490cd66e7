"""The runtime, put up and taken down: queues, hook services, the Runtime between them.

Start order is nesting. Leaving stops intake before work: hooks are told nothing more, what only waits is interrupted, monitors
and clocks end, and then the queues drain, for which the caller sets a deadline.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import tzinfo

import trio

from wharfinger.cluster.client import ClusterClient
from wharfinger.hooks.filters import Filters
from wharfinger.hooks.hook_services import HookServices, open_hook_services
from wharfinger.hooks.package_hooks import Inbox, PackageHooks
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.service import Rules, open_queues
from wharfinger.runtime.instance import Tools
from wharfinger.runtime.package_status import PackageStatus
from wharfinger.runtime.runtime import Clock, Runtime
from wharfinger.runtime.scheduler import FactsChanged, Resumed


@dataclass(slots=True)
class _Events:
    """Passes events of hooks on to the runtime, which comes into being after what tells them."""

    runtime: Runtime | None = None

    def kube(self, hooks: PackageHooks, inbox: Inbox) -> None:
        if self.runtime is not None:
            self.runtime.build_kube_tasks(hooks, inbox)

    def tick(self, crontab: str) -> None:
        if self.runtime is not None:
            self.runtime.build_schedule_tasks(crontab)


@dataclass(frozen=True, slots=True)
class Facts:
    """What packages run on: versions (empty: not known) and the time zone of schedules that name none."""

    kubernetes_version: str
    platform_version: str
    zone: tzinfo


@asynccontextmanager
async def open_runtime(
    make_tools: Callable[[HookServices], Tools],
    client: ClusterClient,
    filters: Filters,
    facts: Facts,
    *,
    now: Clock,
    on_change: Callable[[str], None],
    on_status: Callable[[str, PackageStatus, PackageStatus], None] | None = None,
    backoff: BackoffPolicy | None = None,
) -> AsyncIterator[Runtime]:
    """The runtime while the body runs; see the module's story for what leaving does."""
    events = _Events()
    async with (
        open_queues(Rules(backoff=backoff or BackoffPolicy())) as queues,
        open_hook_services(client, filters, now, facts.zone, on_event=events.kube, on_tick=events.tick) as services,
        trio.open_nursery() as nursery,
    ):
        runtime = Runtime(make_tools(services), queues, now, on_change, facts.kubernetes_version, on_status)
        events.runtime = runtime
        runtime.operations.tell_scheduler(FactsChanged(facts.kubernetes_version, facts.platform_version))
        runtime.operations.tell_scheduler(Resumed())
        nursery.start_soon(runtime.run, name="clean-up of removed packages")
        yield runtime
        runtime.stop("the daemon stops")
        nursery.cancel_scope.cancel()
