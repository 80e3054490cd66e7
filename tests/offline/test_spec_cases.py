"""The table of cases names only tests that exist, and names each case once."""

import ast

import pytest

from tests.offline.spec_cases import COVERED, NOT_COVERED
from tests.offline.test_broken_trees import CASES
from tests.programs import ROOT


@pytest.mark.parametrize("case", COVERED, ids=lambda case: case.replace(" ", "-"))
def test_each_covered_case_names_an_existing_test(case: str) -> None:
    path, _, name = COVERED[case].partition("::")
    name, _, row = name.partition("[")
    tree = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert not row or row.removesuffix("]") in {each.name for each in CASES}


def test_uncovered_cases_have_a_reason() -> None:
    assert not COVERED.keys() & NOT_COVERED.keys()
    assert all(NOT_COVERED.values())
