"""The fast path, which does not use h11. It must read requests and write responses exactly as h11 does."""

import h11
import pytest
import trio
import trio.testing
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.httpd.raw import GET, SMALL, Recorder, Ticker, exchange, read_answers
from tests.scale import scaled
from wharfinger.httpd.connection import Connection
from wharfinger.httpd.framing import Framing, H11Framing, LeanFraming
from wharfinger.httpd.head import check_head
from wharfinger.httpd.lean import read_head, write_head
from wharfinger.httpd.messages import Response, StreamingResponse
from wharfinger.httpd.server import serve_connection
from wharfinger.httpd.target import RefusedRequestError

PLAIN = b"PUT /a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX-Y: a, b\r\n\r\nabc"

pieces = st.sampled_from(
    [
        b"GET", b"PUT", b"get", b"HEAD", b"CONNECT", b" ", b"  ", b"\t", b"/a", b"/%20?a=b", b"*", b"#", b"http://a/", b"\r\n",
        b"\n", b"\r", b"\r\n\r\n", b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b" HTTP/2.0\r\n", b"Host: a\r\n", b"host:a\r\n",
        b"Host : a\r\n", b"X: \r\n", b"X: a \r\n", b" folded\r\n", b"Content-Length: 3\r\n", b"Content-Length: +3\r\n",
        b"Content-Length: 03\r\n", b"Content-Length: 3, 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n",
        b"Connection: keep-alive\r\n", b"Expect: 100-continue\r\n", b"Upgrade: x\r\n", b"X: \xe9\r\n", b"X: a\x00b\r\n",
        b"abc", b"0\r\n\r\n", b"X-Y: z;q=\"1\"\r\n", b":", b"a",
    ]
)  # fmt: skip


def by_h11(data: bytes) -> tuple[str, str, dict[str, str], bytes] | None:
    """Return the request as h11 reads it, or None if h11 refuses it or needs more data."""
    machine = h11.Connection(h11.SERVER)
    machine.receive_data(data)
    body = b""
    try:
        event = machine.next_event()
        if not isinstance(event, h11.Request):
            return None
        head = check_head(event, header_bytes=2000, body_bytes=1000)
        while isinstance(event := machine.next_event(), h11.Data):
            body += event.data
        if not isinstance(event, h11.EndOfMessage) or machine.their_state is not h11.DONE:
            return None
    except (h11.RemoteProtocolError, RefusedRequestError):
        return None
    assert machine.trailing_data[0] == b""
    return head.method, head.target.path, dict(head.headers), body


@settings(max_examples=scaled(5_000, 500), deadline=None)
@given(
    st.builds(lambda *parts: b"".join(parts), st.just(b"PUT /a HTTP/1.1\r\nHost: a\r\n"), *[pieces] * 3)
    | st.lists(pieces, max_size=9).map(b"".join)
)
@example(PLAIN)
def test_an_ordinary_request_is_read_as_by_h11(data: bytes) -> None:
    found = read_head(data, header_bytes=2000, body_bytes=1000)
    if found is None:
        return
    head, start = found
    if len(data) == start + (head.length or 0):
        assert by_h11(data) == (head.method, head.target.path, dict(head.headers), data[start:])


def test_a_plain_request_is_parsed() -> None:
    found = read_head(PLAIN, header_bytes=2000, body_bytes=1000)
    assert found is not None
    head, start = found
    assert (head.method, head.target.path, head.target.query, head.length) == ("PUT", "/a", {"b": ("c",)}, 3)
    assert head.headers == {"host": "a", "content-length": "3", "x-y": "a, b"}
    assert PLAIN[start:] == b"abc"


@pytest.mark.parametrize(
    "data",
    [
        PLAIN[:20],
        PLAIN.replace(b"/1.1", b"/1.0"),
        PLAIN.replace(b"PUT", b"HEAD"),
        PLAIN.replace(b"PUT", b"put"),
        PLAIN.replace(b"Host: a\r\n", b""),
        PLAIN.replace(b"Host: a\r\n", b"Host: a\r\nhost: a\r\n"),
        PLAIN.replace(b"Host: a", b"Host : a"),
        PLAIN.replace(b"X-Y: a, b", b"X-Y: a\tb"),
        PLAIN.replace(b"X-Y: a, b", b"X-Y: a \xe9"),
        PLAIN.replace(b"X-Y: a, b", b"X-Y: a\r\n b"),
        PLAIN.replace(b"X-Y: a, b", b"Connection: close"),
        PLAIN.replace(b"X-Y: a, b", b"Transfer-Encoding: chunked"),
        PLAIN.replace(b"X-Y: a, b", b"Expect: 100-continue"),
        PLAIN.replace(b"X-Y: a, b", b"Upgrade: websocket"),
        PLAIN.replace(b"Length: 3", b"Length: 03"),
        PLAIN.replace(b"Length: 3", b"Length: 1001"),
        PLAIN.replace(b"/a?", b"/%zz?"),
        PLAIN.replace(b"X-Y: a, b", b"X-Y: " + b"a" * 2000),
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-%d: a\r\n" % number for number in range(100)) + b"\r\n",
    ],
)
def test_every_other_request_is_left_to_h11(data: bytes) -> None:
    assert read_head(data, header_bytes=2000, body_bytes=1000) is None


