"""The expansion of CEL macros, and the errors of invalid ones."""

import pytest

from wharfinger.control_plane.cel.syntax.nodes import Call, Fold
from wharfinger.control_plane.cel.syntax.parser import parse


@pytest.mark.parametrize(
    "text",
    [
        "a.all(x, x)",
        "a.exists_one(i, v, v)",
        "a.map(x, x > 1, x)",
        "a.filter(x, x)",
        "a.transformMapEntry(k, v, {k: v})",
        "a.sortBy(x, x)",
    ],
)
def test_loop_macros_become_folds(text: str) -> None:
    assert isinstance(parse(text).root, Fold)


def test_optional_macros_become_calls() -> None:
    assert isinstance(parse("a.optMap(x, x)").root, Call)
    assert isinstance(parse("a.optFlatMap(x, x)").root, Call)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a.all(1, true)", "argument must be a simple name"),
        ("a.map(b.c, 1)", "argument is not an identifier"),
        ("a.all(x, x, true)", "duplicate variable name: x"),
        ("a.filter(__result__, true)", "iteration variable overwrites accumulator variable"),
        ("a.optMap(1, 1)", "optMap() variable name must be a simple identifier"),
    ],
)
def test_invalid_macro_arguments_are_reported(text: str, problem: str) -> None:
    assert [issue.text for issue in parse(text).issues] == [problem]
