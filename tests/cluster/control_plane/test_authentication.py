import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.control_plane.samples import builtin
from wharfinger.cluster.control_plane.authentication import (
    ADMINISTRATOR,
    ANONYMOUS,
    AUTHENTICATED,
    Authenticator,
    User,
    authorize_path,
    authorize_resource,
)
from wharfinger.cluster.control_plane.status import StatusError

PODS = builtin("", "v1", "pods").kind
BOT = User("bot", (AUTHENTICATED,))


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("header", ["Bearer sesame", "bearer  sesame", basic("anyone:sesame")])
def test_the_token_makes_an_administrator(header: str) -> None:
    assert Authenticator("sesame").user({"authorization": header}) == ADMINISTRATOR


@pytest.mark.parametrize("header", ["Bearer other", "Bearer", basic("sesame:x"), "Basic !!", "Digest sesame", "sesame"])
def test_anything_else_is_refused(header: str) -> None:
    with pytest.raises(StatusError) as caught:
        Authenticator("sesame").user({"authorization": header})
    assert caught.value.code == 401


def test_nobody_is_anonymous_and_without_a_token_everybody_is_let_in() -> None:
    assert Authenticator("sesame").user({}) == ANONYMOUS
    assert Authenticator(None).user({}) == ADMINISTRATOR


def test_administrators_may_impersonate() -> None:
    headers = {"impersonate-user": "bot", "impersonate-group": "a, b"}

    assert Authenticator(None).user(headers) == User("bot", ("a", "b", AUTHENTICATED))
    with pytest.raises(StatusError, match='cannot impersonate resource "users"'):
        Authenticator("sesame").user(headers)


@pytest.mark.parametrize(
    ("user", "method", "path", "allowed"),
    [
        (ANONYMOUS, "GET", "/livez", True),
        (ANONYMOUS, "GET", "/readyz/ping", True),
        (ANONYMOUS, "GET", "/version", True),
        (ANONYMOUS, "POST", "/version", False),
        (ANONYMOUS, "GET", "/apis", False),
        (ANONYMOUS, "GET", "/metrics", False),
        (BOT, "GET", "/apis/apps/v1", True),
        (BOT, "GET", "/openapi/v3", True),
        (BOT, "GET", "/apisx", False),
        (BOT, "GET", "/metrics", False),
        (ADMINISTRATOR, "GET", "/metrics", True),
    ],
)
def test_paths(user: User, method: str, path: str, allowed: bool) -> None:
    if allowed:
        authorize_path(user, method, path)
        return
    with pytest.raises(StatusError) as caught:
        authorize_path(user, method, path)
    assert caught.value.code == 403


def test_resources_are_for_administrators() -> None:
    authorize_resource(ADMINISTRATOR, "list", PODS, "a", "", "")
    with pytest.raises(StatusError) as caught:
        authorize_resource(BOT, "get", PODS, "a", "p", "status")
    assert caught.value.message == (
        'pods "p" is forbidden: User "bot" cannot get resource "pods/status" in API group "" in the namespace "a"'
    )
    with pytest.raises(StatusError, match="at the cluster scope"):
        authorize_resource(BOT, "list", PODS, "", "", "")


@given(st.text(max_size=40))
def test_any_header_is_a_user_or_refused(header: str) -> None:
    try:
        Authenticator("a long and secret token").user({"authorization": header})
    except StatusError as error:
        assert error.code == 401
