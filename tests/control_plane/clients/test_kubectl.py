"""The real kubectl on the control plane, as users usually work with it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_plane.support.samples import definition
from tests.control_plane.support.served import Served, served
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list

pytestmark = pytest.mark.unmeasured

LIMIT = "--timeout=60s"
WEB: JsonObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
        },
    },
}
SETTINGS: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings"},
    "data": {"color": "blue"},
}
WIDGET: JsonObject = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "one"},
    "spec": {"size": 3},
}
COLUMNS: list[JsonValue] = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        running.run("kubectl", "create", "namespace", "shop")
        yield running


def kubectl(plane: Served, *arguments: str) -> list[str]:
    """Run kubectl in the namespace ``shop``, and return the lines of its output."""
    return plane.run("kubectl", "-n", "shop", *arguments).splitlines()


def get(plane: Served, *arguments: str) -> JsonObject:
    found: JsonObject = json.loads(plane.run("kubectl", "-n", "shop", "get", *arguments, "-o", "json"))
    return found


def manifest(plane: Served, *objects: JsonObject) -> str:
    """Write objects to a new file, and return its path."""
    path = plane.home / f"manifest-{len(list(plane.home.glob('manifest-*')))}.yaml"
    path.write_text("\n---\n".join(map(json.dumps, objects)))
    return str(path)


@pytest.mark.slow
def test_kubectl_applies_objects_from_the_client(plane: Served) -> None:
    path = manifest(plane, WEB, SETTINGS)

    assert kubectl(plane, "apply", "-f", path) == ["deployment.apps/web created", "configmap/settings created"]
    assert kubectl(plane, "apply", "-f", path) == ["deployment.apps/web unchanged", "configmap/settings unchanged"]
    assert kubectl(plane, "wait", "--for=condition=Available", "deployment/web", LIMIT) == [
        "deployment.apps/web condition met"
    ]
    assert kubectl(plane, "apply", "-f", manifest(plane, {**SETTINGS, "data": {"size": "9"}})) == [
        "configmap/settings configured"
    ]
    assert get(plane, "configmap", "settings")["data"] == {"size": "9"}


@pytest.mark.slow
def test_kubectl_applies_a_list_and_checks_its_items(plane: Served) -> None:
    """kubectl validates the list against the server's OpenAPI v2 document in protobuf. The server validates the items."""
    items: list[JsonValue] = [SETTINGS, {**SETTINGS, "metadata": {"name": "more"}}]
    path = manifest(plane, {"apiVersion": "v1", "kind": "List", "items": items})
    assert kubectl(plane, "apply", "-f", path) == ["configmap/settings created", "configmap/more created"]

    wrong = manifest(plane, {"apiVersion": "v1", "kind": "List", "items": [{**SETTINGS, "dta": {}}]})
    assert 'unknown field "dta"' in plane.refused("kubectl", "-n", "shop", "apply", "-f", wrong)


@pytest.mark.slow
def test_custom_resources_are_validated_against_their_schema(plane: Served) -> None:
    spec: JsonObject = {
        "type": "object",
        "required": ["size"],
        "properties": {"size": {"type": "integer", "minimum": 1}, "color": {"type": "string", "default": "red"}},
    }
    schema: JsonObject = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    kubectl(plane, "apply", "-f", manifest(plane, definition(schema=schema)))
    kubectl(plane, "wait", "--for=condition=Established", "crd/widgets.example.com", LIMIT)

    for arguments in (("apply",), ("apply", "--server-side"), ("create",)):
        missing = plane.refused(
            "kubectl", "-n", "shop", *arguments, "-f", manifest(plane, {**WIDGET, "spec": {"color": "x"}})
        )
        assert 'The Widget "one" is invalid: spec.size: Required value' in missing
    kubectl(plane, "apply", "-f", manifest(plane, WIDGET))
    assert get(plane, "widget", "one")["spec"] == {"size": 3, "color": "red"}
    small = plane.refused(
        "kubectl", "-n", "shop", "patch", "widget", "one", "--type=merge", "-p", '{"spec":{"size":0}}'
    )
    assert "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1" in small


@pytest.mark.slow
def test_kubectl_applies_objects_on_the_server(plane: Served) -> None:
    path = manifest(plane, WEB, SETTINGS)
    changed = manifest(plane, {**SETTINGS, "data": {"color": "red"}})

    for _ in range(2):
        assert kubectl(plane, "apply", "--server-side", "-f", path) == [
            "deployment.apps/web serverside-applied",
            "configmap/settings serverside-applied",
        ]
    complaint = plane.refused("kubectl", "-n", "shop", "apply", "--server-side", "--field-manager=x", "-f", changed)
    assert 'conflict with "kubectl": .data.color' in complaint
    kubectl(plane, "apply", "--server-side", "--field-manager=x", "--force-conflicts", "-f", changed)

    found = get(plane, "configmap", "settings", "--show-managed-fields")
    managers = {
        find(entry, "manager"): find(entry, "fieldsV1") for entry in find_list(found, "metadata", "managedFields")
    }
    assert found["data"] == {"color": "red"}
    assert find(managers["x"], "f:data") == {"f:color": {}}


