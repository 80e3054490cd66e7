"""An httpx transport for one server, over HTTP/1.1 with persistent connections. The transport has only the functions that a
session needs.

httpx's own transport walks through all its connections at the beginning and the end of each request, and sends head and body
one after the other. Requests to an API server are small and many, so this overhead was half of their cost.

Invariants:

* A connection has at most one request under way. A connection is kept for reuse only after both sides have finished the
  exchange; a connection whose exchange was interrupted (cancelled, timed out, not read to its end) is closed.
* The connection used last is used next, unless the server sent something on it meanwhile, because data between two exchanges
  can only announce that the server closes the connection.
* The number of requests at a time is bounded by the caller (:mod:`wharfinger.cluster.api.http_session`).
"""

import base64
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, TypeAlias, TypeGuard

import h11
import httpx
import trio

from wharfinger.httpd.upgraded_stream import UpgradedStream

MAX_IDLE: Final = 20
IDLE_S: Final = 30.0
MAX_REASON: Final = 200
"""The largest number of characters quoted from a proxy's refusal."""
READ_BYTES: Final = 64 * 1024
MAX_HEAD_BYTES: Final = 100 * 1024
UPGRADED: Final = "wharfinger_upgraded"
"""The name of an extension of answers with status 101. Its value is the connection, a trio stream."""
BEFORE_SENDING: Final = "wharfinger_before_sending"
"""The name of an extension of requests. Its value is a function without arguments, which is called when the connection exists,
just before the first byte is sent. If the function raises, nothing is sent.
"""

SocketOption: TypeAlias = tuple[int, int, int] | tuple[int, int, bytes]


