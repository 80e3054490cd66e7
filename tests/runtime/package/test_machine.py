"""The machine of one package: its table, and every order of events beside the real lifecycle store.

Invariants that hold after every step of a story:

* a run that the scheduler ordered is answered exactly once: it is completed, has failed, begins, or the node is offered again;
* the task of the CRDs has at most one live scope, and none once an update, a Disable, a suspension or a removal began;
* a suspended package has no Disable under way, and begins no operation;
* of a package that is being removed nothing begins;
* a refused definition is not the node, and the next offer ends the refusal;
* the same state and event give the same state and effects, and an event of a report never begins an operation.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import structs

from tests.scale import scaled
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.packages.sources.source import FolderSource
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.core.operations import begun
from wharfinger.runtime.lifecycle.desired_state import Change, Decision, DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import (
    Attempt,
    Begin,
    BeginDisable,
    BeginReconciliation,
    BeginUpdate,
    BeginVote,
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
    Log,
    Offer,
    Phase,
    RepeatVote,
    Simple,
    Tell,
)
from wharfinger.runtime.package.events import (
    CrdsStarted,
    DecisionMade,
    DecisionReported,
    DeletionChanged,
    DisableDone,
    DisableOrdered,
    DisableStarted,
    Event,
    EventHookDone,
    NeedsChanged,
    NodeAccepted,
    NodeRefused,
    NodeSettled,
    OthersTurned,
    ReconciliationStarted,
    ReconfigureWanted,
    RemovalDone,
    RemovalStarted,
    Resumed,
    RunDone,
    RunOrdered,
    SkipDeleteHooks,
    StageFailed,
    StoredLoaded,
    Succeeded,
    SuspendStarted,
    UpdateDone,
    UpdateStarted,
    UpdateWanted,
    ValuesChanged,
    Voted,
    VoteDone,
    VoteRecorded,
    VoteRepeated,
    VoteStarted,
    WishAdopted,
)
from wharfinger.runtime.package.facts import Fact, PackageRead, Verified, Wished
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.state import NO_SETTINGS, Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import GLOBAL, AppId, ModuleId, PackageId
from wharfinger.runtime.resources.release_policy import DeletionPolicy
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.scheduler.events import (
    Completed,
    Decided,
    Failed,
    NodeRemoved,
    Rescheduled,
    ScriptVoted,
)
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage, Truth
from wharfinger.runtime.status.reasons import Reason

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
APP: Final = AppId("prod", "shop")
NAME: Final = APP.name
PLAIN: Final = Definition(
    Layout.PACKAGE, None, "web", "1.0.0", "", "", NO_REQUIREMENTS, 900, critical=False, chart=None,
    static_values={}, settings_schema=None, values_schema=None, helm_schema=None, hooks=False, enabled_script=False,
    crds=False, images={},
)  # fmt: skip
WITH_CRDS: Final = replace(PLAIN, crds=True)
SCRIPTED: Final = replace(PLAIN, enabled_script=True)
CYCLE: Final = Failure(Reason.DEPENDENCY_CYCLE, "a cycle", permanent=True)
WISH: Final = DesiredState("folder:/x", "web", "1.0.0", "sha256:a")
IDLE: Final = Around(NOW, None)


def operations(*, suspended: bool = False, loading: bool = False, applying: bool = False) -> Around:
    """The surroundings in which these operations run."""
    store = LifecycleStore()
    store.reconcile(NAME, WISH)
    if loading:
        store.begin_update(NAME)
    if applying:
        store.begin_reconciliation(NAME, "test")
    if suspended:
        store.reconcile(NAME, replace(WISH, suspended=True))
    return Around(NOW, store.package(NAME))


LOADING: Final = operations(loading=True)
SUSPENDED: Final = operations(suspended=True)


def package(*facts: Fact, identity: PackageId = APP) -> Package:
    """A package that was wished for, and of which these facts are known."""
    known = Package(identity, statuses.fresh(1, NOW))
    wished = Wished("web", "1.0.0", FolderSource(Path("/x")), NO_SETTINGS, Directives(), first=True)
    for fact in (wished, *facts):
        known = applied(known, fact)
    return known


def loaded(definition: Definition = PLAIN) -> Package:
    """A package whose definition is the scheduler's node."""
    return after(package(PackageRead(definition, ())), NodeAccepted(definition, fresh=True, stored=False))


def refused(definition: Definition = PLAIN) -> Package:
    return after(package(PackageRead(definition, ())), NodeRefused(CYCLE, fresh=True, established=()))


