"""Connections to registries, redirects and authorization: which servers get a login or a token, and limits on redirects and on
concurrent requests.
"""

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.packages.support.faulty_registry import FaultyRegistry, Reply, error_body, open_faulty_registry
from tests.registry_server import make_certificate, open_registry_server
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.authorizations import Authorizations, ClientIdentity, TokenScope
from wharfinger.packages.registry.connection import (
    RegistryAccess,
    RegistryConnection,
    RegistryRequest,
    Timeouts,
    open_connection,
)
from wharfinger.packages.registry.credentials import BearerChallenge, Credentials

PORTER = Credentials("porter", "geheim")
BASIC = PORTER.basic()
GET = RegistryRequest("GET", "/v2/x", "x", "the thing")
PATIENT = Timeouts()
PULL = TokenScope("x", write=False)


@asynccontextmanager
async def pair(
    credentials: Credentials | None = None, patience: Timeouts = PATIENT, at_once: int = 8
) -> AsyncIterator[tuple[FaultyRegistry, RegistryConnection]]:
    async with (
        open_faulty_registry() as faulty,
        open_connection(
            faulty.address, scheme="http", credentials=credentials, ca="", patience=patience, at_once=at_once
        ) as connection,
    ):
        yield faulty, connection


def wire_to(
    faulty: FaultyRegistry, credentials: Credentials, known: Authorizations
) -> AbstractAsyncContextManager[RegistryConnection]:
    """Open a new connection that uses the authorizations in ``known``."""
    access = RegistryAccess(known=known)
    return open_connection(
        faulty.address, scheme="http", credentials=credentials, ca="", patience=PATIENT, access=access
    )


def sent(faulty: FaultyRegistry) -> list[str]:
    return [request.headers.get("authorization", "") for request in faulty.requests]


async def test_a_request_has_a_user_agent_and_ignores_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with pair(PORTER) as (faulty, connection):
        faulty.on("GET", "/v2/x", Reply(headers=(("Set-Cookie", "a=b"),), body=b"yes"))
        assert (await connection.ask(GET, max_bytes=10)).body == b"yes"
        await connection.ask(GET, max_bytes=10)
        headers = faulty.requests[1].headers
        assert headers["user-agent"].startswith("wharfinger/")
        assert headers["accept-encoding"] == "identity"
        assert not {"authorization", "cookie"} & set(headers)


async def test_secrets_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)  # At DEBUG, httpcore logs the headers of responses.
    async with pair(PORTER) as (faulty, connection):
        faulty.on(
            "GET", "/v2/x", Reply(401, (("WWW-Authenticate", "Basic"),)), Reply(302, (("Location", "/y?sig=geheim"),))
        )
        faulty.on("GET", "/y", Reply(body=b"yes"))
        await connection.ask(GET, max_bytes=10)
        assert BASIC in sent(faulty)
    assert "geheim" not in caplog.text
    assert BASIC not in caplog.text


async def test_answers_that_are_not_accepted_are_errors() -> None:
    async with pair() as (faulty, connection):
        for status, transient in ((500, True), (503, True), (429, True), (404, False), (403, False), (400, False)):
            faulty.on("GET", "/v2/x", Reply(status, body=error_body("SOME_CODE", "in its words")))
            with pytest.raises(RegistryError, match="SOME_CODE in its words") as caught:
                await connection.ask(GET, max_bytes=10)
            assert caught.value.transient is transient
        faulty.on("GET", "/v2/x", Reply(500, body=b"x" * 1_000_000))
        with pytest.raises(RegistryError, match=r"the thing: the registry failed \(500\)$"):
            await connection.ask(GET, max_bytes=10)
        faulty.on("GET", "/v2/x", Reply(503, body=b"x" * 100, cut=5))
        with pytest.raises(RegistryError, match=r"\(503\)$"):
            await connection.ask(GET, max_bytes=10)


