"""The completion indexes of Jobs, and their short form, such as ``0-2,5``."""

import pytest

from wharfinger.control_plane.controllers.workloads.job_pods import (
    completed_indexes,
    format_indexes,
    index_of,
    wanted_indexes,
)
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(
    ("text", "found"), [("", set()), ("0-2,5", {0, 1, 2, 5}), ("x,1-", {1}), ("3", {3}), ("²,1-²", set())]
)
def test_short_forms_of_completed_indexes_are_read(text: str, found: set[int]) -> None:
    assert completed_indexes({"status": {"completedIndexes": text}}) == found


def test_short_forms_of_indexes_are_formatted() -> None:
    assert format_indexes({0, 1, 2, 5, -1}) == "0-2,5"
    assert format_indexes(set()) == ""


def test_wanted_indexes_exclude_completed_and_running_indexes() -> None:
    running: JsonObject = {"metadata": {"annotations": {"batch.kubernetes.io/job-completion-index": "1"}}}
    assert list(wanted_indexes({"spec": {"completions": 4}}, {"completedIndexes": "0"}, [running])) == [2, 3]
    assert index_of({}) == -1
