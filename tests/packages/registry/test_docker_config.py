"""Logins as Docker and Kubernetes store them: which entry matches, the forms of a login, and invalid files."""

import base64
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.docker_config import (
    MAX_DOCKER_CONFIG,
    MAX_KEYS,
    DockerConfigError,
    read_docker_config,
)

HERE = RegistryAddress("registry.example")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def login(name: str) -> JsonObject:
    return {"auth": encoded(f"{name}:s3cret")}


def find(auths: dict[str, JsonObject], registry: RegistryAddress = HERE, path: str = "") -> str | None:
    """Return the user name of the matching login, or None."""
    found = read_docker_config(json.dumps({"auths": auths}).encode(), registry, path)
    assert found is None or found.password == "s3cret"
    return found.username if found else None


@pytest.mark.parametrize(
    "key",
    [
        "registry.example",
        "https://registry.example",
        "http://registry.example",
        "https://registry.example/",
        "https://registry.example/v1/",
        "registry.example/v2",
        "registry.example:443",
        "REGISTRY.example",
        "*.example",
        "reg*.example",
    ],
)
def test_keys_that_match_a_registry_give_its_login(key: str) -> None:
    assert find({"other.example": login("wrong"), key: login("porter")}) == "porter"
    assert find({key: login("porter")}, RegistryAddress("registry.example", 443)) == "porter"


@pytest.mark.parametrize(
    "key",
    [
        "registry.example:5000",
        "example",
        "my.registry.example",
        "*",
        "*.*.example",
        "registry.example.evil",
        "https://registry.example/team",
        "ftp://registry.example",
        "registry.example:https",
        "user@registry.example",
        "",
        "\0",
        "x" * 2000,
    ],
)
def test_keys_of_other_registries_do_not_match(key: str) -> None:
    assert find({key: login("wrong")}) is None


@pytest.mark.parametrize(
    ("key", "registry"),
    [
        ("127.0.0.1:5000", RegistryAddress("127.0.0.1", 5000)),
        ("http://localhost:5000/v1/", RegistryAddress("localhost", 5000)),
        ("[::1]:5000", RegistryAddress("[::1]", 5000)),
        ("https://index.docker.io/v1/", RegistryAddress("docker.io")),
        ("docker.io", RegistryAddress("registry-1.docker.io")),
    ],
)
def test_keys_with_ports_and_for_docker_hub_match(key: str, registry: RegistryAddress) -> None:
    assert find({key: login("porter")}, registry) == "porter"
    assert find({key: login("porter")}, RegistryAddress(registry.host, 5001)) is None


def test_the_most_specific_key_is_used() -> None:
    auths = {
        "*.example": login("anybody"),
        "registry.example": login("porter"),
        "registry.example/team": login("team"),
        "https://registry.example/team/apps/": login("apps"),
    }
    for path, name in (
        ("", "porter"),
        ("other/web", "porter"),
        ("team", "team"),
        ("team/web", "team"),
        ("teams/web", "porter"),
        ("team/apps/web", "apps"),
    ):
        assert find(auths, path=path) == name
        assert find(dict(reversed(auths.items())), path=path) == name
    assert find(auths, RegistryAddress("other.example")) == "anybody"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"auth": encoded("porter:pa:ss")}, Credentials("porter", "pa:ss")),
        ({"auth": encoded("porter:x").rstrip("=")}, Credentials("porter", "x")),
        ({"auth": f" {encoded('porter:x')}\n"}, Credentials("porter", "x")),
        ({"auth": encoded("porter:x\0\0")}, Credentials("porter", "x")),
        ({"auth": encoded("pörter:gehéim")}, Credentials("pörter", "gehéim")),
        ({"username": "porter", "password": "x", "email": "a@b"}, Credentials("porter", "x")),
        ({"username": "a", "password": "b", "auth": encoded("porter:x")}, Credentials("porter", "x")),
        ({"auth": "", "username": "porter", "password": "x"}, Credentials("porter", "x")),
        ({"identitytoken": "t0ken"}, Credentials("", "", "t0ken")),
        ({"auth": encoded("porter:"), "identitytoken": "t0ken"}, Credentials("porter", "", "t0ken")),
        ({"username": "<token>", "password": "t0ken"}, Credentials("", "", "t0ken")),
        ({}, None),
        ({"auth": None}, None),
    ],
)
def test_all_spellings_of_a_login_are_read(entry: JsonObject, expected: Credentials | None) -> None:
    data = json.dumps({"auths": {"registry.example": entry}}).encode()
    assert read_docker_config(data, HERE) == expected