def installed(known: Package) -> Package:
    return structs.replace(known, status=replace(known.status, installed_since=NOW, version="1.0.0"))


def after(known: Package, event: Event, around: Around = IDLE) -> Package:
    return step(known, event, around)[0]


def effects(known: Package, event: Event, around: Around = IDLE) -> tuple[Effect, ...]:
    """What is to be done after an event, but log lines."""
    return tuple(effect for effect in step(known, event, around)[1] if not isinstance(effect, Log))


def offer(definition: Definition = PLAIN, *, fresh: bool = False) -> Offer:
    return Offer(definition, fresh, stored=False, established=())


# --- the table -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "around", "expected"),
    [
        (package(), IDLE, BeginReconciliation(7, "why")),
        (loaded(), LOADING, Tell(Failed(NAME, 7))),
        (loaded(), SUSPENDED, BeginReconciliation(7, "why")),
        (refused(), IDLE, offer(fresh=True)),
        (refused(), SUSPENDED, BeginReconciliation(7, "why")),
        (loaded(), IDLE, BeginReconciliation(7, "why")),
    ],
)
def test_a_run_that_is_ordered(known: Package, around: Around, expected: Effect) -> None:
    assert effects(known, RunOrdered(7, "why"), around) == (expected,)
    assert after(known, RunOrdered(7, "why"), around).node.run == 7


def test_a_run_of_the_global_hooks_begins_a_round() -> None:
    known = package(identity=ModuleId(GLOBAL))
    assert effects(known, RunOrdered(7, "why")) == (Simple.ROUND_BEGINS, BeginReconciliation(7, "why"))
    done = (Simple.RUN_COMPLETE, Tell(Completed(GLOBAL, 7)), Simple.ROUND_RAN)
    assert effects(known, RunDone(7)) == done


@pytest.mark.parametrize(
    ("known", "around", "missed"),
    [
        (package(), IDLE, False),
        (package(), LOADING, True),
        (loaded(), LOADING, False),
        (loaded(), SUSPENDED, True),
        (refused(), IDLE, False),
        (loaded(), IDLE, False),
    ],
)
def test_a_disable_that_is_ordered(known: Package, around: Around, missed: bool) -> None:
    order = DisableOrdered("gone", uninstall=True)
    assert effects(known, order, around) == (() if missed else (BeginDisable("gone", uninstall=True),))
    assert after(known, order, around).node.missed_disable == (("gone", True) if missed else None)


@pytest.mark.parametrize(
    ("known", "around", "begins"),
    [
        (loaded(WITH_CRDS), IDLE, True),
        (loaded(), IDLE, False),
        (loaded(WITH_CRDS), LOADING, False),
        (loaded(WITH_CRDS), SUSPENDED, False),
        (refused(WITH_CRDS), IDLE, False),
        (after(loaded(WITH_CRDS), CrdsStarted(WorkScope("crds"))), IDLE, False),
    ],
)
def test_a_package_that_may_be_on_ensures_its_definitions(known: Package, around: Around, begins: bool) -> None:
    if known.files.definition is WITH_CRDS and known.node.refused is None:
        known = structs.replace(known, crds=structs.replace(known.crds, established=None))
    assert effects(known, DecisionMade(allowed=True), around) == ((Simple.CRDS,) if begins else ())
    assert effects(known, DecisionMade(allowed=False), around) == ()


def test_what_was_missed_is_dropped_by_a_yes_and_not_by_a_no() -> None:
    known = after(loaded(), DisableOrdered("gone", uninstall=False), SUSPENDED)
    assert after(known, DecisionMade(allowed=False)).node.missed_disable == ("gone", False)
    assert after(known, DecisionMade(allowed=True)).node.missed_disable is None


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (package(), Tell(Rescheduled(NAME, "why"))),
        (loaded(), Tell(Rescheduled(NAME, "why"))),
        (loaded(SCRIPTED), BeginVote("why")),
        (refused(SCRIPTED), offer(SCRIPTED, fresh=True)),
    ],
)
def test_a_changed_specification(known: Package, expected: Effect) -> None:
    assert effects(known, ReconfigureWanted("why")) == (expected,)


def test_changed_needs_are_offered_unless_a_load_does_so_itself() -> None:
    assert effects(loaded(), NeedsChanged()) == (offer(),)
    assert effects(loaded(), NeedsChanged(), LOADING) == ()
    assert effects(package(), NeedsChanged()) == ()


