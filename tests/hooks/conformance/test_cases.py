"""The table of conformance cases is complete and names existing tests."""

import pytest

from tests.hooks.conformance.cases import CASES, GOLDEN, Case
from tests.test_spec_cases import ROOT, missing, names_in


def found(case: Case) -> list[str]:
    """Return the existing modules of a case."""
    return sorted(str(path.relative_to(ROOT)) for name in case.modules for path in ROOT.glob(name))


def test_every_case_is_in_the_table() -> None:
    assert list(CASES) == list(range(1, 16))


@pytest.mark.parametrize("number", CASES)
def test_every_case_has_tests(number: int) -> None:
    case = CASES[number]
    modules = found(case)
    assert modules, f"case {number}, {case.title}: nothing at {' and '.join(case.modules)}"
    assert [module for module in modules if not names_in(module)] == []
    assert list(missing(case.tests)) == []


def test_every_module_of_a_case_is_in_the_table() -> None:
    there = {str(path.relative_to(ROOT)) for path in ROOT.glob("tests/*/conformance/test_case_*.py")}
    assert there == {module for case in CASES.values() for module in found(case)}


def test_every_golden_result_has_a_test() -> None:
    assert set(GOLDEN.values()) == names_in("tests/hooks/conformance/test_golden_hooks.py")