def test_the_older_form_of_the_file_is_read() -> None:
    assert read_docker_config(
        json.dumps({"https://registry.example/v1/": login("porter")}).encode(), HERE
    ) == Credentials("porter", "s3cret")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"auths": {}},
        {"auths": None},
        {"credsStore": "desktop", "currentContext": "x", "HttpHeaders": {"User-Agent": "x"}},
        {"auths": {"registry.example": {}}, "credHelpers": {"registry.example": "helper"}},
    ],
)
def test_configurations_without_a_matching_login_give_none(document: JsonObject) -> None:
    assert read_docker_config(json.dumps(document).encode(), HERE) is None


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "expected an object, found a list"),
        ({"auths": []}, "auths: expected an object"),
        ({"auths": {"registry.example": "x"}}, "auths.registry.example: expected an object"),
        ({"auths": {"registry.example": {"auth": 5}}}, "auth: expected a string"),
        ({"auths": {"registry.example": {"auth": "*s3cret*"}}}, r"auths.registry.example.auth: not base64"),
        ({"auths": {"registry.example": {"auth": encoded("s3cret")}}}, r"auth: not base64 of name:password"),
        ({"auths": {"registry.example": {"auth": "/w=="}}}, r"auth: not base64 of name:password"),
        ({"auths": {str(number): {} for number in range(MAX_KEYS + 1)}}, "1001 entries"),
    ],
)
def test_invalid_configurations_are_refused(document: JsonValue, why: str) -> None:
    with pytest.raises(DockerConfigError, match=f"^docker config: .*{why}") as caught:
        read_docker_config(json.dumps(document).encode(), HERE)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b" " * (MAX_DOCKER_CONFIG + 1), b'{"auths":{"a":' * 300])
def test_files_that_are_not_json_objects_are_refused(data: bytes) -> None:
    with pytest.raises(DockerConfigError):
        read_docker_config(data, HERE)


def test_an_invalid_login_for_another_registry_is_ignored() -> None:
    auths: JsonObject = {"other.example": {"auth": "***"}, "third.example": 5, "registry.example": login("porter")}
    found = read_docker_config(json.dumps({"auths": auths}).encode(), HERE)
    assert found is not None
    assert found.username == "porter"


KEYS = st.sampled_from(
    [
        "registry.example",
        "*.example",
        "https://registry.example/v1/",
        "[::1]",
        "registry.example/a",
        "[*.example",
        "[!a]*.example",
    ]
) | st.text(max_size=20)
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "auth": st.text(max_size=8)
        | st.binary(max_size=9).map(lambda raw: base64.b64encode(raw).decode())
        | st.integers(),
        "username": st.text(max_size=4) | st.none() | st.integers(),
        "password": st.text(max_size=4),
        "identitytoken": st.text(max_size=4) | st.booleans(),
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {}, optional={"auths": st.dictionaries(KEYS, ENTRIES | st.integers(), max_size=4)}
) | (st.dictionaries(KEYS, ENTRIES, max_size=3))


@pytest.mark.slow
@settings(max_examples=scaled(5_000, 500))
@given(
    st.binary(max_size=100)
    | DOCUMENTS.map(lambda value: json.dumps(value).encode())
    | st.tuples(DOCUMENTS, st.integers(0, 300)).map(lambda pair: json.dumps(pair[0]).encode()[: pair[1]])
)
@example(b'{"auths":{"registry.example":{"auth":"\\ud800"}}}')
@example('{"auths":{"registry.example":{"auth":"ä"}}}'.encode())
def test_any_bytes_are_read_as_a_configuration_or_refused(data: bytes) -> None:
    try:
        found = read_docker_config(data, HERE, "a/b")
    except DockerConfigError as error:
        assert len(str(error)) < 1_000
    else:
        assert found is None or found.username or found.password or found.identity_token
