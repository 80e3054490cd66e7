"""A slow reader of JSON that finds what error messages need: syntax errors, repeated members, and the spelling of numbers.

Bodies are first read by a fast parser. Only a body that may have an error is read again here, in the order of its text, so that
the message is kube-apiserver's (encoding/json and sigs.k8s.io/json).
"""

import json
import math
import re
from typing import Final, NoReturn, Self

from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NUMBER_START: Final = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][-+]?)?)?|[eE][-+]?)?)?")
_NOT_MEMBERS: Final = bytes(set(range(256)) - set(b'":'))
_SHORT: Final = 16_384
_DIGITS: Final = 308
"""Every integer with at most this number of digits is in the range of a float."""
_ESCAPE: Final = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][89a-fA-F]..|.)", re.DOTALL)
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")


class Spelled(float):
    """A number with a point or an exponent, and its original spelling."""

    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number


class Repeated(dict[str, JsonValue]):
    """An object in which some members occur more than once; ``members`` has all of them, in order."""

    members: list[tuple[str, JsonValue]]


def closely_read(data: bytes) -> JsonValue:
    """Return a document with :class:`Spelled` numbers and :class:`Repeated` objects. The data must be JSON."""
    text = _whole(data)
    value: JsonValue = json.loads(text, parse_float=Spelled, parse_constant=_no_constant, object_pairs_hook=_members)
    return value


def whole_text(data: bytes) -> bytes:
    """Return JSON text as Go reads it: bytes that are not UTF-8 and unpaired surrogates are replaced with U+FFFD."""
    return _whole(data).encode()


def _whole(data: bytes) -> str:
    text = data.decode(errors="surrogateescape")
    if not text.isascii():
        text = _HALF_PAIR.sub("\N{REPLACEMENT CHARACTER}", text)
    return _ESCAPE.sub(_whole_escape, text) if "\\u" in text else text


