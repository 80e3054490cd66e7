"""The table of built-in kinds: one row a kind, everything else about serving it follows from the row.

Rows stand in the order of the kube-apiserver's discovery, group by group. What the rows leave out on purpose: kinds that
only a scheduler, kubelet or device plugin uses (resource.k8s.io), and the older version of kinds served twice
(autoscaling/v1).
"""

from typing import Final

from wharfinger.cluster.control_plane.kinds import Deletion, Generation, Kind, KindVersion, ScalePaths
from wharfinger.cluster.control_plane.list_types import builtin_list_types
from wharfinger.cluster.control_plane.printers import columns_of
from wharfinger.formats.json_value import JsonObject

REPLICAS: Final = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")
_SELECTABLE: Final[dict[str, tuple[str, ...]]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "Secret": ("type",),
    "Namespace": ("status.phase",),
    "Node": ("spec.unschedulable",),
    "Service": ("spec.clusterIP", "spec.type"),
    "ReplicationController": ("status.replicas",),
    "ReplicaSet.apps": ("status.replicas",),
    "Job.batch": ("status.successful",),
}
_DEFINED: Final = ("api-extensions",)
_ALL: Final = ("all",)


def _row(
    api_version: str,
    kind: str,
    plural: str,
    short: str = "",
    *,
    cluster: bool = False,
    status: bool = False,
    scale: bool = False,
    generation: bool = False,
    categories: tuple[str, ...] = (),
    deletion: Deletion = Deletion.STATUS,
    initial_status: JsonObject | None = None,
    create_on_update: bool = False,
    dotless_name: bool = False,
    free_name: bool = False,
    finalize: bool = False,
    singular: str = "",
) -> Kind:
    group, _, version = api_version.rpartition("/")
    group_kind = f"{kind}.{group}" if group else kind
    served = KindVersion(
        version,
        columns_of(group_kind),
        builtin_list_types(group, version, kind),
        status=status,
        scale=REPLICAS if scale else None,
        selectable=_SELECTABLE.get(group_kind, ()),
    )
    return Kind(
        group=group,
        kind=kind,
        plural=plural,
        singular=singular or kind.lower(),
        list_kind=f"{kind}List",
        namespaced=not cluster,
        versions=(served,),
        storage_version=version,
        short_names=tuple(short.split()),
        categories=categories,
        generation=Generation.SPEC if generation else Generation.NONE,
        deletion=deletion,
        initial_status=initial_status,
        create_on_update=create_on_update,
        dotless_name=dotless_name,
        free_name=free_name,
        finalize=finalize,
    )


_OBJECT: Final = Deletion.OBJECT
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_STORAGE: Final = "storage.k8s.io/v1"
_FLOW: Final = "flowcontrol.apiserver.k8s.io/v1"
_NETWORKING: Final = "networking.k8s.io/v1"

