"""The operations of packages: the lifecycle store gives each operation a scope, in which the tasks of the operation run.

==============  =======================================================  =================================================
operation       tasks                                                    when its last task has succeeded
==============  =======================================================  =================================================
update          Disable (keeping the release), Download, Install, Load   the package is a node of the scheduler
reconciliation  Configure, AwaitCRDs, Startup, EnsureWebhooks, Run,      the scheduler is notified that the run is
                WaitReady                                                complete (at the end of Run)
disable         Disable                                                  the decision is reported again
suspend         Suspend (the hooks are stopped), or LoadStored           after LoadStored, the package is a node
vote            EnabledScript, in a lane of its own                      the decision is reported again; after a change
                                                                         of the specification, a run is requested
CRDs            EnsureCRDs, in a lane of its own                         AwaitCRDs continues
removal         Uninstall, Purge, Undeploy                               a task outside the queue forgets the package
move            Leave, Undeploy                                          as after a removal, but the package stays a node
==============  =======================================================  =================================================

When the lifecycle store gives an operation its scope, it cancels the operations that the new one supersedes. The tasks are
enqueued in the same step.
"""

from collections.abc import Callable
from typing import TypeAlias, assert_never

from wharfinger.queue.events import MAIN_LANE
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import Queues
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.effects import (
    Begin,
    BeginDisable,
    BeginReconciliation,
    BeginUpdate,
    BeginVote,
    Enqueue,
    EnqueueCrds,
    EnqueueDisable,
    EnqueueReconciliation,
    EnqueueRemoval,
    EnqueueSuspend,
    EnqueueUpdate,
    EnqueueVote,
    RepeatVote,
)
from wharfinger.runtime.package.events import (
    DisableDone,
    DisableStarted,
    Event,
    ReconciliationStarted,
    RemovalDone,
    RunDone,
    StoredLoaded,
    UpdateDone,
    UpdateStarted,
    VoteDone,
    VoteRepeated,
    VoteStarted,
)
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.tasks.crd_tasks import CRD_LANE
from wharfinger.runtime.tasks.pipeline import VOTE_LANE, Pipeline
from wharfinger.runtime.tasks.stage_task import StageTask

Emit: TypeAlias = Callable[[Event], None]
"""A function that passes an event to the package whose tasks are enqueued."""


def begun(effect: Begin, name: str, lifecycle: LifecycleStore) -> Event | None:
    """Begin an operation in the lifecycle store, and return the event that reports it; None if the store refused the
    operation.
    """
    match effect:
        case BeginUpdate(generation):
            scope = lifecycle.begin_update(name)
            return None if scope is None else UpdateStarted(scope, generation)
        case BeginReconciliation(run, reason):
            return ReconciliationStarted(run, lifecycle.begin_reconciliation(name, reason))
        case BeginDisable(reason, uninstall):
            scope, updating = lifecycle.begin_disable(name)
            return None if scope is None else DisableStarted(reason, uninstall, scope, updating)
        case BeginVote(reason):
            scope = lifecycle.begin_vote(name)
            return None if scope is None else VoteStarted(scope, reason, None)
        case RepeatVote(before, reason):
            scope = lifecycle.begin_vote(name)
            return None if scope is None else VoteStarted(scope, reason, before)
        case _:
            assert_never(effect)


def enqueue(effect: Enqueue, instance: Instance, tools: Tools, queues: Queues, host: Host, emit: Emit) -> None:
    """Put the tasks of an operation on the package's queue; ``emit`` is called with the event that reports the operation's
    end.
    """
    pipeline, scope = Pipeline(instance, tools, host, effect.scope), effect.scope
    match effect:
        case EnqueueUpdate():
            _put(queues, pipeline.update(), scope, "Load", lambda: emit(UpdateDone()))
        case EnqueueReconciliation(_, run):
            _put(queues, pipeline.reconciliation(), scope, "Run", lambda: emit(RunDone(run)))
        case EnqueueDisable(_, keep):
            _put(queues, pipeline.disable(keep=keep), scope, "Disable", lambda: emit(DisableDone()))
        case EnqueueSuspend():
            _put(queues, pipeline.suspend(), scope, "LoadStored", lambda: emit(StoredLoaded()))
        case EnqueueVote(_, reason):
            # The vote has a lane of its own, because it may supersede the running task: an endless wait, or a retry with
            # wrong settings.
            end = VoteDone(reason) if reason else VoteRepeated()
            _put(queues, pipeline.vote(), scope, "EnabledScript", lambda: emit(end), lane=VOTE_LANE)
        case EnqueueCrds():
            _put(queues, pipeline.crds(), scope, "EnsureCRDs", instance.crds_ensured, lane=CRD_LANE)
        case EnqueueRemoval():
            _put(queues, pipeline.removal(), scope, "Undeploy", lambda: emit(RemovalDone()))
        case _:
            assert_never(effect)


def _put(
    queues: Queues,
    tasks: tuple[StageTask, ...],
    scope: WorkScope,
    last: str,
    on_done: Callable[[], None],
    *,
    lane: str = MAIN_LANE,
) -> None:
    """Enqueue tasks; ``on_done`` is called after the task named ``last`` has succeeded."""
    for task in tasks:
        name = task.instance.id.name
        queues.enqueue(name, task, scope, lane=lane, on_done=on_done if task.name == last else None)
