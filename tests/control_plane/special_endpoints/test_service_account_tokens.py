from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.special_endpoints.service_account_tokens import (
    ISSUER,
    Binding,
    TokenError,
    TokenSigner,
    discovery_document,
)
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import JsonObject, find_list

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ACCOUNT: JsonObject = {"metadata": {"namespace": "a", "name": "bot", "uid": "u1"}}
POD: JsonObject = {"metadata": {"namespace": "a", "name": "p", "uid": "u2"}}


class Clock:
    now = NOW


def backend(clock: Clock) -> Backend:
    made = Backend(MemoryStorage(), Catalog(), lambda: clock.now)
    made.put(Key(Collection("", "serviceaccounts"), "a", "bot"), ACCOUNT)
    made.put(Key(Collection("", "pods"), "a", "p"), POD)
    return made


def test_a_token_identifies_its_account() -> None:
    store = backend(Clock())
    token = TokenSigner(store).sign(ACCOUNT, [ISSUER], NOW, NOW + timedelta(hours=1), [Binding("pod", "p", "u2")])
    user = TokenSigner(store).user(token)

    assert user is not None
    assert (user.name, user.uid) == ("system:serviceaccount:a:bot", "u1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)


def test_a_token_is_invalid_after_expiry_or_deletion_of_its_objects() -> None:
    clock = Clock()
    store = backend(clock)
    signer = TokenSigner(store)
    bound = signer.sign(ACCOUNT, [ISSUER], NOW, NOW + timedelta(hours=1), [Binding("pod", "p", "u2")])
    free = signer.sign(ACCOUNT, [ISSUER], NOW, NOW + timedelta(hours=1))

    store.delete(Key(Collection("", "pods"), "a", "p"))
    with pytest.raises(TokenError, match="invalidated"):
        signer.verified(bound, [ISSUER])
    assert signer.user(free) is not None
    clock.now = NOW + timedelta(hours=1)
    with pytest.raises(TokenError, match="expired"):
        signer.verified(free, [ISSUER])
    clock.now = NOW
    store.delete(Key(Collection("", "serviceaccounts"), "a", "bot"))
    assert signer.user(free) is None


def test_a_token_is_valid_for_its_audiences_only() -> None:
    signer = TokenSigner(backend(Clock()))
    token = signer.sign(ACCOUNT, ["vault", "x"], NOW, NOW + timedelta(hours=1))

    assert signer.user(token) is None
    assert signer.verified(token, ["y", "x"])[1] == ("x",)
    with pytest.raises(
        TokenError, match=r'token audiences \["vault" "x"\] is invalid for the target audiences \["y"\]'
    ):
        signer.verified(token, ["y"])


def test_a_token_of_another_server_is_invalid() -> None:
    token = TokenSigner(backend(Clock())).sign(ACCOUNT, [ISSUER], NOW, NOW + timedelta(hours=1))
    assert TokenSigner(backend(Clock())).user(token) is None


@given(st.text(max_size=40), st.integers(0, 300))
def test_a_changed_token_is_invalid(text: str, place: int) -> None:
    signer = SIGNER
    token = TOKEN[:place] + text + TOKEN[place + len(text) :]
    assert token == TOKEN or signer.user(token) is None
    assert signer.user(text) is None


SIGNER = TokenSigner(backend(Clock()))
TOKEN = SIGNER.sign(ACCOUNT, [ISSUER], NOW, NOW + timedelta(hours=1))


def test_discovery_and_key_documents_describe_the_issuer() -> None:
    assert len(find_list(SIGNER.key_set(), "keys")) == 1
    assert discovery_document("127.0.0.1:1")["issuer"] == ISSUER