@pytest.mark.parametrize(
    ("kind", "around", "new_login", "expected"),
    [
        (DecisionKind.UPDATE, IDLE, False, (BeginUpdate(2),)),
        (DecisionKind.RESUME, IDLE, False, (BeginUpdate(2), Simple.RESUMED)),
        (DecisionKind.SUSPEND, SUSPENDED, False, (Simple.SUSPEND,)),
        (DecisionKind.RECONFIGURE, IDLE, False, (Simple.UNPARK, Tell(Rescheduled(NAME, "SettingsChanged")))),
        (DecisionKind.RECONFIGURE, LOADING, False, (Simple.UNPARK,)),
        (DecisionKind.RECONFIGURE, LOADING, True, (BeginUpdate(2),)),
        (DecisionKind.NONE, LOADING, True, (BeginUpdate(2),)),
        (DecisionKind.NONE, IDLE, False, ()),
        (DecisionKind.REMOVING, IDLE, False, ()),
    ],
)
def test_a_wish(kind: DecisionKind, around: Around, new_login: bool, expected: tuple[Effect, ...]) -> None:
    decision = Decision(kind, (Change.SETTINGS,))
    assert effects(loaded(), WishAdopted(decision, 2, new_login, needs_changed=False), around) == expected
    more = effects(loaded(), WishAdopted(decision, 2, new_login, needs_changed=True), around)
    assert more == (*expected, Simple.NEEDS_CHANGED)


def test_a_wish_that_changes_nothing_is_observed() -> None:
    decision = Decision(DecisionKind.NONE)
    known = after(loaded(), WishAdopted(decision, 2, new_login=False, needs_changed=False))
    assert known.status.generation == 2
    assert after(known, Resumed()) is known


# --- what follows from the end of an operation ---------------------------------------------------------------------------------


def test_an_update() -> None:
    scope = WorkScope("update")
    interrupted = Tell(Failed(NAME, 0))
    assert effects(package(), UpdateStarted(scope, 1)) == (
        Attempt(Phase.CRDS, begins=False),
        interrupted,
        EnqueueUpdate(scope),
    )
    module = installed(package(identity=ModuleId("web")))
    assert effects(module, UpdateStarted(scope, 1)) == (
        Attempt(Phase.LOAD, begins=True),
        Attempt(Phase.CRDS, begins=False),
        Attempt(Phase.CRDS, begins=True),
        Tell(Failed("web", 0)),
        EnqueueUpdate(scope),
    )
    known = after(package(PackageRead(WITH_CRDS, ())), UpdateDone())
    assert (known.files.loaded_once, known.crds.established) == (True, None)
    assert effects(package(PackageRead(WITH_CRDS, ())), UpdateDone()) == (
        Simple.UPDATE_COMPLETE,
        Attempt(Phase.LOAD, begins=False),
        Attempt(Phase.CRDS, begins=False),
        offer(WITH_CRDS, fresh=True),
        Simple.ASK_PROVISIONAL,
        Simple.SEE_OTHERS,
    )
    with pytest.raises(AssertionError, match="nothing is loaded"):
        step(package(), UpdateDone(), IDLE)


def test_a_node_that_is_accepted() -> None:
    known = package(PackageRead(PLAIN, ()))
    vote = Tell(ScriptVoted(NAME, None))
    assert effects(known, NodeAccepted(PLAIN, fresh=True, stored=False)) == (vote, Simple.RESTATE, Simple.SETTLE)
    assert effects(known, NodeAccepted(PLAIN, fresh=False, stored=False)) == (vote, Simple.RESTATE)
    assert effects(known, NodeAccepted(PLAIN, fresh=False, stored=True)) == (vote,)
    cast = ScriptVoted(NAME, enabled=False, reason="no")
    known = after(known, VoteRecorded(cast), LOADING)
    assert effects(known, NodeAccepted(PLAIN, fresh=True, stored=False))[0] == Tell(cast)
    assert after(known, NodeAccepted(PLAIN, fresh=True, stored=False)).node.joined is PLAIN


