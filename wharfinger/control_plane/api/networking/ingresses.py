"""The validation of Ingresses and their classes (networking.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.objects.addresses import legacy_ip_errors
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.objects.metadata import core_meta_errors
from wharfinger.control_plane.objects.name_rules import segment_name
from wharfinger.control_plane.objects.names import (
    dns_label_problems,
    domain_prefixed_path_errors,
    parse_ip,
    port_name_problems,
    port_problems,
    subdomain_problems,
    wildcard_subdomain_problems,
)
from wharfinger.control_plane.wire.field_errors import (
    each,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
CONTROLLER_LIMIT: Final = 250
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_SCOPES: Final = ("Cluster", "Namespace")
_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES: Final = ("/..", "/.")


def created_ingress_errors(ingress: JsonObject) -> list[FieldError]:
    """Return the errors of a new Ingress."""
    errors = _spec_errors(ingress, None)
    annotation = find(ingress, "metadata", "annotations", CLASS_ANNOTATION)
    named = find(ingress, "spec", "ingressClassName")
    if isinstance(annotation, str) and isinstance(named, str) and annotation != named:
        why = "must match `ingressClassName` when both are specified"
        errors.append(invalid(f"annotations.{CLASS_ANNOTATION}", annotation, why))
    return errors


def _spec_errors(ingress: JsonObject, old: JsonObject | None) -> list[FieldError]:
    errors: list[FieldError] = []
    rules, backend = parts(ingress, "spec", "rules"), part(ingress, "spec", "defaultBackend")
    if not rules and backend is None:
        shown: JsonValue = [*rules] if find(ingress, "spec", "rules") is not None else None
        errors.append(invalid("spec", shown, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _backend_errors(backend, "spec.defaultBackend")
    wild = old is not None and _has_invalid_wild_rule(old)
    for index, rule in enumerate(rules):
        errors += _rule_errors(rule, f"spec.rules[{index}]", wild_allowed=wild)
    secrets = old is not None and any(_secret_problems(item) for item in parts(old, "spec", "tls"))
    for index, item in enumerate(parts(ingress, "spec", "tls")):
        errors += _tls_errors(item, f"spec.tls[{index}]", any_secret=secrets)
    named = find(ingress, "spec", "ingressClassName")
    if isinstance(named, str):
        errors += each("spec.ingressClassName", named, subdomain_problems(named))
    return errors


def _tls_errors(item: JsonObject, path: str, *, any_secret: bool) -> list[FieldError]:
    errors = [
        error
        for index, host in enumerate(texts(item, "hosts"))
        for error in each(f"{path}.hosts[{index}]", host, _host_problems(host))
    ]
    return (
        errors if any_secret else errors + each(f"{path}.secretName", text(item, "secretName"), _secret_problems(item))
    )


def _secret_problems(item: JsonObject) -> list[str]:
    name = text(item, "secretName")
    return subdomain_problems(name) if name else []


def _host_problems(host: str) -> list[str]:
    return wildcard_subdomain_problems(host) if "*" in host else subdomain_problems(host)


def _has_invalid_wild_rule(old: JsonObject) -> bool:
    rules = parts(old, "spec", "rules")
    return any("*" in text(rule, "host") and _paths_errors(rule, "") for rule in rules)


def _rule_errors(rule: JsonObject, path: str, *, wild_allowed: bool) -> list[FieldError]:
    host = text(rule, "host")
    errors: list[FieldError] = []
    if host:
        if parse_ip(host) is not None:
            errors.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        errors += each(f"{path}.host", host, _host_problems(host))
    return errors if "*" in host and wild_allowed else errors + _paths_errors(rule, path)


def _paths_errors(rule: JsonObject, path: str) -> list[FieldError]:
    http = part(rule, "http")
    if http is None:
        return []
    listed = parts(http, "paths")
    errors = [] if listed else [required(f"{path}.http.paths")]
    for index, item in enumerate(listed):
        errors += _path_errors(item, f"{path}.http.paths[{index}]")
    return errors


def _path_errors(item: JsonObject, path: str) -> list[FieldError]:
    kind, value = find(item, "pathType"), text(item, "path")
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors: list[FieldError] = []
    field = f"{path}.path"
    if kind in {"Exact", "Prefix"}:
        if not value.startswith("/"):
            errors.append(invalid(field, value, "must be an absolute path"))
        errors += [invalid(field, value, f"must not contain '{part_}'") for part_ in _SEQUENCES if part_ in value]
        errors += [invalid(field, value, f"cannot end with '{end}'") for end in _SUFFIXES if value.endswith(end)]
    elif kind == "ImplementationSpecific":
        if value and not value.startswith("/"):
            errors.append(invalid(field, value, "must be an absolute path"))
    else:
        errors.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
    return errors + _backend_errors(part(item, "backend") or {}, f"{path}.backend")


def _backend_errors(backend: JsonObject, path: str) -> list[FieldError]:
    resource, service = part(backend, "resource"), part(backend, "service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _reference_errors(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name = text(service, "name")
    errors = (
        each(f"{path}.service.name", name, dns_label_problems(name)) if name else [required(f"{path}.service.name")]
    )
    port_name, port = text(service, "port", "name"), number(service, "port", "number")
    if port_name and port:
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port_name:
        errors += each(f"{path}.service.port.name", port_name, port_name_problems(port_name))
    elif port:
        errors += [invalid(f"{path}.service.port.number", port, problem) for problem in port_problems(port)]
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def _reference_errors(reference: JsonObject, path: str) -> list[FieldError]:
    group = find(reference, "apiGroup")
    errors = each(f"{path}.apiGroup", group, subdomain_problems(group)) if isinstance(group, str) else []
    for field in ("kind", "name"):
        value = text(reference, field)
        errors += each(f"{path}.{field}", value, segment_name(value, False)) if value else [required(f"{path}.{field}")]  # noqa: FBT003
    return errors


def ingress_status_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of the addresses in an Ingress's status."""
    known = [text(item, "ip") for item in parts(old, "status", "loadBalancer", "ingress")]
    errors: list[FieldError] = []
    for index, item in enumerate(parts(new, "status", "loadBalancer", "ingress")):
        path = f"status.loadBalancer.ingress[{index}]"
        ip, host = text(item, "ip"), text(item, "hostname")
        errors += legacy_ip_errors(f"{path}.ip", ip, known) if ip else []
        errors += each(f"{path}.hostname", host, subdomain_problems(host)) if host else []
        if host and parse_ip(host) is not None:
            errors.append(invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address"))
    return errors


def ingress_class_errors(one: JsonObject) -> list[FieldError]:
    """Return the errors of an IngressClass."""
    controller = text(one, "spec", "controller")
    errors = [too_long("spec.controller", CONTROLLER_LIMIT)] if len(controller) > CONTROLLER_LIMIT else []
    errors += domain_prefixed_path_errors("spec.controller", controller)
    parameters = part(one, "spec", "parameters")
    return errors if parameters is None else errors + _parameters_errors(parameters, "spec.parameters")


def _parameters_errors(parameters: JsonObject, path: str) -> list[FieldError]:
    errors = _reference_errors(parameters, path)
    scope, namespace = find(parameters, "scope"), find(parameters, "namespace")
    if scope is None:
        return [*errors, required(f"{path}.scope")]
    if scope not in _SCOPES:
        errors.append(not_supported(f"{path}.scope", scope, _SCOPES))
    elif scope == "Namespace" and not isinstance(namespace, str):
        errors.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace" and isinstance(namespace, str):
        errors += each(f"{path}.namespace", namespace, dns_label_problems(namespace))
    elif namespace is not None:
        errors.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    return errors


def _class_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    changed = immutable("spec.controller", text(new, "spec", "controller"), text(old, "spec", "controller"))
    return changed + core_meta_errors(new, old, namespaced=False) + ingress_class_errors(new)


def _deprecated(new: JsonObject, _old: JsonObject | None) -> list[str]:
    if find(new, "metadata", "annotations", CLASS_ANNOTATION) is None:
        return []
    return [f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]


INGRESS_RULES: Final[dict[str, Rules]] = {
    "Ingress.networking.k8s.io": Rules(
        create=created_ingress_errors,
        update=_spec_errors,
        status=ingress_status_errors,
        warnings=lambda new, old: _deprecated(new, old) if old is None else [],
    ),
    "IngressClass.networking.k8s.io": Rules(create=ingress_class_errors, update=_class_update_errors),
}
