"""Table cells of the kinds that belong neither to the core group nor to workloads: ingresses, roles, classes, admission,
certificates, flow control. Also the cells of ComponentStatus.
"""

from datetime import datetime, timedelta
from typing import Final

from wharfinger.control_plane.api.common.cells import (
    NONE,
    UNSET,
    balanced,
    condition,
    deleted,
    format_labels,
    said,
    strings,
)
from wharfinger.control_plane.api.common.default_class import INGRESS_MARKS, STORAGE_MARKS, is_default_class
from wharfinger.control_plane.api.common.filling import objects
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_str
from wharfinger.kube.times import age, human_duration

_HOSTS_SHOWN: Final = 3
_MAX_SECONDS: Final = 1 << 32


def class_name(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the name of a class, followed by ``(default)`` if the class is the default one."""
    default = is_default_class(obj, INGRESS_MARKS if obj.get("kind") == "IngressClass" else STORAGE_MARKS)
    return f"{said(obj, 'metadata', 'name')} (default)" if default else said(obj, "metadata", "name")


def ingress_hosts(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the hosts of the rules, ``*`` if none is named."""
    rules, shown, more = objects(obj, "spec", "rules"), list[str](), False
    for rule in rules:
        more = more or len(shown) == _HOSTS_SHOWN
        if not more and said(rule, "host"):
            shown.append(said(rule, "host"))
    hosts = ",".join(shown) or "*"
    return f"{hosts} + {len(rules) - _HOSTS_SHOWN} more..." if more else hosts


def ingress_address(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the addresses of the load balancer."""
    return balanced(obj)


def ingress_ports(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the ports of an Ingress: ``80``, or ``80, 443`` with TLS."""
    return "80, 443" if objects(obj, "spec", "tls") else "80"


def class_parameters(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the reference to the parameters of an IngressClass: ``Kind.group/name``."""
    found = find(obj, "spec", "parameters")
    if found is None:
        return NONE
    group = find(found, "apiGroup")
    kind = f"{said(found, 'kind')}.{group}" if isinstance(group, str) else said(found, "kind")
    return f"{kind}/{said(found, 'name')}"


def address_parent(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the parent of an IPAddress: ``services/default/kubernetes``."""
    found = find(obj, "spec", "parentRef")
    if found is None:
        return NONE
    group, resource = said(found, "group"), said(found, "resource")
    named = (f"{resource}.{group}" if group else resource).lower()
    return "/".join(part for part in (named, said(found, "namespace")) if part) + f"/{said(found, 'name')}"


def role_ref(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the role of a binding: ``Role/name``."""
    return f"{said(obj, 'roleRef', 'kind')}/{said(obj, 'roleRef', 'name')}"


def subjects(kind: str, obj: JsonObject) -> str:
    """Return the names of a binding's subjects of this kind; for service accounts, with their namespaces."""
    found = [item for item in objects(obj, "subjects") if item.get("kind") == kind]
    if kind == "ServiceAccount":
        return ", ".join(f"{said(item, 'namespace')}/{said(item, 'name')}" for item in found)
    return ", ".join(said(item, "name") for item in found)


def token_requests(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the audiences of the tokens that a CSIDriver requests."""
    listed = find(obj, "spec", "tokenRequests")
    if not isinstance(listed, list):
        return UNSET
    return ",".join(said(item, "audience") for item in listed)


def parameter_kind(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the kind of an admission policy's parameters: ``v1/ConfigMap``."""
    found = find(obj, "spec", "paramKind")
    return UNSET if found is None else f"{said(found, 'apiVersion')}/{said(found, 'kind')}"


def parameter(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the parameters of a binding: ``namespace/name``, ``*/name``, or their selector."""
    found = find(obj, "spec", "paramRef")
    if name := said(found, "name"):
        return f"{said(found, 'namespace', default='*')}/{name}"
    chosen = find(found, "selector")
    return UNSET if chosen is None else _selector_text(chosen)


def _selector_text(value: JsonValue) -> str:
    """Return a selector as Go prints one."""
    matched = find(value, "matchLabels")
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{said(item, 'key')},Operator:{said(item, 'operator')},"
        f"Values:[{' '.join(strings(item.get('values')))}],}},"
        for item in objects(value, "matchExpressions")
    )
    labels = ",".join(f"{key}: {matched[key]}" for key in sorted(matched)) if isinstance(matched, dict) else ""
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels + ',' if labels else ''}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def certificate_duration(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the requested lifetime of the certificate."""
    seconds = find(obj, "spec", "expirationSeconds")
    if not isinstance(seconds, int) or abs(seconds) > _MAX_SECONDS:
        return NONE
    return human_duration(timedelta(seconds=seconds))


def certificate_status(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the state of a certificate request: ``Pending``, ``Approved,Issued``, ``Denied``…"""
    shown = "Denied" if condition(obj, "Denied") else "Approved" if condition(obj, "Approved") else "Pending"
    failed = ",Failed" if condition(obj, "Failed") else ""
    return shown + failed + (",Issued" if said(obj, "status", "certificate") else "")


def pod_certificate_state(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the state of a PodCertificateRequest: ``Pending``, ``Issued``, ``Denied`` or ``Failed``."""
    known = ("Issued", "Denied", "Failed")
    types = [find_str(each, "type") for each in find_list(obj, "status", "conditions")]
    return next((each for each in reversed(types) if each in known), "Pending")


def requested_annotations(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the annotations that the author of a Pod passes to the signer of its certificate."""
    return format_labels(find(obj, "spec", "unverifiedUserAnnotations")) or NONE


def taint_age(obj: JsonObject, now: datetime) -> JsonValue:
    """Return the time since a DeviceTaintRule added its taint; "" if this time is not known."""
    added = said(obj, "spec", "taint", "timeAdded")
    return age(added, now) if added else ""


def migrated_resource(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the resource of a StorageVersionMigration, such as ``deployments.apps``."""
    name, group = said(obj, "spec", "resource", "resource"), said(obj, "spec", "resource", "group")
    return f"{name}.{group}" if group else name


def migration_state(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the state of a StorageVersionMigration: ``Running``, ``Failed``, ``Succeeded`` or ``Unknown``."""
    known = ("Running", "Failed", "Succeeded")
    true = [each for each in find_list(obj, "status", "conditions") if find_str(each, "status") == "True"]
    return next((find_str(each, "type") for each in reversed(true) if find_str(each, "type") in known), "Unknown")


def service_of(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the Service of an APIService: ``namespace/name``; ``Local`` if it has none."""
    found = find(obj, "spec", "service")
    return "Local" if found is None else f"{said(found, 'namespace')}/{said(found, 'name')}"


def available(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the status of an APIService: ``True``, or the status with its reason, such as ``False (ServiceNotFound)``."""
    found = condition(obj, "Available")
    if found is None:
        return "Unknown"
    state, reason = said(found, "status"), said(found, "reason")
    return state if state == "True" or not reason else f"{state} ({reason})"


def claim_state(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return the state of a ResourceClaim: ``pending``, ``allocated,reserved``, ``deleted``…"""
    states = ["deleted"] if deleted(obj) else []
    if find(obj, "status", "allocation") is not None:
        states += ["allocated", *(["reserved"] if objects(obj, "status", "reservedFor") else [])]
    elif not states:
        states = ["pending"]
    return ",".join(states)


def dangling(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
    """Return whether the priority level of a FlowSchema is missing; ``?`` if this was not checked."""
    return said(condition(obj, "Dangling"), "status", default="?")


def limited(path: tuple[str, ...], obj: JsonObject) -> JsonValue:
    """Return the number at ``path`` in ``spec.limited`` of a PriorityLevelConfiguration; ``<none>`` if the object that should
    contain the number is missing.
    """
    if find(obj, "spec", "limited", *path[:-1]) is None:
        return NONE
    found = find(obj, "spec", "limited", *path)
    return found if isinstance(found, int) else None if len(path) == 1 else 0


def component(field: str, obj: JsonObject) -> str:
    """Return the health of a ComponentStatus, or a field other than ``status`` of its condition ``Healthy``."""
    found = next((item for item in objects(obj, "conditions") if item.get("type") == "Healthy"), None)
    if field != "status":
        return said(found, field)
    return "Unknown" if found is None else "Healthy" if found.get("status") == "True" else "Unhealthy"
