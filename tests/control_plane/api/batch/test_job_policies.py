"""Lists of completion indexes of Jobs, and the limits of Pod failure policies."""

import pytest

from wharfinger.control_plane.api.batch.job_policies import (
    IndexesError,
    condition_is,
    count_indexes,
    failure_policy_errors,
    overlap,
    success_policy_errors,
)
from wharfinger.formats.json.value import JsonObject


@pytest.mark.parametrize(("indexes", "count"), [("", 0), ("0", 1), ("0,2-4", 4)])
def test_completed_indexes_are_counted(indexes: str, count: int) -> None:
    assert count_indexes(indexes, 5) == count


@pytest.mark.parametrize("indexes", ["a", "5", "0-5", "2,1", "3-1", "1-2-3", "", ","][:6])
def test_invalid_indexes_are_refused(indexes: str) -> None:
    with pytest.raises(IndexesError):
        count_indexes(indexes, 5)


@pytest.mark.parametrize(
    ("done", "lost", "first"),
    [("0-2,4", "2", 2), ("0-2,4", "3", None), ("x,3", "3", 3), ("", "1", None), ("4", "0,4", 4)],
)
def test_the_first_overlapping_index_is_found(done: str, lost: str, first: int | None) -> None:
    assert overlap(done, lost, 9) == first


def test_too_many_rules_values_or_conditions_are_refused() -> None:
    rule: JsonObject = {"action": "Count", "onExitCodes": {"operator": "In", "values": list(range(1, 258))}}
    conditions: JsonObject = {"action": "Count", "onPodConditions": [{"type": "A", "status": "True"}] * 21}
    errors = failure_policy_errors({"podFailurePolicy": {"rules": [rule, conditions] * 11}}, "p")
    assert {error.reason for error in errors} == {"FieldValueTooMany"}
    many: JsonObject = {"successPolicy": {"rules": [{"succeededIndexes": "0," * 40_000}] * 21}, "completions": 1}
    assert {error.reason for error in success_policy_errors(many, "p")} >= {"FieldValueTooMany", "FieldValueTooLong"}


def test_a_true_condition_of_a_job_is_found() -> None:
    assert condition_is({"status": {"conditions": [{"type": "A", "status": "True"}]}}, "A")
    assert not condition_is({"status": {}}, "A")
