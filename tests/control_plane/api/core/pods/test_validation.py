"""Validation of Pods, in cases that no recording of a real API server covers."""

import pytest

from tests.control_plane.support.pod_samples import pod_of
from wharfinger.control_plane.api.core.pods.validation import POD_RULES, pod_errors
from wharfinger.formats.json.value import JsonObject, find_object

RULES = POD_RULES["Pod"]
MIRROR: JsonObject = {"kubernetes.io/config.mirror": "x"}


def test_a_valid_pod_has_no_errors() -> None:
    pod = pod_of()
    assert RULES.create(pod) == []
    assert RULES.update({**pod, "spec": {**find_object(pod, "spec")}}, pod) == []
    assert RULES.update(pod, pod) == []
    assert RULES.status(pod, pod) == []
    assert RULES.warnings(pod, None) == RULES.warnings(pod, pod) == []


def test_a_projected_token_needs_a_service_account() -> None:
    source: JsonObject = {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    pod = pod_of(volumes=[{"name": "v", **source}], serviceAccountName="")
    assert [error.field for error in pod_errors(pod)] == ["spec.volumes[0].projected.sources[0].serviceAccountToken"]


def test_a_gated_pod_may_not_have_a_node() -> None:
    errors = RULES.create(pod_of(nodeName="n", schedulingGates=[{"name": "g"}]))
    assert [error.field for error in errors] == ["spec.nodeName"]


@pytest.mark.parametrize("subresource", ["ephemeralcontainers", "resize"])
def test_static_pods_are_immutable(subresource: str) -> None:
    pod = pod_of(annotations=MIRROR, nodeName="n")
    assert [error.field for error in RULES.subresources[subresource](pod, pod)] == ["[]"]


def test_values_of_wrong_types_do_not_crash() -> None:
    odd: JsonObject = {"metadata": [], "spec": {"containers": [5, {"ports": "x", "env": [None]}], "volumes": {"a": 1}}}
    assert RULES.create(odd)
    assert RULES.update({**odd, "spec": {**find_object(odd, "spec")}}, odd)
    assert not RULES.update(odd, odd)  # an unchanged spec is not validated again
    assert RULES.status({"status": {"conditions": [1], "podIPs": "x"}}, {}) != []
