"""IP addresses and ranges, mostly in fields that are older than the strict rules for addresses (``util/validation/ip.go``).

Such fields accept an address that is not in canonical form, with a warning. Ambiguous forms (leading zeros, IPv4-mapped IPv6
addresses) are refused, unless an update leaves the value unchanged.
"""

import ipaddress
import re
from collections.abc import Collection
from typing import Final, TypeAlias

from wharfinger.control_plane.objects.names import ip_problems, parse_ip
from wharfinger.control_plane.wire.field_errors import invalid, quoted
from wharfinger.control_plane.wire.status import FieldError

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"
LEADING_ZERO: Final = re.compile(r"(^|\.)0\d")
"""A leading zero in a dotted address."""


def mapped(address: Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address inside an IPv4-mapped IPv6 address (``::ffff:1.2.3.4``); None for other addresses."""
    return address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None


def ip_text(address: Address) -> str:
    """Return an address as Go's ``net.IP`` prints it."""
    return str(mapped(address) or address)


def is_ipv6(text: str) -> bool:
    """Return whether the text is an IPv6 address that is not IPv4-mapped."""
    address = parse_ip(text)
    return isinstance(address, ipaddress.IPv6Address) and mapped(address) is None


def legacy_ip_errors(field: str, value: str, old: Collection[str] = ()) -> list[FieldError]:
    """Return the errors of ``IsValidIPForLegacyField``; the previous values of the field (``old``) are always accepted."""
    if value in old:
        return []
    address = parse_ip(value)
    if address is None:
        return [invalid(field, value, problem) for problem in ip_problems(value)]
    if "." in value and ":" not in value and LEADING_ZERO.search(value):
        return [invalid(field, value, "must not have leading 0s")]
    if mapped(address) is not None:
        return [invalid(field, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def endpoint_ip_errors(field: str, value: str) -> list[FieldError]:
    """Return the errors of ``ValidateEndpointIP``, which refuses addresses that other hosts cannot reach."""
    address = parse_ip(value)
    if address is None:
        return [invalid(field, value, "must be a valid IP address")]
    address = mapped(address) or address
    errors = []
    if address.is_unspecified:
        errors.append(invalid(field, value, f"may not be unspecified ({value})"))
    if address.is_loopback:
        errors.append(invalid(field, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        errors.append(invalid(field, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if _is_link_local_multicast(address):
        why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(field, value, why))
    return errors


def _is_link_local_multicast(address: Address) -> bool:
    packed = address.packed
    return packed[:3] == b"\xe0\x00\x00" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


def ip_warnings(field: str, value: str) -> list[str]:
    """Return the warnings of ``GetWarningsForIP`` about an address in a non-standard form."""
    address = parse_ip(value)
    if address is None:
        return []
    if mapped(address) is not None or (address.version == 4 and str(address) != value):
        return [f"{field}: non-standard IP address {quoted(value)} is invalid: use {quoted(ip_text(address))}"]
    if str(address) != value:
        canonical = quoted(str(address))
        return [f"{field}: IPv6 address {quoted(value)} should be in RFC 5952 canonical format ({canonical})"]
    return []


def parse_cidr(text: str) -> "tuple[Address, ipaddress.IPv4Network | ipaddress.IPv6Network] | None":
    """Return the address and the network of a CIDR; None if the text is not a CIDR."""
    base, slash, bits = text.partition("/")
    address = parse_ip(base)
    if address is None or not slash or not re.fullmatch(r"[0-9]{1,9}", bits) or int(bits) > address.max_prefixlen:
        return None
    return address, ipaddress.ip_network(f"{address}/{int(bits)}", strict=False)


def legacy_cidr_errors(field: str, value: str, old: Collection[str] = ()) -> list[FieldError]:
    """Return the errors of ``IsValidCIDRForLegacyField``; the previous values of the field (``old``) are always accepted."""
    if value in old:
        return []
    parsed = parse_cidr(value)
    if parsed is None:
        return [invalid(field, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    address, network = parsed
    base, _, bits = value.partition("/")
    if (address.version == 4 and LEADING_ZERO.search(base)) or bits != str(int(bits)):
        return [invalid(field, value, "must not have leading 0s in IP or prefix length")]
    if mapped(address) is not None:
        return [invalid(field, value, "must not have an IPv4-mapped IPv6 address")]
    if address != network.network_address:
        return [invalid(field, value, "must not have bits set beyond the prefix length")]
    return []


def cidr_errors(field: str, value: str) -> list[FieldError]:
    """Return the errors of ``IsValidCIDR``: the range must be in its canonical form."""
    if errors := legacy_cidr_errors(field, value):
        return errors
    parsed = parse_cidr(value)
    canonical = "" if parsed is None else str(parsed[1])
    return [] if value == canonical else [invalid(field, value, f"must be in canonical form ({quoted(canonical)})")]


def cidr_warnings(field: str, value: str) -> list[str]:
    """Return the warnings of ``GetWarningsForCIDR`` about a range in a non-standard form."""
    parsed = parse_cidr(value)
    if parsed is None:
        return []
    address, network = parsed
    base, _, bits = value.partition("/")
    shown = quoted(value)
    warnings = []
    if address != network.network_address:
        single = quoted(f"{ip_text(address)}/{address.max_prefixlen}")
        ambiguous = (
            f"{field}: CIDR value {shown} is ambiguous in this context (should be {quoted(str(network))} or {single}?)"
        )
        warnings.append(ambiguous)
    zeros = (address.version == 4 and str(address) != base) or bits != str(int(bits))
    if zeros or mapped(address) is not None:
        warnings.append(f"{field}: non-standard CIDR value {shown} is invalid: use {quoted(str(network))}")
    if not warnings and address.version == 6 and f"{address}/{bits}" != value:
        canonical = quoted(f"{address}/{bits}")
        warnings.append(f"{field}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({canonical})")
    return warnings
