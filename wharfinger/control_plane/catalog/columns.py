"""The columns of each built-in kind in a Table.

Names and descriptions of the columns are data (``table_columns.json``, made by ``generate_documents.py`` from the answers of a
kube-apiserver). This module defines how the cells of each column are computed, in the order of the columns in
``table_columns.json``. A kind without an entry here has two columns: its name and its creation time.
"""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Final

from wharfinger.control_plane.api.by_kind import other_groups_cells as group
from wharfinger.control_plane.api.by_kind import workload_cells as work
from wharfinger.control_plane.api.common import cells as c
from wharfinger.control_plane.api.common.cells import Cell, pure
from wharfinger.control_plane.api.core import cells as core
from wharfinger.control_plane.api.core.pods import cells as pod
from wharfinger.control_plane.kinds.kind import Column
from wharfinger.control_plane.kubernetes_version import table
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find_list

DATA: Final = table(Path(__file__).with_name("table_columns.json"))
_MAX_DATA_BYTES: Final = 100_000

_NAME: Final = c.text("metadata", "name", default="")
_AGE: Final = c.since(("metadata", "creationTimestamp"))
_TEMPLATE: Final = (c.containers("name", "spec", "template"), c.containers("image", "spec", "template"))
_SELECTED: Final = (*_TEMPLATE, c.selector("spec", "selector"))
_JOB: Final = ("spec", "jobTemplate", "spec")
_REPLICAS: Final = (
    _NAME,
    c.number("spec", "replicas"),
    c.number("status", "replicas"),
    c.number("status", "readyReplicas"),
    _AGE,
)
_BINDING: Final = (
    _NAME,
    group.role_ref,
    _AGE,
    *(pure(partial(group.subjects, kind)) for kind in ("User", "Group", "ServiceAccount")),
)
_EVENT: Final = (
    core.event_last,
    c.text("type", default=""),
    c.text("reason", default=""),
    core.event_object,
    core.event_subobject,
    core.event_source,
    core.event_message,
    core.event_first,
    core.event_count,
    _NAME,
)
_POLICY_BINDING: Final = (_NAME, c.text("spec", "policyName", default=""), group.parameter, _AGE)
_WEBHOOKS: Final = (_NAME, c.count("webhooks"), _AGE)
_ATTRIBUTES_CLASS: Final = c.text("spec", "volumeAttributesClassName", default=c.UNSET)
_VOLUME_MODE: Final = c.text("spec", "volumeMode", default=c.UNSET)
_NODE_INFO: Final = ("status", "nodeInfo")
_CLAIM_MODES: Final = c.access_modes("status", "accessModes")

