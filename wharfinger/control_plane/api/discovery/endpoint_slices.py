"""The validation of EndpointSlices (discovery.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.objects.addresses import endpoint_ip_errors, ip_warnings, is_ipv6, legacy_ip_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.objects.name_rules import address_name
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import (
    duplicate,
    each,
    immutable,
    invalid,
    not_supported,
    required,
    too_many,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.selectors import key_problems, value_problems

TYPES: Final = ("FQDN", "IPv4", "IPv6")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
ENDPOINTS_LIMIT: Final = 1000
ADDRESSES_LIMIT: Final = 100
PORTS_LIMIT: Final = 20_000
HINTS_LIMIT: Final = 8
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SERVICE_NAME: Final = "kubernetes.io/service-name"
"""The label of an EndpointSlice that names its Service."""
CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_DEPRECATED: Final = "spec.addressType: FQDN endpoints are deprecated"


def endpoint_slice_errors(one: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    """Return the errors of an EndpointSlice; unchanged endpoints are not checked again."""
    kind = text(one, "addressType")
    errors: list[FieldError] = []
    if not kind:
        errors.append(required("addressType"))
    elif kind not in TYPES:
        errors.append(not_supported("addressType", kind, TYPES))
    errors += _port_errors(parts(one, "ports"))
    if old is not None and old.get("endpoints") == one.get("endpoints"):
        return errors
    return errors + _endpoints_errors(parts(one, "endpoints"), kind)


def _port_errors(ports: list[JsonObject]) -> list[FieldError]:
    if len(ports) > PORTS_LIMIT:
        return [too_many("ports", len(ports), PORTS_LIMIT)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", text(port, "name")
        errors += each(f"{path}.name", name, dns_label_problems(name)) if name else []
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        protocol, used = find(port, "protocol"), find(port, "appProtocol")
        if protocol is None:
            errors.append(required(f"{path}.protocol"))
        elif protocol not in PROTOCOLS:
            errors.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
        if isinstance(used, str):
            errors += each(f"{path}.appProtocol", used, key_problems(used))
    return errors


def _endpoints_errors(endpoints: list[JsonObject], kind: str) -> list[FieldError]:
    if len(endpoints) > ENDPOINTS_LIMIT:
        return [too_many("endpoints", len(endpoints), ENDPOINTS_LIMIT)]
    return [
        error for index, one in enumerate(endpoints) for error in _endpoint_errors(one, kind, f"endpoints[{index}]")
    ]


def _endpoint_errors(endpoint: JsonObject, kind: str, path: str) -> list[FieldError]:
    addresses = texts(endpoint, "addresses")
    errors: list[FieldError] = []
    if not addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > ADDRESSES_LIMIT:
        errors.append(too_many(f"{path}.addresses", len(addresses), ADDRESSES_LIMIT))
    for index, address in enumerate(addresses):
        errors += _address_errors(address, kind, f"{path}.addresses", index)
    node, host = find(endpoint, "nodeName"), find(endpoint, "hostname")
    errors += each(f"{path}.nodeName", node, subdomain_problems(node)) if isinstance(node, str) else []
    errors += each(f"{path}.hostname", host, dns_label_problems(host)) if isinstance(host, str) else []
    hints = part(endpoint, "hints")
    return errors if hints is None else errors + _hint_errors(hints, f"{path}.hints")


def _address_errors(address: str, kind: str, path: str, index: int) -> list[FieldError]:
    field = f"{path}[{index}]"
    if kind == "FQDN":
        return _domain_errors(address, field)
    if kind not in {"IPv4", "IPv6"}:
        return []
    strict = each(field, address, address_name(address, False))  # noqa: FBT003 - no prefix
    wrong = legacy_ip_errors(field, address) if kind == "IPv4" else strict
    if wrong:
        return wrong
    errors = [] if is_ipv6(address) == (kind == "IPv6") else [invalid(path, address, f"must be an {kind} address")]
    return errors + endpoint_ip_errors(field, address)


def _domain_errors(name: str, field: str) -> list[FieldError]:
    """Return the errors of a domain name, which must contain a dot; a dot at its end is allowed."""
    if not name:
        return [required(field)]
    name = name.removesuffix(".")
    if problems := subdomain_problems(name):
        return [invalid(field, name, ",".join(problems))]
    if "." not in name:
        return [invalid(field, name, "should be a domain with at least two segments separated by dots")]
    wrong = next((label for label in name.split(".") if dns_label_problems(label)), None)
    return [] if wrong is None else [invalid(field, wrong, ",".join(dns_label_problems(wrong)))]


def _hint_errors(hints: JsonObject, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, problems in (("forZones", value_problems), ("forNodes", subdomain_problems)):
        listed = parts(hints, name)
        if len(listed) > HINTS_LIMIT:
            return [*errors, too_many(f"{path}.{name}", len(listed), HINTS_LIMIT)]
        seen: set[str] = set()
        for index, item in enumerate(listed):
            field, value = f"{path}.{name}[{index}].name", text(item, "name")
            errors += [duplicate(field, value)] if value in seen else []
            seen.add(value)
            errors += each(field, value, problems(value))
    return errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    changed = immutable("addressType", text(new, "addressType"), text(old, "addressType"))
    return endpoint_slice_errors(new, old) + changed


def _warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return a warning about a deprecated address type and, unless a controller manages the slice, warnings on addresses."""
    said = [_DEPRECATED] if old is None and text(new, "addressType") == "FQDN" else []
    if text(new, "metadata", "labels", MANAGED_BY) in CONTROLLERS:
        return said
    for index, endpoint in enumerate(parts(new, "endpoints")):
        for number, address in enumerate(texts(endpoint, "addresses")):
            said += ip_warnings(f"endpoints[{index}].addresses[{number}]", address)
    return said


ENDPOINT_SLICE_RULES: Final[dict[str, Rules]] = {
    "EndpointSlice.discovery.k8s.io": Rules(create=endpoint_slice_errors, update=_update_errors, warnings=_warnings),
}
