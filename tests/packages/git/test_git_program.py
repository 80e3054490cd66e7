"""Runs of git: its environment, and its errors."""

from pathlib import Path

import pytest

from tests.packages.support.git_server import commit, make_repository, serving_git
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.git.git_program import GitAccess, GitLogin, GitProgram, failure, is_local
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.process.command import Ending, Outcome, Usage

LOGIN = Credentials("porter", "hush")


def test_local_repositories_are_recognized() -> None:
    assert is_local("file:///srv/a")
    assert is_local("/srv/a")
    assert not is_local("https://git.example/a")


async def test_the_configuration_of_the_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Intruder\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    monkeypatch.setenv("SECRET_OF_THE_DAEMON", "hush")
    told = await GitProgram().checked(tmp_path, "config", "--list")
    assert b"Intruder" not in told.stdout
    shown = await GitProgram().checked(tmp_path, "-c", "alias.env=!env", "env")
    assert b"SECRET_OF_THE_DAEMON" not in shown.stdout


@pytest.mark.slow
async def test_a_login_is_sent_only_to_its_server_and_never_printed(tmp_path: Path) -> None:
    commit(make_repository(tmp_path / "web"), {"a": "1"}, "1.0.0")
    with serving_git(tmp_path, login=LOGIN.basic()) as server, serving_git(tmp_path, to=server.url) as other:
        access = GitAccess(GitLogin(f"{server.url}/web", LOGIN.username, LOGIN.password))
        git = GitProgram()
        asked = ("ls-remote", "--tags", "--", f"{server.url}/web")
        assert (await git.checked(tmp_path, *asked, access=access)).stdout
        with pytest.raises(RegistryError, match=r"could not read Username|terminal prompts disabled") as caught:
            await git.checked(tmp_path, *asked)
        assert not caught.value.transient
        wrong = GitAccess(GitLogin(f"{server.url}/web", "porter", "wr0ng"))
        with pytest.raises(RegistryError, match=r"Authentication failed|could not read") as caught:
            await git.checked(tmp_path, *asked, access=wrong)
        assert "wr0ng" not in str(caught.value)
        redirected = GitAccess(GitLogin(f"{other.url}/web", LOGIN.username, LOGIN.password))
        with pytest.raises(RegistryError):
            await git.checked(tmp_path, "ls-remote", "--", f"{other.url}/web", access=redirected)


@pytest.mark.parametrize(
    ("said", "key"),
    [
        (b"No ED25519 host key is known for h.\nHost key verification failed.\r\nfatal: Could not read", "a key"),
        (b"@@ REMOTE HOST IDENTIFICATION HAS CHANGED! @@ sent is SHA256:" + b"a" * 43, f"the key SHA256:{'a' * 43}"),
    ],
)
def test_an_unknown_host_key_is_reported_in_one_line(said: bytes, key: str) -> None:
    outcome = Outcome(Ending.EXITED, 128, b"", said, Usage(0, 0, 0))
    error = failure("fetch", outcome)
    assert str(error) == (
        f"git fetch: the server has {key}, which is not one of its known keys; compare it with the keys that "
        "the server's owner publishes, and correct known_hosts"
    )
    assert not error.transient


async def test_an_unreachable_server_is_a_transient_error(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"git ls-remote: ") as caught:
        await GitProgram().checked(tmp_path, "ls-remote", "--", "http://127.0.0.1:1/web")
    assert caught.value.transient


@pytest.mark.parametrize("url", ["ext::sh -c touch% /tmp/x", "ftp://127.0.0.1/web"])
async def test_other_protocols_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(RegistryError, match=r"transport '(ext|ftp)' not allowed"):
        await GitProgram().checked(tmp_path, "ls-remote", "--", url)


async def test_a_missing_git_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"git cannot be run: .*; install git") as caught:
        await GitProgram({"PATH": str(tmp_path)}).run(tmp_path, "version")
    assert caught.value.transient
