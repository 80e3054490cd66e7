"""Functions that Kubernetes adds: quantities, versions, addresses, URLs and named formats."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values.values import (
    NONE,
    CelError,
    CelMap,
    Function,
    Implementation,
    Opaque,
    Optional,
    Value,
)
from wharfinger.control_plane.objects.name_rules import without_dash
from wharfinger.control_plane.objects.names import dns_1035_label_problems, dns_label_problems, subdomain_problems
from wharfinger.control_plane.objects.string_formats import FORMATS
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.formats.cel import network as cel_network
from wharfinger.formats.cel import quantity as cel_quantity
from wharfinger.kube.selectors import key_problems, value_problems

_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TAGS: Final = {
    "kubernetes.Quantity": "quantity", "kubernetes.Semver": "semver", "net.IP": "ip", "net.CIDR": "cidr", "kubernetes.URL": "url",
}  # fmt: skip
_TYPES: Final = {tag: name for name, tag in _TAGS.items()}


def _plain(value: Value) -> object:
    """Convert a value to the form that the functions of :mod:`wharfinger.formats.cel` take."""
    if isinstance(value, Opaque):
        return {_TAGS[value.type_name]: value.content}
    return value


def _from_format(value: object) -> Value:
    if isinstance(value, dict) and len(value) == 1:
        tag, content = next(iter(value.items()))
        if tag in _TYPES:
            return Opaque(_TYPES[tag], content)
    return value


def _typed(function: Implementation, *types: str) -> Implementation:
    """Adapt a function of :mod:`wharfinger.formats.cel` to operands of these types; "" accepts any type."""

    def run(*given: Value) -> Value:
        for value, wanted in zip(given, types, strict=False):
            if wanted and (not isinstance(value, Opaque) or value.type_name != wanted):
                raise CelError(operations.NO_OVERLOAD)
        try:
            return _from_format(cast("Function", function)(*map(_plain, given)))
        except ValueError as error:
            raise CelError(str(error)) from error

    return run


def _of_same_type(function: Implementation) -> Implementation:
    """Return an implementation that calls ``function`` if both values have the same type, and raises CelError otherwise."""

    def run(one: Value, other: Value) -> Value:
        kind = one.type_name if isinstance(one, Opaque) else ""
        return cast("Function", _typed(function, kind, kind or _AMOUNT))(one, other)

    return run


def _read(function: Implementation, why: Callable[[str], str]) -> Implementation:
    """Adapt a function that parses a text; for a text that the function rejects, ``why`` returns the error message."""

    def run(text: Value, *more: Value) -> Value:
        if not isinstance(text, str):
            raise CelError(operations.NO_OVERLOAD)
        try:
            return _from_format(cast("Function", function)(text, *more))
        except ValueError as error:
            raise CelError(why(text)) from error

    return run


def _predicate(function: Implementation) -> Implementation:
    def run(text: Value, *more: Value) -> Value:
        if not isinstance(text, str):
            raise CelError(operations.NO_OVERLOAD)
        return cast("Function", function)(text, *more)

    return run


def _query(value: Value) -> Value:
    if not isinstance(value, Opaque):
        raise CelError(operations.NO_OVERLOAD)
    return CelMap(sorted(cel_network.query({"url": str(value.content)}).items()))


def _no_network(text: str) -> str:
    twice = "network address parse error during conversion from string: " * 2
    return f"{twice}netip.ParsePrefix({quoted(text)}): no '/'"


def _no_address(text: str) -> str:
    return f"IP Address {quoted(text)} parse error during conversion from string: ParseAddr({quoted(text)}): unable to parse IP"


def _no_url(text: str) -> str:
    return f"URL parse error during conversion from string: parse {quoted(text)}: invalid URI for request"


def _no_version(text: str) -> str:
    if not text:
        return "Version string empty"
    parts = text.split(".", 2)
    if len(parts) != 3:
        return "No Major.Minor.Patch elements found"
    for name, part in zip(("major", "minor"), parts, strict=False):
        if not (part.isascii() and part.isdigit()):
            return f"Invalid character(s) found in {name} number {quoted(part)}"
        if len(part) > 1 and part.startswith("0"):
            return f"{name.capitalize()} number must not contain leading zeroes {quoted(part)}"
    return f"Invalid character(s) found in patch number {quoted(parts[2].partition('-')[0].partition('+')[0])}"


def _ip(value: Value) -> Value:
    """Implement the CEL function ``ip``: parse an address from a text, or return the address of a CIDR."""
    if isinstance(value, Opaque):
        return cast("Function", _typed(cel_network.cidr_ip, "net.CIDR"))(value)
    return cast("Function", _read(cel_network.ip, _no_address))(value)


_FORMATS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "dns1123Label": dns_label_problems,
    "dns1123Subdomain": subdomain_problems,
    "dns1035Label": dns_1035_label_problems,
    "qualifiedName": key_problems,
    "dns1123LabelPrefix": lambda text: dns_label_problems(without_dash(text)),
    "dns1123SubdomainPrefix": lambda text: subdomain_problems(without_dash(text)),
    "dns1035LabelPrefix": lambda text: dns_1035_label_problems(without_dash(text)),
    "labelValue": value_problems,
    "uri": lambda text: [] if FORMATS["uri"](text) else [f"parse {quoted(text)}: invalid URI for request"],
    "uuid": lambda text: [] if FORMATS["uuid"](text) else ["does not match the UUID format"],
    "byte": lambda text: [] if FORMATS["byte"](text) else ["invalid base64"],
    "date": lambda text: [] if FORMATS["date"](text) else ["invalid date"],
    "datetime": lambda text: [] if FORMATS["datetime"](text) else ["invalid datetime"],
}


def _named(name: Value) -> Value:
    if not isinstance(name, str):
        raise CelError(operations.NO_OVERLOAD)
    return Optional(present=True, value=Opaque("kubernetes.NamedFormat", name)) if name in _FORMATS else NONE


def _validate(named: Value, text: Value) -> Value:
    if not isinstance(named, Opaque) or not isinstance(text, str):
        raise CelError(operations.NO_OVERLOAD)
    problems = _FORMATS[str(named.content)](text)
    return Optional(present=True, value=list(problems)) if problems else NONE


def _constant(name: str) -> Callable[[], Value]:
    return lambda: Opaque("kubernetes.NamedFormat", name)


_IP, _CIDR, _URL, _AMOUNT, _VERSION = "net.IP", "net.CIDR", "kubernetes.URL", "kubernetes.Quantity", "kubernetes.Semver"

KUBERNETES: Final[Mapping[str, Implementation]] = {
    "quantity": _read(cel_quantity.quantity, lambda _: _QUANTITY),
    "isQuantity": _predicate(cel_quantity.is_quantity),
    "sign": _typed(cel_quantity.sign, _AMOUNT),
    "isInteger": _typed(cel_quantity.is_integer, _AMOUNT),
    "asInteger": _typed(cel_quantity.as_integer, _AMOUNT),
    "asApproximateFloat": _typed(cel_quantity.as_float, _AMOUNT),
    "add": _typed(cel_quantity.add, _AMOUNT),
    "sub": _typed(cel_quantity.sub, _AMOUNT),
    "isGreaterThan": _of_same_type(cel_quantity.is_greater),
    "isLessThan": _of_same_type(cel_quantity.is_less),
    "compareTo": _of_same_type(cel_quantity.compare),
    "semver": _read(cel_quantity.version, _no_version),
    "isSemver": _predicate(cel_quantity.is_version),
    "major": _typed(cel_quantity.major, _VERSION),
    "minor": _typed(cel_quantity.minor, _VERSION),
    "patch": _typed(cel_quantity.patch, _VERSION),
    "ip": _ip,
    "isIP": _predicate(cel_network.is_ip),
    "ip.isCanonical": _read(cel_network.is_canonical, _no_address),
    "family": _typed(cel_network.family, _IP),
    "isUnspecified": _typed(cel_network.is_unspecified, _IP),
    "isLoopback": _typed(cel_network.is_loopback, _IP),
    "isLinkLocalMulticast": _typed(cel_network.is_link_local_multicast, _IP),
    "isLinkLocalUnicast": _typed(cel_network.is_link_local_unicast, _IP),
    "isGlobalUnicast": _typed(cel_network.is_global_unicast, _IP),
    "cidr": _read(cel_network.cidr, _no_network),
    "isCIDR": _predicate(cel_network.is_cidr),
    "containsIP": _typed(cel_network.contains_ip, _CIDR),
    "containsCIDR": _typed(cel_network.contains_cidr, _CIDR),
    "masked": _typed(cel_network.masked, _CIDR),
    "prefixLength": _typed(cel_network.prefix_length, _CIDR),
    "url": _read(cel_network.url, _no_url),
    "isURL": _predicate(cel_network.is_url),
    "getScheme": _typed(cel_network.scheme, _URL),
    "getHost": _typed(cel_network.host, _URL),
    "getHostname": _typed(cel_network.hostname, _URL),
    "getPort": _typed(cel_network.port, _URL),
    "getEscapedPath": _typed(cel_network.escaped_path, _URL),
    "getQuery": _query,
    "format.named": _named,
    "validate": _validate,
    **{f"format.{name}": _constant(name) for name in _FORMATS},
}
