"""Addresses in rules: ``ip``, ``cidr`` and ``url``, which Kubernetes adds to CEL. Pure.

A value is a map with one key, as in :mod:`~wharfinger.formats.cel.quantity`: ``{"ip": "10.0.0.1"}``,
``{"cidr": "10.0.0.1/8"}``, ``{"url": "https://…"}``. As in Kubernetes, an IPv4 address inside an IPv6 address
(``::ffff:1.2.3.4``), an IPv6 zone (``fe80::1%eth0``), and leading zeros in an IPv4 address or a prefix length are refused.

All functions raise ValueError for invalid arguments, except ``is_ip``, ``is_cidr`` and ``is_url``, which return False.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface, ip_network
from typing import Final, TypeAlias
from urllib.parse import SplitResult, parse_qs, urlsplit

from wharfinger.formats.cel.quantity import Tagged, tagged

_Address: TypeAlias = IPv4Address | IPv6Address
_LONGEST: Final = 8 * 1024
_NOT_IN_A_URL: Final = re.compile(r"[\x00-\x20\x7f]|%(?![0-9A-Fa-f]{2})")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def _address(text: str) -> _Address:
    if len(text) > 64 or "%" in text:
        raise ValueError("not an IP address")
    try:
        address = ip_address(text)
    except ValueError as error:
        raise ValueError("not an IP address") from error
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError("an IPv4 address inside an IPv6 address is not allowed")
    return address


def _address_of(value: Tagged | str) -> _Address:
    return _address(value if isinstance(value, str) else tagged("ip", value))


def ip(text: str) -> Tagged:
    """Implement ``ip('10.0.0.1')``."""
    return {"ip": str(_address(text))}


def is_ip(text: str) -> bool:
    """Implement ``isIP('10.0.0.1')``."""
    try:
        _address(text)
    except ValueError:
        return False
    return True


def is_canonical(text: str) -> bool:
    """Implement ``ip.isCanonical('::1')``."""
    return str(_address(text)) == text


def family(value: Tagged) -> int:
    """Implement ``ip('::1').family()``: 4 or 6."""
    return _address_of(value).version


def is_unspecified(value: Tagged) -> bool:
    """Implement ``ip('0.0.0.0').isUnspecified()``."""
    return _address_of(value).is_unspecified


def is_loopback(value: Tagged) -> bool:
    """Implement ``ip('127.0.0.1').isLoopback()``."""
    return _address_of(value).is_loopback


def is_link_local_multicast(value: Tagged) -> bool:
    """Implement ``ip('224.0.0.1').isLinkLocalMulticast()``."""
    address = _address_of(value)
    return address in ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


def is_link_local_unicast(value: Tagged) -> bool:
    """Implement ``ip('169.254.0.1').isLinkLocalUnicast()``."""
    address = _address_of(value)
    return address in ip_network("169.254.0.0/16" if address.version == 4 else "fe80::/10")


def is_global_unicast(value: Tagged) -> bool:
    """Implement ``ip('10.0.0.1').isGlobalUnicast()``: false for unspecified, loopback, multicast and link-local addresses and
    for 255.255.255.255; true for all others, even private ones.
    """
    address = _address_of(value)
    broadcast = address == IPv4Address("255.255.255.255")
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not (broadcast or special or is_link_local_unicast(value))


def cidr(text: str) -> Tagged:
    """Implement ``cidr('10.0.0.0/8')``, which parses a range of addresses."""
    address, slash, length = text.partition("/")
    parsed = _address(address)
    if not slash or not (length.isascii() and length.isdigit()) or str(int(length[:4])) != length:
        raise ValueError("expected a network such as 10.0.0.0/8")
    if int(length) > parsed.max_prefixlen:
        raise ValueError("expected a network such as 10.0.0.0/8")
    return {"cidr": f"{parsed}/{length}"}


def is_cidr(text: str) -> bool:
    """Implement ``isCIDR('10.0.0.0/8')``."""
    try:
        cidr(text)
    except ValueError:
        return False
    return True


def contains_ip(value: Tagged, other: Tagged | str) -> bool:
    """Implement ``cidr('10.0.0.0/8').containsIP('10.0.0.1')``; the argument is a string or an ip."""
    return _address_of(other) in ip_interface(tagged("cidr", value)).network


def contains_cidr(value: Tagged, other: Tagged | str) -> bool:
    """Implement ``cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')``; the argument is a string or a cidr."""
    outer = ip_interface(tagged("cidr", value)).network
    inner = ip_interface(tagged("cidr", cidr(other) if isinstance(other, str) else other)).network
    return outer.version == inner.version and inner.prefixlen >= outer.prefixlen and inner.network_address in outer


def cidr_ip(value: Tagged) -> Tagged:
    """Implement ``cidr('10.0.0.1/8').ip()``."""
    return {"ip": str(ip_interface(tagged("cidr", value)).ip)}


def masked(value: Tagged) -> Tagged:
    """Implement ``cidr('10.0.0.1/8').masked()``: the bits that the prefix does not cover are zero."""
    return {"cidr": str(ip_interface(tagged("cidr", value)).network)}


def prefix_length(value: Tagged) -> int:
    """Implement ``cidr('10.0.0.0/8').prefixLength()``."""
    return ip_interface(tagged("cidr", value)).network.prefixlen


def url(text: str) -> Tagged:
    """Implement ``url('https://example.com/')``. The text must have a scheme or start with a slash. Raises ValueError."""
    if not text or len(text) > _LONGEST or _NOT_IN_A_URL.search(text):
        raise ValueError("not a URL")
    if not text.startswith("/") and not _SCHEME.match(text):
        raise ValueError("not a URL: it has no scheme")
    try:
        parts = urlsplit(text)
        _ = parts.port, parts.hostname
    except ValueError as error:
        raise ValueError("not a URL") from error
    return {"url": text}


def is_url(text: str) -> bool:
    """Implement ``isURL('https://example.com/')``."""
    try:
        url(text)
    except ValueError:
        return False
    return True


def _split(value: Tagged) -> SplitResult:
    return urlsplit(tagged("url", value))


def scheme(value: Tagged) -> str:
    """Implement ``url(…).getScheme()``."""
    return _split(value).scheme


def host(value: Tagged) -> str:
    """Implement ``url(…).getHost()``, whose result includes the port."""
    return _split(value).netloc.rpartition("@")[2]


def hostname(value: Tagged) -> str:
    """Implement ``url(…).getHostname()``, without the port, and without the brackets of an IPv6 address."""
    name = host(value)
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def port(value: Tagged) -> str:
    """Implement ``url(…).getPort()``, as text."""
    return host(value).rpartition("]")[2].partition(":")[2]


def escaped_path(value: Tagged) -> str:
    """Implement ``url(…).getEscapedPath()``."""
    return _split(value).path


def query(value: Tagged) -> dict[str, list[str]]:
    """Implement ``url(…).getQuery()``: the values of each key."""
    return parse_qs(_split(value).query, keep_blank_values=True)
