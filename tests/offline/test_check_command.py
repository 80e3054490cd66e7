"""The command ``wharfinger check`` as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.offline.support import FLEET, cli, cli_process, config_map, kustomization, write_tree
from tests.packages.support.charts import chart
from tests.programs import ROOT

WRONG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong, namespace: apps}\ndta: {a: b}\n"
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: lost, namespace: apps}\n"
    "spec: {containers: [{name: a, image: b, envFrom: [{configMapRef: {name: absent}}]}]}\n"
)


@pytest.mark.slow
def test_the_sample_tree_has_no_errors(tmp_path: Path) -> None:
    path = str(FLEET / "clusters" / "production")
    done = cli_process("check", path, "--root", str(FLEET), "--packages", str(ROOT / "examples"), cache=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "77 objects checked: 0 errors, 4 warnings"


@pytest.mark.slow
def test_each_finding_has_its_file_and_line(tmp_path: Path) -> None:
    files = {
        "ks.yaml": kustomization("a", "./a") + "---\n" + kustomization("b", "./b"),
        "a/wrong.yaml": WRONG,
        "pod.yaml": "# a comment\n---\n" + POD,
        "fine.yaml": config_map("fine"),
    }
    tree = write_tree(tmp_path / "tree", files)
    done = cli("check", str(tree), cache=tmp_path / "cache")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("ks.yaml:7: error: Kustomization flux-system/b: spec.path: ") for line in lines)
    assert any(line.startswith("a/wrong.yaml:1: error: ConfigMap apps/wrong: ") and "dta" in line for line in lines)
    assert "pod.yaml:2: warning: Pod apps/lost: envFrom names ConfigMap apps/absent, which is not in the tree" in lines
    sarif = json.loads(cli("check", str(tree), "--output", "sarif", cache=tmp_path / "cache").stdout)
    assert len(sarif["runs"][0]["results"]) == len(lines) - 1
    junit = cli("check", str(tree), "--output", "junit", cache=tmp_path / "cache").stdout
    assert junit.count("<testcase ") == len(lines)


@pytest.mark.slow
def test_warnings_fail_the_command_if_strict(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"pod.yaml": POD})
    assert cli("check", str(tree), cache=tmp_path / "cache").returncode == 0
    done = cli("check", str(tree), "--strict", "--output", "json", cache=tmp_path / "cache")
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"][0]["rule"] == "dangling-reference"


def test_a_missing_path_is_a_usage_error(tmp_path: Path) -> None:
    done = cli_process("check", str(tmp_path / "absent"), cache=tmp_path / "cache")
    assert done.returncode == 2
    assert "does not exist" in done.stderr


@pytest.mark.slow
def test_a_chart_without_namespaces_has_no_findings(tmp_path: Path) -> None:
    done = cli("check", str(chart(tmp_path / "web")), "-n", "apps", cache=tmp_path / "cache")
    assert (done.returncode, done.stderr) == (0, "")
