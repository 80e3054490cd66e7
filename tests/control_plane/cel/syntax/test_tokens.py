"""The tokens of CEL expressions."""

import pytest

from wharfinger.control_plane.cel.syntax.tokens import Token, TokenError, number, string, tokens
from wharfinger.control_plane.cel.values.values import Uint


def test_text_is_split_into_tokens() -> None:
    assert [token.kind for token in tokens("a.b <= 1.5 // rest")] == ["name", ".", "name", "<=", "float", "end"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("'a\\n'", "a\n"), ("r'\\n'", "\\n"), ("b'\\x41'", b"A"), ('"""q"""', "q"), ("'\\u00e9\\101'", "éA")],
)
def test_string_tokens_are_unescaped(text: str, value: str | bytes) -> None:
    assert string(Token("string", text, 0)) == value


@pytest.mark.parametrize(("text", "value"), [("0x1F", 31), ("7u", Uint(7)), ("1e3", 1000.0), ("42", 42)])
def test_number_tokens_become_numbers(text: str, value: object) -> None:
    kind = "float" if "e" in text else "int"
    assert number(Token(kind, text, 0), negative=False) == value


@pytest.mark.parametrize("text", ["9223372036854775808", "18446744073709551616u", "1e999"])
def test_numbers_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(TokenError):
        number(Token("float" if "e" in text else "int", text, 3), negative=False)


@pytest.mark.parametrize("text", ["#", "'a", "`"])
def test_invalid_tokens_are_refused(text: str) -> None:
    with pytest.raises(TokenError):
        tokens(text)