@pytest.mark.slow
def test_kubectl_shows_objects_in_every_output_format(plane: Served) -> None:
    kubectl(plane, "apply", "-f", manifest(plane, WEB, SETTINGS))
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)

    header, row = kubectl(plane, "get", "deployments", "-o", "wide")
    assert header.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert row.split()[:4] == ["web", "2/2", "2", "2"]
    assert row.split()[5:] == ["web", "registry.example/web:1", "app=web"]
    assert find(get(plane, "deployment", "web"), "status", "availableReplicas") == 2
    assert "  color: blue" in kubectl(plane, "get", "configmap", "settings", "-o", "yaml")
    assert kubectl(plane, "get", "deploy/web", "cm/settings", "-o", "name") == [
        "deployment.apps/web",
        "configmap/settings",
    ]
    described = kubectl(plane, "describe", "deployment", "web")
    assert described[0].split() == ["Name:", "web"]
    assert "Replicas:               2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in described


@pytest.mark.slow
def test_kubectl_changes_and_deletes_objects(plane: Served) -> None:
    kubectl(plane, "apply", "-f", manifest(plane, WEB, SETTINGS))

    kubectl(plane, "patch", "configmap", "settings", "-p", '{"data":{"size":"9"}}')
    kubectl(plane, "patch", "configmap", "settings", "--type=json", "-p", '[{"op":"remove","path":"/data/color"}]')
    kubectl(plane, "label", "configmap", "settings", "tier=front")
    kubectl(plane, "annotate", "configmap", "settings", "note=x")
    assert kubectl(plane, "scale", "deployment/web", "--replicas=3") == ["deployment.apps/web scaled"]
    kubectl(plane, "rollout", "status", "deployment/web", LIMIT)

    settings = get(plane, "configmap", "settings")
    assert (settings["data"], find(settings, "metadata", "labels")) == ({"size": "9"}, {"tier": "front"})
    assert find(settings, "metadata", "annotations", "note") == "x"
    assert find(get(plane, "deployment", "web"), "status", "readyReplicas") == 3
    assert kubectl(plane, "get", "configmaps", "-l", "tier=front", "-o", "name") == ["configmap/settings"]

    kubectl(plane, "delete", "deployment/web", "configmap/settings", LIMIT)
    assert "not found" in plane.refused("kubectl", "-n", "shop", "get", "deployment", "web")
    plane.run("kubectl", "delete", "namespace", "shop", LIMIT)
    assert "not found" in plane.refused("kubectl", "get", "namespace", "shop")


@pytest.mark.slow
def test_kubectl_handles_a_custom_kind(plane: Served) -> None:
    crd = manifest(plane, definition(additionalPrinterColumns=COLUMNS))
    plane.run("kubectl", "apply", "--server-side", "-f", crd)
    plane.run("kubectl", "wait", "--for=condition=Established", "crd/widgets.example.com", LIMIT)

    assert kubectl(plane, "apply", "--server-side", "-f", manifest(plane, WIDGET)) == [
        "widget.example.com/one serverside-applied"
    ]
    kubectl(plane, "patch", "widget", "one", "--type=merge", "-p", '{"spec":{"size":6}}')
    assert [line.split() for line in kubectl(plane, "get", "widgets")] == [["NAME", "SIZE"], ["one", "6"]]
    assert "  Size:  6" in kubectl(plane, "describe", "widget", "one")
    assert "  size\t<integer>" in kubectl(plane, "explain", "widget.spec")
    kubectl(plane, "delete", "widget", "one", LIMIT)
    plane.run("kubectl", "delete", "crd", "widgets.example.com", LIMIT)
    assert "could not find the requested resource" in plane.refused("kubectl", "get", "widgets")


def test_kubectl_lists_served_kinds_and_versions(plane: Served) -> None:
    kinds = [line.split()[-1] for line in plane.run("kubectl", "api-resources").splitlines()]
    assert {"ConfigMap", "Deployment", "CustomResourceDefinition"} <= set(kinds)
    assert "apps/v1" in plane.run("kubectl", "api-versions").splitlines()
    assert find(json.loads(plane.run("kubectl", "version", "-o", "json")), "serverVersion", "major") == "1"
