"""The types of CEL expressions, and type errors."""

import pytest

from tests.control_plane.support.cel_evaluating import type_of
from wharfinger.control_plane.cel.checking.checker import check
from wharfinger.control_plane.cel.syntax.parser import parse


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[1].map(x, string(x))", "list(string)"),
        ("{'a': 1}", "map(string, int)"),
        ("optional.of(1)", "optional_type(int)"),
        ("dyn(1)", "dyn"),
        ("[]", "list(dyn)"),
        ("ip('1.2.3.4')", "net.IP"),
        ("int", "type(int)"),
        ("{'a': 1}.?a", "optional_type(int)"),
    ],
)
def test_expressions_have_types(text: str, kind: str) -> None:
    assert str(type_of(text)) == kind


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 + 'a'", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("x", "undeclared reference to 'x' (in container '')"),
        (
            "1.all(x, true)",
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("1.a", "type 'int' does not support field selection"),
        ("1 && true", "expected type 'bool' but found 'int'"),
        ("A{}", "undeclared reference to 'A' (in container '')"),
        ("1.foo()", "undeclared reference to 'foo' (in container '')"),
    ],
)
def test_type_errors_are_reported(text: str, problem: str) -> None:
    assert check(parse(text).root, {}, {}).issues[0].text == problem
