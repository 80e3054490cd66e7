import stat
from pathlib import Path

import pytest

from wharfinger.cluster.control_plane.kubeconfig_file import default_path, kubeconfig, write_secret_file
from wharfinger.formats.json_value import decode_json, find


def test_clients_find_the_token_where_they_look() -> None:
    document = kubeconfig("127.0.0.1", 1234, "sesame")

    assert find(document, "clusters", 0, "cluster", "server") == "http://wharfinger:sesame@127.0.0.1:1234"
    assert find(document, "users", 0, "user", "token") == "sesame"
    assert find(document, "current-context") == find(document, "contexts", 0, "name")


def test_a_token_stands_in_the_url_as_urls_have_it() -> None:
    document = kubeconfig("[::1]", 1234, "a/b:c@d%41")

    assert find(document, "clusters", 0, "cluster", "server") == "http://wharfinger:a%2Fb%3Ac%40d%2541@[::1]:1234"
    assert find(document, "users", 0, "user", "token") == "a/b:c@d%41"


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "kubeconfig"

    write_secret_file(path, {"a": 1})

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    assert decode_json(path.read_bytes(), max_bytes=100, what="file") == {"a": 1}


def test_it_replaces_a_former_one_whole_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old and much longer than the new one")
    path.chmod(0o644)

    write_secret_file(path, {"a": 1})

    assert path.read_text() == '{"a":1}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_its_place_is_an_error_that_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig" / "x").mkdir(parents=True)

    with pytest.raises(OSError, match="kubeconfig"):
        write_secret_file(tmp_path / "kubeconfig", {})

    assert [path.name for path in tmp_path.iterdir()] == ["kubeconfig"]


def test_the_default_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHARFINGER_STATE_DIR", "/var/x")
    assert default_path() == Path("/var/x/embedded/kubeconfig")
    monkeypatch.delenv("WHARFINGER_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert default_path() == Path("/xdg/wharfinger/embedded/kubeconfig")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_path().parts[-4:-1] == ("state", "wharfinger", "embedded")
