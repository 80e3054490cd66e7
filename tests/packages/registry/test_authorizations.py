"""Cached authorizations: the clients that share them, their lifetime, and their limits."""

from dataclasses import replace

from wharfinger.packages.network.tls import ClientCertificate
from wharfinger.packages.registry.authorizations import (
    MAX_CLIENTS,
    MAX_TOKENS,
    Authorization,
    Authorizations,
    ClientIdentity,
    TokenScope,
)
from wharfinger.packages.registry.credentials import BearerChallenge, Credentials

PULL = TokenScope("web", write=False)
CHALLENGE = BearerChallenge("https://realm.test/token", "wharf", "repository:web:pull")
CLIENT = ClientIdentity("https://registry.test", Credentials("porter", "geheim"), ClientCertificate("c", "k"), "ca")


def test_a_token_is_used_until_it_expires_and_its_challenge_is_retained() -> None:
    known = Authorization()
    assert (known.header(PULL, 0), known.challenge(PULL), known.basic) == ("", None, False)
    known.put(PULL, CHALLENGE, "Bearer t", until=10)
    assert known.header(PULL, 9.9) == "Bearer t"
    assert known.header(replace(PULL, write=True), 9.9) == ""
    assert known.header(PULL, 10) == ""
    assert known.challenge(PULL) == CHALLENGE
    known.drop(PULL)
    assert known.challenge(PULL) is None


def test_authorizations_are_shared_only_by_equal_clients() -> None:
    known = Authorizations()
    known.of(CLIENT).basic = True
    assert known.of(replace(CLIENT)).basic
    others = [
        replace(CLIENT, origin="http://registry.test"),
        replace(CLIENT, credentials=Credentials("porter", "new")),
        replace(CLIENT, credentials=None),
        replace(CLIENT, certificate=None),
        replace(CLIENT, ca=""),
    ]
    assert not any(known.of(each).basic for each in others)


def test_no_secret_is_printed() -> None:
    assert "geheim" not in repr(CLIENT)


def test_the_number_of_clients_and_tokens_is_limited() -> None:
    known = Authorizations()
    for number in range(MAX_CLIENTS + 1):
        known.of(ClientIdentity(f"https://{number}.test")).basic = True
    assert not known.of(ClientIdentity("https://0.test")).basic
    assert known.of(ClientIdentity(f"https://{MAX_CLIENTS}.test")).basic
    one = Authorization()
    for number in range(MAX_TOKENS + 1):
        one.put(TokenScope(str(number), write=False), CHALLENGE, "Bearer t", until=1)
    assert one.challenge(TokenScope("0", write=False)) is None
    assert one.header(TokenScope("1", write=False), 0)
