"""Admission by the pod security labels of namespaces, in cases that no recording of a real API server covers."""

from tests.control_plane.support.pod_writes import backend, write
from wharfinger.control_plane.api.core.pods.security_admission import check_security
from wharfinger.formats.json.value import JsonObject

LABEL = "pod-security.kubernetes.io/"


def namespace(**labels: str) -> JsonObject:
    return {
        "metadata": {"name": "n", "labels": {LABEL + name.replace("_", "-"): value for name, value in labels.items()}}
    }


def test_existing_pods_cause_warnings() -> None:
    spec: JsonObject = {"hostNetwork": True}
    pods: list[tuple[str, str, JsonObject]] = [
        ("", "pods", {"metadata": {"name": name, "namespace": "a"}, "spec": spec}) for name in "xyz"
    ]
    view = backend(*pods)
    admission = write(view, namespace(enforce="baseline"), namespace(), plural="namespaces")
    check_security(admission)
    assert admission.warnings == [
        'existing pods in namespace "a" violate the new PodSecurity enforce level "baseline:latest"',
        "x (and 2 other pods): host namespaces",
    ]


def test_other_requests_are_not_checked() -> None:
    view = backend(("", "namespaces", namespace(enforce="restricted")))
    pod: JsonObject = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
    for admission in (write(view, pod, pod), write(view, pod, below="status"), write(backend(), pod)):
        check_security(admission)
        assert admission.warnings == []
    relaxed = write(view, namespace(enforce="baseline"), namespace(enforce="restricted"), plural="namespaces")
    check_security(relaxed)
    assert relaxed.warnings == []
