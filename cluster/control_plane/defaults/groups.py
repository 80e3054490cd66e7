"""Defaults of the other groups."""

from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.cluster.control_plane.defaults.filling import fill, inner, objects
from wharfinger.formats.json_value import JsonObject, find

RBAC_GROUP: Final = "rbac.authorization.k8s.io"


def _network_policy(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    for rule in objects(spec, "ingress") + objects(spec, "egress"):
        for port in objects(rule, "ports"):
            fill(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _ingress_class(obj: JsonObject) -> None:
    parameters = find(obj, "spec", "parameters")
    if isinstance(parameters, dict):
        fill(parameters, scope="Cluster")


def _storage_class(obj: JsonObject) -> None:
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _endpoint_slice(obj: JsonObject) -> None:
    for port in objects(obj, "ports"):
        fill(port, protocol="TCP")
        fill(port, name="")


def _binding(obj: JsonObject) -> None:
    fill(inner(obj, "roleRef"), apiGroup=RBAC_GROUP)
    for subject in objects(obj, "subjects"):
        if subject.get("kind") in {"User", "Group"}:
            fill(subject, apiGroup=RBAC_GROUP)


def _definition(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    names = inner(spec, "names")
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        fill(names, singular=kind.lower(), listKind=f"{kind}List")
    conversion = inner(spec, "conversion")
    fill(conversion, strategy="None")
    service = find(conversion, "webhook", "clientConfig", "service")
    if isinstance(service, dict):
        fill(service, port=443)


def _webhooks(obj: JsonObject) -> None:
    for webhook in objects(obj, "webhooks"):
        fill(webhook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        fill(webhook, namespaceSelector={}, objectSelector={})
        if obj.get("kind") == "MutatingWebhookConfiguration":
            fill(webhook, reinvocationPolicy="Never")
        service = find(webhook, "clientConfig", "service")
        if isinstance(service, dict):
            fill(service, port=443)
        for rule in objects(webhook, "rules"):
            fill(rule, scope="*")


def _priority_class(obj: JsonObject) -> None:
    fill(obj, preemptionPolicy="PreemptLowerPriority")


def _api_service(obj: JsonObject) -> None:
    service = find(obj, "spec", "service")
    if isinstance(service, dict):
        fill(service, port=443)


GROUP_DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apiregistration.k8s.io", "APIService"): _api_service,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    ("networking.k8s.io", "IngressClass"): _ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    (RBAC_GROUP, "ClusterRoleBinding"): _binding,
    (RBAC_GROUP, "RoleBinding"): _binding,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
