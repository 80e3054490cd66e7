"""The real kubectl changes objects in every way: with editors, patches, labels, dry runs and kustomizations."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control_plane.support.served import Served, served
from wharfinger.formats.json.value import JsonObject, find

pytestmark = pytest.mark.unmeasured

SETTINGS: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "labels": {"tier": "front"}},
    "data": {"color": "blue"},
}


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        path = tmp_path / "settings.json"
        path.write_text(json.dumps(SETTINGS))
        running.run("kubectl", "apply", "-f", str(path))
        yield running


def data(plane: Served) -> object:
    return json.loads(plane.run("kubectl", "get", "configmap", "settings", "-o", "jsonpath={.data}"))


@pytest.mark.slow
def test_kubectl_edit_applies_the_changes_of_an_editor(
    plane: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nsed -i "s/color: blue/color: red/" "$1"\n')
    script.chmod(0o755)
    edited = plane.run("env", f"KUBE_EDITOR={script}", "kubectl", "edit", "configmap", "settings")
    assert edited == "configmap/settings edited\n"
    assert data(plane) == {"color": "red"}


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("strategic", '{"data":{"size":"9"}}'),
        ("merge", '{"data":{"size":"9"}}'),
        ("json", '[{"op":"add","path":"/data/size","value":"9"}]'),
    ],
)
def test_kubectl_patch_reports_changes_and_no_changes(kind: str, patch: str, plane: Served) -> None:
    said = plane.run("kubectl", "patch", "configmap", "settings", f"--type={kind}", "-p", patch)
    assert said == "configmap/settings patched\n"
    assert data(plane) == {"color": "blue", "size": "9"}
    again = plane.run("kubectl", "patch", "configmap", "settings", f"--type={kind}", "-p", patch)
    assert again == "configmap/settings patched (no change)\n"


@pytest.mark.slow
def test_kubectl_sets_and_removes_labels_and_annotations(plane: Served) -> None:
    assert "already has a value" in plane.refused("kubectl", "label", "configmap", "settings", "tier=back")
    plane.run("kubectl", "label", "configmap", "settings", "tier=back", "--overwrite")
    plane.run("kubectl", "annotate", "configmap", "settings", "note=x")
    plane.run("kubectl", "label", "configmap", "settings", "tier-")
    metadata = find(json.loads(plane.run("kubectl", "get", "configmap", "settings", "-o", "json")), "metadata")
    assert (find(metadata, "labels"), find(metadata, "annotations", "note")) == (None, "x")


@pytest.mark.slow
def test_a_dry_run_and_a_diff_change_nothing(plane: Served, tmp_path: Path) -> None:
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps({**SETTINGS, "data": {"color": "green"}}))
    tried = plane.run("kubectl", "apply", "--dry-run=server", "-f", str(changed))
    assert tried == "configmap/settings configured (server dry run)\n"
    assert data(plane) == {"color": "blue"}
    assert plane.run("kubectl", "diff", "-f", str(tmp_path / "settings.json")) == ""
    assert plane.refused("kubectl", "diff", "-f", str(changed)) == ""


@pytest.mark.slow
def test_kubectl_applies_a_kustomization(plane: Served, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("namePrefix: my-\nresources: [settings.json]\n")
    assert plane.run("kubectl", "apply", "-k", str(tmp_path)) == "configmap/my-settings created\n"


@pytest.mark.slow
def test_kubectl_answers_queries_in_many_formats(plane: Served) -> None:
    columns = plane.run(
        "kubectl", "get", "configmap", "settings", "-o", "custom-columns=N:.metadata.name,C:.data.color"
    )
    assert [line.split() for line in columns.splitlines()] == [["N", "C"], ["settings", "blue"]]
    assert json.loads(plane.run("kubectl", "get", "--raw", "/api/v1/namespaces/default"))["kind"] == "Namespace"
    assert plane.run("kubectl", "auth", "can-i", "*", "*") == "yes\n"
    assert "strategy" in plane.run("kubectl", "explain", "deployment.spec.strategy")
    assert "ConfigMap" in plane.run("kubectl", "api-resources", "--namespaced=true")
