"""The syntax trees of CEL expressions."""

import pytest

from wharfinger.control_plane.cel.syntax.nodes import Call, Literal, StructNode
from wharfinger.control_plane.cel.syntax.parser import MAX_DEPTH, NotAnExpressionError, parse


def test_operators_have_precedence() -> None:
    root = parse("1 + 2 * 3 == 7 && !true || false ? 'a' : 'b'").root
    assert isinstance(root, Call)
    assert root.function == "_?_:_"


def test_chains_of_operators_give_balanced_trees() -> None:
    root, depth = parse(" && ".join(["true"] * 1000)).root, 0
    while isinstance(root, Call):
        root, depth = root.arguments[0], depth + 1
    assert depth < 12


@pytest.mark.parametrize(
    "text", ["1 +", "(1", "a b", "[1", "{1: 2", "a.", "a.(", "in", "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1)]
)
def test_invalid_expressions_are_refused(text: str) -> None:
    with pytest.raises(NotAnExpressionError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "problem"), [("if + 1", "reserved identifier: if"), ("has(a)", "invalid argument to has() macro")]
)
def test_reserved_names_and_macro_misuse_are_reported(text: str, problem: str) -> None:
    assert [issue.text for issue in parse(text).issues] == [problem]


def test_structs_and_negative_numbers_are_parsed() -> None:
    assert isinstance(parse("a.B{c: 1}").root, StructNode)
    negative = parse("-9223372036854775808").root
    assert isinstance(negative, Literal)
    assert negative.value == -(2**63)