_CELLS: Final[dict[str, tuple[Cell, ...]]] = {
    "ComponentStatus": (_NAME, *(pure(partial(group.component, field)) for field in ("status", "message", "error"))),
    "ConfigMap": (_NAME, c.count("data", "binaryData"), _AGE),
    "Endpoints": (_NAME, core.endpoint_addresses, _AGE),
    "Event": _EVENT,
    "Event.events.k8s.io": _EVENT,
    "Namespace": (_NAME, c.text("status", "phase", default=""), _AGE),
    "Node": (
        _NAME,
        core.node_status,
        core.node_roles,
        _AGE,
        c.text(*_NODE_INFO, "kubeletVersion", default=""),
        pure(partial(core.node_address, "InternalIP")),
        pure(partial(core.node_address, "ExternalIP")),
        c.text(*_NODE_INFO, "osImage", default="<unknown>"),
        core.node_kernel,
        c.text(*_NODE_INFO, "containerRuntimeVersion", default="<unknown>"),
    ),
    "PersistentVolumeClaim": (
        _NAME,
        core.volume_phase,
        c.text("spec", "volumeName", default=""),
        core.claim_capacity,
        lambda obj, now: core.claim_modes(obj, _CLAIM_MODES(obj, now)),
        core.volume_class,
        _ATTRIBUTES_CLASS,
        _AGE,
        _VOLUME_MODE,
    ),
    "PersistentVolume": (
        _NAME,
        c.text("spec", "capacity", "storage", default="0"),
        c.access_modes("spec", "accessModes"),
        c.text("spec", "persistentVolumeReclaimPolicy", default=""),
        core.volume_phase,
        core.volume_claim,
        core.volume_class,
        _ATTRIBUTES_CLASS,
        c.text("status", "reason", default=""),
        _AGE,
        _VOLUME_MODE,
    ),
    "Pod": (
        _NAME,
        pod.pod_ready,
        pod.pod_status,
        pod.pod_restarts,
        _AGE,
        pod.pod_ip,
        c.text("spec", "nodeName"),
        c.text("status", "nominatedNodeName"),
        pod.readiness_gates,
    ),
    "PodTemplate": (
        _NAME,
        c.containers("name", "template"),
        c.containers("image", "template"),
        c.labels("template", "metadata", "labels"),
    ),
    "ReplicationController": (*_REPLICAS, *_TEMPLATE, c.labels("spec", "selector")),
    "ResourceQuota": (_NAME, pure(partial(core.quota, False)), pure(partial(core.quota, True)), _AGE),  # noqa: FBT003
    "Secret": (_NAME, c.text("type", default=""), c.count("data"), _AGE),
    "ServiceAccount": (_NAME, _AGE),
    "Service": (
        _NAME,
        c.text("spec", "type", default=""),
        core.service_address,
        core.service_external,
        core.service_ports,
        _AGE,
        c.labels("spec", "selector"),
    ),
    "APIService.apiregistration.k8s.io": (_NAME, group.service_of, group.available, _AGE),
    "ControllerRevision.apps": (_NAME, work.controller, c.number("revision"), _AGE),
    "DaemonSet.apps": (
        _NAME,
        c.number("status", "desiredNumberScheduled"),
        c.number("status", "currentNumberScheduled"),
        c.number("status", "numberReady"),
        c.number("status", "updatedNumberScheduled"),
        c.number("status", "numberAvailable"),
        c.labels("spec", "template", "spec", "nodeSelector"),
        _AGE,
        *_SELECTED,
    ),
    "Deployment.apps": (
        _NAME,
        c.ratio(("status", "readyReplicas"), ("spec", "replicas")),
        c.number("status", "updatedReplicas"),
        c.number("status", "availableReplicas"),
        _AGE,
        *_TEMPLATE,
        c.selector("spec", "selector", default=""),
    ),
    "ReplicaSet.apps": (*_REPLICAS, *_SELECTED),
    "StatefulSet.apps": (_NAME, c.ratio(("status", "readyReplicas"), ("spec", "replicas")), _AGE, *_TEMPLATE),
    "HorizontalPodAutoscaler.autoscaling": (
        _NAME,
        work.scale_target,
        work.metrics,
        c.text("spec", "minReplicas", default=c.UNSET),
        c.number("spec", "maxReplicas"),
        c.number("status", "currentReplicas"),
        _AGE,
    ),
    "CronJob.batch": (
        _NAME,
        c.text("spec", "schedule", default=""),
        c.text("spec", "timeZone"),
        work.cron_suspended,
        c.count("status.active"),
        work.cron_last,
        _AGE,
        c.containers("name", *_JOB, "template"),
        c.containers("image", *_JOB, "template"),
        c.selector(*_JOB, "selector"),
    ),
    "Job.batch": (_NAME, work.job_status, work.job_completions, work.job_duration, _AGE, *_SELECTED),
    "CertificateSigningRequest.certificates.k8s.io": (
        _NAME,
        _AGE,
        c.text("spec", "signerName"),
        c.text("spec", "username", default=""),
        group.certificate_duration,
        group.certificate_status,
    ),
    "IngressClass.networking.k8s.io": (
        group.class_name,
        c.text("spec", "controller", default=""),
        group.class_parameters,
        _AGE,
    ),
    "Ingress.networking.k8s.io": (
        _NAME,
        c.text("spec", "ingressClassName"),
        group.ingress_hosts,
        group.ingress_address,
        group.ingress_ports,
        _AGE,
    ),
    "IPAddress.networking.k8s.io": (_NAME, group.address_parent),
    "NetworkPolicy.networking.k8s.io": (_NAME, c.selector("spec", "podSelector"), _AGE),
    "ServiceCIDR.networking.k8s.io": (_NAME, c.joined("spec", "cidrs"), _AGE),
    "PodDisruptionBudget.policy": (
        _NAME,
        c.text("spec", "minAvailable", default="N/A"),
        c.text("spec", "maxUnavailable", default="N/A"),
        c.number("status", "disruptionsAllowed"),
        _AGE,
    ),
    "ClusterRoleBinding.rbac.authorization.k8s.io": _BINDING,
    "RoleBinding.rbac.authorization.k8s.io": _BINDING,
    "CSIDriver.storage.k8s.io": (
        _NAME,
        c.flag("spec", "attachRequired", default=True),
        c.flag("spec", "podInfoOnMount"),
        c.flag("spec", "storageCapacity"),
        group.token_requests,
        c.flag("spec", "requiresRepublish"),
        c.joined("spec", "volumeLifecycleModes", default=c.NONE),
        _AGE,
    ),
    "CSINode.storage.k8s.io": (_NAME, c.count("spec.drivers"), _AGE),
    "StorageClass.storage.k8s.io": (
        group.class_name,
        c.text("provisioner", default=""),
        c.text("reclaimPolicy", default="Delete"),
        c.text("volumeBindingMode", default="Immediate"),
        c.flag("allowVolumeExpansion"),
        _AGE,
    ),
    "VolumeAttachment.storage.k8s.io": (
        _NAME,
        c.text("spec", "attacher", default=""),
        c.text("spec", "source", "persistentVolumeName", default=""),
        c.text("spec", "nodeName", default=""),
        c.flag("status", "attached"),
        _AGE,
    ),
    "VolumeAttributesClass.storage.k8s.io": (_NAME, c.text("driverName", default=""), _AGE),
    "MutatingAdmissionPolicy.admissionregistration.k8s.io": (
        _NAME,
        c.count("spec.mutations"),
        group.parameter_kind,
        _AGE,
    ),
    "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io": _POLICY_BINDING,
    "MutatingWebhookConfiguration.admissionregistration.k8s.io": _WEBHOOKS,
    "ValidatingAdmissionPolicy.admissionregistration.k8s.io": (
        _NAME,
        c.count("spec.validations"),
        group.parameter_kind,
        _AGE,
    ),
    "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": _POLICY_BINDING,
    "ValidatingWebhookConfiguration.admissionregistration.k8s.io": _WEBHOOKS,
    "PriorityClass.scheduling.k8s.io": (
        _NAME,
        c.number("value"),
        c.flag("globalDefault"),
        _AGE,
        c.text("preemptionPolicy", default=""),
    ),
    "Lease.coordination.k8s.io": (_NAME, c.text("spec", "holderIdentity", default=""), _AGE),
    "RuntimeClass.node.k8s.io": (_NAME, c.text("handler", default=""), _AGE),
    "EndpointSlice.discovery.k8s.io": (
        _NAME,
        c.text("addressType", default=""),
        core.slice_ports,
        core.slice_endpoints,
        _AGE,
    ),
    "DeviceClass.resource.k8s.io": (_NAME, _AGE),
    "ResourceClaim.resource.k8s.io": (_NAME, group.claim_state, _AGE),
    "ResourceClaimTemplate.resource.k8s.io": (_NAME, _AGE),
    "ResourceSlice.resource.k8s.io": (
        _NAME,
        c.text("spec", "nodeName", default=""),
        c.text("spec", "driver", default=""),
        c.text("spec", "pool", "name", default=""),
        _AGE,
    ),
    "ClusterTrustBundle.certificates.k8s.io": (_NAME, c.text("spec", "signerName")),
    "PodCertificateRequest.certificates.k8s.io": (
        _NAME,
        *(c.text("spec", field, default="") for field in ("podName", "serviceAccountName", "nodeName", "signerName")),
        group.pod_certificate_state,
        group.requested_annotations,
    ),
    "DeviceTaintRule.resource.k8s.io": (
        _NAME,
        *(c.text("spec", "taint", field, default="") for field in ("key", "value", "effect")),
        group.taint_age,
        _AGE,
    ),
    "StorageVersionMigration.storagemigration.k8s.io": (_NAME, group.migrated_resource, group.migration_state),
    "FlowSchema.flowcontrol.apiserver.k8s.io": (
        _NAME,
        c.text("spec", "priorityLevelConfiguration", "name", default=""),
        c.number("spec", "matchingPrecedence"),
        c.text("spec", "distinguisherMethod", "type"),
        _AGE,
        group.dangling,
    ),
    "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": (
        _NAME,
        c.text("spec", "type", default=""),
        pure(partial(group.limited, ("nominalConcurrencyShares",))),
        *(
            pure(partial(group.limited, ("limitResponse", "queuing", name)))
            for name in ("queues", "handSize", "queueLengthLimit")
        ),
        _AGE,
    ),
}
_DEFAULT: Final = "LimitRange"
_DEFAULT_CELLS: Final = (_NAME, c.text("metadata", "creationTimestamp", default=""))


@cache
def _data() -> JsonObject:
    return as_object(decode_json(DATA.read_bytes(), max_bytes=_MAX_DATA_BYTES, what=DATA.name), DATA.name)


def columns_of(group_kind: str) -> tuple[Column, ...]:
    """Return the columns of a built-in kind (``Deployment.apps``)."""
    known = group_kind if group_kind in _CELLS else _DEFAULT
    definitions = find_list(_data(), "kinds", known)
    return tuple(_column(item, cell) for item, cell in zip(definitions, _CELLS.get(known, _DEFAULT_CELLS), strict=True))


def _column(definition: JsonValue, cell: Cell) -> Column:
    name, type_, format_, priority, description = definition if isinstance(definition, list) else [""] * 5
    texts = find_list(_data(), "descriptions")
    text = texts[description] if isinstance(description, int) else ""
    return Column(str(name), cell, str(type_), str(format_), str(text), priority if isinstance(priority, int) else 0)


def _first(group_kind: str, index: int) -> Column:
    return columns_of(group_kind)[index]


NAME: Final = _first(_DEFAULT, 0)
AGE: Final = replace(_first("ConfigMap", 2), type="date")
"""The column that a custom kind without declared columns has in addition to its name."""
