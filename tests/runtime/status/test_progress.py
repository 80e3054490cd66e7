"""The progress of an operation: its counts, and the first objects that it waits for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.status.progress import MAX_NAME, MOST_NAMED, Progress, progress_of


@pytest.mark.parametrize(
    ("completed", "remaining", "expected"),
    [
        ((), (), None),
        (("a", "b"), (), None),
        ((), ("a",), Progress(0, 1, ("a",))),
        (("a", "b"), ("c",), Progress(2, 1, ("c",))),
        # An object that was done, and then failed or was dropped, does not count as done.
        (("a", "b"), ("b",), Progress(1, 1, ("b",))),
        # Each object counts once, in the order of the reports.
        (("a", "a"), ("c", "b", "c"), Progress(1, 2, ("c", "b"))),
        ((), tuple("abcdefg"), Progress(0, 7, ("a", "b", "c", "d", "e"))),
    ],
)
def test_completed_and_remaining_objects_are_counted(
    completed: tuple[str, ...], remaining: tuple[str, ...], expected: Progress | None
) -> None:
    assert progress_of(completed, remaining) == expected


def test_all_fields_of_progress_are_written() -> None:
    assert Progress(2, 1, ("c",)).as_json() == {"completed": 2, "remaining": 1, "waitingFor": ["c"]}


def test_a_long_name_is_cut() -> None:
    progress = progress_of((), ("x" * 1000,))
    assert progress is not None
    assert progress.waiting_for == ("x" * (MAX_NAME - 1) + "…",)


NAMES = st.lists(st.sampled_from("abcdefgh"), max_size=20)


@given(NAMES, NAMES)
def test_every_object_is_counted_once(completed: list[str], remaining: list[str]) -> None:
    progress = progress_of(completed, remaining)
    if progress is None:
        assert remaining == []
        return
    assert progress.remaining == len(set(remaining))
    assert progress.completed + progress.remaining == len({*completed, *remaining})
    assert len(progress.waiting_for) == min(MOST_NAMED, progress.remaining)
    assert set(progress.waiting_for) <= set(remaining)
