"""The `Runtime`: what every package is, what is wanted of it, and the tasks that bring one to the other.

The story of one package. A controller says what is wanted (`update_app`, `update_module`); the lifecycle store decides whether
that is an update, a reconfiguration or nothing. An update puts Download → Install → Load on the package's own queue. The success
of Load makes the package a node of the scheduler, which decides whether it may be on, and when it is its turn: that begins a
reconciliation, Configure → Startup → Run → WaitReady. Events that its hooks watch, and times, become hook tasks in lanes of
their own (`build_kube_tasks`, `build_schedule_tasks`); a hook that changes values asks the scheduler for another reconciliation.
A new wish cancels what it supersedes through the operation's scope, backoff included. A removal outranks all: Uninstall →
Undeploy, then a clean-up task outside the queue (a queue cannot wait for its own end) forgets the package and tells the
controller, which lets the object go.

Invariants: the methods are synchronous, so each is one atomic step between two awaits of the loop; only this module writes the
lifecycle store, the scheduler and the instances' status; effects of the scheduler are performed one after the other, also when
performing one causes the next; a task of a superseded operation cannot report, because what it says goes through its
operation's scope. A package whose pipeline is parked is looked at anew every STALLED_RETRY: registries and clusters change
without telling, and nothing is given up for good.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, assert_never

import trio

from wharfinger.formats.json_value import JsonObject, JsonValue
from wharfinger.formats.openapi_schema import Problem
from wharfinger.hooks.package_hooks import Inbox, PackageHooks
from wharfinger.packages.definition import Definition
from wharfinger.packages.source import Source, source_text
from wharfinger.packages.values import SettingsError, effective_settings
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import QueueFull, Queues
from wharfinger.queue.task import Task
from wharfinger.runtime import status as statuses
from wharfinger.runtime.event_tasks import EventHookTask, lane_of
from wharfinger.runtime.failures import Failure
from wharfinger.runtime.identity import AppId, ModuleId, PackageId
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.instance import Instance, Tools
from wharfinger.runtime.lifecycle import Decision, DesiredState, LifecycleStore, RemovalStart
from wharfinger.runtime.package_snapshot import package_snapshot
from wharfinger.runtime.pipeline import Pipeline
from wharfinger.runtime.release_claims import ReleaseClaims
from wharfinger.runtime.reports import Reports
from wharfinger.runtime.resources import PackageSpec
from wharfinger.runtime.scheduler import (
    Completed,
    CycleError,
    Decided,
    Disable,
    Effect,
    Event,
    Failed,
    IntentSet,
    Node,
    NodeAdded,
    NodeRemoved,
    Rescheduled,
    Schedule,
    Scheduler,
    ScriptVoted,
    Verdict,
)
from wharfinger.runtime.settings import ResolvedSettings
from wharfinger.runtime.stage_task import StageTask
from wharfinger.runtime.status import PackageStatus, Stage

log = logging.getLogger(__name__)

STALLED_RETRY: Final = timedelta(minutes=10)

Clock = Callable[[], datetime]
"""The wall clock: an aware datetime."""


@dataclass(slots=True)
class Runtime:
    """All packages of one cluster. Use :func:`~wharfinger.runtime.service.open_runtime`."""

    tools: Tools
    queues: Queues
    now: Clock
    on_change: Callable[[str], None]
    """Told the name of a package whose status changed or whose removal ended; must not block."""
    kubernetes_version: str = ""
    lifecycle: LifecycleStore = field(default_factory=LifecycleStore)
    scheduler: Scheduler = field(default_factory=Scheduler)
    instances: dict[str, Instance] = field(default_factory=dict)
    claims: ReleaseClaims = field(init=False)
    reports: Reports = field(init=False)
    votes: dict[str, ScriptVoted] = field(default_factory=dict)
    _effects: deque[Effect] = field(default_factory=deque)
    _performing: bool = False
    _removed: set[str] = field(default_factory=set)
    _to_clean: list[str] = field(default_factory=list)
    _clean_wake: trio.Event = field(default_factory=trio.Event)

    def __post_init__(self) -> None:
        """Make what belongs to this runtime."""
        self.claims = ReleaseClaims(self.on_change)
        self.reports = Reports(self)

    # --- what is wanted ------------------------------------------------------------------------------------------------

    def update_app(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Decision:
        """Adopt what an Application asks for, and begin what that calls for.

        REMOVING means that nothing was adopted: `on_change` tells when the removal is over, and asking again helps then.
        """
        return self._update(spec, source, settings)

    def update_module(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Decision:
        """As `update_app`, for a Module; what its spec says of being enabled goes to the scheduler."""
        decision = self._update(spec, source, settings)
        if decision is not Decision.REMOVING:
            self.tell_scheduler(IntentSet(spec.id.name, spec.enabled))
        return decision

    def retry_stalled(self, name: str) -> bool:
        """Begin again what is parked, if STALLED_RETRY has passed since it was begun; True while it is parked."""
        instance = self.instances.get(name)
        if instance is None or not statuses.is_stalled(instance.status):
            return False
        if instance.begun is None or self.now() - instance.begun >= STALLED_RETRY:
            instance.refresh = True  # what was wrong may have been pushed again under the same version
            self._begin_update(instance, instance.status.generation)
            return False
        return True

    def block(self, identity: PackageId, generation: int, written: JsonObject, reason: str, message: str) -> None:
        """A resource whose wish cannot be acted on: say why; what runs already goes on as it was.

        ``written`` is its status as it was last written.
        """
        instance = self.instances.get(identity.name)
        if instance is None:
            status = statuses.restored(generation, written, self.now())
            instance = self.instances[identity.name] = Instance(identity, status)
        self.set_status(instance, statuses.blocked(instance.status, generation, reason, message, self.now()))

    def remove_app(
        self, identity: AppId, generation: int, written: JsonObject, settings: ResolvedSettings | None = None
    ) -> bool:
        """Begin the removal unless it runs; True once nothing of the package is left.

        A package this process has never heard of is removed too: an earlier process may have installed it, and ``written`` is
        the status that it wrote, ``settings`` what its hooks see on the way out (None: they cannot be told any more).
        """
        return self._remove(identity, generation, written, settings)

    def remove_module(
        self, identity: ModuleId, generation: int, written: JsonObject, settings: ResolvedSettings | None = None
    ) -> bool:
        """As `remove_app`, for a Module."""
        return self._remove(identity, generation, written, settings)

    def skip_delete_hooks(self, name: str) -> None:
        """A person wants a removal to go on without the package's own hooks."""
        instance = self.instances.get(name)
        if instance is not None and not instance.skip_delete_hooks:
            log.warning("%s: its delete hooks are passed over, as asked for", instance.id)
            instance.skip_delete_hooks = True
            if (scope := self.lifecycle.restart_removal(name)) is not None:
                self._enqueue_removal(instance, scope)

    def object_gone(self, identity: PackageId) -> None:
        """The package's object is no more: what is still here of it is removed, and a finished removal is forgotten."""
        name = identity.name
        self._removed.discard(name)
        if name in self.instances:
            self._remove(self.instances[name].id, 0, {}, None)
            self.skip_delete_hooks(name)  # whoever took the finalizer off does not want to wait for them
        else:
            self.claims.give_up(name)

    # --- questions -----------------------------------------------------------------------------------------------------

    def status(self, name: str) -> PackageStatus | None:
        """The status of a package the runtime knows."""
        instance = self.instances.get(name)
        return instance.status if instance else None

    def dump(self) -> tuple[PackageSnapshot, ...]:
        """All packages, sorted by name; nothing secret in what they show."""
        return tuple(self._snapshot(self.instances[name]) for name in sorted(self.instances))

    def dump_by_name(self, name: str) -> PackageSnapshot | None:
        """One package, or None."""
        instance = self.instances.get(name)
        return self._snapshot(instance) if instance is not None else None

    def check_constraints(self, definition: Definition, name: str) -> None:
        """Whether a package could be on beside what is there. Raises ConstraintsError or CycleError (spec/runtime §4.8)."""
        floor = Verdict.ENABLE if "." in name else Verdict.DISABLE
        self.scheduler.check_constraints(_node(name, floor, definition))

    def validate_settings(self, name: str, settings: JsonObject) -> tuple[Problem, ...]:
        """What is wrong with these settings for a package; nothing where it is not loaded yet (it is checked later then)."""
        instance = self.instances.get(name)
        if instance is None or instance.definition is None:
            return ()
        try:
            effective_settings(instance.definition, settings)
        except SettingsError as error:
            return error.problems
        return ()

    def global_values(self) -> JsonObject:
        """What every package sees under ``global``: the Modules that are on, and the version of Kubernetes."""
        enabled: list[JsonValue] = [
            name for name in sorted(self.instances) if "." not in name and self.scheduler.enabled(name)
        ]
        return {"enabledModules": enabled, "discovery": {"kubernetesVersion": self.kubernetes_version}, "modules": {}}

    # --- events --------------------------------------------------------------------------------------------------------

    def build_kube_tasks(self, hooks: PackageHooks, inbox: Inbox) -> None:
        """An object changed that a hook watches: have the hook told, unless it is about to be told anyway."""
        instance = self.instances.get(hooks.package)
        if instance is None or instance.hook_scope is None or instance.hook_scope.cancelled:
            return
        task = EventHookTask(inbox.hook, inbox, hooks, instance, self.tools, self.reports)
        self.enqueue_hook(instance, task, lane_of(inbox.queue), unique=True)

    def build_schedule_tasks(self, crontab: str) -> None:
        """A time has come: have every hook told that is bound to exactly this crontab."""
        for hooks in self.tools.hook_services.ringing():
            for inbox in hooks.tick(crontab):
                self.build_kube_tasks(hooks, inbox)

    # --- inside: operations --------------------------------------------------------------------------------------------

    def _update(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Decision:
        name = spec.id.name
        desired = DesiredState(
            source=source_text(source),
            package=spec.package,
            version=spec.version,
            settings_checksum=settings.checksum,
            requested=spec.requested,
            namespace=spec.id.namespace,
        )
        decision = self.lifecycle.reconcile(name, desired)
        if decision is Decision.REMOVING:
            return decision
        self._removed.discard(name)
        before = self.instances.get(name)
        # What is still being fetched is fetched with the new login; what is here needs none.
        new_login = before is not None and before.source != source and self.lifecycle.is_loading(name)
        instance = self._instance(spec, source, settings)
        unblocked = instance.status.blocked is not None
        if decision is Decision.UPDATE or new_login:
            self._begin_update(instance, spec.generation)
        elif decision is Decision.RECONFIGURE:
            self.set_status(instance, statuses.reconfigure_started(instance.status, spec.generation, self.now()))
            if self.lifecycle.is_loading(name):
                self.queues.unpark(name)  # what failed for good may have failed for the settings
            else:
                self._reconfigure(instance, "SettingsChanged")
        elif unblocked or instance.status.generation != spec.generation:
            self.set_status(instance, statuses.observed(instance.status, spec.generation, self.now()))
        return decision

    def _instance(self, spec: PackageSpec, source: Source, settings: ResolvedSettings) -> Instance:
        name = spec.id.name
        instance = self.instances.get(name)
        if instance is None:
            status = statuses.restored(spec.generation, spec.status, self.now())
            instance = self.instances[name] = Instance(spec.id, status, requested=spec.requested)
        if instance.requested != spec.requested:
            instance.requested, instance.refresh = spec.requested, True
        instance.package, instance.version = spec.package, spec.version
        instance.source, instance.wanted_settings = source, settings
        return instance

    def _begin_update(self, instance: Instance, generation: int) -> None:
        scope = self.lifecycle.begin_update(instance.id.name)
        if scope is None:
            return
        instance.begun = self.now()
        self.tell_scheduler(Failed(instance.id.name, instance.run))  # what was cut short holds nobody back
        self.set_status(instance, statuses.update_started(instance.status, generation, self.now()))
        self._enqueue(self._pipeline(instance, scope).update(), scope, {"Load": lambda: self._loaded(instance)})

    def _loaded(self, instance: Instance) -> None:
        name = instance.id.name
        self.lifecycle.complete_update(name)
        if instance.definition is None:
            raise AssertionError(f"{instance.id}: Load succeeded and nothing is loaded")
        floor = Verdict.ENABLE if isinstance(instance.id, AppId) else Verdict.DISABLE
        try:
            self.tell_scheduler(NodeAdded(_node(name, floor, instance.definition)))
        except CycleError as error:
            self.tell_scheduler(NodeRemoved(name))  # the version before is not what is loaded any more
            self.reports.failed(instance, Stage.REQUIREMENTS, Failure("DependencyCycle", str(error), permanent=True))
            return
        self.tell_scheduler(self.votes.get(name, ScriptVoted(name, None)))
        self.restate_requirements(instance)
        if instance.definition.enabled_script and instance.voted_for != instance.wanted_settings.checksum:
            self._reconfigure(instance, "SettingsChanged")

    def _reconfigure(self, instance: Instance, reason: str) -> None:
        """The settings changed; an enabled script that may look at them is asked first."""
        name = instance.id.name
        if instance.definition is None or not instance.definition.enabled_script:
            self.tell_scheduler(Rescheduled(name, reason))
        elif (scope := self.lifecycle.begin_vote(name)) is not None:
            tasks = self._pipeline(instance, scope).vote()
            self._enqueue(tasks, scope, {tasks[0].name: lambda: self._has_voted(instance, reason)})

    def _has_voted(self, instance: Instance, reason: str) -> None:
        self.restate_requirements(instance)
        self.tell_scheduler(Rescheduled(instance.id.name, reason))

    def restate_requirements(self, instance: Instance) -> None:
        """Say what the scheduler has decided, whatever went wrong on the way there."""
        decided = self.scheduler.decision(instance.id.name)
        if decided is not None:
            status = statuses.required(
                instance.status, decided.reason, decided.message, self.now(), met=decided.allowed
            )
            self.set_status(instance, status)

    def _remove(
        self, identity: PackageId, generation: int, written: JsonObject, settings: ResolvedSettings | None
    ) -> bool:
        name = identity.name
        if name in self._removed:
            return True
        self.lifecycle.track(name)
        start, scope = self.lifecycle.begin_removal(name)
        if start is RemovalStart.STARTED and scope is not None:
            instance = self.instances.get(name)
            if instance is None:
                status = statuses.restored(generation, written, self.now())
                instance = self.instances[name] = Instance(identity, status)
                instance.wanted_settings = settings or instance.wanted_settings
            self.set_status(
                instance,
                statuses.removing(instance.status, "Removing", "the release is being uninstalled", self.now()),
            )
            self.tell_scheduler(NodeRemoved(name))
            self._enqueue_removal(instance, scope)
        return False

    def _enqueue_removal(self, instance: Instance, scope: WorkScope) -> None:
        tasks = self._pipeline(instance, scope).removal()
        self._enqueue(tasks, scope, {tasks[-1].name: lambda: self._clean_later(instance.id.name)})

    # --- inside: the scheduler -----------------------------------------------------------------------------------------

    def tell_scheduler(self, event: Event) -> None:
        """Apply an event and perform what follows; an event told while performing is performed after what was there.

        Raises CycleError, and nothing has changed then.
        """
        self._effects.extend(self.scheduler.apply(event))
        if self._performing:
            return
        self._performing = True
        try:
            while self._effects:
                self._perform(self._effects.popleft())
        finally:
            self._performing = False

    def _perform(self, effect: Effect) -> None:
        instance = self.instances.get(effect.name)
        if instance is None:
            return
        match effect:
            case Decided(_, _, "EnabledScriptPending", _):
                pass  # its vote follows at once, and is told then
            case Decided(_, allowed, reason, message):
                status = statuses.required(instance.status, reason, message, self.now(), met=allowed)
                self.set_status(instance, status)
            case Schedule(_, run, reason, _):
                instance.run = run
                self._begin_reconciliation(instance, reason)
            case Disable(_, reason, _, uninstall):
                self._begin_disable(instance, reason, uninstall=uninstall)
            case _:
                assert_never(effect)

    def _begin_disable(self, instance: Instance, reason: str, *, uninstall: bool) -> None:
        scope, updating = self.lifecycle.begin_disable(instance.id.name)
        if scope is None:
            return
        log.info("%s: put to rest: %s", instance.id, reason)
        self.set_status(instance, statuses.stopped(instance.status, self.now()))
        tasks = self._pipeline(instance, scope).disable(keep=not uninstall)
        self._enqueue(tasks, scope, {tasks[-1].name: lambda: self.restate_requirements(instance)})
        if updating:
            self._begin_update(instance, instance.status.generation)

    def _begin_reconciliation(self, instance: Instance, reason: str) -> None:
        scope = self.lifecycle.begin_reconciliation(instance.id.name, reason)
        if scope is None:
            return
        run = instance.run
        tasks = self._pipeline(instance, scope).reconciliation()
        self._enqueue(tasks, scope, {"Run": lambda: self._has_run(instance, run)})

    def _has_run(self, instance: Instance, run: int) -> None:
        self.lifecycle.complete_run(instance.id.name)
        self.tell_scheduler(Completed(instance.id.name, run))
        if instance.dirty:
            instance.dirty = False
            self.tell_scheduler(Rescheduled(instance.id.name, "HookValuesChanged"))

    # --- inside: queues and status -------------------------------------------------------------------------------------

    def _pipeline(self, instance: Instance, scope: WorkScope) -> Pipeline:
        return Pipeline(instance, self.tools, self.reports, scope)

    def _enqueue(
        self, tasks: tuple[StageTask, ...], scope: WorkScope, on_done: Mapping[str, Callable[[], None]]
    ) -> None:
        """Put an operation's tasks on the package's queue; ``on_done`` follows the success of the task of that name."""
        for task in tasks:
            self.queues.enqueue(task.instance.id.name, task, scope, on_done=on_done.get(task.name))

    def enqueue_hook(self, instance: Instance, task: Task, lane: str, *, unique: bool) -> bool:
        if instance.hook_scope is None:
            return False
        try:
            return self.queues.enqueue(instance.id.name, task, instance.hook_scope, lane=lane, unique=unique)
        except QueueFull as error:
            # What happened waits in the hook's inbox; the next event of it asks again.
            log.warning("%s: %s", instance.id, error)
            return False

    def _snapshot(self, instance: Instance) -> PackageSnapshot:
        return package_snapshot(instance, self.queues.dump_one(instance.id.name))

    def set_status(self, instance: Instance, status: PackageStatus) -> None:
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

    async def run(self) -> None:
        """Forget removed packages: their queue, their instance, their lifecycle. Runs for as long as the runtime is open."""
        while True:
            while self._to_clean:
                name = self._to_clean.pop(0)
                await self.queues.remove(name)
                self.instances.pop(name, None)
                self.votes.pop(name, None)
                self.claims.give_up(name)
                self.lifecycle.complete_removal(name)
                self.tell_scheduler(IntentSet(name, None))
                self._removed.add(name)
                log.info("%s: removed", name)
                self.on_change(name)
            # No await between the check above and this line.
            self._clean_wake = trio.Event()
            await self._clean_wake.wait()

    def stop(self, cause: str) -> None:
        """Take on nothing more: what only waits is interrupted, event hooks are not told anything any more."""
        self.tools.stopping.cancel(cause)
        for instance in self.instances.values():
            if instance.hook_scope is not None:
                instance.hook_scope.cancel(cause)


def _node(name: str, floor: Verdict, definition: Definition) -> Node:
    return Node(
        name=name,
        version=definition.version,
        requirements=definition.requirements,
        order=definition.weight,
        floor=floor,
        script=definition.enabled_script,
    )
