"""Reuse of run folders that are empty and unchanged."""

import os
from pathlib import Path

import pytest

from tests.hooks.support.scripts import run_of
from wharfinger.hooks.containment.spare_folders import AT_MOST, SpareFolders
from wharfinger.hooks.running.run_folder import make_run_folder


def made(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path


def names(scratch: Path) -> list[str]:
    return sorted(path.name for path in scratch.iterdir())


def test_retained_folder_is_reused_for_the_next_run(tmp_path: Path) -> None:
    spares = SpareFolders(tmp_path)
    first = made(tmp_path / "first")
    inode = first.stat().st_ino
    assert spares.keep(first)
    assert not first.exists()
    assert spares.take(tmp_path / "second")
    assert (tmp_path / "second").stat().st_ino == inode
    assert names(tmp_path) == ["second"]
    assert not spares.take(tmp_path / "third")


def test_number_of_spare_folders_is_limited(tmp_path: Path) -> None:
    spares = SpareFolders(tmp_path)
    kept = [spares.keep(made(tmp_path / f"f{number}")) for number in range(AT_MOST + 2)]
    assert kept == [True] * AT_MOST + [False] * 2


def test_folder_with_changed_mode_is_not_retained(tmp_path: Path) -> None:
    folder = made(tmp_path / "f")
    folder.chmod(0o755)
    assert not SpareFolders(tmp_path).keep(folder)
    assert folder.exists()


def test_folder_with_extended_attributes_is_not_retained(tmp_path: Path) -> None:
    folder = made(tmp_path / "f")
    try:
        os.setxattr(folder, "user.left", b"behind")
    except OSError as error:
        pytest.skip(f"the file system has no attributes for users: {error}")
    assert not SpareFolders(tmp_path).keep(folder)


@pytest.mark.parametrize("what", ["filled", "gone", "a link", "opened"])
def test_modified_spare_folder_is_not_reused(tmp_path: Path, what: str) -> None:
    spares = SpareFolders(tmp_path)
    spares.keep(made(tmp_path / "f"))
    (spare,) = tmp_path.iterdir()
    match what:
        case "filled":
            (spare / "binding-context.json").write_text("forged")
        case "opened":
            spare.chmod(0o777)
        case "gone" | "a link":
            spare.rmdir()
            if what == "a link":
                spare.symlink_to("/etc")
    assert not spares.take(tmp_path / "next")
    assert Path("/etc").is_dir()
    assert not (tmp_path / "next").exists()
    assert [name for name in names(tmp_path) if what != "a link"] == []


def test_run_folder_is_taken_from_and_returned_to_the_spares(tmp_path: Path) -> None:
    spares, run = SpareFolders(tmp_path), run_of(tmp_path / "hook.sh")
    first = make_run_folder(tmp_path, run, None, spares)
    inode = first.path.stat().st_ino
    first.remove(spares)
    assert list(tmp_path.glob("*/*")) == []
    second = make_run_folder(tmp_path, run, None, spares)
    assert second.path.name != first.path.name
    assert second.path.stat().st_ino == inode
    second.remove()
    assert names(tmp_path) == []


def test_folder_with_only_its_own_files_becomes_a_spare_immediately(tmp_path: Path) -> None:
    spares, run = SpareFolders(tmp_path), run_of(tmp_path / "hook.sh")
    folder = make_run_folder(tmp_path, run, None, spares)
    Path(folder.variables()["METRICS_PATH"]).unlink()
    assert folder.remove_if_plain(spares)
    assert [name.split("-")[0] for name in names(tmp_path)] == ["spare"]


@pytest.mark.parametrize("what", ["a file", "a folder in a file's place", "opened"])
def test_changed_run_folder_does_not_become_a_spare(tmp_path: Path, what: str) -> None:
    spares, run = SpareFolders(tmp_path), run_of(tmp_path / "hook.sh")
    folder = make_run_folder(tmp_path, run, None, spares)
    match what:
        case "a file":
            (folder.path / "more").write_text("")
        case "opened":
            folder.path.chmod(0o755)
        case _:
            metrics = Path(folder.variables()["METRICS_PATH"])
            metrics.unlink()
            metrics.mkdir()
    assert folder.remove_if_plain(spares) == (what == "opened")
    assert folder.path.exists() == (what != "opened")
    assert not [name for name in names(tmp_path) if name.startswith("spare")]
