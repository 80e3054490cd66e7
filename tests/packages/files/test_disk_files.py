import errno
import hashlib
import os
import tempfile
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.formats.archives.archive_stream import ExtractionStoppedError
from wharfinger.packages.errors import StoreError
from wharfinger.packages.files.disk_files import (
    MAX_DEEP,
    MAX_NAMES,
    changed_since,
    content_digest,
    delete,
    discard,
    disk_errors,
    has_content,
    make_read_only,
    publish,
    read_start,
    replace_tree,
    sync_file,
    sync_folder,
    sync_tree,
)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "quota"),
        (errno.EACCES, "no permission"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "check it"),
        (errno.EMFILE, "LimitNOFILE"),
        (errno.EBUSY, "check the state folder"),
    ],
)
def test_disk_errors_name_the_operation_and_a_remedy(number: int, remedy: str) -> None:
    with pytest.raises(StoreError, match=remedy) as caught, disk_errors("writing x"):
        raise OSError(number, os.strerror(number), "/some/file")
    assert str(caught.value).startswith(f"writing x: {os.strerror(number)} (/some/file); ")
    assert caught.value.transient
    with pytest.raises(StoreError, match="writing x: odd; check the state folder"), disk_errors("writing x"):
        raise OSError("odd")


def test_publishing_replaces_files_but_not_folders(tmp_path: Path) -> None:
    write(tmp_path, {"new": "2", "old": "1", "tree/a": "", "other/b": ""})
    publish(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_text() == "2"
    with pytest.raises(OSError, match="not empty"):
        publish(tmp_path / "tree", tmp_path / "other")
    assert (tmp_path / "tree/a").exists()


def test_sync_tree_syncs_all_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a": "", "d/b": "", "d/e/c": ""})
    (tmp_path / "link").symlink_to("/nowhere")
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
    )
    sync_tree(tmp_path)
    sync_file(tmp_path / "a")
    sync_folder(tmp_path)
    root = str(tmp_path)
    assert sorted(set(synced)) == sorted(
        {root, f"{root}/a", f"{root}/d", f"{root}/d/b", f"{root}/d/e", f"{root}/d/e/c"}
    )