BUILTIN_KINDS: Final[tuple[Kind, ...]] = (
    _row("v1", "ConfigMap", "configmaps", "cm"),
    _row("v1", "Endpoints", "endpoints", "ep", singular="endpoints", create_on_update=True),
    _row("v1", "Event", "events", "ev", create_on_update=True),
    _row("v1", "LimitRange", "limitranges", "limits", create_on_update=True),
    _row(
        "v1", "Namespace", "namespaces", "ns", cluster=True, status=True, initial_status={"phase": "Active"},
        dotless_name=True, finalize=True, deletion=_OBJECT,
    ),
    _row("v1", "Node", "nodes", "no", cluster=True, status=True, initial_status={}),
    _row(
        "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", status=True, initial_status={"phase": "Pending"},
        deletion=_OBJECT,
    ),
    _row(
        "v1", "PersistentVolume", "persistentvolumes", "pv", cluster=True, status=True,
        initial_status={"phase": "Pending"}, deletion=_OBJECT,
    ),
    _row(
        "v1", "Pod", "pods", "po", status=True, generation=True, categories=_ALL, initial_status={"phase": "Pending"},
        deletion=_OBJECT,
    ),
    _row("v1", "PodTemplate", "podtemplates", generation=True, deletion=_OBJECT),
    _row(
        "v1", "ReplicationController", "replicationcontrollers", "rc", status=True, scale=True, generation=True,
        categories=_ALL, initial_status={"replicas": 0},
    ),
    _row("v1", "ResourceQuota", "resourcequotas", "quota", status=True, initial_status={}, deletion=_OBJECT),
    _row("v1", "Secret", "secrets"),
    _row("v1", "ServiceAccount", "serviceaccounts", "sa", deletion=_OBJECT),
    _row(
        "v1", "Service", "services", "svc", status=True, categories=_ALL, initial_status={"loadBalancer": {}},
        create_on_update=True, dotless_name=True, deletion=_OBJECT,
    ),
    _row("apiregistration.k8s.io/v1", "APIService", "apiservices", cluster=True, status=True, categories=_DEFINED, initial_status={}),
    _row("apps/v1", "ControllerRevision", "controllerrevisions"),
    _row(
        "apps/v1", "DaemonSet", "daemonsets", "ds", status=True, generation=True, categories=_ALL,
        initial_status={"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
    ),
    _row("apps/v1", "Deployment", "deployments", "deploy", status=True, scale=True, generation=True, categories=_ALL, initial_status={}),
    _row(
        "apps/v1", "ReplicaSet", "replicasets", "rs", status=True, scale=True, generation=True, categories=_ALL,
        initial_status={"replicas": 0},
    ),
    _row(
        "apps/v1", "StatefulSet", "statefulsets", "sts", status=True, scale=True, generation=True, categories=_ALL,
        initial_status={"replicas": 0, "availableReplicas": 0},
    ),
    _row(
        "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", status=True, categories=_ALL,
        initial_status={"desiredReplicas": 0, "currentMetrics": None},
    ),
    _row("batch/v1", "CronJob", "cronjobs", "cj", status=True, generation=True, categories=_ALL, initial_status={}),
    _row("batch/v1", "Job", "jobs", status=True, generation=True, categories=_ALL, initial_status={}),
    _row(
        "certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests", "csr", cluster=True, status=True,
        initial_status={},
    ),
    _row(_NETWORKING, "IngressClass", "ingressclasses", cluster=True, generation=True),
    _row(_NETWORKING, "Ingress", "ingresses", "ing", status=True, generation=True, initial_status={"loadBalancer": {}}),
    _row(_NETWORKING, "IPAddress", "ipaddresses", "ip", cluster=True),
    _row(_NETWORKING, "NetworkPolicy", "networkpolicies", "netpol", generation=True),
    _row(_NETWORKING, "ServiceCIDR", "servicecidrs", cluster=True, status=True, initial_status={}),
    _row(
        "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", status=True, generation=True,
        initial_status={"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    ),
    _row(_RBAC, "ClusterRoleBinding", "clusterrolebindings", cluster=True, create_on_update=True, free_name=True),
    _row(_RBAC, "ClusterRole", "clusterroles", cluster=True, create_on_update=True, free_name=True),
    _row(_RBAC, "RoleBinding", "rolebindings", create_on_update=True, free_name=True),
    _row(_RBAC, "Role", "roles", create_on_update=True, free_name=True),
    _row(_STORAGE, "CSIDriver", "csidrivers", cluster=True),
    _row(_STORAGE, "CSINode", "csinodes", cluster=True),
    _row(_STORAGE, "CSIStorageCapacity", "csistoragecapacities"),
    _row(_STORAGE, "StorageClass", "storageclasses", "sc", cluster=True, deletion=_OBJECT),
    _row(_STORAGE, "VolumeAttachment", "volumeattachments", cluster=True, status=True, initial_status={"attached": False}, deletion=_OBJECT),
    _row(_STORAGE, "VolumeAttributesClass", "volumeattributesclasses", "vac", cluster=True, deletion=_OBJECT),
    _row(_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", cluster=True, generation=True, categories=_DEFINED),
    _row(_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", cluster=True, status=True, generation=True, categories=_DEFINED, initial_status={}),
    _row(_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", cluster=True, generation=True, categories=_DEFINED),
    _row(_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", cluster=True, generation=True, categories=_DEFINED),
    _row(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "crd crds", cluster=True, status=True,
        generation=True, categories=_DEFINED,
    ),
    _row("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "pc", cluster=True, generation=True),
    _row("coordination.k8s.io/v1", "Lease", "leases", create_on_update=True),
    _row("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", cluster=True),
    _row("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", generation=True),
    _row(_FLOW, "FlowSchema", "flowschemas", cluster=True, status=True, generation=True, initial_status={}),
    _row(_FLOW, "PriorityLevelConfiguration", "prioritylevelconfigurations", cluster=True, status=True, generation=True, initial_status={}),
)
"""Every built-in kind."""

GROUP_ORDER: Final = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
"""Built-in groups in the order that discovery gives them; custom groups follow."""
