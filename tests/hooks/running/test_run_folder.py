"""The folder of one run. No hook is run."""

import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hooks.support.scripts import CONFIG_VALUES, CONTEXTS, VALUES, run_of
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.run_folder import INPUTS, OUTPUTS, RunFolder, make_run_folder
from wharfinger.hooks.running.runner import HookRun
from wharfinger.hooks.watching.json_stream import MAX_BYTES
from wharfinger.process.command import User


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return make_run_folder(tmp_path / "scratch", run_of(tmp_path / "Hooks_10 — labels.sh"))


def test_run_files_are_private_for_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = make_run_folder(tmp_path / "scratch", run_of(tmp_path / "hook.sh"))
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder.path, *folder.path.iterdir())}
    assert modes.pop(folder.path) == 0o700
    assert set(modes.values()) == {0o600}
    assert {path.name for path in modes} == {*INPUTS.values(), *OUTPUTS.values()}


def test_inputs_are_compact_json_with_sorted_keys_and_a_line_break(folder: RunFolder) -> None:
    variables = folder.variables()
    for variable, expected in (
        ("BINDING_CONTEXT_PATH", list(CONTEXTS)),
        ("VALUES_PATH", VALUES),
        ("CONFIG_VALUES_PATH", CONFIG_VALUES),
    ):
        text = Path(variables[variable]).read_text()
        assert text == json.dumps(expected, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def test_folder_name_contains_the_hook_name_in_plain_characters(folder: RunFolder) -> None:
    assert folder.path.name.startswith("hook-hooks-10-labels-sh-")
    assert folder.path.is_absolute()
    assert folder.variables()["ADMISSION_RESPONSE_PATH"] == folder.variables()["VALIDATING_RESPONSE_PATH"]


def test_two_runs_of_a_hook_have_two_folders(tmp_path: Path) -> None:
    run = run_of(tmp_path / ("x" * 200))
    assert make_run_folder(tmp_path, run).path != make_run_folder(tmp_path, run).path


def test_output_files_are_read_up_to_the_limit(folder: RunFolder) -> None:
    path = Path(folder.variables()["METRICS_PATH"])
    assert folder.read("METRICS_PATH") == b""
    path.write_bytes(b"x" * MAX_BYTES)
    assert len(folder.read("METRICS_PATH")) == MAX_BYTES
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(HookError, match=f"METRICS_PATH: more than the limit of {MAX_BYTES} bytes"):
        folder.read("METRICS_PATH")


def test_an_output_file_replaced_by_rename_is_read(folder: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"{}")
    (tmp_path / "new").rename(folder.variables()["METRICS_PATH"])
    assert folder.read("METRICS_PATH") == b"{}"


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "link", "link to nothing", "nothing"])
def test_output_that_is_not_a_regular_file_is_refused_immediately(folder: RunFolder, kind: str) -> None:
    path = Path(folder.variables()["METRICS_PATH"])
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener, working_in(path.parent):
                listener.bind(path.name)
        case "link":
            path.symlink_to(folder.variables()["VALUES_PATH"])
        case "link to nothing":
            path.symlink_to("/no/such/file")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(HookError, match="METRICS_PATH") as caught:
        folder.read("METRICS_PATH")
    assert caught.value.file == "METRICS_PATH"
    assert "the hook replaced it with" in str(caught.value)
    assert ("replaced it with a link; write into" in str(caught.value)) == kind.startswith("link")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("run", "transient"),
    [
        (HookRun("h", Path("/h"), Path("/"), ({"x": float("nan")},), {}, {}), False),
        (HookRun("h", Path("/h"), Path("/"), (), {"x": "\ud800"}, {}), False),
        (HookRun("h", Path("/h"), Path("/"), (), {}, {"x": float("inf")}), False),
    ],
    ids=["nan", "a lone surrogate", "infinity"],
)
def test_values_without_a_json_form_are_refused_and_leave_no_folder(
    run: HookRun, transient: bool, tmp_path: Path
) -> None:
    with pytest.raises(HookError, match="hook h: its files could not be prepared") as caught:
        make_run_folder(tmp_path / "scratch", run)
    assert caught.value.transient is transient
    assert list((tmp_path / "scratch").iterdir()) == []


def test_folder_with_a_deep_tree_is_removed(folder: RunFolder) -> None:
    with working_in(folder.path):
        for _ in range(3_000):
            Path("a").mkdir()
            os.chdir("a")
    folder.remove()
    assert not folder.path.exists()


def test_files_of_the_daemon_are_removed_even_if_the_rest_fails(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, *, dir_fd: int | None = None) -> None:
        raise OSError(28, "No space left on device")

    (folder.path / "a").mkdir()
    monkeypatch.setattr(os, "rmdir", full)
    with pytest.raises(OSError, match="No space left"):
        folder.remove()
    assert [path.name for path in folder.path.iterdir()] == ["a"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_run_files_belong_to_the_hook_user(tmp_path: Path) -> None:
    user = User(1_200_000_000, 1_200_000_001)
    folder = make_run_folder(tmp_path / "scratch", run_of(tmp_path / "hook.sh"), user)
    found = {path.name: path.stat() for path in (folder.path, *folder.path.iterdir())}
    assert {(one.st_uid, one.st_gid) for one in found.values()} == {(user.uid, user.gid)}
    assert {name: stat.S_IMODE(one.st_mode) for name, one in found.items() if stat.S_ISDIR(one.st_mode)} == {
        folder.path.name: 0o700,
        "tmp": 0o700,
    }
    assert {stat.S_IMODE(one.st_mode) for one in found.values() if stat.S_ISREG(one.st_mode)} == {0o600}
    assert folder.read("METRICS_PATH") == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_output_file_owned_by_another_user_is_refused(tmp_path: Path) -> None:
    user = User(1_200_000_000, 1_200_000_001)
    folder = make_run_folder(tmp_path / "scratch", run_of(tmp_path / "hook.sh"), user)
    path = folder.path / OUTPUTS["METRICS_PATH"]
    path.unlink()
    path.write_text("linked from elsewhere")
    with pytest.raises(HookError, match="a file that another user owns"):
        folder.read("METRICS_PATH")


def test_removing_a_missing_folder_raises_an_error(folder: RunFolder) -> None:
    folder.remove()
    with pytest.raises(FileNotFoundError):
        folder.remove()


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Change the working folder during the block. A test can then create a socket there by its name alone; the whole path could
    be too long for a socket.
    """
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
