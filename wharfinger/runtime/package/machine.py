"""The machine of one package: a pure step from its state and an event to the state after it, and what is to be done.

Theory of operation. The lifecycle machine (:mod:`~wharfinger.runtime.lifecycle.lifecycle_machine`) decides which operation may
run and which ones its beginning cancels; the scheduler decides which packages may be on, and in which order. This machine
stands between them: it answers a decision or a request with operations to ask for, and the end of a task with what follows from
it. The phase of a package is what the lifecycle machine and its records say:

================  ================================================================================================
unread            no definition was read
loading           an update runs
suspended         a user wants it kept as it is
refused           the loaded definition would close a cycle, and the earlier one is the node
joined            the loaded definition is the scheduler's node
================  ================================================================================================

What an event asks for in each phase (``-``: nothing):

=================  ===============  =====================  ====================  =================  =====================
event              unread           loading                suspended             refused            joined
=================  ===============  =====================  ====================  =================  =====================
RunOrdered         reconciliation   the run failed; the    done, if it is        offer again        reconciliation
                   [1]              load orders another    installed [1]
DisableOrdered     Disable          Disable; missed if     missed                Disable            Disable
                                    nothing was read
DecisionMade, on   -                -                      -                     -                  its CRDs
ReconfigureWanted  Rescheduled      offer, vote, or        offer, vote, or       offer again        vote if it has a
                                    Rescheduled            Rescheduled                              script, else Rescheduled
NeedsChanged       -                -                      offer                 offer              offer
ValuesChanged      Rescheduled      Rescheduled            Rescheduled           Rescheduled        Rescheduled; noted while
                                                                                                    a run applies them
=================  ===============  =====================  ====================  =================  =====================

[1] The lifecycle machine refuses it if the package is suspended, being removed or unknown: the run then counts as completed for
dependents if the package is installed and suspended, and as failed otherwise.

And the end of an operation's last task:

=================  ===================================================================================================
UpdateDone         the definition is offered to the scheduler, and scripts that saw too few packages are asked again
RunDone            the scheduler is notified; if the values changed meanwhile, it is asked for another run
DisableDone,       the standing decision is reported again, because a failure may have been reported in between
VoteRepeated
VoteDone           the same, and the scheduler is asked for a run
StoredLoaded       the definition is offered, so that the package counts as present for its dependents
RemovalDone        the package is forgotten, outside of its queue
=================  ===================================================================================================

Invariants: no Disable is under way in a suspended package; a refusal ends with the next offer; the scope of the CRDs' task is
cancelled before another update, a Disable, a suspension or a removal; no event changes anything but this package.

No trio, no clock, no I/O, no logging.
"""

from typing import assert_never

from wharfinger.runtime.lifecycle.desired_state import DecisionKind
from wharfinger.runtime.package.around import Around, Next
from wharfinger.runtime.package.effects import (
    Attempt,
    BeginDisable,
    BeginReconciliation,
    BeginUpdate,
    BeginVote,
    Cancel,
    Effect,
    EnqueueCrds,
    EnqueueDisable,
    EnqueueReconciliation,
    EnqueueRemoval,
    EnqueueSuspend,
    EnqueueUpdate,
    EnqueueVote,
    Log,
    Offer,
    Phase,
    RepeatVote,
    Simple,
    Tell,
)
from wharfinger.runtime.package.events import (
    Changed,
    CrdsStarted,
    DecisionMade,
    DecisionReported,
    DeletionChanged,
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
    ReconfigureWanted,
    RemovalDone,
    RemovalStarted,
    ReportBase,
    Request,
    RequestBase,
    Resumed,
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
    WishAdopted,
)
from wharfinger.runtime.package.facts import (
    AttemptBegun,
    CrdsBegun,
    CrdsEnded,
    DeleteHooksSkipped,
    DeletionChosen,
    DisableBegun,
    DisableEnded,
    DisableMissed,
    Joined,
    JoinRefused,
    LoadCompleted,
    MissedDisableDropped,
    Offered,
    ReconciliationBegun,
    ReconciliationOrdered,
    RemovalBegun,
    ScriptAsked,
    ScriptDone,
    SettingsGiven,
    SuspendBegun,
    UpdateBegun,
    ValuesRead,
    VoteCast,
)
from wharfinger.runtime.package.reports import failed, reported, with_status
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import ModuleId, has_release, is_global
from wharfinger.runtime.scheduler.events import Completed, Failed, NodeRemoved, Rescheduled, ScriptVoted
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import Stage