class ServerTransport(httpx.AsyncBaseTransport):
    """The transport to ``server``, with TLS if ``tls`` is not None. Raises httpx.TransportError.

    With ``proxy``, an HTTP proxy, connections are tunnels through it (CONNECT, RFC 9110 §9.3.6).

    The timeouts are those of the request's extension ``timeout`` (httpx): connect, write for the whole request, and read for
    each chunk of the answer.
    """

    def __init__(
        self, server: str, tls: ssl.SSLContext | None, options: Sequence[SocketOption] = (), proxy: str = ""
    ) -> None:
        url = httpx.URL(server)
        self._host = url.raw_host.decode()
        self._port = url.port or (80 if tls is None else 443)
        self._tls = tls
        self._proxy = httpx.Proxy(proxy) if proxy else None
        self._options = options
        self._idle: list[_Line] = []
        if tls is not None:
            tls.set_alpn_protocols(["http/1.1"])

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer once its head was read. Closing the body of the answer releases the connection."""
        content = await request.aread()
        times = _Times(request.extensions.get("timeout") or {})
        line = await self._take()
        if line is None:
            name = request.extensions.get("sni_hostname")
            line = _Line(await self._connect(times, name if isinstance(name, str) else self._host))
        try:
            head = await line.ask(request, content, times)
        except BaseException:
            await line.close()
            raise
        if isinstance(head, h11.InformationalResponse):  # the caller owns the connection from now on
            stream = {UPGRADED: line.upgraded()}
            return httpx.Response(head.status_code, headers=head.headers.raw_items(), extensions=stream)
        body = _Body(self, line, times)
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=body)

    async def aclose(self) -> None:
        """Close the kept connections."""
        while self._idle:
            await self._idle.pop().close()

    async def give_back(self, line: "_Line") -> None:
        """Take back a connection whose exchange is over. Keep it for later requests if it can be used again and the limit is
        not reached; otherwise close it.
        """
        now = trio.current_time()
        while self._idle and self._idle[0].until <= now:
            await self._idle.pop(0).close()
        if line.begin_anew() and len(self._idle) < MAX_IDLE:
            line.until = now + IDLE_S
            self._idle.append(line)
        else:
            await line.close()

    async def _take(self) -> "_Line | None":
        now = trio.current_time()
        while self._idle:
            line = self._idle.pop()
            if line.until > now and not line.is_readable():
                return line
            await line.close()
        return None

    async def _connect(self, times: "_Times", name: str) -> "trio.SocketStream | trio.SSLStream[trio.SocketStream]":
        with _explained(httpx.ConnectTimeout, httpx.ConnectError), trio.fail_after(times.connect_s):
            url = None if self._proxy is None else self._proxy.url
            at = (self._host, self._port) if url is None else (url.raw_host.decode(), url.port or 80)
            stream = await trio.open_tcp_stream(*at)
            try:
                for option in self._options:
                    stream.setsockopt(*option)
                if self._proxy is not None:
                    host = f"[{self._host}]" if ":" in self._host else self._host
                    await _tunnel(stream, f"{host}:{self._port}", self._proxy)
                if self._tls is None:
                    return stream
                secured = trio.SSLStream(stream, self._tls, server_hostname=name, https_compatible=True)
                await secured.do_handshake()
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
            return secured


async def _tunnel(stream: trio.SocketStream, target: str, proxy: httpx.Proxy) -> None:
    """Let a proxy connect this stream with ``target`` (``host:port``). Raises httpx.ProxyError."""
    state = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    headers = [(b"host", target.encode())]
    if proxy.auth is not None:
        login = base64.b64encode(":".join(proxy.auth).encode()).decode()
        headers.append((b"proxy-authorization", f"Basic {login}".encode()))
    head = state.send(h11.Request(method="CONNECT", target=target, headers=headers)) or b""
    await stream.send_all(head + (state.send(h11.EndOfMessage()) or b""))
    while not isinstance(event := state.next_event(), h11.Response):
        if event is h11.NEED_DATA:
            state.receive_data(bytes(await stream.receive_some(READ_BYTES)))
    if not HTTPStatus.OK <= event.status_code < HTTPStatus.MULTIPLE_CHOICES:
        raise httpx.ProxyError(f"the proxy answered {event.status_code} {event.reason.decode('latin-1')}"[:MAX_REASON])


def _is_upgrade(event: h11.Event) -> TypeGuard[h11.InformationalResponse]:
    return isinstance(event, h11.InformationalResponse) and event.status_code == HTTPStatus.SWITCHING_PROTOCOLS


class _Times:
    """The time limit of each step of a request, in seconds."""

    __slots__ = ("connect_s", "read_s", "write_s")

    def __init__(self, given: Mapping[str, float | None]) -> None:
        self.connect_s = _seconds(given.get("connect"))
        self.read_s = _seconds(given.get("read"))
        self.write_s = _seconds(given.get("write"))


def _seconds(given: float | None) -> float:
    return float("inf") if given is None else given


class _Line:
    """One connection, with the state of its exchange. After the time ``until``, the connection has been idle for too long."""

    __slots__ = ("_state", "_stream", "until")

    def __init__(self, stream: "trio.SocketStream | trio.SSLStream[trio.SocketStream]") -> None:
        self._stream = stream
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self.until = 0.0

    async def ask(
        self, request: httpx.Request, content: bytes, times: _Times
    ) -> h11.Response | h11.InformationalResponse:
        """Send the request in one piece; return the head of the final answer, or of the 101 that changes the protocol."""
        headers = request.headers.raw
        with _explained(httpx.WriteTimeout, httpx.WriteError):
            pieces = [
                self._state.send(h11.Request(method=request.method, target=request.url.raw_path, headers=headers)),
                self._state.send(h11.Data(data=content)) if content else b"",
                self._state.send(h11.EndOfMessage()),
            ]
        if callable(permit := request.extensions.get(BEFORE_SENDING)):
            permit()
        try:
            with _explained(httpx.WriteTimeout, httpx.WriteError), trio.fail_after(times.write_s):
                await self._stream.send_all(b"".join(piece for piece in pieces if piece))
        except httpx.WriteError:
            pass  # a server may refuse a request and close before it has read everything; then its answer counts
        while True:
            event = await self.receive(times)
            if isinstance(event, h11.Response) or _is_upgrade(event):
                return event

    def upgraded(self) -> UpgradedStream:
        """Return the connection after the change to another protocol."""
        return UpgradedStream(self._stream, self._state.trailing_data[0])

    async def receive(self, times: _Times) -> h11.Event:
        """Return the next event of the server."""
        with _explained(httpx.ReadTimeout, httpx.ReadError):
            while True:
                event = self._state.next_event()
                if isinstance(event, h11.Event):
                    return event
                with trio.fail_after(times.read_s):
                    data = await self._stream.receive_some(READ_BYTES)
                if not data and self._state.their_state is h11.SEND_RESPONSE:
                    raise httpx.RemoteProtocolError("the server closed the connection without an answer")
                self._state.receive_data(bytes(data))

    def begin_anew(self) -> bool:
        """Prepare for another request; return whether the connection can be used again."""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        self._state.start_next_cycle()
        return True

    def is_readable(self) -> bool:
        """Return whether the server has sent something."""
        stream = self._stream
        plain = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
        return plain.socket.is_readable()

    async def close(self) -> None:
        """Close the connection immediately, even if an exchange is under way."""
        await trio.aclose_forcefully(self._stream)


class _Body(httpx.AsyncByteStream):
    """The body of an answer. It is not a generator, so no cleanup is left to the garbage collector."""

    def __init__(self, transport: ServerTransport, line: _Line, times: _Times) -> None:
        self._transport = transport
        self._line: _Line | None = line
        self._times = times

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        line = self._line
        if line is None:
            raise StopAsyncIteration
        try:
            event = await line.receive(self._times)
        except BaseException:
            await self.aclose()
            raise
        if isinstance(event, h11.Data):
            return bytes(event.data)
        self._line = None
        await self._transport.give_back(line)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the connection, unless it was given back because the body was read to its end."""
        line, self._line = self._line, None
        if line is not None:
            await line.close()


@contextmanager
def _explained(late: type[httpx.TimeoutException], broken: type[httpx.NetworkError]) -> Iterator[None]:
    """Convert the exceptions of the block (from sockets, TLS and h11) into httpx's. Timeouts become ``late``, broken
    connections become ``broken``.
    """
    try:
        yield
    except trio.TooSlowError as error:
        raise late(str(error)) from error
    except h11.RemoteProtocolError as error:
        raise httpx.RemoteProtocolError(str(error)) from error
    except h11.LocalProtocolError as error:
        raise httpx.LocalProtocolError(str(error)) from error
    except (OSError, ssl.SSLError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise broken(str(error)) from error