def test_a_node_that_is_refused_leaves_the_one_before() -> None:
    before = installed(loaded())
    known = after(applied(before, PackageRead(WITH_CRDS, ())), NeedsChanged())
    assert known.crds.established is None
    known, done = step(known, NodeRefused(CYCLE, fresh=True, established=()), IDLE)
    assert (known.node.joined, known.node.refused, known.crds.established) == (PLAIN, CYCLE, ())
    assert known.status.stages[Stage.REQUIREMENTS].truth is Truth.FALSE
    assert Tell(NodeRemoved(NAME)) not in done
    assert Tell(NodeRemoved(NAME)) in effects(package(PackageRead(PLAIN, ())), NodeRefused(CYCLE, True, ()))
    # A version of before, whose changed dependencies are refused, is no other version.
    assert after(before, NodeRefused(CYCLE, fresh=False, established=())).node.refused is None
    # A yes is about the earlier version, and is not shown.
    shown = after(known, DecisionReported(Decided(NAME, allowed=True, reason="Met", message="")))
    assert shown.status.stages[Stage.REQUIREMENTS].reason == Reason.DEPENDENCY_CYCLE
    shown = after(before, DecisionReported(Decided(NAME, allowed=True, reason="Met", message="")))
    assert shown.status.stages[Stage.REQUIREMENTS].truth is Truth.TRUE
    assert after(known, NeedsChanged()).node.refused is None


def test_a_node_that_is_settled() -> None:
    on, off = NodeSettled(enabled=True, unwanted=False), NodeSettled(enabled=False, unwanted=True)
    crds = structs.replace(loaded(WITH_CRDS), crds=structs.replace(loaded().crds, established=None))
    assert effects(crds, on) == (Simple.CRDS,)
    assert effects(loaded(), off) == ()
    missed = after(loaded(), DisableOrdered("gone", uninstall=False), SUSPENDED)
    assert effects(missed, off) == (BeginDisable("gone", uninstall=True),)
    assert effects(missed, on) == ()
    assert after(missed, on).node.missed_disable is None
    assert effects(loaded(SCRIPTED), on) == (BeginVote("SettingsChanged"),)
    asked = structs.replace(loaded(SCRIPTED), vote=structs.replace(loaded().vote, asked_about=NO_SETTINGS.checksum))
    assert effects(asked, on) == ()


def test_a_vote() -> None:
    scope, vote = WorkScope("vote"), ScriptVoted(NAME, enabled=True)
    assert effects(loaded(SCRIPTED), Voted(True, "yes")) == (CastVote(True, "yes", "", may_be_early=True),)
    assert effects(loaded(), Voted(None, "broken", failed=True)) == (CastVote(None, "", "broken", may_be_early=False),)
    assert effects(loaded(), VoteRecorded(vote)) == (Tell(vote),)
    assert effects(loaded(), VoteRecorded(vote), LOADING) == ()
    assert effects(refused(), VoteRecorded(vote)) == ()
    assert after(refused(), VoteRecorded(vote)).vote.cast == vote
    assert effects(loaded(), VoteStarted(scope, "why", None)) == (EnqueueVote(scope, "why"),)
    assert effects(loaded(), VoteDone("why")) == (Simple.RESTATE, Tell(Rescheduled(NAME, "why")))
    known = after(loaded(), VoteStarted(scope, "", ("dns",)))
    assert (known.vote.saw, known.vote.voting) == (("dns",), scope)
    assert after(known, VoteRepeated()).vote.voting is None
    assert effects(known, VoteRepeated()) == (Simple.RESTATE,)


@pytest.mark.parametrize(
    ("runs", "before", "forced", "asked"),
    [
        (True, ("dns",), True, False),
        (True, ("dns",), False, False),
        (True, (), False, True),
        (False, ("dns",), True, True),
        (False, ("dns",), False, False),
        (False, (), True, True),
    ],
)
def test_a_script_is_asked_again_unless_it_is_asked_the_same(
    runs: bool, before: tuple[str, ...], forced: bool, asked: bool
) -> None:
    scope = WorkScope("vote")
    known = after(loaded(SCRIPTED), VoteStarted(scope, "", ("dns",)))
    if not runs:
        scope.cancel("superseded")
    assert effects(known, OthersTurned(before, forced)) == ((RepeatVote(before),) if asked else ())


