"""`Around`, from which the state machine of a package learns which operations are under way."""

from dataclasses import replace
from datetime import UTC, datetime

from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.around import Around

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DESIRED = DesiredState("https://r", "web", "1.0.0", "sha256:a")


def seen(store: LifecycleStore) -> tuple[bool, bool, bool]:
    around = Around(NOW, store.package("web"))
    return around.loading, around.suspended, around.applying


def test_an_unknown_package_has_no_operations() -> None:
    assert seen(LifecycleStore()) == (False, False, False)


def test_operations_are_those_of_the_lifecycle_store() -> None:
    store = LifecycleStore()
    store.reconcile("web", DESIRED)
    assert seen(store) == (False, False, False)
    store.begin_update("web")
    assert seen(store) == (True, False, False) == (store.is_loading("web"), store.is_suspended("web"), False)
    store.complete_update("web")
    store.begin_reconciliation("web", "test")
    assert seen(store) == (False, False, True)
    store.reconcile("web", replace(DESIRED, suspended=True))
    assert seen(store) == (False, True, True)
    store.begin_suspend("web")
    assert seen(store) == (False, True, False)
