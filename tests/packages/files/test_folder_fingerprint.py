"""The fingerprint of a folder: it stays the same while no entry changes, and is empty shortly after a change."""

import os
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.packages.files import folder_fingerprint as module
from wharfinger.packages.files.folder_fingerprint import RECENT_S, folder_fingerprint


def later(folder: Path) -> float:
    """Return a time at which the last change in a folder is no longer recent."""
    return max(path.lstat().st_ctime for path in (folder, *folder.rglob("*"))) + RECENT_S


def fingerprint(folder: Path, *, with_links: bool = True) -> str:
    return folder_fingerprint(folder, later(folder), with_links=with_links)


def test_every_change_changes_the_fingerprint(tmp_path: Path) -> None:
    folder = write(tmp_path / "web", {"a": "1", "b/c": "2"})
    seen = {fingerprint(folder)}
    assert seen == {fingerprint(folder)} != {""}
    (folder / "a").write_text("2")
    seen.add(fingerprint(folder))
    status = (folder / "a").stat()
    (folder / "a").write_text("3")
    os.utime(
        folder / "a", ns=(status.st_atime_ns, status.st_mtime_ns)
    )  # Programs can set this time, so it is not trusted.
    seen.add(fingerprint(folder))
    (folder / "a").chmod(0o700)
    seen.add(fingerprint(folder))
    (folder / "a").rename(folder / "d")
    seen.add(fingerprint(folder))
    (folder / "b/c").unlink()
    seen.add(fingerprint(folder))
    assert len(seen) == 6


def test_a_recently_changed_folder_has_no_fingerprint(tmp_path: Path) -> None:
    folder = write(tmp_path / "web", {"a": "1"})
    assert folder_fingerprint(folder, later(folder) - 0.1, with_links=True) == ""
    assert folder_fingerprint(folder, later(folder) + 0.1, with_links=True) != ""


def test_folders_with_links_have_a_fingerprint_only_if_allowed(tmp_path: Path) -> None:
    folder = write(tmp_path / "web", {"a": "1"})
    (folder / "link").symlink_to("a")
    found = fingerprint(folder)
    assert found
    assert fingerprint(folder, with_links=False) == ""
    (folder / "link").unlink()
    (folder / "link").symlink_to("b")
    assert fingerprint(folder) not in ("", found)
    (folder / "link").unlink()
    os.mkfifo(folder / "pipe")
    assert fingerprint(folder) == ""


def test_unreadable_and_large_folders_have_no_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder_fingerprint(tmp_path / "none", 0, with_links=True) == ""
    folder = write(tmp_path / "web", {"a": "1", "b": "2"})
    monkeypatch.setattr(module, "MAX_NAMES", 1)
    assert fingerprint(folder) == ""
