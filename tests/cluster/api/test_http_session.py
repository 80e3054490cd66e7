"""The session with a scripted transport: retries, limits, timeouts (in virtual time), and credentials."""

import gzip
from collections.abc import Callable, Sequence

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.faulty_transport import (
    Answer,
    FaultyTransport,
    Hang,
    Reply,
    Script,
    in_turn,
    json_reply,
    status_reply,
)
from wharfinger import __version__
from wharfinger.cluster.api.connection import Connection, ConnectionConfigError, bearer
from wharfinger.cluster.api.errors import ApiError, UnreachableError
from wharfinger.cluster.api.http_session import Call, ClientOptions, HttpSession, ResponseTooLargeError, open_session

SERVER = "https://api.example/prefix"
GET = Call("GET", "/api/v1/pods", "list Pod")
POST = Call("POST", "/api/v1/pods", "create Pod", body=b"{}")
OK = json_reply({"ok": True})
OPTIONS = ClientOptions(random=lambda: 0.0)
BUSY = status_reply(429, "TooManyRequests", "slow down", {"retry-after": "3"})


async def talk(
    script: Script, use: Callable[[HttpSession], object], options: ClientOptions = OPTIONS
) -> FaultyTransport:
    """Open a session with a scripted server, await the result of ``use(session)``, and return the transport."""
    transport = FaultyTransport(script)
    async with open_session(Connection(SERVER, bearer("t0ken")), options, transport) as session:
        awaitable = use(session)
        assert hasattr(awaitable, "__await__")
        await awaitable
    assert transport.open_streams == 0
    return transport


async def ask(*answers: Answer, call: Call = GET, options: ClientOptions = OPTIONS) -> tuple[bytes, FaultyTransport]:
    """Send one request and return the body and the transport."""
    bodies: list[bytes] = []

    async def use(session: HttpSession) -> None:
        bodies.append(await session.request(call))

    transport = await talk(in_turn(*answers), use, options)
    return bodies[0], transport


async def test_a_request_has_user_agent_and_credentials() -> None:
    body, transport = await ask(OK, call=Call("PATCH", "/a b?c#d", "x", {"limit": "5"}, b"{}", "application/x", "a/b"))
    assert body == b'{"ok":true}'
    request = transport.requests[0]
    assert str(request.url) == "https://api.example/prefix/a%20b%3Fc%23d?limit=5"
    assert request.headers["user-agent"] == f"wharfinger/{__version__}"
    assert request.headers["authorization"] == "Bearer t0ken"
    assert (request.headers["content-type"], request.headers["accept"]) == ("application/x", "a/b")


async def test_all_impersonation_headers_are_sent() -> None:
    transport = FaultyTransport(in_turn(OK))
    connection = Connection(
        SERVER, headers=(("Impersonate-Group", "a"), ("Impersonate-Group", "b")), tls_server_name="k"
    )
    async with open_session(connection, OPTIONS, transport) as session:
        await session.request(GET)
    request = transport.requests[0]
    assert request.headers.get_list("impersonate-group") == ["a", "b"]
    assert "authorization" not in request.headers
    assert request.extensions["sni_hostname"] == "k"


async def test_retry_after_is_honoured(autojump_clock: MockClock) -> None:
    start = trio.current_time()
    _, transport = await ask(BUSY, BUSY, OK)
    assert trio.current_time() - start == 6
    assert len(transport.requests) == 3


async def test_a_429_without_retry_after_and_a_503_with_it_are_retried_for_a_write(autojump_clock: MockClock) -> None:
    start = trio.current_time()
    answers = (status_reply(429, "TooManyRequests", "x"), status_reply(503, "x", "x", {"retry-after": "0"}), OK)
    await ask(*answers, call=POST)
    assert trio.current_time() - start == 2


async def test_retries_are_limited_in_number_and_in_time(autojump_clock: MockClock) -> None:
    broken = status_reply(503, "ServiceUnavailable", "not now", {"retry-after": "1"})
    with pytest.raises(ApiError, match="not now") as caught:
        await ask(*[broken] * OPTIONS.attempts)
    assert caught.value.code == 503
    start = trio.current_time()
    busy = status_reply(429, "TooManyRequests", "slow down", {"retry-after": "1"})
    with pytest.raises(ApiError, match="slow down"):
        await ask(*[busy] * (int(OPTIONS.max_retry_after_s) + 1))  # a 429 is retried until the time limit
    assert trio.current_time() - start == OPTIONS.max_retry_after_s
    start = trio.current_time()
    with pytest.raises(ApiError):
        await ask(status_reply(429, "TooManyRequests", "x", {"retry-after": "3600"}))
    assert trio.current_time() == start


