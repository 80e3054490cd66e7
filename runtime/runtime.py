"""The `Runtime`: what every package is, what is wanted of it, and the tasks that bring one to the other.

The story of one Application: the controller says what is wanted (`update_app`); the lifecycle store decides whether that is
an update, a reconfiguration or nothing; an update puts Download → Install → Load on the package's own queue, and the success
of Load begins a reconciliation, Configure → Run → WaitReady. A new wish cancels what it supersedes through the operation's
scope, backoff included. A removal outranks all: Uninstall → Undeploy, then a clean-up task outside the queue (a queue cannot
wait for its own end) forgets the package and tells the controller, which lets the object go.

Invariants: the methods are synchronous, so each is one atomic step between two awaits of the loop; only this module writes
the lifecycle store and the instances' status; a task of a superseded operation cannot report, because what it says goes through
its operation's scope. A package whose pipeline is parked is looked at anew every STALLED_RETRY: registries and clusters change
without telling, and nothing is given up for good.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import trio

from wharfinger.packages.address import RepositoryAddress
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import Queues, open_queues
from wharfinger.runtime import status as statuses
from wharfinger.runtime.failures import Failure
from wharfinger.runtime.identity import AppId
from wharfinger.runtime.lifecycle import Decision, DesiredState, LifecycleStore, RemovalStart
from wharfinger.runtime.pipeline import Instance, Pipeline, StageTask, Tools
from wharfinger.runtime.resources import Application
from wharfinger.runtime.status import PackageStatus, Stage

log = logging.getLogger(__name__)

STALLED_RETRY: Final = timedelta(minutes=10)

Clock = Callable[[], datetime]
"""The wall clock: an aware datetime."""


@dataclass(slots=True)
class Runtime:
    """All packages of one cluster. Use `open_runtime`."""

    tools: Tools
    queues: Queues
    now: Clock
    on_change: Callable[[str], None]
    """Told the name of a package whose status changed or whose removal ended; must not block."""
    lifecycle: LifecycleStore = field(default_factory=LifecycleStore)
    instances: dict[str, Instance] = field(default_factory=dict)
    _removed: set[str] = field(default_factory=set)
    _to_clean: list[str] = field(default_factory=list)
    _clean_wake: trio.Event = field(default_factory=trio.Event)

    def update_app(self, application: Application, repository: RepositoryAddress) -> Decision:
        """Adopt what an Application asks for, and begin what that calls for.

        REMOVING means that nothing was adopted: `on_change` tells when the removal is over, and asking again helps then.
        """
        name = application.id.name
        desired = DesiredState(
            source=f"{repository.scheme}://{repository}",
            package=application.package,
            version=application.version,
            settings_checksum=application.settings_checksum,
            requested=application.requested,
        )
        decision = self.lifecycle.reconcile(name, desired)
        if decision is Decision.REMOVING:
            return decision
        self._removed.discard(name)
        instance = self._instance(application, repository)
        unblocked = instance.status.blocked is not None
        if decision is Decision.UPDATE:
            self._begin_update(instance, application.generation)
        elif decision is Decision.RECONFIGURE:
            self._set(instance, statuses.reconfigure_started(instance.status, application.generation, self.now()))
            if not self.lifecycle.is_loading(name):
                self._begin_reconciliation(instance, "settings changed")
        elif unblocked or instance.status.generation != application.generation:
            self._set(instance, statuses.observed(instance.status, application.generation, self.now()))
        return decision

    def retry_stalled(self, name: str) -> bool:
        """Begin again what is parked, if STALLED_RETRY has passed since it was begun; True while it is parked."""
        instance = self.instances.get(name)
        if instance is None or not statuses.is_stalled(instance.status):
            return False
        if instance.begun is None or self.now() - instance.begun >= STALLED_RETRY:
            self._begin_update(instance, instance.status.generation)
            return False
        return True

    def block_app(self, identity: AppId, generation: int, reason: str, message: str) -> None:
        """An Application whose wish cannot be acted on: say why; what runs already goes on as it was."""
        instance = self.instances.get(identity.name)
        if instance is None:
            instance = self.instances[identity.name] = Instance(identity, statuses.fresh(generation, self.now()))
        self._set(instance, statuses.blocked(instance.status, generation, reason, message, self.now()))

    def remove_app(self, identity: AppId) -> bool:
        """Begin the removal unless it runs; True once nothing of the package is left.

        A package this process has never heard of is removed too: an earlier process may have installed it.
        """
        name = identity.name
        if name in self._removed:
            return True
        self.lifecycle.track(name)
        start, scope = self.lifecycle.begin_removal(name)
        if start is RemovalStart.STARTED and scope is not None:
            instance = self.instances.get(name)
            if instance is None:
                instance = self.instances[name] = Instance(identity, statuses.fresh(0, self.now()))
            self._set(
                instance,
                statuses.removing(instance.status, "Removing", "the release is being uninstalled", self.now()),
            )
            self._enqueue(self._pipeline(instance, scope).removal(), scope, lambda: self._clean_later(name))
        return False

    def object_gone(self, identity: AppId) -> None:
        """The package's object is no more: what is still here of it is removed, and a finished removal is forgotten."""
        self._removed.discard(identity.name)
        if identity.name in self.instances:
            self.remove_app(identity)

    def status(self, name: str) -> PackageStatus | None:
        """The status of a package the runtime knows."""
        instance = self.instances.get(name)
        return instance.status if instance else None

    # --- Reporter: what the pipeline's tasks say -----------------------------------------------------------------------

    def progressed(self, instance: Instance, stage: Stage, reason: str, message: str) -> None:
        """A stage is at work."""
        self._set(instance, statuses.progressing(instance.status, stage, reason, message, self.now()))

    def succeeded(self, instance: Instance, stage: Stage) -> None:
        """A stage is done."""
        self._set(instance, statuses.succeeded(instance.status, stage, self.now()))

    def failed(self, instance: Instance, stage: Stage, failure: Failure) -> None:
        """A stage failed."""
        log.warning("%s: %s: %s: %s", instance.id, stage, failure.reason, failure.message)
        self._set(
            instance,
            statuses.failed(
                instance.status, stage, failure.reason, failure.message, self.now(), permanent=failure.permanent
            ),
        )

    def released(self, instance: Instance, revision: int) -> None:
        """The version is applied as this revision of its release."""
        digest = str(instance.manifest.descriptor.digest) if instance.manifest else ""
        self._set(instance, statuses.released(instance.status, instance.version, digest, revision))

    def removing(self, instance: Instance, reason: str, message: str) -> None:
        """What the removal waits for, or what went wrong with it."""
        if reason != "Removing":
            log.warning("%s: removal: %s: %s", instance.id, reason, message)
        self._set(instance, statuses.removing(instance.status, reason, message, self.now()))

    # --- inside --------------------------------------------------------------------------------------------------------

    def _instance(self, application: Application, repository: RepositoryAddress) -> Instance:
        name = application.id.name
        instance = self.instances.get(name)
        if instance is None:
            status = statuses.restored(application.generation, application.status, self.now())
            instance = self.instances[name] = Instance(application.id, status)
        instance.package, instance.version = application.package, application.version
        instance.repository, instance.wanted_settings = repository, application.settings
        return instance

    def _begin_update(self, instance: Instance, generation: int) -> None:
        scope = self.lifecycle.begin_update(instance.id.name)
        if scope is None:
            return
        instance.begun = self.now()
        self._set(instance, statuses.update_started(instance.status, generation, self.now()))
        self._enqueue(self._pipeline(instance, scope).update(), scope, lambda: self._loaded(instance))

    def _loaded(self, instance: Instance) -> None:
        self.lifecycle.complete_update(instance.id.name)
        self._begin_reconciliation(instance, "loaded")

    def _begin_reconciliation(self, instance: Instance, reason: str) -> None:
        scope = self.lifecycle.begin_reconciliation(instance.id.name, reason)
        if scope is not None:
            self._enqueue(self._pipeline(instance, scope).reconciliation(), scope, None)

    def _pipeline(self, instance: Instance, scope: WorkScope) -> Pipeline:
        return Pipeline(instance, self.tools, self, scope)

    def _enqueue(self, tasks: tuple[StageTask, ...], scope: WorkScope, on_done: Callable[[], None] | None) -> None:
        """Put an operation's tasks on the package's queue; ``on_done`` follows the success of the last."""
        for task in tasks:
            last = task is tasks[-1]
            self.queues.enqueue(task.instance.id.name, task, scope, on_done=on_done if last else None)

    def _set(self, instance: Instance, status: PackageStatus) -> None:
        if status == instance.status:
            return
        before, instance.status = statuses.summary(instance.status)[0], status
        state, message, _tip = statuses.summary(status)
        if state != before:
            log.info("%s: %s: %s", instance.id, state, message)
        self.on_change(instance.id.name)

    def _clean_later(self, name: str) -> None:
        self._to_clean.append(name)
        self._clean_wake.set()

    async def clean_up(self) -> None:
        """Forget removed packages: their queue, their instance, their lifecycle. Runs for as long as the runtime is open."""
        while True:
            while self._to_clean:
                name = self._to_clean.pop(0)
                await self.queues.remove(name)
                self.instances.pop(name, None)
                self.lifecycle.complete_removal(name)
                self._removed.add(name)
                log.info("%s: removed", name)
                self.on_change(name)
            # No await between the check above and this line.
            self._clean_wake = trio.Event()
            await self._clean_wake.wait()


@asynccontextmanager
async def open_runtime(tools: Tools, now: Clock, on_change: Callable[[str], None]) -> AsyncIterator[Runtime]:
    """The runtime while the body runs. Leaving it lets running tasks finish (the caller bounds that by a deadline)."""
    async with trio.open_nursery() as nursery:
        async with open_queues() as queues:
            runtime = Runtime(tools, queues, now, on_change)
            nursery.start_soon(runtime.clean_up, name="clean-up of removed packages")
            yield runtime
            tools.stopping.cancel("the daemon stops")
        nursery.cancel_scope.cancel()
