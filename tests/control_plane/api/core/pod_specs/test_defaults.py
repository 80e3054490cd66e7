"""Defaults of Pods and Pod templates."""

import pytest

from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.control_plane.api.core.pod_specs.defaults import default_pod, default_pod_template
from wharfinger.formats.json.value import JsonObject, JsonValue, find


def container(**fields: JsonValue) -> JsonObject:
    return {"name": "a", "image": "i:1", **fields}


def pod(*containers: JsonObject, **spec: JsonValue) -> JsonObject:
    metadata: JsonObject = {"name": "p"}
    whole: JsonObject = {"containers": list[JsonValue](containers), **spec}
    return apply_defaults({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole})


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("i", "Always"),
        ("i:latest", "Always"),
        ("host:5000/i", "Always"),
        ("host:5000/i:1.0", "IfNotPresent"),
        ("i@sha256:00", "IfNotPresent"),
        (None, "IfNotPresent"),
    ],
)
def test_the_default_pull_policy_depends_on_the_tag(image: str | None, policy: str) -> None:
    assert find(pod(container(image=image)), "spec", "containers", 0, "imagePullPolicy") == policy


def test_values_that_are_set_get_no_default() -> None:
    obj = pod(
        container(imagePullPolicy="Never", terminationMessagePath="/x"), restartPolicy="Never", schedulerName="mine"
    )
    assert find(obj, "spec", "containers", 0, "imagePullPolicy") == "Never"
    assert find(obj, "spec", "containers", 0, "terminationMessagePath") == "/x"
    assert (find(obj, "spec", "restartPolicy"), find(obj, "spec", "schedulerName")) == ("Never", "mine")


def test_probes_and_handlers_get_defaults() -> None:
    obj = pod(
        container(
            livenessProbe={"httpGet": {"port": 80}},
            readinessProbe={"grpc": {"port": 1}, "periodSeconds": 3},
            lifecycle={"preStop": {"httpGet": {"port": 80, "path": "/bye"}}, "postStart": {"exec": {"command": ["x"]}}},
        )
    )
    made = find(obj, "spec", "containers", 0)
    assert find(made, "livenessProbe") == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert find(made, "readinessProbe", "grpc") == {"port": 1, "service": ""}
    assert find(made, "readinessProbe", "periodSeconds") == 3
    assert find(made, "lifecycle", "preStop", "httpGet") == {"port": 80, "path": "/bye", "scheme": "HTTP"}
    assert find(made, "lifecycle", "postStart") == {"exec": {"command": ["x"]}}


@pytest.mark.parametrize(
    ("source", "defaulted"),
    [
        ({}, {"emptyDir": {}}),
        ({"emptyDir": {"medium": "Memory"}}, {"emptyDir": {"medium": "Memory"}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"configMap": {"name": "c", "defaultMode": 256}}, {"configMap": {"name": "c", "defaultMode": 256}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        (
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {
                "downwardAPI": {
                    "defaultMode": 420,
                    "items": [{"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}],
                }
            },
        ),
        (
            {
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "t"}},
                        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "f"}}]}},
                    ]
                }
            },
            {
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
                        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "f"}}]}},
                    ],
                }
            },
        ),
        (
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "metadata": {},
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {}, "volumeMode": "Filesystem"},
                    }
                }
            },
        ),
    ],
)
def test_volumes_get_defaults(source: JsonObject, defaulted: JsonObject) -> None:
    volume: JsonObject = {"name": "v", **source}
    assert find(pod(volumes=[volume]), "spec", "volumes", 0) == {"name": "v", **defaulted}


def test_environment_and_ports_get_defaults() -> None:
    obj = pod(
        container(
            env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "P", "value": "1"}],
            ports=[{"containerPort": 80}],
        ),
        hostNetwork=True,
    )
    made = find(obj, "spec", "containers", 0)
    assert find(made, "env", 0, "valueFrom", "fieldRef", "apiVersion") == "v1"
    assert find(made, "ports") == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_limits_become_requests_in_pods_only() -> None:
    resources: JsonObject = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    assert find(pod(container(resources=resources)), "spec", "containers", 0, "resources", "requests") == {
        "cpu": "500m",
        "memory": "1Gi",
    }
    template: JsonObject = {"spec": {"containers": [container(resources={"limits": {"cpu": "1"}})]}}
    default_pod_template(template)
    assert find(template, "spec", "containers", 0, "resources") == {"limits": {"cpu": "1"}}


def test_a_spec_of_a_wrong_type_is_left_unchanged() -> None:
    template: JsonObject = {"spec": "odd"}
    default_pod(template)
    assert template == {"metadata": {}, "spec": "odd"}
