"""The rules of objects' names, kind by kind: each rule takes a name, and whether it is a prefix to which a suffix is appended."""

import ipaddress
from collections.abc import Callable
from typing import TypeAlias

from wharfinger.control_plane.objects.addresses import LEADING_ZERO
from wharfinger.control_plane.objects.names import dns_label_problems, ip_problems, parse_ip, subdomain_problems
from wharfinger.control_plane.wire.field_errors import quoted

NameRule: TypeAlias = Callable[[str, bool], list[str]]
"""A function (name, whether it is a prefix to which a suffix is appended) → problems."""


def _masked(name: str, *, prefix: bool) -> str:
    """Return the text to check for a name or prefix; a prefix may end with a dash."""
    return name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def subdomain_name(name: str, prefix: bool) -> list[str]:  # noqa: FBT001 - the shape of a rule
    """Return the problems of ``NameIsDNSSubdomain``, the rule for most kinds."""
    return subdomain_problems(_masked(name, prefix=prefix))


def whole_subdomain_name(name: str, prefix: bool) -> list[str]:  # noqa: FBT001
    """Return the errors of ``LongName`` for kinds with declared rules: the same rules for names, and none for prefixes."""
    return [] if prefix else subdomain_problems(name)


def label_name(name: str, prefix: bool) -> list[str]:  # noqa: FBT001
    """Return the problems of ``NameIsDNSLabel``, the rule for namespaces, services, and kinds that number their pods."""
    return dns_label_problems(_masked(name, prefix=prefix))


def segment_name(name: str, prefix: bool) -> list[str]:  # noqa: FBT001
    """Return the problems of ``IsPathSegmentName``: the rule of the store for all names, and the only rule for RBAC
    kinds."""
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
