"""CEL functions of strings."""

import pytest

from tests.control_plane.support.cel_evaluating import value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'abc'.charAt(1)", "b"),
        ("'abc'.charAt(4)", "index out of range: 4"),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'aXb'.lowerAscii()", "axb"),
        ("['a', 'b'].join('-')", "a-b"),
        ("'hello'.lastIndexOf('l')", 3),
        ("'hello'.indexOf('z')", -1),
        ("'a12'.find('[0-9]+')", "12"),
        ("'1a2'.findAll('[0-9]', 1)", ["1"]),
        ("' x '.trim()", "x"),
        ("strings.quote('a')", '"a"'),
        ("'x'.matches('^x$')", True),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
    ],
)
def test_text_functions_return_values_or_errors(text: str, value: object) -> None:
    assert value_of(text) == value
