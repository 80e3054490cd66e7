"""Which columns each built-in kind is shown with; kinds without a row here show their name and creation time."""

from typing import Final

from wharfinger.cluster.control_plane import columns as c
from wharfinger.cluster.control_plane.columns import column
from wharfinger.cluster.control_plane.kinds import Column

NAME: Final = Column(
    "Name", c.text("metadata", "name", default=""), format="name", description="The name of the object."
)
AGE: Final = Column("Age", c.since("metadata", "creationTimestamp"), description="How long ago the object was created.")
CREATED: Final = Column(
    "Created At",
    c.text("metadata", "creationTimestamp", default=""),
    type="date",
    description="When the object was created.",
)

_TEMPLATE: Final = (
    column("Containers", c.containers("name", "spec", "template"), wide=True),
    column("Images", c.containers("image", "spec", "template"), wide=True),
    column("Selector", c.selector("spec", "selector"), wide=True),
)
_JOB_TEMPLATE: Final = ("spec", "jobTemplate", "spec", "template")

_ROWS: Final[dict[str, tuple[Column, ...]]] = {
    "ConfigMap": (NAME, column("Data", c.count("data", "binaryData")), AGE),
    "Secret": (NAME, column("Type", c.text("type", default="")), column("Data", c.count("data")), AGE),
    "ServiceAccount": (NAME, column("Secrets", c.count("secrets")), AGE),
    "Namespace": (NAME, column("Status", c.text("status", "phase", default="")), AGE),
    "Pod": (
        NAME,
        column("Ready", c.pod_ready),
        column("Status", c.pod_status),
        column("Restarts", c.pod_restarts),
        AGE,
        column("IP", c.text("status", "podIP"), wide=True),
        column("Node", c.text("spec", "nodeName"), wide=True),
        column("Nominated Node", c.text("status", "nominatedNodeName"), wide=True),
        column("Readiness Gates", c.text(default=c.NONE), wide=True),
    ),
    "Service": (
        NAME,
        column("Type", c.text("spec", "type", default="ClusterIP")),
        column("Cluster-IP", c.text("spec", "clusterIP")),
        column("External-IP", c.service_external),
        column("Port(s)", c.service_ports),
        AGE,
        column("Selector", c.selector("spec", "selector"), wide=True),
    ),
    "Endpoints": (NAME, AGE),
    "Event": (
        column("Last Seen", c.event_last_seen),
        column("Type", c.text("type", default="")),
        column("Reason", c.text("reason", default="")),
        column("Object", c.event_object),
        column("Subobject", c.text("involvedObject", "fieldPath", default=""), wide=True),
        column("Source", c.text("source", "component", default=""), wide=True),
        column("Message", c.text("message", default="")),
        column("First Seen", c.since("firstTimestamp"), wide=True),
        column("Count", c.number("count"), wide=True),
        column("Name", c.text("metadata", "name", default=""), wide=True),
    ),
    "Node": (
        NAME,
        column("Status", c.node_status),
        column("Roles", c.node_roles),
        AGE,
        column("Version", c.text("status", "nodeInfo", "kubeletVersion", default="")),
    ),
    "PersistentVolume": (
        NAME,
        column("Capacity", c.text("spec", "capacity", "storage", default="")),
        column("Access Modes", c.access_modes("spec", "accessModes")),
        column("Reclaim Policy", c.text("spec", "persistentVolumeReclaimPolicy", default="")),
        column("Status", c.text("status", "phase", default="")),
        column("Claim", c.text("spec", "claimRef", "name", default="")),
        column("StorageClass", c.text("spec", "storageClassName", default="")),
        column("VolumeAttributesClass", c.text("spec", "volumeAttributesClassName", default=c.UNSET)),
        column("Reason", c.text("status", "reason", default="")),
        AGE,
        column("VolumeMode", c.text("spec", "volumeMode", default=c.UNSET), wide=True),
    ),
    "PersistentVolumeClaim": (
        NAME,
        column("Status", c.text("status", "phase", default="")),
        column("Volume", c.text("spec", "volumeName", default="")),
        column("Capacity", c.text("status", "capacity", "storage", default="")),
        column("Access Modes", c.access_modes("status", "accessModes")),
        column("StorageClass", c.text("spec", "storageClassName", default="")),
        column("VolumeAttributesClass", c.text("spec", "volumeAttributesClassName", default=c.UNSET)),
        AGE,
        column("VolumeMode", c.text("spec", "volumeMode", default=c.UNSET), wide=True),
    ),
    "ReplicationController": (
        NAME,
        column("Desired", c.number("spec", "replicas")),
        column("Current", c.number("status", "replicas")),
        column("Ready", c.number("status", "readyReplicas")),
        AGE,
        *_TEMPLATE,
    ),
    "Deployment.apps": (
        NAME,
        column("Ready", c.ratio(("status", "readyReplicas"), ("spec", "replicas"))),
        column("Up-to-date", c.number("status", "updatedReplicas")),
        column("Available", c.number("status", "availableReplicas")),
        AGE,
        *_TEMPLATE,
    ),
    "ReplicaSet.apps": (
        NAME,
        column("Desired", c.number("spec", "replicas")),
        column("Current", c.number("status", "replicas")),
        column("Ready", c.number("status", "readyReplicas")),
        AGE,
        *_TEMPLATE,
    ),
    "StatefulSet.apps": (
        NAME,
        column("Ready", c.ratio(("status", "readyReplicas"), ("spec", "replicas"))),
        AGE,
        *_TEMPLATE[:2],
    ),
    "DaemonSet.apps": (
        NAME,
        column("Desired", c.number("status", "desiredNumberScheduled")),
        column("Current", c.number("status", "currentNumberScheduled")),
        column("Ready", c.number("status", "numberReady")),
        column("Up-to-date", c.number("status", "updatedNumberScheduled")),
        column("Available", c.number("status", "numberAvailable")),
        column("Node Selector", c.selector("spec", "template", "spec", "nodeSelector")),
        AGE,
        *_TEMPLATE,
    ),
    "Job.batch": (
        NAME,
        column("Status", c.job_status),
        column("Completions", c.job_completions),
        column("Duration", c.job_duration),
        AGE,
        *_TEMPLATE,
    ),
    "CronJob.batch": (
        NAME,
        column("Schedule", c.text("spec", "schedule", default="")),
        column("Timezone", c.text("spec", "timeZone")),
        column("Suspend", c.cron_suspended),
        column("Active", c.cron_active),
        column("Last Schedule", c.cron_last),
        AGE,
        column("Containers", c.containers("name", *_JOB_TEMPLATE), wide=True),
        column("Images", c.containers("image", *_JOB_TEMPLATE), wide=True),
    ),
    "Ingress.networking.k8s.io": (
        NAME,
        column("Class", c.text("spec", "ingressClassName")),
        column("Hosts", c.ingress_hosts),
        column("Address", c.ingress_address),
        column("Ports", c.ingress_ports),
        AGE,
    ),
    "IngressClass.networking.k8s.io": (
        NAME,
        column("Controller", c.text("spec", "controller", default="")),
        column("Parameters", c.text("spec", "parameters", "name")),
        AGE,
    ),
    "NetworkPolicy.networking.k8s.io": (NAME, column("Pod-Selector", c.selector("spec", "podSelector")), AGE),
    "RoleBinding.rbac.authorization.k8s.io": (NAME, column("Role", c.role_ref), AGE),
    "ClusterRoleBinding.rbac.authorization.k8s.io": (NAME, column("Role", c.role_ref), AGE),
    "PodDisruptionBudget.policy": (
        NAME,
        column("Min Available", c.text("spec", "minAvailable", default="N/A")),
        column("Max Unavailable", c.text("spec", "maxUnavailable", default="N/A")),
        column("Allowed Disruptions", c.number("status", "disruptionsAllowed")),
        AGE,
    ),
    "HorizontalPodAutoscaler.autoscaling": (
        NAME,
        column("Reference", c.scale_target),
        column("MinPods", c.text("spec", "minReplicas", default=c.UNSET)),
        column("MaxPods", c.number("spec", "maxReplicas")),
        column("Replicas", c.number("status", "currentReplicas")),
        AGE,
    ),
    "StorageClass.storage.k8s.io": (
        NAME,
        column("Provisioner", c.text("provisioner", default="")),
        column("ReclaimPolicy", c.text("reclaimPolicy", default="Delete")),
        column("VolumeBindingMode", c.text("volumeBindingMode", default="Immediate")),
        AGE,
    ),
    "Lease.coordination.k8s.io": (NAME, column("Holder", c.text("spec", "holderIdentity", default="")), AGE),
    "PriorityClass.scheduling.k8s.io": (NAME, column("Value", c.number("value")), AGE),
    "ValidatingWebhookConfiguration.admissionregistration.k8s.io": (NAME, column("Webhooks", c.count("webhooks")), AGE),
    "MutatingWebhookConfiguration.admissionregistration.k8s.io": (NAME, column("Webhooks", c.count("webhooks")), AGE),
    "APIService.apiregistration.k8s.io": (
        NAME,
        column("Service", c.text("spec", "service", "name", default="Local")),
        AGE,
    ),
}


def columns_of(group_kind: str) -> tuple[Column, ...]:
    """The columns of a built-in kind (``Deployment.apps``)."""
    return _ROWS.get(group_kind, (NAME, CREATED))
