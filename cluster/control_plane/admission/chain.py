"""All plugins, in the order in which kube-apiserver asks them."""

from typing import Final

from wharfinger.cluster.control_plane.admission.core import CORE_PLUGINS
from wharfinger.cluster.control_plane.admission.groups import GROUP_PLUGINS
from wharfinger.cluster.control_plane.admission.plugin import Admission, Plugin
from wharfinger.cluster.control_plane.admission.pods import POD_PLUGINS
from wharfinger.cluster.control_plane.authorization.escalation import ESCALATION
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.formats.json_value import JsonObject

ORDER: Final = (
    "NamespaceLifecycle",
    "LimitRanger",
    "ServiceAccount",
    "TaintNodesByCondition",
    "PodSecurity",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "ResourceQuota",
    "RoleEscalation",
)
"""The default plugins of kube-apiserver that exist here or may come to."""
PLUGINS: Final[tuple[Plugin, ...]] = tuple(
    sorted((*CORE_PLUGINS, *POD_PLUGINS, *GROUP_PLUGINS, ESCALATION), key=lambda plugin: ORDER.index(plugin.name))
)


def mutated(admission: Admission, obj: JsonObject) -> JsonObject:
    """The object with what plugins add. Raises StatusError."""
    for plugin in PLUGINS:
        if plugin.mutate is not None and _concerns(plugin, admission):
            obj = plugin.mutate(admission, obj)
    return obj


def check(admission: Admission) -> None:
    """Refuse what a plugin refuses. Raises StatusError."""
    for plugin in PLUGINS:
        if plugin.check is not None and _concerns(plugin, admission):
            plugin.check(admission)


def charge(admission: Admission, backend: Backend) -> None:
    """Write what plugins count the write as. Raises StatusError."""
    for plugin in PLUGINS:
        if plugin.charge is not None and _concerns(plugin, admission):
            plugin.charge(admission, backend)


def _concerns(plugin: Plugin, admission: Admission) -> bool:
    return admission.operation in plugin.operations and (
        not plugin.resources or admission.kind.group_kind in plugin.resources
    )
