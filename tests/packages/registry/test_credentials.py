import base64
from urllib.parse import parse_qs

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.packages.errors import RegistryError
from wharfinger.packages.registry.credentials import (
    DEFAULT_TOKEN_LIFE,
    BasicChallenge,
    BearerChallenge,
    Credentials,
    may_get_login,
    read_challenges,
    read_token,
    realm_url,
    token_form,
    token_url,
)

HTTPS = httpx.URL("https://registry.example")
HTTP = httpx.URL("http://127.0.0.1:5000")


def test_passwords_and_tokens_are_not_printed() -> None:
    credentials = Credentials("porter", "geheim")
    assert "geheim" not in repr(credentials)
    assert credentials.basic() == "Basic " + base64.b64encode(b"porter:geheim").decode()
    assert "t0ken" not in repr(read_token(b'{"token":"t0ken"}', "x"))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], ()),
        (["Basic realm=x"], (BasicChallenge(),)),
        (['basic realm="a, b", charset="UTF-8"'], (BasicChallenge(),)),
        (["Basic"], (BasicChallenge(),)),
        (
            ['Bearer realm="https://auth.example/token",service="registry",scope="repository:a/b:pull,push"'],
            (BearerChallenge("https://auth.example/token", "registry", "repository:a/b:pull,push"),),
        ),
        (['Bearer realm="r"', "Basic realm=x"], (BearerChallenge("r", "", ""), BasicChallenge())),
        (['Basic realm="x", Bearer realm="r"'], (BearerChallenge("r", "", ""), BasicChallenge())),
        (['Bearer Realm="a\\"b" , SCOPE = one'], (BearerChallenge('a"b', "", "one"),)),
        (["Bearer service=x"], ()),
        (["Negotiate", "Digest qop=auth"], ()),
        (["???"], ()),
    ],
)
def test_challenges_are_parsed(headers: list[str], expected: tuple[BasicChallenge | BearerChallenge, ...]) -> None:
    assert read_challenges(headers) == expected


@given(st.lists(st.text(max_size=60) | st.text(alphabet='Bearer basic="\\,realm/', max_size=60), max_size=3))
def test_any_header_can_be_read(headers: list[str]) -> None:
    for challenge in read_challenges(headers):
        if isinstance(challenge, BearerChallenge):
            assert challenge.realm


def test_the_token_url_has_service_and_scopes() -> None:
    challenge = BearerChallenge("https://auth.example/token?a=1", "my registry", "one two")
    url = token_url(challenge, registry=HTTPS, scope="unused")
    assert url.params.multi_items() == [("a", "1"), ("service", "my registry"), ("scope", "one"), ("scope", "two")]
    assert token_url(BearerChallenge("http://127.0.0.1:1/t", "", ""), registry=HTTP, scope="s").params["scope"] == "s"
    assert token_url(BearerChallenge("https://auth.example/t", "", ""), registry=HTTP, scope="").scheme == "https"


@pytest.mark.parametrize(
    "realm",
    ["http://auth.example/t", "ftp://auth.example", "/token", "https://user:pw@auth.example/t", "http://[", "https://"],
)
def test_insecure_and_invalid_realms_are_refused(realm: str) -> None:
    with pytest.raises(RegistryError) as caught:
        token_url(BearerChallenge(realm, "", ""), registry=HTTPS, scope="")
    assert not caught.value.transient


@pytest.mark.parametrize(
    ("answer", "value", "lifetime"),
    [
        (b'{"token":"a","expires_in":300}', "a", 300),
        (b'{"access_token":"b"}', "b", DEFAULT_TOKEN_LIFE),
        (b'{"token":"a","access_token":"b","expires_in":0}', "a", DEFAULT_TOKEN_LIFE),
        (b'{"token":"a","expires_in":true}', "a", DEFAULT_TOKEN_LIFE),
        (b'{"token":"a","expires_in":1e300}', "a", DEFAULT_TOKEN_LIFE),
        (b'{"token":"a","expires_in":"60"}', "a", DEFAULT_TOKEN_LIFE),
    ],
)
def test_tokens_are_read_with_their_lifetime(answer: bytes, value: str, lifetime: float) -> None:
    token = read_token(answer, "auth.example")
    assert (token.value, token.lifetime) == (value, lifetime)
    assert token.header() == f"Bearer {value}"


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"{}", b'{"token":5}', b'{"token":"a\\r\\nX: y"}', b'{"token":"a b"}', b"<html>"]
)
def test_an_answer_without_a_token_is_a_transient_error(answer: bytes) -> None:
    with pytest.raises(RegistryError, match=r"auth\.example") as caught:
        read_token(answer, "auth.example")
    assert caught.value.transient


def test_an_identity_token_is_exchanged_with_a_form() -> None:
    realm, asked = "https://auth.example/token?x=1", httpx.URL("https://a.example")
    challenge = BearerChallenge(realm, "wharf", "")
    assert str(realm_url(challenge, registry=asked)) == realm
    form = parse_qs(token_form(challenge, scope="repository:web:pull", identity_token="a b&c").decode())
    assert form == {
        "grant_type": ["refresh_token"],
        "client_id": ["wharfinger"],
        "service": ["wharf"],
        "scope": ["repository:web:pull"],
        "refresh_token": ["a b&c"],
    }
    assert "a b&c" not in repr(Credentials("", "", "a b&c"))
    assert not Credentials("", "", "t").can_basic
    assert Credentials("a", "b").can_basic


@pytest.mark.parametrize(
    ("registry", "realm", "allowed"),
    [
        ("https://registry.example.com", "https://registry.example.com/token", True),
        ("https://registry.example.com", "https://REGISTRY.example.com:8443/token", True),
        ("https://registry-1.docker.example", "https://auth.docker.example/token", True),
        ("https://registry.gitlab.example", "https://gitlab.example/jwt/auth", True),
        ("https://docker.example", "https://auth.docker.example/token", True),
        ("https://docker.example", "https://other.example/token", False),
        ("https://registry.example.com", "https://evil.com/token", False),
        ("https://registry.example.com", "https://notexample.com/token", False),
        ("https://registry.example.com", "https://registry.example.com.evil.com/token", False),
        ("http://registry.example.com", "http://auth.example.com/token", False),
        ("http://127.0.0.1:5000", "http://127.0.0.1:5001/token", True),
        ("http://127.0.0.1:5000", "http://127.0.0.2:5000/token", False),
        ("https://10.0.0.1", "https://10.0.0.2/token", False),
        ("https://10.0.0.1", "https://x.0.0.1/token", False),
        ("http://localhost:5000", "https://localhost.evil.com/token", False),
        ("https://registry.example.com", "https://login.elsewhere.example/token", True),
        ("https://registry.example.com", "https://a.login.elsewhere.example/token", False),
    ],
)
def test_only_trusted_realms_may_get_a_login(registry: str, realm: str, *, allowed: bool) -> None:
    realms, address = ("login.elsewhere.example",), httpx.URL(registry)
    assert may_get_login(httpx.URL(realm), registry=address, realms=realms) is allowed
