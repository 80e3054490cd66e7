"""The validation of a pod spec, in a Pod or in the template of a workload, as in kube-apiserver.

Errors have the same order as in kube-apiserver, because the response lists them in the order in which they are found. The
other modules of this folder validate the parts of a spec (volumes, containers, scheduling, security); this module combines
them.
"""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.amounts import container_amounts
from wharfinger.control_plane.api.core.pod_specs.annotations import MIRROR, agreement_errors, annotation_errors
from wharfinger.control_plane.api.core.pod_specs.claim_specs import claim_spec_errors
from wharfinger.control_plane.api.core.pod_specs.containers import ContainerRules
from wharfinger.control_plane.api.core.pod_specs.resources import PAGES, pod_resource_name_errors, resource_errors
from wharfinger.control_plane.api.core.pod_specs.scheduling import (
    affinity_errors,
    gate_errors,
    spread_errors,
    toleration_errors,
)
from wharfinger.control_plane.api.core.pod_specs.security import pod_context_errors
from wharfinger.control_plane.api.core.pod_specs.volumes import VolumeRules, volume_errors
from wharfinger.control_plane.api.core.pod_specs.windows import all_containers, host_process_errors, system_errors
from wharfinger.control_plane.objects.addresses import legacy_ip_errors
from wharfinger.control_plane.objects.amounts import number, optional_number, text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.label_selectors import labels_errors
from wharfinger.control_plane.objects.lenient_fields import flag, part, parts, text_map, texts
from wharfinger.control_plane.objects.metadata import annotation_errors as plain_annotation_errors
from wharfinger.control_plane.objects.names import (
    MAX_INT32,
    between,
    dns_label_problems,
    subdomain_problems,
    underscored_subdomain_problems,
)
from wharfinger.control_plane.wire.field_errors import (
    NOWHERE,
    absent,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.quantities import amount, canonical_quantity

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_NAMESERVERS: Final = 3
_SEARCHES: Final = 32
_SEARCH_LENGTH: Final = 2048
_HOSTNAME_LENGTH: Final = 64
_NOT_OWN_USERS: Final = "when `hostUsers` is false"


def pod_template_errors(template: JsonObject, path: str) -> list[FieldError]:
    """Return all errors of the pod template (``metadata`` and ``spec``) at ``path``, such as ``spec.template``."""
    metadata, spec = part(template, "metadata") or {}, part(template, "spec") or {}
    errors = labels_errors(metadata.get("labels"), f"{path}.labels")
    errors += plain_annotation_errors(metadata.get("annotations"), f"{path}.annotations")
    errors += annotation_errors(metadata, spec, f"{path}.annotations")
    errors += pod_spec_errors(spec, f"{path}.spec", template=True)
    errors += agreement_errors(metadata, spec, f"{path}.spec")
    if parts(spec, "ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", why))
    return errors


def pod_spec_errors(spec: JsonObject, path: str, *, template: bool, metadata: JsonValue = None) -> list[FieldError]:
    """Return all errors of the pod spec at ``path``; for a Pod, ``metadata`` is the Pod's metadata."""
    grace = optional_number(spec, "terminationGracePeriodSeconds")
    errors = [required(f"{path}.terminationGracePeriodSeconds")] if grace is None else []
    name = "" if template else text(metadata, "name")
    volumes, found = volume_errors(spec, path, VolumeRules(name, not template, claim_spec_errors))
    errors += found
    claims = {text(claim, "name") for claim in parts(spec, "resourceClaims")} - {""}
    errors += _claim_errors(spec, metadata, f"{path}.resourceClaims")
    rules = ContainerRules(volumes, claims, grace, text(spec, "restartPolicy"), spec.get("hostUsers") is not False)
    regular, initial = parts(spec, "containers"), parts(spec, "initContainers")
    errors += rules.regular(regular, f"{path}.containers")
    errors += rules.initial(initial, regular, f"{path}.initContainers")
    ephemeral = parts(spec, "ephemeralContainers")
    errors += rules.ephemeral(ephemeral, regular + initial, f"{path}.ephemeralContainers")
    errors += _pod_resource_errors(spec, f"{path}.resources", claims)
    errors += _host_port_errors(spec, path, template=template)
    errors += _choice(spec, path, "restartPolicy", _RESTART_POLICIES)
    errors += _choice(spec, path, "dnsPolicy", _DNS_POLICIES)
    errors += labels_errors(spec.get("nodeSelector"), f"{path}.nodeSelector")
    errors += pod_context_errors(spec, path)
    errors += affinity_errors(spec, path)
    errors += _dns_errors(spec, f"{path}.dnsConfig")
    errors += gate_errors(spec, path)
    errors += spread_errors(spec, path)
    errors += host_process_errors(spec, path)
    errors += _host_user_errors(spec, path)
    errors += _hostname_override_errors(spec, f"{path}.hostnameOverride")
    errors += _plain_errors(spec, path)
    errors += system_errors(spec, path)
    return errors + _file_volume_errors(spec, path)


