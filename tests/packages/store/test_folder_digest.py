"""Changes of a folder: the stamp shows that something may have changed, and the digest whether it has."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.store import folder_digest as module
from wharfinger.packages.store.folder_digest import folder_digest, folder_stamp

FILES = {"values.yaml": "a: 1\n", "hooks/a.sh": "#!/bin/sh\n", "hooks/b.sh": "#!/bin/sh\n"}


def both(folder: Path) -> tuple[str, str]:
    return folder_stamp(folder), folder_digest(folder)


def changed(folder: Path, before: tuple[str, str]) -> tuple[bool, bool]:
    after = both(folder)
    return after[0] != before[0], after[1] != before[1]


def test_equal_folders_have_equal_digests_and_different_stamps(tmp_path: Path) -> None:
    write(tmp_path / "one", FILES)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert folder_digest(tmp_path / "one") == folder_digest(tmp_path / "two")
    assert folder_stamp(tmp_path / "one") != folder_stamp(tmp_path / "two")
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert both(tmp_path / "link") == both(tmp_path / "one")


def test_an_unchanged_folder_retains_stamp_and_digest(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    assert changed(tmp_path, both(tmp_path)) == (False, False)


def test_a_changed_modification_time_changes_only_the_stamp(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    before = both(tmp_path)
    os.utime(tmp_path / "values.yaml", ns=(1, 1))
    assert changed(tmp_path, before) == (True, False)


@pytest.mark.parametrize("how", ["content", "name", "mode", "more", "less", "folder", "link", "moved"])
def test_every_change_changes_stamp_and_digest(how: str, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    before = both(tmp_path)
    values, hook = tmp_path / "values.yaml", tmp_path / "hooks" / "a.sh"
    match how:
        case "content":
            values.write_text("a: 2\n")
        case "name":
            hook.rename(hook.with_name("c.sh"))
        case "mode":
            hook.chmod(0o755)
        case "more":
            (tmp_path / "new").touch()
        case "less":
            values.unlink()
        case "folder":
            (tmp_path / "empty").mkdir()
        case "link":
            hook.unlink()
            hook.symlink_to("b.sh")
        case _:
            hook.rename(tmp_path / "a.sh")
    assert changed(tmp_path, before) == (True, True)


def test_the_digest_covers_texts_of_links_and_linked_files(tmp_path: Path) -> None:
    write(tmp_path, {"in/a": "", "out/file": "1", "out/folder/x": ""})
    (tmp_path / "in" / "file").symlink_to("../out/file")
    (tmp_path / "in" / "folder").symlink_to("../out/folder")
    (tmp_path / "in" / "nowhere").symlink_to("../out/none")
    before = both(tmp_path / "in")
    (tmp_path / "out" / "folder" / "y").touch()
    assert changed(tmp_path / "in", before) == (False, False)
    (tmp_path / "out" / "file").write_text("2")
    assert changed(tmp_path / "in", before) == (True, True)
    before = both(tmp_path / "in")
    (tmp_path / "in" / "nowhere").unlink()
    (tmp_path / "in" / "nowhere").symlink_to("../out/none-either")
    assert changed(tmp_path / "in", before) == (True, True)


@pytest.mark.parametrize("ask", [folder_stamp, folder_digest])
def test_missing_and_oversized_folders_are_refused(
    ask: Callable[[Path], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ArtifactError, match=r"none: cannot be read: No such file or directory"):
        ask(tmp_path / "none")
    write(tmp_path, FILES)
    monkeypatch.setattr(module, "MAX_PATHS", 2)
    with pytest.raises(ArtifactError, match="more than 2 files and folders"):
        ask(tmp_path)