def step(package: Package, event: Event, around: Around) -> Next:
    """Return the package after an event, and the effects in this order."""
    match event:
        case ReportBase():
            return reported(package, event, around)
        case OutcomeBase():
            return _outcome(package, event, around)
        case RequestBase():
            return _request(package, event, around)
        case _:
            assert_never(event)


def _request(package: Package, event: Request, around: Around) -> Next:
    match event:
        case UpdateWanted(generation):
            return package, (BeginUpdate(generation),)
        case ReconfigureWanted(reason):
            return _reconfigured(package, reason)
        case WishAdopted():
            return _wished(package, event, around)
        case Resumed():
            return with_status(package, statuses.suspended(package.status, around.now, suspended=False)), ()
        case NeedsChanged():
            return (package, ()) if around.loading else _offer(package)
        case OthersTurned(before, forced):
            return package, _ask_again(package, before, forced=forced)
        case RunOrdered() | DisableOrdered() | DecisionMade() | DecisionReported():
            return _decided(package, event, around)
        case DeletionChanged(deletion):
            return applied(package, DeletionChosen(deletion)), (Simple.RESTART_REMOVAL,)
        case SkipDeleteHooks():
            return applied(package, DeleteHooksSkipped()), (Simple.RESTART_REMOVAL,)
        case Changed(status):
            return with_status(package, status), ()
        case _:
            assert_never(event)


def _outcome(package: Package, event: Outcome, around: Around) -> Next:
    match event:
        case UpdateStarted() | UpdateDone():
            return _update(package, event, around)
        case NodeAccepted() | NodeRefused() | NodeSettled():
            return _offered(package, event, around)
        case VoteRecorded() | VoteStarted() | VoteDone() | VoteRepeated():
            return _vote(package, event, around)
        case ReconciliationStarted() | RunDone():
            return _reconciliation(package, event, around)
        case DisableStarted() | DisableDone():
            return _disable(package, event, around)
        case SuspendStarted() | StoredLoaded():
            return _suspension(package, event)
        case CrdsStarted(scope):
            return applied(package, CrdsBegun(scope)), (Attempt(Phase.CRDS, begins=True), EnqueueCrds(scope))
        case RemovalStarted():
            return _removal(package, event, around)
        case RemovalDone():
            return package, (Simple.CLEAN,)
        case _:
            assert_never(event)


# --- the wish --------------------------------------------------------------------------------------------------------------


def _wished(package: Package, event: WishAdopted, around: Around) -> Next:
    now, generation, kind = around.now, event.generation, event.decision.kind
    mode = package.wish.directives.maintenance
    status = statuses.set_maintenance(package.status, mode, now)
    package = with_status(package, statuses.rolled_back(status, package.wish.directives.rolled_back, now))
    asked = package.wish.directives.asked
    if asked != package.wish.attempt.asked and kind is not DecisionKind.REMOVING:
        package = applied(package, AttemptBegun(asked, now))
    unblocked = package.status.blocked is not None
    effects: tuple[Effect, ...] = ()
    match kind:
        case DecisionKind.SUSPEND:
            seen = statuses.observed(package.status, generation, now)
            package, effects = with_status(package, statuses.suspended(seen, now, suspended=True)), (Simple.SUSPEND,)
        case DecisionKind.UPDATE:
            effects = (BeginUpdate(generation),)
        case DecisionKind.RESUME:
            effects = (BeginUpdate(generation), Simple.RESUMED)
        case DecisionKind.RECONFIGURE | DecisionKind.NONE if event.new_login:
            effects = (BeginUpdate(generation),)
        case DecisionKind.RECONFIGURE:
            package = with_status(package, statuses.reconfigure_started(package.status, generation, now))
            package, more = (package, ()) if around.loading else _reconfigured(package, event.decision.reason)
            effects = (Simple.UNPARK, *more)
        case DecisionKind.NONE:
            if unblocked or package.status.generation != generation:
                package = with_status(package, statuses.observed(package.status, generation, now))
        case DecisionKind.REMOVING:
            pass  # nothing was adopted
        case _:
            assert_never(kind)
    return package, (*effects, *((Simple.NEEDS_CHANGED,) if event.needs_changed else ()))


