"""The removal of trees as a hostile program might leave them."""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.scale import scaled
from wharfinger.process.remove_tree import remove_tree


def test_a_plain_tree_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    for number in range(20):
        folder = top / f"{number % 3}" / f"{number}" / "x"
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")
        (folder.parent / "file").write_text("x")
    os.mkfifo(top / "pipe")
    with socket.socket(socket.AF_UNIX) as listener, working_in(top):
        listener.bind("socket")
    remove_tree(top)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_tree_deeper_than_the_longest_path_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    with working_in(top):
        for _ in range(scaled(20_000, 3_000)):
            Path("secret").write_text("x")
            Path("a").mkdir()
            os.chdir("a")
    before = len(list(Path("/proc/self/fd").iterdir()))
    remove_tree(top)
    assert not top.exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    other, top = tmp_path / "other", tmp_path / "top"
    (other / "kept").mkdir(parents=True)
    (other / "kept").chmod(0o500)
    (top / "a").mkdir(parents=True)
    for folder in (top, top / "a"):
        (folder / "folder").symlink_to(other)
        (folder / "nothing").symlink_to("/no/such/file")
        (folder / "up").symlink_to("..")
    remove_tree(top)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert (other / "kept").stat().st_mode & 0o777 == 0o500


def test_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(NotADirectoryError):
            remove_tree(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        remove_tree(tmp_path / "gone")
    assert len(list(tmp_path.iterdir())) == 3


def test_folders_without_permissions_are_removed() -> None:
    """The test runs as a user other than root, because permissions do not restrict root."""
    with tempfile.TemporaryDirectory() as base, powerless(Path(base)):
        top = Path(base) / "top"
        (top / "a" / "b" / "c").mkdir(parents=True)
        (top / "a" / "b" / "file").write_text("")
        (top / "link").symlink_to("/")
        for locked in (top / "a" / "b" / "c", top / "a" / "b", top / "a", top):
            locked.chmod(0)
        remove_tree(top)
        assert not top.exists()


def test_an_error_does_not_stop_the_removal_and_secrets_are_removed_first() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can lock something for somebody else")
    with tempfile.TemporaryDirectory() as base:
        top = Path(base) / "top"
        (top / "theirs" / "inner").mkdir(parents=True)
        (top / "a" / "b").mkdir(parents=True)
        for name in ("secret", "z", "theirs/kept", "theirs/inner/kept", "a/b/gone"):
            (top / name).write_text("")
        for path in (Path(base), top, top / "a", top / "a" / "b"):
            os.chown(path, 65534, 65534)
        with powerless(Path(base)), pytest.raises(PermissionError):
            remove_tree(top, first=("secret", "no-such-file", "a"))
        assert sorted(str(path.relative_to(top)) for path in top.rglob("*")) == [
            "theirs", "theirs/inner", "theirs/inner/kept", "theirs/kept",
        ]  # fmt: skip
        remove_tree(top)


@contextmanager
def powerless(folder: Path) -> Iterator[None]:
    """Run the block as a user whom permissions restrict. During the block, this user owns the folder."""
    if os.geteuid() != 0:
        yield
        return
    os.chown(folder, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
