"""The state folder belongs to one daemon at a time."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wharfinger.runtime.controllers.state_dir import StateDirError, empty_folder, hold_state_dir

HOLDER = """
import sys
from pathlib import Path
from wharfinger.runtime.controllers.state_dir import hold_state_dir
with hold_state_dir(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_state_folder_is_private_and_locked(tmp_path: Path) -> None:
    with hold_state_dir(tmp_path / "a" / "state") as path:
        assert path.stat().st_mode & 0o777 == 0o700
        assert (path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_released_state_folder_can_be_locked_again(tmp_path: Path) -> None:
    for _ in range(2):
        with hold_state_dir(tmp_path):
            pass


def test_a_second_daemon_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(StateDirError, match=rf"in use by another daemon \(pid {holder.pid}\).*--state-dir"),
            hold_state_dir(tmp_path),
        ):
            pass
        holder.kill()
    # The holder was killed, so the kernel has released the lock.
    with hold_state_dir(tmp_path):
        pass


def test_a_folder_that_cannot_be_created_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StateDirError, match="choose another with --state-dir"),
        hold_state_dir(tmp_path / "file" / "state"),
    ):
        pass


def refusal(path: Path) -> str:
    """Return the error message for a folder that is refused."""
    with pytest.raises(StateDirError) as caught, hold_state_dir(path):
        pass
    return str(caught.value)


def test_a_file_in_place_of_the_folder_is_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file: it is a file, not a folder; choose another with --state-dir" in refusal(tmp_path / "file")


def test_a_folder_with_other_files_is_refused_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "notes.txt").write_text("mine")
    (tmp_path / "lock").write_text("")  # other programs also use this file name
    tmp_path.chmod(0o755)
    assert "it has files of another program (scratch); name an empty folder or a new one" in refusal(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["lock", "notes.txt", "scratch"]


def test_the_refusal_of_a_folder_shows_its_first_files(tmp_path: Path) -> None:
    for name in "dcba":
        (tmp_path / name).write_text("")
    assert "(a, b, c, …)" in refusal(tmp_path)


@pytest.mark.parametrize("used", ["journal.db", "embedded/data.db"])
def test_the_folder_of_a_daemon_is_accepted_without_its_lock(used: str, tmp_path: Path) -> None:
    (tmp_path / used).parent.mkdir(exist_ok=True)
    (tmp_path / used).write_text("")
    (tmp_path / "store").mkdir()
    with hold_state_dir(tmp_path):
        pass


def test_the_folder_of_a_daemon_is_recognized_by_its_lock(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("4711\n")
    (tmp_path / "store").mkdir()
    with hold_state_dir(tmp_path):
        pass


def test_the_root_folder_of_an_empty_volume_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    with hold_state_dir(tmp_path):
        pass


@pytest.mark.parametrize("name", ["ftruncate", "pwrite"])
def test_a_full_disk_is_an_error_with_a_remedy(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, name, full)
    assert "No space left on device; choose another with --state-dir" in refusal(tmp_path / "state")


class RefusedError(Exception):
    """An error that prevents the start."""


def fail_with(path: Path, *names: str) -> None:
    """Lock the state folder, create folders in it, and raise RefusedError."""
    with hold_state_dir(path):
        for name in names:
            (path / name).mkdir()
        raise RefusedError


def test_a_refused_start_removes_the_folder_that_it_has_made(tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        fail_with(tmp_path / "state", "scratch", "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("used", ["identity", "store", "embedded"])
def test_a_failed_start_keeps_a_folder_with_data(used: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        fail_with(tmp_path / "state", "scratch", used)
    assert (tmp_path / "state" / used).exists()


def test_a_refused_start_keeps_an_existing_folder(tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        fail_with(tmp_path, "scratch")
    assert (tmp_path / "lock").exists()


def test_a_public_folder_is_made_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with hold_state_dir(tmp_path):
        assert tmp_path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("there", ["nothing", "a folder", "a file", "a link"])
def test_any_existing_file_or_folder_is_replaced_by_an_empty_folder(tmp_path: Path, there: str) -> None:
    path, elsewhere = tmp_path / "scratch", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "keep").write_text("")
    if there == "a folder":
        (path / "left").mkdir(parents=True)
    elif there == "a file":
        path.write_text("")
    elif there == "a link":
        path.symlink_to(elsewhere)
    assert list(empty_folder(path).iterdir()) == []
    assert path.stat().st_mode & 0o777 == 0o700
    assert (elsewhere / "keep").exists()


def test_a_folder_that_cannot_be_emptied_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(StateDirError, match="delete the folder by hand"):
        empty_folder(tmp_path / "missing" / "scratch")
