"""The rules for the names of objects; each kind has one of them."""

import ipaddress
from collections.abc import Callable
from typing import TypeAlias

from wharfinger.control_plane.objects.addresses import LEADING_ZERO
from wharfinger.control_plane.objects.names import dns_label_problems, ip_problems, parse_ip, subdomain_problems
from wharfinger.control_plane.wire.field_errors import quoted

NameRule: TypeAlias = Callable[[str, bool], list[str]]
"""A function that returns the problems of a name. The function's second argument is true for a prefix (``generateName``)."""


def without_dash(prefix: str) -> str:
    """Return a prefix in a form that the rules for names can check.

    If the prefix ends with a dash, ``a`` replaces the dash and the character before it.
    """
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def subdomain_name(name: str, prefix: bool) -> list[str]:  # noqa: FBT001 - the shape of a rule
    """Return the problems of ``NameIsDNSSubdomain``, the rule for most kinds."""
    return subdomain_problems(without_dash(name) if prefix else name)


def whole_subdomain_name(name: str, prefix: bool) -> list[str]:  # noqa: FBT001
    """Return the problems that a name has under the rule ``LongName``, for kinds with declarative validation. Prefixes are not
    checked.
    """
    return [] if prefix else subdomain_problems(name)


def label_name(name: str, prefix: bool) -> list[str]:  # noqa: FBT001
    """Return the problems of ``NameIsDNSLabel``, the rule for Namespaces, Services and StatefulSets."""
    return dns_label_problems(without_dash(name) if prefix else name)


def segment_name(name: str, prefix: bool) -> list[str]:  # noqa: FBT001
    """Return the problems of a name by the rule ``IsPathSegmentName``. The store applies this rule to all names, and kinds of
    RBAC have no other rule.
    """
    if name in {".", ".."} and not prefix:
        return [f"may not be '{name}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in name]


def address_name(name: str, _prefix: bool) -> list[str]:  # noqa: FBT001
    """Return the problems of ``ValidateIPAddressName``: the name must be an address in its canonical form."""
    address = parse_ip(name)
    if address is None:
        return ip_problems(name)
    if "." in name and LEADING_ZERO.search(name):
        return ["must not have leading 0s"]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return [] if str(address) == name else [f"must be in canonical form ({quoted(str(address))})"]


def any_name(_name: str, _prefix: bool) -> list[str]:  # noqa: FBT001
    """Accept every name, for kinds that allow any name or have rules of their own."""
    return []