def _choice(spec: JsonObject, path: str, name: str, known: tuple[str, ...]) -> list[FieldError]:
    value = text(spec, name)
    if not value:
        return [required(f"{path}.{name}")]
    return [] if value in known else [not_supported(f"{path}.{name}", value, known)]


def node_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``nodeName``."""
    return _name_errors(spec, path, "nodeName")


def _name_errors(spec: JsonObject, path: str, name: str) -> list[FieldError]:
    said = text(spec, name)
    return each(f"{path}.{name}", said, subdomain_problems(said)) if spec.get(name) else []


def _plain_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the fields that depend on no other field."""
    errors = _name_errors(spec, path, "serviceAccountName") + node_errors(spec, path)
    deadline = optional_number(spec, "activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, between(1, MAX_INT32)))
    for name in ("hostname", "subdomain"):
        errors += each(
            f"{path}.{name}", text(spec, name), dns_label_problems(text(spec, name)) if spec.get(name) else []
        )
    errors += toleration_errors(spec.get("tolerations"), f"{path}.tolerations")
    for index, alias in enumerate(parts(spec, "hostAliases")):
        at, address = f"{path}.hostAliases[{index}]", text(alias, "ip")
        errors += legacy_ip_errors(f"{at}.ip", address)
        for place, host in enumerate(texts(alias, "hostnames")):
            errors += each(f"{at}.hostnames[{place}]", host, subdomain_problems(host))
    priority, runtime = text(spec, "priorityClassName"), spec.get("runtimeClassName")
    if priority:
        errors += each(f"{path}.priorityClassName", priority, subdomain_problems(priority))
    if isinstance(runtime, str):
        errors += each(f"{path}.runtimeClassName", runtime, subdomain_problems(runtime))
    if spec.get("preemptionPolicy") is not None:
        errors += _choice(spec, path, "preemptionPolicy", _PREEMPTION_POLICIES)
    overhead = part(spec, "overhead")
    return errors + (resource_errors({"limits": overhead}, f"{path}.overhead", ()) if overhead else [])


def _claim_errors(spec: JsonObject, metadata: JsonValue, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(parts(spec, "resourceClaims")):
        if MIRROR in text_map(metadata, "annotations"):
            errors.append(forbidden(NOWHERE, "static pods do not support resource claims"))
            continue
        at, name = f"{path}[{index}]", text(claim, "name")
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in seen:
            errors.append(duplicate(f"{at}.name", name))
        else:
            errors += each(f"{at}.name", name, dns_label_problems(name))
            seen.add(name)
        sources = [
            field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None
        ]
        shown = internal_form("core.PodResourceClaim", claim)
        if len(sources) > 1:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(at, shown, why))
        if not sources:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(at, shown, why))
        for field in sources:
            errors += each(f"{at}.{field}", text(claim, field), subdomain_problems(text(claim, field)))
    return errors


