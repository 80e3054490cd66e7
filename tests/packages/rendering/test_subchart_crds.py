"""The CustomResourceDefinitions of enabled subcharts, by the rules of Helm."""

import io
import re
import tarfile
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, helm, write
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.definition import chart_texts
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering import subchart_crds as module
from wharfinger.packages.rendering.subchart_crds import has_subchart_crds, subchart_crds


def crd(name: str) -> str:
    return f"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {name}}}\n"


def sub(name: str, more: str = "", values: str = "") -> dict[str, str]:
    """Return the files of a subchart with one CRD."""
    files = {"Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n{more}", "crds/a.yaml": crd(name)}
    return {
        f"charts/{name}/{path}": text for path, text in (files | ({"values.yaml": values} if values else {})).items()
    }


def below(name: str, files: dict[str, str]) -> dict[str, str]:
    return {f"charts/{name}/{path}": text for path, text in files.items()}


DEPENDENCIES = """\
apiVersion: v2
name: web
version: 1.2.3
dependencies:
- {name: one, version: 1.0.0, repository: "", condition: "one.enabled,global.one"}
- {name: two, version: 1.0.0, repository: "", tags: [extra, more]}
- {name: three, version: 1.0.0, repository: "", alias: third, condition: third.on, tags: [extra]}
"""
FILES = {
    "Chart.yaml": DEPENDENCIES,
    "crds/own.yaml": crd("own"),
    "values.yaml": "global: {one: true}\ntags: {extra: false}\n",
    **sub("one"),
    **sub("two"),
    **sub("three", "dependencies: [{name: deep, version: 1.0.0, repository: '', condition: deep.enabled}]\n"),
    **below("three", sub("deep", values="size: 1\n")),
    **sub("unnamed", values="enabled: false\n"),
}


def found(folder: Path, values: JsonObject, *, is_package: bool = False) -> list[JsonValue]:
    crds = subchart_crds(folder, values, is_package=is_package)
    return sorted((find(obj, "metadata", "name") for obj in crds), key=str)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"one": {"enabled": False}},
        {"one": {"enabled": "no"}},
        {"one": {"enabled": None}, "global": {"one": False}},
        {"tags": {"extra": True}},
        {"tags": {"extra": None}},
        {"tags": {"more": True}},
        {"third": {"on": True}},
        {"third": {"on": True, "deep": {"enabled": False}}},
        {"tags": {"extra": True}, "third": {"on": False}},
        {"one": 1, "tags": 1, "third": []},
    ],
)
def test_subchart_crds_equal_those_that_helm_prints(values: JsonObject, tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files=FILES)
    (tmp_path / "values").write_text(write_yaml(values))
    for program in ("helm", "helm3"):
        try:
            said = helm(
                program, "template", "x", str(folder), f"--values={tmp_path}/values", "--include-crds", home=tmp_path
            )
        except RuntimeError:
            continue  # Helm refuses these values.
        printed = set(re.findall(r"CustomResourceDefinition\nmetadata: {name: (\w+)}", said))
        assert found(folder, values) == sorted(printed - {"own"})


def test_a_chart_without_declared_dependencies_includes_all_subcharts(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={**sub("one"), **below("one", sub("deep"))})
    assert found(folder, {"one": {"enabled": False}}) == ["deep", "one"]


def test_dependencies_in_requirements_yaml_are_read(tmp_path: Path) -> None:
    listed = "dependencies: [{name: one, version: 1.0.0, repository: '', condition: one.on}]"
    folder = chart(tmp_path / "chart", files={**sub("one"), "requirements.yaml": listed})
    assert (found(folder, {}), found(folder, {"one": {"on": False}})) == (["one"], [])


def test_crds_of_archived_subcharts_are_read(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={"Chart.yaml": DEPENDENCIES, "charts/README": ""})
    with tarfile.open(folder / "charts" / "one-1.0.0.tgz", "w:gz") as archive:
        for path, text in sub("one").items():
            entry = tarfile.TarInfo(path.removeprefix("charts/"))
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    assert (found(folder, {}), found(folder, {"one": {"enabled": False}})) == (["one"], [])


def test_conditions_of_a_package_ignore_its_values_file(tmp_path: Path) -> None:
    """The request for a render contains the complete values of a package, so the package's ``values.yaml`` is not merged into
    them.
    """
    folder = chart(tmp_path / "chart", files=FILES)
    assert found(folder, {}, is_package=True) == ["deep", "one", "three", "two", "unnamed"]
    assert found(folder, {"tags": {"extra": False}}, is_package=True) == ["one", "unnamed"]


def test_files_without_manifests_are_not_read(tmp_path: Path) -> None:
    files = {**sub("one"), "charts/one/crds/README.md": "a: [", "charts/one/crds/empty.yaml": "# nothing\n"}
    assert found(chart(tmp_path / "chart", files=files), {}) == ["one"]
    write(tmp_path / "chart", {"charts/one/crds/bad.yaml": "a: ["})
    with pytest.raises(RenderError, match=r"one/crds/bad.yaml: line"):
        found(tmp_path / "chart", {})


def test_a_chart_without_subcharts_has_no_subchart_crds(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart")
    assert not has_subchart_crds(folder)
    assert subchart_crds(folder, {}, is_package=False) == ()


def test_too_large_charts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = chart(tmp_path / "chart", files=FILES)
    monkeypatch.setattr(chart_texts, "MAX_FILES", 3)
    with pytest.raises(RenderError, match="too large to be searched"):
        found(folder, {})


def nested(depth: int) -> dict[str, str]:
    """Return the files of nested charts; each chart has the next one as its dependency."""
    files: dict[str, str] = {}
    for level in range(depth, 0, -1):
        inner = f"c{level + 1}"
        needs = f"dependencies: [{{name: {inner}, version: 1.0.0, repository: ''}}]\n" if files else ""
        files = {**below(f"c{level}", files), **sub(f"c{level}", needs, values="size: 1\n")}
    return files


def test_each_file_is_parsed_once_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def counted(data: bytes, *, what: str) -> JsonValue:
        read.append(data)
        return read_yaml(data, what=what)

    monkeypatch.setattr(module, "read_yaml", counted)
    needs = "dependencies: [{name: c1, version: 1.0.0, repository: ''}]\n"
    files = {"Chart.yaml": f"apiVersion: v2\nname: web\nversion: 1.2.3\n{needs}", **nested(12)}
    folder = write(tmp_path / "web", files)
    assert len(found(folder, {})) == 12
    # At most three files of each of the 13 charts are parsed.
    assert len(read) <= 13 * 3


@pytest.mark.parametrize("depth", [module.MAX_DEPTH, module.MAX_DEPTH + 1])
def test_the_nesting_depth_of_subcharts_is_limited(tmp_path: Path, depth: int) -> None:
    folder = write(tmp_path / "web", {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n", **nested(depth)})
    if depth == module.MAX_DEPTH:
        assert len(found(folder, {})) == depth
    else:
        with pytest.raises(RenderError, match="charts/c1/charts/c2/…: charts are nested more than 32 deep"):
            found(folder, {})
