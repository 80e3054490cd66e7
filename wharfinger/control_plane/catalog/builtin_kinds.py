"""The table of the built-in kinds: every kind that a kube-apiserver of the version in
:mod:`~wharfinger.control_plane.kubernetes_version` serves by default.

``builtin_kinds.json`` beside this file holds what discovery reports (names, scope, verbs, subresources; made by
``generate_builtin_kinds.py``). This module holds what discovery does not report but clients still observe: how objects
of a kind are created, deleted and selected, and which changes increase their ``metadata.generation``. All versions of one
kind are one :class:`~wharfinger.control_plane.kinds.kind.Kind`; a kind that is served in a second group (events.k8s.io) is a
kind of its own with the same stored objects.

A few kinds are virtual: requests for them are answered, but none of their objects are stored (bindings, reviews, component
statuses).
"""

from pathlib import Path
from typing import Final

from wharfinger.control_plane.catalog.columns import columns_of
from wharfinger.control_plane.kinds.kind import (
    ALL_VERBS,
    Deletion,
    Generation,
    Kind,
    KindVersion,
    ScalePaths,
    Subresource,
)
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.kubernetes_version import table
from wharfinger.control_plane.storage.interface import Collection
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find, find_list, find_str

DATA: Final = table(Path(__file__).with_name("builtin_kinds.json"))
_MAX_DATA_BYTES: Final = 40_000
REPLICAS: Final = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")

