"""PackageRepositories: where packages come from, and with which login."""

import base64
import json
from pathlib import Path

import pytest

from tests.runtime.support.objects import repository
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.source import FolderSource, LayoutSource, RegistrySource
from wharfinger.runtime.resources.repositories import Repository, read_repository, secret_data, with_credentials
from wharfinger.runtime.resources.resources import SECRET, SpecError


def spec(**fields: JsonObject) -> JsonObject:
    return {"metadata": {"name": "r"}, "spec": {**fields}}


def registry_of(found: Repository) -> RegistrySource:
    assert isinstance(found.source, RegistrySource)
    return found.source


def secret(**data: str) -> JsonObject:
    encoded: JsonObject = {
        key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in data.items()
    }
    return {"data": encoded}


@pytest.mark.parametrize(
    ("scheme", "reached_by"), [("HTTP", "http"), ("http", "http"), ("HTTPS", "https"), (None, "https")]
)
@pytest.mark.parametrize("host", ["r.example", "127.0.0.1:5000"])
def test_a_repository_says_how_it_is_reached(host: str, scheme: str | None, reached_by: str) -> None:
    source = registry_of(read_repository(repository(f"{host}/p/", scheme=scheme)))
    assert (str(source.address), source.address.scheme, source.credentials) == (f"{host}/p", reached_by, None)


@pytest.mark.parametrize(
    ("address", "scheme", "message"),
    [("", "HTTP", "registry.repo"), ("r.example/p", "FTP", "neither HTTP"), ("r.example", "HTTP", "correct the Pack")],
)
def test_a_wrong_repository_is_refused(address: str, scheme: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_repository(repository(address, scheme=scheme))


@pytest.mark.parametrize(
    "obj",
    [
        spec(registry={"repo": 3}),
        spec(),
        spec(registry={"repo": "r.example/p"}, folder={"path": "/p"}),
        spec(registry={"repo": "r.example/p", "ca": "no certificate"}),
        spec(registry={"repo": "r.example/p", "credentialsSecret": {"name": "login"}}),
    ],
)
def test_a_repository_of_another_shape_is_refused(obj: JsonObject) -> None:
    with pytest.raises(SpecError, match="spec"):
        read_repository(obj)


def test_folders_are_read_below_what_the_daemon_was_started_with(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    layout = read_repository(spec(layout={"path": f"{tmp_path}/mine"}), [tmp_path])
    assert layout == Repository(LayoutSource(tmp_path / "mine"), None)
    folder = read_repository(spec(folder={"path": f"{tmp_path}/mine/../mine"}), [Path("/nowhere"), tmp_path])
    assert folder.source == FolderSource(tmp_path / "mine")
    for path in ("/etc", f"{tmp_path}/../x", f"{tmp_path}/link", "mine", ""):
        with pytest.raises(SpecError, match=r"spec\.folder\.path"):
            read_repository(spec(folder={"path": path}), [tmp_path])
    with pytest.raises(SpecError, match="--local-packages"):
        read_repository(spec(folder={"path": f"{tmp_path}/mine"}))


@pytest.mark.parametrize(
    "login",
    [
        secret(username="u", password="p"),
        secret(_dockerconfigjson=json.dumps({"auths": {"r.example": {"username": "u", "password": "p"}}})),
        secret(_dockercfg=json.dumps({"r.example": {"auth": base64.b64encode(b"u:p").decode()}})),
    ],
)
def test_a_secret_has_the_login(login: JsonObject) -> None:
    found = read_repository(
        spec(registry={"repo": "r.example/p", "credentialsSecret": {"name": "login", "namespace": "ops"}})
    )
    assert found.credentials == ObjectKey(SECRET, "ops", "login")
    source = with_credentials(found, login)
    assert isinstance(source, RegistrySource)
    assert source.credentials == Credentials("u", "p")
    assert "password" not in repr(source) or "'p'" not in repr(source)


@pytest.mark.parametrize(
    ("login", "message"),
    [
        (None, "ops/login does not exist"),
        (secret(), "has no login for r.example"),
        (secret(_dockerconfigjson=json.dumps({"auths": {}})), "has no login for r.example"),
        (secret(_dockerconfigjson="{"), "ops/login"),
        ({"data": {"username": "?", "password": "cA=="}}, "username: not base64"),
        ({"data": {"username": "/w==", "password": "cA=="}}, "must be text"),
    ],
)
def test_an_unusable_secret_is_named(login: JsonObject | None, message: str) -> None:
    found = read_repository(
        spec(registry={"repo": "r.example/p", "credentialsSecret": {"name": "login", "namespace": "ops"}})
    )
    with pytest.raises(SpecError, match=message):
        with_credentials(found, login)


def test_a_repository_without_a_login_needs_no_secret() -> None:
    found = read_repository(repository("r.example/p"))
    assert with_credentials(found, None) is found.source


def test_the_data_of_a_secret() -> None:
    assert secret_data(secret(a="b")) == {"a": b"b"}
    with pytest.raises(FormatError, match=r"data\.a"):
        secret_data({"data": {"a": 1}})


def test_hosts_that_may_get_the_login() -> None:
    obj = repository("registry.example/packages", scheme=None)
    registry = find_object(obj, "spec", "registry")
    registry["credentialsSecret"] = {"name": "login", "namespace": "prod"}
    registry["tokenRealms"] = ["Auth.example.org"]
    read = read_repository(obj)
    assert read.realms == ("auth.example.org",)
    data: JsonObject = {"username": "YQ==", "password": "Yg=="}
    source = with_credentials(read, {"kind": "Secret", "data": data})
    assert isinstance(source, RegistrySource)
    assert source.credentials is not None
    assert source.credentials.realms == ("auth.example.org",)
    for wrong in ([1], ["https://auth.example"], ["a/b"], [""], ["a.example"] * 17):
        registry["tokenRealms"] = list[JsonValue](wrong)
        with pytest.raises(SpecError, match="tokenRealms"):
            read_repository(obj)