async def test_the_final_error_carries_the_servers_retry_after(autojump_clock: MockClock) -> None:
    for status, headers, asked in (
        (429, {"retry-after": "31"}, 31.0),
        (503, {"retry-after": "3600"}, 300.0),
        (429, {}, None),
        (503, {"retry-after": "Sat, 21 Nov 2026 10:02:00 GMT", "date": "Sat, 21 Nov 2026 10:00:00 GMT"}, 120.0),
    ):
        busy = status_reply(status, "Busy", "slow down", headers)
        with pytest.raises(ApiError, match="slow down") as caught:
            await ask(*[busy] * (int(OPTIONS.max_retry_after_s) + 1))
        assert caught.value.retry_after_s == asked


async def test_a_retry_after_date_is_measured_by_the_servers_clock(autojump_clock: MockClock) -> None:
    headers = {"retry-after": "Sun, 06 Nov 1994 08:49:40 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}
    start = trio.current_time()
    await ask(status_reply(503, "x", "x", headers), OK, call=POST)
    assert trio.current_time() - start == 3


async def test_a_failure_without_retry_after_is_not_retried() -> None:
    with pytest.raises(ApiError, match="etcd"):
        await ask(status_reply(500, "InternalError", "etcd is gone"))


async def test_redirects_are_not_followed() -> None:
    with pytest.raises(ApiError) as caught:
        await ask(Reply(302, [], {"location": "https://elsewhere.example/"}))
    assert caught.value.code == 302


@pytest.mark.parametrize(
    "error", [httpx.RemoteProtocolError("disconnected"), httpx.ReadError("reset"), httpx.WriteError("broken pipe")]
)
async def test_a_stale_connection_is_retried_once_for_a_read_and_never_for_a_write(error: Exception) -> None:
    await ask(error, OK)
    with pytest.raises(UnreachableError, match=r"list Pod: no answer from https://api\.example/prefix: "):
        await ask(error, error)
    with pytest.raises(UnreachableError):
        await ask(error, call=POST)


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ConnectTimeout(""), httpx.PoolTimeout("")])
async def test_a_failed_connection_is_transient(error: Exception) -> None:
    with pytest.raises(UnreachableError) as caught:
        await ask(error)
    assert caught.value.transient


async def test_an_incomplete_body_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match="peer closed"):
        await ask(Reply(200, [b"{", httpx.RemoteProtocolError("peer closed")]))
    with pytest.raises(UnreachableError):
        await ask(Reply(500, [httpx.ReadError("reset")]))
    with pytest.raises(UnreachableError):
        await ask(Reply(200, [b"not gzip"], {"content-encoding": "gzip"}))


async def test_compressed_answers_are_decompressed_and_checked() -> None:
    packed = gzip.compress(b"a" * 3_000_000)
    body, transport = await ask(Reply(200, [packed[:50], packed[50:]], {"content-encoding": "gzip"}))
    assert body == b"a" * 3_000_000
    assert transport.requests[0].headers["accept-encoding"] == "gzip"
    with pytest.raises(UnreachableError, match="the compressed answer is incomplete"):
        await ask(Reply(200, [packed[:-9]], {"content-encoding": "gzip"}))
    with pytest.raises(
        UnreachableError, match="the server answered with Content-Encoding 'br', which was not requested"
    ):
        await ask(Reply(200, [b"x"], {"content-encoding": "br"}))
    with pytest.raises(ResponseTooLargeError):
        await ask(
            Reply(200, [packed], {"content-encoding": "gzip"}), options=ClientOptions(max_response_bytes=2_000_000)
        )


async def test_a_hanging_server_times_out(autojump_clock: MockClock) -> None:
    start = trio.current_time()
    with pytest.raises(UnreachableError, match="not done within 60 s"):
        await ask(Hang())
    with pytest.raises(UnreachableError, match="not done within 60 s"):
        await ask(Reply(200, [b"{", Hang()]))
    assert trio.current_time() - start == 120


async def test_answers_are_limited_in_size() -> None:
    options = ClientOptions(max_response_bytes=10)
    body, _ = await ask(Reply(200, [b"12345", b"67890"]), options=options)
    assert body == b"1234567890"
    with pytest.raises(ResponseTooLargeError, match="over the limit of 10 bytes"):
        await ask(Reply(200, [b"12345", b"678901"]), options=options)
    with pytest.raises(ApiError, match="a long answer"):
        await ask(Reply(500, [b"x" * 300_000]))