def _whole_escape(found: re.Match[str]) -> str:
    """Return U+FFFD for an unpaired surrogate, and any other escape unchanged.

    An escape of six characters is an unpaired surrogate: a pair has twelve characters, and other matches have two.
    """
    escape: str = found[0]
    return "\N{REPLACEMENT CHARACTER}" if len(escape) == 6 else escape


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def _members(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = Repeated(found)
    repeated.members = pairs
    return repeated


def may_repeat(data: bytes, value: JsonValue) -> bool:
    """Return whether members may occur twice in ``data``: outside of strings, it has more colons than ``value`` has members."""
    # ``split`` is faster than ``count``, but copies the text; it is used for short texts only.
    count = len(data.split(b":")) - 1 if len(data) <= _SHORT else data.count(b":")
    if count == _names(value):
        return False
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    bare = data.translate(None, _NOT_MEMBERS).split(b'"')[::2]
    return sum(map(len, bare)) != _names(value)


def _names(value: JsonValue) -> int:
    """Return the total number of members in all objects of a value."""
    if isinstance(value, dict):
        return len(value) + sum(_names(item) for item in value.values() if isinstance(item, dict | list))
    return sum(_names(item) for item in value if isinstance(item, dict | list)) if isinstance(value, list) else 0


def repeated_members(value: JsonValue, path: str = "") -> list[str]:
    """Return an error for each member that occurs twice, at any depth: ``duplicate field "a.b"``.

    ``value`` must come from :func:`closely_read`.
    """
    found: list[str] = []
    if isinstance(value, dict):
        seen: set[str] = set()
        for name, inner in value.members if isinstance(value, Repeated) else value.items():
            here = f"{path}.{name}" if path else name
            if name in seen:
                found.append(f"duplicate field {quoted(here)}")
            seen.add(name)
            found += repeated_members(inner, here)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += repeated_members(item, f"{path}[{index}]")
    return list(dict.fromkeys(found))


def large_number(data: bytes) -> str:
    """Return the first number of a JSON text that is too large for a float of 64 bits; "" if all numbers fit."""
    scanner = _Scanner(data.decode("latin-1"))
    scanner.document()
    return next((text for text in scanner.long_numbers if math.isinf(float(text))), "")


class _Broken(Exception):  # noqa: N818 - never leaves this module
    """The text is not JSON; the message comes from Go's scanner."""


def syntax_error(data: bytes) -> str:
    """Return the message of Go's scanner about the first error of a text; "" if it is JSON."""
    scanner = _Scanner(data.decode("latin-1"))
    try:
        scanner.document()
    except _Broken as broken:
        return str(broken)
    return ""


class _Scanner:
    """A scanner that checks a text (bytes as Latin-1) without building values."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.long_numbers: list[str] = []
        """The numbers that may be too large for a float: those with more than ``_DIGITS`` digits, or with an exponent."""

    def document(self) -> None:
        """Scan one value, which nothing may follow. Raises _Broken."""
        closers: list[str] = []
        self._begin(closers)
        while closers:
            char = self._next()
            inside = closers[-1]
            if char == inside:
                self._at += 1
                closers.pop()
            elif char == ",":
                self._at += 1
                if inside == "}":
                    self._key()
                self._begin(closers)
            else:
                raise self._wrong("after object key:value pair" if inside == "}" else "after array element")
        self._space()
        if self._at < len(self._text):
            raise self._wrong("after top-level value")

    def _space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _next(self) -> str:
        """Return the next character that is not a space."""
        self._space()
        if self._at >= len(self._text):
            raise _Broken("unexpected end of JSON input")
        return self._text[self._at]

    def _wrong(self, context: str) -> _Broken:
        char = self._text[self._at : self._at + 1]
        if not char:
            return _Broken("unexpected end of JSON input")
        shown = "'\\''" if char == "'" else "'\"'" if char == '"' else f"'{quoted(char)[1:-1]}'"
        return _Broken(f"invalid character {shown} {context}")

    def _begin(self, closers: list[str]) -> None:
        """Scan the beginning of a value, down to the first inner value that is a scalar or an empty container."""
        while True:
            char = self._next()
            if char not in "{[":
                self._scalar(char)
                return
            self._at += 1
            if len(closers) >= max(MAX_DEPTH, 10_000):
                raise _Broken("exceeded max depth")
            closers.append("}" if char == "{" else "]")
            if self._next() == closers[-1]:
                self._at += 1
                closers.pop()
                return
            if char == "{":
                self._key()

    def _key(self) -> None:
        if self._next() != '"':
            raise self._wrong("looking for beginning of object key string")
        self._string()
        if self._next() != ":":
            raise self._wrong("after object key")
        self._at += 1

    def _scalar(self, char: str) -> None:
        if char == '"':
            self._string()
        elif char == "-" or char.isdecimal():
            self._number()
        elif char in "tfn":
            self._literal({"t": "true", "f": "false", "n": "null"}[char])
        else:
            raise self._wrong("looking for beginning of value")

    def _literal(self, word: str) -> None:
        for index, char in enumerate(word):
            if self._text[self._at : self._at + 1] != char:
                raise self._wrong(f"in literal {word} (expecting '{word[index]}')")
            self._at += 1

    def _string(self) -> None:
        found = _STRING.match(self._text, self._at)
        self._at = found.end() if found else self._at
        char = self._text[self._at : self._at + 1]
        if char == '"':
            self._at += 1
            return
        if char != "\\":
            raise self._wrong("in string literal")
        self._at += 1
        if self._text[self._at : self._at + 1] != "u":
            raise self._wrong("in string escape code")
        while self._text[self._at + 1 : self._at + 2] and self._text[self._at + 1] in "0123456789abcdefABCDEF":
            self._at += 1
        self._at += 1
        raise self._wrong("in \\u hexadecimal character escape")

    def _number(self) -> None:
        found, start = _NUMBER.match(self._text, self._at), _NUMBER_START.match(self._text, self._at)
        whole, begun = found.end() if found else self._at, start.end() if start else self._at
        if whole >= begun:
            text, self._at = self._text[self._at : whole], whole
            if len(text) > _DIGITS or "e" in text or "E" in text:
                self.long_numbers.append(text)
            return
        self._at = begun
        last = self._text[begun - 1]
        if last == ".":
            raise self._wrong("after decimal point in numeric literal")
        raise self._wrong(
            "in exponent of numeric literal" if whole > self._at or last in "eE+" else "in numeric literal"
        )
