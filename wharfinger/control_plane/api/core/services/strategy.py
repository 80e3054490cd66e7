"""The strategy of Services: families, addresses and ports that the server sets, and fields that it drops when the type
changes.

A client may set either or both of ``clusterIP`` and ``clusterIPs``, omit allocated values, and change the type. The functions
here derive the other fields from that. Only IPv4 is configured here. Source: ``pkg/registry/core/service`` of kube-apiserver.
"""

from typing import Final

from wharfinger.control_plane.api.core.services.address_validation import address_errors, as_list, strings
from wharfinger.control_plane.api.core.services.allocation import (
    Ports,
    give_addresses,
    invalid_service,
    node_ports,
    ports_of,
)
from wharfinger.control_plane.api.core.services.validation import externally_accessible, needs_health_check
from wharfinger.control_plane.objects.addresses import is_ipv6
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.strategy import ClusterView, Strategy
from wharfinger.control_plane.wire.field_errors import invalid
from wharfinger.control_plane.wire.status import FieldError, internal, internal_error
from wharfinger.formats.json.value import JsonObject, JsonValue, find

_SINGLE: Final = "SingleStack"
_EXPOSED: Final = frozenset({"NodePort", "LoadBalancer"})


def _kind(service: JsonObject) -> str:
    return text(service, "spec", "type")


