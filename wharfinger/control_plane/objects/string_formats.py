"""The formats of strings in schemas (kube-openapi ``strfmt``), with a check of each format that kube-apiserver knows.

Some formats differ from JSON Schema's: a ``duration`` is a Go duration or written in words (``3 days``), a ``uri`` may be an
absolute path, and ``byte`` is standard base64 that is not empty. All checks take time linear in the length of the text.
"""

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from typing import Final

from wharfinger.formats.cel.network import is_url

_HEX: Final = "[0-9a-fA-F]"
_UUID: Final = "(?i:[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{}[0-9a-f]{{3}}-?{}[0-9a-f]{{3}}-?[0-9a-f]{{12}})"
_BYTE: Final = r"(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"
_NAME: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_HOSTNAME: Final = re.compile(
    r"(?:[^\W_](?:-?[^\W_]){0,62}|(?:(?:[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?)\.)+[^\W\d_]{2,63})", re.UNICODE
)
_MAIL: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[^\s<>@,;:()\"]+")
_NAMED_MAIL: Final = re.compile(r"(?:[^<>\"@,;:()]*|\"[^\"]*\"\s*)<([^<>]*)>\s*")
_GO_DURATION: Final = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_WORDS: Final = re.compile(r"(?<![0-9])([0-9]+)\s*([A-Za-zµ]+)", re.ASCII)
_EXACT_UNITS: Final = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_UNITS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week", "s")
_CARD: Final = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}"
    r"|(?:2131|1800|35[0-9]{3})[0-9]{11})"
)
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_MAC: Final = re.compile(
    rf"{_HEX}{{2}}(?:(:){_HEX}{{2}}(?::{_HEX}{{2}}){{4}}(?:(?::{_HEX}{{2}}){{2}}|(?::{_HEX}{{2}}){{14}})?"
    rf"|-{_HEX}{{2}}(?:-{_HEX}{{2}}){{4}}(?:(?:-{_HEX}{{2}}){{2}}|(?:-{_HEX}{{2}}){{14}})?)"
    rf"|{_HEX}{{4}}(?:\.{_HEX}{{4}}){{2}}(?:\.{_HEX}{{4}}|(?:\.{_HEX}{{4}}){{7}})?"
)


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def is_hostname(text: str) -> bool:
    """Return whether a text is a host name of at most 255 bytes, with labels of at most 63 bytes."""
    long = len(text.encode()) > 255 or any(len(label.encode()) > 63 for label in text.split("."))
    return not long and _HOSTNAME.fullmatch(text) is not None


def is_email(text: str) -> bool:
    """Return whether a text is an e-mail address, with or without a display name."""
    named = _NAMED_MAIL.fullmatch(text)
    return len(text) <= 1000 and _MAIL.fullmatch(named[1] if named else text.strip()) is not None


def is_duration(text: str) -> bool:
    """Return whether a text is a Go duration such as ``1h30m``, or contains a number with a unit such as ``3 days``."""
    if _GO_DURATION.fullmatch(text):
        return True
    found = [unit.lower() for _, unit in _WORDS.findall(text)]
    return any(unit in _EXACT_UNITS or unit.startswith(_UNITS) for unit in found)


def is_date(text: str) -> bool:
    """Return whether a text is a date such as ``2026-01-31``."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10 and text[4] == "-"


def is_date_time(text: str) -> bool:
    """Return whether a text is a timestamp such as ``2026-01-31T12:00:00Z``."""
    day, _, time = text.lower().partition("t")
    found = _TIME.fullmatch(time)
    return is_date(day) and found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _without_leading_zeros(text: str) -> str:
    """Return an IPv4 address with its leading zeros removed; old versions of Go accepted such zeros."""
    return ".".join(part.lstrip("0") or part[-1:] for part in text.split(".")) if ":" not in text else text


def is_ipv4(text: str) -> bool:
    """Return whether a text is an IPv4 address such as ``10.0.0.1``, or ``::ffff:10.0.0.1``; leading zeros are accepted."""
    return "." in text and _is_address(text)


def is_ipv6(text: str) -> bool:
    """Return whether a text is an IPv6 address such as ``fe80::1``."""
    return ":" in text and _is_address(text)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(_without_leading_zeros(text[:64]))
    except ValueError:
        return False
    return "%" not in text and len(text) <= 64


def is_cidr(text: str) -> bool:
    """Return whether a text is an address range such as ``10.0.0.0/8``."""
    address, slash, length = text.partition("/")
    digits = bool(slash) and length.isascii() and length.isdigit() and len(length) <= 3
    return digits and _is_address(address) and int(length) <= (128 if ":" in address else 32)


def is_isbn10(text: str) -> bool:
    """Return whether a text is an ISBN of ten digits."""
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    total = sum((index + 1) * (10 if digit == "X" else int(digit)) for index, digit in enumerate(digits))
    return total % 11 == 0


def is_isbn13(text: str) -> bool:
    """Return whether a text is an ISBN of thirteen digits."""
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    total = sum((1, 3)[index % 2] * int(digit) for index, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


def is_credit_card(text: str) -> bool:
    """Return whether a text is the number of a credit card with a correct check digit."""
    digits = re.sub("[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    total = 0
    for index, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if index % 2 else 1)
        total += doubled % 10 + 1 if doubled >= 10 else doubled
    return total % 10 == 0


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "uri": lambda text: is_url(text) and text != "",
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": lambda text: len(text) < 64 and _MAC.fullmatch(text) is not None,
    "uuid": _matches(_UUID.format("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _matches(_UUID.format("3", "[0-9a-f]")),
    "uuid4": _matches(_UUID.format("4", "[89ab]")),
    "uuid5": _matches(_UUID.format("5", "[89ab]")),
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": lambda text: len(text) == 11 and re.fullmatch("[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text) is not None,
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _matches(rf"rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)"),
    "byte": _matches(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda _: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and re.fullmatch(_NAME, text) is not None,
    "k8slongname": lambda text: len(text) <= 253 and re.fullmatch(rf"{_NAME}(\.{_NAME})*", text) is not None,
}
"""The check of each format, by the name of the format without dashes."""

_NUMBERS: Final = {"integer": frozenset({"int32", "int64"}), "number": frozenset({"float", "double"})}


def known_format(types: tuple[str, ...], name: str) -> str:
    """Return the name of a format, or "" if values of these JSON types have no such format.

    Without a type, or with several types, only the formats of strings are known.
    """
    only = types[0] if len(types) == 1 else ""
    if only in {"", "string"}:
        return name if name.replace("-", "") in FORMATS else ""
    return name if name in _NUMBERS.get(only, ()) else ""
