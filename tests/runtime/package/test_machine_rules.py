"""The state machine of one package under random orders of events, together with the real lifecycle store.

Invariants that hold after every step of a story:

* A run that the scheduler requested has exactly one of these results immediately: it is reported as completed or as failed, a
  Reconciliation is enqueued for it, or the node is offered again.
* The task that applies the CRDs has at most one open scope. Once an update, a Disable, a suspension or a removal has begun, it
  has none. A package that is on, and waits for nothing else, has such a scope until its CRDs are established.
* If a Disable could not begin when it was ordered, it begins as soon as the package is known to be off, unless a later decision
  allows the package.
* A suspended package has no running Disable, and begins no other operation.
* During a removal, no other operation begins.
* A refused definition does not become the node of the scheduler, and the next offer ends the refusal.
* A changed specification of a loaded package is never lost. Either the package is run or offered again, or its script is running,
  or an operation that outranks a run has begun.
* While the hooks of a run fail, the status shows their failure, and not the failure or the success of an event hook.
* The same state and event give the same state and effects, and a report never begins an operation.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.runtime.package.test_machine import (
    CYCLE,
    DESIRED,
    GIVEN,
    NAME,
    NOW,
    PLAIN,
    SCRIPTED,
    WITH_CRDS,
    package,
)
from tests.scale import scaled
from wharfinger.packages.definition.definition import Definition
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.core.operations import begun
from wharfinger.runtime.lifecycle.desired_state import DecisionKind
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import (
    Begin,
    Cancel,
    CastVote,
    Effect,
    Enqueue,
    EnqueueCrds,
    EnqueueDisable,
    EnqueueReconciliation,
    EnqueueRemoval,
    EnqueueSuspend,
    EnqueueUpdate,
    EnqueueVote,
    Offer,
    Simple,
    Tell,
)
from wharfinger.runtime.package.events import (
    CrdsStarted,
    DecisionMade,
    DeletionChanged,
    DesiredAdopted,
    DisableDone,
    DisableOrdered,
    Event,
    EventHookDone,
    NeedsChanged,
    NodeAccepted,
    NodeRefused,
    NodeSettled,
    OthersTurned,
    ReconciliationStarted,
    RemovalAccountChanged,
    RemovalDone,
    RemovalStarted,
    RunDone,
    RunOrdered,
    SkipDeleteHooks,
    StageFailed,
    StoredLoaded,
    Succeeded,
    SuspendStarted,
    UpdateDone,
    UpdateWanted,
    ValuesChanged,
    Voted,
    VoteDone,
    VoteRecorded,
    VoteRepeated,
)
from wharfinger.runtime.package.findings import CrdsEstablished, PackageRead, Verified
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.scheduler.events import (
    Completed,
    Failed,
    Rescheduled,
    ScriptVoted,
)
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage, Truth
from wharfinger.runtime.status.reasons import Reason

RUN: Final = Failure(Reason.PACKAGE_HOOK_FAILED, "hooks/b.sh failed", permanent=True)


class PackageStory(RuleBasedStateMachine):
    """Random events for one package, with the real lifecycle store. This state machine also chooses the answers of the
    scheduler and of the tasks.
    """

    def __init__(self) -> None:
        super().__init__()
        self.store = LifecycleStore()
        self.package = package()
        self.runs = 0
        self.crds: list[WorkScope] = []
        self.accepts = True
        self.waiting: list[Event] = []
        """The ends of enqueued tasks. Any of them may be the next event, unless the scope of the task was cancelled."""
        self.scopes: list[WorkScope] = []
        self.answers: list[int] = []
        self.owed = False
        """True if a changed specification was adopted, and nothing has followed from it, except perhaps a vote of the script."""
        self.run_fails = False
        """True if a hook of the run failed, and since then the run has neither succeeded nor begun again."""
        self.on = False
        """True if the package is on by the last decision of the scheduler."""

    def around(self) -> Around:
        return Around(NOW, self.store.package(NAME))

    def send(self, event: Event) -> None:
        around, before = self.around(), self.package
        self.package, effects = step(before, event, around)
        assert step(before, event, around) == (self.package, effects)
        if isinstance(event, Succeeded | StageFailed | EventHookDone | ValuesChanged | Voted):
            assert not any(isinstance(effect, Begin | Enqueue | Offer) for effect in effects)
        for effect in effects:
            self.perform(effect)

    def perform(self, effect: Effect) -> None:  # noqa: C901 - a table
        match effect:
            case Tell(Completed(_, run)) | Tell(Failed(_, run)):
                self.answers.append(run)
            case Tell(Rescheduled()):
                self.owed = False
            case Offer(definition, fresh, stored, established):
                self.answers.append(self.package.node.run)
                self.owed = False
                assert self.package.node.refused is None
                if self.accepts:
                    self.send(NodeAccepted(definition, fresh, stored))
                elif not stored:
                    self.send(NodeRefused(CYCLE, fresh, established))
            case Cancel(scope, cause):
                assert cause
                scope.cancel(cause)
            case Simple.CRDS:
                scope = WorkScope("crds")
                self.crds.append(scope)
                self.send(CrdsStarted(scope))
            case Simple.SUSPEND:
                if (begun_scope := self.store.begin_suspend(NAME)) is not None:
                    self.send(SuspendStarted(begun_scope))
            case Simple.SETTLE:
                self.send(NodeSettled(enabled=self.on, unwanted=not self.on))
            case Simple.RESTART_REMOVAL:
                if (again := self.store.restart_removal(NAME)) is not None:
                    self.enqueue(EnqueueRemoval(again))
            case Simple.CLEAN:
                self.forget()
            case Simple.UPDATE_COMPLETE:
                self.store.complete_update(NAME)
            case Simple.RUN_COMPLETE:
                self.store.complete_run(NAME)
            case Simple.NEEDS_CHANGED:
                self.send(NeedsChanged())
            case CastVote(enabled, reason, error, _):
                self.send(VoteRecorded(ScriptVoted(NAME, enabled, reason, error)))
            case _ if isinstance(effect, Begin):
                self.begin(effect)
            case _ if isinstance(effect, Enqueue):
                self.enqueue(effect)
            case _:
                pass

    def forget(self) -> None:
        """Delete the package. Another package of this name may be created later."""
        self.store.finish_removal(NAME)
        assert self.store.complete_removal(NAME)
        assert not any(True for _ in self.live_ends())
        assert all(scope.cancelled for scope in self.crds)
        self.package, self.owed, self.run_fails, self.on = package(), False, False, False

    def begin(self, effect: Begin) -> None:
        event = begun(effect, NAME, self.store)
        if event is not None and not isinstance(event, ReconciliationStarted):
            assert not self.store.is_suspended(NAME)
            assert not self.store.is_removing(NAME)
        if event is not None:
            self.send(event)

    def enqueue(self, effect: Enqueue) -> None:
        scope = effect.scope
        assert not scope.cancelled
        self.scopes.append(scope)
        ends: dict[type, Event] = {
            EnqueueUpdate: UpdateDone(),
            EnqueueDisable: DisableDone(),
            EnqueueSuspend: StoredLoaded(),
            EnqueueRemoval: RemovalDone(),
        }
        if isinstance(effect, EnqueueUpdate | EnqueueSuspend | EnqueueRemoval):
            self.owed = False
        if isinstance(effect, EnqueueUpdate | EnqueueDisable):  # both start the stages of the run again
            self.run_fails = False
        if isinstance(effect, EnqueueUpdate | EnqueueDisable | EnqueueSuspend | EnqueueRemoval):
            assert all(one.cancelled for one in self.crds)
        if isinstance(effect, EnqueueVote):
            self.waiting.append(VoteDone(effect.reason) if effect.reason else VoteRepeated())
        elif isinstance(effect, EnqueueReconciliation):
            self.answers.append(effect.run)
            self.waiting.append(RunDone(effect.run))
        elif not isinstance(effect, EnqueueCrds):
            self.waiting.append(ends[type(effect)])
        else:
            self.scopes.pop()

    def live_ends(self) -> Iterator[int]:
        return (at for at, scope in enumerate(self.scopes) if not scope.cancelled)

    # --- the story -------------------------------------------------------------------------------------------------------

    @rule(
        version=st.sampled_from(["1.0.0", "2.0.0"]),
        suspended=st.sampled_from([False, False, True]),
        needs=st.booleans(),
        patches=st.sampled_from(["", "sha256:p"]),
    )
    def desired(self, version: str, suspended: bool, needs: bool, patches: str) -> None:
        wanted = replace(DESIRED, version=version, suspended=suspended, patches=patches)
        decision, scope = self.store.adopt(NAME, wanted)
        if decision.kind is not DecisionKind.REMOVING:
            if decision.kind is DecisionKind.RECONFIGURE and not self.store.is_loading(NAME):
                self.owed = True
            self.send(DesiredAdopted(GIVEN, decision, 1, scope, new_login=False, needs_changed=needs))

    @rule(definition=st.sampled_from([PLAIN, WITH_CRDS, SCRIPTED]), accepts=st.booleans())
    def read(self, definition: Definition, accepts: bool) -> None:
        self.accepts = accepts
        if self.store.is_loading(NAME):
            self.send(PackageRead(replace(definition), ()))

    @rule(data=st.data())
    def a_task_ends(self, data: st.DataObject) -> None:
        live = list(self.live_ends())
        if not live:
            return
        at = data.draw(st.sampled_from(live))
        event = self.waiting[at]
        if isinstance(event, UpdateDone):  # the task Load reads the package each time
            self.send(PackageRead(replace(self.package.files.definition or PLAIN), ()))
        del self.waiting[at], self.scopes[at]
        self.send(event)

    @rule()
    def the_crds_are_established(self) -> None:
        if any(not scope.cancelled for scope in self.crds):
            self.send(CrdsEstablished(("example.test/v1/Boat",)))

    @rule()
    def run_is_ordered(self) -> None:
        self.runs += 1
        self.answers.clear()
        self.on = True
        self.send(DecisionMade(allowed=True))
        self.send(RunOrdered(self.runs, "test"))
        assert self.answers.count(self.runs) == 1

    @rule(uninstall=st.booleans())
    def disable_is_ordered(self, uninstall: bool) -> None:
        self.on = False
        self.send(DecisionMade(allowed=False))
        self.send(DisableOrdered("gone", uninstall))

    @rule(before=st.sampled_from([(), ("dns",)]), forced=st.booleans())
    def others_turn(self, before: tuple[str, ...], forced: bool) -> None:
        self.send(OthersTurned(before, forced))

    @rule(reported=st.sampled_from([Succeeded(Stage.LOADED), StageFailed(Stage.LOADED, CYCLE), ValuesChanged("a")]))
    def something_is_reported(self, reported: Event) -> None:
        self.send(reported)

    @rule(reported=st.sampled_from([Succeeded(Stage.HOOKS), Succeeded(Stage.APPLIED), StageFailed(Stage.HOOKS, RUN)]))
    def the_hooks_of_the_run_end(self, reported: Event) -> None:
        self.send(reported)
        self.run_fails = isinstance(reported, StageFailed)

    @rule(error=st.sampled_from(["", "broken"]), lane=st.sampled_from(["a", "b"]))
    def an_event_hook_ran(self, error: str, lane: str) -> None:
        self.send(EventHookDone("hooks/a.sh", lane, error))
        assert (("hooks/a.sh", lane) in self.package.hooks.failing) is bool(error)

    @rule(enabled=st.sampled_from([None, True, False]))
    def the_script_votes(self, enabled: bool | None) -> None:
        self.send(Voted(enabled))
        assert self.package.vote.cast == ScriptVoted(NAME, enabled)

    @rule()
    def what_was_applied_is_found(self) -> None:
        self.send(Verified())

    @rule()
    def an_update_is_wanted_again(self) -> None:
        self.send(UpdateWanted(1))

    @rule()
    def a_removal(self) -> None:
        _, scope = self.store.begin_removal(NAME)
        if scope is not None:
            self.send(RemovalStarted(scope, None, None, disowned=False))

    @rule(
        changed=st.sampled_from([SkipDeleteHooks(), RemovalAccountChanged("a"), DeletionChanged(DeletionPolicy.ORPHAN)])
    )
    def another_way_to_remove_it(self, changed: Event) -> None:
        before = [scope for scope in self.scopes if not scope.cancelled]
        self.send(changed)
        if self.store.is_removing(NAME):
            assert all(scope.cancelled for scope in before)
            assert len(list(self.live_ends())) == 1

    # --- invariants -----------------------------------------------------------------------------------------------

    @invariant()
    def one_task_of_the_crds(self) -> None:
        live = [scope for scope in self.crds if not scope.cancelled]
        assert len(live) <= 1
        assert all(scope is self.package.crds.scope for scope in live)
        if live:
            assert not self.store.is_removing(NAME)

    def is_at_rest(self) -> bool:
        """Return whether the loaded definition is the scheduler's node, and no suspension, update or removal is under way."""
        kept = self.store.is_suspended(NAME) or self.store.is_loading(NAME) or self.store.is_removing(NAME)
        return not kept and self.package.node.joined is self.package.files.definition is not None

    @invariant()
    def the_crds_of_a_package_that_is_on_are_being_ensured(self) -> None:
        if self.on and self.is_at_rest() and self.package.crds.established is None:
            assert any(not scope.cancelled for scope in self.crds)

    @invariant()
    def no_disable_stays_missed(self) -> None:
        if self.is_at_rest():
            assert self.package.node.missed_disable is None

    @invariant()
    def no_changed_specification_is_lost(self) -> None:
        vote = self.package.vote
        if self.owed:
            assert vote.voting is not None
            assert vote.reason
            assert not vote.voting.cancelled

    @invariant()
    def the_hooks_of_the_run_come_before_event_hooks(self) -> None:
        status = self.package.status
        hooks = status.stages[Stage.HOOKS]
        if self.run_fails and status.removal is None:
            assert (hooks.truth, hooks.reason) == (Truth.FALSE, RUN.reason)
        if hooks.reason == Reason.EVENT_HOOK_FAILED and status.removal is None:
            assert self.package.hooks.failing

    @invariant()
    def no_disable_of_a_suspended_package(self) -> None:
        if self.store.is_suspended(NAME):
            assert self.package.node.disabling is None

    @invariant()
    def a_refused_definition_is_not_the_node(self) -> None:
        node = self.package.node
        if node.refused is not None and not self.store.is_loading(NAME):
            assert node.joined is not self.package.files.definition


PackageStory.TestCase.settings = settings(
    max_examples=scaled(10_000, 150), stateful_step_count=scaled(60, 30), deadline=None
)
TestPackageStory = PackageStory.TestCase
