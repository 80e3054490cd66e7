"""CEL literals that are invalid as an argument of their function, or as an item of their list or map."""

import pytest

from wharfinger.control_plane.cel.checking.checker import check
from wharfinger.control_plane.cel.checking.literals import literal_issues
from wharfinger.control_plane.cel.syntax.parser import parse


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("'a'.matches('(')", ["invalid matches argument"]),
        ("duration('x')", ["invalid duration argument"]),
        ("timestamp('x')", ["invalid timestamp argument"]),
        ("[1, 'a']", ["expected type 'int' but found 'string'"]),
        ("{'a': 1, 'b': 'c'}", ["expected type 'int' but found 'string'"]),
        ("'%s'.format([1, 'a'])", []),
    ],
)
def test_invalid_literal_arguments_are_reported(text: str, problems: list[str]) -> None:
    assert [issue.text for issue in literal_issues(check(parse(text).root, {}, {}))] == problems
