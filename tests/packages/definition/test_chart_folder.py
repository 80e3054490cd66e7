"""The chart folder that is made for Helm from the files of a package. Tests in test_helm_renderer.py render such folders."""

import errno
import os
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.definition.chart_folder import make_chart_folder
from wharfinger.packages.errors import RenderError

METADATA: JsonObject = {"apiVersion": "v2", "name": "web", "version": "0.2.0"}
PACKAGE = {
    "package.yaml": "type: Application",
    "module.yaml": "",
    "values.yaml": "a: 1",
    "version.json": "{}",
    "changelog.yaml": "",
    "images_digests.json": "{}",
    "openapi/values.yaml": "",
    "hooks/a.sh": "",
    "enabled": "",
    "templates/a.yaml": "",
    "charts/db/Chart.yaml": "",
    "files/a.txt": "",
    ".helmignore": "",
    "crds/a.yaml": "",
    "docs/README.md": "",
    "images/web/Dockerfile": "",
    "lib/a.sh": "",
}


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def make(package: Path, into: Path) -> list[str]:
    make_chart_folder(package, METADATA, into)
    assert read_yaml((into / "Chart.yaml").read_bytes(), what="") == METADATA
    return names(into)


def test_a_package_without_chart_file_gets_one_and_links_to_chart_content(tmp_path: Path) -> None:
    made = make(write(tmp_path / "web", PACKAGE), tmp_path / "chart")
    assert made == [".helmignore", "Chart.yaml"]
    linked = sorted(path.name for path in (tmp_path / "chart").iterdir() if path.is_symlink())
    assert linked == [".helmignore", "charts", "files", "templates"]
    assert (tmp_path / "chart" / "templates" / "a.yaml").is_file()


def test_a_package_with_a_chart_file_links_all_other_files(tmp_path: Path) -> None:
    make(write(tmp_path / "web", PACKAGE | {"Chart.yaml": "its own"}), tmp_path / "chart")
    linked = sorted(path.name for path in (tmp_path / "chart").iterdir() if path.is_symlink())
    assert linked == [".helmignore", "charts", "docs", "files", "images", "lib", "templates"]


def test_the_package_folder_is_not_modified(tmp_path: Path) -> None:
    package = write(tmp_path / "web", PACKAGE | {"Chart.yaml": "its own"})
    before = {path: path.stat().st_mtime_ns for path in package.rglob("*")}
    make(package, tmp_path / "chart")
    assert {path: path.stat().st_mtime_ns for path in package.rglob("*")} == before
    assert (package / "Chart.yaml").read_text() == "its own"


def test_links_from_a_relative_path_resolve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "web", {"templates/a.yaml": ""})
    monkeypatch.chdir(tmp_path)
    make(Path("web"), tmp_path / "chart")
    assert (tmp_path / "chart" / "templates" / "a.yaml").is_file()


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.packages.definition.chart_folder.MAX_FILES", 3)
    make(write(tmp_path / "few", dict.fromkeys("abc", "")), tmp_path / "1")
    with pytest.raises(RenderError, match="more than 3 files"):
        make(write(tmp_path / "many", dict.fromkeys("abcd", "")), tmp_path / "2")


def test_a_missing_package_and_disk_errors_are_transient_errors(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="missing; install the package again") as caught:
        make(tmp_path / "no", tmp_path / "chart")
    assert caught.value.transient
    package = write(tmp_path / "web", {"templates/a.yaml": ""})
    make(package, tmp_path / "chart")
    with pytest.raises(RenderError, match=os.strerror(errno.EEXIST)) as caught:
        make(package, tmp_path / "chart")
    assert caught.value.transient