async def test_concurrency_is_bounded_and_cancelled_requests_release_their_slot() -> None:
    release = trio.Event()
    most = 0

    async def use(session: HttpSession) -> None:
        nonlocal most

        async def one() -> None:
            await session.request(GET)

        async with trio.open_nursery() as nursery:
            for _ in range(9):
                nursery.start_soon(one)
            await wait_all_tasks_blocked()
            assert session.statistics() == {"requests": 2, "waiting": 7}
            nursery.cancel_scope.cancel()
        assert session.statistics() == {"requests": 0, "waiting": 0}
        release.set()
        await session.request(GET)

    await talk(lambda _: OK if release.is_set() else Hang(), use, ClientOptions(concurrency=2))


async def test_streams_do_not_count_as_requests() -> None:
    async def use(session: HttpSession) -> None:
        async with session.stream(GET, read_s=320) as one, session.stream(GET, read_s=320) as two:
            assert session.statistics() == {"requests": 0, "waiting": 0}
            assert [chunk async for chunk in one] == [b"a", b"b"]
            async for chunk in two:
                assert chunk == b"a"
                break

    transport = await talk(lambda _: Reply(200, [b"a", b"b"]), use, ClientOptions(concurrency=1))
    assert transport.requests[0].extensions["timeout"]["read"] == 320


async def test_streams_retry_and_fail_like_requests(autojump_clock: MockClock) -> None:
    seen: list[bytes] = []

    async def use(session: HttpSession) -> None:
        async with session.stream(GET, read_s=320) as chunks:
            seen.extend([chunk async for chunk in chunks])

    await talk(in_turn(BUSY, Reply(200, [b"a"])), use)
    assert seen == [b"a"]
    with pytest.raises(ApiError, match="no"):
        await talk(in_turn(status_reply(403, "Forbidden", "no")), use)
    with pytest.raises(UnreachableError, match="reset"):
        await talk(in_turn(Reply(200, [b"a", httpx.ReadError("reset")])), use)


async def test_a_stream_that_never_begins_times_out(autojump_clock: MockClock) -> None:
    async def use(session: HttpSession) -> None:
        async with session.stream(GET, read_s=320):
            pytest.fail("it never opens")

    start = trio.current_time()
    with pytest.raises(UnreachableError, match="not done within 60 s"):
        await talk(in_turn(Hang()), use)
    assert trio.current_time() - start == 60


class Rotating:
    """Credentials that change when they are renewed."""

    def __init__(self, headers: Sequence[str]) -> None:
        self.headers = list(headers)
        self.asked: list[bool] = []

    def header(self, *, renew: bool) -> str:
        self.asked.append(renew)
        if renew and len(self.headers) > 1:
            self.headers.pop(0)
        if not self.headers[0]:
            raise ConnectionConfigError("log in again")
        return self.headers[0]


async def with_credentials(source: Rotating, script: Script, calls: int = 1) -> FaultyTransport:
    transport = FaultyTransport(script)
    async with open_session(Connection(SERVER, source), OPTIONS, transport) as session:
        for _ in range(calls):
            await session.request(GET)
    return transport


def only(header: str) -> Script:
    """Return the script of a server that accepts only one token."""

    def script(request: httpx.Request) -> Answer:
        return OK if request.headers["authorization"] == header else status_reply(401, "Unauthorized", "who are you?")

    return script


async def test_credentials_are_cached_and_renewed_after_a_401() -> None:
    source = Rotating(["Bearer old", "Bearer new"])
    transport = await with_credentials(source, only("Bearer new"), calls=3)
    assert source.asked == [False, True]
    assert [request.headers["authorization"] for request in transport.requests] == ["Bearer old", *["Bearer new"] * 3]


async def test_a_401_without_newer_credentials_is_raised() -> None:
    source = Rotating(["Bearer old"])
    with pytest.raises(ApiError, match="who are you") as caught:
        await with_credentials(source, only("Bearer new"))
    assert caught.value.code == 401
    with pytest.raises(ApiError):
        await ask(status_reply(401, "Unauthorized", "x"))


async def test_several_refused_requests_renew_credentials_once() -> None:
    source = Rotating(["Bearer old", "Bearer new", "Bearer never"])
    transport = FaultyTransport(only("Bearer new"))
    async with open_session(Connection(SERVER, source), OPTIONS, transport) as session, trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(session.request, GET)
    assert source.asked == [False, True]


async def test_unavailable_credentials_are_an_error() -> None:
    with pytest.raises(ConnectionConfigError, match="log in again"):
        await with_credentials(Rotating([""]), only("x"))
