"""Requests that a connection refuses: malformed, ambiguous, smuggled, or too large."""

import pytest
import trio
import trio.testing

from tests.httpd.raw import GET, POST, SMALL, Recorder, exchange, read_answers
from wharfinger.httpd.server import serve_connection

SMUGGLED = GET % b"/smuggled"
REFUSED = [
    (POST % (b"/", b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n"), 400),
    (POST % (b"/", b"Content-Length: 5\r\nContent-Length: 6", b"hello"), 400),
    (POST % (b"/", b"Content-Length: 5, 6", b"hello"), 400),
    (POST % (b"/", b"Content-Length: -1", b""), 400),
    (POST % (b"/", b"Content-Length: +5", b"hello"), 400),
    (POST % (b"/", b"Content-Length: 0x5", b"hello"), 400),
    (POST % (b"/", b"Content-Length: 1_0", b"hello"), 400),
    (POST % (b"/", b"Content-Length : 5", b"hello"), 400),
    (POST % (b"/", b"Content-Length: " + b"9" * 200, b"hello"), 400),
    (POST % (b"/", b"Transfer-Encoding: identity", b""), 501),
    (POST % (b"/", b"Transfer-Encoding: gzip, chunked", b"0\r\n\r\n"), 501),
    (POST % (b"/", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"), 501),
    (POST % (b"/", b"Transfer-Encoding: xchunked", b"0\r\n\r\n"), 501),
    (POST % (b"/", b"Transfer-Encoding\t: chunked", b"0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"-1\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"0x5\r\nhello\r\n0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"1_0\r\nhello\r\n0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"5\r\nhelloXX0\r\n\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"f" * 17 + b"\r\n"), 400),
    (POST % (b"/", b"Transfer-Encoding: chunked", b"f" * 21 + b"\r\n"), 400),
    (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nA: \x00\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nA: b\rContent-Length: 5\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
    (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET / HTTP/1.1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    (b"GET /\r\n\r\n", 400),
    (b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    (b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n", 417),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("raw", "status"), REFUSED)
@pytest.mark.parametrize("fragment", [0, 1])
async def test_nothing_is_read_after_a_refusal(raw: bytes, status: int, fragment: int) -> None:
    handler = Recorder()
    answers = await exchange(GET % b"/first" + raw + SMUGGLED, handler, fragment=fragment)
    assert [request.path for request in handler.seen] == ["/first"]
    assert [answer.status for answer in answers] == [200, status]
    assert answers[1].headers["connection"] == "close"
    assert answers[1].headers["content-type"].startswith("text/plain")
    assert answers[1].body.endswith(b"\n")


@pytest.mark.parametrize("fragment", [0, 100])
@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 2000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 20_000, 431),
        (POST % (b"/", b"Content-Length: 1001", b"a" * 1001), 413),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"3e9\r\n" + b"a" * 1001 + b"\r\n0\r\n\r\n"), 413),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"64\r\n" + b"a" * 100 + b"\r\n") + b"64\r\n" + b"a" * 1001, 400),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"1;" + b"x" * 4000), 431),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"0\r\n" + b"T: t\r\n" * 1000), 431),
    ],
)
async def test_requests_over_the_limits_are_refused(raw: bytes, status: int, fragment: int) -> None:
    handler = Recorder()
    assert [answer.status for answer in await exchange(raw, handler, fragment=fragment)] == [status]
    assert handler.seen == []


async def test_requests_at_the_limits_are_answered() -> None:
    for declared in (b"Content-Length: 1000", b"Transfer-Encoding: chunked"):
        body = b"a" * 1000 if b"Length" in declared else b"3e8\r\n" + b"a" * 1000 + b"\r\n0\r\n\r\n"
        assert len((await exchange(POST % (b"/", declared, body)))[0].body) == 1000 + len("POST / ")


@pytest.mark.parametrize("raw", [b"", b"GET / HTTP/1.1\r\nHo", POST % (b"/", b"Content-Length: 10", b"abc")])
async def test_an_incomplete_request_of_a_departed_client_is_not_handled(raw: bytes) -> None:
    handler = Recorder()
    answers = await exchange(raw, handler)
    assert handler.seen == []
    assert [answer.status for answer in answers] == ([400] if raw else [])


async def test_input_after_a_refusal_is_discarded_within_a_limit(autojump_clock: trio.testing.MockClock) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        await client.send_all(POST % (b"/", b"Content-Length: 5000", b"a" * 3000))
        received = b"".join([chunk async for chunk in client])
        assert read_answers(received)[0].status == 413
        await client.send_all(b"a" * 2000)  # the server still reads it, so there is no reset
    assert 0 < trio.current_time() < 3
