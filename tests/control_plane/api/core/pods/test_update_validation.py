"""Validation of changes to Pods, in cases that no recording of a real API server covers."""

from tests.control_plane.support.pod_samples import pod_of
from wharfinger.control_plane.api.core.pods.update_validation import (
    annotation_change_errors,
    ephemeral_change_errors,
    is_mirror,
    quality_change_errors,
    same_spec,
    spec_change_errors,
)
from wharfinger.formats.json.value import JsonObject

TERMS: JsonObject = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_the_node_selection_of_a_gated_pod_may_become_narrower() -> None:
    old = pod_of(schedulingGates=[{"name": "g"}])
    new = pod_of(schedulingGates=[{"name": "g"}], affinity={"nodeAffinity": {REQUIRED: TERMS}}, nodeSelector={"a": "b"})
    assert spec_change_errors(new, old) == []
    assert len(spec_change_errors(pod_of(nodeSelector={"a": "b"}), pod_of())) == 1


def test_an_empty_term_is_immutable() -> None:
    empty: JsonObject = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}
    old = pod_of(schedulingGates=[{"name": "g"}], affinity=empty)
    new = pod_of(schedulingGates=[{"name": "g"}], affinity={"nodeAffinity": {REQUIRED: TERMS}})
    assert [error.reason for error in spec_change_errors(new, old)] == ["FieldValueInvalid"]


def test_the_mirror_and_profile_annotations_cannot_be_removed() -> None:
    gone: JsonObject = {
        "container.apparmor.security.beta.kubernetes.io/a": "unconfined",
        "kubernetes.io/config.mirror": "x",
    }
    old = pod_of(annotations=gone, nodeName="n")
    assert is_mirror(old)
    assert len(annotation_change_errors(pod_of(), old)) == 2
    assert annotation_change_errors(old, old) == []


def test_equivalent_pods_are_no_change() -> None:
    assert same_spec({"volumes": []}, {})
    assert ephemeral_change_errors(pod_of(), pod_of()) == []
    assert quality_change_errors(pod_of(), pod_of()) == []
