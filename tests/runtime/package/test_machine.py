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
    Begin,
    BeginUpdate,
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
    Simple,
    Tell,
)
from wharfinger.runtime.package.events import (
    CrdsStarted,
    DecisionMade,
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
    RemovalDone,
    RemovalStarted,
    RunDone,
    RunOrdered,
    StageFailed,
    StoredLoaded,
    Succeeded,
    SuspendStarted,
    UpdateDone,
    UpdateStarted,
    UpdateWanted,
    ValuesChanged,
    Voted,
    VoteRecorded,
    VoteRepeated,
    WishAdopted,
)
from wharfinger.runtime.package.facts import Fact, Offered, Wished
from wharfinger.runtime.package.findings import HooksUnusable, PackageRead, ValuesRead, Verified
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.state import NO_SETTINGS, Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import AppId, PackageId
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.scheduler.events import (
    Completed,
    Failed,
    Rescheduled,
    ScriptVoted,
)
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage
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
WISHED: Final = Wished("web", "1.0.0", FolderSource(Path("/x")), NO_SETTINGS, Directives(), first=True)
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
    for fact in (WISHED, *facts):
        known = applied(known, fact)
    return known


def loaded(definition: Definition = PLAIN) -> Package:
    """A package whose definition is the scheduler's node."""
    return after(package(PackageRead(definition, ())), NodeAccepted(definition, fresh=True, stored=False))


def refused(definition: Definition = PLAIN) -> Package:
    return after(package(PackageRead(definition, ())), NodeRefused(CYCLE, fresh=True, established=()))


def installed(known: Package) -> Package:
    return structs.replace(known, status=structs.replace(known.status, installed_since=NOW, version="1.0.0"))


def after(known: Package, event: Event, around: Around = IDLE) -> Package:
    return step(known, event, around)[0]


def effects(known: Package, event: Event, around: Around = IDLE) -> tuple[Effect, ...]:
    """Return the effects of an event, without log lines."""
    return tuple(effect for effect in step(known, event, around)[1] if not isinstance(effect, Log))


def offer(definition: Definition = PLAIN, *, fresh: bool = False) -> Offer:
    return Offer(definition, fresh, stored=False, established=())


# --- the table -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "around", "new_login", "expected"),
    [
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
    assert effects(loaded(), WishAdopted(WISHED, decision, 2, None, new_login, needs_changed=False), around) == expected
    more = effects(loaded(), WishAdopted(WISHED, decision, 2, None, new_login, needs_changed=True), around)
    assert more == (*expected, Simple.NEEDS_CHANGED)


@pytest.mark.parametrize("kind", [DecisionKind.UPDATE, DecisionKind.RESUME])
def test_a_wish_begins_its_update_in_the_same_step(kind: DecisionKind) -> None:
    scope, suspended = WorkScope("update"), Decision(DecisionKind.SUSPEND)
    known = after(loaded(), WishAdopted(WISHED, suspended, 1, None, new_login=False, needs_changed=False))
    assert known.status.suspended
    wish = WishAdopted(WISHED, Decision(kind), 2, scope, new_login=False, needs_changed=True)
    assert effects(known, wish) == (*effects(known, UpdateStarted(scope, 2)), Simple.NEEDS_CHANGED)
    assert after(known, wish).status.suspended is (kind is DecisionKind.UPDATE)
    assert after(known, wish).status.generation == 2
    refused = effects(known, replace(wish, scope=None))
    assert refused == (Simple.NEEDS_CHANGED,)


def test_a_wish_that_changes_nothing_is_observed() -> None:
    decision = Decision(DecisionKind.NONE)
    known = after(loaded(), WishAdopted(WISHED, decision, 2, None, new_login=False, needs_changed=False))
    assert known.status.generation == 2
    other = replace(WISHED, version="2.0.0", first=False)
    assert (
        after(known, WishAdopted(other, decision, 2, None, new_login=False, needs_changed=False)).wish.version
        == "2.0.0"
    )


def test_an_update_that_is_wanted_again_asks_the_registry() -> None:
    known = loaded()
    assert not known.wish.refresh
    assert after(known, UpdateWanted(2)).wish.refresh
    assert effects(known, UpdateWanted(2)) == (BeginUpdate(2),)


def test_a_finding_changes_records_and_nothing_follows_from_it() -> None:
    known = after(loaded(), ValuesChanged("hooks/a.sh"), operations(applying=True))
    for finding in (Verified(), ValuesRead(), PackageRead(SCRIPTED, ()), HooksUnusable()):
        assert step(known, finding, IDLE) == (applied(known, finding), ())
        assert after(known, finding).status is known.status


def test_a_decision_during_a_removal_ensures_no_definitions() -> None:
    store = LifecycleStore()
    store.adopt(NAME, WISH)
    store.complete_update(NAME)
    known = applied(applied(package(), PackageRead(WITH_CRDS, ())), Offered(None))
    decided = DecisionMade(allowed=True)
    assert Simple.CRDS in step(known, decided, Around(NOW, store.package(NAME)))[1]
    store.begin_removal(NAME)
    assert Simple.CRDS not in step(known, decided, Around(NOW, store.package(NAME)))[1]


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
        decision, scope = self.store.adopt(NAME, replace(WISH, version=version, suspended=suspended))
        if decision.kind is not DecisionKind.REMOVING:
            self.send(WishAdopted(WISHED, decision, 1, scope, new_login=False, needs_changed=needs))

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
        self.send(Verified())

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
