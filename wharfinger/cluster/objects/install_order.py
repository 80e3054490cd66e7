"""The order in which objects are written: Helm's order of kinds, in waves of kinds that cannot need each other.

Kinds that others need come first: a namespace before the objects in it, a service account before the pods that run as it. Kinds
that Helm does not know (custom resources) come last; removal uses the reverse order.

Helm writes one kind after another. Most of that order has no effect: a ConfigMap and a ClusterRole never need each other. A
*wave* is a group of kinds that can be written at the same time, so a release of six kinds takes three or four waits rather than
six. Two kinds share a wave only if the admission of neither kind reads objects of the other. The waves, in order:

CLASSES    Namespace, PriorityClass, StorageClass, IngressClass
BOUNDS     NetworkPolicy, ResourceQuota, LimitRange, PodSecurityPolicy, PodDisruptionBudget, ServiceAccount,
           PersistentVolume: most of them need a namespace, and a volume needs its class
DATA       Secret, ConfigMap, PersistentVolumeClaim, ClusterRole, Role: quotas and limits apply to them, and a token's Secret
           needs its account; CustomResourceDefinition, which is waited for until it is established
WIRING     ClusterRoleBinding, RoleBinding, Service: a binding is refused without its role
WORKLOADS  DaemonSet, Pod, ReplicationController, ReplicaSet, Deployment, HorizontalPodAutoscaler, StatefulSet, Job, CronJob:
           a pod gets the list of services when it starts
ROUTES     Ingress, APIService: after the services to which they lead
WEBHOOKS   MutatingWebhookConfiguration, ValidatingWebhookConfiguration: one may refuse objects written at the same time
CUSTOM     every other kind: after the controllers that handle it
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import kind_of, name_of, namespace_of

INSTALL_ORDER: Final = (
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
"""Helm's own order of kinds."""


class Wave(IntEnum):
    """A group of kinds whose objects are applied together; the waves are applied in the order of their numbers."""

    CLASSES = 0
    BOUNDS = 1
    DATA = 2
    WIRING = 3
    WORKLOADS = 4
    ROUTES = 5
    WEBHOOKS = 6
    CUSTOM = 7


_KINDS: Final = {
    Wave.CLASSES: ("Namespace", "PriorityClass", "StorageClass", "IngressClass"),
    Wave.BOUNDS: (
        "NetworkPolicy",
        "ResourceQuota",
        "LimitRange",
        "PodSecurityPolicy",
        "PodDisruptionBudget",
        "ServiceAccount",
        "PersistentVolume",
    ),
    Wave.DATA: (
        "Secret",
        "SecretList",
        "ConfigMap",
        "PersistentVolumeClaim",
        "CustomResourceDefinition",
        "ClusterRole",
        "ClusterRoleList",
        "Role",
        "RoleList",
    ),
    Wave.WIRING: (
        "ClusterRoleBinding",
        "ClusterRoleBindingList",
        "RoleBinding",
        "RoleBindingList",
        "Service",
    ),
    Wave.WORKLOADS: (
        "DaemonSet",
        "Pod",
        "ReplicationController",
        "ReplicaSet",
        "Deployment",
        "HorizontalPodAutoscaler",
        "StatefulSet",
        "Job",
        "CronJob",
    ),
    Wave.ROUTES: ("Ingress", "APIService"),
    Wave.WEBHOOKS: ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
}
_WAVE: Final = {kind: wave for wave, kinds in _KINDS.items() for kind in kinds}
_RANK: Final = {kind: rank for rank, kind in enumerate(INSTALL_ORDER)}


def rank(kind: str) -> int:
    """Return the place of a kind in Helm's order; all unknown kinds share the last place."""
    return _RANK.get(kind, len(INSTALL_ORDER))


def wave_of(group: str, kind: str) -> Wave:
    """Return the wave of a kind. A ``Service`` of a third party's group is a custom kind, written after its definition."""
    own = "." in group and not group.endswith(".k8s.io")
    return Wave.CUSTOM if own else _WAVE.get(kind, Wave.CUSTOM)


def in_install_order(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the objects in Helm's install order; objects of one kind that Helm knows keep their order."""

    def place(obj: JsonObject) -> tuple[int, str, str, str]:
        _, kind = kind_of(obj)
        at = rank(kind)
        return (at, "", "", "") if at < len(INSTALL_ORDER) else (at, kind, namespace_of(obj), name_of(obj))

    return sorted(objects, key=place)
