"""``wharfinger diff`` as a user runs it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.offline.sources.test_git import git
from tests.offline.support import FLEET, cli, config_map, kustomization, write_tree
from tests.packages.support.charts import chart
from tests.programs import ROOT


@pytest.mark.slow
def test_the_sample_tree_does_not_differ_from_itself(tmp_path: Path) -> None:
    copy = shutil.copytree(FLEET, tmp_path / "fleet")
    common = ("--root", str(copy), "--packages", str(ROOT / "examples"), "--against", str(FLEET))
    done = cli("diff", str(copy / "clusters" / "production"), *common, cache=tmp_path / "cache")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no differences\n")
    path = copy / "apps" / "base" / "billing" / "release.yaml"
    path.write_text(path.read_text().replace("billing:1.1.0", "billing:1.1.1"))
    done = cli("diff", str(copy / "clusters" / "production"), *common, cache=tmp_path / "cache")
    assert done.returncode == 2
    assert "--- Deployment apps/billing" in done.stdout
    assert done.stderr.splitlines() == [
        "objects: 0 added, 2 changed, 0 deleted",
        "image no longer used: registry.example.com/billing:1.1.0",
        "new image: registry.example.com/billing:1.1.1",
    ]


@pytest.mark.slow
def test_against_a_revision(tmp_path: Path) -> None:
    files = {"ks.yaml": kustomization("a", "./a"), "a/map.yaml": config_map("x", text="one")}
    tree = write_tree(tmp_path / "tree", files)
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    write_tree(tree, {"a/map.yaml": config_map("x", text="two"), "a/more.yaml": config_map("more")})
    done = cli("diff", str(tree), "--against", "HEAD", "--output", "json", cache=tmp_path / "cache")
    assert done.returncode == 2, done.stderr
    document = json.loads(done.stdout)
    assert document["summary"] == {"added": 1, "changed": 1, "deleted": 0}
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "two")
    assert cli("diff", str(tree), "--against", "HEAD", cache=tmp_path / "cache").returncode == 0


def test_two_charts(tmp_path: Path) -> None:
    one, two = chart(tmp_path / "one"), chart(tmp_path / "two", files={"templates/more.yaml": config_map("more")})
    done = cli("diff", str(two), "--root", str(two), "--against", str(one), cache=tmp_path / "cache")
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["objects: 1 added, 0 changed, 0 deleted"]
    page = cli("diff", str(two), "--root", str(two), "--against", str(one), "-o", "html", cache=tmp_path / "cache")
    assert page.stdout.startswith("<!DOCTYPE html>")
    assert "<summary>ConfigMap apps/more: added</summary>" in page.stdout


def test_failures_are_no_deletions(tmp_path: Path) -> None:
    before = write_tree(tmp_path / "one", {"ks.yaml": kustomization("a", "./a"), "a/map.yaml": config_map("x")})
    after = write_tree(tmp_path / "two", {"ks.yaml": kustomization("a", "./a"), "a/map.yaml": "a: b: c\n"})
    done = cli("diff", str(after), "--root", str(after), "--against", str(before), cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (1, "")
    assert "not compared, because it failed: Kustomization flux-system/a" in done.stderr


@pytest.mark.parametrize(
    ("against", "told"), [("absent", "no such folder, and"), ("empty", "has no clusters; name a side that has it")]
)
def test_wrong_sides(against: str, told: str, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"clusters/map.yaml": config_map("x")})
    (tmp_path / "empty").mkdir()
    where = str(tmp_path / against)
    done = cli("diff", str(tree / "clusters"), "--root", str(tree), "--against", where, cache=tmp_path / "cache")
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr
