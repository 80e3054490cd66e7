"""The meaning of YAML scalars in Kubernetes: ``y`` is true, ``0777`` is 511, ``12:30:45`` and dates are text.

kubectl, helm and the API server read YAML 1.1 with a resolver of their own, then convert the result to JSON. The results were
measured with kubectl and helm: ``tests/formats/support/yaml_table.py`` has a row for each text. If kubectl is on PATH,
``tests/formats/test_yaml_kubectl.py`` compares the rows with it. Everything odd below (``0b-1``, ``.5_0``, keys that are printed
as 32-bit floats) is odd in kubectl, too.

One difference is intended: an integer from 2^63 up to 2^64 - 1 is kept as it was written, whereas kubectl makes it a float.

Pure functions on one scalar; no state.
"""

import base64
import enum
import math
import re
import struct
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

Scalar: TypeAlias = "bool | int | float | str | None"

CORE: Final = "tag:yaml.org,2002:"
"""The prefix that ``!!`` abbreviates."""

_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
_UINT64_MAX: Final = 2**64 - 1


class ScalarError(ValueError):
    """A scalar does not fit its tag, or has no JSON form; the message has no position, because the reader adds it."""


class Kind(enum.Enum):
    """The type that the resolver gives to a scalar."""

    NULL = "!!null"
    BOOL = "!!bool"
    INT = "!!int"
    FLOAT = "!!float"
    STR = "!!str"


class Resolved(NamedTuple):
    """A scalar's kind and value; a float may still be infinite or NaN here (valid as a key, not as a value)."""

    kind: Kind
    value: Scalar


_WORDS: Final[dict[str, Resolved]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), Resolved(Kind.NULL, None)),
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"),
        Resolved(Kind.BOOL, True),  # noqa: FBT003 - a value, not a flag
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"),
        Resolved(Kind.BOOL, False),  # noqa: FBT003
    ),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), Resolved(Kind.FLOAT, math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), Resolved(Kind.FLOAT, math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), Resolved(Kind.FLOAT, -math.inf)),
}
_OLD_BOOLEANS: Final = frozenset(
    text for text, found in _WORDS.items() if found.kind is Kind.BOOL and text.lower() not in {"true", "false"}
)
_NUMBER_STARTS: Final = frozenset("0123456789+-.")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_DOT_FLOAT: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
_INT: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO](?P<o>[0-7]+)|0(?P<c>[0-7]+)|(?P<d>0|[1-9][0-9]*))",
    re.ASCII,
)
_SIGNED_BINARY: Final = re.compile(r"0b(?P<sign>[-+])(?P<digits>[01]+)", re.ASCII)
_BASES: Final = {"x": 16, "b": 2, "o": 8, "c": 8, "d": 10}
_MOST_DIGITS: Final = 64
"""The largest number of digits that are converted. A number with more digits needs more than 64 bits in every base."""


def is_text(text: str) -> bool:
    """Return whether an untagged plain scalar is certainly text: it is no known word and does not begin like a number.

    `resolve` decides about all other scalars.
    """
    return text not in _WORDS and text[0] not in _NUMBER_STARTS


def resolve(text: str, *, old_booleans: bool = True) -> Resolved:
    """Return the meaning of an untagged plain scalar.

    Without ``old_booleans``, the words ``y``, ``no``, ``on`` and the like are text (YAML 1.2).
    """
    word = _WORDS.get(text)
    if word is not None and (old_booleans or text not in _OLD_BOOLEANS):
        return word
    if text[0] not in _NUMBER_STARTS:
        return Resolved(Kind.STR, text)
    if text[0] == ".":
        return (_float(text.replace("_", "")) if _DOT_FLOAT.fullmatch(text) else None) or Resolved(Kind.STR, text)
    plain = text.replace("_", "")
    return _integer(plain) or _decimal(plain) or _signed_binary(plain) or Resolved(Kind.STR, text)


def tagged(tag: str, text: str) -> Resolved:
    """Return the meaning of a scalar with an explicit tag, quoted or not.

    Raises ScalarError if the text does not fit the tag.
    """
    name = tag.removeprefix(CORE) if tag.startswith(CORE) else ""
    if tag == "!" or name in {"str", "merge"}:
        return Resolved(Kind.STR, text)
    if name == "binary":
        return Resolved(Kind.STR, _binary(text))
    if name == "timestamp":
        if not _is_timestamp(text):
            raise ScalarError(f"{_shown(text)} is not a timestamp")
        return Resolved(Kind.STR, text)
    if name not in {"null", "bool", "int", "float"}:
        raise ScalarError(f"unknown tag {_shown(shown_tag(tag))}; Kubernetes objects cannot have custom tags")
    found = resolve(text)
    if name == "float" and found.kind is Kind.INT and isinstance(found.value, int) and found.value <= _INT64_MAX:
        return Resolved(Kind.FLOAT, float(found.value))
    if found.kind.value != f"!!{name}":
        raise ScalarError(f"{_shown(text)} is {found.kind.value}, but its tag says !!{name}")
    return found


