"""The formats of strings and numbers that schemas name, as Kubernetes checks them; unknown formats are not checked.

A format that means the same in Kubernetes and in JSON Schema is checked by the validator itself. This module checks formats that
JSON Schema lacks (``byte``, ``cidr``, ``mac``) and formats that mean something else there: a ``duration`` is in Go's form or in
words (``3 days``), not in ISO 8601, and a ``uri`` may be an absolute path.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from functools import cache
from typing import Final
from urllib.parse import urlsplit

import jsonschema_rs

_DURATION_UNITS: Final = (
    "ns|us|µs|μs|ms|s|m|h|d|w|nanos?|nanoseconds?|micros?|microseconds?|millis?|milliseconds?|secs?|seconds?|mins?|minutes?|"
    "hrs?|hours?|days?|wks?|weeks?"
)
_DURATION: Final = re.compile(rf"[-+]?(?:0|(?:[0-9]{{1,19}}(?:\.[0-9]{{0,19}})?\s?(?:{_DURATION_UNITS})\s?)+)")
_MAC: Final = re.compile(
    r"(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4,18}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2,9}[0-9a-fA-F]{4}"
)
_LONGEST: Final = 256


def is_duration(text: str) -> bool:
    """Return whether the text is a duration: ``1h30m``, ``2.5s``, ``3 days``."""
    return len(text) <= _LONGEST and _DURATION.fullmatch(text) is not None


def is_byte(text: str) -> bool:
    """Return whether the text is standard base64; line breaks are allowed."""
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def is_cidr(text: str) -> bool:
    """Return whether the text is a network such as ``10.0.0.0/8``; host bits may be set, as in Go's ParseCIDR."""
    if "/" not in text or len(text) > _LONGEST or not text.rpartition("/")[2].isdigit():
        return False
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return True


def is_mac(text: str) -> bool:
    """Return whether the text is a hardware address of 6 to 20 bytes in one of the three usual spellings."""
    return len(text) <= _LONGEST and _MAC.fullmatch(text) is not None


def is_uri(text: str) -> bool:
    """Return whether the text is an absolute URI or an absolute path."""
    if not text or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return text.startswith("/") or bool(parts.scheme)


FORMATS: Final[dict[str, str]] = {
    "byte": "base64",
    "cidr": "a network such as 10.0.0.0/8",
    "date": "a date such as 2026-01-31",
    "date-time": "a time such as 2026-01-31T12:00:00Z",
    "duration": "a duration such as 1h30m",
    "email": "an e-mail address",
    "hostname": "a host name",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "mac": "a hardware address such as 00:1b:44:11:3a:b7",
    "uri": "a URL",
    "uuid": "a UUID",
}
"""The formats that are checked, and their descriptions in messages."""

OWN_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": is_byte,
    "cidr": is_cidr,
    "duration": is_duration,
    "mac": is_mac,
    "uri": is_uri,
}
NUMBER_BOUNDS: Final[dict[str, tuple[int, int]]] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
"""The smallest and the largest number that each numeric format allows."""


@cache
def format_checker(name: str) -> jsonschema_rs.Draft202012Validator:
    """Return a validator of texts for one of FORMATS: ``format_checker("mac").is_valid(text)``."""
    return jsonschema_rs.Draft202012Validator(
        {"format": name}, validate_formats=True, formats=dict(OWN_FORMATS), offline=True
    )
