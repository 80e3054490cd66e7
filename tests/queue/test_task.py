import pytest

from wharfinger.queue.task import TaskFailed


@pytest.mark.parametrize("permanent", [False, True])
def test_a_failure_has_a_message_and_may_be_permanent(permanent: bool) -> None:
    failure = TaskFailed("registry does not answer", permanent=permanent)
    assert (str(failure), failure.message, failure.permanent) == (
        "registry does not answer",
        "registry does not answer",
        permanent,
    )


def test_a_failure_is_transient_by_default() -> None:
    assert not TaskFailed("x").permanent
