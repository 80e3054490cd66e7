"""The state machine of one package: a pure function from the package's state and an event to the next state and the effects
to carry out.

Theory of operation. The lifecycle machine (:mod:`~wharfinger.runtime.lifecycle.lifecycle_machine`) decides which operation may
begin, and which other operations are cancelled when it begins. The scheduler decides which packages may be on, and in which
order they run. This state machine connects the two. For a decision or a request, it returns effects that request operations
from the lifecycle store (:mod:`~wharfinger.runtime.lifecycle.store`). When an operation has ended, it returns the effects that
have to be carried out next. The phase of a package is determined by the lifecycle machine and by the package's state:

================  ================================================================================================
unread            no definition was read
loading           an update runs
suspended         a user has suspended the package
refused           the scheduler refused the loaded definition, because it would close a cycle
joined            the loaded definition is the scheduler's node
================  ================================================================================================

The table shows the action for an event in each phase. ``-`` means no action, and *missed* means that the Disable is recorded for
later. Rescheduled is an event that asks the scheduler for a run.

=================  ===============  =====================  ====================  =================  =====================
event              unread           loading                suspended             refused            joined
=================  ===============  =====================  ====================  =================  =====================
RunOrdered         reconciliation   fails; another run is  completed if          offer again        reconciliation
                   [1]              ordered after loading  installed [1]
DisableOrdered     Disable          Disable; missed if     missed                Disable            Disable
                                    nothing was read
DecisionMade, on   -                -                      -                     -                  ensure its CRDs
DesiredAdopted[2]  Rescheduled      - [4]                  - [3]                 offer again        vote if it has a
                                                                                                    script, else Rescheduled
NeedsChanged       -                -                      offer                 offer              offer
ValuesChanged      Rescheduled      Rescheduled            Rescheduled           Rescheduled        Rescheduled; only recorded
                                                                                                    while a run applies values
=================  ===============  =====================  ====================  =================  =====================

[1] The lifecycle machine refuses the reconciliation if the package is suspended, being removed or unknown. Then the run counts
as completed for dependents if the package is installed and suspended, and as failed otherwise. [2] Only if the lifecycle store
decided RECONFIGURE, which means that no update is required. [3] The lifecycle store never decides RECONFIGURE about a suspended
package. [4] The reconciliation after the load uses the newest settings.

The effects of the end of an operation's last task:

=================  ===================================================================================================
UpdateDone         the definition is offered to the scheduler, and enabled scripts that ran too early run again
RunDone            the scheduler is notified; if the values changed meanwhile, the scheduler is asked for another run
DisableDone,       the scheduler's decision is reported again, because a failure may have been reported since the decision
VoteRepeated
VoteDone           as for VoteRepeated, and the scheduler is asked for a run. If the Modules that are on have changed
                   meanwhile, a newer vote interrupts this one, and VoteDone is the event at the end of the newer vote
StoredLoaded       the definition is offered, so that the package counts as present for its dependents
RemovalDone        another task, which is not in the package's queue, deletes the queue and forgets the package
=================  ===================================================================================================

Invariants: no Disable is under way while the package is suspended; a refusal lasts until the next offer; the scope of the
task that ensures CRDs is cancelled before another update, a Disable, a suspension or a removal; an event changes only the
state of this package.

The functions for single events are in :mod:`~wharfinger.runtime.package.reports` (reports of tasks),
:mod:`~wharfinger.runtime.package.operations`, :mod:`~wharfinger.runtime.package.decisions` and
:mod:`~wharfinger.runtime.package.offers`. No trio, no clock, no I/O, no logging.
"""

from typing import assert_never

from wharfinger.runtime.lifecycle.desired_state import DecisionKind
from wharfinger.runtime.package.around import Around, Next
from wharfinger.runtime.package.decisions import answered, decided
from wharfinger.runtime.package.effects import Attempt, BeginUpdate, Effect, EnqueueCrds, Phase, Simple
from wharfinger.runtime.package.events import (
    Changed,
    CrdsStarted,
    DecisionMade,
    DecisionReported,
    DeletionChanged,
    DesiredAdopted,
    DisableDone,
    DisableOrdered,
    DisableStarted,
    Event,
    NeedsChanged,
    NodeAccepted,
    NodeRefused,
    NodeSettled,
    OthersTurned,
    Outcome,
    OutcomeBase,
    ReconciliationStarted,
    RemovalAccountChanged,
    RemovalDone,
    RemovalStarted,
    ReportBase,
    Request,
    RequestBase,
    RunDone,
    RunOrdered,
    SkipDeleteHooks,
    StoredLoaded,
    SuspendStarted,
    UpdateDone,
    UpdateStarted,
    UpdateWanted,
    VoteDone,
    VoteRecorded,
    VoteRepeated,
    VoteStarted,
)
from wharfinger.runtime.package.facts import AttemptBegun, CrdsBegun, DeleteHooksSkipped, RefreshWanted
from wharfinger.runtime.package.findings import AccountGiven, DeletionChosen
from wharfinger.runtime.package.offers import ask_again, offer, reconfigured, voted
from wharfinger.runtime.package.operations import disabled, reconciled, removed, suspended, updated
from wharfinger.runtime.package.reports import reported, with_status
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.status import transitions as statuses


