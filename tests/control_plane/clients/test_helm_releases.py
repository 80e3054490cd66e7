"""The real helm, in versions 4 and 3: hooks, tests, failed upgrades, CRDs, adoption of objects, and retained history."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_plane.support.served import Served, served
from tests.packages.support.charts import chart
from tests.scale import FULL
from wharfinger.formats.json.value import JsonObject, find

pytestmark = pytest.mark.unmeasured
HELMS = ["helm", "helm3"] if FULL else ["helm"]
"""Helm 3 runs only in the full test run, because it takes a quarter of a minute."""

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  annotations: {wharfinger.dev/never-ready: {{ .Values.stuck | default false | quote }}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, version: {{ .Values.text | default "none" | quote }}}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-prepare
  annotations: {"helm.sh/hook": pre-install, "helm.sh/hook-delete-policy": before-hook-creation}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}
"""
TEST = """\
apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-test
  annotations: {"helm.sh/hook": test}
spec: {restartPolicy: Never, containers: [{name: a, image: i}]}
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
WIDGET = """\
apiVersion: example.com/v1
kind: Widget
metadata: {name: {{ .Release.Name }}}
"""
FILES = {"templates/deployment.yaml": DEPLOYMENT, "templates/job.yaml": JOB, "templates/test.yaml": TEST}
BACK = {"helm": "--rollback-on-failure", "helm3": "--atomic"}


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


def states(plane: Served, helm: str, *flags: str) -> list[str]:
    """Return the status of each revision of the release."""
    history = json.loads(plane.run(helm, "history", "front", "-o", "json", *flags))
    return [str(entry["status"]) for entry in history]


@pytest.mark.skipif(not FULL, reason="takes ten seconds: runs only in `make test-full`")
@pytest.mark.parametrize("helm", HELMS)
def test_helm_runs_hooks_and_tests_and_rolls_a_failed_upgrade_back(helm: str, plane: Served, tmp_path: Path) -> None:
    folder = str(chart(tmp_path / "chart", files=FILES))
    plane.run(helm, "install", "front", folder, "--wait", "--set", "text=one")
    assert "1/1" in plane.run("kubectl", "get", "job", "front-prepare")
    assert "Phase:          Succeeded" in plane.run(helm, "test", "front")
    assert find(json.loads(plane.run(helm, "status", "front", "-o", "json")), "info", "status") == "deployed"

    failing = ("upgrade", "front", folder, "--wait", "--timeout=3s", "--set", "text=two,stuck=true")
    assert plane.refused(helm, *failing, BACK[helm])
    assert states(plane, helm) == ["superseded", "failed", "deployed"]
    assert plane.run("kubectl", "get", "configmap", "front", "-o", "jsonpath={.data.text}") == "one"
    assert plane.refused(helm, *failing)
    assert states(plane, helm)[-1] == "failed"
    plane.run(helm, "upgrade", "front", folder, "--wait", "--set", "text=three")
    assert states(plane, helm)[-1] == "deployed"


@pytest.mark.slow
@pytest.mark.parametrize("helm", HELMS)
def test_an_uninstalled_release_is_rolled_back_from_its_history(helm: str, plane: Served, tmp_path: Path) -> None:
    folder = str(chart(tmp_path / "chart", files={"templates/deployment.yaml": DEPLOYMENT}))
    plane.run(helm, "install", "front", folder, "--wait")
    plane.run(helm, "uninstall", "front", "--keep-history", "--wait")
    assert states(plane, helm) == ["uninstalled"]
    plane.run(helm, "rollback", "front", "1", "--wait")
    assert states(plane, helm)[-1] == "deployed"
    assert plane.run("kubectl", "get", "deployment", "front", "-o", "jsonpath={.status.availableReplicas}") == "1"


@pytest.mark.slow
@pytest.mark.parametrize("helm", HELMS)
def test_helm_takes_ownership_of_existing_objects_and_leaves_definitions(
    helm: str, plane: Served, tmp_path: Path
) -> None:
    folder = str(chart(tmp_path / "chart", files={"crds/widgets.yaml": CRD, "templates/widget.yaml": WIDGET}))
    path = tmp_path / "there.json"
    there: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "front"}}
    path.write_text(json.dumps(there))
    plane.run("kubectl", "create", "-f", str(path))
    assert "exists and cannot be imported" in plane.refused(helm, "install", "front", folder)
    plane.run(helm, "install", "front", folder, "--take-ownership", "--replace")
    assert plane.run("kubectl", "get", "widgets", "-o", "name") == "widget.example.com/front\n"
    plane.run(helm, "uninstall", "front", "--wait")
    assert plane.run("kubectl", "get", "crd", "widgets.example.com", "-o", "name")
    assert "not found" in plane.refused("kubectl", "get", "configmap", "front")
