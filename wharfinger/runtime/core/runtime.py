"""The `Runtime`: all packages, the wanted state of each, and the tasks that install and change them accordingly.

The life of one package. A controller reports the wanted state (`update_app`, `update_module`); the lifecycle store decides
whether that calls for an update, a reconfiguration or nothing. An update puts Download → Install → Load on the package's own
queue. The success of Load makes the package a node of the scheduler, which decides whether it may be on, and when its turn
comes: that begins a reconciliation, Configure → Startup → Run → WaitReady. Events that its hooks watch, and schedules,
become hook tasks in lanes of their own (`build_kube_tasks`, `build_schedule_tasks`); a hook that changes values asks the
scheduler for another reconciliation. A changed specification cancels the operation that it supersedes through that
operation's scope, including a pending retry. A removal takes precedence over all other operations: Uninstall → Undeploy,
then a clean-up task outside the queue (a queue cannot wait for its own end) forgets the package and notifies the controller,
which removes the finalizer.

Invariants: the methods are synchronous, so each is one atomic step between two awaits of the loop. Only this module writes
the lifecycle store, the scheduler and the instances' status. The scheduler's effects are performed one after the other, even
if performing one causes the next. A task of a superseded operation cannot report, because its reports go through its
operation's scope. A package whose pipeline is parked is retried every STALLED_RETRY, because registries and clusters change
without notice; nothing is given up permanently.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, assert_never

import trio

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.discovery import HookKind
from wharfinger.packages.definition.depends_on import depends_on_checksum
from wharfinger.packages.definition.requirements import Requirements
from wharfinger.packages.registry.source import Source, source_text
from wharfinger.packages.rendering.resource_overrides import overrides_checksum
from wharfinger.queue.service import Queues
from wharfinger.runtime.core.decision_reporting import Statements
from wharfinger.runtime.core.global_rounds import Rounds
from wharfinger.runtime.core.operations import Operations
from wharfinger.runtime.core.package_snapshot import package_snapshot
from wharfinger.runtime.core.release_events import Keeping
from wharfinger.runtime.core.task_reports import Reports
from wharfinger.runtime.core.validate import validate_settings
from wharfinger.runtime.inspector import PackageSnapshot, SettingsAnswer
from wharfinger.runtime.lifecycle.desired_state import Change, Decision, DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.journal import JournalError
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.resources.identity import GLOBAL, AppId, ModuleId, PackageId, is_global
from wharfinger.runtime.resources.manifests import global_values
from wharfinger.runtime.resources.release_claims import ReleaseClaims
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives, PackageSpec
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.scheduler.events import IntentSet, ScriptVoted
from wharfinger.runtime.scheduler.graph import DEFAULT_ORDER, Node
from wharfinger.runtime.scheduler.scheduler import Scheduler
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.summary import summarize
from wharfinger.runtime.tasks.event_tasks import EventHookTask, HookEvent, Tasks

log = logging.getLogger(__name__)

STALLED_RETRY: Final = timedelta(minutes=10)

Clock = Callable[[], datetime]
"""The wall clock: returns an aware datetime."""


def confined_to_namespaces(_namespace: str) -> bool:
    """Return False: no Application reaches beyond its namespace."""
    return False


@dataclass(slots=True)
class Runtime:
    """All packages of one cluster. Use :func:`~wharfinger.runtime.core.service.open_runtime`."""

    tools: Tools
    queues: Queues
    now: Clock
    on_change: Callable[[str], None]
    """The callback with the name of a package whose status changed or whose removal ended; must not block."""
    kubernetes_version: str = ""
    on_status: Callable[[str, PackageStatus, PackageStatus], None] | None = None
    """The callback with a changed status, before and after; it is called instead of `on_change`."""
    reaches_cluster: Callable[[str], bool] = confined_to_namespaces
    """The test whether Applications of a namespace reach the whole cluster; set by the controller, which watches
    namespaces.
    """
    lifecycle: LifecycleStore = field(default_factory=LifecycleStore)
    scheduler: Scheduler = field(default_factory=Scheduler)
    instances: dict[str, Instance] = field(default_factory=dict)
    claims: ReleaseClaims = field(init=False)
    reports: Reports = field(init=False)
    statements: Statements = field(init=False)
    operations: Operations = field(init=False)
    rounds: Rounds = field(init=False)
    keeping: Keeping = field(init=False)
    votes: dict[str, ScriptVoted] = field(default_factory=dict)
    _removed: set[str] = field(default_factory=set)
    _to_clean: list[str] = field(default_factory=list)
    _clean_wake: trio.Event = field(default_factory=trio.Event)

    def __post_init__(self) -> None:
        """Make the objects that belong to this runtime."""
        self.claims = ReleaseClaims(self.on_change)
        self.reports = Reports(self)
        self.statements = Statements(self)
        self.operations = Operations(self)
        self.rounds = Rounds(self)
        self.keeping = Keeping(self)

    # --- what is wanted ------------------------------------------------------------------------------------------------

    def update_app(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Decision:
        """Adopt the wanted state of an Application, and begin the operation that it requires.

        REMOVING means that nothing was adopted: the caller asks again after `on_change` has reported the end of the removal.
        """
        return self._update(spec, source, settings)

    def update_module(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Decision:
        """Do the same as `update_app` for a Module, and pass its ``spec.enabled`` to the scheduler."""
        decision = self._update(spec, source, settings)
        if decision.kind is not DecisionKind.REMOVING:
            self.operations.tell_scheduler(IntentSet(spec.id.name, spec.enabled))
        return decision

    def retry_stalled(self, name: str) -> bool:
        """Begin a parked update again if STALLED_RETRY has passed since it was begun; return True while it is parked."""
        instance = self.instances.get(name)
        if instance is None or not statuses.is_stalled(instance.status):
            return False
        if instance.begun is None or self.now() - instance.begun >= STALLED_RETRY:
            instance.refresh = True  # a fixed package may have been pushed under the same version
            self.operations.begin_update(instance, instance.status.generation)
            return False
        return True

    def block(self, identity: PackageId, generation: int, written: JsonObject, reason: str, message: str) -> None:
        """Report why a resource cannot be acted on; work that runs already continues. ``written`` is the last written
        status.
        """
        instance = self.instances.get(identity.name)
        if is_global(identity):
            self.rounds.expect()
        if instance is None:
            status = statuses.restored(generation, written, self.now())
            instance = self.new_instance(identity, status)
        self.set_status(instance, statuses.blocked(instance.status, generation, reason, message, self.now()))

    def remove_app(
        self,
        identity: AppId,
        generation: int,
        written: JsonObject,
        settings: ResolvedSettings | None = None,
        deletion: DeletionPolicy | None = None,
    ) -> bool:
        """Begin the removal unless it runs; return True once nothing of the package is left.

        A package that this process does not know is removed too, because an earlier process may have installed it:
        ``written`` is the status that it wrote, and ``settings`` are those that its hooks see during the removal (None: they
        are not known any more). ``deletion`` says which objects are deleted; None: as was last wanted. If another policy is
        given while the removal runs, the removal begins again.
        """
        return self.operations.remove(identity, generation, written, settings, deletion)

    def remove_module(
        self,
        identity: ModuleId,
        generation: int,
        written: JsonObject,
        settings: ResolvedSettings | None = None,
        deletion: DeletionPolicy | None = None,
    ) -> bool:
        """Do the same as `remove_app` for a Module."""
        return self.operations.remove(identity, generation, written, settings, deletion)

    def adopt_what_stops(self, spec: PackageSpec) -> None:
        """Adopt only a disable or a suspension from a specification that cannot be acted on (its repository is missing,
        say).
        """
        instance = self.instances.get(spec.id.name)
        if self.lifecycle.is_removing(spec.id.name):
            return
        if spec.enabled is False:
            self.operations.tell_scheduler(IntentSet(spec.id.name, enabled=False))
        if instance is None or instance.source is None:
            return
        if spec.directives.suspended and not self.lifecycle.is_suspended(spec.id.name):
            self._update(spec, instance.source, instance.wanted_settings)

    def skip_delete_hooks(self, name: str) -> None:
        """Continue a removal without the package's own delete hooks, as a user has requested."""
        instance = self.instances.get(name)
        if instance is not None and not instance.skip_delete_hooks:
            log.warning("%s: its delete hooks are skipped, as requested", instance.id)
            instance.skip_delete_hooks = True
            self.operations.restart_removal(instance)

    def object_gone(self, identity: PackageId) -> None:
        """Remove the remains of a package whose object is gone, and forget a finished removal."""
        name = identity.name
        self._removed.discard(name)
        if name in self.instances:
            self.operations.remove(self.instances[name].id, 0, {}, None, None)
            self.skip_delete_hooks(name)  # a user who took the finalizer off does not want to wait for them
        else:
            self.claims.give_up(name)

    # --- questions -----------------------------------------------------------------------------------------------------

    def status(self, name: str) -> PackageStatus | None:
        """Return the status of a package, or None if the runtime does not know it."""
        instance = self.instances.get(name)
        return instance.status if instance else None

    def dump(self) -> tuple[PackageSnapshot, ...]:
        """Return the snapshots of all packages, sorted by name; they show nothing secret."""
        return tuple(self._snapshot(self.instances[name]) for name in sorted(self.instances))

    def dump_by_name(self, name: str) -> PackageSnapshot | None:
        """Return the snapshot of one package, or None."""
        instance = self.instances.get(name)
        return self._snapshot(instance) if instance is not None else None

    async def validate_settings(self, name: str, settings: JsonObject, version: int = 0) -> SettingsAnswer | None:
        """Check whether a package would accept these settings (:mod:`~wharfinger.runtime.core.validate`); None if it is
        unknown.
        """
        instance = self.instances.get(name)
        return await validate_settings(instance, self.tools, settings, version) if instance is not None else None

    def is_confined(self, owner: Owner) -> bool:
        """Return whether a release may hold objects of its own namespace only: an Application's, unless that is allowed."""
        holder = self.claims.owner_of(owner.namespace, owner.name)
        is_application = isinstance(holder, AppId)
        if holder is None:
            is_application = AppId(owner.namespace, owner.name).name in self.instances
        return is_application and not self.reaches_cluster(owner.namespace)

    def check_constraints(self, name: str, requirements: Requirements, order: int = DEFAULT_ORDER) -> None:
        """Refuse requirements with which a package could not be on now, before it is asked for; nothing is changed.

        ``name`` is the scheduler's name for it. Raises ConstraintsError or CycleError, whose messages name the packages in
        the way.
        """
        self.scheduler.check_constraints(Node(name, "", requirements, order))

    def is_removed(self, name: str) -> bool:
        """Return whether a package's removal is over but its object still exists."""
        return name in self._removed

    def global_values(self) -> JsonObject:
        """Return what every package sees under ``global``: the Modules that are on, and the version of Kubernetes.

        If there is the Module ``global``, its values are part of that.
        """
        modules = [self.instances[name] for name in sorted(self.instances) if "." not in name]
        on = [each for each in modules if self.scheduler.enabled(each.id.name) and not is_global(each.id)]
        own = self.instances.get(GLOBAL)
        own_values = own.values if own is not None and own.configured_by is not None else None
        return global_values(self.kubernetes_version, {each.id.name: each.crds for each in on}, own_values)

    def global_settings(self) -> JsonObject:
        """Return the part of the global values that a user set; hooks find it in CONFIG_VALUES_PATH."""
        own = self.instances.get(GLOBAL)
        return own.configured.settings if own is not None else {}

    def modules_before(self, instance: Instance) -> tuple[str, ...]:
        """Return the names of the Modules of a lower order that are on."""
        if instance.definition is None:
            return ()
        place = instance.definition.weight, instance.id.name
        return tuple(
            name
            for name, each in sorted(self.instances.items())
            if isinstance(each.id, ModuleId)
            and each.definition is not None
            and (each.definition.weight, name) < place
            and self.scheduler.enabled(name)
        )

    # --- events --------------------------------------------------------------------------------------------------------

    def build_kube_tasks(self, event: HookEvent) -> Tasks:
        """Return the task that notifies a hook of a changed object; nothing if the hooks of its package are stopped.

        A task carries the scope of its package's hooks, so one that is due after they were stopped runs nothing.
        """
        instance = self.instances.get(event.hooks.package)
        if instance is None or instance.hook_scope is None or instance.hook_scope.cancelled:
            return {}
        inbox = event.inbox
        if inbox.hook.kind is HookKind.READINESS:
            inbox.told(inbox.offered())  # it runs when a readiness check is due, with its snapshots
            return {}
        task = EventHookTask(
            inbox.hook, inbox, event.hooks, instance, self.tools, self.reports, scope=instance.hook_scope
        )
        return {f"{instance.id.name}/{task.lane}": (task,)}

    def build_schedule_tasks(self, crontab: str) -> Tasks:
        """Return the tasks that notify all hooks that are bound to exactly this crontab, which is due now."""
        tasks: dict[str, tuple[EventHookTask, ...]] = {}
        for hooks in self.tools.hook_services.ringing():
            for inbox in hooks.tick(crontab):
                for queue, built in self.build_kube_tasks(HookEvent(hooks, inbox)).items():
                    tasks[queue] = (*tasks.get(queue, ()), *built)
        return tasks

    def submit(self, tasks: Tasks) -> None:
        """Put hooks' tasks into their queues; a hook's task that waits there already covers the newer events, too."""
        for built in tasks.values():
            for task in built:
                self.operations.enqueue_hook(task.instance, task, task.lane, task.scope, unique=True)

    # --- internal --------------------------------------------------------------------------------------------------------

    def _update(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Decision:
        name, directives = spec.id.name, spec.directives
        desired = DesiredState(
            source=source_text(source),
            package=spec.package,
            version=spec.version,
            settings_checksum=settings.checksum,
            requested=directives.requested,
            namespace=spec.id.namespace,
            settings_version=directives.settings_version,
            maintenance=directives.maintenance,
            resources=overrides_checksum(directives.overrides),
            upkeep=directives.upkeep.digest,
            forced=directives.forced,
            reset=directives.reset,
            suspended=directives.suspended,
            cluster_scope=directives.cluster_scope,
        )
        decision = self.lifecycle.reconcile(name, desired)
        if Change.FORCED in decision.changes:
            self.tools.releases.prune()  # a forced reconciliation includes objects that were left behind
        if decision.kind is DecisionKind.REMOVING:
            return decision
        self._removed.discard(name)
        if name == GLOBAL:
            self.rounds.expect()
        before = self.instances.get(name)
        # A version that is still being fetched is fetched with the new login; a fetched one needs none.
        new_login = before is not None and before.source != source and self.lifecycle.is_loading(name)
        judged = _judged_by(before.wanted if before is not None else Directives())
        instance = self._instance(spec, source, settings)
        self._act_on(decision, instance, spec.generation, new_login=new_login)
        if judged != _judged_by(directives):
            self.operations.needs_changed(instance)
        return decision

    def _act_on(self, decision: Decision, instance: Instance, generation: int, *, new_login: bool) -> None:
        name, now = instance.id.name, self.now()
        unblocked = instance.status.blocked is not None
        match decision.kind:
            case DecisionKind.SUSPEND:
                observed = statuses.observed(instance.status, generation, now)
                self.set_status(instance, statuses.suspended(observed, now, suspended=True))
                self.operations.begin_suspend(instance)
            case DecisionKind.UPDATE:
                self.operations.begin_update(instance, generation)
            case DecisionKind.RESUME:
                self.operations.begin_update(instance, generation)
                self.set_status(instance, statuses.suspended(instance.status, now, suspended=False))
            case DecisionKind.RECONFIGURE if not new_login:
                self.set_status(instance, statuses.reconfigure_started(instance.status, generation, now))
                self.queues.unpark(name)  # a permanent failure may have been due to the settings
                if not self.lifecycle.is_loading(name):
                    self.operations.reconfigure(instance, decision.reason)
            case DecisionKind.RECONFIGURE | DecisionKind.NONE:
                if new_login:
                    self.operations.begin_update(instance, generation)
                elif unblocked or instance.status.generation != generation:
                    self.set_status(instance, statuses.observed(instance.status, generation, now))
            case DecisionKind.REMOVING:
                pass  # nothing was adopted
            case _:
                assert_never(decision.kind)

    def _instance(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Instance:
        name = spec.id.name
        instance = self.instances.get(name)
        if instance is None:
            status = statuses.restored(spec.generation, spec.status, self.now())
            instance = self.new_instance(spec.id, status)
            instance.wanted = spec.directives
        if instance.wanted.requested != spec.directives.requested:
            instance.refresh = True
        instance.package, instance.version = spec.package, spec.version
        instance.source, instance.wanted_settings, instance.wanted = source, settings, spec.directives
        self.set_status(instance, statuses.set_maintenance(instance.status, spec.directives.maintenance, self.now()))
        return instance

    def new_instance(self, identity: PackageId, status: PackageStatus) -> Instance:
        """Add and return the instance of a package that was not known until now."""
        instance = self.instances[identity.name] = Instance(identity, status)
        if not is_global(identity):
            instance.secrets_of_all = self._global_secrets
        return instance

    def _global_secrets(self) -> tuple[str, ...]:
        own = self.instances.get(GLOBAL)
        return own.secrets if own is not None else ()

    def _snapshot(self, instance: Instance) -> PackageSnapshot:
        return package_snapshot(instance, self.queues.dump_one(instance.id.name))

    def set_status(self, instance: Instance, status: PackageStatus) -> None:
        """Set a package's status, and notify the listener that writes it to the cluster if it differs."""
        if status == instance.status:
            return
        before, instance.status = instance.status, status
        state, message, _tip = summarize(status)
        found_out = before.is_being_verified and not status.is_being_verified
        if found_out or state != summarize(before)[0]:
            log.info("%s: %s: %s", instance.id, state, message)
        if self.on_status is not None:
            self.on_status(instance.id.name, before, status)
        else:
            self.on_change(instance.id.name)

    def _forget_steps(self, name: str) -> None:
        try:
            self.tools.journal.forget(name)
        except JournalError as error:
            # The steps left there are those of a finished removal; the next installation under this name outdates them.
            log.warning("%s: its steps are kept in the journal: %s", name, error)

    def clean_later(self, name: str) -> None:
        """Forget a package whose removal is over, later, because its own queue reports that and cannot be removed meanwhile."""
        self.lifecycle.finish_removal(name)
        self._to_clean.append(name)
        self._clean_wake.set()

    async def run(self) -> None:
        """Forget removed packages (queue, instance and lifecycle) for as long as the runtime is open."""
        while True:
            while self._to_clean:
                name = self._to_clean.pop(0)
                await self.queues.remove(name)
                self.instances.pop(name, None)
                self.votes.pop(name, None)
                self.claims.give_up(name)
                self.lifecycle.complete_removal(name)
                self._forget_steps(name)
                self.operations.tell_scheduler(IntentSet(name, None))
                if name == GLOBAL:
                    self.rounds.gone()
                self._removed.add(name)
                log.info("%s: removed", name)
                self.on_change(name)
            # There must be no await between the check above and this line.
            self._clean_wake = trio.Event()
            await self._clean_wake.wait()

    def stop(self, cause: str) -> None:
        """Accept nothing more: tasks that only wait are interrupted, and event hooks are not notified any more."""
        self.tools.stopping.cancel(cause)
        self.tools.releases.interrupt(cause)
        for instance in self.instances.values():
            if instance.hook_scope is not None:
                instance.hook_scope.cancel(cause)


def _judged_by(wanted: Directives) -> tuple[str, bool | None]:
    """Return the parts of a resource that the scheduler's node is made of."""
    return depends_on_checksum(wanted.depends_on), wanted.default