def test_a_reconciliation() -> None:
    scope = WorkScope("reconciliation")
    known = after(after(loaded(), DisableStarted("gone", True, WorkScope("disable"), False)), RunOrdered(7, "why"))
    assert known.node.disabling == ("gone", True)
    assert effects(known, ReconciliationStarted(7, scope)) == (EnqueueReconciliation(scope, 7),)
    assert after(known, ReconciliationStarted(7, scope)).node.disabling is None
    assert effects(loaded(), ReconciliationStarted(7, None), SUSPENDED) == (Tell(Failed(NAME, 7)),)
    assert effects(installed(loaded()), ReconciliationStarted(7, None), SUSPENDED) == (Tell(Completed(NAME, 7)),)
    assert effects(installed(loaded()), ReconciliationStarted(7, None)) == (Tell(Failed(NAME, 7)),)
    assert effects(loaded(), RunDone(7)) == (Simple.RUN_COMPLETE, Tell(Completed(NAME, 7)))
    dirty = after(loaded(), ValuesChanged("hooks/a.sh"), operations(applying=True))
    assert dirty.applied.dirty
    assert effects(dirty, RunDone(7))[-1] == Tell(Rescheduled(NAME, "HookValuesChanged"))
    assert not after(dirty, RunDone(7)).applied.dirty


def test_a_disable() -> None:
    scope, crds = WorkScope("disable"), WorkScope("crds")
    known = after(loaded(WITH_CRDS), CrdsStarted(crds))
    assert effects(known, DisableStarted("gone", True, scope, updating=True)) == (
        Cancel(crds, "disabled"),
        Attempt(Phase.CRDS, begins=False),
        Attempt(Phase.LOAD, begins=False),
        EnqueueDisable(scope, keep=False),
        BeginUpdate(1),
    )
    assert EnqueueDisable(scope, keep=True) == effects(loaded(), DisableStarted("gone", False, scope, False))[-1]
    known = after(known, DisableStarted("gone", True, scope, updating=False))
    assert (known.node.disabling, known.crds.scope) == (("gone", True), None)
    assert after(known, DisableDone()).node.disabling is None
    assert effects(known, DisableDone()) == (Simple.RESTATE,)


def test_a_suspension() -> None:
    scope = WorkScope("suspension")
    disabling = after(loaded(), DisableStarted("gone", True, WorkScope("disable"), updating=False))
    known = after(disabling, SuspendStarted(scope), SUSPENDED)
    assert (known.node.disabling, known.node.missed_disable) == (None, ("gone", True))
    assert effects(loaded(), SuspendStarted(scope), SUSPENDED) == (
        Simple.REST_RELEASE,
        Attempt(Phase.CRDS, begins=False),
        Attempt(Phase.LOAD, begins=False),
        Tell(Failed(NAME, 0)),
        EnqueueSuspend(scope),
    )
    assert Tell(Completed(NAME, 0)) in effects(installed(loaded()), SuspendStarted(scope), SUSPENDED)
    assert Simple.REST_RELEASE not in effects(
        package(identity=AppId("prod", "a" * 60)), SuspendStarted(scope), SUSPENDED
    )
    stored = Offer(PLAIN, fresh=False, stored=True, established=())
    assert effects(package(PackageRead(PLAIN, ())), StoredLoaded(), SUSPENDED) == (Simple.NOTIFY, stored)
    assert effects(package(), StoredLoaded(), SUSPENDED) == (Simple.NOTIFY,)


def test_a_removal() -> None:
    scope = WorkScope("removal")
    known, done = step(loaded(), RemovalStarted(scope, None, DeletionPolicy.ORPHAN, disowned=True), IDLE)
    assert done[-2:] == (Tell(NodeRemoved(NAME)), EnqueueRemoval(scope))
    assert (known.removal.deletion, known.removal.disowned) == (DeletionPolicy.ORPHAN, True)
    assert known.status.removal is not None
    assert after(known, SkipDeleteHooks()).removal.skip_delete_hooks
    assert after(known, DeletionChanged(DeletionPolicy.DELETE_ALL)).removal.deletion is DeletionPolicy.DELETE_ALL
    for event in (SkipDeleteHooks(), DeletionChanged(DeletionPolicy.DELETE)):
        assert effects(known, event) == (Simple.RESTART_REMOVAL,)
    assert effects(known, RemovalDone()) == (Simple.CLEAN,)


def test_settings_for_a_removal_are_those_given_only_if_none_were_adopted() -> None:
    given = replace(NO_SETTINGS, secrets=("x",))
    start = RemovalStarted(WorkScope("removal"), given, None, disowned=False)
    assert after(loaded(), start).wish.settings is NO_SETTINGS
    assert after(Package(APP, statuses.fresh(1, NOW)), start).wish.settings is given


# --- every order -----------------------------------------------------------------------------------------------------------


