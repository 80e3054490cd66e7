"""The command ``wharfinger tree`` as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.offline.support import FLEET, cli, cli_process, config_map, kustomization, write_tree
from tests.programs import ROOT


@pytest.mark.slow
def test_nodes_of_the_sample_tree_are_listed(tmp_path: Path) -> None:
    path = str(FLEET / "clusters" / "production")
    done = cli_process("tree", path, "--packages", str(ROOT / "examples"), "-o", "json", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    nodes = json.loads(done.stdout)["nodes"]
    assert sum(node["state"] == "built" for node in nodes) == 15
    apps = next(node for node in nodes if node["name"] == "apps" and node["kind"] == "Kustomization")
    assert apps["file"] == "clusters/production/apps.yaml"
    assert "Kustomization flux-system/monitoring" in apps["dependsOn"]


def test_failed_nodes_are_listed_and_fail_the_command(tmp_path: Path) -> None:
    files = {
        "ks.yaml": kustomization("a", "./a") + "---\n" + kustomization("b", "./b", depends=("absent",)),
        "a/map.yaml": config_map("one"),
    }
    tree = write_tree(tmp_path / "tree", files)
    done = cli("tree", str(tree), cache=tmp_path / "cache")
    assert done.returncode == 1
    rows = [line.split()[:5] for line in done.stdout.splitlines()]
    assert ["Kustomization", "flux-system", "a", "built", "1"] in rows
    assert ["Kustomization", "flux-system", "b", "failed", "0"] in rows
    assert "error: ks.yaml:" in done.stderr
    graph = cli("tree", str(tree), "-o", "mermaid", cache=tmp_path / "cache")
    assert graph.stdout.startswith("flowchart RL\n")


def test_the_tree_command_prints_an_outline_with_images(tmp_path: Path) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: apps}\nspec:\n"
        "  initContainers: [{name: a, image: 'busybox:1'}]\n  containers: [{name: b, image: 'nginx:1'}]\n"
    )
    files = {
        "ks.yaml": kustomization("root", "./root"),
        "root/a.yaml": kustomization("a", "./a"),
        "root/b.yaml": kustomization("b", "./a", depends=("a",)),
        "a/pod.yaml": pod,
    }
    tree = write_tree(tmp_path / "tree", files)
    done = cli("tree", str(tree), "-o", "text", cache=tmp_path / "cache")
    source = "GitRepository flux-system/flux-system"
    assert done.stdout.splitlines() == [
        f"{source} (0 objects)",
        f"Kustomization flux-system/root (2 objects) -> {source}",
        f"  Kustomization flux-system/a (1 object) -> {source}",
        f"  Kustomization flux-system/b (1 object) -> {source}, Kustomization flux-system/a",
    ]
    done = cli("tree", str(tree), "-o", "images", cache=tmp_path / "cache")
    assert done.stdout.splitlines() == ["busybox:1", "nginx:1"]


@pytest.mark.slow
def test_a_missing_path_is_a_usage_error(tmp_path: Path) -> None:
    done = cli_process("tree", str(tmp_path / "absent"), cache=tmp_path / "cache")
    assert done.returncode == 2
    assert "does not exist" in done.stderr


def test_an_empty_folder_has_no_nodes(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    done = cli("tree", str(tmp_path / "tree"), "-o", "name", cache=tmp_path / "cache")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
