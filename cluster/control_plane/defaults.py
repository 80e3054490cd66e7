"""The defaults that an API server fills into the built-in kinds charts carry.

One function per kind, after the defaulting of Kubernetes 1.36 (and the answers recorded from it). Two places are easily
confused: what is defaulted here is part of what the writer owns; what a kind's strategy sets at creation (cluster IPs,
node ports, the first status) is not, and is filled in later by whoever stores the object.

Every rule only adds what is missing, so defaulting twice changes nothing.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.cluster.control_plane.list_types import builtin_list_types, is_builtin
from wharfinger.cluster.control_plane.pod_defaults import default_pod, default_pod_template
from wharfinger.cluster.control_plane.typed_form import typed_form
from wharfinger.cluster.resource import kind_of, split_api_version
from wharfinger.formats.json_value import JsonObject, JsonValue, find

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
NAME_LABEL: Final = "kubernetes.io/metadata.name"


def apply_defaults(obj: JsonObject) -> JsonObject:
    """A copy of the object in the form its Go type prints, with the defaults of its kind.

    Of kinds that are not built in, only the metadata is brought into form; defaults of custom kinds are their schema's.
    """
    api_version, kind = kind_of(obj)
    group, version = split_api_version(api_version)
    formed = typed_form(obj, builtin_list_types(group, version, kind))
    if is_builtin(group, version, kind):
        rule = _RULES.get((group, kind))
        if rule is not None:
            rule(formed)
    return formed


def _inner(obj: JsonObject, name: str) -> JsonObject:
    """The member as an object, put in where it is missing."""
    found = obj.get(name)
    if not isinstance(found, dict):
        found = {}
        obj[name] = found
    return found


def _objects(obj: JsonObject, *path: str) -> list[JsonObject]:
    """The objects in the list at the path; [] where there is none."""
    found = find(obj, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _fill(obj: JsonObject, **values: JsonValue) -> None:
    """Put in what is missing or an empty string."""
    for name, value in values.items():
        if obj.get(name) in (None, ""):
            obj[name] = value


def _deployment(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    default_pod_template(_inner(spec, "template"))
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = _inner(spec, "strategy")
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(_inner(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


def _stateful_set(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    default_pod_template(_inner(spec, "template"))
    _fill(spec, podManagementPolicy="OrderedReady", replicas=1, revisionHistoryLimit=10)
    _fill(_inner(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
    strategy = _inner(spec, "updateStrategy")
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(_inner(strategy, "rollingUpdate"), partition=0)
    for claim in _objects(spec, "volumeClaimTemplates"):
        _fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        _fill(_inner(claim, "status"), phase="Pending")
        _claim(claim)


def _daemon_set(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    default_pod_template(_inner(spec, "template"))
    _fill(spec, revisionHistoryLimit=10)
    strategy = _inner(spec, "updateStrategy")
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(_inner(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)


def _replica_set(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    default_pod_template(_inner(spec, "template"))
    _fill(spec, replicas=1)


def _replication_controller(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    _fill(spec, replicas=1)
    labels = find(spec, "template", "metadata", "labels")
    if isinstance(spec.get("template"), dict):
        default_pod_template(_inner(spec, "template"))
    if isinstance(labels, dict):
        _fill(spec, selector=dict(labels))
        _fill(_inner(obj, "metadata"), labels=dict(labels))


def _pod_template(obj: JsonObject) -> None:
    default_pod_template(_inner(obj, "template"))


def _job(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    default_pod_template(_inner(spec, "template"))
    labels = find(spec, "template", "metadata", "labels")
    if isinstance(labels, dict):
        _fill(_inner(obj, "metadata"), labels=dict(labels))
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    limit = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    replacement = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    _fill(spec, parallelism=1, backoffLimit=limit, completionMode="NonIndexed", suspend=False)
    _fill(spec, podReplacementPolicy=replacement, manualSelector=spec.get("manualSelector") or False)


def _cron_job(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    default_pod_template(_inner(_inner(_inner(spec, "jobTemplate"), "spec"), "template"))
    _fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)


def _service(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    _fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "ClientIP":
        _fill(_inner(_inner(spec, "sessionAffinityConfig"), "clientIP"), timeoutSeconds=10800)
    for port in _objects(spec, "ports"):
        _fill(port, protocol="TCP")
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port.get("port")
    external = spec["type"] in {"NodePort", "LoadBalancer"}
    if external or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        _fill(spec, externalTrafficPolicy="Cluster")
    if external or spec["type"] == "ClusterIP":
        _fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)


def _secret(obj: JsonObject) -> None:
    _fill(obj, type="Opaque")
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict):
        data = _inner(obj, "data")
        for name, value in plain.items():
            data[name] = base64.b64encode(value.encode()).decode() if isinstance(value, str) else value


def _claim(obj: JsonObject) -> None:
    _fill(_inner(obj, "spec"), volumeMode="Filesystem")


def _volume(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    _fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if isinstance(spec.get("hostPath"), dict):
        _fill(_inner(spec, "hostPath"), type="")


def _namespace(obj: JsonObject) -> None:
    metadata = _inner(obj, "metadata")
    if metadata.get("name"):
        _inner(metadata, "labels")[NAME_LABEL] = metadata["name"]


def _network_policy(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    for rule in _objects(spec, "ingress") + _objects(spec, "egress"):
        for port in _objects(rule, "ports"):
            _fill(port, protocol="TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _storage_class(obj: JsonObject) -> None:
    _fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _endpoint_slice(obj: JsonObject) -> None:
    for port in _objects(obj, "ports"):
        _fill(port, protocol="TCP")
        _fill(port, name="")


def _endpoints(obj: JsonObject) -> None:
    for subset in _objects(obj, "subsets"):
        for port in _objects(subset, "ports"):
            _fill(port, protocol="TCP")


def _autoscaler(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    _fill(spec, minReplicas=1)
    if obj.get("apiVersion") == "autoscaling/v2" and not spec.get("metrics"):
        target: JsonObject = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _binding(obj: JsonObject) -> None:
    _fill(_inner(obj, "roleRef"), apiGroup=RBAC_GROUP)
    for subject in _objects(obj, "subjects"):
        if subject.get("kind") in {"User", "Group"}:
            _fill(subject, apiGroup=RBAC_GROUP)


def _definition(obj: JsonObject) -> None:
    spec = _inner(obj, "spec")
    names = _inner(spec, "names")
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        _fill(names, singular=kind.lower(), listKind=f"{kind}List")
    conversion = _inner(spec, "conversion")
    _fill(conversion, strategy="None")
    service = find(conversion, "webhook", "clientConfig", "service")
    if isinstance(service, dict):
        _fill(service, port=443)


def _webhooks(obj: JsonObject) -> None:
    for webhook in _objects(obj, "webhooks"):
        _fill(webhook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        _fill(webhook, namespaceSelector={}, objectSelector={})
        if obj.get("kind") == "MutatingWebhookConfiguration":
            _fill(webhook, reinvocationPolicy="Never")
        service = find(webhook, "clientConfig", "service")
        if isinstance(service, dict):
            _fill(service, port=443)
        for rule in _objects(webhook, "rules"):
            _fill(rule, scope="*")


def _priority_class(obj: JsonObject) -> None:
    _fill(obj, preemptionPolicy="PreemptLowerPriority")


def _api_service(obj: JsonObject) -> None:
    service = find(obj, "spec", "service")
    if isinstance(service, dict):
        _fill(service, port=443)


_RULES: Final[Mapping[tuple[str, str], Callable[[JsonObject], None]]] = {
    ("", "Endpoints"): _endpoints,
    ("", "Namespace"): _namespace,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): default_pod,
    ("", "PodTemplate"): _pod_template,
    ("", "ReplicationController"): _replication_controller,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apiregistration.k8s.io", "APIService"): _api_service,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    (RBAC_GROUP, "ClusterRoleBinding"): _binding,
    (RBAC_GROUP, "RoleBinding"): _binding,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
