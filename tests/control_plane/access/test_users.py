import base64

import pytest

from wharfinger.control_plane.access.users import (
    ADMINISTRATOR,
    ANONYMOUS,
    Authenticator,
    User,
    no_account,
    service_account_groups,
    service_account_of,
)
from wharfinger.control_plane.wire.status import StatusError

BOT = User("system:serviceaccount:a:bot", ())


def by_token(token: str) -> User | None:
    return BOT if token == "a.b.c" else None


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


@pytest.mark.parametrize(
    ("authorization", "user"),
    [
        ("Bearer sesame", ADMINISTRATOR),
        ("bearer sesame more", ADMINISTRATOR),
        ("bearer  sesame ", ANONYMOUS),
        (basic("wharfinger:sesame"), ADMINISTRATOR),
        ("Bearer a.b.c", BOT),
        ("", ANONYMOUS),
        ("Bearer", ANONYMOUS),
        ("Digest sesame", ANONYMOUS),
    ],
)
def test_bearer_tokens_identify_users(authorization: str, user: User) -> None:
    headers = {"authorization": authorization} if authorization else {}
    assert Authenticator("sesame", by_token).user(headers) == user


@pytest.mark.parametrize("authorization", ["Bearer other", basic("sesame"), "Basic %%%", "Basic /w==", "Bearer é"])
def test_wrong_tokens_are_refused(authorization: str) -> None:
    with pytest.raises(StatusError) as refused:
        Authenticator("sesame", by_token).user({"authorization": authorization})
    assert refused.value.code == 401


def test_every_client_is_administrator_of_a_server_without_token() -> None:
    assert Authenticator(None).user({"authorization": "Bearer x"}) is ADMINISTRATOR
    assert Authenticator(None).by_token("x") is no_account("x") is None


@pytest.mark.parametrize(
    ("name", "account"),
    [
        ("system:serviceaccount:a:bot", ("a", "bot")),
        ("system:serviceaccount:a", None),
        ("system:serviceaccount:a:b:c", None),
        ("system:serviceaccount::b", None),
        ("jane", None),
    ],
)
def test_names_of_service_accounts_are_parsed(name: str, account: tuple[str, str] | None) -> None:
    assert service_account_of(name) == account


def test_service_accounts_belong_to_groups() -> None:
    assert ADMINISTRATOR.administrator
    assert not ANONYMOUS.administrator
    assert service_account_groups("a") == ("system:serviceaccounts", "system:serviceaccounts:a")
