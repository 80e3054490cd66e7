import pytest

from wharfinger.control_plane.cel.checking.checker import Checked
from wharfinger.control_plane.cel.compiling import MAX_CHARS, judged
from wharfinger.control_plane.cel.values.types import DYN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a +", "Syntax error"),
        ("b", "undeclared reference to 'b'"),
        ("a.matches('[')", "invalid matches argument"),
        ("a" * (MAX_CHARS + 1), "expression code point size exceeds limit: size: 100001, limit 100000"),
        ("Object{}", "undeclared reference to 'Object'"),
        ("'`'.`a`", "unsupported syntax"),
    ],
)
def test_invalid_expressions_are_refused(text: str, said: str) -> None:
    found = judged(text, {"a": DYN}, {})

    assert isinstance(found, str)
    assert said in found


def test_valid_expressions_are_checked() -> None:
    assert isinstance(judged("a == 1", {"a": DYN}, {}), Checked)
    assert isinstance(judged("Object{a: Object.a{}}", {}, {}, patches=True), Checked)
