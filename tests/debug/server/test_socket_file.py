"""The file of the debug socket: its mode, its folder, and sockets of other daemons."""

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from wharfinger.debug.errors import DebugSocketError
from wharfinger.debug.server.socket_file import SocketFile, bind_socket_file, remove_socket_file
from wharfinger.runtime.paths import MAX_SOCKET_BYTES


@pytest.fixture
def any_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def bound(path: Path) -> SocketFile:
    file = bind_socket_file(path)
    assert file.path == path
    return file


def leave_stale(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(path))
        gone.listen()


@pytest.mark.usefixtures("any_umask")
def test_only_the_owner_may_use_the_socket_with_any_umask(tmp_path: Path) -> None:
    path = tmp_path / "run" / "debug.sock"
    file = bound(path)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    remove_socket_file(file)
    file.socket.close()
    assert list(path.parent.iterdir()) == []


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    leave_stale(path)
    before = path.lstat().st_ino
    file = bound(path)
    assert file.inode == path.lstat().st_ino
    assert path.lstat().st_ino != before or stat.S_IMODE(path.lstat().st_mode) == 0o600
    file.socket.close()


def test_the_socket_of_a_running_daemon_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    file = bound(path)
    with pytest.raises(DebugSocketError, match=r"another daemon answers on .*debug\.sock; stop it"):
        bind_socket_file(path)
    assert path.exists()
    file.socket.close()


def test_an_occupied_socket_from_the_environment_is_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "debug.sock"
    file = bound(path)
    monkeypatch.setenv("WHARFINGER_SOCKET", str(path))
    with pytest.raises(DebugSocketError, match="stop it, or unset WHARFINGER_SOCKET, which names it"):
        bind_socket_file(path)
    file.socket.close()


def test_a_daemon_too_busy_to_accept_counts_as_running(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    clients = []
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        while True:
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            clients.append(client)
            if client.connect_ex(str(path)) != 0:
                break
        with pytest.raises(DebugSocketError, match="another daemon answers"):
            bind_socket_file(path)
    for client in clients:
        client.close()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling link"])
def test_other_kinds_of_files_are_not_replaced(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    match kind:
        case "file":
            path.write_text("precious")
        case "folder":
            path.mkdir()
        case "link":
            (tmp_path / "target").write_text("precious")
            path.symlink_to("target")
        case _:
            path.symlink_to("nowhere")
    before = path.lstat()
    with pytest.raises(DebugSocketError, match="is not a socket; move it away"):
        bind_socket_file(path)
    assert path.lstat().st_ino == before.st_ino


def test_too_long_a_path_is_refused_before_a_folder_is_created(tmp_path: Path) -> None:
    folder = tmp_path / ("ü" * ((MAX_SOCKET_BYTES - len(os.fsencode(tmp_path)) - 4) // 2))
    longest = folder / ("s" * (MAX_SOCKET_BYTES - len(os.fsencode(folder)) - 1))
    too_long = longest.with_name(longest.name + "s")
    with pytest.raises(DebugSocketError, match=f"a path of {MAX_SOCKET_BYTES + 1} bytes is too long .*--socket"):
        bind_socket_file(too_long)
    assert not folder.exists()
    bound(longest).socket.close()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_writable_by_other_users_is_refused(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(DebugSocketError, match=rf"others may write .*mode {mode:04o}.*--socket"):
        bind_socket_file(folder / "debug.sock")
    assert list(folder.iterdir()) == []


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(folder, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(DebugSocketError, match=r"belongs to user .*--socket"):
        bind_socket_file(folder / "debug.sock")


def test_a_readable_folder_of_the_same_user_is_accepted(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    bound(tmp_path / "debug.sock").socket.close()


def test_a_daemon_starting_at_the_same_time_is_reported(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(DebugSocketError, match="another daemon is starting"):
        bind_socket_file(tmp_path / "debug.sock")
    os.close(descriptor)
    bound(tmp_path / "debug.sock").socket.close()


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DebugSocketError, match=r"debug socket .*file/run/debug\.sock: Not a directory; .*--socket"):
        bind_socket_file(tmp_path / "file" / "run" / "debug.sock")


def test_a_name_that_the_kernel_refuses_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DebugSocketError, match="--socket"):
        bind_socket_file(tmp_path / "run" / "..")


def test_only_the_own_socket_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    file = bound(path)
    path.unlink()
    successor = bound(path)
    remove_socket_file(file)
    assert path.lstat().st_ino == successor.inode
    remove_socket_file(successor)
    assert not path.exists()
    remove_socket_file(successor)
    file.socket.close()
    successor.socket.close()


def test_a_file_that_cannot_be_removed_is_ignored(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    file = bound(folder / "debug.sock")
    file.path.unlink()
    folder.rmdir()
    remove_socket_file(file)
    file.socket.close()
