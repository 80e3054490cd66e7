"""The `Runtime`: all packages, the wanted state of each, and the tasks that install and change them accordingly.

The life of one package:

* A controller reports the wanted state (`update_app`, `update_module`). The lifecycle store decides whether that requires an
  update, a reconfiguration, a suspension, the end of a suspension, or nothing.
* An update puts Download → Install → Load on the package's own queue. Once Load has succeeded, the package is a node of the
  scheduler.
* The scheduler decides whether the package may be on, and when. Then it begins a reconciliation: Configure →
  AwaitCRDs → Startup → EnsureWebhooks → Run → WaitReady.
* Changes of watched objects, and schedules that are due, become hook tasks in lanes of their own (`Packages.tell_hook`,
  `build_schedule_tasks`). A hook that changes values requests another reconciliation from the scheduler.
* A changed specification supersedes the operation under way: the scope of that operation is cancelled, which also cancels a
  pending retry.
* A removal takes precedence over all other operations: Uninstall → Purge → Undeploy. Then a clean-up task, which runs outside
  of the queue because a queue cannot wait for its own end, forgets the package and notifies the controller, which removes the
  finalizer.

Invariants: the methods that request a change are synchronous. So each call processes an event of one package, and does all
resulting work, in one atomic step without an await (:mod:`~wharfinger.runtime.core.packages`). A task of a superseded operation
cannot change the status, because it reports through its operation's scope, which is cancelled. A package whose pipeline is
parked is retried every STALLED_RETRY, because registries and clusters change without notice; nothing is given up permanently.
"""

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.packages.definition.requirements import Requirements
from wharfinger.packages.sources.source import Source
from wharfinger.queue.service import Queues
from wharfinger.runtime.core.confinement import Confinement
from wharfinger.runtime.core.desired_states import desired_state, have_other_needs
from wharfinger.runtime.core.hook_events import event_task
from wharfinger.runtime.core.package_snapshot import package_snapshot
from wharfinger.runtime.core.packages import Packages
from wharfinger.runtime.core.release_events import ReleaseEvents
from wharfinger.runtime.core.validate import validate_settings
from wharfinger.runtime.inspector import PackageSnapshot, SettingsAnswer
from wharfinger.runtime.lifecycle.desired_state import Change, Decision, DecisionKind
from wharfinger.runtime.lifecycle.journal import JournalError
from wharfinger.runtime.lifecycle.store import RemovalStart
from wharfinger.runtime.package.events import (
    Changed,
    DeletionChanged,
    DesiredAdopted,
    RemovalAccountChanged,
    RemovalStarted,
    SkipDeleteHooks,
    UpdateWanted,
)
from wharfinger.runtime.package.facts import DesiredGiven
from wharfinger.runtime.package.findings import AccountGiven, Renamed
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.resources.identity import AppId, ModuleId, PackageId, has_release, is_global
from wharfinger.runtime.resources.release_claims import ReleaseClaims
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives, PackageSpec
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.scheduler.events import IntentSet
from wharfinger.runtime.scheduler.graph import DEFAULT_ORDER, Node
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.tasks.event_tasks import EventHookTask

log = logging.getLogger(__name__)

STALLED_RETRY: Final = timedelta(minutes=10)


