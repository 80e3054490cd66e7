"""Builds of one package. No resource in a tree requests the package."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus.charts import NAMES, unpack
from tests.offline.support import OPTIONS, open_test_tools, write_tree
from tests.packages.support.charts import chart, tool
from tests.programs import ROOT
from wharfinger.formats.json.value import JsonObject, find_list
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml_all
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.single import PackageRequest, build_package, is_package
from wharfinger.packages.charts.chart import pack_chart

BIG = YamlLimits(64 * 1024 * 1024, max_characters=256 * 1024 * 1024)
TRIMMED = "observing"
"""A chart whose last document ends with the empty lines of a block scalar. `helm template` omits them; a release has them."""


async def built(path: Path, scratch: Path, settings: JsonObject | None = None, name: str = "") -> Result:
    async with open_test_tools(scratch) as tools:
        return await build_package(PackageRequest(path, settings or {}, name, "apps"), tools, OPTIONS)


def helm_template(folder: Path, values: Path, name: str) -> list[JsonObject]:
    arguments = ["--namespace=apps", "--include-crds", "--skip-tests", f"--kube-version={OPTIONS.kube_version}"]
    done = subprocess.run(
        [tool("helm"), "template", name, folder, *arguments, f"--values={values}"], check=True, capture_output=True
    )
    return [each for each in read_yaml_all(done.stdout, what="helm", limits=BIG) if isinstance(each, dict)]


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
async def test_a_chart_of_the_corpus_is_built_as_helm_template_prints_it(name: str, tmp_path: Path) -> None:
    version, _ = unpack(name, tmp_path / "charts")
    expected = helm_template(version.folder, version.values_file, "web")
    result = await built(version.folder, tmp_path, version.values, "web")
    assert not result.failed
    (made,) = result.manifests.values()
    flat = [item for each in expected for item in (find_list(each, "items") if each["kind"] == "List" else [each])]
    objects = [each.object for each in made]
    if name == TRIMMED:
        last, theirs = objects.pop(), flat.pop()
        assert json.dumps(last).replace("\\n", "") == json.dumps(theirs).replace("\\n", "")
    assert objects == flat


async def test_an_archive_and_its_folder_are_built_to_equal_objects(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web")
    archive = tmp_path / "web-1.2.3.tgz"
    archive.write_bytes(pack_chart(folder))
    one, other = await built(folder, tmp_path / "1"), await built(archive, tmp_path / "2")
    assert one.objects == other.objects
    assert one.objects


async def test_a_package_is_built_with_its_settings(tmp_path: Path) -> None:
    result = await built(ROOT / "examples" / "reloader", tmp_path, {"maxTargets": 5})
    assert not result.failed
    assert [str(each) for each in result.warnings] == [
        "Application apps/reloader: its hooks are not run, so the values that they set are missing"
    ]


async def test_invalid_settings_fail_the_package(tmp_path: Path) -> None:
    (failure,) = (await built(ROOT / "examples" / "reloader", tmp_path, {"maxTargets": "many"})).failed.values()
    assert "maxTargets" in failure.message


async def test_an_error_of_a_template_has_its_file_and_line(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", files={"templates/bad.yaml": "a: b\nc: {{ fail `on purpose` }}\n"})
    (failure,) = (await built(folder, tmp_path)).failed.values()
    assert "on purpose" in failure.message
    assert str(failure.place) == f"{folder}/templates/bad.yaml:2"


async def test_a_link_out_of_a_package_is_refused(tmp_path: Path) -> None:
    write_tree(tmp_path, {"secret.yaml": "# hidden\n", "shared/x.yaml": ""})
    folder = chart(tmp_path / "web")
    link = folder / "templates" / "leak.yaml"
    request = PackageRequest(folder, {}, "", "apps")
    async with open_test_tools(tmp_path) as tools:
        link.symlink_to("../../secret.yaml")
        with pytest.raises(TreeError, match=r"templates/leak.yaml is a link that leads out of the source; put a copy"):
            await build_package(request, tools, OPTIONS)
        assert not (await build_package(replace(request, limit=tmp_path), tools, OPTIONS)).failed
        (tmp_path / ".git").mkdir()
        assert not (await build_package(request, tools, OPTIONS)).failed
        link.unlink()
        link.symlink_to("../../shared")
        with pytest.raises(TreeError, match="is a link to a folder"):
            await build_package(request, tools, OPTIONS)


async def test_a_path_that_is_not_a_package_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tgz"
    bad.write_bytes(b"nonsense")
    async with open_test_tools(tmp_path) as tools:
        with pytest.raises(TreeError, match=r"bad.tgz"):
            await build_package(PackageRequest(bad, {}, "", "apps"), tools, OPTIONS)
    assert is_package(bad)
    assert not is_package(tmp_path)
    assert not is_package(write_tree(tmp_path, {"a.yaml": ""}) / "a.yaml")
