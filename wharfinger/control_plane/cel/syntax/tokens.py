"""The tokens of an expression."""

import re
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.cel.values.values import Uint

_TOKEN: Final = re.compile(
    r"""(?P<space>[\t\x20\r\n\f]+|//[^\n]*)
    |(?P<string>[bB]?[rR]?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^\\\n\r"])*"|'(?:\\.|[^\\\n\r'])*'))
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<int>0x[0-9a-fA-F]+[uU]?|[0-9]+[uU]?)
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<quoted>`[a-zA-Z0-9_.\-/\ ]+`)
    |(?P<op>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_RAW: Final = re.compile(r"""(?P<prefix>[bBrR]{0,2})(?P<quote>\"\"\"|'''|"|')(?P<text>.*)(?P=quote)""", re.DOTALL)
_SIMPLE: Final = {
    "a": 7,
    "b": 8,
    "f": 12,
    "n": 10,
    "r": 13,
    "t": 9,
    "v": 11,
    "\\": 92,
    "'": 39,
    '"': 34,
    "`": 96,
    "?": 63,
}
_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))|(\\)", re.DOTALL
)


class TokenError(ValueError):
    """The text at ``at`` is not a token.

    If ``plain`` is true, it is an invalid literal, and the parameter ``text`` is the error message.
    """

    def __init__(self, at: int, text: str = "", *, plain: bool = False) -> None:
        super().__init__(text)
        self.at = at
        self.plain = plain


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind (the kind of literal, ``name``, or the operator itself), its text and its position."""

    kind: str
    text: str
    at: int


def tokens(text: str) -> list[Token]:
    """Return all tokens and an end token. Raises TokenError."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise TokenError(at)
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(Token(match[0] if kind == "op" else kind, match[0], at))
        at = match.end()
    return [*found, Token("end", "", len(text))]


def number(token: Token, *, negative: bool) -> object:
    """Return the value of a number. Raises TokenError if the number is too large."""
    text = ("-" if negative else "") + token.text
    if token.kind == "float":
        value = float(text)
        if value in {float("inf"), float("-inf")}:
            raise TokenError(token.at, "invalid double literal", plain=True)
        return value
    unsigned = text[-1] in "uU" and not (text.startswith("0x") and text[-1] not in "uU")
    digits = text.rstrip("uU") if unsigned else text
    plain = digits.lstrip("-")
    whole = int(plain[2:], 16) if plain.startswith("0x") else int(plain[:400])
    whole = -whole if digits.startswith("-") else whole
    if unsigned:
        if not 0 <= whole < 2**64:
            raise TokenError(token.at, "invalid uint literal", plain=True)
        return Uint(whole)
    if not -(2**63) <= whole < 2**63:
        raise TokenError(token.at, "invalid int literal", plain=True)
    return whole


def string(token: Token) -> str | bytes:
    """Return the value of a string or bytes literal. Raises TokenError."""
    match = _RAW.fullmatch(token.text)
    prefix, text = (match["prefix"].lower(), match["text"]) if match else ("", token.text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_bytes = "b" in prefix
    if "r" in prefix:
        return text.encode() if is_bytes else text
    out: list[bytes] = []
    last = 0
    for found in _ESCAPE.finditer(text):
        out.append(text[last : found.start()].encode())
        out.append(_escaped(found, token, is_bytes=is_bytes))
        last = found.end()
    out.append(text[last:].encode())
    joined = b"".join(out)
    return joined if is_bytes else joined.decode("utf-8", "replace")


def _escaped(found: re.Match[str], token: Token, *, is_bytes: bool) -> bytes:
    simple, hexadecimal, short, long, octal, wrong = found.groups()
    if wrong is not None:
        raise TokenError(token.at)
    if simple is not None:
        return bytes([_SIMPLE[simple]])
    code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
    if is_bytes and (short or long):
        raise TokenError(token.at, "unable to unescape string", plain=True)
    if is_bytes:
        return bytes([code])
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise TokenError(token.at, "unable to unescape string", plain=True)
    return chr(code).encode()
