"""The order in which Helm writes objects, and the one in which it takes them away.

Kinds that others need come first: a namespace before what is in it, a service account before the pods that run as it.
Kinds Helm does not know (custom resources) come last, by kind and name; removal is the same order backwards.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from wharfinger.cluster.resource import kind_of, name_of, namespace_of
from wharfinger.formats.json_value import JsonObject

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

_RANK: Final = {kind: rank for rank, kind in enumerate(INSTALL_ORDER)}


def rank(kind: str) -> int:
    """The place of a kind; all unknown ones share the last."""
    return _RANK.get(kind, len(INSTALL_ORDER))


def in_install_order(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Sorted for installation; the order of equals is kept for known kinds."""

    def place(obj: JsonObject) -> tuple[int, str, str, str]:
        _, kind = kind_of(obj)
        at = rank(kind)
        return (at, "", "", "") if at < len(INSTALL_ORDER) else (at, kind, namespace_of(obj), name_of(obj))

    return sorted(objects, key=place)


def in_waves(objects: Iterable[JsonObject]) -> list[list[JsonObject]]:
    """In install order, objects of one kind together: those of one wave do not need each other."""
    ordered = in_install_order(objects)
    return [list(wave) for _, wave in groupby(ordered, key=lambda obj: (rank(kind_of(obj)[1]), kind_of(obj)[1]))]
