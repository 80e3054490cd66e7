"""The versions of the pod security standards, in cases that no recording of a real API server covers."""

import pytest

from wharfinger.control_plane.api.core.pods.security_standards import LATEST, violations
from wharfinger.formats.json.value import JsonObject

FINE: JsonObject = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {"name": "a", "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
    ],
}

NON_ROOT: JsonObject = {"securityContext": {"runAsNonRoot": True}}


def context(**members: JsonObject | str | bool) -> JsonObject:
    return {"containers": [{"name": "a", "securityContext": {**members}}]}


@pytest.mark.parametrize(
    ("spec", "level", "version", "reasons"),
    [
        (FINE, "restricted", LATEST, []),
        ({}, "privileged", LATEST, []),
        (context(procMount="Unmasked"), "baseline", 34, ["procMount"]),
        ({**context(procMount="Unmasked"), "hostUsers": False}, "baseline", 35, []),
        ({**FINE, **context(procMount="Unmasked")}, "restricted", 7, ["procMount"]),
        (context(windowsOptions={"hostProcess": True}), "baseline", 1, ["hostProcess"]),
        (context(privileged=True), "baseline", 1, ["privileged"]),
        (context(seLinuxOptions={"type": "container_engine_t"}), "baseline", 30, ["seLinuxOptions"]),
        (context(seLinuxOptions={"type": "container_engine_t"}), "baseline", 31, []),
        ({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}}, "baseline", 31, ["forbidden sysctls"]),
        ({"securityContext": {"runAsUser": 0, "runAsNonRoot": True}}, "restricted", 22, []),
        (
            {"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": True}, "containers": [{"name": "a"}]},
            "restricted",
            25,
            [],
        ),
    ],
)
def test_violations_depend_on_level_and_version(spec: JsonObject, level: str, version: int, reasons: list[str]) -> None:
    assert [found.reason for found in violations({}, spec, level, version)] == reasons


def test_deprecated_profile_annotations_are_violations() -> None:
    metadata: JsonObject = {
        "annotations": {
            "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
            "container.apparmor.security.beta.kubernetes.io/a": "unconfined",
        }
    }
    found = violations(metadata, {"containers": [{"name": "a"}]}, "baseline", 18)
    assert [item.reason for item in found] == ["forbidden AppArmor profile", "seccompProfile"]
