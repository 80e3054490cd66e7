"""The command ``wharfinger diff`` as a user runs it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.offline.sources.test_git import git
from tests.offline.support import (
    FLEET,
    cli,
    cli_process,
    config_map,
    kustomization,
    release,
    with_chart,
    write_tree,
)
from tests.packages.support.charts import chart
from tests.programs import ROOT
from wharfinger.offline.discovery.walk import MAX_DEPTH


@pytest.mark.slow
def test_the_sample_tree_does_not_differ_from_itself(tmp_path: Path) -> None:
    copy = shutil.copytree(FLEET, tmp_path / "fleet")
    common = ("--root", str(copy), "--packages", str(ROOT / "examples"), "--against", str(FLEET))
    whole = (*common, "--render-all")
    done = cli_process("diff", str(copy / "clusters" / "production"), *whole, cache=tmp_path / "cache")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no differences\n")
    path = copy / "apps" / "base" / "billing" / "release.yaml"
    path.write_text(path.read_text().replace("billing:1.1.0", "billing:1.1.1"))
    done = cli_process("diff", str(copy / "clusters" / "production"), *common, cache=tmp_path / "cache")
    assert done.returncode == 2
    assert "--- Deployment apps/billing" in done.stdout
    assert done.stderr.splitlines()[:3] == [
        "objects: 0 added, 2 changed, 0 deleted",
        "image no longer used: registry.example.com/billing:1.1.0",
        "new image: registry.example.com/billing:1.1.1",
    ]


@pytest.mark.slow
def test_a_tree_is_compared_with_a_git_revision(tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_two_charts_are_compared(tmp_path: Path) -> None:
    one, two = chart(tmp_path / "one"), chart(tmp_path / "two", files={"templates/more.yaml": config_map("more")})
    done = cli_process("diff", str(two), "--root", str(two), "--against", str(one), cache=tmp_path / "cache")
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["objects: 1 added, 0 changed, 0 deleted"]
    page = cli_process(
        "diff", str(two), "--root", str(two), "--against", str(one), "-o", "html", cache=tmp_path / "cache"
    )
    assert page.stdout.startswith("<!DOCTYPE html>")
    assert "<summary>ConfigMap apps/more: added</summary>" in page.stdout


@pytest.mark.slow
def test_releases_of_unfetched_charts_are_listed_as_not_compared(tmp_path: Path) -> None:
    """The chart is in another repository and is not fetched, so it is not known at first whether the chart makes further nodes.
    After the chart was built once, the cache records that it makes none.
    """
    far = write_tree(tmp_path / "far", with_chart({}))
    git(far, "init", "-q", "-b", "main")
    git(far, "add", ".")
    git(far, "commit", "-qm", "one")
    git(far, "tag", "1.0.0")
    source = (
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: far, namespace: flux-system}\n"
        f"spec: {{url: 'file://{far}', ref: {{tag: 1.0.0}}}}\n"
    )
    web = release("web").replace("name: flux-system, namespace", "name: far, namespace")
    before = write_tree(tmp_path / "one", {"source.yaml": source, "web.yaml": web, "map.yaml": config_map("x")})
    after = write_tree(
        tmp_path / "two", {"source.yaml": source, "web.yaml": web, "map.yaml": config_map("x", text="new")}
    )
    command = ("diff", str(after), "--root", str(after), "--against", str(before))
    named = "not compared: Flux, Argo CD and Wharfinger objects that HelmRelease apps/web may make; --render-all compares them"
    done = cli(*command, cache=tmp_path / "cache")
    assert (done.returncode, named in done.stderr.splitlines()) == (2, True)
    assert cli("build", str(after), cache=tmp_path / "cache").returncode == 0
    done = cli(*command, cache=tmp_path / "cache")
    assert done.stderr.splitlines() == [
        "objects: 0 added, 1 changed, 0 deleted",
        "1 release was not rendered: the inputs are the same on both sides",
    ]


def test_objects_of_a_failed_producer_are_not_reported_as_deleted(tmp_path: Path) -> None:
    before = write_tree(tmp_path / "one", {"ks.yaml": kustomization("a", "./a"), "a/map.yaml": config_map("x")})
    after = write_tree(tmp_path / "two", {"ks.yaml": kustomization("a", "./a"), "a/map.yaml": "a: b: c\n"})
    done = cli("diff", str(after), "--root", str(after), "--against", str(before), cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (1, "")
    assert "not compared, because it failed: Kustomization flux-system/a" in done.stderr


@pytest.mark.parametrize(
    ("against", "told"),
    [("absent", "no such folder, and"), ("empty", "clusters does not exist in it; name a folder or a revision")],
)
def test_invalid_paths_after_against_are_refused(against: str, told: str, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"clusters/map.yaml": config_map("x")})
    (tmp_path / "empty").mkdir()
    where = str(tmp_path / against)
    done = cli("diff", str(tree / "clusters"), "--root", str(tree), "--against", where, cache=tmp_path / "cache")
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_refused_tree_is_reported_in_one_line(tmp_path: Path) -> None:
    before = write_tree(tmp_path / "one", {"map.yaml": config_map("x")})
    after = write_tree(tmp_path / "two", {f"{'a/' * (MAX_DEPTH + 1)}map.yaml": config_map("x")})
    done = cli("diff", str(after), "--root", str(after), "--against", str(before), cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.endswith(f"more than {MAX_DEPTH} nested folders; build a part of the tree\n")


def test_failures_of_the_compared_side_are_reported(tmp_path: Path) -> None:
    before = write_tree(tmp_path / "one", {"ks.yaml": kustomization("a", "./a"), "a/map.yaml": "a: b: c\n"})
    after = write_tree(tmp_path / "two", {"ks.yaml": kustomization("a", "./a"), "a/map.yaml": config_map("x")})
    done = cli("diff", str(after), "--root", str(after), "--against", str(before), cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"problems of the other side, {before}:\nerror: a/map.yaml:1: Kustomization")
    assert "no differences in the compared objects" in done.stderr


def test_missing_packages_on_the_compared_side_are_reported(tmp_path: Path) -> None:
    before, after = (write_tree(tmp_path / name, {"c/map.yaml": config_map("x")}) for name in ("one", "two"))
    write_tree(after, {"packages/README.md": ""})
    common = ("--root", str(after), "--packages", str(after / "packages"), "--against", str(before))
    done = cli("diff", str(after / "c"), *common, cache=tmp_path / "cache")
    assert done.returncode == 1
    assert "--against does not contain this folder" in done.stderr


@pytest.mark.slow
def test_an_application_of_the_tree_itself_is_local_on_both_sides(tmp_path: Path) -> None:
    application = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\n"
        "spec: {source: {repoURL: 'https://git.example.com/a/b', path: apps}, destination: {namespace: apps}}\n"
    )
    tree = write_tree(tmp_path / "tree", {"c/app.yaml": application, "apps/map.yaml": config_map("x", text="one")})
    git(tree, "init", "-q", "-b", "main")
    git(tree, "remote", "add", "origin", "git@git.example.com:a/b.git")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    write_tree(tree, {"apps/map.yaml": config_map("x", text="two")})
    done = cli("diff", str(tree / "c"), "--against", "HEAD", cache=tmp_path / "cache")
    assert (done.returncode, done.stderr) == (2, "objects: 0 added, 1 changed, 0 deleted\n")