# --- update ----------------------------------------------------------------------------------------------------------------


def _update(package: Package, event: UpdateStarted | UpdateDone, around: Around) -> Next:
    match event:
        case UpdateStarted(scope, generation):
            is_module, is_plain = isinstance(package.id, ModuleId), not is_global(package.id)
            loads = (Attempt(Phase.LOAD, begins=True),) if is_module and is_plain else ()
            # After a restart, other packages wait for one attempt to load this one, because they were applied with its kinds.
            waited_for = is_module and package.status.installed_since is not None and not package.files.loaded_once
            tries = (Attempt(Phase.CRDS, begins=True),) if waited_for else ()
            package, ended = _without_crds(applied(package, UpdateBegun(around.now)), "update started")
            # The interrupted run holds nothing back.
            interrupted = Tell(Failed(package.id.name, package.node.run))
            status = statuses.update_started(package.status, generation, around.now, version=package.wish.version)
            return with_status(package, status), (*loads, *ended, *tries, interrupted, EnqueueUpdate(scope))
        case UpdateDone():
            package, ended = _without_crds(applied(package, LoadCompleted()), "loaded anew")
            package, offered = _offer(package)
            if not offered:
                raise AssertionError(f"{package.id}: Load succeeded and nothing is loaded")
            completed = (Simple.UPDATE_COMPLETE, Attempt(Phase.LOAD, begins=False))
            return package, (*completed, *ended, *offered, Simple.ASK_PROVISIONAL, Simple.SEE_OTHERS)
        case _:
            assert_never(event)


# --- the node --------------------------------------------------------------------------------------------------------------


def _offer(package: Package, *, stored: bool = False) -> Next:
    """Offer the loaded definition to the scheduler; nothing if none is loaded."""
    definition, before = package.files.definition, package.crds.established
    if definition is None:
        return package, ()
    fresh = definition is not package.node.joined and not stored
    established = before
    if fresh:
        established = None if definition.crds else ()
    # Before the scheduler is notified, because that begins operations at once.
    return applied(package, Offered(established)), (Offer(definition, fresh, stored, before),)


def _offered(package: Package, event: NodeAccepted | NodeRefused | NodeSettled, around: Around) -> Next:
    match event:
        case NodeAccepted(definition, fresh, stored):
            vote = package.vote.cast or ScriptVoted(package.id.name, None)
            package = applied(package, Joined(definition))
            if stored:
                return package, (Tell(vote),)
            return package, (Tell(vote), Simple.RESTATE, *((Simple.SETTLE,) if fresh else ()))
        case NodeRefused(failure, fresh, established):
            if fresh:
                package = applied(package, JoinRefused(failure, established))
            package, effects = failed(package, Stage.REQUIREMENTS, failure, around)
            if fresh and not package.status.version:
                # Nothing is installed that dependents could use.
                effects = (*effects, Tell(NodeRemoved(package.id.name)))
            return package, effects
        case NodeSettled(enabled, unwanted):
            return _settled(package, around, enabled=enabled, unwanted=unwanted)
        case _:
            assert_never(event)


def _settled(package: Package, around: Around, *, enabled: bool, unwanted: bool) -> Next:
    effects: tuple[Effect, ...] = ()
    missed = package.node.missed_disable
    package = applied(package, MissedDisableDropped())
    if enabled:
        effects = _crds(package, around)
    elif missed is not None:
        # Decided anew, because a package that was unwanted when the Disable was missed may now only lack a requirement.
        package, effects = _disabled(package, missed[0], around, uninstall=unwanted)
    definition, is_current = package.files.definition, package.vote.asked_about == package.wish.settings.checksum
    if definition is not None and definition.enabled_script and not is_current:
        package, more = _reconfigured(package, "SettingsChanged")
        effects = (*effects, *more)
    return package, effects


