"""References to objects that do not exist."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.offline.checking.references import dangling
from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.store.identity import object_id


def obj(api_version: str, kind: str, name: str = "x", **fields: JsonValue) -> Manifest:
    made: JsonObject = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "n"}, **fields}
    return Manifest(object_id(made), made)


def pod(**spec: JsonValue) -> Manifest:
    return obj("v1", "Pod", spec=spec)


def told(*manifests: Manifest) -> list[str]:
    return [each.message.removesuffix(", which is not in the tree") for each in dangling(manifests)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"serviceAccountName": "sa"}, ["serviceAccountName names ServiceAccount n/sa"]),
        ({"serviceAccountName": "default"}, []),
        ({"volumes": [{"configMap": {"name": "m"}}]}, ["volumes names ConfigMap n/m"]),
        ({"volumes": [{"configMap": {"name": "m", "optional": True}}]}, []),
        ({"volumes": [{"secret": {"secretName": "s"}}]}, ["volumes names Secret n/s"]),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}, ["volumes names PersistentVolumeClaim n/c"]),
        ({"containers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]}, ["envFrom names Secret n/s"]),
        (
            {"initContainers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "m"}}}]}]},
            ["env names ConfigMap n/m"],
        ),
        ({"volumes": "of another shape"}, []),
    ],
)
def test_references_of_pods_are_collected(spec: JsonObject, expected: list[str]) -> None:
    assert told(pod(**spec)) == expected


def test_references_to_existing_objects_are_not_reported() -> None:
    spec: JsonObject = {"volumes": [{"configMap": {"name": "m"}}]}
    deployment = obj("apps/v1", "Deployment", spec={"template": {"spec": spec}})
    assert told(deployment) == ["volumes names ConfigMap n/m"]
    assert told(deployment, obj("v1", "ConfigMap", "m")) == []


def test_dangling_references_of_routes_bindings_and_scalers_are_reported() -> None:
    path: JsonObject = {"backend": {"service": {"name": "web"}}}
    ingress = obj("networking.k8s.io/v1", "Ingress", spec={"rules": [{"http": {"paths": [path]}}]})
    subject: JsonObject = {"kind": "ServiceAccount", "name": "sa"}
    rbac = "rbac.authorization.k8s.io/v1"
    binding = obj(rbac, "RoleBinding", roleRef={"kind": "Role", "name": "r"}, subjects=[subject])
    known = obj(rbac, "RoleBinding", "k", roleRef={"kind": "ClusterRole", "name": "view"})
    scaler = obj(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    )
    assert told(ingress, binding, known, scaler) == [
        "spec.scaleTargetRef names Deployment n/web",
        "rules names Service n/web",
        "roleRef names Role n/r",
        "subjects names ServiceAccount n/sa",
    ]
