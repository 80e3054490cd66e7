"""Commands with several paths. All paths are read as one tree, and their order does not matter."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from tests.offline.sources.test_git import git
from tests.offline.support import cli, config_map, kustomization, write_tree
from tests.packages.support.charts import chart
from wharfinger.formats.json.value import find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.offline.discovery.tree import root_of
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.packages.charts.chart import pack_chart

CLUSTER = {
    "clusters/a/ks.yaml": kustomization(
        "apps", "./apps", "  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n"
    ),
    "settings/vars.yaml": config_map("vars", "flux-system", text="shared"),
    "apps/map.yaml": config_map("web", text="${text}"),
    "more/map.yaml": config_map("more"),
}


def test_several_paths_are_built_as_one_tree_in_any_order(tmp_path: Path) -> None:
    """A Kustomization in the first path reads a ConfigMap in the second path. The Kustomization builds the third path. The
    objects in this path are listed only once.
    """
    tree = write_tree(tmp_path / "tree", CLUSTER)
    paths = [str(tree / name) for name in ("clusters/a", "settings", "apps")]
    outputs = {
        (done.returncode, done.stdout, done.stderr)
        for order in permutations(paths)
        for done in (cli("build", *order, "--root", str(tree), cache=tmp_path / "cache"),)
    }
    assert len(outputs) == 1
    code, text, told = outputs.pop()
    assert (code, told) == (0, "")
    maps = [each for each in read_yaml_all(text, what="output") if find_str(each, "kind") == "ConfigMap"]
    assert [(find_str(each, "metadata", "name"), find_str(each, "data", "text")) for each in maps] == [
        ("web", "shared"),
        ("vars", "shared"),
    ]


def test_the_root_outside_of_a_repository_is_the_common_parent_folder(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", CLUSTER)
    done = cli("build", str(tree / "settings"), str(tree / "clusters"), cache=tmp_path / "cache")
    assert (done.returncode, done.stderr) == (0, "")
    assert "text: shared" in done.stdout


def test_archives_with_equal_names_and_charts_with_dependencies_are_built_together(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    paths = []
    for name in ("one", "other"):
        folder = tmp_path / name
        write_tree(
            folder,
            {
                "dep/Chart.yaml": f"apiVersion: v2\nname: dep-{name}\nversion: 1.0.0\n",
                "dep/templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n",
                "web/Chart.yaml": f"apiVersion: v2\nname: web-{name}\nversion: 1.0.0\n"
                f"dependencies: [{{name: dep-{name}, version: 1.0.0, repository: 'file://../dep'}}]\n",
            },
        )
        archive = tmp_path / f"{name}.tgz"
        archive.write_bytes(pack_chart(folder / "dep"))
        paths += [str(folder / "web"), str(archive)]
    done = cli("build", *paths, cache=tmp_path / "cache")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("kind: ConfigMap") == 4


def test_paths_without_a_common_folder_have_no_root(tmp_path: Path) -> None:
    """A tree may load only files below its root, so ``/`` must not be chosen as the root."""
    with pytest.raises(TreeError, match="name one root with --root"):
        root_of(tmp_path, Path("/var"))


def test_overlapping_paths_are_read_once(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", CLUSTER)
    given = [tree, tree / "more", tree / "more" / "map.yaml", tree / "more" / ".." / "more", tree]
    one = cli("build", str(tree), cache=tmp_path / "cache")
    many = cli("build", *map(str, given), "--root", str(tree), cache=tmp_path / "cache")
    assert (
        (many.returncode, many.stdout, many.stderr) == (one.returncode, one.stdout, one.stderr) == (0, one.stdout, "")
    )


def test_errors_name_the_file_below_its_path(tmp_path: Path) -> None:
    files = {
        "one/map.yaml": "a: b: c\n",
        "two/ks.yaml": kustomization("x", "./nowhere"),
        "three/map.yaml": config_map("x"),
    }
    tree = write_tree(tmp_path / "tree", files)
    paths = [str(tree / name) for name in ("two", "three", "one")]
    done = cli("build", *paths, cache=tmp_path / "cache")
    assert done.returncode == 1
    first, second = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert first.startswith("error: one/map.yaml:1: ")
    assert second.startswith("error: two/ks.yaml:1: Kustomization flux-system/x: spec.path:")
    assert "name: x\n" in done.stdout


def test_an_object_declared_in_two_paths_is_refused(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"one/map.yaml": config_map("x"), "two/map.yaml": config_map("x")})
    done = cli("build", str(tree / "two"), str(tree / "one"), cache=tmp_path / "cache")
    assert done.returncode == 1
    assert "error: two/map.yaml:1: " in done.stderr
    assert "ConfigMap apps/x is declared in one/map.yaml:1 already; remove one of the two" in done.stderr


def test_paths_in_two_repositories_have_no_root(tmp_path: Path) -> None:
    for name in ("one", "two"):
        git(write_tree(tmp_path / name, {"map.yaml": config_map(name)}), "init", "-q")
    done = cli("build", str(tmp_path / "two"), str(tmp_path / "one"), cache=tmp_path / "cache")
    assert done.returncode == 2
    assert "have different roots; name one root with --root, or build the paths one after the other" in done.stderr
    done = cli("build", str(tmp_path / "two"), str(tmp_path / "one"), "--root", str(tmp_path), cache=tmp_path / "cache")
    assert (done.returncode, done.stdout.count("kind: ConfigMap")) == (0, 2)


def test_a_missing_path_is_reported(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"map.yaml": config_map("x")})
    for command in (("build",), ("diff", "--against", "HEAD"), ("check",), ("tree",), ("test",)):
        done = cli(command[0], str(tree), str(tree / "absent"), *command[1:], cache=tmp_path / "cache")
        assert done.returncode == (1 if command[0] == "diff" else 2)
        assert (
            done.stderr == f"error: {tree}/absent: does not exist; name a chart, a package or a folder of manifests\n"
        )


def test_the_tree_command_lists_the_nodes_of_all_paths(tmp_path: Path) -> None:
    files = {"one/ks.yaml": kustomization("one", "./apps"), "two/ks.yaml": kustomization("two", "./more")}
    tree = write_tree(tmp_path / "tree", {**CLUSTER, **files})
    done = cli("tree", str(tree / "two"), str(tree / "one"), "-o", "name", cache=tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "GitRepository flux-system/flux-system",
        "Kustomization flux-system/one",
        "Kustomization flux-system/two",
    ]


@pytest.mark.slow
def test_references_are_checked_across_all_paths(tmp_path: Path) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: apps}\n"
        "spec: {containers: [{name: web, image: x, envFrom: [{configMapRef: {name: shared}}]}]}\n"
    )
    tree = write_tree(tmp_path / "tree", {"one/pod.yaml": pod, "two/map.yaml": config_map("shared")})
    alone = cli("check", str(tree / "one"), "--strict", cache=tmp_path / "cache")
    assert (alone.returncode, "ConfigMap" in alone.stdout) == (1, True)
    both = cli("check", str(tree / "two"), str(tree / "one"), "--strict", cache=tmp_path / "cache")
    assert (both.returncode, both.stderr) == (0, "")


def test_differences_of_all_paths_are_printed(tmp_path: Path) -> None:
    before = write_tree(
        tmp_path / "one", {"a/map.yaml": config_map("x", text="1"), "b/map.yaml": config_map("w", text="1")}
    )
    after = write_tree(
        tmp_path / "two", {"a/map.yaml": config_map("x", text="2"), "b/map.yaml": config_map("w", text="2")}
    )
    write_tree(after, {"new/map.yaml": config_map("z")})
    paths = [str(after / name) for name in ("new", "b", "a")]
    common = ("--root", str(after), "--against", str(before), "-o", "json")
    one, two = (cli("diff", *order, *common, cache=tmp_path / "cache") for order in (paths, paths[::-1]))
    assert (one.returncode, one.stdout) == (2, two.stdout)
    assert json.loads(one.stdout)["summary"] == {"added": 1, "changed": 2, "deleted": 0}


def test_charts_and_trees_are_built_in_one_command(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"map.yaml": config_map("x")})
    charts = [chart(tmp_path / name, name, files={"templates/map.yaml": config_map(name)}) for name in ("web", "api")]
    paths = [str(each) for each in (*charts, tree)]
    one, two = (cli("build", *order, cache=tmp_path / "cache") for order in (paths, paths[::-1]))
    assert (one.returncode, one.stdout) == (0, two.stdout)
    named = {find_str(each, "metadata", "name") for each in read_yaml_all(one.stdout, what="output")}
    assert {"web", "api", "x"} <= named
    done = cli("build", *paths, "--name", "web", cache=tmp_path / "cache")
    assert (done.returncode, done.stderr) == (
        2, "error: --name web: 2 paths are packages, but only one package can have this name; build one path at a time\n"
    )  # fmt: skip
    twin = str(chart(tmp_path / "twin" / "web", "web"))
    done = cli("build", twin, *paths, cache=tmp_path / "cache")
    assert (done.returncode, "is built by two of the paths" in done.stderr) == (2, True)


@pytest.mark.slow
def test_each_chart_runs_its_own_tests(tmp_path: Path) -> None:
    for name, text in (("web", "given"), ("api", "other")):
        tests = (
            f"tests: [{{name: {name}, values: {{text: given}}, "
            f"expect: [{{object: ConfigMap/{name}, matches: {{data: {{text: {text}}}}}}}]}}]"
        )
        write_tree(chart(tmp_path / name, name), {"tests/a.test.yaml": tests})
    paths = [str(tmp_path / name) for name in ("web", "api")]
    done = cli("test", *paths, "-o", "json", cache=tmp_path / "cache")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert [(each["name"], bool(each["problems"])) for each in document["tests"]] == [("api", True), ("web", False)]
    done = cli("test", *paths, "--tests", str(tmp_path / "web" / "tests" / "a.test.yaml"), cache=tmp_path / "cache")
    assert (done.returncode, "found 2 packages, charts and trees; name one of them" in done.stderr) == (2, True)


def test_paths_with_manifests_share_one_build_for_tests(tmp_path: Path) -> None:
    tests = "tests:\n- name: all\n  expect:\n  - {kind: ConfigMap, count: 2}\n"
    write_tree(tmp_path / "one", {"map.yaml": config_map("x"), "tests/a.test.yaml": tests})
    write_tree(tmp_path / "two", {"map.yaml": config_map("w")})
    both = cli("test", str(tmp_path / "one"), str(tmp_path / "two"), "-o", "json", cache=tmp_path / "cache")
    assert both.returncode == 0, both.stdout + both.stderr
    alone = cli("test", str(tmp_path / "one"), "-o", "json", cache=tmp_path / "cache")
    assert (alone.returncode, "expected 2, found 1" in alone.stdout) == (1, True)