async def test_a_request_without_an_answer_times_out(mock_clock: MockClock) -> None:
    mock_clock.rate = 1
    async with pair() as (faulty, connection), trio.open_nursery() as nursery:
        faulty.on("GET", "/v2/x", Reply(hang=True))

        async def lose_patience() -> None:
            while not faulty.requests:
                await trio.lowlevel.checkpoint()
            await wait_all_tasks_blocked()
            mock_clock.jump(PATIENT.read_s)

        nursery.start_soon(lose_patience)
        with pytest.raises(RegistryError, match=r"no answer in time \(ReadTimeout\)") as caught:
            await connection.ask(GET, max_bytes=10)
        assert caught.value.transient
        faulty.on("GET", "/v2/x", Reply(body=b"fine"))
        assert (await connection.ask(GET, max_bytes=10)).body == b"fine"


async def test_an_answer_that_never_ends_times_out() -> None:
    async with pair(patience=Timeouts(read_s=60, answer_s=0.2)) as (faulty, connection):
        faulty.on("GET", "/v2/x", Reply(headers=(("Content-Length", "9"),), body=b"x", stay=True))
        with pytest.raises(RegistryError, match="no complete answer within 0 s") as caught:
            await connection.ask(GET, max_bytes=10)
        assert caught.value.transient


async def test_a_registry_that_does_not_listen_is_a_transient_error() -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = RegistryAddress("127.0.0.1", listeners[0].socket.getsockname()[1])
    await listeners[0].aclose()
    async with open_connection(address, scheme="http", credentials=None, ca="", patience=PATIENT) as connection:
        with pytest.raises(RegistryError, match="check the address and that the registry runs") as caught:
            await connection.ask(GET, max_bytes=10)
    assert caught.value.transient


async def test_a_plain_http_server_is_refused_for_https() -> None:
    async with (
        open_faulty_registry() as faulty,
        open_connection(faulty.address, scheme="https", credentials=PORTER, ca="", patience=PATIENT) as connection,
    ):
        with pytest.raises(RegistryError):
            await connection.ask(GET, max_bytes=10)
        assert faulty.requests == []


@pytest.mark.parametrize(
    "ca", ["hello", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "\0", "\u00e4" * 10]
)
async def test_invalid_certificate_authorities_are_refused(ca: str) -> None:
    with pytest.raises(RegistryError, match="expected PEM text with certificates") as caught:
        async with open_connection(RegistryAddress("a"), scheme="https", credentials=None, ca=ca, patience=PATIENT):
            raise AssertionError("must not open")
    assert not caught.value.transient


async def test_a_registry_over_tls_is_trusted_by_its_authority_only(tmp_path: Path) -> None:
    certificate = await trio.to_thread.run_sync(make_certificate, tmp_path / "tls")
    async with open_registry_server(tmp_path, certificate=certificate) as address:
        async with open_connection(
            address, scheme="https", credentials=None, ca=certificate.file.read_text(), patience=PATIENT
        ) as connection:
            assert (await connection.ask(RegistryRequest("GET", "/v2/", "x", "the thing"), max_bytes=10)).body == b"{}"
        async with open_connection(address, scheme="https", credentials=None, ca="", patience=PATIENT) as connection:
            with pytest.raises(RegistryError, match=r"certificate is not trusted.*--ca") as caught:
                await connection.ask(GET, max_bytes=10)
            assert caught.value.transient


async def test_a_certificate_for_another_host_is_not_trusted(tmp_path: Path) -> None:
    certificate = await trio.to_thread.run_sync(make_certificate, tmp_path / "tls", "DNS:other.invalid")
    async with (
        open_registry_server(tmp_path, certificate=certificate) as address,
        open_connection(
            address, scheme="https", credentials=PORTER, ca=certificate.file.read_text(), patience=PATIENT
        ) as connection,
    ):
        with pytest.raises(RegistryError, match="not trusted"):
            await connection.ask(GET, max_bytes=10)


