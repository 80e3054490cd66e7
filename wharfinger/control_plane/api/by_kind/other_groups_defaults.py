"""The defaults of the kinds that belong neither to the core group nor to workloads."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from wharfinger.control_plane.api.common.filling import fill, fill_absent, inner, objects
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.times import format_time

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_REGISTRATION: Final = "admissionregistration.k8s.io"
_RESOURCE: Final = "resource.k8s.io"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_QUEUING: Final = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}


def _network_policy(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    for rule in objects(spec, "ingress") + objects(spec, "egress"):
        for port in objects(rule, "ports"):
            fill_absent(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _ingress_class(obj: JsonObject) -> None:
    parameters = find(obj, "spec", "parameters")
    if isinstance(parameters, dict):
        fill_absent(parameters, scope="Cluster")


def _storage_class(obj: JsonObject) -> None:
    fill_absent(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _endpoint_slice(obj: JsonObject) -> None:
    for port in objects(obj, "ports"):
        fill_absent(port, protocol="TCP")
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
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    service = find(conversion, "webhook", "clientConfig", "service")
    if isinstance(service, dict):
        fill(service, port=443)
    state = obj.get("status")
    if isinstance(state, dict) and not state.get("storedVersions") and find(obj, "metadata", "uid") is not None:
        stored = next((version for version in objects(spec, "versions") if version.get("storage") is True), None)
        if stored is not None:
            state["storedVersions"] = [stored.get("name")]


def _webhooks(obj: JsonObject) -> None:
    for webhook in objects(obj, "webhooks"):
        fill_absent(webhook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        fill(webhook, namespaceSelector={}, objectSelector={})
        if obj.get("kind") == "MutatingWebhookConfiguration":
            fill_absent(webhook, reinvocationPolicy="Never")
        service = find(webhook, "clientConfig", "service")
        if isinstance(service, dict):
            fill(service, port=443)
        for rule in objects(webhook, "rules"):
            fill_absent(rule, scope="*")


def _priority_class(obj: JsonObject) -> None:
    fill_absent(obj, preemptionPolicy="PreemptLowerPriority")


def _api_service(obj: JsonObject) -> None:
    service = find(obj, "spec", "service")
    if isinstance(service, dict):
        fill(service, port=443)


def _csi_driver(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    fill(spec, attachRequired=True, podInfoOnMount=False, storageCapacity=False, requiresRepublish=False)
    fill_absent(spec, seLinuxMount=False, fsGroupPolicy="ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _flow_schema(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def _priority_level(obj: JsonObject) -> None:
    limited, exempt = (find(obj, "spec", name) for name in ("limited", "exempt"))
    if isinstance(exempt, dict):
        fill(exempt, nominalConcurrencyShares=0, lendablePercent=0)
    if isinstance(limited, dict):
        fill(limited, nominalConcurrencyShares=30, lendablePercent=0)
    queuing = find(limited, "limitResponse", "queuing")
    if isinstance(queuing, dict):
        for name, value in _QUEUING.items():
            queuing[name] = queuing.get(name) or value


def _resource_claim(claim: JsonValue) -> None:
    """Set the defaults of requests for devices: a request without an allocation mode is for exactly one device."""
    if not isinstance(claim, dict):
        return
    for request in objects(claim, "devices", "requests"):
        exactly = request.get("exactly")
        for asked in [*([exactly] if isinstance(exactly, dict) else []), *objects(request, "firstAvailable")]:
            fill(asked, allocationMode="ExactCount")
            if asked["allocationMode"] == "ExactCount":
                asked["count"] = asked.get("count") or 1
            _device_tolerations(asked)


def _device_tolerations(holder: JsonObject) -> None:
    for toleration in objects(holder, "tolerations"):
        fill(toleration, operator="Equal")


def _claim_with_status(obj: JsonObject) -> None:
    _resource_claim(obj.get("spec"))
    for result in objects(obj, "status", "allocation", "devices", "results"):
        _device_tolerations(result)


def _resource_slice(obj: JsonObject, now: datetime) -> None:
    """Set ``timeAdded`` to now in each device taint that lacks it."""
    for device in objects(obj, "spec", "devices"):
        for taint in objects(device, "taints"):
            fill_absent(taint, timeAdded=format_time(now))


def _match_resources(match: JsonObject) -> None:
    fill_absent(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for rule in objects(match, "resourceRules") + objects(match, "excludeResourceRules"):
        fill_absent(rule, scope="*")


def _admission_policy(obj: JsonObject) -> None:
    spec = inner(obj, "spec")
    fill_absent(spec, failurePolicy="Fail")
    constraints = spec.get("matchConstraints")
    if isinstance(constraints, dict):
        _match_resources(constraints)


def _policy_binding(obj: JsonObject) -> None:
    match = find(obj, "spec", "matchResources")
    if isinstance(match, dict):
        _match_resources(match)


GROUP_DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {
    (_REGISTRATION, "MutatingWebhookConfiguration"): _webhooks,
    (_REGISTRATION, "ValidatingWebhookConfiguration"): _webhooks,
    (_REGISTRATION, "MutatingAdmissionPolicy"): _admission_policy,
    (_REGISTRATION, "MutatingAdmissionPolicyBinding"): _policy_binding,
    (_REGISTRATION, "ValidatingAdmissionPolicy"): _admission_policy,
    (_REGISTRATION, "ValidatingAdmissionPolicyBinding"): _policy_binding,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apiregistration.k8s.io", "APIService"): _api_service,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    (_FLOW, "FlowSchema"): _flow_schema,
    (_FLOW, "PriorityLevelConfiguration"): _priority_level,
    ("networking.k8s.io", "IngressClass"): _ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    (RBAC_GROUP, "ClusterRoleBinding"): _binding,
    (RBAC_GROUP, "RoleBinding"): _binding,
    (_RESOURCE, "ResourceClaim"): _claim_with_status,
    (_RESOURCE, "ResourceClaimTemplate"): lambda obj: _resource_claim(find(obj, "spec", "spec")),
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("storage.k8s.io", "CSIDriver"): _csi_driver,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
TIMED_DEFAULTS: Final[Mapping[tuple[str, str], Callable[[JsonObject, datetime], None]]] = {
    (_RESOURCE, "ResourceSlice"): _resource_slice,
}
"""Defaults that depend on the time, by group and kind."""
