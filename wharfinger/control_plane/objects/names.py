"""The checks of names, labels and keys. Most checks return a list of problems, in the words of ``apimachinery``.

An empty list means that the text is valid. The caller turns problems into errors of a field
(:func:`~wharfinger.control_plane.wire.field_errors.each`).
"""

import ipaddress
import re
from functools import lru_cache
from typing import Final

from wharfinger.control_plane.wire.field_errors import each, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.kube.names import LABEL, SUBDOMAIN

_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_UNDERSCORE: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_UNDERSCORE: Final = rf"{_LABEL_UNDERSCORE}(\.{_LABEL_UNDERSCORE})*"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_HEADER: Final = "[-A-Za-z0-9]+"
_IP_RULE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_EDGES: Final = "and must start and end with an alphanumeric character"
MAX_INT32: Final = 2**31 - 1


_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-][-._A-Za-z0-9]{0,62}")
"""A pattern that matches most of the keys that are valid in ConfigMaps and Secrets, and no invalid key."""


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _matches(pattern: str, text: str) -> bool:
    """Return whether a whole text matches. Compiled patterns are cached here, because this is faster than the cache of ``re``."""
    return _compiled(pattern).fullmatch(text) is not None


def rule(what: str, pattern: str, *examples: str) -> str:
    """Return ``what (e.g. 'a',  or 'b', regex used for validation is '…')``."""
    if not examples:
        return f"{what} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{what} (e.g. {shown}regex used for validation is '{pattern}')"


def between(low: int, high: int) -> str:
    """Return the message for a number that is not in the range from ``low`` to ``high``."""
    return f"must be between {low} and {high}, inclusive"


def _too_long(text: str, limit: int) -> list[str]:
    fits = len(text) <= limit and (text.isascii() or len(text.encode()) <= limit)
    return [] if fits else [f"must be no more than {limit} characters"]


def dns_label_problems(name: str) -> list[str]:
    """Return the problems of an RFC 1123 label: at most 63 characters, without dots."""
    problems = _too_long(name, 63)
    if _matches(LABEL, name):
        return problems
    if _matches(SUBDOMAIN, name):
        return [*problems, "must not contain dots"]
    what = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', " + _EDGES
    return [*problems, rule(what, LABEL, "my-name", "123-abc")]


def dns_1035_label_problems(name: str) -> list[str]:
    """Return the problems of an RFC 1035 label: like an RFC 1123 label, but it must begin with a letter."""
    problems = _too_long(name, 63)
    if _matches(_LABEL_1035, name):
        return problems
    what = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
        "and end with an alphanumeric character"
    )
    return [*problems, rule(what, _LABEL_1035, "my-name", "abc-123")]


def namespace_name_problems(name: str) -> list[str]:
    """Return the problems of a namespace's name."""
    return dns_label_problems(name)


def subdomain_problems(name: str) -> list[str]:
    """Return the problems of an RFC 1123 subdomain: at most 253 characters."""
    problems = _too_long(name, 253)
    if _matches(SUBDOMAIN, name):
        return problems
    what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " + _EDGES
    return [*problems, rule(what, SUBDOMAIN, "example.com")]


def wildcard_subdomain_problems(name: str) -> list[str]:
    """Return the problems of a wildcard subdomain: ``*.`` and a subdomain."""
    problems = _too_long(name, 253)
    pattern = rf"\*\.{SUBDOMAIN}"
    if _matches(pattern, name):
        return problems
    what = (
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower "
        "case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
    )
    return [*problems, rule(what, pattern, "*.example.com")]


def domain_prefixed_path_errors(field: str, path: str) -> list[FieldError]:
    """Return the errors of a path such as ``acme.io/foo``, which must consist of a subdomain, a slash, and a path."""
    if not path:
        return [required(field)]
    host, _, rest = path.partition("/")
    if not host or not rest:
        return [invalid(field, path, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = each(field, host, subdomain_problems(host))
    return errors if _matches(_HTTP_PATH, rest) else [*errors, invalid(field, rest, rule("Invalid path", _HTTP_PATH))]


def underscored_subdomain_problems(name: str) -> list[str]:
    """Return the problems of a subdomain that may contain underscores, like DNS search paths."""
    problems = _too_long(name, 253)
    if _matches(_SUBDOMAIN_UNDERSCORE, name):
        return problems
    what = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', " + _EDGES
    )
    return [*problems, rule(what, _SUBDOMAIN_UNDERSCORE, "example.com")]


def config_key_problems(key: str) -> list[str]:
    """Return the problems of a key in a ConfigMap or Secret."""
    if _PLAIN_KEY.fullmatch(key):
        return []
    problems = _too_long(key, 253)
    if not _matches(_CONFIG_KEY, key):
        what = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(rule(what, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if key in {".", ".."}:
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def environment_name_problems(name: str) -> list[str]:
    """Return the problems of an environment variable's name, which must be printable ASCII without ``=``."""
    problems = [] if name else ["environment variable name must be non-empty"]
    if any(not " " <= char <= "~" or char == "=" for char in name):
        problems.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return problems


def port_name_problems(name: str) -> list[str]:
    """Return the problems of an IANA service name: at most 15 characters, at least one of them a letter."""
    problems = _too_long(name, 15)
    if not _matches("[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_problems(port: int) -> list[str]:
    """Return the problems of a port's number."""
    return [] if 1 <= port <= 65535 else [between(1, 65535)]


def header_problems(name: str) -> list[str]:
    """Return the problems of an HTTP header's name."""
    if _matches(_HEADER, name):
        return []
    return [rule("a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name")]


def parse_ip(text: str) -> "ipaddress.IPv4Address | ipaddress.IPv6Address | None":
    """Return the IP address in a text, or None. Leading zeros in an IPv4 address are accepted, a zone is not."""
    if _matches(r"\d{1,9}(\.\d{1,9}){3}", text):
        text = ".".join(str(int(part)) for part in text.split("."))
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return None if "%" in text else found


def ip_problems(text: str) -> list[str]:
    """Return the problems of an IP address in one of the older fields, which accept leading zeros."""
    return [] if parse_ip(text) is not None else [_IP_RULE]
