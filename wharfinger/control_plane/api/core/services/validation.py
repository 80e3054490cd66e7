"""The validation of Services, except their addresses (``address_validation``)."""

from typing import Final

from wharfinger.control_plane.api.core.services.address_validation import (
    address_errors,
    changed_address_errors,
    headless,
    strings,
)
from wharfinger.control_plane.api.core.services.allocation import ports_of
from wharfinger.control_plane.objects.addresses import (
    cidr_warnings,
    endpoint_ip_errors,
    ip_warnings,
    legacy_cidr_errors,
    legacy_ip_errors,
)
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.metadata import label_errors
from wharfinger.control_plane.objects.names import (
    between,
    dns_label_problems,
    parse_ip,
    port_name_problems,
    port_problems,
    subdomain_problems,
)
from wharfinger.control_plane.wire.field_errors import (
    IMMUTABLE,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    quoted,
    required,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.selectors import key_problems

_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_ONLY_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_MAX_AFFINITY: Final = 86_400


def externally_accessible(service: JsonObject) -> bool:
    """Return whether the service can be reached from outside the cluster."""
    kind = text(service, "spec", "type")
    return kind in {"LoadBalancer", "NodePort"} or (kind == "ClusterIP" and bool(find(service, "spec", "externalIPs")))


def needs_health_check(service: JsonObject) -> bool:
    """Return whether the service needs a separate node port for health checks."""
    local = text(service, "spec", "externalTrafficPolicy") == "Local"
    return local and text(service, "spec", "type") == "LoadBalancer"


def _annotation(service: JsonObject, name: str) -> str | None:
    found = find(service, "metadata", "annotations", name)
    return found if isinstance(found, str) else None


def _service_errors(service: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    hints, mode = _annotation(service, _HINTS), _annotation(service, _MODE)
    errors: list[FieldError] = []
    if hints is not None and mode is not None and mode != hints:
        why = f"must match annotations[{_HINTS}] when both are specified"
        errors.append(invalid(f"metadata.annotations[{_MODE}]", mode, why))
    kind = text(service, "spec", "type")
    if not ports_of(service) and not headless(service) and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind == "ExternalName":
        errors += _external_name_errors(service)
    elif kind in {"LoadBalancer", "NodePort"} and headless(service):
        errors.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    errors += _each_port_errors(service)
    errors += label_errors(find(service, "spec", "selector"), "spec.selector")
    errors += _affinity_errors(service)
    errors += address_errors(service, old)
    errors += _external_ip_errors(service, old)
    if not kind:
        errors.append(required("spec.type"))
    elif kind not in _TYPES:
        errors.append(not_supported("spec.type", kind, _TYPES))
    errors += _port_number_errors(service)
    errors += _source_range_errors(service, old)
    errors += _balancer_errors(service)
    errors += _class_errors(service, None)
    return errors + _traffic_errors(service)


def _external_name_errors(service: JsonObject) -> list[FieldError]:
    errors = [
        forbidden(f"spec.{name}", "may not be set for ExternalName services")
        for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if find(service, "spec", name)
    ]
    name = text(service, "spec", "externalName").removesuffix(".")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + each("spec.externalName", name, subdomain_problems(name))


def _each_port_errors(service: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    ports = ports_of(service)
    for index, port in enumerate(ports):
        field = f"spec.ports[{index}]"
        name = text(port, "name")
        if len(ports) > 1 and not name:
            errors.append(required(f"{field}.name"))
        elif name:
            errors += each(f"{field}.name", name, dns_label_problems(name))
            errors += [duplicate(f"{field}.name", name)] if name in names else []
            names.add(name)
        errors += each_port_errors(port, field)
        errors += _target_errors(port.get("targetPort"), f"{field}.targetPort")
        errors += _protocol_name_errors(port, field)
    return errors


def each_port_errors(port: JsonObject, field: str) -> list[FieldError]:
    """Return the errors of the number and the protocol of a port, for Services and Endpoints."""
    errors = [invalid(f"{field}.port", number(port, "port"), why) for why in port_problems(number(port, "port"))]
    protocol = text(port, "protocol")
    if not protocol:
        return [*errors, required(f"{field}.protocol")]
    return errors if protocol in _PROTOCOLS else [*errors, not_supported(f"{field}.protocol", protocol, _PROTOCOLS)]


def _protocol_name_errors(port: JsonObject, field: str) -> list[FieldError]:
    protocol = port.get("appProtocol")
    return each(f"{field}.appProtocol", protocol, key_problems(protocol)) if isinstance(protocol, str) else []


def _target_errors(target: JsonValue, field: str) -> list[FieldError]:
    if isinstance(target, str):
        return each(field, target, port_name_problems(target))
    value = target if isinstance(target, int) else 0
    return [invalid(field, value, why) for why in port_problems(value)]


def _affinity_errors(service: JsonObject) -> list[FieldError]:
    affinity, config = text(service, "spec", "sessionAffinity"), find(service, "spec", "sessionAffinityConfig")
    if not affinity:
        return [required("spec.sessionAffinity")]
    field = "spec.sessionAffinityConfig"
    if affinity == "ClientIP":
        timeout = find(config, "clientIP", "timeoutSeconds")
        if config is None or find(config, "clientIP") is None or timeout is None:
            return [required(field, f"when session affinity type is {affinity}")]
        if not isinstance(timeout, int) or not 0 < timeout <= _MAX_AFFINITY:
            why = f"must be greater than 0 and less than {_MAX_AFFINITY}"
            return [invalid(f"{field}.clientIP.timeoutSeconds", timeout, why)]
        return []
    if affinity == "None":
        return [] if config is None else [forbidden(field, "must not be set when session affinity is None")]
    return [not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None"))]


def _external_ip_errors(service: JsonObject, old: JsonObject | None) -> list[FieldError]:
    errors: list[FieldError] = []
    existing = strings(old, "externalIPs") if old is not None else []
    for index, address in enumerate(strings(service, "externalIPs")):
        field = f"spec.externalIPs[{index}]"
        errors += legacy_ip_errors(field, address, existing) or endpoint_ip_errors(field, address)
    return errors


def _port_number_errors(service: JsonObject) -> list[FieldError]:
    ports = ports_of(service)
    errors: list[FieldError] = []
    if text(service, "spec", "type") == "ClusterIP":
        why = "may not be used when `type` is 'ClusterIP'"
        errors += [
            forbidden(f"spec.ports[{index}].nodePort", why)
            for index, port in enumerate(ports)
            if number(port, "nodePort")
        ]
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (text(port, "protocol"), number(port, "nodePort"))
        if key[1] and key in seen:
            errors.append(duplicate(f"spec.ports[{index}].nodePort", key[1]))
        seen.add(key)
    seen = set()
    for index, port in enumerate(ports):
        key = (text(port, "protocol"), number(port, "port"))
        if key in seen:
            shown: JsonObject = {"Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1]}
            errors.append(duplicate(f"spec.ports[{index}]", {**shown, "TargetPort": 0, "NodePort": 0}))
        seen.add(key)
    return errors


def _source_range_errors(service: JsonObject, old: JsonObject | None) -> list[FieldError]:
    balanced = text(service, "spec", "type") == "LoadBalancer"
    ranges = strings(service, "loadBalancerSourceRanges")
    if ranges:
        field = "spec.LoadBalancerSourceRanges"
        errors = [] if balanced else [forbidden(field, _ONLY_BALANCED)]
        existing = [item.strip() for item in strings(old, "loadBalancerSourceRanges")] if old is not None else []
        for index, item in enumerate(ranges):
            errors += legacy_cidr_errors(f"{field}[{index}]", item.strip(), existing)
        return errors
    annotation = _annotation(service, _RANGES)
    if annotation is None:
        return []
    field = f"metadata.annotations[{_RANGES}]"
    errors = [] if balanced else [forbidden(field, _ONLY_BALANCED)]
    if (old is None or _annotation(old, _RANGES) != annotation) and annotation.strip():
        for item in annotation.strip().split(","):
            errors += legacy_cidr_errors(field, item.strip())
    return errors


def _balancer_errors(service: JsonObject) -> list[FieldError]:
    allocate = find(service, "spec", "allocateLoadBalancerNodePorts")
    balanced = text(service, "spec", "type") == "LoadBalancer"
    if allocate is not None and not balanced:
        return [forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED)]
    return [required("allocateLoadBalancerNodePorts")] if balanced and allocate is None else []


def _class_errors(service: JsonObject, old: JsonObject | None) -> list[FieldError]:
    field = "spec.loadBalancerClass"
    name = find(service, "spec", "loadBalancerClass")
    balanced = text(service, "spec", "type") == "LoadBalancer"
    errors: list[FieldError] = []
    both = old is not None and balanced and text(old, "spec", "type") == "LoadBalancer"
    if both and find(old, "spec", "loadBalancerClass") != name:
        errors.append(invalid(field, name, "may not change once set"))
    if not isinstance(name, str):
        return errors
    return errors + (each(field, name, key_problems(name)) if balanced else [forbidden(field, _ONLY_BALANCED)])


def _traffic_errors(service: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    policy, field = text(service, "spec", "externalTrafficPolicy"), "spec.externalTrafficPolicy"
    if not externally_accessible(service):
        errors += [invalid(field, policy, "may only be set for externally-accessible services")] if policy else []
    elif not policy:
        errors.append(required(field))
    elif policy not in {"Cluster", "Local"}:
        errors.append(not_supported(field, policy, ("Cluster", "Local")))
    errors += _health_check_errors(service)
    field = "spec.internalTrafficPolicy"
    internal = find(service, "spec", "internalTrafficPolicy")
    if internal is None and text(service, "spec", "type") in {"ClusterIP", "NodePort", "LoadBalancer"}:
        errors.append(required(field))
    elif internal is not None and internal not in {"Cluster", "Local"}:
        errors.append(not_supported(field, internal, ("Cluster", "Local")))
    distribution = find(service, "spec", "trafficDistribution")
    known = ("PreferClose", "PreferSameZone", "PreferSameNode")
    if distribution is not None and distribution not in known:
        errors.append(not_supported("spec.trafficDistribution", distribution, known))
    return errors


def _health_check_errors(service: JsonObject) -> list[FieldError]:
    port, field = number(service, "spec", "healthCheckNodePort"), "spec.healthCheckNodePort"
    if not needs_health_check(service):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        return [invalid(field, port, why)] if port else []
    if not port:
        return [required(field)]
    return [] if 1 <= port <= 65535 else [invalid(field, port, between(1, 65535))]


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = changed_address_errors(new, old) + _class_errors(new, old)
    checked = needs_health_check(old) and needs_health_check(new)
    if checked and number(new, "spec", "healthCheckNodePort") != number(old, "spec", "healthCheckNodePort"):
        errors.append(forbidden("spec.healthCheckNodePort", IMMUTABLE))
    return errors + _service_errors(new, old)


def _status_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return balancer_status_errors(new, old, balanced=text(new, "spec", "type") == "LoadBalancer")


def balancer_status_errors(new: JsonObject, old: JsonObject | None, *, balanced: bool) -> list[FieldError]:
    """Return the errors of ``status.loadBalancer`` of a Service (``ValidateLoadBalancerStatus``)."""
    field = "status.loadBalancer.ingress"
    points = _ingresses(new)
    if points and not balanced:
        return [forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'")]
    existing = [text(point, "ip") for point in _ingresses(old or {}) if text(point, "ip")]
    errors: list[FieldError] = []
    for index, point in enumerate(points):
        errors += _ingress_errors(point, f"{field}[{index}]", existing)
    return errors


def _ingresses(service: JsonObject) -> list[JsonObject]:
    found = find(service, "status", "loadBalancer", "ingress")
    return [point for point in found if isinstance(point, dict)] if isinstance(found, list) else []


def _ingress_errors(point: JsonObject, field: str, existing: list[str]) -> list[FieldError]:
    address, mode, host = text(point, "ip"), point.get("ipMode"), text(point, "hostname")
    errors = legacy_ip_errors(f"{field}.ip", address, existing) if address else []
    if mode is None:
        errors += [required(f"{field}.ipMode", "must be specified when `ip` is set")] if address else []
    elif not address:
        errors.append(forbidden(f"{field}.ipMode", "may not be specified when `ip` is not set"))
    elif mode not in {"VIP", "Proxy"}:
        errors.append(not_supported(f"{field}.ipMode", mode, ("Proxy", "VIP")))
    if host:
        errors += each(f"{field}.hostname", host, subdomain_problems(host))
        if parse_ip(host) is not None:
            errors.append(invalid(f"{field}.hostname", host, "must be a DNS name, not an IP address"))
    return errors


def _status_warnings(service: JsonObject, _old: JsonObject | None) -> list[str]:
    field = "status.loadBalancer.ingress"
    points = enumerate(_ingresses(service))
    return [said for index, point in points for said in ip_warnings(f"{field}[{index}]", text(point, "ip"))]


def _warnings(service: JsonObject, _old: JsonObject | None) -> list[str]:
    spec_type = text(service, "spec", "type")
    address = text(service, "spec", "clusterIP")
    bare = spec_type == "ClusterIP" and address == "None"
    external = strings(service, "externalIPs")
    warnings = []
    if _annotation(service, _HINTS) is not None:
        warnings.append(f"annotation {_HINTS} is deprecated, please use {_MODE} instead")
    if address and address != "None":
        for index, item in enumerate(strings(service, "clusterIPs")):
            warnings += ip_warnings(f"spec.clusterIPs[{index}]", item)
    if bare:
        warnings += _headless_warnings(service)
    for index, item in enumerate(external):
        warnings += ip_warnings(f"spec.externalIPs[{index}]", item)
    if external and not bare and spec_type != "ExternalName":
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if balanced := text(service, "spec", "loadBalancerIP"):
        warnings += ip_warnings("spec.loadBalancerIP", balanced)
    for index, item in enumerate(strings(service, "loadBalancerSourceRanges")):
        warnings += cidr_warnings(f"spec.loadBalancerSourceRanges[{index}]", item)
    if spec_type == "ExternalName" and external:
        warnings.append(f"spec.externalIPs is ignored when spec.type is {quoted('ExternalName')}")
    if spec_type != "ExternalName" and text(service, "spec", "externalName"):
        warnings.append(f"spec.externalName is ignored when spec.type is not {quoted('ExternalName')}")
    if find(service, "spec", "trafficDistribution") == "PreferClose":
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings


def _headless_warnings(service: JsonObject) -> list[str]:
    ignored = [
        (text(service, "spec", "loadBalancerIP"), "loadBalancerIP"),
        (find(service, "spec", "externalIPs"), "externalIPs"),
        (text(service, "spec", "sessionAffinity") != "None", "SessionAffinity"),
    ]
    return [f"spec.{name} is ignored for headless services" for is_set, name in ignored if is_set]


SERVICE_RULES: Final = Rules(
    create=_service_errors,
    update=_update_errors,
    status=_status_errors,
    warnings=_warnings,
    status_warnings=_status_warnings,
)
