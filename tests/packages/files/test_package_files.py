"""The reader of the files of an unpacked package. The files may be hostile."""

import os
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.package_files import PackageFiles, open_files


@pytest.fixture
def files(tmp_path: Path) -> PackageFiles:
    write(
        tmp_path / "tree", {"a.yaml": "a: 1", "sub/b.json": '{"b": 2}', "empty.yaml": "# nothing\n", "list.yaml": "[]"}
    )
    (tmp_path / "deployed").symlink_to("tree")
    return open_files(tmp_path / "deployed", "web")


def test_existing_files_and_folders_are_read(files: PackageFiles, tmp_path: Path) -> None:
    assert files.root == tmp_path / "tree"
    assert files.read("a.yaml") == b"a: 1"
    assert files.read("no.yaml") is None
    assert files.read_object("sub/b.json") == {"b": 2}
    assert files.read_object("empty.yaml") == {}
    assert files.read_object("no.yaml") is None
    assert [files.has_file(name) for name in ("a.yaml", "sub", "no")] == [True, False, False]
    assert [files.has_folder(name) for name in ("a.yaml", "sub", "no")] == [False, True, False]


def test_only_links_inside_of_the_package_are_followed(files: PackageFiles, tmp_path: Path) -> None:
    (files.root / "in").symlink_to("sub/b.json")
    assert files.read_object("in") == {"b": 2}
    (tmp_path / "secret").write_text("key: 1")
    for name, target, why in [
        ("out", "../secret", "out: a link that leaves the package"),
        ("host", "/etc/passwd", "host: a link that leaves the package"),
        ("gone", "nowhere", "gone: a broken link"),
        ("round", "round", "round: a broken link"),
        ("far", "x" * 300, "far: cannot be read: File name too long"),
    ]:
        (files.root / name).symlink_to(target)
        for look in (files.read, files.has_file, files.has_folder):
            with pytest.raises(ArtifactError, match=why):
                look(name)


def test_special_oversized_and_malformed_files_are_refused(files: PackageFiles) -> None:
    os.mkfifo(files.root / "pipe")
    with pytest.raises(ArtifactError, match=r"^pipe: not a file"):
        files.read("pipe")
    with pytest.raises(ArtifactError, match=r"^sub: not a file"):
        files.read("sub")
    with pytest.raises(ArtifactError, match=r"^a\.yaml: more than 3 bytes"):
        files.read("a.yaml", limit=3)
    with pytest.raises(ArtifactError, match=r"^list\.yaml: expected an object, found a list"):
        files.read_object("list.yaml")
    (files.root / "bad.yaml").write_text("a: [")
    with pytest.raises(ArtifactError, match=r"^bad\.yaml: line 2, column \d: "):
        files.read_object("bad.yaml")


def test_a_missing_package_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="package web: its folder is missing"):
        open_files(tmp_path / "no", "web")
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match="package web: not a folder"):
        open_files(tmp_path / "file", "web")


def test_names_in_a_folder_are_sorted_and_limited(files: PackageFiles, tmp_path: Path) -> None:
    write(tmp_path / "tree", {"many/b": "", "many/a/c": "", "many/.d": ""})
    assert files.names("many", limit=3) == (".d", "a", "b")
    assert files.names("no", limit=3) == files.names("a.yaml", limit=3) == ()
    with pytest.raises(ArtifactError, match="many: more than 2 files"):
        files.names("many", limit=2)
    (tmp_path / "tree" / "away").symlink_to(tmp_path)
    with pytest.raises(ArtifactError, match="away: a link that leaves the package"):
        files.names("away", limit=3)