def _pod_resource_errors(spec: JsonObject, path: str, claims: set[str]) -> list[FieldError]:
    """Return the errors of the resources of the pod as a whole (KEP-2837)."""
    resources = part(spec, "resources")
    if resources is None:
        return []
    if text(spec, "os", "name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors: list[FieldError] = []
    if resources.get("claims") is not None:
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += resource_errors(resources, path, claims, pod_resource_name_errors)
    limits, requests = part(resources, "limits") or {}, part(resources, "requests") or {}
    asked, most = container_amounts(spec, "requests"), container_amounts(spec, "limits")
    for name in sorted(asked.numbers.keys() & requests.keys()):
        if asked.numbers[name] > amount(requests[name]):
            why = f"must be greater than or equal to aggregate container requests of {asked.text(name)}"
            errors.append(invalid(f"{path}.requests[{name}]", canonical_quantity(requests[name]), why))
    for name in sorted(most.numbers.keys() & limits.keys()):
        if name.startswith(PAGES) and most.numbers[name] > amount(limits[name]):
            why = f"must be greater than or equal to aggregate container limits of {most.text(name)}"
            errors.append(invalid(f"{path}.limits[{name}]", canonical_quantity(limits[name]), why))
    for index, container in enumerate(parts(spec, "containers")):
        own = part(container, "resources", "limits") or {}
        for name in sorted(own.keys() & limits.keys()):
            if amount(own[name]) > amount(limits[name]):
                why = f"must be less than or equal to pod limits of {canonical_quantity(limits[name])}"
                where = f"{path}.containers[{index}][{name}].limits"
                errors.append(invalid(where, canonical_quantity(own[name]), why))
    return errors


def _host_port_errors(spec: JsonObject, path: str, *, template: bool) -> list[FieldError]:
    """Return the errors of ``hostPort`` with ``hostNetwork``: it must equal ``containerPort``, but a template may omit it."""
    if not flag(spec, "hostNetwork"):
        return []
    errors: list[FieldError] = []
    for index, container in enumerate(parts(spec, "containers")):
        for place, port in enumerate(parts(container, "ports")):
            outside = number(port, "hostPort")
            if (not template or outside) and outside != number(port, "containerPort"):
                why = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(f"{path}.containers[{index}].ports[{place}].hostPort", outside, why))
    return errors


def _dns_errors(spec: JsonObject, path: str) -> list[FieldError]:
    config = part(spec, "dnsConfig")
    if text(spec, "dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not texts(config, "nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", why)]
    servers, searches = texts(config, "nameservers"), texts(config, "searches")
    errors: list[FieldError] = []
    if len(servers) > _NAMESERVERS:
        why = f"must not have more than {_NAMESERVERS} nameservers"
        errors.append(invalid(f"{path}.nameservers", list(servers), why))
    for index, server in enumerate(servers):
        errors += legacy_ip_errors(f"{path}.nameservers[{index}]", server)
    if len(searches) > _SEARCHES:
        why = f"must not have more than {_SEARCHES} search paths"
        errors.append(invalid(f"{path}.searches", list(searches), why))
    if len(" ".join(searches).encode()) > _SEARCH_LENGTH:
        why = f"must not have more than {_SEARCH_LENGTH} characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", list(searches), why))
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        problems = [] if search == "." else underscored_subdomain_problems(name)
        errors += each(f"{path}.searches[{index}]", name, problems)
    unnamed = [index for index, option in enumerate(parts(config, "options")) if not text(option, "name")]
    return errors + [required(f"{path}.options[{index}]", "must not be empty") for index in unnamed]


def _host_user_errors(spec: JsonObject, path: str) -> list[FieldError]:
    if spec.get("hostUsers") is not False:
        return []
    found = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    errors = [forbidden(f"{path}.{shown}", _NOT_OWN_USERS) for name, shown in found if flag(spec, name)]
    for container, at in all_containers(spec, path):
        if parts(container, "volumeDevices"):
            errors.append(forbidden(f"{at}.volumeDevices", _NOT_OWN_USERS))
    return errors


def _hostname_override_errors(spec: JsonObject, path: str) -> list[FieldError]:
    name = spec.get("hostnameOverride")
    if not isinstance(name, str):
        return []
    errors: list[FieldError] = []
    if flag(spec, "setHostnameAsFQDN"):
        errors.append(forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
    if flag(spec, "hostNetwork"):
        errors.append(forbidden(path, "may not be specified when hostNetwork is true"))
    if len(name.encode()) > _HOSTNAME_LENGTH:
        errors.append(too_long(path, _HOSTNAME_LENGTH))
    return errors + each(path, name, subdomain_problems(name))


def _file_volume_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return an error for each environment variable that is read from a file (``fileKeyRef``) outside an emptyDir volume."""
    volumes = {text(volume, "name"): volume for volume in parts(spec, "volumes")}
    errors: list[FieldError] = []
    for container, at in all_containers(spec, path):
        for index, variable in enumerate(parts(container, "env")):
            reference = part(variable, "valueFrom", "fileKeyRef")
            if reference is None:
                continue
            name, where = text(reference, "volumeName"), f"{at}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                errors.append(absent(where, name))
            elif part(volumes[name], "emptyDir") is None:
                errors.append(invalid(where, name, "referenced volume must be of type emptyDir"))
    return errors
