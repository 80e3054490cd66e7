import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.control_plane.api.core.services.validation import (
    SERVICE_RULES,
    balancer_status_errors,
    externally_accessible,
    needs_health_check,
)
from wharfinger.formats.json.value import JsonObject, JsonValue


def service(**spec: JsonValue) -> JsonObject:
    annotations = spec.pop("annotations", {})
    filled: JsonObject = {"ports": [{"port": 80}], **spec}
    named: JsonObject = {"name": "a", "namespace": "n", "annotations": annotations}
    return apply_defaults({"apiVersion": "v1", "kind": "Service", "metadata": named, "spec": filled})


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, ""),
        ({"ports": []}, "spec.ports: Required value"),
        (
            {"clusterIP": "None", "clusterIPs": ["None"], "type": "NodePort"},
            "may not be set to 'None' for NodePort services",
        ),
        ({"type": "ExternalName", "externalName": "a.b."}, ""),
        ({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}, "spec.healthCheckNodePort: Required value"),
        (
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 70000},
            "between 1 and 65535",
        ),
        ({"type": "NodePort", "ports": [{"port": 1, "nodePort": 5}, {"port": 2, "nodePort": 5}]}, "Duplicate value: 5"),
        ({"externalTrafficPolicy": "Some", "type": "NodePort"}, 'supported values: "Cluster", "Local"'),
    ],
)
def test_invalid_service_fields_are_reported(spec: JsonObject, said: str) -> None:
    errors = [str(error) for error in SERVICE_RULES.create(service(**spec))]

    assert not errors if not said else any(said in error for error in errors)


def test_invalid_annotations_are_refused_on_creation_only() -> None:
    hints: JsonObject = {"service.kubernetes.io/topology-aware-hints": "a", "service.kubernetes.io/topology-mode": "b"}
    wrong = service(annotations=hints)
    assert "must match annotations" in SERVICE_RULES.create(wrong)[0].message
    said = SERVICE_RULES.warnings(wrong, None)[0]
    assert said.startswith("annotation service.kubernetes.io/topology-aware-hints is deprecated")

    ranges: JsonObject = {"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8, nonsense"}
    balanced = service(annotations=ranges, type="LoadBalancer")
    assert [error.field for error in SERVICE_RULES.create(balanced)] == [f"metadata.annotations[{next(iter(ranges))}]"]
    assert SERVICE_RULES.update(balanced, balanced) == []


def test_ignored_fields_of_headless_services_cause_warnings() -> None:
    bare = service(clusterIP="None", loadBalancerIP="1.2.3.4", externalIPs=["1.2.3.4"], sessionAffinity="ClientIP")
    said = SERVICE_RULES.warnings(bare, None)

    assert [line.split()[0] for line in said] == ["spec.loadBalancerIP", "spec.externalIPs", "spec.SessionAffinity"]


def test_services_with_external_addresses_are_externally_accessible() -> None:
    assert externally_accessible(service(externalIPs=["1.2.3.4"]))
    assert not externally_accessible(service())
    assert needs_health_check(service(type="LoadBalancer", externalTrafficPolicy="Local"))


def test_old_addresses_of_load_balancers_are_tolerated() -> None:
    old: JsonObject = {"status": {"loadBalancer": {"ingress": [{"ip": "010.0.0.1"}]}}}
    new: JsonObject = {"status": {"loadBalancer": {"ingress": [{"ip": "010.0.0.1", "ipMode": "VIP"}]}}}

    assert balancer_status_errors(new, old, balanced=True) == []
    assert len(balancer_status_errors(new, None, balanced=True)) == 1
    assert SERVICE_RULES.status_warnings(new, None)


NAMES = (
    "metadata",
    "spec",
    "status",
    "ports",
    "type",
    "clusterIPs",
    "ipFamilies",
    "loadBalancer",
    "ingress",
    "annotations",
)


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    (
        SERVICE_RULES.create(new),
        SERVICE_RULES.update(new, old),
        SERVICE_RULES.status(new, old),
        SERVICE_RULES.warnings(new, old),
    )