async def test_a_redirect_from_https_to_http_is_refused(tmp_path: Path) -> None:
    certificate = await trio.to_thread.run_sync(make_certificate, tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.file, certificate.key)
    async with (
        open_faulty_registry() as plain,
        open_faulty_registry(tls) as secure,
        open_connection(
            secure.address, scheme="https", credentials=PORTER, ca=certificate.file.read_text(), patience=PATIENT
        ) as connection,
    ):
        secure.on("GET", "/v2/x", Reply(302, (("Location", f"http://{plain.address}/x"),)))
        with pytest.raises(RegistryError, match="redirected from https to plain http") as caught:
            await connection.ask(GET, max_bytes=10)
        assert not caught.value.transient
        challenge = f'Bearer realm="http://{plain.address}/token"'
        secure.on("GET", "/v2/x", Reply(401, (("WWW-Authenticate", challenge),)))
        with pytest.raises(RegistryError, match=r"asks for the password to be sent to 127\.0\.0\.1 over plain http"):
            await connection.ask(GET, max_bytes=10)
        own = connection.own_url(f"http://{secure.address}/v2/up?x=1", "the thing")
        assert str(own) == f"https://{secure.address}/v2/up?x=1"
        assert plain.requests == []


async def test_redirects_to_another_origin_do_not_carry_the_password() -> None:
    async with pair(PORTER) as (faulty, connection), open_faulty_registry() as storage:
        storage.on("GET", "/blob", Reply(body=b"there"))
        faulty.on(
            "GET",
            "/v2/x",
            Reply(401, (("WWW-Authenticate", "Basic"),)),
            Reply(307, (("Location", "here?a=b"),)),
        )
        faulty.on("GET", "/v2/here", Reply(302, (("Location", f"http://{storage.address}/blob"),)))
        assert (await connection.ask(GET, max_bytes=10)).body == b"there"
        assert sent(faulty) == ["", BASIC, BASIC]
        assert sent(storage) == [""]


async def test_another_origin_that_requests_the_password_does_not_get_it() -> None:
    async with pair(PORTER) as (faulty, connection), open_faulty_registry() as storage:
        faulty.on("GET", "/v2/x", Reply(302, (("Location", f"http://{storage.address}/blob"),)))
        storage.on("GET", "/blob", Reply(401, (("WWW-Authenticate", "Basic"),)))
        with pytest.raises(RegistryError, match="authentication failed"):
            await connection.ask(GET, max_bytes=10)
        assert sent(storage) == [""]


@pytest.mark.parametrize("location", ["ftp://x/y", "http://[", "", "http://user:pw@x.invalid/", "file:///etc/passwd"])
async def test_invalid_redirects_are_refused(location: str) -> None:
    async with pair() as (faulty, connection):
        faulty.on("GET", "/v2/x", Reply(302, (("Location", location),)))
        with pytest.raises(RegistryError, match="redirected") as caught:
            await connection.ask(GET, max_bytes=10)
        assert not caught.value.transient


async def test_the_number_of_redirects_is_limited() -> None:
    async with pair() as (faulty, connection):
        faulty.on("GET", "/v2/x", Reply(302, (("Location", "/v2/x"),)))
        with pytest.raises(RegistryError, match="more than 5 redirects"):
            await connection.ask(GET, max_bytes=10)


async def test_an_upload_is_not_redirected() -> None:
    async with pair() as (faulty, connection):
        faulty.on("PUT", "/v2/x", Reply(307, (("Location", "/elsewhere"),)))
        with pytest.raises(RegistryError, match=r"refused \(307\)"):
            await connection.ask(RegistryRequest("PUT", "/v2/x", "x", "the thing", content=b"data"), max_bytes=10)
        assert len(faulty.requests) == 1


