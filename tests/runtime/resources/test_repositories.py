"""PackageRepositories: the sources of packages that they name, and their logins."""

import base64
import json
from pathlib import Path

import pytest

from tests.runtime.support.objects import repository
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.network.tls import ClientCertificate
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.sources.archives import ArchiveSource
from wharfinger.packages.sources.git_repository import GitSource, SshKey
from wharfinger.packages.sources.source import FolderSource, HelmSource, LayoutSource, RegistrySource
from wharfinger.packages.sources.tag_pattern import TagPattern
from wharfinger.packages.sources.token_file import TokenFile
from wharfinger.runtime.resources.repositories import Repository, read_repository, with_secrets
from wharfinger.runtime.resources.resources import SECRET, SpecError

LOGIN = ObjectKey(SECRET, "ops", "login")
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def spec(**fields: JsonObject) -> JsonObject:
    return {"metadata": {"name": "r"}, "spec": {**fields}}


def registry_of(found: Repository) -> RegistrySource:
    assert isinstance(found.source, RegistrySource)
    return found.source


def secret(**data: str) -> JsonObject:
    encoded: JsonObject = {
        key if key == "known_hosts" else key.replace("_", "."): base64.b64encode(text.encode()).decode()
        for key, text in data.items()
    }
    return {"data": encoded}


@pytest.mark.parametrize(
    ("scheme", "reached_by"), [("HTTP", "http"), ("http", "http"), ("HTTPS", "https"), (None, "https")]
)
@pytest.mark.parametrize("host", ["r.example", "127.0.0.1:5000"])
def test_a_repository_has_an_address_and_a_scheme(host: str, scheme: str | None, reached_by: str) -> None:
    source = registry_of(read_repository(repository(f"{host}/p/", scheme=scheme)))
    assert (str(source.address), source.address.scheme, source.credentials) == (f"{host}/p", reached_by, None)


@pytest.mark.parametrize(
    ("address", "scheme", "message"),
    [("", "HTTP", "registry.repo"), ("r.example/p", "FTP", "neither HTTP"), ("r.example", "HTTP", "correct the Pack")],
)
def test_an_invalid_repository_is_refused(address: str, scheme: str, message: str) -> None:
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
    with pytest.raises(SpecError, match=r"spec"):
        read_repository(obj)


