"""Kinds that kube-apiserver can decode but does not serve: lists, options, and retired versions.

A body of such a kind is refused with a different message than a body of an unknown kind.
"""

from typing import Final

from wharfinger.control_plane.kinds.type_shapes import has_version, is_builtin

_EVERYWHERE: Final = frozenset(
    {"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"}
)
"""Kinds that Kubernetes defines in every version of every API group, but serves in none."""
_UNVERSIONED: Final = frozenset({"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"})
_RETIRED: Final = {
    "admissionregistration.k8s.io/v1beta1": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
    "apps/v1beta1": {"ControllerRevision", "Deployment", "DeploymentRollback", "Scale", "StatefulSet"},
    "apps/v1beta2": {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "Scale", "StatefulSet"},
    "authentication.k8s.io/v1beta1": {"SelfSubjectReview", "TokenReview"},
    "authorization.k8s.io/v1beta1": {
        "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
    },
    "batch/v1beta1": {"CronJob"},
    "certificates.k8s.io/v1beta1": {"CertificateSigningRequest"},
    "coordination.k8s.io/v1beta1": {"Lease"},
    "discovery.k8s.io/v1beta1": {"EndpointSlice"},
    "events.k8s.io/v1beta1": {"Event"},
    "extensions/v1beta1": {
        "DaemonSet", "Deployment", "DeploymentRollback", "Ingress", "NetworkPolicy", "ReplicaSet", "Scale",
    },
    "flowcontrol.apiserver.k8s.io/v1beta1": {"FlowSchema", "PriorityLevelConfiguration"},
    "flowcontrol.apiserver.k8s.io/v1beta2": {"FlowSchema", "PriorityLevelConfiguration"},
    "flowcontrol.apiserver.k8s.io/v1beta3": {"FlowSchema", "PriorityLevelConfiguration"},
    "networking.k8s.io/v1beta1": {"Ingress", "IngressClass"},
    "node.k8s.io/v1alpha1": {"RuntimeClass"},
    "node.k8s.io/v1beta1": {"RuntimeClass"},
    "policy/v1beta1": {"Eviction", "PodDisruptionBudget"},
    "rbac.authorization.k8s.io/v1alpha1": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
    "rbac.authorization.k8s.io/v1beta1": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
    "scheduling.k8s.io/v1beta1": {"PriorityClass"},
    "storage.k8s.io/v1alpha1": {"CSIStorageCapacity", "VolumeAttachment", "VolumeAttributesClass"},
    "storage.k8s.io/v1beta1": {"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"},
}  # fmt: skip
"""The kinds that kube-apiserver still decodes but no longer serves, by group version."""
_NO_LISTS: Final = frozenset({"DeploymentRollback", "Eviction", "Scale"})
_PLAIN: Final = frozenset(
    {
        "v1/List", "v1/RangeAllocation", "v1/SerializedReference", "v1/NodeProxyOptions", "v1/PodAttachOptions",
        "v1/PodExecOptions", "v1/PodLogOptions", "v1/PodPortForwardOptions", "v1/PodProxyOptions",
        "v1/PodStatusResult", "v1/ServiceProxyOptions",
    }
)  # fmt: skip


def is_unserved(group: str, version: str, kind: str) -> bool:
    """Return whether kube-apiserver can decode a kind that no endpoint serves."""
    api_version = f"{group}/{version}" if group else version
    if f"{api_version}/{kind}" in _PLAIN or _is_retired(api_version, kind):
        return True
    if kind in _UNVERSIONED:
        return api_version in {"v1", "meta.k8s.io/v1"}
    if kind in _EVERYWHERE:
        return api_version in _RETIRED or has_version(group, version)
    listed = kind.removesuffix("List")
    if listed == kind or listed in _NO_LISTS:
        return False
    return is_builtin(group, version, listed) or _is_retired(api_version, listed)


def is_options(kind: str) -> bool:
    """Return whether the kind is one of those that every version of every group has, such as ``DeleteOptions``."""
    return kind in _EVERYWHERE


def is_former(group: str, version: str, kind: str, now: str) -> bool:
    """Return whether a kind is a retired version of the kind that has the same name in the group ``now``."""
    return group in {now, "extensions"} and _is_retired(f"{group}/{version}", kind)


def _is_retired(api_version: str, kind: str) -> bool:
    return kind in _RETIRED.get(api_version, ())
