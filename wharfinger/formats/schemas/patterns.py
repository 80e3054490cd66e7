r"""Patterns of schemas: written for Go's RE2, matched by an engine that is linear in the text.

Authors write patterns for Go, because Kubernetes and its operators match them with Go. Look-around and back references do not
exist in Go, and cannot be matched in linear time, so they are refused when the schema is read. Where the dialect of the matching
engine differs from Go's, the pattern is translated. In Go, a ``{`` that begins no repetition is a plain character, and so is a
``[`` or ``&&`` inside a class; ``\s`` matches only ASCII, ``[[:alpha:]]`` names a class, and ``\Q…\E`` quotes.
"""

import re
from functools import cache, lru_cache
from typing import Final

import jsonschema_rs

from wharfinger.formats.errors import FormatError

MAX_LENGTH: Final = 4_096
SIZE_LIMIT: Final = 2 * 1024 * 1024
"""The largest size of a compiled pattern, in bytes; ``(\\pL{100}){100}`` compiles to far more."""

_REPETITION: Final = re.compile(r"\{[0-9]{1,4}(?:,[0-9]{0,4})?\}")
_GROUP: Final = re.compile(r"\(\?(?:P<[A-Za-z0-9_]+>|<[A-Za-z0-9_]+>|[imsU-]*[:)])")
_NAMED_CLASS: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_OCTAL: Final = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_PROPERTY: Final = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|([A-Z]))")
_FOLDED: Final = re.compile(r"\(\?[msU]*i")
_CODE: Final = re.compile(r"\\x(?:\{[0-9A-Fa-f]{1,6}\}|[0-9A-Fa-f]{2})")
_ESCAPES: Final = frozenset("AbBzdDsSwWftnrv")
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_SPACE: Final = r"\t\n\f\r "
_SPECIAL: Final = frozenset(r"\.+*?()|[]{}^$#&-~/")
_LOOK: Final = {"(?=": "look-ahead", "(?!": "look-ahead", "(?<=": "look-behind", "(?<!": "look-behind"}


class PatternError(FormatError):
    """A pattern that Go would not compile, or that is too large, or that has a negated named class and the flag i."""


def pattern_options() -> jsonschema_rs.RegexOptions:
    """Return the options for the engine of regular expressions. With them, the time of a match is linear in the length of the
    text, and its memory is limited.
    """
    return jsonschema_rs.RegexOptions(size_limit=SIZE_LIMIT, dfa_size_limit=SIZE_LIMIT)


def read_pattern(pattern: str) -> str:
    """Return the pattern in the engine's dialect. Raises PatternError, whose message does not name the pattern's place."""
    if len(pattern) > MAX_LENGTH:
        raise PatternError(f"a pattern of {len(pattern)} characters is over the limit of {MAX_LENGTH}")
    translated = "".join(_translated(pattern))
    if not _compiles(translated):
        raise PatternError(f"{_shown(pattern)} is not a valid regular expression of Go, or is too large when compiled")
    return translated


@lru_cache(maxsize=512)
def matcher(translated: str) -> jsonschema_rs.Draft202012Validator:
    """Return a validator of texts: ``matcher(p).is_valid(text)``. ``translated`` is a result of `read_pattern`."""
    return jsonschema_rs.Draft202012Validator({"pattern": translated}, pattern_options=pattern_options(), offline=True)


def _compiles(translated: str) -> bool:
    try:
        matcher(translated)
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 100 else pattern[:100] + "…")


def _translated(pattern: str) -> list[str]:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            piece, at = _escape(pattern, at)
            piece = f"[{_SPACE}]" if piece == r"\s" else f"[^{_SPACE}]" if piece == r"\S" else piece
        elif char == "[":
            piece, at = _class(pattern, at)
        elif pattern.startswith("(?", at):
            piece, at = _group(pattern, at)
        elif char == "{" and not _REPETITION.match(pattern, at):
            piece, at = r"\{", at + 1
        else:
            piece, at = char, at + 1
        out.append(piece)
    return out


def _group(pattern: str, at: int) -> tuple[str, int]:
    found = _GROUP.match(pattern, at)
    if found is not None:
        return found.group(), found.end()
    name = next((name for prefix, name in _LOOK.items() if pattern.startswith(prefix, at)), "")
    if name:
        raise PatternError(f"{_shown(pattern)} has a {name}: patterns are Go's (RE2), which has no look-around")
    raise PatternError(
        f"{_shown(pattern)} has a group that Go's regular expressions do not have: {pattern[at : at + 4]!r}"
    )


def _escape(pattern: str, at: int) -> tuple[str, int]:
    after = pattern[at + 1 : at + 2]
    if after == "Q":
        end = pattern.find(r"\E", at + 2)
        quoted = pattern[at + 2 :] if end < 0 else pattern[at + 2 : end]
        return "".join(_quoted(char) for char in quoted), len(pattern) if end < 0 else end + 2
    if found := _OCTAL.match(pattern, at):
        return f"\\x{{{int(found[1], 8):x}}}", found.end()
    if found := _PROPERTY.match(pattern, at):
        letter = found[1].swapcase() if found[2] else found[1]
        return f"\\{letter}{{{found[3] or found[4]}}}", found.end()
    if found := _CODE.match(pattern, at):
        return found.group(), found.end()
    if after in {*"123456789", "k"}:
        raise PatternError(f"{_shown(pattern)} has a back reference: patterns are Go's (RE2), which has none")
    if after == "a":
        return r"\x07", at + 2
    if after in _ESCAPES or (after.isascii() and not after.isalnum()):
        return "\\" + after, at + 2
    raise PatternError(
        f"{_shown(pattern)} has an escape that Go's regular expressions do not have: {pattern[at : at + 2]!r}"
    )


def _quoted(char: str) -> str:
    return "\\" + char if char in _SPECIAL else char


def _class(pattern: str, at: int) -> tuple[str, int]:
    start = at
    at += 2 if pattern.startswith("[^", at) else 1
    out = ["[^" if at - start == 2 else "["]
    if pattern.startswith("]", at):
        out.append(r"\]")
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        char = pattern[at]
        named = _NAMED_CLASS.match(pattern, at)
        if named is not None:
            out.append(_named_class(pattern, named))
            at = named.end()
        elif char == "\\":
            piece, at = _escape(pattern, at)
            out.append(_SPACE if piece == r"\s" else _complement(_SPACE) if piece == r"\S" else piece)
        elif char in "[&~":
            out.append("\\" + char)
            at += 1
        else:
            out.append(char)
            at += 1
    if at >= len(pattern):
        raise PatternError(f"{_shown(pattern)} has a class that is not closed")
    return "".join(out) + "]", at + 1


def _named_class(pattern: str, named: re.Match[str]) -> str:
    ranges = _CLASSES.get(named[2], "")
    if not ranges:
        raise PatternError(f"{_shown(pattern)} has {named.group()}; the classes {', '.join(_CLASSES)} are known")
    if named[1] and _FOLDED.search(pattern):
        raise PatternError(
            f"{_shown(pattern)} has {named.group()} together with the flag i; write the class without a negation"
        )
    return _complement(ranges) if named[1] else ranges


@cache
def _complement(ranges: str) -> str:
    """Return the ranges of all characters that are not in ``ranges``, which are ranges of ASCII. They replace a negated class
    inside another class, because the engine has no class inside a class.
    """
    inside = re.compile(f"[{ranges}]")
    return "".join(f"\\x{code:02x}" for code in range(128) if not inside.match(chr(code))) + r"\x80-\x{10ffff}"
