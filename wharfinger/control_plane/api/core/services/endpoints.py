"""The validation of Endpoints and their parts."""

from typing import Final

from wharfinger.control_plane.api.core.services.validation import each_port_errors
from wharfinger.control_plane.objects.addresses import endpoint_ip_errors, ip_warnings, legacy_ip_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import parts
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.selectors import key_problems

_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_LISTS: Final = ("addresses", "notReadyAddresses")


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return [] if new.get("subsets") == old.get("subsets") else _subset_errors(new)


def _subset_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subset in enumerate(parts(obj, "subsets")):
        field = f"subsets[{index}]"
        if not any(parts(subset, name) for name in _LISTS):
            errors.append(required(field, "must specify `addresses` or `notReadyAddresses`"))
        for name in _LISTS:
            for number, address in enumerate(parts(subset, name)):
                errors += _address_errors(address, f"{field}.{name}[{number}]")
        ports = parts(subset, "ports")
        for number, port in enumerate(ports):
            errors += _port_errors(port, f"{field}.ports[{number}]", named=len(ports) > 1)
    return errors


def _address_errors(address: JsonObject, field: str) -> list[FieldError]:
    value, host, node = text(address, "ip"), text(address, "hostname"), address.get("nodeName")
    errors = legacy_ip_errors(f"{field}.ip", value)
    errors += each(f"{field}.hostname", host, dns_label_problems(host)) if host else []
    if isinstance(node, str):
        errors += each(f"{field}.nodeName", node, subdomain_problems(node))
    return errors + endpoint_ip_errors(f"{field}.ip", value)


def _port_errors(port: JsonObject, field: str, *, named: bool) -> list[FieldError]:
    name, protocol = text(port, "name"), port.get("appProtocol")
    errors: list[FieldError] = []
    if named and not name:
        errors.append(required(f"{field}.name"))
    elif name:
        errors += each(f"{field}.name", name, dns_label_problems(name))
    errors += each_port_errors(port, field)
    return errors + (
        each(f"{field}.appProtocol", protocol, key_problems(protocol)) if isinstance(protocol, str) else []
    )


def _warnings(obj: JsonObject, _old: JsonObject | None) -> list[str]:
    if find(obj, "metadata", "labels", _MANAGED_BY) == "endpoint-controller":
        return []
    return [
        warning
        for index, subset in enumerate(parts(obj, "subsets"))
        for name in _LISTS
        for number, address in enumerate(parts(subset, name))
        for warning in ip_warnings(f"subsets[{index}].{name}[{number}].ip", text(address, "ip"))
    ]


ENDPOINTS_RULES: Final = Rules(create=_subset_errors, update=_update_errors, warnings=_warnings)