# --- the enabled script ----------------------------------------------------------------------------------------------------


def _reconfigured(package: Package, reason: str) -> Next:
    """Act on a changed specification of a loaded package; an enabled script that may read its settings is asked first."""
    definition = package.files.definition
    if definition is not None and package.node.refused is not None:
        return _offer(package)  # the reason for the refusal may be gone
    if definition is None or not definition.enabled_script:
        return package, (Tell(Rescheduled(package.id.name, reason)),)
    return package, (BeginVote(reason),)


def _vote(package: Package, event: VoteRecorded | VoteStarted | VoteDone | VoteRepeated, around: Around) -> Next:
    match event:
        case VoteRecorded(vote):
            # The vote of a version that is still being loaded, or was refused, does not apply to the node.
            applies = package.node.refused is None and not around.loading
            return applied(package, VoteCast(vote)), (Tell(vote),) if applies else ()
        case VoteStarted(scope, reason, before):
            if before is not None:
                package = applied(package, ScriptAsked(before, scope))
            return package, (EnqueueVote(scope, reason),)
        case VoteDone(reason):
            return package, (Simple.RESTATE, Tell(Rescheduled(package.id.name, reason)))
        case VoteRepeated():
            return applied(package, ScriptDone()), (Simple.RESTATE,)
        case _:
            assert_never(event)


def _ask_again(package: Package, before: tuple[str, ...], *, forced: bool) -> tuple[Effect, ...]:
    """Ask about the Modules that are on now, unless the script already runs for exactly these Modules."""
    vote = package.vote
    runs = vote.voting is not None and not vote.voting.cancelled
    if before == vote.saw and (runs or not forced):
        return ()
    return (RepeatVote(before),)


# --- reconciliation --------------------------------------------------------------------------------------------------------


def _decided(
    package: Package, event: RunOrdered | DisableOrdered | DecisionMade | DecisionReported, around: Around
) -> Next:
    match event:
        case RunOrdered(run, reason):
            return _run_ordered(package, run, reason, around)
        case DisableOrdered(reason, uninstall):
            return _disabled(package, reason, around, uninstall=uninstall)
        case DecisionMade(allowed):
            if not allowed:
                return package, ()
            package = applied(package, MissedDisableDropped())
            return package, _crds(package, around) if package.node.refused is None else ()
        case DecisionReported(decided):
            refused, now = package.node.refused, around.now
            if decided.allowed and refused is not None:  # the decision is about the earlier version
                status = statuses.failed(
                    package.status,
                    Stage.REQUIREMENTS,
                    refused.reason,
                    refused.message,
                    now,
                    permanent=refused.permanent,
                )
            else:
                status = statuses.required(package.status, decided.reason, decided.message, now, met=decided.allowed)
            return with_status(package, status), ()
        case _:
            assert_never(event)


def _run_ordered(package: Package, run: int, reason: str, around: Around) -> Next:
    """Run the loaded package.

    While a version is being loaded, nothing is begun, because the end of the load orders a run. If the loaded version was
    refused, it is offered to the scheduler once more instead.
    """
    package = applied(package, ReconciliationOrdered(run))
    begins = (Simple.ROUND_BEGINS,) if is_global(package.id) else ()
    if around.loading:
        return package, (*begins, Tell(Failed(package.id.name, run)))
    if package.node.refused is not None and package.files.definition is not None and not around.suspended:
        package, offered = _offer(package)
        return package, (*begins, *offered)
    return package, (*begins, BeginReconciliation(run, reason))


