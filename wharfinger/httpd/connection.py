"""One HTTP/1.1 connection over any trio stream: requests are read and answered in turn.

The HTTP protocol is handled by h11 or, for an ordinary request, by :mod:`~wharfinger.httpd.lean`; this module does the input and
output for both. Invariants:

* one request at a time: pipelined requests wait in bounded buffers, and are answered in order;
* every wait for the client has a deadline, and every size has a limit;
* a connection ends after malformed input: bytes that follow it are never read as a request;
* an answer that could not be sent completely ends the connection, so that no client mistakes a part of it for the whole;
* when a client disconnects, the producer of a streamed answer is cancelled, but a handler never is.
"""

import logging
import math
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import h11
import trio

from wharfinger.httpd import lean
from wharfinger.httpd.framing import Framing, H11Framing, LeanFraming
from wharfinger.httpd.head import RequestHead, check_head
from wharfinger.httpd.large_bodies import LargeBodies
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.messages import Handler, NoAnswer, Request, Response, StreamingResponse, Upgrade, is_cut
from wharfinger.httpd.peer import Peer
from wharfinger.httpd.reply import may_have_body, response_head, text_response, upgrade_head
from wharfinger.httpd.target import RefusedRequestError
from wharfinger.httpd.upgraded_stream import UpgradedStream

log: Final = logging.getLogger(__name__)

_CHUNK: Final = 64 * 1024
_CLOSE_S: Final = 2.0
"""The time limit, in seconds, for reading the rest of a refused request, and again for closing the stream."""
_LATE_BODY: Final = "the body of the request did not arrive in time"
_SMALL: Final = 4096
"""A pause follows each received piece of a request that is smaller than this number of bytes."""
_MOST_DOUBLINGS: Final = 6
_SLOW_S: Final = 0.25
"""If a request is incomplete for longer than this number of seconds, the server may abandon it to serve another client."""


