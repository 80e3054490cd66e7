"""The state folder belongs to one daemon at a time."""

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
    # Killed, not stopped: the kernel has released the lock.
    with hold_state_dir(tmp_path):
        pass


def test_a_folder_that_cannot_be_created_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StateDirError, match="choose another with --state-dir"),
        hold_state_dir(tmp_path / "file" / "state"),
    ):
        pass


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