def _reconciliation(package: Package, event: ReconciliationStarted | RunDone, around: Around) -> Next:
    name = package.id.name
    match event:
        case ReconciliationStarted(run, scope):
            package = applied(package, ReconciliationBegun())
            if scope is not None:
                return package, (EnqueueReconciliation(scope, run),)
            # Suspended, or being removed: nothing will run. An installed package is still present for its dependents.
            there = package.status.installed_since is not None and around.suspended
            return package, (Tell(Completed(name, run) if there else Failed(name, run)),)
        case RunDone(run):
            ran = (Simple.ROUND_RAN,) if is_global(package.id) else ()
            effects = (Simple.RUN_COMPLETE, Tell(Completed(name, run)), *ran)
            if not package.applied.dirty:
                return package, effects
            return applied(package, ValuesRead()), (*effects, Tell(Rescheduled(name, "HookValuesChanged")))
        case _:
            assert_never(event)


# --- CRDs ------------------------------------------------------------------------------------------------------------------


def _crds(package: Package, around: Around) -> tuple[Effect, ...]:
    """Ensure the definitions of a package that is on, before its turn in the order; all others wait for one attempt.

    A version that is being loaded ensures its own.
    """
    scope = package.crds.scope
    under_way = scope is not None and not scope.cancelled
    if package.crds.established is not None or under_way or around.suspended or around.loading:
        return ()
    return (Simple.CRDS,)


def _without_crds(package: Package, cause: str) -> Next:
    ended = Attempt(Phase.CRDS, begins=False)
    scope = package.crds.scope
    if scope is None:
        return package, (ended,)
    return applied(package, CrdsEnded()), (Cancel(scope, cause), ended)


# --- disable and suspend ---------------------------------------------------------------------------------------------------


def _disabled(package: Package, reason: str, around: Around, *, uninstall: bool) -> Next:
    unread = package.files.definition is None and around.loading
    if around.suspended or unread:
        # Nothing is deleted now. The update that resumes the package decides, or the one that loads its hooks.
        return applied(package, DisableMissed(reason, uninstall)), ()
    return package, (BeginDisable(reason, uninstall),)


def _disable(package: Package, event: DisableStarted | DisableDone, around: Around) -> Next:
    match event:
        case DisableStarted(reason, uninstall, scope, updating):
            package, ended = _without_crds(applied(package, DisableBegun(reason, uninstall)), "disabled")
            package = with_status(package, statuses.stopped(package.status, around.now))
            return package, (
                Log(f"being disabled: {reason}"),
                *ended,
                Attempt(Phase.LOAD, begins=False),
                EnqueueDisable(scope, keep=not uninstall),
                *((BeginUpdate(package.status.generation),) if updating else ()),
            )
        case DisableDone():
            return applied(package, DisableEnded()), (Simple.RESTATE,)
        case _:
            assert_never(event)


def _suspension(package: Package, event: SuspendStarted | StoredLoaded) -> Next:
    match event:
        case SuspendStarted(scope):
            package, ended = _without_crds(applied(package, SuspendBegun()), "suspended")
            # An installed package is still present for its dependents, even if its run was interrupted.
            run, there = package.node.run, package.status.installed_since is not None
            return package, (
                Log("suspended"),
                *((Simple.REST_RELEASE,) if has_release(package.id) else ()),
                *ended,
                Attempt(Phase.LOAD, begins=False),
                Tell(Completed(package.id.name, run) if there else Failed(package.id.name, run)),
                EnqueueSuspend(scope),
            )
        case StoredLoaded():
            package, offered = _offer(package, stored=True)
            return package, (Simple.NOTIFY, *offered)
        case _:
            assert_never(event)


# --- removal ---------------------------------------------------------------------------------------------------------------


def _removal(package: Package, event: RemovalStarted, around: Around) -> Next:
    if package.wish.source is None and event.settings is not None:  # this process has not adopted a desired state of it
        package = applied(package, SettingsGiven(event.settings))
    deletion = event.deletion or package.wish.directives.upkeep.deletion
    package, ended = _without_crds(applied(package, RemovalBegun(deletion, event.disowned)), "removal started")
    status = statuses.removing(package.status, "Removing", "the release is being uninstalled", around.now)
    return with_status(package, status), (
        *ended,
        Attempt(Phase.LOAD, begins=False),
        Tell(NodeRemoved(package.id.name)),
        EnqueueRemoval(event.scope),
    )
