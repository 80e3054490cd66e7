"""The CEL function ``format``."""

import pytest

from tests.control_plane.support.cel_evaluating import value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'%s %d %.2f %x %b %%'.format(['a', 1, 1.5, 255, 5])", "a 1 1.50 ff 101 %"),
        ("'%s'.format([[1, 'a', {'k': true}]])", "[1, a, {k: true}]"),
        ("'%s'.format([])", "index 0 out of range"),
        ("'%q'.format([1])", 'could not parse formatting clause: unrecognized formatting clause "q"'),
        (
            "'%d'.format(['x'])",
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("'%s %s'.format([duration('1s'), null])", "1s null"),
        ("'%e'.format([1500.0])", "1.500000e+03"),
        ("'%X'.format(['a'])", "61"),
        ("'%.²f'.format([1.5])", 'could not parse formatting clause: unrecognized formatting clause "²"'),
        (f"'%.{'0' * 5000}1f'.format([1.5])", "2"),
        ("'%'.format([1])", "could not parse formatting clause: unexpected end of string"),
    ],
)
def test_format_strings_return_text_or_errors(text: str, value: object) -> None:
    assert value_of(text) == value
