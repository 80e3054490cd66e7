"""Attempts at rows, and the errors that operations raise."""

from tests.cluster.reconciler.samples import Row
from wharfinger.cluster.reconciler.operations import Attempt, BadRowError, NoOutcomeError, OperationTimeoutError


def test_an_attempt_is_a_first_update_by_default() -> None:
    attempt = Attempt(1, Row(1), 7, 1)
    assert (attempt.refreshing, attempt.deleting, attempt.replaces) == (False, False, False)


def test_only_an_error_of_the_row_is_permanent() -> None:
    assert [error.transient for error in (BadRowError(), NoOutcomeError(), OperationTimeoutError())] == [
        False,
        True,
        True,
    ]