def test_only_folders_below_the_daemons_options_are_read(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    layout = read_repository(spec(layout={"path": f"{tmp_path}/mine"}), [tmp_path])
    assert layout == Repository(LayoutSource(tmp_path / "mine"), None)
    folder = read_repository(spec(folder={"path": f"{tmp_path}/mine/../mine"}), [Path("/nowhere"), tmp_path])
    assert folder.source == FolderSource(tmp_path / "mine")
    for path in ("/etc", f"{tmp_path}/../x", f"{tmp_path}/link", "mine", ""):
        with pytest.raises(SpecError, match=r"spec\.folder\.path"):
            read_repository(spec(folder={"path": path}), [tmp_path])
    with pytest.raises(SpecError, match=r"--local-packages"):
        read_repository(spec(folder={"path": f"{tmp_path}/mine"}))


@pytest.mark.parametrize(
    "login",
    [
        secret(username="u", password="p"),
        secret(_dockerconfigjson=json.dumps({"auths": {"r.example": {"username": "u", "password": "p"}}})),
        secret(_dockercfg=json.dumps({"r.example": {"auth": base64.b64encode(b"u:p").decode()}})),
    ],
)
def test_the_login_is_read_from_a_secret(login: JsonObject) -> None:
    found = read_repository(
        spec(registry={"repo": "r.example/p", "credentialsSecret": {"name": "login", "namespace": "ops"}})
    )
    assert found.credentials == ObjectKey(SECRET, "ops", "login")
    source = with_secrets(found, {LOGIN: login})
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
def test_an_unusable_secret_is_reported(login: JsonObject | None, message: str) -> None:
    found = read_repository(
        spec(registry={"repo": "r.example/p", "credentialsSecret": {"name": "login", "namespace": "ops"}})
    )
    with pytest.raises(SpecError, match=message):
        with_secrets(found, {LOGIN: login})


def test_a_repository_without_a_login_needs_no_secret() -> None:
    found = read_repository(repository("r.example/p"))
    assert with_secrets(found, {}) is found.source


def test_token_realms_are_hosts_that_may_get_the_login() -> None:
    obj = repository("registry.example/packages", scheme=None)
    registry = find_object(obj, "spec", "registry")
    registry["credentialsSecret"] = {"name": "login", "namespace": "prod"}
    registry["tokenRealms"] = ["Auth.example.org"]
    read = read_repository(obj)
    assert read.realms == ("auth.example.org",)
    data: JsonObject = {"username": "YQ==", "password": "Yg=="}
    source = with_secrets(read, {ObjectKey(SECRET, "prod", "login"): {"kind": "Secret", "data": data}})
    assert isinstance(source, RegistrySource)
    assert source.credentials is not None
    assert source.credentials.realms == ("auth.example.org",)
    for wrong in ([1], ["https://auth.example"], ["a/b"], [""], ["a.example"] * 17):
        registry["tokenRealms"] = list[JsonValue](wrong)
        with pytest.raises(SpecError, match=r"tokenRealms"):
            read_repository(obj)


HELM_LOGIN: JsonObject = {"credentialsSecret": {"name": "login", "namespace": "ops"}}
TLS: JsonObject = {"repo": "r.example/p", "tlsSecret": {"name": "login", "namespace": "ops"}}


def test_certificates_are_read_from_a_secret() -> None:
    found = read_repository(spec(registry={**TLS, "ca": "own " + PEM}))
    assert found.secrets == {"spec.registry.tlsSecret": LOGIN}
    data = {"ca.crt": PEM, "tls.crt": PEM, "tls.key": "-----BEGIN PRIVATE KEY-----"}
    source = with_secrets(found, {LOGIN: secret(**data)})
    assert isinstance(source, RegistrySource)
    assert source.ca == f"own {PEM}\n{PEM}"
    assert source.client == ClientCertificate(PEM, "-----BEGIN PRIVATE KEY-----")
    source = with_secrets(found, {LOGIN: secret(**{"ca.crt": PEM})})
    assert isinstance(source, RegistrySource)
    assert source.client is None


@pytest.mark.parametrize(
    ("login", "message"),
    [
        (None, "does not exist; create it, or correct the name"),
        (secret(), "expected ca.crt, or tls.crt and tls.key, found none of them; correct the Secret"),
        (secret(**{"tls.crt": PEM}), "expected tls.crt and tls.key together, found one of them; add the other one"),
        (secret(**{"ca.crt": "hello"}), "ca.crt: expected PEM text; correct the Secret"),
        ({"data": {"ca.crt": "?"}}, "expected PEM text in ca.crt, tls.crt and tls.key; correct the Secret"),
        ({"data": {"ca.crt": "/w=="}}, "expected PEM text in ca.crt, tls.crt and tls.key; correct the Secret"),
    ],
)
def test_an_unusable_secret_of_certificates_is_reported(login: JsonObject | None, message: str) -> None:
    found = read_repository(spec(registry=dict(TLS)))
    with pytest.raises(SpecError) as caught:
        with_secrets(found, {LOGIN: login})
    assert str(caught.value).startswith("spec.registry.tlsSecret: Secret ops/login")
    assert str(caught.value).endswith(message)


def test_only_token_files_below_the_daemons_options_are_read(tmp_path: Path) -> None:
    obj = spec(registry={"repo": "r.example/p", "tokenFile": {"path": f"{tmp_path}/aws/token", "username": "AWS"}})
    source = registry_of(read_repository(obj, (), (tmp_path,)))
    assert source.token == TokenFile(tmp_path / "aws" / "token", "AWS")
    with pytest.raises(
        SpecError, match=r"daemon may read tokens from; start the daemon with --registry-tokens DIR, or"
    ):
        read_repository(obj, (tmp_path,))
    both: JsonObject = {
        "repo": "r.example/p",
        "tokenFile": {"path": "/t"},
        "credentialsSecret": {"name": "a", "namespace": "b"},
    }
    with pytest.raises(SpecError, match=r"expected one of credentialsSecret and tokenFile, found both; remove one"):
        read_repository(spec(registry=both), (), (Path("/"),))


def test_a_helm_repository_is_read_with_its_login() -> None:
    found = read_repository(spec(helm={"url": "https://charts.example/stable/", "ca": PEM, **HELM_LOGIN}))
    assert found.source == HelmSource("https://charts.example/stable", ca=PEM)
    assert found.secrets == {"spec.helm.credentialsSecret": LOGIN}
    basic = with_secrets(found, {LOGIN: secret(username="u", password="p")})
    assert isinstance(basic, HelmSource)
    assert basic.credentials == Credentials("u", "p")
    auth = base64.b64encode(b"u:p").decode()
    config = json.dumps({"auths": {"charts.example/stable": {"auth": auth}}})
    assert with_secrets(found, {LOGIN: secret(_dockerconfigjson=config)}) == basic
    with pytest.raises(
        SpecError, match=r"spec\.helm\.credentialsSecret: Secret ops/login has no login for charts\.example"
    ):
        with_secrets(found, {LOGIN: secret()})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": ""}, "exactly one of registry, helm, git, archive, layout and folder"),
        ({"ca": PEM}, "spec.helm.url: required, such as https://charts.example/stable"),
        ({"url": "oci://charts.example"}, "expected an http"),
        ({"url": "https://charts.example", "ca": "x"}, "spec.helm.ca: not a certificate in PEM form"),
    ],
)
def test_an_invalid_helm_repository_is_refused(fields: JsonObject, message: str) -> None:
    obj = spec(helm=fields) if fields != {"url": ""} else spec()
    with pytest.raises(SpecError, match=message):
        read_repository(obj)


