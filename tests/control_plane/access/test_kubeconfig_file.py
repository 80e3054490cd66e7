import stat
from pathlib import Path

import pytest

from wharfinger.control_plane.access.kubeconfig_file import (
    MAX_TOKEN_CHARS,
    default_path,
    kept_token,
    kubeconfig,
    new_token,
    read_token,
    write_secret_file,
)
from wharfinger.formats.json.value import encode_json, find
from wharfinger.kube.kubeconfig import MAX_BYTES, check_replaceable


def test_the_kubeconfig_has_the_token_in_url_and_user() -> None:
    document = kubeconfig("127.0.0.1", 1234, "sesame")

    assert find(document, "clusters", 0, "cluster", "server") == "http://wharfinger:sesame@127.0.0.1:1234"
    assert find(document, "users", 0, "user", "token") == "sesame"
    assert find(document, "current-context") == find(document, "contexts", 0, "name")


def test_the_token_is_percent_encoded_in_the_url() -> None:
    document = kubeconfig("[::1]", 1234, "a/b:c@d%41")

    assert find(document, "clusters", 0, "cluster", "server") == "http://wharfinger:a%2Fb%3Ac%40d%2541@[::1]:1234"
    assert find(document, "users", 0, "user", "token") == "a/b:c@d%41"


def test_only_the_owner_can_read_the_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "kubeconfig"

    write_secret_file(path, b"content\n")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    assert path.read_bytes() == b"content\n"


def test_an_older_kubeconfig_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old and much longer than the new one")
    path.chmod(0o644)

    write_secret_file(path, b"content\n")

    assert path.read_bytes() == b"content\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_at_the_kubeconfig_path_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig" / "x").mkdir(parents=True)

    with pytest.raises(OSError, match="kubeconfig"):
        write_secret_file(tmp_path / "kubeconfig", b"")

    assert [path.name for path in tmp_path.iterdir()] == ["kubeconfig"]


def test_the_default_path_is_in_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHARFINGER_STATE_DIR", "/var/x")
    assert default_path() == Path("/var/x/embedded/kubeconfig")
    monkeypatch.delenv("WHARFINGER_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert default_path() == Path("/xdg/wharfinger/embedded/kubeconfig")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_path().parts[-4:-1] == ("state", "wharfinger", "embedded")


def test_a_token_is_generated_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "token"

    token = kept_token(path)

    assert (kept_token(path), read_token(path)) == (token, token)
    assert len(token) > 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert new_token() != new_token()


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff", b"x" * (MAX_TOKEN_CHARS + 1)])
def test_an_invalid_token_file_is_not_replaced(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(content)

    with pytest.raises(ValueError, match=r"token|utf-8"):
        kept_token(tmp_path / "token")

    assert (tmp_path / "token").read_bytes() == content


def test_a_stored_token_of_the_maximum_length_is_read(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f" {'x' * MAX_TOKEN_CHARS}\n")

    assert kept_token(tmp_path / "token") == "x" * MAX_TOKEN_CHARS


def test_a_kubeconfig_of_a_control_plane_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    check_replaceable(path)
    for content in (b"", encode_json(kubeconfig("127.0.0.1", 1234, "sesame"))):
        path.write_bytes(content)
        check_replaceable(path)


@pytest.mark.parametrize(
    "content", [b"my precious: notes\n", b'{"current-context": "prod"}', b"[]", b" " * (MAX_BYTES + 1)]
)
def test_other_files_may_not_be_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=str(path)):
        check_replaceable(path)
