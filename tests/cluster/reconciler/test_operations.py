"""What an attempt and the errors of operations say."""

from tests.cluster.reconciler.samples import Row
from wharfinger.cluster.reconciler.operations import Attempt, BadRowError, NoOutcomeError, OperationTimeoutError


def test_an_attempt_is_a_first_update_unless_it_says_otherwise() -> None:
    attempt = Attempt(1, Row(1), 7, 1)
    assert (attempt.refreshing, attempt.deleting, attempt.replaces) == (False, False, False)


def test_what_only_a_change_helps() -> None:
    assert [error.transient for error in (BadRowError(), NoOutcomeError(), OperationTimeoutError())] == [
        False,
        True,
        True,
    ]