class PackageStory(RuleBasedStateMachine):
    """One package with the real lifecycle store. What the scheduler and the tasks answer is up to the story."""

    def __init__(self) -> None:
        super().__init__()
        self.store = LifecycleStore()
        self.package = package()
        self.runs = 0
        self.crds: list[WorkScope] = []
        self.accepts = True
        self.waiting: list[Event] = []
        """The ends of tasks that were enqueued; any of them may come, unless its scope was cancelled."""
        self.scopes: list[WorkScope] = []
        self.answers: list[int] = []

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
            case Offer(definition, fresh, stored, established):
                self.answers.append(self.package.node.run)
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
                self.send(NodeSettled(enabled=True, unwanted=False))
            case Simple.UPDATE_COMPLETE:
                self.store.complete_update(NAME)
            case Simple.RUN_COMPLETE:
                self.store.complete_run(NAME)
            case Simple.NEEDS_CHANGED:
                self.send(NeedsChanged())
            case Simple.RESUMED:
                self.send(Resumed())
            case CastVote(enabled, reason, error, _):
                self.send(VoteRecorded(ScriptVoted(NAME, enabled, reason, error)))
            case _ if isinstance(effect, Begin):
                self.begin(effect)
            case _ if isinstance(effect, Enqueue):
                self.enqueue(effect)
            case _:
                pass

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
            EnqueueVote: VoteRepeated(),
            EnqueueRemoval: RemovalDone(),
        }
        if isinstance(effect, EnqueueReconciliation):
            self.answers.append(effect.run)
            self.waiting.append(RunDone(effect.run))
        elif not isinstance(effect, EnqueueCrds):
            self.waiting.append(ends[type(effect)])
        else:
            self.scopes.pop()

    def live_ends(self) -> Iterator[int]:
        return (at for at, scope in enumerate(self.scopes) if not scope.cancelled)

    # --- the story -------------------------------------------------------------------------------------------------------

    @rule(version=st.sampled_from(["1.0.0", "2.0.0"]), suspended=st.booleans(), needs=st.booleans())
    def wish(self, version: str, suspended: bool, needs: bool) -> None:
        decision = self.store.reconcile(NAME, replace(WISH, version=version, suspended=suspended))
        if decision.kind is not DecisionKind.REMOVING:
            self.send(WishAdopted(decision, 1, new_login=False, needs_changed=needs))

    @rule(definition=st.sampled_from([PLAIN, WITH_CRDS, SCRIPTED]), accepts=st.booleans())
    def read(self, definition: Definition, accepts: bool) -> None:
        self.accepts = accepts
        if self.store.is_loading(NAME):
            self.package = applied(self.package, PackageRead(replace(definition), ()))

    @rule(data=st.data())
    def a_task_ends(self, data: st.DataObject) -> None:
        live = list(self.live_ends())
        if not live:
            return
        at = data.draw(st.sampled_from(live))
        event = self.waiting[at]
        if isinstance(event, UpdateDone) and self.package.files.definition is None:
            return
        del self.waiting[at], self.scopes[at]
        self.send(event)

    @rule()
    def run_is_ordered(self) -> None:
        self.runs += 1
        self.answers.clear()
        self.send(DecisionMade(allowed=True))
        self.send(RunOrdered(self.runs, "test"))
        assert self.answers.count(self.runs) == 1

    @rule(uninstall=st.booleans())
    def disable_is_ordered(self, uninstall: bool) -> None:
        self.send(DecisionMade(allowed=False))
        self.send(DisableOrdered("gone", uninstall))

    @rule(before=st.sampled_from([(), ("dns",)]), forced=st.booleans())
    def others_turn(self, before: tuple[str, ...], forced: bool) -> None:
        self.send(OthersTurned(before, forced))

    @rule(reported=st.sampled_from([Succeeded(Stage.LOADED), StageFailed(Stage.LOADED, CYCLE), ValuesChanged("a")]))
    def something_is_reported(self, reported: Event) -> None:
        self.send(reported)

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
        self.package = applied(self.package, Verified())

    @rule()
    def an_update_is_wanted_again(self) -> None:
        self.send(UpdateWanted(1))

    @rule()
    def a_removal(self) -> None:
        _, scope = self.store.begin_removal(NAME)
        if scope is not None:
            self.send(RemovalStarted(scope, None, None, disowned=False))

    # --- what always holds -----------------------------------------------------------------------------------------------

    @invariant()
    def one_task_of_the_crds(self) -> None:
        live = [scope for scope in self.crds if not scope.cancelled]
        assert len(live) <= 1
        assert all(scope is self.package.crds.scope for scope in live)
        if live:
            assert not self.store.is_removing(NAME)

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
