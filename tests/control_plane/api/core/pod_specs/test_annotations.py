"""Validation of the annotations that have a meaning for Pods."""

import pytest

from wharfinger.control_plane.api.core.pod_specs.annotations import agreement_errors, annotation_errors
from wharfinger.formats.json.value import JsonObject

SPEC: JsonObject = {"containers": [{"name": "a"}]}
COST = "controller.kubernetes.io/pod-deletion-cost"
OLD_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/a"


@pytest.mark.parametrize(
    ("key", "value", "count"),
    [
        (COST, "5", 0),
        (COST, "2147483648", 1),
        (COST, "05", 1),
        (OLD_TOLERATIONS, "[]", 0),
        (OLD_TOLERATIONS, "{", 1),
        (OLD_TOLERATIONS, '[{"key": "a b", "operator": "Exists"}]', 1),
        (SECCOMP, "localhost/a", 0),
        (SECCOMP, "localhost/../a", 1),
        (APPARMOR, "localhost/a", 0),
        ("kubernetes.io/config.mirror", "x", 1),
    ],
)
def test_invalid_annotation_values_are_reported(key: str, value: str, count: int) -> None:
    assert len(annotation_errors({"annotations": {key: value}}, SPEC, "p")) == count


def test_annotations_must_agree_with_the_apparmor_profile() -> None:
    profile: JsonObject = {"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}}
    spec: JsonObject = {"containers": [{"name": "a", "securityContext": profile}]}
    assert agreement_errors({"annotations": {APPARMOR: "localhost/x"}}, spec, "spec") == []
    assert agreement_errors({}, spec, "spec") == []
    other = agreement_errors({"annotations": {APPARMOR: "localhost/y"}}, spec, "spec")
    assert [error.field for error in other] == ["spec.containers[0].securityContext.appArmorProfile.localhostProfile"]
    assert agreement_errors({"annotations": {APPARMOR: "y"}}, {**spec, "os": {"name": "windows"}}, "spec") == []
