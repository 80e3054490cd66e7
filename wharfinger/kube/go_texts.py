"""Texts that Go's libraries parse in their own way, with the libraries' error messages: numbers, times, base64, quantities.

A time, base64 data or a quantity from a client is read as the kube-apiserver reads it, and returned in canonical form. A
:class:`GoFormatError` has the message of the Go package: time, encoding/base64, or apimachinery's resource.
"""

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.kube.quantities import canonical_quantity

TIME_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
ZERO_TIME: Final = "0001-01-01T00:00:00Z"
_USUAL_TIME: Final = re.compile(
    r"[1-9]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{6})?Z"
)
_STEPS: Final = re.compile(r"2006|01|02|15|04|05|\.000000|Z07:00|[-T:]")
_WORDS: Final = {"01": "month", "15": "hour", "04": "minute", "05": "second"}
_LIMITS: Final = {"01": range(1, 13), "02": range(100), "15": range(24), "04": range(60), "05": range(60)}
_MONTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DIGITS: Final = frozenset("0123456789")

_QUANTITY_ERROR: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_QUANTITY: Final = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?([eEinumkKMGTP]*[-+]?[0-9]*)")
_SUFFIX: Final = re.compile(r"[numkMGTPE]?|[KMGTPE]i|[eE][-+]?[0-9]{1,9}")
_NO_DIGITS: Final = re.compile(r"[^0-9]*")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*")


_NUMBER: Final = re.compile(r"[0-9]+")
_SIGNED_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER_DIGITS: Final = 20
"""The largest number of digits of a 64-bit number."""


class GoFormatError(FormatError):
    """The text does not have the expected form; the message is Go's."""


def read_number(text: str, *, signed: bool = False) -> tuple[int, str]:
    """Read a 64-bit number, which may have leading zeros. Return the number, and the error of Go's strconv ("" for none)."""
    if not (_SIGNED_NUMBER if signed else _NUMBER).fullmatch(text):
        return 0, "invalid syntax"
    digits = text.lstrip("+-").lstrip("0")[: _NUMBER_DIGITS + 1]
    number = int(digits or "0") * (-1 if text.startswith("-") else 1)
    fits = -(1 << 63) <= number < 1 << 63 if signed else number < 1 << 64
    return number, "" if fits else "value out of range"


@lru_cache(maxsize=4096)  # the times in an object are read again whenever the object changes
def read_time(text: str, *, micro: bool = False) -> str:
    """Return a time in the stored form: UTC, in whole seconds or in microseconds. Raises GoFormatError."""
    if _USUAL_TIME.fullmatch(text) and micro == ("." in text):
        return text
    year, month, day, hour, minute, second, fraction, offset = _parsed_time(
        text, MICRO_LAYOUT if micro else TIME_LAYOUT
    )
    tail = f".{fraction:06d}Z" if micro else "Z"
    if not offset or not year:
        return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{tail}"
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - timedelta(minutes=offset)
    except OverflowError as error:
        raise GoFormatError(f"parsing time {_quoted(text)}: year out of range") from error
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{tail}"


def _parsed_time(text: str, layout: str) -> tuple[int, ...]:
    """Return year, month, day, hour, minute, second, microseconds, and minutes east of UTC. Raises GoFormatError."""
    values: dict[str, int] = {}
    rest = text
    for step in _STEPS.findall(layout):
        value, left = _time_step(step, rest)
        if value is None:
            raise GoFormatError(
                f"parsing time {_quoted(text)} as {_quoted(layout)}: cannot parse {_quoted(rest)} as {_quoted(step)}"
            )
        if step in _WORDS and value not in _LIMITS[step]:
            raise GoFormatError(f"parsing time {_quoted(text)}: {_WORDS[step]} out of range")
        rest = left
        values[step] = value
        if step == "05" and ".000000" not in layout and (found := re.match(r"[.,][0-9]+", rest)):
            rest = rest[found.end() :]
    if rest:
        raise GoFormatError(f"parsing time {_quoted(text)}: extra text: {_quoted(rest)}")
    year, month, day = values["2006"], values["01"], values["02"]
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _MONTHS[month - 1] + leap:
        raise GoFormatError(f"parsing time {_quoted(text)}: day out of range")
    offset = values["Z07:00"]
    return year, month, day, values["15"], values["04"], values["05"], values.get(".000000", 0), offset


