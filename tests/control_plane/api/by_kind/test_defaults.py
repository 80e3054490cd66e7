"""Defaults of the built-in kinds, compared with the recorded answers of a real API server and in single cases."""

import pytest

from tests.control_plane.recorded_answers.recorded_requests import Step, content, scenarios, steps
from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.control_plane.kinds.type_shapes import is_builtin
from wharfinger.control_plane.objects.object_metadata import without_status
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object
from wharfinger.kube.resource import kind_of, split_api_version

CREATIONS = [
    step
    for scenario in scenarios()
    for step in steps(scenario)
    if step.method == "POST"
    and step.status == 201
    and isinstance(step.request, dict)
    and is_builtin(*split_api_version(kind_of(step.request)[0]), kind_of(step.request)[1])
    and find(step.response, "metadata", "uid") is not None  # reviews have no uid, because they are not stored
]

PREPARED: dict[str, set[str]] = {
    "Namespace": {"finalizers"},
    "Pod": {"serviceAccount", "serviceAccountName", "tolerations", "priority", "preemptionPolicy"},
    "Service": {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"},
    "Job": {"selector", "template"},
}
"""The fields of a spec that the API server sets itself at creation."""


@pytest.mark.parametrize("step", CREATIONS, ids=str)
def test_defaults_agree_with_recorded_creations(step: Step) -> None:
    answer = as_object(step.response, "answer")
    kind = str(answer["kind"])
    defaulted = _comparable(apply_defaults(as_object(step.request, "request")), kind)
    assert defaulted == _comparable(answer, kind)


def _comparable(obj: JsonObject, kind: str) -> JsonObject:
    obj = without_status(content(obj))
    made = (
        {"finalizers", "selfLink"}
        | ({"labels"} if kind == "Job" else set())
        | ({"name"} if find(obj, "metadata", "generateName") else set())
    )
    metadata = {name: value for name, value in find_object(obj, "metadata").items() if name not in made}
    if kind in PREPARED:
        spec = {name: value for name, value in find_object(obj, "spec").items() if name not in PREPARED[kind]}
        if "ports" in spec:
            spec["ports"] = [
                {name: value for name, value in as_object(port, "port").items() if name != "nodePort"}
                for port in find_list(spec, "ports")
            ]
        obj = obj | {"spec": spec}
    return obj | {"metadata": metadata}


def test_the_recorded_creations_cover_many_kinds() -> None:
    assert len({find(step.request, "kind") for step in CREATIONS}) > 12


def make(api_version: str, kind: str, **fields: JsonValue) -> JsonObject:
    metadata: JsonObject = {"name": "x"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


TEMPLATE: JsonObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "i:1"}]}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            make(
                "apps/v1",
                "StatefulSet",
                spec={"template": TEMPLATE, "volumeClaimTemplates": [{"metadata": {"name": "d"}}]},
            ),
            {
                "podManagementPolicy": "OrderedReady",
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "serviceName": "",
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "volumeClaimTemplates": [
                    {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "metadata": {"name": "d"},
                        "spec": {"resources": {}, "volumeMode": "Filesystem"},
                        "status": {"phase": "Pending"},
                    }
                ],
            },
        ),
        (
            make("apps/v1", "StatefulSet", spec={"updateStrategy": {"type": "OnDelete"}}),
            {"updateStrategy": {"type": "OnDelete"}},
        ),
        (
            make("apps/v1", "DaemonSet", spec={"template": TEMPLATE}),
            {
                "revisionHistoryLimit": 10,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            },
        ),
        (
            make("apps/v1", "DaemonSet", spec={"updateStrategy": {"type": "OnDelete"}}),
            {"updateStrategy": {"type": "OnDelete"}},
        ),
        (make("apps/v1", "Deployment", spec={"strategy": {"type": "Recreate"}}), {"strategy": {"type": "Recreate"}}),
        (
            make("apps/v1", "Deployment", spec={"strategy": {"rollingUpdate": {"maxSurge": 1}}}),
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}}},
        ),
        (
            make("v1", "ReplicationController", spec={"template": TEMPLATE}),
            {"replicas": 1, "selector": {"a": "b"}},
        ),
        (
            make("batch/v1", "Job", spec={"template": TEMPLATE}),
            {
                "completions": 1,
                "parallelism": 1,
                "backoffLimit": 6,
                "completionMode": "NonIndexed",
                "suspend": False,
                "manualSelector": False,
                "podReplacementPolicy": "TerminatingOrFailed",
            },
        ),
        (
            make(
                "batch/v1", "Job", spec={"parallelism": 2, "backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": []}}
            ),
            {"parallelism": 2, "backoffLimit": 2147483647, "podReplacementPolicy": "Failed"},
        ),
        (
            make("v1", "Service", spec={"type": "LoadBalancer", "sessionAffinity": "ClientIP", "ports": [{"port": 1}]}),
            {
                "externalTrafficPolicy": "Cluster",
                "internalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": True,
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
                "ports": [{"port": 1, "protocol": "TCP", "targetPort": 1}],
            },
        ),
        (make("v1", "Service", spec={"externalIPs": ["192.0.2.1"]}), {"externalTrafficPolicy": "Cluster"}),
        (
            make("v1", "PersistentVolume", spec={"hostPath": {"path": "/x"}}),
            {
                "persistentVolumeReclaimPolicy": "Retain",
                "volumeMode": "Filesystem",
                "hostPath": {"path": "/x", "type": ""},
            },
        ),
        (
            make("networking.k8s.io/v1", "NetworkPolicy", spec={"ingress": [{"ports": [{"port": 1}]}]}),
            {"policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 1, "protocol": "TCP"}]}]},
        ),
        (make("autoscaling/v1", "HorizontalPodAutoscaler"), {"minReplicas": 1}),
        (
            make("autoscaling/v2", "HorizontalPodAutoscaler"),
            {
                "minReplicas": 1,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                    }
                ],
            },
        ),
        (
            make(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                spec={
                    "names": {"kind": "Thing"},
                    "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s"}}}},
                },
            ),
            {
                "names": {"kind": "Thing", "singular": "thing", "listKind": "ThingList", "plural": ""},
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {
                        "clientConfig": {"service": {"name": "s", "namespace": "", "port": 443}},
                        "conversionReviewVersions": None,
                    },
                },
            },
        ),
        (
            make("apiregistration.k8s.io/v1", "APIService", spec={"service": {"name": "s", "namespace": "n"}}),
            {"service": {"name": "s", "namespace": "n", "port": 443}},
        ),
    ],
)
def test_specs_get_defaults(obj: JsonObject, expected: JsonObject) -> None:
    spec = find_object(apply_defaults(obj), "spec")
    assert {name: spec.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            make("v1", "Secret", stringData={"a": "1", "b": "x"}, data={"b": "eQ=="}),
            {"type": "Opaque", "data": {"a": "MQ==", "b": "eA=="}},
        ),
        (make("v1", "Secret", type="helm.sh/release.v1"), {"type": "helm.sh/release.v1"}),
        (make("storage.k8s.io/v1", "StorageClass"), {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
        (make("scheduling.k8s.io/v1", "PriorityClass"), {"preemptionPolicy": "PreemptLowerPriority"}),
        (
            make(
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
            ),
            {
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "", "name": ""},
                "subjects": [
                    {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
                    {"kind": "ServiceAccount", "name": "s"},
                ],
            },
        ),
        (
            make("v1", "Endpoints", subsets=[{"ports": [{"port": 1}]}]),
            {"subsets": [{"ports": [{"port": 1, "protocol": "TCP"}]}]},
        ),
        (
            make(
                "admissionregistration.k8s.io/v1",
                "MutatingWebhookConfiguration",
                webhooks=[
                    {
                        "name": "w",
                        "clientConfig": {"service": {"name": "s", "namespace": "n"}},
                        "rules": [{"operations": ["*"]}],
                    }
                ],
            ),
            {
                "webhooks": [
                    {
                        "name": "w",
                        "admissionReviewVersions": None,
                        "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 443}},
                        "failurePolicy": "Fail",
                        "matchPolicy": "Equivalent",
                        "namespaceSelector": {},
                        "objectSelector": {},
                        "reinvocationPolicy": "Never",
                        "rules": [{"operations": ["*"], "scope": "*"}],
                        "sideEffects": None,
                        "timeoutSeconds": 10,
                    }
                ]
            },
        ),
    ],
)
def test_other_kinds_get_defaults(obj: JsonObject, expected: JsonObject) -> None:
    defaulted = apply_defaults(obj)
    assert {name: defaulted.get(name) for name in expected} == expected


def test_labels_of_a_job_come_from_its_template() -> None:
    assert find(apply_defaults(make("batch/v1", "Job", spec={"template": TEMPLATE})), "metadata", "labels") == {
        "a": "b"
    }


def test_a_replication_controller_without_a_template_gets_one_replica() -> None:
    defaulted = apply_defaults(make("v1", "ReplicationController", spec={"selector": {"x": "y"}}))
    assert defaulted["spec"] == {"replicas": 1, "selector": {"x": "y"}}


@pytest.mark.parametrize("step", CREATIONS, ids=str)
def test_defaulting_is_idempotent(step: Step) -> None:
    once = apply_defaults(as_object(step.request, "request"))
    assert apply_defaults(once) == once


def test_custom_objects_get_no_defaults() -> None:
    obj = make("example.com/v1", "Deployment", spec={"a": None})
    assert apply_defaults(obj) == obj


def test_a_namespace_without_a_name_gets_no_label() -> None:
    obj: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "x-"}}
    assert apply_defaults(obj)["metadata"] == {"generateName": "x-"}
