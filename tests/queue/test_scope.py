import pytest

from wharfinger.queue.scope import WorkScope


def test_a_new_scope_is_live() -> None:
    scope = WorkScope("update of shop.web")
    assert (scope.cancelled, scope.cause, scope.name) == (False, "", "update of shop.web")
    assert repr(scope) == "<WorkScope 'update of shop.web' live>"


def test_the_first_cause_is_retained_and_listeners_are_called_once() -> None:
    scope = WorkScope("update")
    told: list[str] = []
    scope.on_cancel(told.append)
    scope.on_cancel(told.append)
    scope.cancel("package version changed")
    assert told == ["package version changed"] * 2
    scope.cancel("removal started")
    assert told == ["package version changed"] * 2
    assert (scope.cancelled, scope.cause) == (True, "package version changed")
    assert repr(scope) == "<WorkScope 'update' cancelled: package version changed>"


def test_a_listener_that_is_added_after_the_cancellation_is_called_at_once() -> None:
    scope = WorkScope("update")
    scope.cancel("superseded")
    told: list[str] = []
    forget = scope.on_cancel(told.append)
    assert told == ["superseded"]
    forget()


def test_a_removed_listener_is_not_called() -> None:
    scope = WorkScope("update")
    told: list[str] = []
    forget = scope.on_cancel(told.append)
    scope.on_cancel(told.append)
    forget()
    forget()
    scope.cancel("superseded")
    assert told == ["superseded"]


def test_a_listener_sees_the_scope_cancelled_and_may_cancel_again() -> None:
    scope = WorkScope("update")
    seen: list[tuple[bool, str]] = []

    def listener(cause: str) -> None:
        scope.cancel("once more")
        seen.append((scope.cancelled, cause))

    scope.on_cancel(listener)
    scope.cancel("superseded")
    assert seen == [(True, "superseded")]


def test_listeners_may_be_added_and_removed_during_the_calls() -> None:
    scope = WorkScope("update")
    told: list[str] = []

    def listener(cause: str) -> None:
        forget()
        scope.on_cancel(lambda cause: told.append(f"late: {cause}"))
        told.append(cause)

    forget = scope.on_cancel(listener)
    scope.on_cancel(told.append)
    scope.cancel("superseded")
    assert told == ["late: superseded", "superseded", "superseded"]


def test_cancelling_without_a_cause_is_refused() -> None:
    scope = WorkScope("update")
    with pytest.raises(ValueError, match="update: a cancellation needs a cause"):
        scope.cancel("")
    assert not scope.cancelled
