"""The tables in `tests/spec_*.py`: they name only existing tests, and give each case and weakness a test or a reason."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests import spec_apply_cases, spec_pool_cases, spec_table_cases
from tests.spec_cases import SUITES, Coverage, Elsewhere
from tests.spec_names import APPLICATION_GOLDENS, NAMES, TEST_LIST, VERSION_GOLDENS, WEAKNESSES_OF_TABLES
from tests.spec_weaknesses import MUST_HAVE_A_TEST, WEAKNESSES

ENGINE: Final[dict[str, dict[str, Coverage]]] = {
    "tables": spec_table_cases.TABLES,
    "reconciler": spec_table_cases.RECONCILER,
    "must reproduce": spec_table_cases.MUST_REPRODUCE,
    "8.1 identity": spec_apply_cases.IDENTITY,
    "8.2 upgrade": spec_apply_cases.UPGRADE,
    "8.3 removal": spec_apply_cases.REMOVAL,
    "8.4 and 8.5 values": spec_apply_cases.VALUES,
    "8.6 drift": spec_apply_cases.DRIFT,
    "8.7 orphans": spec_apply_cases.ORPHANS,
    "8.8 health": spec_apply_cases.HEALTH,
    "8.9 endpoints": spec_apply_cases.ENDPOINTS,
}
"""The suites of the apply engine, which are compared with the names of all their cases."""
ALL: Final = SUITES | ENGINE | spec_pool_cases.POOLS
ROOT = Path(__file__).resolve().parent.parent


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests in a file: functions, classes, and the assigned test cases of state machines."""
    names: set[str] = set()
    if not (ROOT / path).is_file():
        return frozenset()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(name for name in names if name.startswith(("test_", "Test")))


def named_by(coverage: Coverage) -> tuple[str, ...]:
    """Return the tests that a row names."""
    found = coverage.tests if isinstance(coverage, Elsewhere) else coverage
    return (found,) if isinstance(found, str) else found


def missing(tests: Iterable[str]) -> Iterator[str]:
    """Yield the named tests that do not exist."""
    for test in tests:
        path, _, name = test.partition("::")
        if name not in names_in(path):
            yield test


@pytest.mark.slow
def test_every_listed_test_of_a_case_exists() -> None:
    named = (test for suite in ALL.values() for coverage in suite.values() for test in named_by(coverage))
    assert list(missing(named)) == []


def test_every_case_has_a_test_or_a_reason() -> None:
    for suite, cases in ALL.items():
        for name, coverage in cases.items():
            assert named_by(coverage) or (isinstance(coverage, Elsewhere) and coverage.why), f"{suite}: {name}"


@pytest.mark.parametrize("suite", NAMES)
def test_no_case_of_the_reference_is_missing(suite: str) -> None:
    assert tuple(ENGINE[suite]) == NAMES[suite]


def test_no_reference_golden_of_the_controllers_is_missing() -> None:
    assert tuple(SUITES["applications"]) == APPLICATION_GOLDENS
    assert tuple(SUITES["package versions"]) == VERSION_GOLDENS


def test_every_suite_is_compared_with_its_names() -> None:
    assert len(ALL) == len(SUITES) + len(ENGINE) + len(spec_pool_cases.POOLS)
    assert list(ENGINE) == list(NAMES)
    assert all(len(set(names)) == len(names) for names in NAMES.values())
    assert set(TEST_LIST) - {name for cases in SUITES.values() for name in cases} == set()


def test_every_test_of_a_weakness_exists() -> None:
    assert list(missing(test for _, coverage in WEAKNESSES.values() for test in named_by(coverage))) == []
    assert list(missing(test for _, tests in spec_table_cases.WEAKNESSES.values() for test in tests)) == []


def test_every_weakness_of_the_claim_scheduler_has_a_test() -> None:
    """Each weakness of the specified claim scheduler must have a test. A reason why no test is needed is not enough."""
    assert list(spec_pool_cases.WEAKNESSES) == list(range(1, 13))
    named = [named_by(coverage) for _, coverage in spec_pool_cases.WEAKNESSES.values()]
    assert all(named)
    assert list(missing(test for tests in named for test in tests)) == []


def test_every_weakness_of_the_tables_has_a_test() -> None:
    """Each weakness of the specified tables must have a test. A reason why no test is needed is not enough."""
    assert list(spec_table_cases.WEAKNESSES) == list(range(1, WEAKNESSES_OF_TABLES + 1))
    assert [number for number, (_, tests) in spec_table_cases.WEAKNESSES.items() if not tests] == []


def test_every_weakness_has_an_answer_and_some_need_a_test() -> None:
    assert list(WEAKNESSES) == list(range(1, 25))
    assert [number for number in sorted(MUST_HAVE_A_TEST) if isinstance(WEAKNESSES[number][1], Elsewhere)] == []


def test_missing_tests_are_found() -> None:
    here = "tests/test_spec_cases.py::"
    assert list(missing([here + "test_missing_tests_are_found", here + "test_no", "tests/none.py::test_no"])) == [
        here + "test_no",
        "tests/none.py::test_no",
    ]
    # A helper function does not count as a test.
    assert list(missing([here + "missing"])) == [here + "missing"]
