"""The real helm, in versions 4 and 3, manages releases in the control plane."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_plane.support.served import Served, served
from tests.packages.support.charts import chart
from wharfinger.formats.json.value import JsonObject, JsonValue

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
"""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


def text(plane: Served) -> str:
    """Return ``data.text`` of the release's ConfigMap."""
    return plane.run("kubectl", "-n", "shop", "get", "configmap", "front", "-o", "jsonpath={.data.text}")


@pytest.mark.sampled
@pytest.mark.parametrize("helm", ["helm", "helm3"])
def test_helm_installs_upgrades_and_uninstalls_a_release(helm: str, plane: Served, tmp_path: Path) -> None:
    folder = str(chart(tmp_path / "chart", files={"templates/deployment.yaml": DEPLOYMENT}))

    def ask(*arguments: str) -> JsonValue:
        answer: JsonValue = json.loads(plane.run(helm, "-n", "shop", *arguments, "-o", "json"))
        return answer

    def releases() -> list[tuple[JsonValue, JsonValue, JsonValue, JsonValue]]:
        listed: list[JsonObject] = json.loads(plane.run(helm, "list", "-A", "-o", "json"))
        return [(item["name"], item["namespace"], item["revision"], item["status"]) for item in listed]

    plane.run(helm, "-n", "shop", "install", "front", folder, "--create-namespace", "--set", "text=one", "--wait")
    assert releases() == [("front", "shop", "1", "deployed")]
    assert text(plane) == "one"
    manifest = plane.run(helm, "-n", "shop", "get", "manifest", "front")
    assert ("kind: Deployment" in manifest, 'text: "one"' in manifest) == (True, True)
    assert "2/2" in plane.run("kubectl", "-n", "shop", "get", "deployment", "front")

    plane.run(helm, "-n", "shop", "upgrade", "front", folder, "--set", "text=two", "--wait")
    assert text(plane) == "two"
    plane.run(helm, "-n", "shop", "rollback", "front", "1", "--wait")
    assert text(plane) == "one"
    history = ask("history", "front")
    assert isinstance(history, list)
    assert [(entry["revision"], entry["status"]) for entry in history if isinstance(entry, dict)] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "deployed"),
    ]

    plane.run(helm, "-n", "shop", "uninstall", "front", "--wait")
    assert releases() == []
    assert plane.run("kubectl", "-n", "shop", "get", "deployments,secrets", "-o", "name") == ""
    assert "not found" in plane.refused("kubectl", "-n", "shop", "get", "configmap", "front")
