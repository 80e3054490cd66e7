"""The tables of cases and weaknesses name tests that exist, and leave nothing without an answer."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.spec_cases import SUITES, Coverage, Elsewhere
from tests.spec_weaknesses import MUST_HAVE_A_TEST, WEAKNESSES

ROOT = Path(__file__).resolve().parent.parent


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of a test file's tests: functions, classes, and machines' test cases that are assigned."""
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
    """The tests that a row names."""
    found = coverage.tests if isinstance(coverage, Elsewhere) else coverage
    return (found,) if isinstance(found, str) else found


def missing(tests: Iterable[str]) -> Iterator[str]:
    """Those that are not there."""
    for test in tests:
        path, _, name = test.partition("::")
        if name not in names_in(path):
            yield test


def test_every_test_of_a_case_exists() -> None:
    named = (test for suite in SUITES.values() for coverage in suite.values() for test in named_by(coverage))
    assert list(missing(named)) == []


def test_every_case_has_a_test_or_a_reason() -> None:
    for suite, cases in SUITES.items():
        for name, coverage in cases.items():
            assert named_by(coverage) or (isinstance(coverage, Elsewhere) and coverage.why), f"{suite}: {name}"


def test_every_test_of_a_weakness_exists() -> None:
    assert list(missing(test for _, coverage in WEAKNESSES.values() for test in named_by(coverage))) == []


def test_every_weakness_has_an_answer_and_those_that_must_a_test() -> None:
    assert list(WEAKNESSES) == list(range(1, 25))
    assert [number for number in sorted(MUST_HAVE_A_TEST) if isinstance(WEAKNESSES[number][1], Elsewhere)] == []


def test_what_is_not_there_is_found_out() -> None:
    here = "tests/test_spec_cases.py::"
    assert list(
        missing([here + "test_what_is_not_there_is_found_out", here + "test_no", "tests/none.py::test_no"])
    ) == [
        here + "test_no",
        "tests/none.py::test_no",
    ]
    # A helper is no test.
    assert list(missing([here + "missing"])) == [here + "missing"]
