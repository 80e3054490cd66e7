"""All packages of one cluster, and the loop that processes their events and carries out the effects.

An event of a package causes one step of the package's state machine (:mod:`~wharfinger.runtime.package.machine`). The effects
of the step are put before all other waiting effects, and carried out one after the other. The outcome of an effect is another
event. Events for the scheduler are passed to it immediately. The scheduler's orders (to run or to disable a package) are
carried out only when no effect is waiting; for each package, a new order replaces the former one
(:mod:`~wharfinger.runtime.scheduler.pending_decisions`). At the end, the rounds of global hooks are checked, and enabled
scripts run again if the list of Modules that they receive has changed. So no effect is carried out within another effect, no
code has to guard against re-entry, and the whole loop is one atomic step, because it contains no await.

The lifecycle store gives each operation its scope, and cancels the operations that the new operation supersedes. The scope
and the tasks are made in one step, so no other event comes between a decision and its tasks.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, assert_never

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.running.inbox import Inbox
from wharfinger.hooks.running.package_hooks import PackageHooks
from wharfinger.queue.events import MAIN_LANE
from wharfinger.queue.lane import acting_for
from wharfinger.queue.machine import QueueFull
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import Queues
from wharfinger.queue.task import Task
from wharfinger.runtime.core.decision_reporting import UnreportedDecisions
from wharfinger.runtime.core.departures import Departures
from wharfinger.runtime.core.global_rounds import GlobalRounds, Others
from wharfinger.runtime.core.hook_events import event_task
from wharfinger.runtime.core.modules import Modules
from wharfinger.runtime.core.observers import UNOBSERVED, Observers
from wharfinger.runtime.core.operations import begun, enqueue
from wharfinger.runtime.core.release_events import health_seen
from wharfinger.runtime.core.script_votes import ScriptVotes
from wharfinger.runtime.core.status_changes import StatusChanges
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import (
    Attempt,
    BeginBase,
    Cancel,
    CastVote,
    Effect,
    EnqueueBase,
    EnqueueRemoval,
    GiveWay,
    Log,
    Offer,
    Order,
    Phase,
    Simple,
    Tell,
)
from wharfinger.runtime.package.events import (
    CrdsStarted,
    DecisionMade,
    DecisionReported,
    DisableOrdered,
    Event,
    NeedsChanged,
    NodeAccepted,
    NodeRefused,
    NodeSettled,
    RunOrdered,
    SuspendStarted,
)
from wharfinger.runtime.package.instance import Instance, Tools
from wharfinger.runtime.package.news import is_news
from wharfinger.runtime.resources.identity import GLOBAL
from wharfinger.runtime.scheduler.events import (
    Decided,
    Disable,
    Failed,
    IntentSet,
    NodeAdded,
    NodeRemoved,
    Schedule,
)
from wharfinger.runtime.scheduler.events import Event as SchedulerEvent
from wharfinger.runtime.scheduler.graph import CycleError
from wharfinger.runtime.scheduler.package_node import node_of
from wharfinger.runtime.scheduler.pending_decisions import PackageOrders, PendingDecisions
from wharfinger.runtime.scheduler.scheduler import Scheduler
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.reasons import Reason

log = logging.getLogger(__name__)

PATIENCE: Final = 3
"""The number of failed attempts of a task after which packages of a higher order no longer wait for the task. So these packages
wait during a short outage, but not during a long one.
"""


class Packages:
    """The packages with their state machines, the scheduler, the lifecycle store, the waiting effects, and the waiting orders
    of the scheduler.
    """

    def __init__(
        self,
        tools: Tools,
        queues: Queues,
        changes: StatusChanges,
        instances: dict[str, Instance],
        kubernetes_version: str = "",
        observers: Observers = UNOBSERVED,
    ) -> None:
        self.tools = tools
        self.changes = changes
        self.instances = instances
        self.departures = Departures()
        self.lifecycle = LifecycleStore(observe=observers.lifecycle)
        self.scheduler = Scheduler(observers.scheduler)
        self.observe = observers.package
        self.unreported = UnreportedDecisions(self.scheduler)
        self.elsewhere: Callable[[PackageOrders], None] = _ignored
        """The callback for decisions and requests of the scheduler about packages that this runtime does not manage."""
        self.modules = Modules(self.instances, self.scheduler, kubernetes_version)
        self._queues = queues
        self._effects: deque[tuple[Instance, Effect]] = deque()
        self._early: dict[str, tuple[Instance, Offer]] = {}
        """New Modules in exclusive groups that the scheduler does not have yet, each with its offer. They wait until all
        installed packages are known, because an installed package may be the Module of the group that takes precedence.
        """
        self._orders = PendingDecisions()
        self._changed = False
        """True if the rounds and the enabled scripts have to be checked again."""
        self._votes = ScriptVotes(self.instances, self.lifecycle, self.unreported, self.modules, self._take)
        others = Others(
            self.instances, self.scheduler, self.lifecycle, self.unreported.unknown,
            self.note, self._take, self.settle, queues, tools, self,
        )  # fmt: skip
        self.rounds = GlobalRounds(others)

    # --- what happened ---------------------------------------------------------------------------------------------------

    def emit(self, instance: Instance, event: Event) -> None:
        """Process an event of a package, and do all resulting work."""
        if is_news(instance.state, event):
            self._take(instance, event)
            self.settle()

    def send(self, event: SchedulerEvent) -> None:
        """Pass an event to the scheduler, and do all resulting work. Raises CycleError, and then changes nothing."""
        self.note(event)
        self.settle()

    def note(self, event: SchedulerEvent) -> None:
        """Pass an event to the scheduler; a later call of `settle` does the resulting work. Raises CycleError, and then changes
        nothing.
        """
        self._orders.put(self.scheduler.apply(event, self.changes.now()))
        self._changed = True
        if isinstance(event, NodeRemoved):
            self._votes.node_removed(event.name)
            self.rounds.decided(event.name, on=False)

    def mark_known(self, names: Iterable[str]) -> None:
        """Record that these packages are known from now on, and report the decisions that were not reported while these
        packages were unknown.
        """
        new, due = self.unreported.mark_known(names)
        self._restate(due)
        if new:
            self._changed = True
            self._votes.rerun_provisional()
            self._effects.extend(self._early.values())
        self.settle()

    def expect_global(self) -> None:
        """Record that there are global hooks, so that no package runs before them."""
        self.rounds.expect()
        self.settle()

    def forget(self, name: str) -> None:
        """Forget a package whose removal is complete, and whose queue is deleted."""
        self.instances.pop(name, None)
        self._votes.forget(name)
        self._early.pop(name, None)
        self.lifecycle.complete_removal(name)
        self.send(IntentSet(name, None))
        if name == GLOBAL:
            self.rounds.gone()
            self.settle()

    # --- the tasks' host -------------------------------------------------------------------------------------------------

    def run_later(self, instance: Instance, task: Task, lane: str) -> bool:
        """Put a hook's run into a lane, in the scope of the package's hooks; return False if the run was not enqueued."""
        return self.enqueue_hook(instance, task, lane, instance.hooks.scope, unique=False)

    def enqueue_hook(self, instance: Instance, task: Task, lane: str, scope: WorkScope | None, *, unique: bool) -> bool:
        """Put a hook's run into a lane, in the given scope; return False if the run was not enqueued."""
        if scope is None:
            return False
        try:
            return self._queues.enqueue(instance.id.name, task, scope, lane=lane, unique=unique)
        except QueueFull as error:
            # The event waits in the hook's inbox; the hook's next event enqueues a task again.
            log.warning("%s: %s", instance.id, error)
            return False

    def tell_hook(self, hooks: PackageHooks, inbox: Inbox) -> None:
        """Enqueue a run of a hook for the events that wait in its inbox. The watches of hooks call this at each event."""
        instance = self.instances.get(hooks.package)
        if instance is not None and (task := event_task(instance, hooks, inbox, self.tools, self)) is not None:
            self.enqueue_hook(instance, task, task.lane, task.scope, unique=True)

    def modules_before(self, instance: Instance) -> tuple[str, ...]:
        """Return the names of the Modules that are on and come before the package."""
        return self.modules.before(instance)

    def global_values(self) -> JsonObject:
        """Return the values that every package sees under ``global``."""
        return self.modules.global_values()

    def global_settings(self) -> JsonObject:
        """Return the part of the global values that a user set."""
        return self.modules.global_settings()

    # --- the loop --------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Carry out all pending effects of packages and all pending effects of the scheduler, and then the effects that result
        from these, until none is left.
        """
        while True:
            if self._effects:
                self._perform(*self._effects.popleft())
            elif (orders := self._orders.take()) is not None:
                self._carry_out(orders)
            elif self._changed:
                self._changed = False
                self.rounds.look()
                self._votes.rerun_if_modules_changed()
            else:
                return

    def _take(self, instance: Instance, event: Event) -> None:
        before = instance.status
        around = Around(self.changes.now(), self.lifecycle.package(instance.id.name))
        effects = instance.take(event, around)
        self._effects.extendleft((instance, effect) for effect in reversed(effects))
        if instance.status is not before:
            self.changes.report(instance, before)

    def _perform(self, instance: Instance, effect: Effect) -> None:
        match effect:
            case Simple():
                self._perform_simple(instance, effect)
            case Tell(event):
                self.note(event)
            case Offer():
                self._offer(instance, effect)
            case Order(order):
                self._order(instance, order)
            case Cancel(scope, cause):
                scope.cancel(cause)
            case Log(text, warning):
                with acting_for(instance.id.name):
                    log.log(logging.WARNING if warning else logging.INFO, "%s: %s", instance.id, text)
            case Attempt() | GiveWay() | CastVote():
                self._perform_for_others(instance, effect)
            case BeginBase():
                if (start := begun(effect, instance.id.name, self.lifecycle)) is not None:
                    self._take(instance, start)
            case EnqueueBase():
                enqueue(effect, instance, self.tools, self._queues, self, partial(self.emit, instance))
            case _:
                assert_never(effect)

    def _perform_for_others(self, instance: Instance, effect: Attempt | GiveWay | CastVote) -> None:
        """Carry out an effect for which other packages wait, or whose result depends on other packages."""
        name = instance.id.name
        match effect:
            case Attempt(phase, begins):
                tries = self.tools.crd_phase if phase is Phase.CRDS else self.tools.load_phase
                (tries.begin if begins else tries.end)(name)
            case GiveWay(run, at_once):
                if at_once or self._attempts(name) >= PATIENCE:
                    self.note(Failed(name, run))
            case CastVote():
                self._votes.record(instance, effect)
            case _:
                assert_never(effect)

    def _perform_simple(self, instance: Instance, effect: Simple) -> None:  # noqa: C901 - a table
        name = instance.id.name
        match effect:
            case Simple.SUSPEND:
                if (scope := self.lifecycle.begin_suspend(name)) is not None:
                    self._take(instance, SuspendStarted(scope))
            case Simple.CRDS:
                self._take(instance, CrdsStarted(WorkScope(f"CRDs of {name}")))
            case Simple.UNPARK:
                self._queues.unpark(name)
            case Simple.NEEDS_CHANGED:
                self._take(instance, NeedsChanged())
            case Simple.UPDATE_COMPLETE:
                self.lifecycle.complete_update(name)
            case Simple.RUN_COMPLETE:
                self.lifecycle.complete_run(name)
            case Simple.RESTART_REMOVAL:
                if (scope := self.lifecycle.restart_removal(name)) is not None:
                    self._effects.appendleft((instance, EnqueueRemoval(scope)))
            case Simple.RESTATE:
                if (decided := self.scheduler.decision(name)) is not None:
                    self._say(instance, decided)
            case Simple.SETTLE:
                enabled, unwanted = self.scheduler.enabled(name), self.scheduler.unwanted(name)
                self._take(instance, NodeSettled(enabled, unwanted))
            case Simple.NOTIFY:
                self.changes.on_change(name)
            case Simple.REST_RELEASE:
                self.tools.releases.suspend(Owner(instance.id.release, instance.id.namespace))
            case Simple.LOOK_AT_HEALTH:
                health = self.tools.releases.health(Owner(instance.id.release, instance.id.namespace))
                if health.known and health.laggards:
                    self._take(instance, health_seen(health, instance.masked))
            case Simple.ROUND_BEGINS:
                self.rounds.begins()
            case Simple.ROUND_RAN:
                self.rounds.has_run(instance)
            case Simple.FLAGS_SEEN:
                self.rounds.hook_ran(instance)
            case Simple.ASK_PROVISIONAL:
                self._votes.rerun_provisional()
            case Simple.SEE_OTHERS:
                self._votes.rerun_one_if_modules_changed(instance)
            case Simple.CLEAN:
                self.lifecycle.finish_removal(name)
                self.departures.put(name)
            case _:
                assert_never(effect)

    def _attempts(self, name: str) -> int:
        """Return how many attempts the present task of a package's main lane has had."""
        tasks = self._queues.dump_one(name).tasks
        return next((task.attempt for task in tasks if task.lane == MAIN_LANE), 0)

    # --- the scheduler ---------------------------------------------------------------------------------------------------

    def _offer(self, instance: Instance, offer: Offer) -> None:
        """Pass a package's node to the scheduler. The node is refused if it would close a cycle of dependencies."""
        definition, name = offer.definition, instance.id.name
        if self._early.pop(name, None) is not None and self.lifecycle.is_removing(name):
            return
        new = instance.status.installed_since is None
        if new and definition.exclusive_group and self.unreported.others_unknown(name):
            self._early[name] = instance, offer
            return
        try:
            self.note(NodeAdded(node_of(instance.id, definition, instance.desired.directives)))
        except CycleError as error:
            if offer.stored:
                log.warning("%s: %s", instance.id, error)
                return
            failure = Failure(Reason.DEPENDENCY_CYCLE, str(error), permanent=True)
            self._take(instance, NodeRefused(failure, offer.fresh, offer.established))
        else:
            self._take(instance, NodeAccepted(definition, offer.fresh, offer.stored))

    def _carry_out(self, orders: PackageOrders) -> None:
        """Carry out the scheduler's orders for one package."""
        decided = orders.decided
        if decided is not None:
            self._votes.decision_changed()
            self.rounds.decided(orders.name, on=decided.allowed)
        instance = self.instances.get(orders.name)
        if instance is None:
            self.elsewhere(orders)
            return
        # If the vote of the script is still pending, the decision is reported after the vote, which follows immediately.
        if decided is not None and decided.reason != Reason.SCRIPT_PENDING:
            self._say(instance, decided)
            self._take(instance, DecisionMade(decided.allowed))
        if orders.order is not None:
            self._effects.append((instance, Order(orders.order)))

    def _order(self, instance: Instance, order: Schedule | Disable) -> None:
        match order:
            case Schedule(_, run, reason):
                self._take(instance, RunOrdered(run, reason))
            case Disable(_, reason, _, uninstall):
                self._take(instance, DisableOrdered(reason, uninstall))
            case _:
                assert_never(order)

    def _say(self, instance: Instance, decided: Decided) -> None:
        """Report a decision, unless ``unreported`` holds the report back for now."""
        installed = instance.status.installed_since is not None
        if not self.unreported.holds_back(decided, installed=installed):
            self._take(instance, DecisionReported(decided))
            self._restate(self.unreported.due(decided.name))

    def _restate(self, names: Iterable[str]) -> None:
        """For each of these packages, append an effect that reports its decision again. It comes after the effects that already
        wait.
        """
        known = (self.instances.get(name) for name in names)
        self._effects.extend((instance, Simple.RESTATE) for instance in known if instance is not None)


def _ignored(_orders: PackageOrders) -> None:
    """Ignore the scheduler's orders for a package that is unknown at the moment."""
