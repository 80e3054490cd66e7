"""The operations of packages: the tasks that a decision puts on a package's queue, and the scheduler's orders.

The lifecycle store gives each operation its scope and cancels the operations that it supersedes; this module gives the scope
its tasks. Beginning an operation is one atomic step, so nothing comes between a decision and its consequences:

==============  =======================================================  =================================================
operation       tasks                                                    when its last task has succeeded
==============  =======================================================  =================================================
update          Disable (keeping the release), Download, Install, Load   the package is a node of the scheduler
reconciliation  Configure, AwaitCRDs, Startup, EnsureWebhooks, Run,      the scheduler is notified that the run is
                WaitReady                                                complete (at the end of Run)
disable         Disable                                                  the decision is kept in the status
suspend         Suspend (its hooks are stopped), or LoadStored           nothing is done until an update resumes it
vote            EnabledScript, in a lane of its own                      the package is scheduled again
CRDs            EnsureCRDs, in a lane of its own                         AwaitCRDs goes on
removal         Uninstall, Purge, Undeploy                               the package is forgotten, outside its queue
==============  =======================================================  =================================================

The scheduler's orders are performed one package after the other, even if performing one causes the next
(:mod:`wharfinger.runtime.scheduler.pending_decisions`).
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, assert_never

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.queue.events import MAIN_LANE
from wharfinger.queue.machine import QueueFull
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.task import Task
from wharfinger.runtime.lifecycle.store import RemovalStart
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import ModuleId, PackageId, has_release, is_global
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.settings import ResolvedSettings
from wharfinger.runtime.scheduler.events import (
    Completed,
    Disable,
    Event,
    Failed,
    NodeAdded,
    NodeRemoved,
    Rescheduled,
    Schedule,
    ScriptVoted,
)
from wharfinger.runtime.scheduler.graph import CycleError
from wharfinger.runtime.scheduler.package_node import node_of
from wharfinger.runtime.scheduler.pending_decisions import Orders, PackageOrders
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.tasks.crd_tasks import CRD_LANE
from wharfinger.runtime.tasks.pipeline import VOTE_LANE, Pipeline
from wharfinger.runtime.tasks.stage_task import StageTask

if TYPE_CHECKING:
    from wharfinger.runtime.core.runtime import Runtime

log = logging.getLogger(__name__)


class Operations:
    """The operations of one runtime, also those that its scheduler orders; all of them begin here."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime
        self._orders = Orders()
        self._performing = False
        self._seeing: set[str] = set()
        """Module folders with an enabled script, which sees the other Modules that are on."""
        self._turned = False
        """True if something was decided since their scripts were last considered."""

    # --- update ----------------------------------------------------------------------------------------------------------

    def begin_update(self, instance: Instance, generation: int) -> None:
        """Download the wanted version and load it; refused while the package is suspended or being removed."""
        runtime = self.runtime
        scope = runtime.lifecycle.begin_update(instance.id.name)
        if scope is None:
            return
        instance.begun = runtime.now()
        if isinstance(instance.id, ModuleId) and not is_global(instance.id):
            runtime.tools.load_phase.begin(instance.id.name)
        self._end_crds(instance, "update started")
        if (
            isinstance(instance.id, ModuleId)
            and instance.status.installed_since is not None
            and not instance.loaded_once
        ):
            # After a restart: other packages were applied with this one on, and with its kinds; they wait for one attempt.
            runtime.tools.crd_phase.begin(instance.id.name)
        self.tell_scheduler(Failed(instance.id.name, instance.run))  # the interrupted run holds nothing back
        runtime.set_status(
            instance, statuses.update_started(instance.status, generation, runtime.now(), version=instance.version)
        )
        self._enqueue(self._pipeline(instance, scope).update(), scope, {"Load": lambda: self._loaded(instance)})

    def _loaded(self, instance: Instance) -> None:
        name, runtime = instance.id.name, self.runtime
        runtime.lifecycle.complete_update(name)
        runtime.tools.load_phase.end(name)
        if instance.definition is None:
            raise AssertionError(f"{instance.id}: Load succeeded and nothing is loaded")
        instance.loaded_once = True
        self._end_crds(instance, "loaded anew")
        self._join(instance, instance.definition)
        self.ask_scripts_again()
        self._ask_if_it_sees_others(instance)

    def needs_changed(self, instance: Instance) -> None:
        """Update the package's node after its resource's dependencies have changed; a version being loaded does so itself.

        If the change would close a cycle, it is refused, and the earlier dependencies stay in force.
        """
        if instance.definition is not None and not self.runtime.lifecycle.is_loading(instance.id.name):
            self._join(instance, instance.definition)

    def _join(self, instance: Instance, definition: Definition) -> None:
        """Make the loaded package a node of the scheduler, and perform the scheduler's orders.

        If that would close a cycle, it is refused: the earlier version, if one is installed, stays the node that others
        depend on.
        """
        before, is_new = instance.crds, definition is not instance.joined
        if is_new:
            instance.crds = None if definition.crds else ()
        try:
            self._add_node(instance, definition)
        except CycleError as error:
            failure = Failure(Reason.DEPENDENCY_CYCLE, str(error), permanent=True)
            if is_new:
                instance.crds, instance.refused = before, failure
            self.runtime.reports.failed(instance, Stage.REQUIREMENTS, failure)
            if is_new and not instance.status.version:
                self.tell_scheduler(NodeRemoved(instance.id.name))  # nothing is installed that dependents could use
            return
        self.restate_requirements(instance)
        if not is_new:
            return
        if self.runtime.scheduler.enabled(instance.id.name):
            self._begin_crds(instance)
        elif (missed := instance.missed_disable) is not None:
            # Whether to uninstall is decided now: a package that was unwanted then may now only lack a requirement.
            self._begin_disable(instance, missed[0], self.runtime.scheduler.unwanted(instance.id.name))
        instance.missed_disable = None
        if definition.enabled_script and instance.voted_for != instance.wanted_settings.checksum:
            self.reconfigure(instance, "SettingsChanged")

    def _add_node(self, instance: Instance, definition: Definition) -> None:
        """Pass the package's node and vote to the scheduler. Raises CycleError."""
        name = instance.id.name
        instance.refused = None  # before the scheduler is notified, because that begins operations at once
        self.tell_scheduler(NodeAdded(node_of(instance.id, definition, instance.wanted)))
        instance.joined = definition
        self.tell_scheduler(self.runtime.votes.get(name, ScriptVoted(name, None)))

    # --- reconciliation --------------------------------------------------------------------------------------------------

    def reconfigure(self, instance: Instance, reason: str) -> None:
        """Act on a changed specification of a loaded package; an enabled script that may read its settings is asked first."""
        name, runtime = instance.id.name, self.runtime
        if instance.definition is not None and instance.refused is not None:
            self._join(instance, instance.definition)  # the obstacle may be gone
        elif instance.definition is None or not instance.definition.enabled_script:
            self.tell_scheduler(Rescheduled(name, reason))
        elif (scope := runtime.lifecycle.begin_vote(name)) is not None:
            tasks = self._pipeline(instance, scope).vote()
            done = {tasks[0].name: lambda: self._has_voted(instance, reason)}
            # Not queued behind the running task, which it may supersede: an endless wait, or a retry with wrong settings.
            self._enqueue(tasks, scope, done, lane=VOTE_LANE)

    def ask_scripts_again(self) -> None:
        """Ask those enabled scripts again that voted before all installed packages were loaded."""
        for name in sorted(name for name, vote in self.runtime.votes.items() if vote.provisional):
            instance = self.runtime.instances.get(name)
            if instance is None or instance.definition is None or self.runtime.statements.missing(name):
                continue
            self._ask_again(instance)

    def _ask_again(self, instance: Instance) -> None:
        """Ask a package's enabled script about the Modules that are on now, unless it is being asked about exactly these."""
        before = self.runtime.modules_before(instance)
        if before == instance.saw and instance.voting is not None and not instance.voting.cancelled:
            return
        if (scope := self.runtime.lifecycle.begin_vote(instance.id.name)) is not None:
            instance.saw, instance.voting = before, scope
            tasks = self._pipeline(instance, scope).vote()
            self._enqueue(tasks, scope, {tasks[0].name: lambda: self._asked_again(instance)}, lane=VOTE_LANE)

    def _asked_again(self, instance: Instance) -> None:
        instance.voting = None
        self.restate_requirements(instance)

    def _has_voted(self, instance: Instance, reason: str) -> None:
        self.restate_requirements(instance)
        self.tell_scheduler(Rescheduled(instance.id.name, reason))

    def _begin_reconciliation(self, instance: Instance, run: int, reason: str) -> None:
        """Run the loaded package.

        While a version is being loaded, nothing is begun: the end of the load orders a run. A refused version is offered to
        the scheduler once more instead.
        """
        name, lifecycle = instance.id.name, self.runtime.lifecycle
        instance.run = run
        if is_global(instance.id):
            self.runtime.rounds.begins()
        if lifecycle.is_loading(name):
            self.tell_scheduler(Failed(name, run))
            return
        if instance.refused is not None and instance.definition is not None and not lifecycle.is_suspended(name):
            self._join(instance, instance.definition)
            return
        scope = lifecycle.begin_reconciliation(name, reason)
        instance.disabling = instance.missed_disable = None
        if scope is None:
            # Suspended, or being removed: nothing will run. An installed package is still present for its dependents.
            there = instance.status.installed_since is not None and lifecycle.is_suspended(name)
            self.tell_scheduler((Completed if there else Failed)(name, run))
            return
        tasks = self._pipeline(instance, scope).reconciliation()
        self._enqueue(tasks, scope, {"Run": lambda: self._has_run(instance, run)})

    def _has_run(self, instance: Instance, run: int) -> None:
        self.runtime.lifecycle.complete_run(instance.id.name)
        self.tell_scheduler(Completed(instance.id.name, run))
        if is_global(instance.id):
            self.runtime.rounds.has_run(instance)
        if instance.dirty:
            instance.dirty = False
            self.tell_scheduler(Rescheduled(instance.id.name, "HookValuesChanged"))

    # --- CRDs ------------------------------------------------------------------------------------------------------------

    def _begin_crds(self, instance: Instance) -> None:
        """Ensure the definitions of a package that is on, before its turn in the order; all others wait for one attempt."""
        name, runtime = instance.id.name, self.runtime
        under_way = instance.crd_scope is not None and not instance.crd_scope.cancelled
        if instance.crds is not None or under_way or runtime.lifecycle.is_suspended(name):
            return
        if runtime.lifecycle.is_loading(name):
            return  # the version being loaded ensures its own
        instance.crd_scope = WorkScope(f"CRDs of {name}")
        runtime.tools.crd_phase.begin(name)
        tasks = self._pipeline(instance, instance.crd_scope).crds()
        self._enqueue(tasks, instance.crd_scope, {tasks[0].name: instance.crds_ensured}, lane=CRD_LANE)

    def _end_crds(self, instance: Instance, cause: str) -> None:
        if instance.crd_scope is not None:
            instance.crd_scope.cancel(cause)
            instance.crd_scope = None
        self.runtime.tools.crd_phase.end(instance.id.name)

    def _end_load(self, instance: Instance) -> None:
        """End the loading phase of a package, so that no other package waits for it any more."""
        self.runtime.tools.load_phase.end(instance.id.name)

    # --- disable and suspend ---------------------------------------------------------------------------------------------

    def _begin_disable(self, instance: Instance, reason: str, uninstall: bool) -> None:  # noqa: FBT001 - as in missed_disable
        runtime = self.runtime
        name, lifecycle = instance.id.name, runtime.lifecycle
        unread = instance.definition is None and lifecycle.is_loading(name)
        if lifecycle.is_suspended(name) or unread:
            # Nothing is deleted now. The update that resumes the package decides, or the one that loads its hooks.
            instance.missed_disable = (reason, uninstall)
            return
        scope, updating = lifecycle.begin_disable(name)
        if scope is None:
            return
        log.info("%s: being disabled: %s", instance.id, reason)
        self._end_crds(instance, "disabled")
        self._end_load(instance)
        runtime.set_status(instance, statuses.stopped(instance.status, runtime.now()))
        tasks = self._pipeline(instance, scope).disable(keep=not uninstall)
        instance.disabling = (reason, uninstall)
        self._enqueue(tasks, scope, {tasks[-1].name: lambda: self._has_disabled(instance)})
        if updating:
            self.begin_update(instance, instance.status.generation)

    def _has_disabled(self, instance: Instance) -> None:
        instance.disabling = None
        self.restate_requirements(instance)

    def begin_suspend(self, instance: Instance) -> None:
        """End the running work of a package, and stop its hooks; everything in the cluster is kept as it is."""
        scope = self.runtime.lifecycle.begin_suspend(instance.id.name)
        if scope is None:
            return
        log.info("%s: suspended", instance.id)
        if has_release(instance.id):
            self.runtime.tools.releases.rest(Owner(instance.id.release, instance.id.namespace))
        instance.missed_disable = instance.disabling or instance.missed_disable
        instance.disabling = None
        self._end_crds(instance, "suspended")
        self._end_load(instance)
        # Whatever was interrupted, an installed package is still present for its dependents.
        ended = Completed if instance.status.installed_since is not None else Failed
        self.tell_scheduler(ended(instance.id.name, instance.run))
        tasks = self._pipeline(instance, scope).suspend()
        self._enqueue(tasks, scope, {"LoadStored": lambda: self._has_loaded_stored(instance)})

    def _has_loaded_stored(self, instance: Instance) -> None:
        """Make a suspended package a node: its dependents know that it is present, although nothing is done for it.

        The controller is notified, because changes may be held until this package is known.
        """
        self.runtime.on_change(instance.id.name)
        if instance.definition is None:
            return
        try:
            self._add_node(instance, instance.definition)
        except CycleError as error:
            log.warning("%s: %s", instance.id, error)

    def restate_requirements(self, instance: Instance) -> None:
        """Report the scheduler's decision again, after a failure was reported in between."""
        self.runtime.statements.restate(instance)

    # --- removal ---------------------------------------------------------------------------------------------------------

    def remove(
        self,
        identity: PackageId,
        generation: int,
        written: JsonObject,
        settings: ResolvedSettings | None,
        deletion: DeletionPolicy | None,
    ) -> bool:
        """Begin the removal unless it runs; return True once it is over. See `Runtime.remove_app`."""
        name, runtime = identity.name, self.runtime
        if runtime.is_removed(name):
            return True
        runtime.lifecycle.track(name)
        start, scope = runtime.lifecycle.begin_removal(name)
        if start is RemovalStart.STARTED and scope is not None:
            instance = runtime.instances.get(name)
            if instance is None:
                status = statuses.restored(generation, written, runtime.now())
                instance = runtime.new_instance(identity, status)
            # After a refused claim, the package that has the release keeps all of it.
            instance.disowned = has_release(instance.id) and runtime.claims.claim(instance.id) is not None
            if instance.source is None:  # this process does not know what is wanted of it
                instance.wanted_settings = settings or instance.wanted_settings
            instance.deletion = deletion or instance.wanted.upkeep.deletion
            self._end_crds(instance, "removal started")
            self._end_load(instance)
            runtime.set_status(
                instance,
                statuses.removing(instance.status, "Removing", "the release is being uninstalled", runtime.now()),
            )
            self._turned = True
            self._seeing.discard(name)
            self.runtime.rounds.decided(name, on=False)
            self.tell_scheduler(NodeRemoved(name))
            self._enqueue_removal(instance, scope)
        elif deletion is not None and (known := runtime.instances.get(name)) is not None and known.deletion != deletion:
            log.warning("%s: its removal is begun again: deletionPolicy is %s now", identity, deletion)
            known.deletion = deletion
            self.restart_removal(known)
        return False

    def restart_removal(self, instance: Instance) -> None:
        """Interrupt a removal that runs, and begin it again."""
        if (scope := self.runtime.lifecycle.restart_removal(instance.id.name)) is not None:
            self._enqueue_removal(instance, scope)

    def _enqueue_removal(self, instance: Instance, scope: WorkScope) -> None:
        tasks = self._pipeline(instance, scope).removal()
        self._enqueue(tasks, scope, {tasks[-1].name: lambda: self.runtime.clean_later(instance.id.name)})

    # --- the scheduler ---------------------------------------------------------------------------------------------------

    def tell_scheduler(self, event: Event) -> None:
        """Apply an event and perform the orders that follow, in sequence, including those of events that they cause.

        Raises CycleError; nothing has changed then.
        """
        self._orders.put(self.runtime.scheduler.apply(event, self.runtime.now()))
        if self._performing:
            return
        self._performing = True
        try:
            while (orders := self._orders.take()) is not None:
                self._perform(orders)
        finally:
            self._performing = False
        self.runtime.rounds.look()
        self._ask_who_sees_others()

    def _ask_who_sees_others(self) -> None:
        """Ask the enabled scripts of module folders again if the Modules before them that are on have changed since they
        were last asked.
        """
        if not self._turned:
            return
        self._turned = False
        for name in sorted(self._seeing):
            if (instance := self.runtime.instances.get(name)) is not None:
                self._ask_if_it_sees_others(instance)

    def _ask_if_it_sees_others(self, instance: Instance) -> None:
        name, definition = instance.id.name, instance.definition
        if definition is None or not definition.enabled_script or definition.layout is not Layout.MODULE_FOLDER:
            self._seeing.discard(name)
            return
        self._seeing.add(name)
        if self.runtime.lifecycle.is_loading(name):
            return  # Load asks the script, and `_loaded` considers it again
        if self.runtime.modules_before(instance) != instance.saw:
            self._ask_again(instance)

    def _perform(self, orders: PackageOrders) -> None:
        if orders.decided is not None:
            self._turned = True
            self.runtime.rounds.decided(orders.name, on=orders.decided.allowed)
        instance = self.runtime.instances.get(orders.name)
        if instance is None:
            return
        decided = orders.decided
        if (
            decided is not None and decided.reason != Reason.SCRIPT_PENDING
        ):  # its vote follows at once, and the decision is reported then
            self.runtime.statements.say(instance, decided)
            if decided.allowed:
                instance.missed_disable = None
            if decided.allowed and instance.refused is None:
                self._begin_crds(instance)
        match orders.order:
            case Schedule(_, run, reason):
                self._begin_reconciliation(instance, run, reason)
            case Disable(_, reason, _, uninstall):
                self._begin_disable(instance, reason, uninstall)
            case None:
                pass
            case _:
                assert_never(orders.order)

    # --- queues ----------------------------------------------------------------------------------------------------------

    def _pipeline(self, instance: Instance, scope: WorkScope) -> Pipeline:
        return Pipeline(instance, self.runtime.tools, self.runtime.reports, scope)

    def _enqueue(
        self,
        tasks: tuple[StageTask, ...],
        scope: WorkScope,
        on_done: Mapping[str, Callable[[], None]],
        *,
        lane: str = MAIN_LANE,
    ) -> None:
        """Put an operation's tasks on the package's queue; ``on_done`` is called after the task of that name has succeeded."""
        for task in tasks:
            name = task.instance.id.name
            self.runtime.queues.enqueue(name, task, scope, lane=lane, on_done=on_done.get(task.name))

    def enqueue_hook(self, instance: Instance, task: Task, lane: str, scope: WorkScope | None, *, unique: bool) -> bool:
        """Put a hook's run into a lane of its own; return False if it was not taken."""
        if scope is None:
            return False
        try:
            return self.runtime.queues.enqueue(instance.id.name, task, scope, lane=lane, unique=unique)
        except QueueFull as error:
            # The event waits in the hook's inbox; the hook's next event enqueues a task again.
            log.warning("%s: %s", instance.id, error)
            return False
