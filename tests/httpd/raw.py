"""A client that sends and receives raw bytes, for tests of the server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import h11
import trio
import trio.testing

from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.messages import Handler, Request, Response, StreamingResponse
from wharfinger.httpd.server import serve_connection

SMALL = HttpLimits(header_bytes=2000, body_bytes=1000, idle_s=20, header_read_s=5, body_read_s=10, write_s=3)
GET = b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST %s HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n%s"


@dataclass
class Recorder:
    """A handler that records requests, and answers with their method, path and body."""

    seen: list[Request] = field(default_factory=list)

    async def __call__(self, request: Request) -> Response | StreamingResponse:
        self.seen.append(request)
        return Response(200, f"{request.method} {request.path} ".encode() + request.body, content_type="text/plain")


@dataclass(frozen=True)
class Answer:
    """A response as a client reads it. ``whole`` is True if the response is complete."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool


async def exchange(
    data: bytes, handler: Handler | None = None, limits: HttpLimits = SMALL, *, fragment: int = 0, methods: str = ""
) -> list[Answer]:
    """Send ``data``, close the sending side, and return all answers. ``fragment`` is the size of the sent pieces."""
    received = await send_bytes(data, handler, limits, fragment=fragment)
    return read_answers(received, methods)


async def send_bytes(
    data: bytes, handler: Handler | None = None, limits: HttpLimits = SMALL, *, fragment: int = 0
) -> bytes:
    """Return the bytes that the server sends in answer to ``data`` until it closes the connection."""
    client, server = trio.testing.memory_stream_pair()
    received = bytearray()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, handler or Recorder(), limits)
        with suppress(trio.BrokenResourceError):  # the server may have closed the connection
            step = fragment or len(data) or 1
            for start in range(0, len(data), step):
                await client.send_all(data[start : start + step])
                if fragment:
                    await trio.testing.wait_all_tasks_blocked()
            await client.send_eof()
        async for chunk in client:
            received += chunk
    return bytes(received)


async def read_open_ended(data: bytes, handler: Handler) -> list[Answer]:
    """Send ``data`` and return all answers. The sending side stays open until then, because closing it would end a streamed
    answer.
    """
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, handler, SMALL)
        await client.send_all(data)
        return read_answers(b"".join([chunk async for chunk in client]))


def read_answers(received: bytes, methods: str = "") -> list[Answer]:
    """Return the responses in ``received``, as h11 reads them. ``methods`` has the methods of the first requests, separated by
    spaces; further requests are taken as GET.

    Informational responses are omitted. Raises h11.RemoteProtocolError for invalid responses.
    """
    answers: list[Answer] = []
    asked = methods.split()
    while received:
        connection = h11.Connection(h11.CLIENT)
        method = asked.pop(0) if asked else "GET"
        connection.send(h11.Request(method=method, target="/", headers=[("host", "a")]))
        connection.send(h11.EndOfMessage())
        connection.receive_data(received)
        head: h11.Response | None = None
        body = b""
        whole = False
        while (event := connection.next_event()) is not h11.NEED_DATA and event is not h11.PAUSED:
            match event:
                case h11.Response():
                    head = event
                case h11.Data():
                    body += bytes(event.data)
                case h11.EndOfMessage():
                    whole = True
                    break
        if head is None:
            break
        headers = {name.decode(): value.decode() for name, value in head.headers}
        answers.append(Answer(head.status_code, headers, body, whole))
        received = connection.trailing_data[0]
    return answers


class Ticker:
    """A streamed answer whose chunks come from a test. It records when its context was entered and left."""

    def __init__(self) -> None:
        self.send: trio.MemorySendChannel[bytes]
        self.send, self._receive = trio.open_memory_channel[bytes](100)
        self.opened = trio.Event()
        self.closed = trio.Event()

    @asynccontextmanager
    async def open_chunks(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the stream of chunks, as ``StreamingResponse.open_chunks`` does."""
        try:
            async with (
                trio.open_nursery()
            ):  # as in a real watch, exceptions that pass through here are raised in a group
                self.opened.set()
                with self._receive:
                    yield self._receive
        finally:
            self.closed.set()

    async def handler(self, request: Request) -> Response | StreamingResponse:
        """Answer requests for /watch with the stream, and all others with their path."""
        if request.path == "/watch":
            return StreamingResponse(200, self.open_chunks)
        return Response(200, request.path.encode())