def test_has_content_compares_size_and_digest(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": "data"}) / "a"
    right = hashlib.sha256(b"data").hexdigest()
    for hexdigest, size, result in ((right, 4, True), (right, 5, False), ("0" * 64, 4, False)):
        with path.open("rb") as file:
            assert has_content(file, hexdigest, size) is result


def test_the_content_digest_covers_names_and_bytes(tmp_path: Path) -> None:
    def digest() -> str | None:
        return content_digest(tmp_path)

    write(tmp_path, {"a": "1", "d/b": "2"})
    seen = [digest()]
    os.utime(tmp_path / "a", (1, 1))
    (tmp_path / "a").chmod(0o640)
    assert digest() == seen[0]
    (tmp_path / "a").write_text("3")
    seen.append(digest())
    (tmp_path / "a").chmod(0o700)
    seen.append(digest())
    (tmp_path / "d/b").rename(tmp_path / "d/c")
    seen.append(digest())
    (tmp_path / "e").mkdir()
    seen.append(digest())
    (tmp_path / "l").symlink_to("a")
    seen.append(digest())
    (tmp_path / "l").unlink()
    (tmp_path / "l").symlink_to("d")
    seen.append(digest())
    os.mkfifo(tmp_path / "p")
    seen.append(digest())
    assert len(set(seen)) == len(seen)


def test_a_file_with_many_hard_links_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a/big": "data", "b": "more"})
    plain = content_digest(tmp_path)
    for number in range(20):
        (tmp_path / "a" / f"link-{number}").hardlink_to(tmp_path / "a/big")
    linked = content_digest(tmp_path)
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return False

    assert content_digest(tmp_path, should_stop) == linked
    assert linked not in {plain, None}
    assert asked == 2
    for number in range(20):
        (tmp_path / "a" / f"link-{number}").unlink()
        (tmp_path / "a" / f"link-{number}").write_text("data")
    assert content_digest(tmp_path) == linked


def test_hashing_can_be_stopped(tmp_path: Path) -> None:
    write(tmp_path, {"a": "data"})
    with pytest.raises(ExtractionStoppedError):
        content_digest(tmp_path, lambda: True)
    with (tmp_path / "a").open("rb") as file, pytest.raises(ExtractionStoppedError):
        has_content(file, "0" * 64, 4, lambda: True)


def test_folders_beyond_archive_limits_have_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "deep"
    at = deep
    for _ in range(MAX_DEEP + 1):
        at = at / "d"
    at.mkdir(parents=True)
    wide = write(tmp_path / "wide", {"a": "", "b": ""})
    record = write(tmp_path, {"record": ""}) / "record"
    os.utime(record, (1, 1))
    assert content_digest(deep) is None
    assert changed_since(deep, record) == [f"more than {MAX_NAMES} names, or deeper than {MAX_DEEP} folders"]
    assert content_digest(wide) is not None
    assert changed_since(wide, record) == ["a", "b"]
    os.utime(record)
    monkeypatch.setattr("wharfinger.packages.files.disk_files.MAX_NAMES", 1)
    assert content_digest(wide) is None


@pytest.mark.unmeasured
def test_very_deep_folders_are_deleted(tmp_path: Path) -> None:
    """The nesting of the folders exceeds Python's recursion limit and the maximum length of a path."""
    for remove in (discard, lambda path: delete(path, tmp_path / "trash")):
        root = tmp_path / "root"
        root.mkdir()
        at = os.open(root, os.O_RDONLY)
        for _ in range(2_500):
            os.mkdir("d", dir_fd=at)
            inner = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inner
        os.close(at)
        assert content_digest(root) is None
        remove(root)
        assert list(tmp_path.iterdir()) == []


def test_replace_tree_moves_the_old_tree_to_the_trash(tmp_path: Path) -> None:
    write(tmp_path, {"new/a": "2", "old/a": "1", "old/b": ""})
    replace_tree(tmp_path / "new", tmp_path / "old", tmp_path / "trash")
    assert (tmp_path / "old/a").read_text() == "2"
    assert sorted(path.name for path in (tmp_path / "trash").iterdir()) == ["a", "b"]
    replace_tree(tmp_path / "trash", tmp_path / "other", tmp_path / "none")
    assert (tmp_path / "other/a").read_text() == "1"


def test_read_only_trees_are_deleted() -> None:
    """The test becomes a normal user if it runs as root, because file modes do not apply to root."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            with tempfile.TemporaryDirectory(dir="/tmp") as name:
                read_only_tree(Path(name))
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def read_only_tree(root: Path) -> None:
    for deletes in (False, True):
        tree = write(root / "tree", {"a": "", "d/e/b": ""})
        (tree / "d/link").symlink_to("/tmp")
        before = content_digest(tree)
        make_read_only(tree)
        assert content_digest(tree) == before
        for attempt in ((tree / "a").open, (tree / "d/e/new").open):
            with pytest.raises(PermissionError):
                attempt("wb")
        with pytest.raises(PermissionError):
            (tree / "d/e/b").unlink()
        if deletes:
            tree.chmod(0o755)  # A folder that is not writable cannot be moved.
            assert delete(tree, root / "trash")
        else:
            discard(tree)
        assert list(root.iterdir()) == []


def test_delete_removes_links_files_and_trees(tmp_path: Path) -> None:
    write(tmp_path, {"tree/a/b": "", "file": ""})
    (tmp_path / "link").symlink_to("tree")
    trash = tmp_path / "trash"
    assert delete(tmp_path / "link", trash)
    assert delete(tmp_path / "file", trash)
    assert (tmp_path / "tree/a/b").exists()
    assert delete(tmp_path / "tree", trash)
    assert not delete(tmp_path / "tree", trash)
    assert list(tmp_path.iterdir()) == []


def test_discard_deletes_all_kinds_and_ignores_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"tree/a/b": "", "file": ""})
    (tmp_path / "link").symlink_to("tree")
    for name in ("absent", "link", "file", "tree"):
        discard(tmp_path / name)
    assert list(tmp_path.iterdir()) == []

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)
    discard(write(tmp_path, {"file": ""}) / "file")
    assert (tmp_path / "file").exists()


def test_read_start_returns_at_most_the_given_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 200_000)
    assert read_start(str(path), 1_000_000) == path.read_bytes()
    assert read_start(str(path), 100_000) == b"x" * 100_000
    assert read_start(str(path), 0) == b""
    with pytest.raises(FileNotFoundError):
        read_start(str(tmp_path / "absent"), 1)
