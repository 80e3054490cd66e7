"""The model of operations (spec/runtime §2.2): which operation cancels another one, and which operation is refused."""

from dataclasses import replace

from wharfinger.runtime.lifecycle.desired_state import Change, Decision, DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore, RemovalStart

V1 = DesiredState("https://r", "web", "1.0.0", "sha256:a")
V2 = replace(V1, version="2.0.0")
OTHER_SETTINGS = replace(V1, settings_checksum="sha256:b")


def test_the_first_desired_state_is_an_update_and_a_repetition_nothing() -> None:
    store = LifecycleStore()
    assert store.reconcile("a", V1) == Decision(DecisionKind.UPDATE)
    assert store.reconcile("a", V1) == Decision(DecisionKind.NONE)


def test_a_desired_state_that_needs_an_update_begins_it() -> None:
    store = LifecycleStore()
    decision, first = store.adopt("a", V1)
    assert decision == Decision(DecisionKind.UPDATE)
    assert first is not None
    assert store.is_loading("a")
    assert store.adopt("a", OTHER_SETTINGS) == (Decision(DecisionKind.RECONFIGURE, (Change.SETTINGS,)), None)
    decision, second = store.adopt("a", V2)
    assert second is not None
    assert first.cancelled
    assert store.adopt("a", replace(V2, suspended=True))[1] is None
    decision, third = store.adopt("a", V2)
    assert decision.kind is DecisionKind.RESUME
    assert third is not None
    store.begin_removal("a")
    assert store.adopt("a", V1) == (Decision(DecisionKind.REMOVING), None)


def test_a_desired_state_is_compared_with_the_adopted_state() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    assert store.reconcile("a", OTHER_SETTINGS) == Decision(DecisionKind.RECONFIGURE, (Change.SETTINGS,))
    assert store.reconcile("a", OTHER_SETTINGS) == Decision(DecisionKind.NONE)
    assert store.reconcile("a", V2) == Decision(DecisionKind.UPDATE, (Change.VERSION, Change.SETTINGS))


def test_an_update_supersedes_running_operations_with_a_cause() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    first, running = store.begin_update("a"), store.begin_reconciliation("a", "loaded")
    second = store.begin_update("a")
    assert first is not None
    assert running is not None
    assert second is not None
    assert (first.cancelled, first.cause) == (True, "update superseded")
    assert (running.cancelled, running.cause) == (True, "update started")
    assert not second.cancelled


def test_a_reconciliation_supersedes_only_another_reconciliation() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    update, first = store.begin_update("a"), store.begin_reconciliation("a", "loaded")
    second = store.begin_reconciliation("a", "settings changed")
    assert update is not None
    assert first is not None
    assert second is not None
    assert (update.cancelled, first.cancelled, first.cause, second.cancelled) == (
        False,
        True,
        "settings changed",
        False,
    )


def test_a_removal_cancels_and_refuses_updates_and_reconciliations() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    update = store.begin_update("a")
    start, scope = store.begin_removal("a")
    assert start is RemovalStart.STARTED
    assert scope is not None
    assert update is not None
    assert update.cause == "removal started"
    assert store.begin_update("a") is None
    assert store.begin_reconciliation("a", "x") is None
    assert store.reconcile("a", V2) == Decision(DecisionKind.REMOVING)
    assert store.begin_removal("a") == (RemovalStart.IN_FLIGHT, None)


def test_only_a_running_removal_can_be_completed() -> None:
    store = LifecycleStore()
    assert not store.complete_removal("a")
    store.reconcile("a", V1)
    assert not store.complete_removal("a")
    assert store.reconcile("a", V1) == Decision(DecisionKind.NONE), "the package is still known"
    store.begin_removal("a")
    assert store.complete_removal("a")
    assert store == LifecycleStore()


def test_a_package_recreated_during_its_removal_is_new_afterwards() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    store.begin_removal("a")
    assert store.reconcile("a", V2).kind is DecisionKind.REMOVING
    assert store.complete_removal("a")
    assert store.reconcile("a", V2) == Decision(DecisionKind.UPDATE)
    update = store.begin_update("a")
    # Late events of the old removal cannot affect the new package.
    assert not store.complete_removal("a")
    assert store.restart_removal("a") is None
    assert update is not None
    assert not update.cancelled
    assert store.reconcile("a", V2) == Decision(DecisionKind.NONE)


def test_operations_of_unknown_packages_are_refused() -> None:
    store = LifecycleStore()
    assert store.begin_update("a") is None
    assert store.begin_reconciliation("a", "x") is None
    assert store.begin_removal("a") == (RemovalStart.DONE, None)
    store.track("a")
    assert store.begin_removal("a")[0] is RemovalStart.STARTED


def test_loading_lasts_until_the_update_is_complete() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    assert not store.is_loading("a")
    store.begin_update("a")
    assert store.is_loading("a")
    store.complete_update("a")
    assert not store.is_loading("a")


def test_a_removal_runs_until_it_is_complete() -> None:
    store = LifecycleStore()
    assert not store.is_removing("a")
    store.track("a")
    assert not store.is_removing("a")
    store.begin_removal("a")
    assert store.is_removing("a")
    store.complete_removal("a")
    assert not store.is_removing("a")