@pytest.mark.parametrize(
    "response",
    [Response(200, b"abc"), Response(204), Response(299, b""), Response(404, b"x", "text/plain", (("a-b", "c"),))],
)
@pytest.mark.parametrize("close", [False, True])
def test_answers_equal_those_of_h11(response: Response, *, close: bool) -> None:
    machine = h11.Connection(h11.SERVER)
    machine.receive_data(GET % b"/")
    machine.next_event()
    machine.next_event()
    written: list[bytes] = []
    framings: list[Framing] = [LeanFraming(), H11Framing(machine)]
    for framing in framings:
        begun: bool = framing.begun
        assert not begun
        head = framing.head(response, close=close)
        assert framing.begun
        body = framing.data(response.body) if response.body else b""
        written.append(head + body + framing.end())
        assert framing.over is not close
    lean, long = (read_answers(data) for data in written)
    for answer in (*lean, *long):
        assert answer.headers.pop("date").endswith(" GMT")
    assert lean == long


@pytest.mark.parametrize("response", [Response(200, content_type="a\nb"), Response(200, headers=(("x", "a\r\nb"),))])
def test_invalid_headers_are_not_written(response: Response) -> None:
    assert write_head(response, close=False) is None
    with pytest.raises(h11.LocalProtocolError):
        LeanFraming().head(response, close=False)
    assert write_head(Response(99), close=False) is None


def test_special_heads_are_written_by_h11() -> None:
    head = LeanFraming().head(Response(200, b"", "text/plain", (("x", "a\tb"),)), close=True)
    assert b"x: a\tb\r\n" in head
    assert b"close" in head


async def test_ordinary_and_other_requests_share_one_connection() -> None:
    """The fast path reads ordinary requests, and h11 the others. The answers do not depend on how the requests are sent."""
    other = b"POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    client, server = trio.testing.memory_stream_pair()
    handler = Recorder()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, handler, SMALL)
        received = b""
        for request in (GET % b"/1", PLAIN[:-2], PLAIN[-2:], other, GET % b"/3", GET % b"/4" + PLAIN):
            await client.send_all(request)
            await trio.testing.wait_all_tasks_blocked()
        await client.send_eof()
        async for chunk in client:
            received += chunk
    bodies = [b"GET /1 ", b"PUT /a abc", b"POST /2 x", b"GET /3 ", b"GET /4 ", b"PUT /a abc"]
    assert [answer.body for answer in read_answers(received)] == bodies


async def test_a_body_that_does_not_arrive_in_time_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        await client.send_all(PLAIN[:-1])
        received = b"".join([chunk async for chunk in client])
    [answer] = read_answers(received)
    assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert trio.current_time() >= SMALL.body_read_s


async def test_a_request_with_an_incomplete_body_is_not_handled() -> None:
    handler = Recorder()
    assert [answer.status for answer in await exchange(PLAIN[:-1], handler)] in ([], [400])
    assert handler.seen == []


async def test_a_request_that_arrives_during_a_stream_is_answered_after_it() -> None:
    ticker = Ticker()
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, ticker.handler, SMALL)
        await client.send_all(GET % b"/watch")
        await ticker.opened.wait()
        await ticker.send.send(b"tick")
        await client.send_all(GET % b"/2")
        await trio.testing.wait_all_tasks_blocked()
        await ticker.send.aclose()
        await trio.testing.wait_all_tasks_blocked()
        await client.send_eof()
        received = b"".join([chunk async for chunk in client])
    assert [answer.body for answer in read_answers(received)] == [b"tick", b"/2"]


async def test_a_full_socket_and_a_departed_client_are_handled() -> None:
    """A large answer is sent in pieces over a real socket. If the client has left, the server notices it at the next write."""
    big = b"x" * 5_000_000

    async def handler(_request: object) -> Response | StreamingResponse:
        return Response(200, big)

    near, far = trio.socket.socketpair()
    async with trio.open_nursery() as nursery:
        connection = Connection(trio.SocketStream(far), handler, SMALL)
        nursery.start_soon(connection.run)
        async with trio.SocketStream(near) as client:
            await client.send_all(GET % b"/")
            received = b""
            while len(received) < len(big):
                received += await client.receive_some(1 << 20)
            await client.send_all(GET % b"/")
            await client.receive_some(1)
    assert received.endswith(b"\r\n\r\n" + big)
