import pytest
from hypothesis import given

from tests.control_plane.support.validation_fuzz import shapes
from wharfinger.control_plane.api.networking.ingresses import (
    INGRESS_RULES,
    created_ingress_errors,
    ingress_class_errors,
    ingress_status_errors,
)
from wharfinger.formats.json.value import JsonObject, JsonValue

RULES = INGRESS_RULES["Ingress.networking.k8s.io"]
BACKEND: JsonObject = {"service": {"name": "s", "port": {"number": 80}}}


def path(kind: str, value: str = "") -> JsonObject:
    paths: list[JsonValue] = [{"pathType": kind, "path": value, "backend": BACKEND}]
    return {"spec": {"rules": [{"http": {"paths": paths}}]}}


@pytest.mark.parametrize(
    ("kind", "value", "count"),
    [
        ("Prefix", "/a", 0),
        ("Exact", "a", 1),
        ("Exact", "/a//b/../%2F/..", 4),
        ("ImplementationSpecific", "", 0),
        ("ImplementationSpecific", "a", 1),
        ("Odd", "/", 1),
    ],
)
def test_invalid_ingress_paths_are_reported(kind: str, value: str, count: int) -> None:
    assert len(created_ingress_errors(path(kind, value))) == count


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        (BACKEND, ""),
        ({"resource": {"apiGroup": "a.b", "kind": "K", "name": "n"}}, ""),
        ({"resource": {"apiGroup": "A", "kind": "a/b"}}, "spec.defaultBackend.resource.apiGroup"),
        ({"resource": {}, "service": {}}, "cannot set both resource and service backends"),
        ({}, "resource or service backend is required"),
        ({"service": {"name": "s", "port": {"name": "a", "number": 1}}}, "cannot set both port name & port number"),
        ({"service": {"name": "s"}}, "port name or number is required"),
        ({"service": {"name": "s", "port": {"name": "A_"}}}, "service.port.name"),
        ({"service": {"port": {"number": 70000}}}, "service.name: Required value"),
    ],
)
def test_invalid_backends_are_refused(backend: JsonObject, said: str) -> None:
    errors = [str(error) for error in created_ingress_errors({"spec": {"defaultBackend": backend}})]

    assert not errors if not said else said in errors[0]


def test_violations_of_a_stored_ingress_are_tolerated() -> None:
    wild: JsonObject = {"spec": {"rules": [{"host": "*.a.b", "http": {}}]}}
    assert len(created_ingress_errors(wild)) == 1
    assert RULES.update(wild, wild) == []
    secret: JsonObject = {"spec": {"defaultBackend": BACKEND, "tls": [{"hosts": ["*.a.b"], "secretName": "A_"}]}}
    assert len(created_ingress_errors(secret)) == 1
    assert RULES.update(secret, secret) == []


def test_invalid_hosts_are_refused() -> None:
    fields = [str(error) for error in created_ingress_errors({"spec": {"rules": [{"host": "1.2.3.4"}, {"host": "*"}]}})]

    assert "must be a DNS name, not an IP address" in fields[0]
    assert fields[1].startswith("spec.rules[1].host")


def test_the_deprecated_class_annotation_causes_a_warning() -> None:
    annotated: JsonObject = {"annotations": {"kubernetes.io/ingress.class": "a"}}
    both: JsonObject = {"metadata": annotated, "spec": {"ingressClassName": "b", "defaultBackend": BACKEND}}
    assert [error.field for error in created_ingress_errors(both)] == ["annotations.kubernetes.io/ingress.class"]
    assert "is deprecated" in RULES.warnings(both, None)[0]
    assert RULES.warnings(both, both) == RULES.warnings({}, None) == []


def test_invalid_status_addresses_are_reported() -> None:
    items: list[JsonValue] = [{"ip": "x"}, {"hostname": "1.2.3.4"}, {"ip": "1.2.3.4", "hostname": "a.b"}]
    status: JsonObject = {"status": {"loadBalancer": {"ingress": items}}}

    found = [error.field for error in ingress_status_errors(status, {})]
    assert found == ["status.loadBalancer.ingress[0].ip", "status.loadBalancer.ingress[1].hostname"]


@pytest.mark.parametrize(
    ("parameters", "fields"),
    [
        ({"kind": "K", "name": "n", "scope": "Cluster"}, []),
        ({"kind": "K", "name": "n"}, ["spec.parameters.scope"]),
        ({"kind": "K", "name": "n", "scope": "Odd"}, ["spec.parameters.scope"]),
        ({"kind": "K", "name": "n", "scope": "Cluster", "namespace": "a"}, ["spec.parameters.namespace"]),
        ({"kind": "K", "name": "n", "scope": "Namespace"}, ["spec.parameters.namespace"]),
        ({"kind": "K", "name": "n", "scope": "Namespace", "namespace": "A"}, ["spec.parameters.namespace"]),
    ],
)
def test_invalid_class_parameters_are_reported(parameters: JsonObject, fields: list[str]) -> None:
    spec: JsonObject = {"controller": "a.b/c", "parameters": parameters}

    assert [error.field for error in ingress_class_errors({"spec": spec})] == fields


def test_the_controller_of_a_class_is_immutable() -> None:
    rules = INGRESS_RULES["IngressClass.networking.k8s.io"]
    new: JsonObject = {"spec": {"controller": "a.b/" + "c" * 250}}

    found = [str(error) for error in rules.update(new, {"spec": {"controller": "a.b/c"}})]
    assert "field is immutable" in found[0]
    assert "Too long" in found[1]


NAMES = ("spec", "rules", "http", "paths", "backend", "service", "port", "tls", "status", "loadBalancer", "ingress")


@given(shapes(*NAMES), shapes(*NAMES))
def test_arbitrary_objects_do_not_crash(new: JsonObject, old: JsonObject) -> None:
    for rules in INGRESS_RULES.values():
        rules.create(new)
        rules.update(new, old)
        rules.status(new, old)
        rules.warnings(new, None)
