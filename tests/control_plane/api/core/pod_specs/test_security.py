"""Validation of security contexts."""

from wharfinger.control_plane.api.core.pod_specs.security import (
    apparmor_errors,
    container_context_errors,
    pod_context_errors,
)
from wharfinger.formats.json.value import JsonObject


def test_valid_security_contexts_are_accepted() -> None:
    context: JsonObject = {
        "runAsUser": 0,
        "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}],
        "seccompProfile": {"type": "Localhost", "localhostProfile": "a"},
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "a"},
        "procMount": "Unmasked",
        "allowPrivilegeEscalation": False,
    }
    assert pod_context_errors({"securityContext": context}, "spec") == []
    assert container_context_errors({"securityContext": context}, "c", host_users=False) == []
    assert container_context_errors({}, "c", host_users=True) == []


def test_invalid_apparmor_profiles_are_refused() -> None:
    long: JsonObject = {"appArmorProfile": {"type": "Localhost", "localhostProfile": "a" * 5000}}
    empty: JsonObject = {"appArmorProfile": {"type": "Localhost", "localhostProfile": ""}}
    assert [error.reason for error in apparmor_errors(long, "p")] == ["FieldValueTooLong"]
    assert [error.reason for error in apparmor_errors(empty, "p")] == ["FieldValueRequired"]
    assert [error.reason for error in apparmor_errors({"appArmorProfile": {"type": "x"}}, "p")] == [
        "FieldValueNotSupported"
    ]
