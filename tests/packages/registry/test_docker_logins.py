"""Logins from Docker's configuration and from real helper programs on PATH."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.registry_server import PASSWORD, USER, open_registry_server
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.registry.address import RegistryAddress, RepositoryAddress
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.docker_logins import LIMITS, DockerLogins, default_file
from wharfinger.packages.sources.source import Network, RegistrySource, open_source

HERE = RegistryAddress("registry.example")
SECRET = "hush-hush"
GOOD = f'cat >>"$0.asked"; echo >>"$0.asked"; echo \'{{"ServerURL": "x", "Username": "porter", "Secret": "{SECRET}"}}\''


@pytest.fixture
def helpers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a folder for credential helpers on PATH, and return it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def helper(folder: Path, name: str, body: str) -> Path:
    """Write a credential helper that runs ``body`` when it is asked for a login."""
    path = folder / f"docker-credential-{name}"
    path.write_text(f'#!/bin/sh\n[ "$#:$1" = 1:get ] || exit 9\n{body}\n')
    path.chmod(0o755)
    return path


def config(folder: Path, document: JsonObject) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(document))
    return path


def asked(path: Path) -> list[str]:
    found = path.with_name(f"{path.name}.asked")
    return found.read_text().split() if found.exists() else []


async def found(logins: DockerLogins, registry: RegistryAddress = HERE) -> Credentials | None:
    return await logins.find(registry, "team/web", scheme="https")


async def test_a_helper_of_a_registry_wins_over_the_general_one(tmp_path: Path, helpers: Path) -> None:
    one, every = helper(helpers, "one", GOOD), helper(helpers, "every", GOOD.replace("porter", "anybody"))
    file = config(tmp_path, {"credsStore": "every", "credHelpers": {"registry.example": "one"}})
    logins = DockerLogins(file)
    login = await found(logins)
    assert login == Credentials("porter", SECRET)
    assert SECRET not in repr(login)
    other = await found(logins, RegistryAddress("other.example", 5000))
    assert other is not None
    assert other.username == "anybody"
    await found(logins, RegistryAddress("registry-1.docker.io"))
    assert asked(one) == ["registry.example"]
    assert asked(every) == ["other.example:5000", "https://index.docker.io/v1/"]


async def test_a_helper_can_return_an_identity_token(tmp_path: Path, helpers: Path) -> None:
    helper(helpers, "one", GOOD.replace("porter", "<token>"))
    login = await found(DockerLogins(config(tmp_path, {"credsStore": "one"})))
    assert login == Credentials("<token>", "", SECRET)


async def test_the_answer_of_a_helper_is_cached_for_some_minutes(
    tmp_path: Path, helpers: Path, autojump_clock: trio.testing.MockClock
) -> None:
    autojump_clock.autojump_threshold = float("inf")
    one = helper(helpers, "one", GOOD)
    logins = DockerLogins(config(tmp_path, {"credsStore": "one"}))
    for _ in range(3):
        await found(logins)
    assert len(asked(one)) == 1
    autojump_clock.jump(301)
    await found(logins)
    assert len(asked(one)) == 2


async def test_concurrent_tasks_run_a_helper_once(tmp_path: Path, helpers: Path) -> None:
    one = helper(helpers, "one", GOOD)
    logins = DockerLogins(config(tmp_path, {"credsStore": "one"}))
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(found, logins)
    assert len(asked(one)) == 1


async def test_the_failure_of_a_helper_is_cached(tmp_path: Path, helpers: Path) -> None:
    one = helper(helpers, "one", 'cat >>"$0.asked"; echo >>"$0.asked"; exit 3')
    logins = DockerLogins(config(tmp_path, {"credHelpers": {"registry.example": "one"}}))
    for _ in range(3):
        with pytest.raises(RegistryError, match="exit status 3"):
            await found(logins)
    assert len(asked(one)) == 1


async def test_a_helper_in_a_relative_folder_of_path_is_found(
    tmp_path: Path, helpers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper(helpers, "one", GOOD)
    monkeypatch.chdir(helpers.parent)
    monkeypatch.setenv("PATH", f"{helpers.name}:/usr/bin:/bin")
    assert await found(DockerLogins(config(tmp_path, {"credsStore": "one"}))) is not None


async def test_a_registry_unknown_to_the_helper_is_looked_up_in_the_file(tmp_path: Path, helpers: Path) -> None:
    helper(helpers, "one", "echo credentials not found in native keychain; exit 1")
    auth = base64.b64encode(b"porter:plain").decode()
    file = config(tmp_path, {"credsStore": "one", "auths": {"registry.example": {"auth": auth}}})
    assert await found(DockerLogins(file)) == Credentials("porter", "plain")
    assert await found(DockerLogins(file), RegistryAddress("other.example")) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"echo {SECRET}; echo {SECRET} >&2; exit 3",
            "has no login for registry.example: exit status 3; to see why, run",
        ),
        (f"echo {SECRET}", "its answer does not have the form of a credential helper's output"),
        (f'echo \'{{"Username": ["{SECRET}"]}}\'', "its answer does not have the form of a credential helper's output"),
        (f"yes {SECRET}", "output limit passed"),
        ("sleep 60", "deadline passed"),
    ],
)
async def test_output_of_a_failed_helper_is_not_printed(
    tmp_path: Path, helpers: Path, body: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    helper(helpers, "one", body)
    file = config(tmp_path, {"credHelpers": {"registry.example": "one"}})
    wall_s = 0.3 if "sleep" in body else 20.0
    with pytest.raises(RegistryError) as caught:
        await found(DockerLogins(file, limits=replace(LIMITS, wall_s=wall_s)))
    assert message in str(caught.value)
    assert "docker-credential-one" in str(caught.value)
    assert SECRET not in str(caught.value) + caplog.text
    assert caught.value.transient == ("sleep" in body)


async def test_a_missing_helper_is_reported(tmp_path: Path, helpers: Path) -> None:
    named = config(tmp_path, {"credsStore": "nobody", "auths": {"registry.example": {}}})
    with pytest.raises(RegistryError, match=r"config\.json: the credential helper docker-credential-nobody for "):
        await found(DockerLogins(named))
    # No login is needed for public images of other registries.
    assert await found(DockerLogins(named), RegistryAddress("public.example")) is None
    for name in ("../evil", "a/b", "", "-x", "a b"):
        wrong = config(tmp_path, {"credHelpers": {"registry.example": name}})
        if not name:
            assert await found(DockerLogins(wrong)) is None
            continue
        with pytest.raises(RegistryError, match="not the name of a credential helper"):
            await found(DockerLogins(wrong))
    assert not list(helpers.iterdir())


async def test_logins_are_not_sent_to_other_machines_over_plain_http(tmp_path: Path, helpers: Path) -> None:
    one = helper(helpers, "one", GOOD)
    file = config(tmp_path, {"credsStore": "one"})
    assert await DockerLogins(file).find(HERE, "web", scheme="http") is None
    assert asked(one) == []
    assert await DockerLogins(file).find(RegistryAddress("127.0.0.1", 5000), "web", scheme="http") is not None
    assert await DockerLogins(file, plain=True).find(HERE, "web", scheme="http") is not None


async def test_missing_files_are_ignored_and_invalid_files_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await found(DockerLogins(tmp_path / "none" / "config.json")) is None
    assert await found(DockerLogins(Path("/dev/null/config.json"))) is None
    with pytest.raises(RegistryError, match="cannot be read: Is a directory"):
        await found(DockerLogins(tmp_path))
    broken = tmp_path / "config.json"
    broken.write_text("{")
    with pytest.raises(RegistryError, match=r"config\.json: docker config: document"):
        await found(DockerLogins(broken))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert default_file() == broken
    monkeypatch.delenv("DOCKER_CONFIG")
    monkeypatch.setenv("HOME", "/home/porter")
    assert default_file() == Path("/home/porter/.docker/config.json")


async def test_a_real_registry_accepts_the_login_of_a_helper(tmp_path: Path, helpers: Path) -> None:
    async with open_registry_server(tmp_path, with_password=True) as address:
        helper(helpers, "real", f'echo \'{{"Username": "{USER}", "Secret": "{PASSWORD}"}}\'')
        file = config(tmp_path, {"credHelpers": {str(address): "real"}})
        source = RegistrySource(RepositoryAddress(address, "packages", "http"))
        async with open_source(source, "web", network=Network(logins=DockerLogins(file))) as (registry, repository):
            with pytest.raises(RegistryError, match=r"(?i)not found|no such|has no"):
                await registry.resolve(repository, "1.0.0")
        async with open_source(source, "web") as (registry, repository):
            with pytest.raises(RegistryError, match=r"user name and password"):
                await registry.resolve(repository, "1.0.0")
        # The credentials of the source, which come from a Secret, take precedence.
        wrong = replace(source, credentials=Credentials("nobody", "wrong"))
        async with open_source(wrong, "web", network=Network(logins=DockerLogins(file))) as (registry, repository):
            with pytest.raises(RegistryError, match=r"user name and password"):
                await registry.resolve(repository, "1.0.0")
