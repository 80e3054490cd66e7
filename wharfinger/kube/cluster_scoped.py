"""The built-in kinds that are cluster-scoped, for checks of manifests without a server.

Source: discovery of kube-apiserver 1.36 and 1.37. A kind that is not listed is a namespaced built-in
kind, or a custom kind of either scope.
"""

from typing import Final

_KINDS: Final = {
    "": (
        "ComponentStatus",
        "Namespace",
        "Node",
        "PersistentVolume",
    ),
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    ),
    "apiextensions.k8s.io": ("CustomResourceDefinition",),
    "apiregistration.k8s.io": ("APIService",),
    "authentication.k8s.io": (
        "SelfSubjectReview",
        "TokenReview",
    ),
    "authorization.k8s.io": (
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ),
    "certificates.k8s.io": (
        "CertificateSigningRequest",
        "ClusterTrustBundle",
    ),
    "flowcontrol.apiserver.k8s.io": (
        "FlowSchema",
        "PriorityLevelConfiguration",
    ),
    "networking.k8s.io": (
        "IPAddress",
        "IngressClass",
        "ServiceCIDR",
    ),
    "node.k8s.io": ("RuntimeClass",),
    "rbac.authorization.k8s.io": (
        "ClusterRole",
        "ClusterRoleBinding",
    ),
    "resource.k8s.io": (
        "DeviceClass",
        "DeviceTaintRule",
        "ResourceSlice",
    ),
    "scheduling.k8s.io": ("PriorityClass",),
    "storage.k8s.io": (
        "CSIDriver",
        "CSINode",
        "StorageClass",
        "VolumeAttachment",
        "VolumeAttributesClass",
    ),
    "storagemigration.k8s.io": ("StorageVersionMigration",),
}

CLUSTER_SCOPED: Final = frozenset((group, kind) for group, kinds in _KINDS.items() for kind in kinds)
"""The kinds as pairs of group ("" for the core group) and kind."""
