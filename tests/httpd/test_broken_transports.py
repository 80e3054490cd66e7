"""Connections that break at any step of an exchange."""

import pytest
import trio
import trio.testing

from tests.httpd.raw import GET, POST, SMALL, Recorder, Ticker
from wharfinger.httpd.server import serve_connection


class Breaking(trio.abc.HalfCloseableStream):
    """A stream that breaks after all its pieces were received, or after ``sends`` writes."""

    def __init__(self, *received: bytes, sends: int = 100, eof: bool = True) -> None:
        self._received = list(received)
        self._sends = sends
        self._eof = eof
        self.sent = b""
        self.closed = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        if not self._received:
            raise trio.BrokenResourceError("reset")
        return self._received.pop(0)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        if not self._sends:
            raise trio.BrokenResourceError("reset")
        self._sends -= 1
        self.sent += data

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()
        if not self._eof:
            raise trio.BrokenResourceError("reset")

    async def aclose(self) -> None:
        self.closed = True
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError("close_notify could not be sent")


WAITS_FOR_CONTINUE = POST % (b"/", b"Expect: 100-continue\r\nContent-Length: 2", b"")


@pytest.mark.parametrize(
    ("stream", "asked", "sent"),
    [
        (Breaking(), 0, b""),
        (Breaking(b"GET / HT"), 0, b""),
        (Breaking(POST % (b"/", b"Content-Length: 5", b"ab")), 0, b""),
        (Breaking(WAITS_FOR_CONTINUE, sends=0), 0, b""),
        (Breaking(WAITS_FOR_CONTINUE), 0, b"HTTP/1.1 100 "),
        (Breaking(GET % b"/", sends=0), 1, b""),
        (Breaking(GET % b"/"), 1, b"HTTP/1.1 200 "),
        (Breaking(b"\x00\r\n\r\n", sends=0), 0, b""),
        (Breaking(b"\x00\r\n\r\n"), 0, b"HTTP/1.1 400 "),
        (Breaking(b"\x00\r\n\r\n", eof=False), 0, b"HTTP/1.1 400 "),
    ],
)
async def test_a_broken_connection_ends_and_is_closed(stream: Breaking, asked: int, sent: bytes) -> None:
    handler = Recorder()
    await serve_connection(stream, handler, SMALL)
    assert len(handler.seen) == asked
    assert stream.sent[: len(sent) or 1] == sent
    assert stream.closed


@pytest.mark.parametrize("sends", [0, 1])
async def test_a_broken_stream_ends_without_an_error_of_the_producer(
    sends: int, caplog: pytest.LogCaptureFixture
) -> None:
    ticker = Ticker()
    await ticker.send.send(b"tick")
    await serve_connection(Breaking(GET % b"/watch", sends=sends), ticker.handler, SMALL)
    assert ticker.closed.is_set()
    assert caplog.records == []


async def test_a_request_over_a_stream_without_half_close_can_be_refused() -> None:
    """A TLS stream has no half-close. The server must still refuse an invalid request and close the stream."""

    class Whole(trio.abc.Stream):
        def __init__(self) -> None:
            self.inner = Breaking(b"\x00\r\n\r\n")

        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            return await self.inner.receive_some(max_bytes)

        async def send_all(self, data: bytes | bytearray | memoryview) -> None:
            await self.inner.send_all(data)

        async def wait_send_all_might_not_block(self) -> None:
            await self.inner.wait_send_all_might_not_block()

        async def aclose(self) -> None:
            await self.inner.aclose()

    stream = Whole()
    await serve_connection(stream, Recorder(), SMALL)
    assert stream.inner.sent.startswith(b"HTTP/1.1 400 ")
    assert stream.inner.closed