def test_signatures_of_a_helm_repository_are_refused() -> None:
    obj: JsonObject = {"spec": {"helm": {"url": "https://charts.example"}, "verify": {"keys": ["x"]}}}
    with pytest.raises(
        SpecError, match=r"a Helm repository has provenance files instead of cosign signatures; use keyring"
    ):
        read_repository(obj)


def git(**fields: JsonValue) -> JsonObject:
    return spec(git={"url": "https://git.example/team/packages", **fields})


def test_a_git_repository_is_read_with_its_login() -> None:
    found = read_repository(
        git(path="deploy", tags="{package}-{version}", credentialsSecret={"name": "login", "namespace": "ops"})
    )
    assert found.source == GitSource(
        "https://git.example/team/packages", "deploy", "", TagPattern("{package}-{version}")
    )
    assert found.secrets == {"spec.git.credentialsSecret": LOGIN}
    source = with_secrets(found, {LOGIN: secret(username="porter", password="hush")})
    assert isinstance(source, GitSource)
    assert source.credentials == Credentials("porter", "hush")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"url": ""}, r"spec: expected exactly one of|spec.git.url: required"),
        ({"url": "ext::sh -c id"}, "expected"),
        ({"url": "https://a:b@git.example/x"}, "must not contain a login; use credentialsSecret"),
        ({"url": "file:///etc"}, r"spec.git.url: /etc is not below a folder .* start the daemon with --local-packages"),
        ({"url": "/etc"}, "is not below a folder"),
        ({"path": "../x"}, r"spec.git.path: expected a folder of the repository"),
        ({"tags": "v"}, r"expected \{version\} exactly once"),
        ({"package": "A B"}, "is not the name of a package"),
        (
            {"url": "file:///srv/x", "credentialsSecret": {"name": "a", "namespace": "b"}},
            r"expected an http\(s\) or ssh URL|is not below a folder",
        ),
    ],
)
def test_an_invalid_git_repository_is_refused(fields: JsonObject, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        read_repository(git(**fields))


def test_the_ssh_key_of_a_git_repository_is_read() -> None:
    found = read_repository(
        git(url="ssh://git@git.example/x", credentialsSecret={"name": LOGIN.name, "namespace": LOGIN.namespace})
    )
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nhush\n-----END OPENSSH PRIVATE KEY-----\n"
    texts = {"ssh-privatekey": key, "known_hosts": "git.example ssh-ed25519 AAAA"}
    source = with_secrets(found, {LOGIN: secret(**texts)})
    assert isinstance(source, GitSource)
    assert source.ssh == source.login == SshKey(key, "git.example ssh-ed25519 AAAA")
    assert "hush" not in repr(source)
    for name, why in (
        ("ssh-privatekey", "expected a private key for ssh in ssh-privatekey, found none"),
        (
            "known_hosts",
            "expected the keys of the server in known_hosts, found none; add the output of `ssh-keyscan HOST`",
        ),
    ):
        with pytest.raises(SpecError, match=why) as caught:
            with_secrets(found, {LOGIN: secret(**{**texts, name: ""})})
        assert "hush" not in str(caught.value)


@pytest.mark.parametrize("kind", ["git", "archive", "helm", "folder"])
def test_a_source_without_signatures_refuses_a_policy(kind: str, tmp_path: Path) -> None:
    sources: dict[str, JsonObject] = {
        "git": {"url": "https://git.example/a"},
        "archive": {
            "packages": [{"name": "web", "version": "1", "digest": f"sha256:{'1' * 64}", "url": "https://a.example/b"}]
        },
        "helm": {"url": "https://charts.example"},
        "folder": {"path": str(tmp_path)},
    }
    with pytest.raises(
        SpecError,
        match=r"spec.verify: .*( instead of cosign signatures; use keyring|no signatures; use a layout, or a reg)",
    ):
        read_repository({"spec": {kind: sources[kind], "verify": {"keys": [PEM]}}}, [tmp_path])


def test_the_login_of_archives_needs_a_named_server() -> None:
    login: JsonObject = {"name": "login", "namespace": "ops"}
    files: list[JsonValue] = [
        {"name": "web", "version": "1", "digest": f"sha256:{'1' * 64}", "url": "https://a.example/b"}
    ]
    with pytest.raises(SpecError, match=r"spec.archive.server: required with a login"):
        read_repository(spec(archive={"packages": files, "credentialsSecret": login}))
    found = read_repository(
        spec(archive={"packages": files, "credentialsSecret": login, "server": "https://a.example/"})
    )
    source = with_secrets(found, {LOGIN: secret(username="porter", password="hush")})
    assert isinstance(source, ArchiveSource)
    assert (source.server, source.credentials) == ("https://a.example", Credentials("porter", "hush"))