def _copied(service: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return a copy of a service whose spec and ports may be modified, and the spec of the copy."""
    spec = service.get("spec")
    spec = dict(spec) if isinstance(spec, dict) else {}
    ports = spec.get("ports")
    if isinstance(ports, list):
        spec["ports"] = [dict(port) if isinstance(port, dict) else port for port in ports]
    return {**service, "spec": spec}, spec


def create_service(obj: JsonObject, view: ClusterView) -> JsonObject:
    """Return a new Service with its addresses and ports. Raises StatusError."""
    service, spec = _copied(obj)
    if text(service, "spec", "clusterIP") and not strings(service, "clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _fill_families(service, spec, None)
    if _kind(service) != "ExternalName":
        give_addresses(service, spec, view)
    ports = Ports(view, node_ports(view.objects("", "services")) if _kind(service) in _EXPOSED else set())
    if _kind(service) in _EXPOSED:
        _give_new_ports(service, ports)
    if needs_health_check(service):
        _give_health_port(service, spec, ports)
    return _as_read({**service, "status": {"loadBalancer": {}}})


def update_service(new: JsonObject, old: JsonObject, view: ClusterView) -> JsonObject:
    """Return an updated Service: it keeps allocated values that the client omits, and gets missing ones. Raises StatusError."""
    service, spec = _copied(new)
    _keep_given(service, spec, old)
    _match_addresses(service, spec, old)
    _fill_families(service, spec, old)
    if _kind(old) == "ExternalName" != _kind(service):
        give_addresses(service, spec, view)
    if _kind(service) in _EXPOSED:
        mine = text(old, "metadata", "uid")
        others = [item for item in view.objects("", "services") if text(item, "metadata", "uid") != mine]
        ports = Ports(view, node_ports([*others, old]))
        _give_ports(service, old, ports)
        if needs_health_check(service) and not needs_health_check(old):
            _give_health_port(service, spec, ports)
    _drop_of_type(service, spec, old)
    if _kind(service) != "LoadBalancer":
        service["status"] = {**_status(service), "loadBalancer": {}}
    return _as_read(service)


def _status(service: JsonObject) -> JsonObject:
    found = service.get("status")
    return found if isinstance(found, dict) else {}


def _as_read(service: JsonObject) -> JsonObject:
    """Drop a valid ``internalTrafficPolicy`` from an ExternalName service, as kube-apiserver does in every response."""
    spec = service["spec"]
    named = isinstance(spec, dict) and _kind(service) == "ExternalName"
    if isinstance(spec, dict) and named and spec.get("internalTrafficPolicy") in {"Cluster", "Local"}:
        del spec["internalTrafficPolicy"]
    return service


def _keep_given(service: JsonObject, spec: JsonObject, old: JsonObject) -> None:
    """Keep the allocated values that the client omitted (``patchAllocatedValues``)."""
    if "ExternalName" not in {_kind(service), _kind(old)}:
        if not spec.get("clusterIP"):
            spec["clusterIP"] = text(old, "spec", "clusterIP")
        if not strings(service, "clusterIPs") and strings(old, "clusterIPs"):
            spec["clusterIPs"] = list(strings(old, "clusterIPs"))
    if _needs_node_ports(old) and _needs_node_ports(service):
        before = {text(port, "name"): number(port, "nodePort") for port in ports_of(old)}
        both = set(before.values()) & {number(port, "nodePort") for port in ports_of(service)}
        for port in ports_of(service):
            known = before.get(text(port, "name"), 0)
            if not number(port, "nodePort") and known and known not in both:
                port["nodePort"] = known
    if needs_health_check(old) and needs_health_check(service) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = number(old, "spec", "healthCheckNodePort")


def _needs_node_ports(service: JsonObject) -> bool:
    allocate = find(service, "spec", "allocateLoadBalancerNodePorts")
    return _kind(service) == "NodePort" or (_kind(service) == "LoadBalancer" and allocate is not False)


def _match_addresses(service: JsonObject, spec: JsonObject, old: JsonObject) -> None:
    """Set ``clusterIPs`` if the client omitted it, or changed only ``clusterIP`` (``normalizeClusterIPs``)."""
    before, after = text(old, "spec", "clusterIP"), text(service, "spec", "clusterIP")
    if strings(old, "clusterIPs") and not strings(service, "clusterIPs") and before == after:
        spec["clusterIPs"] = list(strings(old, "clusterIPs"))
    if before != after and strings(old, "clusterIPs") == strings(service, "clusterIPs"):
        if before and not after:
            spec.pop("clusterIPs", None)
        else:
            spec["clusterIPs"] = [after]


def _fill_families(service: JsonObject, spec: JsonObject, old: JsonObject | None) -> None:
    """Set ``ipFamilyPolicy`` and ``ipFamilies`` (``initIPFamilyFields``). Raises StatusError."""
    if _kind(service) == "ExternalName" or _prefers_as_before(service, old):
        return
    bare = text(service, "spec", "clusterIP") == "None" and not find(service, "spec", "selector")
    if spec.get("ipFamilyPolicy") is None:
        before = find(old, "spec", "ipFamilyPolicy") if old is not None else None
        spec["ipFamilyPolicy"] = before or ("RequireDualStack" if bare else _SINGLE)
    if errors := address_errors(service, old):
        raise invalid_service(service, errors)
    if errors := _stack_errors(service, spec, old) + _match_families(service, spec):
        raise invalid_service(service, errors)
    if bare:
        families = strings(service, "ipFamilies") or ["IPv4"]
        if len(families) < 2 and spec["ipFamilyPolicy"] != _SINGLE:
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
        spec["ipFamilies"] = list[JsonValue](families)
        return
    policy = spec["ipFamilyPolicy"]
    if policy == "RequireDualStack":
        errors.append(invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services"))
    for index, family in enumerate(strings(service, "ipFamilies")):
        if family != "IPv4":
            errors.append(invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
    if errors:
        raise invalid_service(service, errors)
    if not strings(service, "ipFamilies"):
        spec["ipFamilies"] = ["IPv4"]


def _prefers_as_before(service: JsonObject, old: JsonObject | None) -> bool:
    """Return whether an update of a ``PreferDualStack`` service changes neither its type nor its addresses nor its families."""
    if old is None or _kind(old) != _kind(service) or find(service, "spec", "ipFamilyPolicy") != "PreferDualStack":
        return False
    return (
        find(old, "spec", "ipFamilyPolicy") in {None, "PreferDualStack"}
        and strings(old, "clusterIPs") == strings(service, "clusterIPs")
        and strings(old, "ipFamilies") == strings(service, "ipFamilies")
    )


def _stack_errors(service: JsonObject, spec: JsonObject, old: JsonObject | None) -> list[FieldError]:
    field, policy = "spec.ipFamilyPolicy", spec["ipFamilyPolicy"]
    errors: list[FieldError] = []
    for name, what, plural in (
        ("clusterIPs", "cluster IP", "cluster IPs"),
        ("ipFamilies", "IP family", "IP families"),
    ):
        before, after = strings(old, name) if old is not None else [], strings(service, name)
        if policy == _SINGLE and old is not None and before == after and len(after) > 1:
            spec[name] = [after[0]]
        elif policy != _SINGLE and after and len(after) < len(before):
            errors.append(invalid(field, policy, f"must be '{_SINGLE}' to release the secondary {what}"))
        if policy == _SINGLE and len(strings(service, name)) == 2:
            why = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {plural} are specified"
            errors.append(invalid(field, policy, why))
    return errors


def _match_families(service: JsonObject, spec: JsonObject) -> list[FieldError]:
    """Add to ``ipFamilies`` the missing families of the addresses in ``clusterIPs``, and return the errors."""
    errors: list[FieldError] = []
    addresses = strings(service, "clusterIPs")
    for index, address in enumerate(addresses):
        if address == "None":
            break
        families = strings(service, "ipFamilies")
        if index < len(families):
            continue
        if is_ipv6(address):
            why = "IPv6 is not configured on this cluster"
            errors.append(invalid(f"spec.clusterIPs[{index}]", as_list(service, "clusterIPs"), why))
        else:
            spec["ipFamilies"] = [*families, "IPv4"]
    return errors


def _give_new_ports(service: JsonObject, ports: Ports) -> None:
    """Allocate node ports of a new service; one port with two protocols gets one node port. Raises StatusError."""
    given: dict[int, int] = {}
    for index, port in enumerate(ports_of(service)):
        if not number(port, "nodePort") and not _allocates(service):
            continue
        listens = number(port, "port")
        known, asked = given.get(listens, 0), number(port, "nodePort")
        if known:
            if not asked:
                port["nodePort"] = known
            elif asked != known:
                _take(service, ports, index, asked)
            continue
        same = (number(item, "nodePort") for item in ports_of(service) if number(item, "port") == listens)
        wanted = next((item for item in same if item), 0)
        if wanted:
            _take(service, ports, index, wanted)
        else:
            wanted = ports.draw()
        port["nodePort"] = given[listens] = wanted


def _allocates(service: JsonObject) -> bool:
    return _kind(service) == "NodePort" or find(service, "spec", "allocateLoadBalancerNodePorts") is True


def _take(service: JsonObject, ports: Ports, index: int, wanted: int) -> None:
    if why := ports.take(wanted):
        raise invalid_service(service, [invalid(f"spec.ports[{index}].nodePort", wanted, why)])


def _give_ports(service: JsonObject, old: JsonObject, ports: Ports) -> None:
    """Allocate node ports of a changed service. Raises StatusError."""
    before = {number(port, "nodePort") for port in ports_of(old)}
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports_of(service)):
        asked = number(port, "nodePort")
        if not asked and not _allocates(service):
            continue
        if asked and asked not in before and asked not in ports.own:
            _take(service, ports, index, asked)
        elif not asked:
            port["nodePort"] = asked = ports.draw()
        key = (text(port, "protocol"), asked)
        if key in seen:
            raise internal(f"duplicate nodePort: {{{key[0]} {key[1]}}}")
        seen.add(key)


def _give_health_port(service: JsonObject, spec: JsonObject, ports: Ports) -> None:
    asked = number(service, "spec", "healthCheckNodePort")
    if not asked:
        spec["healthCheckNodePort"] = ports.draw()
    elif why := ports.take(asked):
        raise internal_error(f"failed to allocate requested HealthCheck NodePort {asked}: {why}")


def _drop_of_type(service: JsonObject, spec: JsonObject, old: JsonObject) -> None:
    """Drop the fields of the old type that the client did not change (``dropTypeDependentFields``)."""
    kind, before = _kind(service), _kind(old)
    if before != "ExternalName" == kind:
        if all(find(old, "spec", name) == spec.get(name) for name in ("clusterIP", "clusterIPs")):
            _drop(spec, "clusterIP", "clusterIPs")
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(name) == find(old, "spec", name):
                _drop(spec, name)
    if before in _EXPOSED and kind not in _EXPOSED:
        had = {number(port, "nodePort") for port in ports_of(old)}
        if {number(port, "nodePort") for port in ports_of(service)} - {0} <= had:
            for port in ports_of(service):
                _drop(port, "nodePort")
    dropped = [
        (needs_health_check(old) and not needs_health_check(service), "healthCheckNodePort"),
        (before == "LoadBalancer" != kind, "allocateLoadBalancerNodePorts"),
        (before == "LoadBalancer" != kind, "loadBalancerClass"),
        (externally_accessible(old) and not externally_accessible(service), "externalTrafficPolicy"),
    ]
    for went, name in dropped:
        if went and spec.get(name) == find(old, "spec", name):
            _drop(spec, name)


def _drop(spec: JsonObject, *names: str) -> None:
    for name in names:
        spec.pop(name, None)


SERVICE_STRATEGY: Final = Strategy(create=create_service, update=update_service)
