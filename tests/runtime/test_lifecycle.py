"""The operations model (spec/runtime §2.2): what cancels what, and what is refused."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.lifecycle import Decision, DesiredState, LifecycleStore, RemovalStart

V1 = DesiredState("https://r", "web", "1.0.0", "sha256:a")
V2 = replace(V1, version="2.0.0")
OTHER_SETTINGS = replace(V1, settings_checksum="sha256:b")


def test_the_first_wish_is_an_update_and_the_same_again_is_nothing() -> None:
    store = LifecycleStore()
    assert store.reconcile("a", V1) is Decision.UPDATE
    assert store.reconcile("a", V1) is Decision.NONE


def test_version_package_and_source_update_settings_reconfigure() -> None:
    store = LifecycleStore()
    store.reconcile("a", V1)
    assert store.reconcile("a", OTHER_SETTINGS) is Decision.RECONFIGURE
    assert store.reconcile("a", V2) is Decision.UPDATE
    assert store.reconcile("a", replace(V2, package="x")) is Decision.UPDATE
    assert store.reconcile("a", replace(V2, package="x", source="http://r")) is Decision.UPDATE
    assert store.reconcile("a", replace(V2, package="x", source="http://r", requested="now")) is Decision.UPDATE


def test_an_update_supersedes_what_runs_and_says_why() -> None:
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


def test_a_reconciliation_supersedes_its_like_and_leaves_an_update_alone() -> None:
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


def test_a_removal_outranks_both_and_refuses_them() -> None:
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
    assert store.reconcile("a", V2) is Decision.REMOVING
    assert store._packages["a"].desired == V1
    assert store.begin_removal("a") == (RemovalStart.IN_FLIGHT, None)


def test_the_guard_of_complete_removal_in_both_directions() -> None:
    store = LifecycleStore()
    assert not store.complete_removal("a")
    store.reconcile("a", V1)
    assert not store.complete_removal("a")
    store.begin_removal("a")
    assert store.complete_removal("a")
    assert store._packages == {}
    # Created again after the removal: a new package that the old removal cannot touch.
    assert store.reconcile("a", V1) is Decision.UPDATE
    assert not store.complete_removal("a")
    assert set(store._packages) == {"a"}


def test_unknown_packages() -> None:
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


class Operations(RuleBasedStateMachine):
    """After any story at most one live scope of each kind, and none but the removal's while removing."""

    names = st.sampled_from(["a", "b"])

    @initialize()
    def begin(self) -> None:
        self.store = LifecycleStore()
        self.live: dict[tuple[str, str], list[WorkScope]] = {}

    def is_removing(self, name: str) -> bool:
        package = self.store._packages.get(name)
        return package is not None and package.removal is not None

    def note(self, name: str, kind: str, scope: WorkScope | None) -> None:
        if scope is not None:
            self.live.setdefault((name, kind), []).append(scope)

    @rule(name=names, desired=st.sampled_from([V1, V2, OTHER_SETTINGS]))
    def reconcile(self, name: str, desired: DesiredState) -> None:
        removing = self.is_removing(name)
        assert (self.store.reconcile(name, desired) is Decision.REMOVING) == removing

    @rule(name=names)
    def update(self, name: str) -> None:
        self.note(name, "update", self.store.begin_update(name))

    @rule(name=names)
    def reconciliation(self, name: str) -> None:
        self.note(name, "reconciliation", self.store.begin_reconciliation(name, "x"))

    @rule(name=names)
    def removal(self, name: str) -> None:
        self.note(name, "removal", self.store.begin_removal(name)[1])

    @rule(name=names)
    def complete(self, name: str) -> None:
        removing = self.is_removing(name)
        assert self.store.complete_removal(name) == removing
        assert not removing or name not in self.store._packages

    @invariant()
    def at_most_one_of_a_kind(self) -> None:
        if not hasattr(self, "live"):
            return
        for (name, kind), scopes in self.live.items():
            alive = [scope for scope in scopes if not scope.cancelled]
            assert len(alive) <= 1
            if kind != "removal" and self.is_removing(name):
                assert alive == []


TestOperations = Operations.TestCase


def test_whether_a_removal_runs() -> None:
    store = LifecycleStore()
    assert not store.is_removing("a")
    store.track("a")
    assert not store.is_removing("a")
    store.begin_removal("a")
    assert store.is_removing("a")
    store.complete_removal("a")
    assert not store.is_removing("a")


def test_disabling_outranks_an_update_and_says_that_it_cut_one_short() -> None:
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
    assert scope.cause == ""  # what is unwanted leaves, whatever else happens
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


def test_whether_a_run_is_on_its_way() -> None:
    store = LifecycleStore()
    assert not store.is_applying("a")
    store.track("a")
    scope = store.begin_reconciliation("a", "r")
    assert scope is not None
    assert store.is_applying("a")
    store.complete_run("a")
    assert not store.is_applying("a")
    assert not scope.cancelled  # the wait for readiness goes on
    store.begin_reconciliation("a", "r")
    store.begin_update("a")
    assert not store.is_applying("a")


def test_a_removal_can_be_started_again() -> None:
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
    assert store.complete_removal("a")
    assert second.cause == "removal complete"
