"""One HTTP/1.1 connection over any trio stream: a request in, its answer out, and again.

h11 is the protocol machine; this is its trio shell. What holds:

* one request at a time: pipelined ones wait in bounded buffers, and are answered in order;
* every wait for the client has a deadline, every size a limit;
* after anything malformed the connection ends: nothing that follows such bytes is ever read as a request;
* an answer that could not be sent whole ends the connection, so no client takes a part for the whole;
* a handler is never cancelled because its client went away, a streaming producer always is.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import h11
import trio

from wharfinger.httpd.head import Head, check_head
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.messages import Handler, NoAnswer, Request, Response, StreamingResponse, is_cut
from wharfinger.httpd.reply import may_have_body, response_head, text_response
from wharfinger.httpd.target import RefusedRequestError

log: Final = logging.getLogger(__name__)

_CHUNK: Final = 64 * 1024
_CLOSE_S: Final = 2.0
"""For the farewell of a connection: reading away what a refused client still sends, and closing."""
_LINGER_BYTES: Final = 16 * 1024 * 1024


class Connection:
    """The server's end of one connection. Create it, ``run`` it once; ``drain`` may be called at any time."""

    def __init__(self, stream: trio.abc.Stream, handler: Handler, limits: HttpLimits) -> None:
        self._stream = stream
        self._handler = handler
        self._limits = limits
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.header_bytes)
        self._method = ""
        self._last = False  # no request is read after this exchange
        self._draining = False  # and no stream is begun in it
        self._unusable = False  # the client is gone, or what was sent is not whole
        self._idle: trio.CancelScope | None = None
        self._streaming: trio.CancelScope | None = None

    @property
    def idle(self) -> bool:
        """Whether it waits for a request, so that nothing is lost by closing it."""
        return self._idle is not None

    @property
    def streaming(self) -> bool:
        """Whether it sends a streamed answer, which may go on for hours."""
        return self._streaming is not None

    def retire(self, reason: str) -> None:
        """End after the answer being made, at once when idle."""
        self._last = True
        if self._idle is not None:
            self._idle.cancel(reason=reason)

    def drain(self, reason: str) -> None:
        """Retire, and bring a streamed answer to its proper end."""
        self._draining = True
        self.retire(reason)
        if self._streaming is not None:
            self._streaming.cancel(reason=reason)

    async def run(self) -> None:
        """Serve until either side ends it; closes the stream. Raises nothing but cancellation."""
        try:
            while await self._exchange():
                self._h11.start_next_cycle()
        finally:
            with trio.move_on_after(_CLOSE_S, shield=True), suppress(trio.BrokenResourceError):
                await self._stream.aclose()

    async def _exchange(self) -> bool:
        """Read one request and answer it; whether the connection can be used again."""
        if not await self._wait_first_byte():
            return False
        try:
            request = await self._read_request()
        except RefusedRequestError as refusal:
            await self._refuse(refusal)
            return False
        except h11.RemoteProtocolError as error:
            await self._refuse(RefusedRequestError(error.error_status_hint, str(error)))
            return False
        if request is None:
            return False
        await self._answer(request)
        return not self._unusable and self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    # Reading

    async def _wait_first_byte(self) -> bool:
        if self._last:
            return False
        if self._h11.trailing_data[0]:
            return True
        data = b""
        self._idle = trio.move_on_after(self._limits.idle_s)
        with self._idle:
            data = await self._receive()
        self._idle = None
        self._h11.receive_data(data)
        return data != b""

    async def _read_request(self) -> Request | None:
        """The next request, whole; None when the client left instead of finishing it."""
        self._method = ""
        event: h11.Event | None = None
        with trio.move_on_after(self._limits.header_read_s) as patience:
            event = await self._next_event()
        if patience.cancelled_caught:
            raise RefusedRequestError(408, "the head of the request did not arrive in time")
        if not isinstance(event, h11.Request):
            return None
        self._method = event.method.decode("ascii")
        head = check_head(event, header_bytes=self._limits.header_bytes, body_bytes=self._limits.body_bytes)
        return await self._with_body(head)

    async def _with_body(self, head: Head) -> Request | None:
        body = bytearray()
        with trio.move_on_after(self._limits.body_read_s):
            while isinstance(event := await self._next_event(), h11.Data):
                body += event.data
                if len(body) > self._limits.body_bytes:
                    raise RefusedRequestError(413, f"the body is over the limit of {self._limits.body_bytes} bytes")
            if not isinstance(event, h11.EndOfMessage):
                return None
            return Request(head.method, head.target.path, head.target.query, head.headers, bytes(body))
        raise RefusedRequestError(408, "the body of the request did not arrive in time")

    async def _next_event(self) -> h11.Event | None:
        """The client's next event, None when it is gone. Raises h11.RemoteProtocolError."""
        while True:
            event = self._h11.next_event()
            if isinstance(event, h11.Event):
                return event
            if self._h11.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                if not await self._send(go_on):
                    return None
            data = await self._receive()
            if not data and self._unusable:
                return None
            self._h11.receive_data(data)

    async def _receive(self) -> bytes:
        """What the client sends next; nothing when it said goodbye, and when the transport failed."""
        try:
            return bytes(await self._stream.receive_some(_CHUNK))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._unusable = True
            return b""

    # Answering

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._handler(request)
            if isinstance(response, NoAnswer):
                self._unusable = True
                return
            if isinstance(response, StreamingResponse) and self._draining:
                response = text_response(503, "the server is shutting down")
            head = response_head(response, close=self._last)
        except Exception:
            log.exception("%s %r: the handler failed", request.method, request.path)
            await self._send_whole(text_response(500, "internal error"))
        else:
            if isinstance(response, Response):
                await self._send_whole(response, head)
            else:
                await self._stream_out(request, response, head)

    async def _refuse(self, refusal: RefusedRequestError) -> None:
        """Answer what is no proper request, then let the client read that before the connection goes."""
        log.debug("refused a request with %d: %s", refusal.status, refusal)
        if await self._send_whole(text_response(refusal.status, str(refusal)), close=True):
            await self._linger()

    async def _send_whole(self, response: Response, head: h11.Response | None = None, *, close: bool = False) -> bool:
        events: list[h11.Event] = [head or response_head(response, close=close or self._last)]
        if response.body and self._method != "HEAD" and may_have_body(response.status):
            events.append(h11.Data(data=response.body))
        return await self._send(*events, h11.EndOfMessage())

    async def _stream_out(self, request: Request, response: StreamingResponse, head: h11.Response) -> None:
        if request.method == "HEAD" or not may_have_body(response.status):
            await self._send(head, h11.EndOfMessage())
            return
        try:
            async with trio.open_nursery() as nursery:
                self._streaming = nursery.cancel_scope
                nursery.start_soon(self._watch_for_disconnect, nursery.cancel_scope, name="http disconnect watch")
                async with response.open_chunks() as chunks:
                    await self._send_chunks(head, chunks)
                nursery.cancel_scope.cancel(reason="the stream ended")
        except Exception as error:
            # Anything of the transport was caught where it happened: this is the producer's.
            if is_cut(error):
                self._unusable = True
                return
            log.exception("%s %r: the stream failed", request.method, request.path)
            if self._h11.our_state is h11.SEND_RESPONSE:
                await self._send_whole(text_response(500, "internal error"), close=True)
            self._unusable = True
        finally:
            self._streaming = None
        if self._unusable:
            return
        if self._h11.our_state is h11.SEND_RESPONSE:  # drained before it began
            await self._send_whole(text_response(503, "the server is shutting down"))
        else:
            await self._send(h11.EndOfMessage())

    async def _send_chunks(self, head: h11.Response, chunks: AsyncIterator[bytes]) -> None:
        # Nothing of ours is raised in here: a producer's context manager may wrap what passes through it in a group.
        if not await self._send(head):
            return
        async for chunk in chunks:
            if chunk and not await self._send(h11.Data(data=chunk)):
                return

    async def _watch_for_disconnect(self, stream_scope: trio.CancelScope) -> None:
        """Take in (a bounded amount of) what the client pipelines; when it leaves, cancel the producer."""
        while len(self._h11.trailing_data[0]) <= self._limits.header_bytes:
            data = await self._receive()
            if not data:
                break
            self._h11.receive_data(data)
        self._unusable = True
        stream_scope.cancel(reason="the client went away")

    async def _send(self, *events: h11.Event) -> bool:
        """Send in one write; False, and the connection is over, when the client did not take it (in time)."""
        if self._unusable:
            return False
        data = b"".join(self._h11.send(event) or b"" for event in events)
        self._unusable = True  # until it is proven otherwise: a cancelled write leaves half a message behind
        with trio.move_on_after(self._limits.write_s):
            try:
                await self._stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return False
            self._unusable = False
            return True
        return False

    async def _linger(self) -> None:
        """Close our direction and read the rest away: closing over unread bytes would reset what was just sent."""
        if not isinstance(self._stream, trio.abc.HalfCloseableStream):
            return
        with trio.move_on_after(_CLOSE_S):
            try:
                await self._stream.send_eof()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            budget = _LINGER_BYTES
            while budget > 0 and (data := await self._receive()):
                budget -= len(data)