def bearer(faulty: FaultyRegistry, realm: str = "", scope: str = "repository:x:pull") -> Reply:
    where = realm or f"http://{faulty.address}/token"
    return Reply(401, (("WWW-Authenticate", f'Bearer realm="{where}",service="wharf",scope="{scope}"'),))


async def test_a_token_is_fetched_once_and_used_until_it_ends() -> None:
    async with pair(PORTER) as (faulty, connection):
        faulty.on("GET", "/token", Reply(body=b'{"token":"t0ken","expires_in":300}'))
        faulty.on("GET", "/v2/x", bearer(faulty), Reply(body=b"yes"))
        for _ in range(2):
            assert (await connection.ask(GET, max_bytes=10)).body == b"yes"
        assert [path for _, path in faulty.asked()] == ["/v2/x", "/token", "/v2/x", "/v2/x"]
        assert sent(faulty) == ["", BASIC, "Bearer t0ken", "Bearer t0ken"]
        assert faulty.requests[1].query == "service=wharf&scope=repository%3Ax%3Apull"


async def test_an_accepted_login_is_sent_at_once_on_the_next_connection() -> None:
    known = Authorizations()
    async with open_faulty_registry() as faulty:
        faulty.on("GET", "/v2/x", Reply(401, (("WWW-Authenticate", "Basic"),)), Reply(body=b"yes"))
        for _ in range(2):
            async with wire_to(faulty, PORTER, known) as connection:
                await connection.ask(GET, max_bytes=10)
        async with wire_to(faulty, Credentials("porter", "other"), known) as connection:
            await connection.ask(GET, max_bytes=10)
        assert sent(faulty) == ["", BASIC, BASIC, ""]


async def test_an_expired_token_is_replaced_before_the_registry_refuses_it() -> None:
    known = Authorizations()
    async with open_faulty_registry() as faulty:
        faulty.on("GET", "/token", *(Reply(body=b'{"token":"t%d","expires_in":0.001}' % number) for number in range(2)))
        faulty.on("GET", "/v2/x", bearer(faulty), Reply(body=b"yes"))
        for _ in range(2):
            async with wire_to(faulty, PORTER, known) as connection:
                await connection.ask(GET, max_bytes=10)
                client = ClientIdentity(str(connection.base), PORTER)
            known.of(client).put(PULL, BearerChallenge(f"http://{faulty.address}/token", "wharf", ""), "", 0)
        assert [path for _, path in faulty.asked()] == ["/v2/x", "/token", "/v2/x", "/token", "/v2/x"]
        assert sent(faulty)[-1] == "Bearer t1"


async def test_a_token_without_the_right_is_not_used_again() -> None:
    """The user gets the permission only after the token was issued. To a request with the old token, the registry answers 403,
    and names no realm.
    """
    known = Authorizations()
    async with open_faulty_registry() as faulty:
        faulty.on(
            "GET", "/token", *(Reply(body=b'{"token":"%s","expires_in":86400}' % each) for each in (b"poor", b"rich"))
        )
        refused = Reply(403, body=error_body("DENIED", "no right"))
        faulty.on("GET", "/v2/x", bearer(faulty), refused, bearer(faulty), Reply(body=b"yes"))
        async with wire_to(faulty, PORTER, known) as connection:
            with pytest.raises(RegistryError, match="not allowed"):
                await connection.ask(GET, max_bytes=10)
        async with wire_to(faulty, PORTER, known) as connection:
            assert (await connection.ask(GET, max_bytes=10)).body == b"yes"
        assert sent(faulty) == ["", BASIC, "Bearer poor", "", BASIC, "Bearer rich"]


