"""The case table of sources is complete, and names only existing tests."""

import ast
from typing import get_args

import pytest

from tests.packages.sources.source_cases import CASES, QUESTIONS
from tests.programs import ROOT
from wharfinger.packages.sources.source import Source

ANSWERS = [(kind.__name__, question, answer) for kind, answers in CASES.items() for question, answer in answers.items()]


def test_the_table_covers_every_question_for_every_source() -> None:
    assert set(CASES) == set(get_args(Source))
    assert all(tuple(answers) == QUESTIONS for answers in CASES.values())


@pytest.mark.parametrize(("kind", "question", "answer"), ANSWERS)
def test_each_answer_is_an_existing_test_or_a_reason(kind: str, question: str, answer: str) -> None:
    if answer.startswith("- "):
        assert len(answer) > 10
        return
    path, _, name = answer.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    tests = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert (name in tests) if name else any(each.startswith("test_") for each in tests), (kind, question)
