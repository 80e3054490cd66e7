import pytest

from wharfinger.queue.task import TaskFailed


@pytest.mark.parametrize("permanent", [False, True])
def test_a_failure_carries_its_message_and_whether_trying_again_can_help(permanent: bool) -> None:
    failure = TaskFailed("registry does not answer", permanent=permanent)
    assert (str(failure), failure.message, failure.permanent) == (
        "registry does not answer",
        "registry does not answer",
        permanent,
    )


def test_a_failure_is_transient_unless_said_otherwise() -> None:
    assert not TaskFailed("x").permanent
