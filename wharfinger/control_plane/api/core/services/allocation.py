"""The allocation of a Service's cluster address (from 10.0.0.0/24) and node ports (from 30000-32767).

There is no register of allocations: the addresses and ports of the stored Services count as allocated. The low end of
both ranges is kept for users that request a specific address or port (KEP-3070, KEP-3668): random values come from the low
end only if the rest of the range is used up. A dry run allocates nothing; as in kube-apiserver, it shows placeholders: the
address of the network itself, and ports beyond the range.
"""

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from wharfinger.control_plane.api.common.filling import objects
from wharfinger.control_plane.api.core.services.address_validation import strings
from wharfinger.control_plane.objects.addresses import ip_text
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.names import parse_ip
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.field_errors import invalid
from wharfinger.control_plane.wire.status import FieldError, StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue

ADDRESSES: Final = ipaddress.IPv4Network("10.0.0.0/24")
RESERVED: Final = "10.0.0.1"
"""The address of the API server's own Service."""
PORTS: Final = range(30_000, 32_768)
_STATIC_ADDRESSES: Final = 16
_STATIC_PORTS: Final = 86
_DRY_PORT: Final = 32_768


@dataclass
class Ports:
    """Node ports: the ports that are already allocated, and those that one write allocates."""

    view: ClusterView
    taken: set[int]
    own: list[int] = field(default_factory=list)

    def take(self, port: int) -> str:
        """Allocate a specific port; return the reason why it is not available, or ""."""
        if port not in PORTS and not self.view.dry_run:
            return "provided port is not in the valid range. The range of valid ports is 30000-32767"
        if port in self.taken or port in self.own:
            return "provided port is already allocated"
        self.own.append(port)
        return ""

    def draw(self) -> int:
        """Allocate and return any free port. Raises StatusError (500) if no port is free."""
        if self.view.dry_run:
            port = max(self.own, default=_DRY_PORT) + 1
        else:
            found = drawn(PORTS, _STATIC_PORTS, self.taken | set(self.own), self.view)
            if found is None:
                raise status.internal_error("failed to allocate a nodePort: range is full")
            port = found
        self.own.append(port)
        return port


def drawn(candidates: range, static: int, taken: Collection[int], view: ClusterView) -> int | None:
    """Return a random free candidate; None if no candidate is free.

    The first ``static`` candidates are only used if all others are taken.
    """
    for part in (candidates[static:], candidates[:static]):
        free = [candidate for candidate in part if candidate not in taken]
        if free:
            return free[view.draw(len(free))]
    return None


def node_ports(services: Iterable[JsonObject]) -> set[int]:
    """Return all node ports of services, including those for health checks."""
    found = {number(service, "spec", "healthCheckNodePort") for service in services}
    for service in services:
        found |= {number(port, "nodePort") for port in ports_of(service)}
    return found - {0}


def ports_of(service: JsonObject) -> list[JsonObject]:
    """Return the ports in ``spec.ports``."""
    return objects(service, "spec", "ports")


def give_addresses(service: JsonObject, spec: JsonObject, view: ClusterView) -> None:
    """Set ``clusterIP`` and ``clusterIPs`` in ``spec``, one address for each of its ``ipFamilies``.

    Raises StatusError if a requested address is not allowed or is taken.
    """
    addresses = strings(service, "clusterIPs")
    if addresses[:1] == ["None"]:
        return
    families = strings({"spec": spec}, "ipFamilies")
    wanted = [addresses[index] if index < len(addresses) else "" for index in range(len(families))]
    given: list[JsonValue] = [_address(service, item, addresses, view) for item in wanted]
    spec["clusterIPs"] = given
    spec["clusterIP"] = given[0] if given else ""


def _address(service: JsonObject, wanted: str, addresses: list[str], view: ClusterView) -> str:
    if not wanted:
        return _any_address(service, view)
    address = parse_ip(wanted)
    shown = ip_text(address) if address is not None else wanted
    why = ""
    if address not in ADDRESSES or shown in {str(ADDRESSES.network_address), str(ADDRESSES.broadcast_address)}:
        why = "the provided network does not match the current range"
        if view.dry_run:
            why = f"the provided IP ({shown}) is not in the valid range. The range of valid IPs is {ADDRESSES}"
    elif not view.dry_run and shown in _taken_addresses(view):
        why = "provided IP is already allocated"
    if why:
        error = invalid("spec.clusterIPs", list(addresses), f"failed to allocate IP {wanted}: {why}")
        raise invalid_service(service, [error])
    return wanted


def _any_address(service: JsonObject, view: ClusterView) -> str:
    if view.dry_run:
        return str(ADDRESSES.network_address)
    first = int(ADDRESSES.network_address)
    taken = {int(ipaddress.IPv4Address(item)) for item in _taken_addresses(view) if "." in item}
    found = drawn(range(first + 1, first + ADDRESSES.num_addresses - 1), _STATIC_ADDRESSES, taken, view)
    if found is None:
        name = text(service, "metadata", "name")
        raise status.internal_error(f'failed to allocate a serviceIP for Service "{name}": range is full')
    return str(ipaddress.IPv4Address(found))


def _taken_addresses(view: ClusterView) -> set[str]:
    taken = {RESERVED}
    for other in view.objects("", "services"):
        taken |= {ip_text(found) for item in strings(other, "clusterIPs") if (found := parse_ip(item)) is not None}
    return taken


def invalid_service(service: JsonObject, errors: list[FieldError]) -> StatusError:
    """Return the 422 error of a Service."""
    return status.invalid("", "Service", text(service, "metadata", "name"), errors)