def test_disabling_cancels_an_update_and_reports_it() -> None:
    store = LifecycleStore()
    assert store.begin_disable("a") == (None, False)
    store.track("a")
    update, run = store.begin_update("a"), store.begin_reconciliation("a", "r")
    assert update is not None
    assert run is not None
    scope, updating = store.begin_disable("a")
    assert scope is not None
    assert updating
    assert (update.cause, run.cause) == ("disabled", "disabled")
    again = store.begin_update("a")
    assert again is not None
    assert scope.cause == ""  # a package that is off is disabled even during an update
    assert store.begin_disable("a")[1]
    assert scope.cause == "disabled"
    second, _ = store.begin_disable("a")
    assert second is not None
    store.begin_reconciliation("a", "enabled")
    assert second.cause == "enabled"
    store.begin_removal("a")
    assert store.begin_disable("a") == (None, False)


def test_a_vote_is_superseded_by_the_next_an_update_and_a_removal() -> None:
    store = LifecycleStore()
    assert store.begin_vote("a") is None
    store.track("a")
    first = store.begin_vote("a")
    second = store.begin_vote("a")
    assert first is not None
    assert second is not None
    assert first.cause == "asked again"
    store.begin_reconciliation("a", "r")
    assert second.cause == ""
    store.begin_update("a")
    assert second.cause == "update started"
    third = store.begin_vote("a")
    assert third is not None
    store.begin_removal("a")
    assert third.cancelled
    assert store.begin_vote("a") is None


def test_a_run_is_applying_until_it_is_complete() -> None:
    store = LifecycleStore()
    assert not store.is_applying("a")
    store.track("a")
    scope = store.begin_reconciliation("a", "r")
    assert scope is not None
    assert store.is_applying("a")
    store.complete_run("a")
    assert not store.is_applying("a")
    assert not scope.cancelled  # the wait for readiness continues
    store.begin_reconciliation("a", "r")
    store.begin_update("a")
    assert not store.is_applying("a")


def test_a_running_removal_can_be_restarted() -> None:
    store = LifecycleStore()
    assert store.restart_removal("a") is None
    store.track("a")
    assert store.restart_removal("a") is None
    _, first = store.begin_removal("a")
    assert first is not None
    second = store.restart_removal("a")
    assert second is not None
    assert first.cause == "removal started again"
    assert store.is_removing("a")
    store.finish_removal("a")
    assert store.restart_removal("a") is None  # no step is left that could be started again
    assert store.is_removing("a")
    assert store.complete_removal("a")
    assert second.cause == "removal complete"


def test_suspending_cancels_operations_and_refuses_all_but_a_removal() -> None:
    store = LifecycleStore()
    assert not store.is_suspended("a")
    store.reconcile("a", V1)
    assert not store.is_suspended("a")
    assert store.begin_suspend("a") is None  # no suspension was requested
    running = [store.begin_update("a"), store.begin_reconciliation("a", "r"), store.begin_vote("a")]
    assert store.reconcile("a", replace(V1, suspended=True)).kind is DecisionKind.SUSPEND
    assert store.is_suspended("a")
    rest = store.begin_suspend("a")
    assert [scope.cause if scope else None for scope in running] == ["suspended"] * 3
    assert not store.is_loading("a")
    assert not store.is_applying("a")
    assert store.begin_update("a") is None
    assert store.begin_reconciliation("a", "r") is None
    assert store.begin_disable("a") == (None, False)
    assert store.begin_vote("a") is None
    assert rest is not None
    assert rest.name == "suspension of a"
    assert not rest.cancelled
    start, removal = store.begin_removal("a")
    assert start is RemovalStart.STARTED
    assert rest.cause == "removal started"
    assert removal is not None
    assert store.begin_suspend("a") is None


def test_suspending_cancels_a_disable() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    disabling, _ = store.begin_disable("a")
    store.reconcile("a", replace(V1, suspended=True))
    store.begin_suspend("a")
    assert disabling is not None
    assert disabling.cause == "suspended"


def test_changes_during_a_suspension_take_effect_on_resume() -> None:
    store = LifecycleStore()
    store.reconcile("a", replace(V1, suspended=True))
    rest = store.begin_suspend("a")
    later = store.reconcile("a", replace(V2, suspended=True))
    assert later == Decision(DecisionKind.NONE, (Change.VERSION,))
    assert store.reconcile("a", V2) == Decision(DecisionKind.RESUME, (Change.SUSPENDED,))
    assert store.begin_update("a") is not None
    assert rest is not None
    assert rest.cause == "resumed"


def test_observers_of_a_cancel_see_the_new_state() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    update = store.begin_update("a")
    assert update is not None
    seen: list[bool] = []
    update.on_cancel(lambda _cause: seen.append(store.is_removing("a")))
    store.begin_removal("a")
    assert seen == [True]


def test_the_store_retains_no_scope_of_ended_operations() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    for _ in range(3):
        store.begin_update("a")
        store.complete_update("a")
        store.begin_reconciliation("a", "r")
        store.begin_vote("a")
    assert len(store._scopes) == 2
    store.begin_removal("a")
    store.complete_removal("a")
    assert store._scopes == {}