def step(package: Package, event: Event, around: Around) -> Next:
    """Return the package after an event, and the effects in the order in which they are to be carried out."""
    match event:
        case ReportBase():
            return reported(package, event, around)
        case OutcomeBase():
            return _outcome(package, event, around)
        case RequestBase():
            return _request(package, event, around)
        case _:
            return applied(package, event), ()


def _request(package: Package, event: Request, around: Around) -> Next:
    match event:
        case UpdateWanted(generation):
            return applied(package, RefreshWanted()), (BeginUpdate(generation),)
        case DesiredAdopted():
            return _adopted_desired(package, event, around)
        case NeedsChanged():
            return (package, ()) if around.loading else offer(package)
        case OthersTurned(before, forced):
            return package, ask_again(package, before, forced=forced)
        case RunOrdered() | DisableOrdered() | DecisionMade() | DecisionReported():
            return decided(package, event, around)
        case DeletionChanged(deletion):
            return applied(package, DeletionChosen(deletion)), (Simple.RESTART_REMOVAL,)
        case RemovalAccountChanged(account):
            return applied(package, AccountGiven(account)), (Simple.RESTART_REMOVAL,)
        case SkipDeleteHooks():
            return applied(package, DeleteHooksSkipped()), (Simple.RESTART_REMOVAL,)
        case Changed(status):
            return with_status(package, status), ()
        case _:
            assert_never(event)


def _outcome(package: Package, event: Outcome, around: Around) -> Next:
    match event:
        case UpdateStarted() | UpdateDone():
            return updated(package, event, around)
        case NodeAccepted() | NodeRefused() | NodeSettled():
            return answered(package, event, around)
        case VoteRecorded() | VoteStarted() | VoteDone() | VoteRepeated():
            return voted(package, event, around)
        case ReconciliationStarted() | RunDone():
            return reconciled(package, event, around)
        case DisableStarted() | DisableDone():
            return disabled(package, event, around)
        case SuspendStarted() | StoredLoaded():
            return suspended(package, event)
        case CrdsStarted(scope):
            return applied(package, CrdsBegun(scope)), (Attempt(Phase.CRDS, begins=True), EnqueueCrds(scope))
        case RemovalStarted():
            return removed(package, event, around)
        case RemovalDone():
            return package, (Simple.CLEAN,)
        case _:
            assert_never(event)


def _adopted_desired(package: Package, event: DesiredAdopted, around: Around) -> Next:
    now, generation, kind = around.now, event.generation, event.decision.kind
    package = applied(package, event.given)
    mode = package.desired.directives.maintenance
    status = statuses.set_maintenance(package.status, mode, now)
    package = with_status(package, statuses.rolled_back(status, package.desired.directives.rolled_back, now))
    asked = package.desired.directives.asked
    if asked != package.desired.attempt.asked and kind is not DecisionKind.REMOVING:
        package = applied(package, AttemptBegun(asked, now))
    unblocked = package.status.blocked is not None
    effects: tuple[Effect, ...] = ()
    match kind:
        case DecisionKind.SUSPEND:
            seen = statuses.observed(package.status, generation, now)
            package, effects = with_status(package, statuses.suspended(seen, now, suspended=True)), (Simple.SUSPEND,)
        case DecisionKind.UPDATE | DecisionKind.RESUME:
            if event.scope is not None:
                package, effects = updated(package, UpdateStarted(event.scope, generation), around)
            if kind is DecisionKind.RESUME:
                package = with_status(package, statuses.suspended(package.status, now, suspended=False))
        case DecisionKind.RECONFIGURE | DecisionKind.NONE if event.new_login:
            effects = (BeginUpdate(generation),)
        case DecisionKind.RECONFIGURE:
            package = with_status(package, statuses.reconfigure_started(package.status, generation, now))
            package, more = (package, ()) if around.loading else reconfigured(package, event.decision.reason)
            effects = (Simple.UNPARK, *more)
        case DecisionKind.NONE:
            if unblocked or package.status.generation != generation:
                package = with_status(package, statuses.observed(package.status, generation, now))
        case DecisionKind.REMOVING:
            pass  # the desired state was not adopted
        case _:
            assert_never(kind)
    return package, (*effects, *((Simple.NEEDS_CHANGED,) if event.needs_changed else ()))
