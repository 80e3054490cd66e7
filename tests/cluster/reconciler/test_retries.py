"""The times of retries. Only a success or a new row resets the count of attempts."""

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.reconciler.samples import RefusedError
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.retries import HISTORY, NEVER, Outcome, Retries, pause_after, pause_s

FAILED = ClusterError("it failed")


def failing(*pauses: tuple[str, float]) -> Retries[str]:
    retries = Retries[str]()
    for key, pause in pauses:
        retries.add(key, FAILED, now=0, pause=pause)
    return retries


def due(retries: Retries[str], now: float) -> list[str]:
    popped = []
    while (key := retries.pop_due(now)) is not None:
        popped.append(key)
    return popped


def test_retries_come_in_the_order_of_their_times() -> None:
    retries = failing(("c", 3), ("a", 1), ("b", 2))
    assert retries.next_at() == 1
    assert due(retries, 0.9) == []
    assert due(retries, 2) == ["a", "b"]
    assert retries.next_at() == 3


def test_retries_of_one_time_come_in_the_order_of_their_failures() -> None:
    assert due(failing(("b", 1), ("a", 1), ("c", 1)), 1) == ["b", "a", "c"]


def test_a_later_failure_replaces_the_time_of_the_earlier_one() -> None:
    retries = failing(("a", 1), ("b", 2))
    retries.add("a", FAILED, now=0, pause=3)
    assert due(retries, 10) == ["b", "a"]
    assert retries.next_at() == NEVER


def test_a_popped_retry_retains_its_count() -> None:
    retries = failing(("a", 1))
    for now in (1, 2):
        assert due(retries, now) == ["a"]
        retries.add("a", FAILED, now=now, pause=1)
    assert due(retries, 3) == ["a"]
    assert (retries.attempts("a"), len(retries), retries.next_at()) == (3, 1, NEVER)


def test_a_waiting_retry_can_be_cleared() -> None:
    retries = failing(("a", 1), ("b", 2))
    assert retries.clear("a")
    assert due(retries, 10) == ["b"]
    assert (retries.attempts("a"), retries.get("a")) == (0, None)


def test_a_popped_retry_can_be_cleared() -> None:
    retries = failing(("a", 1))
    assert due(retries, 1) == ["a"]
    assert retries.clear("a")
    assert not retries.clear("a")
    assert (len(retries), due(retries, 10)) == (0, [])


def test_a_withdrawn_retry_retains_its_failures_without_a_time() -> None:
    retries = failing(("a", 1))
    retries.withdraw("a")
    assert (due(retries, 10), retries.attempts("a")) == ([], 1)


def test_outdated_times_do_not_accumulate() -> None:
    retries = failing(("last", 1000))
    for _ in range(5000):
        retries.add("a", FAILED, now=0, pause=500)
        retries.clear("a")
    assert len(retries._times) < 200
    assert due(retries, 2000) == ["last"]


def test_a_failure_has_a_history_of_messages() -> None:
    retries = Retries[str]()
    for at, message in enumerate(["one", "one", "two", "one", "four", "five", "six"]):
        retries.add("a", ClusterError(message), now=at, pause=1)
    failure = retries.get("a")
    assert failure is not None
    assert (failure.attempts, failure.since, failure.next_at, str(failure.error)) == (7, 0, 7, "six")
    assert failure.history == (
        Outcome(2, "two"),
        Outcome(3, "one"),
        Outcome(4, "four"),
        Outcome(5, "five"),
        Outcome(6, "six"),
    )
    assert len(failure.history) == HISTORY
    retries.add("a", RefusedError("six"), now=9, pause=1)
    again = retries.get("a")
    assert again is not None
    assert (again.permanent, again.history[-1]) == (True, Outcome(9, "six", 2))
    assert list(retries) == [again]


def test_an_error_without_a_message_is_shown_by_its_type() -> None:
    retries = failing()
    assert retries.add("a", ClusterError(), now=0, pause=1).history == (Outcome(0, "ClusterError"),)


def test_a_stored_error_references_no_frame() -> None:
    class Large:
        pass

    def raises() -> tuple[ClusterError, "weakref.ref[Large]"]:
        large = Large()
        kept = weakref.ref(large)
        try:
            raise ClusterError("with a frame")
        except ClusterError as error:
            return error, kept

    error, kept = raises()
    retries = failing()
    retries.add("a", error, now=0, pause=1)
    del error
    gc.collect()
    assert kept() is None


@given(st.integers(1, 1000), st.floats(0, 1, exclude_max=True))
def test_pauses_stay_within_their_bounds(failures: int, draw: float) -> None:
    pause = pause_s(failures, first_s=0.1, most_s=60, draw=draw)
    whole = pause_s(failures, first_s=0.1, most_s=60)
    assert 0.075 <= pause <= 60
    assert 0.75 * whole <= pause <= whole


def test_pauses_double() -> None:
    assert [pause_s(failures, first_s=0.1, most_s=0.5) for failures in (1, 2, 3, 4, 2000)] == [0.1, 0.2, 0.4, 0.5, 0.5]


@pytest.mark.parametrize(
    ("transient", "asked", "pause"),
    [
        (True, None, 0.2),
        (True, 0.05, 0.2),
        (True, 30.0, 30.0),
        (True, 1e9, 600.0),
        (False, None, 600.0),
        (False, 1.0, 600.0),
    ],
)
def test_the_pause_after_an_error_respects_the_servers_request(
    transient: bool, asked: float | None, pause: float
) -> None:
    """The pause is at least as long as without the server's request, and at most as long as after a permanent error."""
    error = ClusterError("it failed") if transient else RefusedError("it failed")
    error.retry_after_s = asked
    assert pause_after(error, 2, ReconcilerOptions(), 0.0) == pause