class Runtime:
    """The packages of one cluster, with the operations that users and controllers may request. Use
    :func:`~wharfinger.runtime.core.service.open_runtime`.
    """

    def __init__(self, packages: Packages, queues: Queues, claims: ReleaseClaims, confinement: Confinement) -> None:
        self.packages = packages
        self.queues = queues
        self.claims = claims
        self.confinement = confinement
        self.now, self.on_change = packages.changes.now, packages.changes.on_change
        self.instances, self.lifecycle, self.scheduler = packages.instances, packages.lifecycle, packages.scheduler
        self.releases = ReleaseEvents(self._owner_of, packages.emit)
        self._removed: set[str] = set()

    @property
    def tools(self) -> Tools:
        """The services and limits that tasks work with."""
        return self.packages.tools

    # --- what is wanted ------------------------------------------------------------------------------------------------

    def update_app(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Decision:
        """Adopt the wanted state of an Application, and begin the operation that it requires.

        If the result has the kind REMOVING, nothing was adopted, because the package is being removed. Then the caller has to
        call again after `on_change` has reported the end of the removal.
        """
        return self._update(spec, source, settings)

    def update_module(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Decision:
        """Do the same as `update_app` for a Module, and pass its ``spec.enabled`` to the scheduler."""
        decision = self._update(spec, source, settings)
        if decision.kind is not DecisionKind.REMOVING:
            self.packages.send(IntentSet(spec.id.name, spec.enabled))
        return decision

    def retry_stalled(self, name: str) -> bool:
        """Begin a parked update again if STALLED_RETRY has passed since it last began; return True if the update stays parked."""
        instance = self.instances.get(name)
        if instance is None or not statuses.is_stalled(instance.status):
            return False
        if instance.desired.begun is None or self.now() - instance.desired.begun >= STALLED_RETRY:
            # Somebody may have pushed a corrected package under the same version.
            self.packages.emit(instance, UpdateWanted(instance.status.generation))
            return False
        return True

    def block(self, identity: PackageId, generation: int, written: JsonObject, reason: str, message: str) -> None:
        """Report why a resource cannot be acted on. Work that is under way continues. ``written`` is the last written status."""
        if is_global(identity):
            self.packages.expect_global()
        instance = self.instances.get(identity.name) or self.restored(identity, generation, written)
        self.set_status(instance, statuses.blocked(instance.status, generation, reason, message, self.now()))

    def remove_app(
        self,
        identity: AppId,
        generation: int,
        written: JsonObject,
        settings: ResolvedSettings | None = None,
        deletion: DeletionPolicy | None = None,
        account: str | None = None,
    ) -> bool:
        """Begin the removal of a package unless it has begun; return True once nothing of the package is left.

        A package that this process does not know is removed, too, because an earlier process may have installed it.
        ``written`` is the status that the earlier process wrote. ``settings`` are the settings that the package's hooks get
        during the removal; None if they are not known any more. ``deletion`` is the deletion policy for the package's
        objects; None means the last wanted policy. If the policy changes during the removal, the removal begins again.
        ``account`` is the name of the service account that the removal acts as from now on; "" means the daemon itself, None
        the last wanted account.
        """
        return self._remove(identity, generation, written, settings, deletion, account)

    def remove_module(
        self,
        identity: ModuleId,
        generation: int,
        written: JsonObject,
        settings: ResolvedSettings | None = None,
        deletion: DeletionPolicy | None = None,
        account: str | None = None,
    ) -> bool:
        """Do the same as `remove_app` for a Module."""
        return self._remove(identity, generation, written, settings, deletion, account)

    def leave(self, identity: PackageId) -> bool:
        """Stop all work on a package that another daemon manages from now on; return True once none of its work runs here any
        more.

        Nothing is removed from the cluster.
        """
        name = identity.name
        known = self.instances.get(name)
        if known is None:
            return True
        self.lifecycle.track(name)
        start, scope = self.lifecycle.begin_removal(name)
        if start is RemovalStart.STARTED and scope is not None:
            self.packages.emit(known, RemovalStarted(scope, None, None, disowned=False, moved=True))
        return False

    def is_leaving(self, name: str) -> bool:
        """Return whether the work on a package is being stopped because another daemon manages it from now on (`leave`)."""
        instance = self.instances.get(name)
        return instance is not None and instance.removal.moved

    def adopt_what_stops(self, spec: PackageSpec) -> None:
        """Adopt nothing but a disable or a suspension from the specification of a package. Everything else in it cannot be
        acted on, for example because its repository is missing.
        """
        instance = self.instances.get(spec.id.name)
        if self.lifecycle.is_removing(spec.id.name):
            return
        if spec.enabled is False:
            self.packages.send(IntentSet(spec.id.name, enabled=False))
        if instance is None or instance.desired.source is None:
            return
        if spec.directives.suspended and not self.lifecycle.is_suspended(spec.id.name):
            self._update(spec, instance.desired.source, instance.desired.settings)

    def skip_delete_hooks(self, name: str) -> None:
        """Continue a removal without the package's own delete hooks, as a user has requested."""
        instance = self.instances.get(name)
        if instance is not None and not instance.removal.skip_delete_hooks:
            log.warning("%s: its delete hooks are skipped, as requested", instance.id)
            self.packages.emit(instance, SkipDeleteHooks())

    def object_gone(self, identity: PackageId) -> None:
        """Process the deletion of a package's resource. If the package still exists, begin its removal; otherwise give up its
        claim on the release.
        """
        name = identity.name
        self._removed.discard(name)
        if name in self.instances:
            self._remove(self.instances[name].id, 0, {}, None, None)
            self.skip_delete_hooks(name)  # the finalizer was removed by a user, who does not want to wait for the hooks
        else:
            self.claims.give_up(name)

    # --- questions -----------------------------------------------------------------------------------------------------

    def status(self, name: str) -> PackageStatus | None:
        """Return the status of a package, or None if the runtime does not know it."""
        instance = self.instances.get(name)
        return instance.status if instance else None

    def dump(self) -> tuple[PackageSnapshot, ...]:
        """Return the snapshots of all packages, sorted by name, without secrets."""
        return tuple(self._snapshot(self.instances[name]) for name in sorted(self.instances))

    def dump_by_name(self, name: str) -> PackageSnapshot | None:
        """Return the snapshot of one package; None if the package is unknown."""
        instance = self.instances.get(name)
        return self._snapshot(instance) if instance is not None else None

    async def validate_settings(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
        """Check whether a package would accept these settings (:mod:`~wharfinger.runtime.core.validate`); return None if the
        package is unknown.
        """
        instance = self.instances.get(name)
        return await validate_settings(instance, self.tools, settings, version) if instance is not None else None

    def check_constraints(self, name: str, requirements: Requirements, order: int = DEFAULT_ORDER) -> None:
        """Raise an error if these requirements would keep a new package off in the present state. Nothing is changed.

        ``name`` is the scheduler's name for the package. Raises ConstraintsError or CycleError, whose messages name the packages
        that block the new one.
        """
        self.scheduler.check_constraints(Node(name, "", requirements, order))

    def is_removed(self, name: str) -> bool:
        """Return whether a package's removal is complete while its resource still exists."""
        return name in self._removed

    # --- events --------------------------------------------------------------------------------------------------------

    def build_kube_tasks(self, hooks: PackageHooks, inbox: Inbox) -> tuple[EventHookTask, ...]:
        """Return the task that notifies a hook of the events in its inbox, in a tuple. The tuple is empty if the package is not
        known, or if `event_task` returns no task.
        """
        instance = self.instances.get(hooks.package)
        task = event_task(instance, hooks, inbox, self.tools, self.packages) if instance is not None else None
        return () if task is None else (task,)

    def build_schedule_tasks(self, crontab: str) -> tuple[EventHookTask, ...]:
        """Return the tasks that notify all hooks that are bound to exactly this crontab, which is due now."""
        due = ((hooks, inbox) for hooks in self.tools.hook_services.with_schedules() for inbox in hooks.tick(crontab))
        return tuple(task for hooks, inbox in due for task in self.build_kube_tasks(hooks, inbox))

    def tick(self, crontab: str) -> None:
        """Notify all hooks that are bound to exactly this crontab, which is due now."""
        self.submit(self.build_schedule_tasks(crontab))

    def submit(self, tasks: Iterable[EventHookTask]) -> None:
        """Put hooks' tasks into their queues. If a task of the same hook already waits, no task is added, because the waiting
        task also handles the newer events.
        """
        for task in tasks:
            self.packages.enqueue_hook(task.instance, task, task.lane, task.scope, unique=True)

    # --- internal --------------------------------------------------------------------------------------------------------

    def _update(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Decision:
        name, directives = spec.id.name, spec.directives
        loading = self.lifecycle.is_loading(name)
        decision, scope = self.lifecycle.adopt(name, desired_state(spec, source, settings))
        if Change.FORCED in decision.changes:
            self.tools.releases.prune()  # a forced reconciliation also deletes objects that an earlier apply could not delete
        if decision.kind is DecisionKind.REMOVING:
            return decision
        self._removed.discard(name)
        if is_global(spec.id):
            self.packages.expect_global()
        before = self.instances.get(name)
        # If the version is still being fetched, it is fetched again with the new login; a fetched version needs no login.
        new_login = before is not None and before.desired.source != source and loading
        needs_changed = have_other_needs(before.desired.directives if before is not None else Directives(), directives)
        instance = before or self.restored(spec.id, spec.generation, spec.status)
        given = DesiredGiven(spec.package, spec.version, source, settings, directives, first=before is None)
        self.packages.emit(instance, DesiredAdopted(given, decision, spec.generation, scope, new_login, needs_changed))
        return decision

    def _remove(
        self,
        identity: PackageId,
        generation: int,
        written: JsonObject,
        settings: ResolvedSettings | None,
        deletion: DeletionPolicy | None,
        account: str | None = None,
    ) -> bool:
        name = identity.name
        if self.is_removed(name):
            return True
        self.lifecycle.track(name)
        start, scope = self.lifecycle.begin_removal(name)
        known = self.instances.get(name)
        if start is RemovalStart.STARTED and scope is not None:
            instance = known or self.restored(identity, generation, written)
            if account is not None:
                self.packages.emit(instance, AccountGiven(account))
            # If the claim was refused, another package has the release, and no part of the release may be removed.
            disowned = has_release(instance.id) and self.claims.claim(instance.id) is not None
            self.packages.emit(instance, RemovalStarted(scope, settings, deletion, disowned))
            return False
        if known is not None and account is not None and (known.account.name if known.account else "") != account:
            log.warning(
                "%s: its removal begins again, because its service account is %s now",
                identity,
                account or "the daemon itself",
            )
            self.packages.emit(known, RemovalAccountChanged(account))
        if deletion is not None and known is not None and known.removal.deletion != deletion:
            log.warning("%s: its removal begins again, because deletionPolicy is %s now", identity, deletion)
            self.packages.emit(known, DeletionChanged(deletion))
        return False

    def restored(self, identity: PackageId, generation: int, written: JsonObject) -> Instance:
        """Add and return a package that this process did not know, with the status that an earlier process wrote."""
        status = statuses.restored(generation, written, self.now())
        secrets = tuple if is_global(identity) else self.packages.modules.global_secrets
        instance = self.instances[identity.name] = Instance(
            Package(identity, status), secrets_of_all=secrets, observe=self.packages.observe
        )
        return instance

    def _owner_of(self, owner: Owner) -> Instance | None:
        identity = self.claims.owner_of(owner.namespace, owner.name)
        return None if identity is None else self.instances.get(identity.name)

    def _snapshot(self, instance: Instance) -> PackageSnapshot:
        return package_snapshot(instance, self.queues.dump_one(instance.id.name))

    def rename(self, instance: Instance, identity: PackageId) -> None:
        """Give a package another identity with the same name, such as a Module whose release moves to another namespace. Forget
        the recorded state of the former identity.
        """
        self.packages.emit(instance, Renamed(identity))
        instance.forget_record()

    def set_status(self, instance: Instance, status: PackageStatus) -> None:
        """Set a package's status; if it has changed, notify the listener that writes it to the cluster."""
        self.packages.emit(instance, Changed(status))

    def _forget_steps(self, name: str) -> None:
        try:
            self.tools.journal.forget(name)
        except JournalError as error:
            # The remaining steps in the journal belong to a completed removal; the next installation under this name deletes
            # them.
            log.warning("%s: its steps cannot be deleted from the journal: %s", name, error)

    async def run(self) -> None:
        """Delete the queues, instances and lifecycles of removed packages, until cancelled."""
        while True:
            name = await self.packages.departures.take()
            moved = self.is_leaving(name)
            await self.queues.remove(name)
            self.packages.forget(name)
            self.claims.give_up(name)
            self._forget_steps(name)
            if moved:
                log.info("%s: moved to another daemon", name)
            else:
                self._removed.add(name)
                log.info("%s: removed", name)
            self.on_change(name)

    def stop(self, cause: str) -> None:
        """Stop the intake of work: interrupt tasks that only wait, and pass no more events to hooks."""
        self.tools.stopping.cancel(cause)
        self.tools.releases.interrupt(cause)
        for instance in self.instances.values():
            if instance.hooks.scope is not None:
                instance.hooks.scope.cancel(cause)
