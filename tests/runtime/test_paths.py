"""The default paths of the state folder and of the socket."""

from pathlib import Path

import pytest

from wharfinger.runtime.paths import MAX_SOCKET_BYTES, default_socket, default_state_dir, too_long_socket


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WHARFINGER_STATE_DIR", "WHARFINGER_SOCKET", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_the_state_of_root_is_in_a_system_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert default_state_dir() == Path("/var/lib/wharfinger")


def test_the_state_of_other_users_is_in_the_xdg_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/u")
    assert default_state_dir() == Path("/home/u/.local/state/wharfinger")
    monkeypatch.setenv("XDG_STATE_HOME", "/x")
    assert default_state_dir() == Path("/x/wharfinger")


def test_environment_variables_set_the_state_folder_and_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHARFINGER_STATE_DIR", "/s")
    assert default_socket() == Path("/s/run/debug.sock")
    monkeypatch.setenv("WHARFINGER_SOCKET", "/elsewhere.sock")
    assert default_socket() == Path("/elsewhere.sock")
    assert default_socket(Path("/t")) == Path("/t/run/debug.sock")


def test_the_path_of_a_socket_is_limited_in_bytes() -> None:
    assert too_long_socket(Path("x" * MAX_SOCKET_BYTES)) == ""
    assert too_long_socket(Path("ü" * 54)) == "a path of 108 bytes is too long for a socket (at most 107)"