async def test_a_failing_token_realm_is_not_used_again() -> None:
    known = Authorizations()
    async with open_faulty_registry() as faulty:
        faulty.on("GET", "/v2/x", Reply(body=b"yes"))
        faulty.on("GET", "/token", Reply(500))
        async with wire_to(faulty, PORTER, known) as connection:
            old = BearerChallenge(f"http://{faulty.address}/token", "wharf", "")
            known.of(ClientIdentity(str(connection.base), PORTER)).put(PULL, old, "Bearer old", 0)
            for _ in range(2):
                await connection.ask(GET, max_bytes=10)
        assert [path for _, path in faulty.asked()] == ["/token", "/v2/x", "/v2/x"]
        assert sent(faulty) == [BASIC, "", ""]


async def test_an_identity_token_is_not_sent_as_a_password() -> None:
    async with pair(Credentials("porter", "", "1dentity")) as (faulty, connection):
        faulty.on("GET", "/v2/x", Reply(401, (("WWW-Authenticate", "Basic"),)))
        with pytest.raises(RegistryError, match="authentication failed"):
            await connection.ask(GET, max_bytes=10)
        assert sent(faulty) == [""]


async def test_a_token_that_becomes_invalid_is_replaced() -> None:
    async with pair() as (faulty, connection):
        faulty.on("GET", "/token", Reply(body=b'{"token":"one"}'), Reply(body=b'{"token":"two"}'))
        faulty.on("GET", "/v2/x", bearer(faulty), Reply(body=b"yes"), bearer(faulty), Reply(body=b"again"))
        assert (await connection.ask(GET, max_bytes=10)).body == b"yes"
        assert (await connection.ask(GET, max_bytes=10)).body == b"again"
        assert sent(faulty) == ["", "", "Bearer one", "Bearer one", "", "Bearer two"]


async def test_tokens_are_fetched_per_repository_and_right() -> None:
    async with pair() as (faulty, connection):
        faulty.on("GET", "/token", *(Reply(body=b'{"token":"t%d"}' % number) for number in range(3)))
        faulty.on("GET", "/v2/x", bearer(faulty, scope=""), Reply(body=b"yes"))
        faulty.on("PUT", "/v2/x", bearer(faulty, scope=""), Reply(body=b"yes"))
        faulty.on("GET", "/v2/y", bearer(faulty, scope=""), Reply(body=b"yes"))
        await connection.ask(GET, max_bytes=10)
        await connection.ask(RegistryRequest("PUT", "/v2/x", "x", "the thing", write=True), max_bytes=10)
        await connection.ask(RegistryRequest("GET", "/v2/y", "y", "the thing"), max_bytes=10)
        asked = [request.query for request in faulty.requests if request.path == "/token"]
        assert [query.rpartition("scope=")[2] for query in asked] == [
            "repository%3Ax%3Apull",
            "repository%3Ax%3Apull%2Cpush",
            "repository%3Ay%3Apull",
        ]


async def test_a_refused_token_is_fetched_only_once() -> None:
    async with pair(PORTER) as (faulty, connection):
        faulty.on("GET", "/token", Reply(body=b'{"token":"t"}'))
        faulty.on("GET", "/v2/x", bearer(faulty))
        with pytest.raises(RegistryError, match="authentication failed"):
            await connection.ask(GET, max_bytes=10)
        assert len(faulty.requests) == 3


@pytest.mark.parametrize(
    ("reply", "transient"),
    [
        (Reply(401, body=error_body("UNAUTHORIZED", "no")), False),
        (Reply(500), True),
        (Reply(302, (("Location", "/elsewhere"),)), False),
        (Reply(body=b"x" * 300_000, chunked=True), True),
        (Reply(body=b"x" * 100, cut=5), True),
        (Reply(body=b"{}"), True),
    ],
)
async def test_a_realm_without_a_token_is_reported(reply: Reply, transient: bool) -> None:
    async with pair(PORTER) as (faulty, connection):
        faulty.on("GET", "/token", reply)
        faulty.on("GET", "/v2/x", bearer(faulty))
        with pytest.raises(RegistryError, match="token") as caught:
            await connection.ask(GET, max_bytes=10)
        assert caught.value.transient is transient
        assert "geheim" not in str(caught.value)