class Connection:
    """The server's end of one connection. Call ``run`` once; ``drain`` may be called at any time."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        handler: Handler,
        limits: HttpLimits,
        peer: Peer | None = None,
        bodies: LargeBodies | None = None,
    ) -> None:
        """Serve ``stream``. All connections of one server share ``bodies``."""
        self._stream = stream
        self._bodies = bodies or LargeBodies(limits.large_bodies_bytes)
        self._handler = handler
        self._limits = limits
        self.peer = peer
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.header_bytes)
        self._framing: Framing = H11Framing(self._h11)
        self._data = b""  # data that was received and not yet passed to h11
        self._method = ""
        self._last = False  # no request is read after this exchange
        self._draining = False  # no request is read after this exchange, and no stream is begun in it
        self._unusable = False  # the client is gone, or an answer was sent incompletely
        self._idle = False
        self._reading_since = math.inf  # the time of the first byte of an incomplete request
        self._latest = 0  # the size of the latest piece that was received
        self._small_pieces = 0  # the number of small pieces of the present request
        self._useful = False  # the connection has had a valid request, and no invalid one
        self._patience = trio.CancelScope()  # cancels only the wait for a request
        self._late = False  # a request arrived just when the wait for it was cancelled
        self._streaming: trio.CancelScope | None = None

    @property
    def idle(self) -> bool:
        """Return whether the connection waits for a request. Closing such a connection loses nothing."""
        return self._idle

    @property
    def slow(self) -> bool:
        """Return whether the client has left its request incomplete for a while."""
        return trio.current_time() - self._reading_since > _SLOW_S

    @property
    def useful(self) -> bool:
        """Return whether the connection has had a valid request, and no invalid one."""
        return self._useful

    @property
    def streaming(self) -> bool:
        """Return whether the connection sends a streamed answer, which may last for hours."""
        return self._streaming is not None

    def retire(self, reason: str) -> None:
        """Close the connection after the current answer, or immediately if it is idle or slow."""
        self._last = True
        if self._idle or self.slow:
            self._patience.cancel(reason=reason)

    def drain(self, reason: str) -> None:
        """Close the connection after the current answer, and end a streamed answer properly."""
        self._draining = self._last = True
        if self._idle:
            self._patience.cancel(reason=reason)
        if self._streaming is not None:
            self._streaming.cancel(reason=reason)

    async def run(self) -> None:
        """Serve until either side ends the connection, and close the stream. Raises nothing but cancellation."""
        try:
            while await self._serve():
                self._patience = trio.CancelScope()
        finally:
            with trio.move_on_after(_CLOSE_S, shield=True), suppress(trio.BrokenResourceError):
                await self._stream.aclose()

    async def _serve(self) -> bool:
        """Serve as long as requests arrive in time. Return whether a request arrived just when the wait for it was cancelled;
        if so, the caller goes on serving.
        """
        with self._patience:
            while await self._exchange():
                if self._h11.our_state is h11.DONE:
                    self._h11.start_next_cycle()
            return self._late
        return False

    async def _exchange(self) -> bool:
        """Read one request and answer it; return whether the connection can be used again."""
        if not await self._wait_first_byte():
            return False
        try:
            return await self._read_and_answer()
        finally:
            self._bodies.give_back(self)

    async def _read_and_answer(self) -> bool:
        self._reading_since, self._small_pieces = trio.current_time(), 0
        try:
            request = await self._read_plain() or await self._read_request()
        except RefusedRequestError as refusal:
            await self._refuse(refusal)
            return False
        except h11.RemoteProtocolError as error:
            await self._refuse(RefusedRequestError(error.error_status_hint, str(error)))
            return False
        finally:
            self._reading_since = math.inf
        # A request that became complete just when it was abandoned is not begun.
        if request is None or self._patience.cancel_called:
            return False
        self._useful = True
        await self._answer(request)
        return not self._unusable and self._framing.over

    # Reading

    async def _wait_first_byte(self) -> bool:
        if self._last and not self._late:
            return False
        self._late = False
        if self._data or self._h11.trailing_data[0]:
            await trio.lowlevel.checkpoint()  # a client that pipelines must not block others
            return True
        self._idle, self._patience.deadline = True, trio.current_time() + self._limits.idle_s
        try:
            self._data = await self._receive()
        finally:
            self._idle, self._patience.deadline = False, math.inf
        self._late = self._patience.cancel_called and self._data != b""
        return self._data != b"" and not self._late

    async def _read_plain(self) -> Request | None:
        """Return the request if it is an ordinary one and was received completely; otherwise return None, and leave all data
        for h11.
        """
        limits = self._limits
        if self._h11.trailing_data[0]:
            return None
        found = lean.read_head(self._data, header_bytes=limits.header_bytes, body_bytes=limits.body_bytes)
        if found is None:
            return None
        head, start = found
        whole = start + (head.length or 0)
        self._framing, self._method = LeanFraming(), head.method
        self._bodies.take(self, head.length or 0)
        if len(self._data) < whole:
            await self._receive_up_to(whole)
        if len(self._data) != whole:
            return None
        body, self._data = self._data[start:], b""
        return Request(head.method, head.target.path, head.target.query, head.headers, body, self.peer)

    async def _receive_up_to(self, size: int) -> None:
        """Receive until ``size`` bytes are there, or the client sends no more.

        If there are fewer bytes at the end, the caller lets h11 parse the request. Raises RefusedRequestError (408).
        """
        pieces, missing = [self._data], size - len(self._data)
        with trio.move_on_after(self._limits.body_read_s) as patience:
            while missing > 0 and (data := await self._receive_piece()):
                pieces.append(data)
                missing -= len(data)
        if patience.cancelled_caught:
            raise RefusedRequestError(408, _LATE_BODY)
        self._data = b"".join(pieces)

    async def _read_request(self) -> Request | None:
        """Return the next request with its body; None if the connection is closed or fails before the end of the request.

        Raises RefusedRequestError and h11.RemoteProtocolError.
        """
        self._method, self._framing = "", H11Framing(self._h11)
        if self._data:
            self._h11.receive_data(self._data)
            self._data = b""
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

    async def _with_body(self, head: RequestHead) -> Request | None:
        body = bytearray()
        self._bodies.take(self, self._limits.body_bytes if head.length is None else head.length)
        with trio.move_on_after(self._limits.body_read_s):
            while isinstance(event := await self._next_event(), h11.Data):
                body += event.data
                if len(body) > self._limits.body_bytes:
                    raise RefusedRequestError(413, f"the body is over the limit of {self._limits.body_bytes} bytes")
            if not isinstance(event, h11.EndOfMessage):
                return None
            return Request(head.method, head.target.path, head.target.query, head.headers, bytes(body), self.peer)
        raise RefusedRequestError(408, _LATE_BODY)

    async def _next_event(self) -> h11.Event | None:
        """Return the client's next event, or None if the connection has failed. Raises h11.RemoteProtocolError."""
        while True:
            event = self._h11.next_event()
            if isinstance(event, h11.Event):
                return event
            if self._h11.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                if not await self._send(self._h11.send(go_on) or b""):
                    return None
            data = await self._receive_piece()
            if not data and self._unusable:
                return None
            self._h11.receive_data(data)

    async def _receive_piece(self) -> bytes:
        """Return the next bytes of a request. After a small piece, pause first, so that fewer and larger pieces arrive."""
        if self._latest < _SMALL and (pause := self._limits.piece_pause_s):
            await trio.sleep(pause * 2 ** min(self._small_pieces, _MOST_DOUBLINGS))
            self._small_pieces += 1
        return await self._receive()

    async def _receive(self) -> bytes:
        """Return the client's next bytes; no bytes if it closed the connection, or if the transport failed."""
        try:
            data = bytes(await self._stream.receive_some(_CHUNK))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._unusable = True
            return b""
        self._latest = len(data)
        return data

    # Answering

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._handler(request)
            if isinstance(response, NoAnswer):
                self._unusable = True
                return
            if isinstance(response, StreamingResponse | Upgrade) and self._draining:
                response = text_response(503, "the server is shutting down")
            if isinstance(response, Upgrade):
                await self._upgrade(request, response)
                return
            head = self._head(response)
        except Exception:
            log.exception("%s %r: the handler failed", request.method, request.path)
            await self._send_whole(text_response(500, "internal error"))
        else:
            if isinstance(response, Response):
                await self._send_body(response, head)
            else:
                await self._stream_out(request, response)

    async def _upgrade(self, request: Request, upgrade: Upgrade) -> None:
        """Serve the protocol of ``upgrade`` until it ends; answer with 400 if the client has not asked for this protocol."""
        if request.headers.get("upgrade", "").lower() != upgrade.protocol:
            await self._send_whole(text_response(400, f"expected a request to upgrade to {upgrade.protocol}"))
            return
        head = self._h11.send(upgrade_head(upgrade)) or b""
        stream = UpgradedStream(self._stream, self._h11.trailing_data[0])
        if not await self._send(head):
            return
        self._unusable = True  # for HTTP
        with trio.CancelScope() as self._streaming:
            try:
                await upgrade.run(stream)
            except Exception:
                log.exception("%s %r: the handler of %s failed", request.method, request.path, upgrade.protocol)
        self._streaming = None

    def _head(self, response: Response | StreamingResponse) -> bytes:
        """Return the head of an answer.

        For a streamed answer, only validate the head and return no bytes, because the stream may never begin.
        """
        if isinstance(response, Response):
            return self._framing.head(response, close=self._last)
        response_head(response, close=self._last)
        return b""

    async def _refuse(self, refusal: RefusedRequestError) -> None:
        """Answer an invalid request, then let the client read the answer before the connection is closed."""
        log.debug("refused a request with %d: %s", refusal.status, refusal)
        self._useful = False
        if await self._send_whole(text_response(refusal.status, str(refusal)), close=True):
            await self._linger()

    async def _send_whole(self, response: Response, *, close: bool = False) -> bool:
        return await self._send_body(response, self._framing.head(response, close=close or self._last))

    async def _send_body(self, response: Response, head: bytes) -> bool:
        body = b""
        if response.body and self._method != "HEAD" and may_have_body(response.status):
            body = self._framing.data(response.body)
        return await self._send(head + body + self._framing.end())

    async def _stream_out(self, request: Request, response: StreamingResponse) -> None:
        if request.method == "HEAD" or not may_have_body(response.status):
            await self._send(self._framing.head(response, close=self._last) + self._framing.end())
            return
        try:
            async with trio.open_nursery() as nursery:
                self._streaming = nursery.cancel_scope
                nursery.start_soon(self._watch_for_disconnect, nursery.cancel_scope, name="http disconnect watch")
                async with response.open_chunks() as chunks:
                    await self._send_chunks(response, chunks)
                nursery.cancel_scope.cancel(reason="the stream ended")
        except Exception as error:
            # Errors of the transport were caught where they were raised, so the producer has raised this error.
            if is_cut(error):
                self._unusable = True
                return
            log.exception("%s %r: the stream failed", request.method, request.path)
            if not self._framing.begun:
                await self._send_whole(text_response(500, "internal error"), close=True)
            self._unusable = True
        finally:
            self._streaming = None
        if self._unusable:
            return
        if self._framing.begun:
            await self._send(self._framing.end())
        else:  # the server was drained before the stream began
            await self._send_whole(text_response(503, "the server is shutting down"))

    async def _send_chunks(self, response: StreamingResponse, chunks: AsyncIterator[bytes]) -> None:
        # No error of this server is raised here, because the producer's context manager might wrap it in a group.
        if not await self._send(self._framing.head(response, close=self._last)):
            return
        unseen = 0
        async for chunk in chunks:
            if chunk and not await self._send(self._framing.data(chunk)):
                return
            unseen += len(chunk) + _CHUNK // 16
            if unseen < _CHUNK:
                await trio.lowlevel.checkpoint_if_cancelled()
            else:  # sending and producing may both have returned without a checkpoint
                await trio.lowlevel.checkpoint()
                unseen = 0

    async def _watch_for_disconnect(self, stream_scope: trio.CancelScope) -> None:
        """Receive pipelined data; cancel the producer when the client disconnects, or has sent more than ``header_bytes``."""
        while len(self._h11.trailing_data[0]) + len(self._data) <= self._limits.header_bytes:
            data = await self._receive()
            if not data:
                break
            self._data += data
        self._unusable = True
        stream_scope.cancel(reason="the client went away")

    async def _send(self, data: bytes) -> bool:
        """Send the data. If this fails or exceeds ``write_s``, mark the connection as unusable, and return False."""
        if self._unusable:
            return False
        self._unusable = True  # reset after success; a cancelled write leaves half a message behind
        try:
            sent = self._send_now(data)
            if sent < len(data):
                with trio.move_on_after(self._limits.write_s) as patience:
                    await self._stream.send_all(memoryview(data)[sent:])
                if patience.cancelled_caught:
                    return False
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        self._unusable = False
        return True

    def _send_now(self, data: bytes) -> int:
        """Send to a plain socket without waiting; return how many bytes it accepted, which is nearly always all of them."""
        if not isinstance(self._stream, trio.SocketStream):
            return 0
        try:
            return os.write(self._stream.socket.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise trio.BrokenResourceError(str(error)) from error

    async def _linger(self) -> None:
        """Close the sending side and discard further input: closing with unread bytes would reset the connection."""
        if not isinstance(self._stream, trio.abc.HalfCloseableStream):
            return
        with trio.move_on_after(_CLOSE_S):
            try:
                await self._stream.send_eof()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            budget = self._limits.linger_bytes
            while budget > 0 and (data := await self._receive_piece()):
                budget -= len(data)