def _time_step(step: str, rest: str) -> tuple[int | None, str]:
    """Parse the part of a time that one element of a Go time layout describes. Return its value (None if it is missing), and
    the rest of the text.
    """
    match step:
        case "-" | "T" | ":":
            return (0, rest[1:]) if rest.startswith(step) else (None, rest)
        case "2006":
            return _number(rest, 4)
        case "15":
            found = _number(rest, 2)
            return found if found[0] is not None else _number(rest, 1)
        case ".000000":
            return _number(rest[1:], 6) if rest[:1] in {".", ","} else (None, rest)
        case "Z07:00":
            return _zone(rest)
        case _:
            return _number(rest, 2)


def _number(rest: str, width: int) -> tuple[int | None, str]:
    digits = rest[:width]
    return (int(digits), rest[width:]) if len(digits) == width and _DIGITS.issuperset(digits) else (None, rest)


def _zone(rest: str) -> tuple[int | None, str]:
    if rest.startswith("Z"):
        return 0, rest[1:]
    found = re.match(r"([+-])([0-9]{2}):([0-9]{2})", rest)
    if found is None or int(found[2]) > 24 or int(found[3]) > 60:
        return None, rest
    minutes = int(found[2]) * 60 + int(found[3])
    return -minutes if found[1] == "-" else minutes, rest[found.end() :]


def _quoted(text: str) -> str:
    r"""Quote a text as Go's package time does: bytes that are not ASCII become ``\xNN``."""
    shown = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 32 <= byte < 128 else f"\\x{byte:02x}"
        for byte in text.encode(errors="surrogatepass")
    )
    return f'"{shown}"'


def read_base64(text: str) -> str:
    """Return a base64 text in its canonical form; line breaks are ignored. Raises GoFormatError."""
    plain = text.replace("\n", "").replace("\r", "")
    try:
        data = binascii.a2b_base64(plain, strict_mode=True)
    except (ValueError, binascii.Error):
        data = None
    if data is None or len(plain) % 4:
        raise GoFormatError(f"illegal base64 data at input byte {_bad_byte(text)}")
    return base64.b64encode(data).decode()


def _bad_byte(text: str) -> int:
    """Return the position of the byte at which Go's base64 decoder fails."""
    data = text.encode(errors="surrogatepass")
    places = [(index, chr(byte)) for index, byte in enumerate(data) if byte not in b"\r\n"]
    for at, (index, char) in enumerate(places):
        if char != "=":
            if not _BASE64.fullmatch(char):
                return index
            continue
        column = at % 4
        if column < 2:
            return index
        if column == 2:
            if at + 1 == len(places):
                return len(data)
            if places[at + 1][1] != "=":
                return places[at + 1][0] - 1
        after = at + (2 if column == 2 else 1)
        return places[after][0] if after < len(places) else len(data)
    return len(data) - len(places) % 4


def read_quantity(text: str) -> str:
    """Return a quantity in canonical form (``0.5Gi`` → ``512Mi``). Raises GoFormatError."""
    text = text.strip()
    found = _QUANTITY.fullmatch(text)
    if not text or found is None:
        raise GoFormatError(_QUANTITY_ERROR)
    if not _SUFFIX.fullmatch(found[1]):
        raise GoFormatError("unable to parse quantity's suffix")
    canonical = canonical_quantity(text)
    return canonical if isinstance(canonical, str) and not _NO_DIGITS.fullmatch(canonical) else "0"