EVENT_OBJECT_FIELDS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
"""The fields by which Events can be selected. They describe the object that an Event is about."""
_SELECTABLE: Final[dict[str, tuple[str, ...]]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "Event": (
        *(f"involvedObject.{name}" for name in EVENT_OBJECT_FIELDS),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "Event.events.k8s.io": (
        *(f"regarding.{name}" for name in EVENT_OBJECT_FIELDS),
        "reason",
        "reportingController",
        "type",
    ),
    "Secret": ("type",),
    "Namespace": ("status.phase",),
    "Node": ("spec.unschedulable",),
    "Service": ("spec.clusterIP", "spec.type"),
    "ReplicationController": ("status.replicas",),
    "Job.batch": ("status.successful",),
    "CertificateSigningRequest.certificates.k8s.io": ("spec.signerName",),
    "ClusterTrustBundle.certificates.k8s.io": ("spec.signerName",),
    "ResourceSlice.resource.k8s.io": ("spec.nodeName", "spec.driver"),
}
"""The fields, by kind, that a field selector may use in addition to the name and the namespace."""

_GENERATION: Final = frozenset(
    """
    CronJob.batch CustomResourceDefinition.apiextensions.k8s.io DaemonSet.apps Deployment.apps DeviceClass.resource.k8s.io
    EndpointSlice.discovery.k8s.io FlowSchema.flowcontrol.apiserver.k8s.io Ingress.networking.k8s.io
    IngressClass.networking.k8s.io Job.batch MutatingAdmissionPolicy.admissionregistration.k8s.io
    MutatingAdmissionPolicyBinding.admissionregistration.k8s.io MutatingWebhookConfiguration.admissionregistration.k8s.io
    NetworkPolicy.networking.k8s.io Pod PodDisruptionBudget.policy PodTemplate
    PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io ReplicaSet.apps ReplicationController
    ResourceSlice.resource.k8s.io StatefulSet.apps ValidatingAdmissionPolicy.admissionregistration.k8s.io
    ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io
    ValidatingWebhookConfiguration.admissionregistration.k8s.io
    """.split()  # noqa: SIM905 - two dozen names are easier to read in one text
)
"""Kinds whose ``metadata.generation`` counts changes of the specification."""
_OTHER_GENERATION: Final = {
    "CSIDriver.storage.k8s.io": Generation.LATER,
    "DeviceTaintRule.resource.k8s.io": Generation.SPEC,
    "PriorityClass.scheduling.k8s.io": Generation.FIRST,
}

_RETURNED_BY_DELETE: Final = frozenset(
    """
    CSIDriver.storage.k8s.io CSINode.storage.k8s.io DeviceClass.resource.k8s.io DeviceTaintRule.resource.k8s.io
    Namespace PersistentVolume PersistentVolumeClaim Pod PodTemplate ResourceClaim.resource.k8s.io
    ResourceClaimTemplate.resource.k8s.io ResourceQuota ResourceSlice.resource.k8s.io Service ServiceAccount
    StorageClass.storage.k8s.io VolumeAttachment.storage.k8s.io VolumeAttributesClass.storage.k8s.io
    """.split()  # noqa: SIM905
)
"""Kinds whose delete returns the deleted object."""

_CREATED_BY_PUT: Final = frozenset(
    """
    ClusterRole.rbac.authorization.k8s.io ClusterRoleBinding.rbac.authorization.k8s.io Endpoints Event Event.events.k8s.io
    Lease.coordination.k8s.io LimitRange Role.rbac.authorization.k8s.io RoleBinding.rbac.authorization.k8s.io
    RuntimeClass.node.k8s.io Service
    """.split()  # noqa: SIM905
)
"""Kinds whose PUT creates an absent object."""

_CONDITIONAL: Final = frozenset(
    """
    APIService.apiregistration.k8s.io CSIDriver.storage.k8s.io CSINode.storage.k8s.io CSIStorageCapacity.storage.k8s.io
    ClusterTrustBundle.certificates.k8s.io CustomResourceDefinition.apiextensions.k8s.io
    DeviceTaintRule.resource.k8s.io Lease.coordination.k8s.io
    MutatingAdmissionPolicy.admissionregistration.k8s.io MutatingAdmissionPolicyBinding.admissionregistration.k8s.io
    MutatingWebhookConfiguration.admissionregistration.k8s.io PodCertificateRequest.certificates.k8s.io
    PodDisruptionBudget.policy RuntimeClass.node.k8s.io StorageVersionMigration.storagemigration.k8s.io
    ValidatingAdmissionPolicy.admissionregistration.k8s.io ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io
    ValidatingWebhookConfiguration.admissionregistration.k8s.io VolumeAttachment.storage.k8s.io
    """.split()  # noqa: SIM905
)
"""Kinds whose updates must have a resourceVersion (``AllowUnconditionalUpdate`` is false in their strategy)."""

_INITIAL_STATUS: Final[dict[str, JsonObject]] = {
    "APIService.apiregistration.k8s.io": {},
    "CertificateSigningRequest.certificates.k8s.io": {},
    "CronJob.batch": {},
    "DeviceTaintRule.resource.k8s.io": {},
    "PodCertificateRequest.certificates.k8s.io": {},
    "StorageVersionMigration.storagemigration.k8s.io": {},
    "DaemonSet.apps": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "Deployment.apps": {},
    "FlowSchema.flowcontrol.apiserver.k8s.io": {},
    "HorizontalPodAutoscaler.autoscaling": {"desiredReplicas": 0, "currentMetrics": None},
    "Ingress.networking.k8s.io": {"loadBalancer": {}},
    "Job.batch": {},
    "Namespace": {"phase": "Active"},
    "Node": {},
    "PersistentVolume": {"phase": "Pending"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "Pod": {"phase": "Pending"},
    "PodDisruptionBudget.policy": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": {},
    "ReplicaSet.apps": {"replicas": 0},
    "ReplicationController": {"replicas": 0},
    "ResourceClaim.resource.k8s.io": {},
    "ResourceQuota": {},
    "Service": {"loadBalancer": {}},
    "ServiceCIDR.networking.k8s.io": {},
    "StatefulSet.apps": {"replicas": 0, "availableReplicas": 0},
    "ValidatingAdmissionPolicy.admissionregistration.k8s.io": {},
    "VolumeAttachment.storage.k8s.io": {"attached": False},
}
"""The initial ``status`` of an object, for the kinds whose status the server sets at creation."""
_STORED_AS: Final = {"Event.events.k8s.io": (Collection("", "events"), "v1")}
"""The kinds whose objects are stored as another kind. The value is the collection and the version in which they are stored."""
_WARNINGS: Final = {
    "v1/ComponentStatus": "v1 ComponentStatus is deprecated in v1.19+",
    "v1/Endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


def _kinds(rows: list[JsonObject]) -> tuple[Kind, ...]:
    by_kind: dict[str, list[JsonObject]] = {}
    for row in rows:
        group, _, _ = find_str(row, "api").rpartition("/")
        by_kind.setdefault(f"{find_str(row, 'kind')}.{group}".rstrip("."), []).append(row)
    return tuple(_kind(name, versions) for name, versions in by_kind.items())


def _kind(group_kind: str, rows: list[JsonObject]) -> Kind:
    row = rows[0]
    group, _, version = find_str(row, "api").rpartition("/")
    kind = find_str(row, "kind")
    verbs = _words(row, "verbs") or ALL_VERBS
    stored, stored_version = _STORED_AS.get(group_kind, (None, version))
    return Kind(
        group=group,
        kind=kind,
        plural=find_str(row, "plural"),
        singular=find_str(row, "singular") or kind.lower(),
        list_kind=f"{kind}List",
        namespaced=find(row, "cluster") is not True,
        versions=tuple(_version(group_kind, item) for item in rows),
        storage_version=stored_version,
        short_names=_words(row, "short"),
        categories=_words(row, "categories"),
        generation=Generation.SPEC if group_kind in _GENERATION else _OTHER_GENERATION.get(group_kind, Generation.NONE),
        deletion=Deletion.OBJECT if group_kind in _RETURNED_BY_DELETE else Deletion.STATUS,
        initial_status=_INITIAL_STATUS.get(group_kind),
        create_on_update=group_kind in _CREATED_BY_PUT,
        unconditional_update=group_kind not in _CONDITIONAL,
        verbs=verbs,
        virtual="watch" not in verbs,
        storage_hash=find_str(row, "hash"),
        stored=stored,
    )


def _version(group_kind: str, row: JsonObject) -> KindVersion:
    group, _, version = find_str(row, "api").rpartition("/")
    kind = find_str(row, "kind")
    below = as_object(row.get("sub", {}), "sub")
    return KindVersion(
        version,
        columns_of(group_kind),
        builtin_list_types(group, version, kind),
        status="status" in below,
        scale=REPLICAS if "scale" in below else None,
        selectable=_SELECTABLE.get(group_kind, ()),
        warning=_WARNINGS.get(f"{find_str(row, 'api')}/{kind}", ""),
        subresources=tuple(_subresource(name, entry) for name, entry in below.items()),
    )


def _subresource(name: str, entry: JsonValue) -> Subresource:
    """Read a subresource: ``["Scale", ["get"]]``, or with group and version: ``autoscaling/v1/Scale``."""
    qualified, verbs = entry if isinstance(entry, list) and len(entry) == 2 else ("", [])
    *api, kind = str(qualified).split("/")
    group, version = api if len(api) == 2 else ("", "")
    listed = verbs if isinstance(verbs, list) else []
    return Subresource(name, kind, tuple(str(verb) for verb in listed), group, version)


def _words(row: JsonObject, name: str) -> tuple[str, ...]:
    return tuple(str(word) for word in find_list(row, name))


def _table() -> list[JsonObject]:
    rows = decode_json(DATA.read_bytes(), max_bytes=_MAX_DATA_BYTES, what=DATA.name)
    return [as_object(row, DATA.name) for row in rows] if isinstance(rows, list) else []


BUILTIN_KINDS: Final[tuple[Kind, ...]] = _kinds(_table())
"""Every built-in kind, in the order of discovery."""
GROUP_ORDER: Final = tuple(dict.fromkeys(kind.group for kind in BUILTIN_KINDS))
"""Built-in groups in discovery's order; custom groups follow."""