async def test_the_number_of_cached_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.packages.registry.authorizations.MAX_TOKENS", 2)
    async with pair() as (faulty, connection):
        faulty.on("GET", "/token", Reply(body=b'{"token":"t"}'))
        for name in ("a", "b", "c", "a"):
            faulty.on("GET", f"/v2/{name}", bearer(faulty), Reply(body=b"yes"))
            assert (
                await connection.ask(RegistryRequest("GET", f"/v2/{name}", name, "the thing"), max_bytes=10)
            ).body == b"yes"
        assert sum(path == "/token" for _, path in faulty.asked()) == 4


async def test_concurrent_requests_are_limited() -> None:
    async with pair(at_once=2, patience=Timeouts(read_s=60)) as (faulty, connection):
        faulty.on("GET", "/v2/x", Reply(hang=True))
        faulty.on("GET", "/v2/y", Reply(body=b"yes"))
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(lambda: connection.ask(GET, max_bytes=10))
            while len(faulty.requests) < 2:
                await trio.lowlevel.checkpoint()
            with trio.move_on_after(0.1) as scope:
                await connection.ask(RegistryRequest("GET", "/v2/y", "y", "another"), max_bytes=10)
            assert scope.cancelled_caught
            assert len(faulty.requests) == 2
            nursery.cancel_scope.cancel()
        assert (await connection.ask(RegistryRequest("GET", "/v2/y", "y", "another"), max_bytes=10)).body == b"yes"


@pytest.mark.parametrize("trials", [100])
async def test_cancelled_requests_release_their_slots(trials: int) -> None:
    async with pair(at_once=1) as (faulty, connection):
        faulty.on("GET", "/v2/x", Reply(body=b"yes"))
        for trial in range(trials):
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(lambda: connection.ask(GET, max_bytes=10))
                for _ in range(trial % 25):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
        assert (await connection.ask(GET, max_bytes=10)).body == b"yes"


@pytest.mark.parametrize("login", [PORTER, Credentials("", "", identity_token="refresh-me")])
async def test_a_login_is_not_sent_to_a_realm_on_another_host(login: Credentials) -> None:
    """A hostile registry, or an attacker on the way to it, may name a realm on another host."""
    async with pair(login) as (faulty, connection), open_faulty_registry() as thief:
        steal = f"http://localhost:{thief.address.port}/steal"
        thief.on("GET", "/steal", Reply(body=b'{"token":"t"}'))
        thief.on("POST", "/steal", Reply(body=b'{"token":"t"}'))
        faulty.on("GET", "/v2/x", bearer(faulty, steal))
        with pytest.raises(RegistryError, match="the login to be sent to another host, localhost, so") as caught:
            await connection.ask(GET, max_bytes=10)
        assert thief.requests == []
        assert "spec.registry.tokenRealms" in str(caught.value)
        assert not caught.value.transient


async def test_a_configured_realm_on_another_host_gets_the_login() -> None:
    login = replace(PORTER, realms=("localhost",))
    async with pair(login) as (faulty, connection), open_faulty_registry() as realm:
        realm.on("GET", "/token", Reply(body=b'{"token":"t"}'))
        faulty.on("GET", "/v2/x", bearer(faulty, f"http://localhost:{realm.address.port}/token"), Reply(body=b"there"))
        assert (await connection.ask(GET, max_bytes=10)).body == b"there"
        assert sent(realm) == [BASIC]


async def test_realms_on_other_hosts_are_used_without_a_login() -> None:
    async with pair() as (faulty, connection), open_faulty_registry() as realm:
        realm.on("GET", "/token", Reply(body=b'{"token":"t"}'))
        faulty.on("GET", "/v2/x", bearer(faulty, f"http://localhost:{realm.address.port}/token"), Reply(body=b"there"))
        assert (await connection.ask(GET, max_bytes=10)).body == b"there"
        assert sent(realm) == [""]
