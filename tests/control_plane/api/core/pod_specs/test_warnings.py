"""Warnings about Pods, in cases that no recording of a real API server covers."""

import pytest

from tests.control_plane.support.pod_samples import pod_of
from wharfinger.control_plane.api.core.pod_specs.warnings import (
    apparmor_field,
    pod_status_warnings,
    pod_template_warnings,
    pod_warnings,
)
from wharfinger.formats.json.value import JsonObject

KEY = "container.apparmor.security.beta.kubernetes.io/a"


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("unconfined", {"type": "Unconfined"}),
        ("runtime/default", {"type": "RuntimeDefault"}),
        ("localhost/a", {"type": "Localhost", "localhostProfile": "a"}),
        ("localhost/", None),
        ("else", None),
    ],
)
def test_deprecated_profile_annotations_are_converted_to_fields(said: str, field: JsonObject | None) -> None:
    assert apparmor_field(said) == field


def test_a_profile_field_set_by_the_client_suppresses_the_warning() -> None:
    context: JsonObject = {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}
    pod = pod_of({"name": "a", "image": "i", **context}, annotations={KEY: "unconfined"})
    assert len(pod_warnings(pod, None)) == 1
    owned: JsonObject = {
        "f:spec": {"f:containers": {'k:{"name":"a"}': {"f:securityContext": {"f:appArmorProfile": {}}}}}
    }
    metadata: JsonObject = {"name": "p", "annotations": {KEY: "unconfined"}, "managedFields": [{"fieldsV1": owned}]}
    assert pod_warnings({**pod, "metadata": metadata}, None) == []


def test_ambiguous_host_ports_cause_a_warning() -> None:
    ports: list[JsonObject] = [
        {"containerPort": 80, "hostPort": 80},
        {"containerPort": 80, "hostPort": 80, "hostIP": "1.1.1.1"},
    ]
    template = pod_of({"name": "a", "image": "i", "ports": [*ports]})
    assert "dangerously ambiguous" in pod_template_warnings(template, "spec.template")[0]


def test_non_canonical_status_addresses_cause_a_warning() -> None:
    assert (
        len(pod_status_warnings({"status": {"podIPs": [{"ip": "FD00::1"}], "hostIPs": [{"ip": "1.1.1.1"}]}}, None)) == 1
    )
