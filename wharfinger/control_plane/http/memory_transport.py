"""An httpx transport that calls a handler in the same process, without sockets and threads.

So real clients can run in simulations under trio's mock clock with autojump. Streams are real streams: the producer of a watch
runs while its response is read, and ends when the response is closed or its reader is cancelled.
"""

from collections.abc import AsyncGenerator, AsyncIterator

import httpx
import trio

from wharfinger.httpd.head import joined
from wharfinger.httpd.messages import CutError, Handler, NoAnswer, Request, Response, StreamingResponse, Upgrade
from wharfinger.httpd.target import RefusedRequestError, parse_target


class MemoryTransport(httpx.AsyncBaseTransport):
    """A transport that calls a handler. Exceptions of the handler propagate to the client, so that bugs are visible."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request. This is always a checkpoint, as with a real transport."""
        await trio.lowlevel.checkpoint()
        body = await request.aread()
        try:
            target = parse_target(request.url.raw_path)
        except RefusedRequestError as error:
            return httpx.Response(error.status, text=str(error))
        headers: dict[str, str] = {}
        for name, value in request.headers.multi_items():
            key = name.lower()
            headers[key] = joined(key, headers[key], value) if key in headers else value
        answer = await self._handler(Request(request.method, target.path, target.query, headers, body))
        if isinstance(answer, NoAnswer):
            raise httpx.ReadError("the control plane closed the connection without an answer")
        if isinstance(answer, Upgrade):
            raise httpx.UnsupportedProtocol(
                "a connection in memory cannot be upgraded to another protocol; connect over TCP"
            )
        typed = [("content-type", answer.content_type)] if answer.content_type else []
        sent = [(name.encode(), value.encode()) for name, value in (*typed, *answer.headers)]
        if isinstance(answer, Response):
            if request.method == "HEAD":
                return httpx.Response(answer.status, headers=[*sent, (b"content-length", b"%d" % len(answer.body))])
            return httpx.Response(answer.status, headers=sent, content=answer.body)
        return httpx.Response(answer.status, headers=sent, stream=_Chunks(answer))


class _Chunks(httpx.AsyncByteStream):
    """The chunks of a streamed answer; their producer runs until the iteration ends."""

    def __init__(self, answer: StreamingResponse) -> None:
        self._chunks = _produce(answer)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        with trio.CancelScope(shield=True):
            await self._chunks.aclose()


async def _produce(answer: StreamingResponse) -> AsyncGenerator[bytes, None]:
    try:
        async with answer.open_chunks() as chunks:
            async for chunk in chunks:
                yield chunk
    except CutError as error:
        raise httpx.ReadError("the control plane closed the connection in the middle of the response") from error
