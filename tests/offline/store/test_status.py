"""Statuses: typed states, and blockers in a fixed order."""

import pytest

from wharfinger.offline.store.status import READY, State, Status, blocked_by
from wharfinger.runtime.fixpoint.model import Id


@pytest.mark.parametrize(
    ("state", "ready", "failed"),
    [
        (State.PENDING, False, False),
        (State.READY, True, False),
        (State.SKIPPED, True, False),
        (State.FAILED, False, True),
        (State.BLOCKED, False, True),
    ],
)
def test_ready_and_skipped_states_let_dependents_run(state: State, *, ready: bool, failed: bool) -> None:
    status = Status(state)
    assert (status.is_ready, status.has_failed) == (ready, failed)


def test_a_derived_failure_lists_its_blockers_in_order() -> None:
    one, two = Id("A", "n", "1"), Id("B", "n", "2")
    assert blocked_by((two, one)) == blocked_by((one, two))
    assert blocked_by((two, one)).message == "waits for A n/1, B n/2, which failed"
    assert READY.is_ready
