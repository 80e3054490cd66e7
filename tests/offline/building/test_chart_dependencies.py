"""Fetched dependencies of charts, compared with those of ``helm dependency build``."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.offline.support import built, failures, open_test_tools, release, write_tree
from tests.packages.support.charts import chart, tool
from tests.packages.support.web_server import serving
from wharfinger.formats.json.value import find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.offline.building.chart_dependencies import ChartDependencies
from wharfinger.offline.sources.fetcher import SourceError
from wharfinger.offline.sources.retry import RetryPolicy
from wharfinger.packages.charts.chart import pack_chart

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-NAME-{{ .Chart.Version }}}\n"


@asynccontextmanager
async def dependencies(scratch: Path) -> AsyncIterator[ChartDependencies]:
    async with open_test_tools(scratch) as tools:
        yield ChartDependencies(tools.oci, tools.helm_repositories, tools.scratch, RetryPolicy(attempts=1))


def sub_chart(folder: Path, name: str, version: str = "1.0.0", more: str = "") -> Path:
    """Write a chart that contains one ConfigMap."""
    text = f"apiVersion: v2\nname: {name}\nversion: {version}\n{more}"
    return write_tree(folder, {"Chart.yaml": text, "templates/map.yaml": MAP.replace("NAME", name)})


def served(folder: Path, name: str, versions: tuple[str, ...]) -> Path:
    """Make the folder of a Helm repository that has one chart in these versions."""
    folder.mkdir()
    lines = ["apiVersion: v1", "entries:", f"  {name}:"]
    for version in versions:
        (folder / f"{name}-{version}.tgz").write_bytes(pack_chart(sub_chart(folder / version, name, version)))
        lines.append(f"  - {{apiVersion: v2, name: {name}, version: {version}, urls: [{name}-{version}.tgz]}}")
    write_tree(folder, {"index.yaml": "\n".join(lines) + "\n"})
    return folder


def umbrella(url: str, version: str = "1.x") -> Mapping[str, str]:
    """Return a chart with three dependencies: one at a URL, one in a folder of the tree, and one that is already in
    ``charts/``.
    """
    return {
        "umbrella/Chart.yaml": "apiVersion: v2\nname: umbrella\nversion: 1.0.0\ndependencies:\n"
        f"- {{name: far, version: {version}, repository: '{url}'}}\n"
        "- {name: near, version: '*', repository: 'file://../near'}\n"
        "- {name: there, version: '*'}\n",
        "umbrella/templates/map.yaml": MAP.replace("NAME", "umbrella"),
    }


async def test_fetched_dependencies_equal_those_of_helm(tmp_path: Path) -> None:
    with serving(served(tmp_path / "served", "far", ("1.0.0", "1.2.0", "2.0.0"))) as url:
        tree = write_tree(tmp_path / "tree", {**umbrella(url), "release.yaml": release("web", chart="./umbrella")})
        sub_chart(
            tree / "near", "near", more="dependencies: [{name: deep, version: '*', repository: 'file://../deep'}]\n"
        )
        sub_chart(tree / "deep", "deep")
        sub_chart(tree / "umbrella" / "charts" / "there", "there")
        before = sorted(each.relative_to(tree) for each in tree.rglob("*"))
        result = await built(tree, tmp_path)
        assert sorted(each.relative_to(tree) for each in tree.rglob("*")) == before
        expected = _by_helm(tree, tmp_path / "copy")
    assert not result.failed, failures(result)
    assert {each.id.name for each in result.objects if each.id.kind == "ConfigMap"} == expected
    assert expected == {"web-umbrella-1.0.0", "web-far-1.2.0", "web-near-1.0.0", "web-deep-1.0.0", "web-there-1.0.0"}


def _by_helm(tree: Path, copy: Path) -> set[str]:
    shutil.copytree(tree, copy)
    environment = {"HOME": str(copy / "home"), "PATH": "/usr/bin:/bin"}
    for name in ("near", "umbrella"):
        update = [str(tool("helm")), "dependency", "update", str(copy / name)]
        subprocess.run(update, check=True, capture_output=True, env=environment)
    template = [str(tool("helm")), "template", "web", str(copy / "umbrella")]
    done = subprocess.run(template, check=True, capture_output=True, env=environment)
    return {find_str(each, "metadata", "name") for each in read_yaml_all(done.stdout, what="helm") if each}


async def test_the_version_in_a_lock_file_is_used(tmp_path: Path) -> None:
    with serving(served(tmp_path / "served", "far", ("1.0.0", "1.2.0"))) as url:
        lock = f"dependencies: [{{name: far, version: 1.0.0, repository: '{url}'}}]\n"
        files = {key: text.partition("- {name: near")[0] for key, text in umbrella(url).items()}
        tree = write_tree(tmp_path / "tree", {**files, "umbrella/Chart.lock": lock})
        async with dependencies(tmp_path) as found:
            assert await found.are_missing(tree / "umbrella")
            whole = await found.complete(tree / "umbrella", tree)
            assert "version: 1.0.0" in (whole / "charts" / "far" / "Chart.yaml").read_text()
            assert await found.complete(tree / "umbrella", tree) == whole


async def test_a_chart_with_all_dependencies_is_used_unchanged(tmp_path: Path) -> None:
    one = sub_chart(
        tmp_path / "one", "one", more="dependencies: [{name: two, version: 1.x, repository: 'https://x'}]\n"
    )
    (one / "charts").mkdir()
    (one / "charts" / "two-1.0.0.tgz").write_bytes(b"")
    async with dependencies(tmp_path) as found:
        assert not await found.are_missing(one)
        assert await found.complete(one, tmp_path) == one
        (one / "charts" / "two-1.0.0.tgz").rename(one / "charts" / "two-more-1.0.0.tgz")
        assert await found.are_missing(sub_chart(shutil.copytree(one, tmp_path / "two"), "one", more=_two()))


def _two() -> str:
    return "dependencies: [{name: two, version: 1.x, repository: 'https://x'}]\n"


async def test_dependencies_in_requirements_yaml_are_read(tmp_path: Path) -> None:
    old = chart(
        tmp_path / "old",
        "old",
        files={"requirements.yaml": "dependencies: [{name: near, repository: 'file://../near'}]"},
    )
    (old / "Chart.yaml").write_text("apiVersion: v1\nname: old\nversion: 1.0.0\n")
    sub_chart(tmp_path / "near", "near")
    async with dependencies(tmp_path) as found:
        whole = await found.complete(old, tmp_path)
        assert (whole / "charts" / "near" / "Chart.yaml").is_file()


@pytest.mark.parametrize(
    ("repository", "told"),
    [
        (
            "https://charts.example.com",
            "the chart's dependency far: https://charts.example.com/: the network is forbidden",
        ),
        (
            "oci://registry.example.com/x",
            "the chart's dependency far: oci://registry.example.com/x/far: the network is forbidden",
        ),
        ("", "the chart's dependency far: is not in the folder charts, and it has no repository"),
        ("@stable", "its repository '@stable' is not an address; add it to the folder, or name an address"),
        ("file://../../outside", "file://../../outside lies outside of the source"),
        ("file://../umbrella", "charts depend on each other: umbrella -> umbrella"),
    ],
)
async def test_a_dependency_that_cannot_be_fetched_fails_the_release(
    repository: str, told: str, tmp_path: Path
) -> None:
    files = {key: text.partition("- {name: near")[0] for key, text in umbrella(repository).items()}
    tree = write_tree(tmp_path / "tree", {**files, "release.yaml": release("web", chart="./umbrella")})
    result = await built(tree, tmp_path)
    assert told in failures(result)["HelmRelease web"]


@pytest.mark.parametrize("name", ["../../../escaped", "/escaped", "..", "."])
async def test_a_dependency_name_that_is_a_path_is_refused(name: str, tmp_path: Path) -> None:
    sub_chart(tmp_path / "near", "near")
    folder = chart(tmp_path / "web")
    with (folder / "Chart.yaml").open("a") as file:
        file.write(f"dependencies: [{{name: '{name}', version: 1.0.0, repository: 'file://../near'}}]\n")
    before = set(tmp_path.rglob("*"))
    async with dependencies(tmp_path / "scratch") as found:
        with pytest.raises(SourceError, match="cannot be the name of a chart"):
            await found.complete(folder, tmp_path)
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "scratch")} == before


async def test_charts_that_depend_on_each_other_are_refused(tmp_path: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        more = f"dependencies: [{{name: {other}, version: '*', repository: 'file://../{other}'}}]\n"
        sub_chart(tmp_path / name, name, more=more)
    async with dependencies(tmp_path) as found:
        with pytest.raises(SourceError, match="charts depend on each other: one -> two -> one"):
            await found.complete(tmp_path / "one", tmp_path)
