"""The table of the fixpoint scheduler's cases: its tests exist, each case has a test, and no case is listed twice."""

from collections import Counter
from typing import Final

import pytest

from tests.runtime.fixpoint.spec_cases import SUITES
from tests.spec_cases import Elsewhere
from tests.test_spec_cases import missing, named_by, names_in

IN_THE_REFERENCE: Final = {"schedule_test": 16, "schedule_accounting_test": 13, "recovery_test": 4}


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_has_existing_tests(suite: str) -> None:
    for case, coverage in SUITES[suite].items():
        assert named_by(coverage), f"{case} has no test"
        assert list(missing(named_by(coverage))) == [], case
        assert not isinstance(coverage, Elsewhere) or coverage.why


def test_no_case_is_missing() -> None:
    assert {suite: len(cases) for suite, cases in SUITES.items()} == IN_THE_REFERENCE
    names = Counter(case for cases in SUITES.values() for case in cases)
    assert max(names.values()) == 1


def test_every_test_of_a_suite_covers_a_case() -> None:
    """Every test in the files that the table names covers a case, except for one test that has no case in the reference."""
    told = {test for cases in SUITES.values() for coverage in cases.values() for test in named_by(coverage)}
    files = {test.partition("::")[0] for test in told}
    there = {f"{file}::{name}" for file in files for name in names_in(file)}
    more = "tests/runtime/fixpoint/test_spec_accounting.py::test_wakes_of_a_node_that_waits_outside_are_free"
    assert there - told == {more}