def shown_tag(tag: str) -> str:
    """Return a tag as users write it: ``!!int`` and not ``tag:yaml.org,2002:int``."""
    return "!!" + tag.removeprefix(CORE) if tag.startswith(CORE) else tag


def as_value(found: Resolved) -> Scalar:
    """Return the JSON value. Whole floats that fit into a signed 64-bit integer become integers (``1e3`` is 1000).

    Raises ScalarError for .inf and .nan.
    """
    value = found.value
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ScalarError(f"{float_key(value)} has no JSON form")
    if value.is_integer() and abs(value) < 2.0**64:
        # JSON has the shortest digits that read back as the float; the integer has the same digits.
        whole = int(Decimal(repr(value)))
        if _INT64_MIN <= whole <= _INT64_MAX:
            return whole
    return value


def as_key(found: Resolved) -> str:
    """Return a scalar as the key of a JSON object. Raises ScalarError for null, which cannot be a key."""
    value = found.value
    if value is None:
        raise ScalarError("a key is null")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_key(value)
    return str(value)


def float_key(value: float) -> str:
    """Return a float as sigs.k8s.io/yaml writes it in a key.

    The text has the fewest digits that identify the *32-bit* float. It has an exponent from 1e+06 on and below 1e-04.
    """
    single = _as_single(value)
    if math.isnan(single):
        return ".nan"
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    shortest = next(
        text for text in (f"{single:.{digits}e}" for digits in range(9)) if _as_single(float(text)) == single
    )
    mantissa, _, exponent = shortest.partition("e")
    power = int(exponent)
    if power < -4 or power >= 6:
        return f"{mantissa}e{exponent}"
    places = max(len(mantissa.lstrip("-").replace(".", "")) - 1 - power, 0)
    return f"{single:.{places}f}"


def _as_single(value: float) -> float:
    """Round to 32 bits; the result is infinite if that overflows."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def _integer(plain: str) -> Resolved | None:
    match = _INT.fullmatch(plain)
    if match is None:
        return None
    group = match.lastgroup or "d"
    digits = match[group].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None
    value = int(digits, _BASES[group])
    if match["sign"] == "-":
        value = -value
    greatest = _INT64_MAX if match["sign"] else _UINT64_MAX
    return Resolved(Kind.INT, value) if _INT64_MIN <= value <= greatest else None


def _decimal(plain: str) -> Resolved | None:
    return _float(plain) if _FLOAT.fullmatch(plain) else None


def _float(plain: str) -> Resolved | None:
    value = float(plain)
    return Resolved(Kind.FLOAT, value) if math.isfinite(value) else None


def _signed_binary(plain: str) -> Resolved | None:
    match = _SIGNED_BINARY.fullmatch(plain)
    return _integer(f"{match['sign']}0b{match['digits']}") if match else None


_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)


def _binary(text: str) -> str:
    text = text.replace("\n", "").replace("\r", "")
    if not _BASE64.fullmatch(text):
        raise ScalarError("!!binary is not base64")
    # JSON has only text: each invalid UTF-8 byte becomes one replacement character.
    decoded = base64.b64decode(text).decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", "\N{REPLACEMENT CHARACTER}", decoded)


_TIMESTAMP: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"(?:(?P<sep>[Tt ])(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})(?:[.,][0-9]+)?"
    r"(?P<zone>Z|[-+][0-9]{2}:[0-9]{2})?)?",
    re.ASCII,
)


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    try:
        # Year 0 is a leap year that Python's calendar leaves out.
        date(year or 4, month, day)
    except ValueError:
        return False
    if match["sep"] is None:
        return True
    if int(match["hour"]) > 23 or int(match["minute"]) > 59 or int(match["second"]) > 59:
        return False
    if match["sep"] == " ":
        return match["zone"] is None
    zone = match["zone"]
    return zone is not None and (zone == "Z" or (int(zone[1:3]) <= 24 and int(zone[4:]) <= 60))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
