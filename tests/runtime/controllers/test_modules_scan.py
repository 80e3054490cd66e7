"""Scans of modules directories: contents, versions, and which files are read again."""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.store.folder_digest import folder_digest
from wharfinger.runtime.controllers import modules_scan
from wharfinger.runtime.controllers.modules_scan import FolderContent, Scanner

CHART = "apiVersion: v2\nname: web\nversion: 1.2.3+x\n"
WIKI = "name: wiki\nversion: v2.0.0\n"


def modules(folder: Path) -> Path:
    return write(
        folder,
        {"010-web/Chart.yaml": CHART, "020-blog/hooks/a.sh": "1", "wiki/module.yaml": WIKI},
    )


def test_a_scan_finds_modules_with_content_and_version(tmp_path: Path) -> None:
    scan = Scanner([modules(tmp_path)], None).scan()
    assert [module.name for module in scan.dirs.modules] == ["wiki", "web", "blog"]
    assert scan.contents == {
        "web": FolderContent(folder_digest(tmp_path / "010-web"), "1.2.3_x"),
        "blog": FolderContent(folder_digest(tmp_path / "020-blog")),
        "wiki": FolderContent(folder_digest(tmp_path / "wiki"), "v2.0.0"),
    }
    assert scan.global_content == ""


def test_only_folders_that_may_have_changed_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = Scanner([modules(tmp_path / "modules")], write(tmp_path / "global", {"a.sh": ""}))
    first = scanner.scan()
    read: list[str] = []

    def digest(folder: Path) -> str:
        read.append(folder.name)
        return folder_digest(folder)

    monkeypatch.setattr(modules_scan, "folder_digest", digest)
    assert scanner.scan() == first
    assert read == []
    (tmp_path / "modules" / "020-blog" / "hooks" / "a.sh").write_text("2")
    write(tmp_path / "global", {"b.sh": ""})
    second = scanner.scan()
    assert read == ["020-blog", "global"]
    assert second.contents["blog"] != first.contents["blog"]
    assert second.contents["web"] == first.contents["web"]
    assert second.global_content != first.global_content


def test_a_module_with_an_invalid_definition_has_no_version(tmp_path: Path) -> None:
    """The mistake is reported later, by the installation, in the resource's status."""
    write(tmp_path, {"web/module.yaml": "name: [", "blog/module.yaml": "version: '1.0.0 beta'"})
    scan = Scanner([tmp_path], None).scan()
    assert [content.version for content in scan.contents.values()] == ["", ""]
    assert scan.dirs.warnings == ()


def test_a_module_whose_files_cannot_be_read_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> str:
        if folder.name == "010-web":
            raise ArtifactError(f"{folder}: more than 2 files")
        return folder_digest(folder)

    monkeypatch.setattr(modules_scan, "folder_digest", refuse)
    scan = Scanner([modules(tmp_path)], None).scan()
    assert [module.name for module in scan.dirs.modules] == ["wiki", "blog"]
    assert scan.dirs.broken == {"web"}
    assert scan.dirs.warnings == (f"{tmp_path}/010-web: more than 2 files",)


def test_an_invalid_folder_of_global_hooks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="none: not a folder"):
        Scanner([], tmp_path / "none").scan()
    write(tmp_path, {"global-hooks/a.sh": ""})
    with pytest.raises(
        ArtifactError, match="the folder contains global-hooks, but the daemon uses this name for the package"
    ):
        Scanner([], tmp_path).scan()
