"""An HTTP session with an API server: credentials, time limits, size limits, and retries.

A session limits the number of concurrent requests, the seconds per request, the bytes per answer, and the attempts and delays
after `429 Too Many Requests` or a `Retry-After`.

The connection pool does not limit the number of concurrent requests, because a capped httpx pool permanently loses slots when
a waiting request is cancelled (encode/httpcore #961). Instead, :mod:`~wharfinger.cluster.traffic.pacer` limits this number, and
adapts the limit to the load that the server can take. A request that was refused keeps its slot while it waits for its next
attempt. A long stream (a watch) occupies a slot only while it is being opened.
"""

import math
import ssl
import struct
import urllib.parse
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from random import random
from socket import (
    IPPROTO_TCP,
    SO_KEEPALIVE,
    SO_LINGER,
    SOL_SOCKET,
    TCP_KEEPCNT,
    TCP_KEEPIDLE,
    TCP_KEEPINTVL,
    TCP_USER_TIMEOUT,
)
from typing import Final, cast

import httpx
import trio

from wharfinger import __version__
from wharfinger.cluster.api.connection import Authorization, Connection, ConnectionConfigError, StaticAuthorization
from wharfinger.cluster.api.errors import ClusterError, SilentServerError
from wharfinger.cluster.api.http_errors import error_of_response, retry_after, unreachable
from wharfinger.cluster.api.http_transport import BEFORE_SENDING, UPGRADED, ServerTransport, SocketOption
from wharfinger.cluster.traffic.pacer import Pacer, PaceStatistics, Turn

ERROR_BODY_BYTES: Final = 256 * 1024
"""The size limit for the body of an unsuccessful answer, in bytes. A longer body is not quoted in the error."""

_SOCKET_OPTIONS: Final[list[SocketOption]] = [
    (SOL_SOCKET, SO_KEEPALIVE, 1),
    (IPPROTO_TCP, TCP_KEEPIDLE, 30),
    (IPPROTO_TCP, TCP_KEEPINTVL, 10),
    (IPPROTO_TCP, TCP_KEEPCNT, 3),
    (IPPROTO_TCP, TCP_USER_TIMEOUT, 60_000),
    (SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0)),
]
"""The socket options by which a vanished peer is noticed after a minute, even on an idle connection.

When a connection is closed, for example because the process died, data that the peer has not received is discarded
(SO_LINGER). Otherwise the kernel could deliver a write of a dead daemon minutes later, when the network works again.
"""
_IMPERSONATE: Final = "impersonate-"
_USER: Final = f"{_IMPERSONATE}user"


class ResponseTooLargeError(ClusterError):
    """An answer was over the limit; a repeated request would get the same answer."""

    transient = False


def unguarded(_what: str) -> None:
    """Do nothing. This guard, which is called before each write, permits every write."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The limits of a client, with times in seconds. ``random`` returns a number in [0, 1), for jitter; tests replace it."""

    concurrency: int = 32
    connect_s: float = 10.0
    request_s: float = 60.0
    watch_s: int = 290
    watch_jitter_s: int = 20
    watch_grace_s: float = 30.0
    watch_silence_s: float = 150.0
    """The longest time in which a watch may receive nothing; two bookmarks should arrive in this time. A watch of a kind without
    bookmarks may receive nothing until it ends.
    """
    max_response_bytes: int = 64 * 1024 * 1024
    attempts: int = 6
    max_retry_after_s: float = 30.0
    page_size: int = 500
    authorization_age_s: float = 30.0
    catalog_age_s: float = 60.0
    user_agent: str = f"wharfinger/{__version__}"
    """The user agent. Its part before the first ``/`` is the field manager of every write that names no field manager."""
    random: Callable[[], float] = field(default=random)
    before_write: Callable[[str], None] = unguarded
    """A callback with the description of a request that may change something. It is called just before the request is sent, and
    can prevent that by raising a ClusterError.
    """


@dataclass(frozen=True, slots=True)
class Call:
    """One request; ``what`` describes the request in errors (``get Pod a/b``)."""

    method: str
    path: str
    what: str
    params: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = "application/json"
    accept: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    comment: str = ""
    """The suffix of the user agent; the server's audit log contains the user agent."""
    repeatable: bool = True
    """False for a GET that must not be sent again after its connection has failed."""
    timed: bool = False
    """True if the time until the answer shows how busy the server is, as for most requests about a single object."""

    commands: bool = False
    """True for a GET that runs a command, and so may change something."""

    @property
    def writes(self) -> bool:
        """Return whether the request may change something."""
        return self.commands or self.method not in {"GET", "HEAD"}


@dataclass(frozen=True, slots=True)
class _Failure:
    """An unsuccessful answer of the server, whose body was read and whose stream was closed."""

    status: int
    headers: httpx.Headers
    body: bytes

    def retry_after_s(self) -> float | None:
        """Return the delay in seconds that the server asked for; None if it asked for none."""
        return retry_after(self.headers.get("retry-after", ""), self.headers.get("date", ""))

    def is_overload(self) -> bool:
        """Return whether the server asked for fewer requests."""
        unavailable = self.status == HTTPStatus.SERVICE_UNAVAILABLE and self.retry_after_s() is not None
        return unavailable or self.status == HTTPStatus.TOO_MANY_REQUESTS


class _Attempts:
    """The attempts of one call, and the decision whether and when to retry."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._left = options.attempts - 1
        self._patience_s = options.max_retry_after_s
        self.renewed = False
        self.reconnected = False

    def delay(self, failure: _Failure) -> float | None:
        """Return the seconds to wait before the next attempt; None if the server did not ask for a retry, or a limit is
        reached.
        """
        asked = failure.retry_after_s()
        if asked is None and failure.status == HTTPStatus.TOO_MANY_REQUESTS:
            asked = 1.0
        # After a 429, the number of retries is not limited, because the server does answer.
        # The sum of their delays is limited.
        overloaded = failure.status == HTTPStatus.TOO_MANY_REQUESTS
        if asked is None or (self._left <= 0 and not overloaded) or asked > self._patience_s:
            return None
        self._left -= 0 if overloaded else 1
        self._patience_s -= asked
        return asked * (1 + 0.1 * self._options.random())


class HttpSession:
    """The sender of requests to one API server. Made by :func:`open_session`."""

    def __init__(self, connection: Connection, transport: httpx.AsyncBaseTransport, options: ClientOptions) -> None:
        self.options = options
        self.server = connection.server
        self._base = connection.server.rstrip("/") + "/"
        self._connection = connection
        self._transport = transport
        self._pacer = Pacer(options.concurrency)
        self._credentials = _Credentials(connection.authorization, options.authorization_age_s)

    async def request(self, call: Call) -> bytes:
        """Send the request, with retries, and return the body of the successful answer. Raises ApiError, UnreachableError, and
        other ClusterErrors.
        """
        attempts = _Attempts(self.options)
        async with self._pacer.turn() as turn:
            while True:
                begun = trio.current_time()
                with self._patience(call), trio.fail_after(self.options.request_s):
                    answer = await self._exchange(call, attempts)
                if isinstance(answer, bytes):
                    turn.answered(trio.current_time() - begun if call.timed else None)
                    return answer
                await self._recover(call, answer, attempts, turn)

    @asynccontextmanager
    async def stream(self, call: Call, *, read_s: float) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Yield the chunks of a successful answer as they arrive. Raise SilentServerError if none arrives for ``read_s``."""
        response = await self._open(call, lambda found: found.is_success, read_s=read_s)
        try:
            async with aclosing(self._chunks(response, call.what, silence_s=read_s)) as chunks:
                yield chunks
        finally:
            with trio.move_on_after(1, shield=True):
                await response.aclose()

    @asynccontextmanager
    async def upgrade(self, call: Call) -> AsyncGenerator[tuple[Mapping[str, str], trio.abc.Stream], None]:
        """Yield the headers of the 101 answer, and the connection after the change of protocol.

        The connection is closed after the block.

        Raises ApiError and UnreachableError, also for a server that answers without changing the protocol.
        """
        response = await self._open(call, _is_upgraded, read_s=self.options.request_s)
        stream = response.extensions[UPGRADED]
        assert isinstance(stream, trio.abc.Stream)  # noqa: S101 - see _is_upgraded
        try:
            yield response.headers, stream
        finally:
            await trio.aclose_forcefully(stream)

    async def _open(self, call: Call, is_wanted: Callable[[httpx.Response], bool], *, read_s: float) -> httpx.Response:
        """Return the head of the first answer that ``is_wanted`` accepts. The caller reads the body, and closes the answer."""
        attempts = _Attempts(self.options)
        async with self._pacer.turn() as turn:
            while True:
                with self._patience(call), trio.fail_after(self.options.request_s):
                    header, response = await self._send(call, attempts, read_s=read_s)
                if is_wanted(response):
                    turn.answered(None)
                    return response
                try:
                    failure = await self._failure(response, call.what)
                finally:
                    with trio.move_on_after(1, shield=True):
                        await response.aclose()
                if response.is_success or response.is_informational:
                    words = httpx.RemoteProtocolError(f"it sent {response.status_code} and did not switch the protocol")
                    raise unreachable(self.server, call.what, words)
                await self._recover(call, (header, failure), attempts, turn)

    def statistics(self) -> dict[str, int]:
        """Return the numbers of requests under way and of requests that wait for a slot; open streams are not counted."""
        found = self._pacer.statistics()
        return {"requests": found.under_way, "waiting": found.waiting}

    def pace(self) -> PaceStatistics:
        """Return the state of the limit on concurrent requests."""
        return self._pacer.statistics()

    @contextmanager
    def _patience(self, call: Call) -> Iterator[None]:
        """Convert a timeout in the block into an UnreachableError."""
        try:
            yield
        except trio.TooSlowError as error:
            words = TimeoutError(f"not done within {self.options.request_s:g} s")
            raise unreachable(self.server, call.what, words) from error

    async def _exchange(self, call: Call, attempts: _Attempts) -> bytes | tuple[str, _Failure]:
        header, response = await self._send(call, attempts, read_s=self.options.request_s)
        try:
            if response.is_success:
                return await self._read(response, call.what, self.options.max_response_bytes)
            return header, await self._failure(response, call.what)
        finally:
            with trio.move_on_after(1, shield=True):
                await response.aclose()

    async def _recover(self, call: Call, answer: tuple[str, _Failure], attempts: _Attempts, turn: Turn) -> None:
        """Wait until the next attempt is due. Raise the error for the answer if there is no further attempt."""
        header, failure = answer
        if failure.status == HTTPStatus.UNAUTHORIZED and not attempts.renewed:
            attempts.renewed = True
            if await self._credentials.renew(header):
                return
        if failure.is_overload():
            turn.refused()
        delay = attempts.delay(failure)
        if delay is None:
            asked = failure.retry_after_s()
            raise error_of_response(failure.status, failure.body, call.what, retry_after_s=asked)
        await trio.sleep(delay)
        await turn.renew()

    async def _send(self, call: Call, attempts: _Attempts, *, read_s: float) -> tuple[str, httpx.Response]:
        """Send a call. Return the Authorization header that was sent, and the head of the answer."""
        header = await self._credentials.header()
        request = self._request(call, header, read_s)
        while True:
            if call.writes:
                self.options.before_write(call.what)
            try:
                return header, await self._transport.handle_async_request(request)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
                # The server may have closed a kept connection just as it was used; a request that only reads is retried.
                if call.method != "GET" or not call.repeatable or attempts.reconnected:
                    raise unreachable(self.server, call.what, error) from error
                attempts.reconnected = True
            except httpx.TransportError as error:
                raise unreachable(self.server, call.what, error) from error

    def _request(self, call: Call, header: str, read_s: float) -> httpx.Request:
        headers = [("accept", call.accept), ("accept-encoding", "gzip")]
        headers.append(("user-agent", f"{self.options.user_agent} {call.comment}".rstrip()))
        own = self._connection.headers
        if any(name.lower() == _USER for name, _ in call.headers):
            own = tuple(
                each for each in own if not each[0].lower().startswith(_IMPERSONATE)
            )  # of two headers with the same name, the server uses the first
        headers += [*own, *call.headers]
        if call.body:
            headers.append(("content-type", call.content_type))
        if header:
            headers.append(("authorization", header))
        extensions: dict[str, object] = {}
        if call.writes:
            permit = partial(self.options.before_write, call.what)
            extensions |= {BEFORE_SENDING: permit, "trace": partial(_ask_before_sending, permit)}
        if name := self._connection.tls_server_name:
            extensions["sni_hostname"] = name
        times = httpx.Timeout(self.options.request_s, connect=self.options.connect_s, read=read_s)
        return httpx.Request(
            call.method,
            self._base + urllib.parse.quote(call.path, safe="/:@!$&'()*+,;=~").lstrip("/"),
            params=dict(call.params) or None,
            content=call.body or None,
            headers=headers,
            extensions={"timeout": times.as_dict(), **extensions},
        )

    async def _failure(self, response: httpx.Response, what: str) -> _Failure:
        try:
            body = await self._read(response, what, ERROR_BODY_BYTES)
        except ResponseTooLargeError:
            body = b"(a long answer)"
        return _Failure(response.status_code, response.headers, body)

    async def _read(self, response: httpx.Response, what: str, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        async with aclosing(self._chunks(response, what)) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise ResponseTooLargeError(f"{what}: the answer is over the limit of {limit} bytes")
                parts.append(chunk)
        return b"".join(parts)

    async def _chunks(
        self, response: httpx.Response, what: str, *, silence_s: float | None = None
    ) -> AsyncGenerator[bytes, None]:
        # Not aiter_raw(), which raises an error if a transport returned a response whose content is already read.
        raw = aiter(cast("httpx.AsyncByteStream", response.stream))
        ended = False
        try:
            inflate = _inflater(response.headers.get("content-encoding", ""))
            async for chunk in raw:
                for piece in (chunk,) if inflate is None else inflate.feed(chunk):
                    yield piece
            ended = True
            if inflate is not None:
                inflate.finish()
        except httpx.ReadTimeout as error:
            if silence_s is None:
                raise unreachable(self.server, what, error) from error
            raise SilentServerError(f"{what}: received nothing from {self.server} for {silence_s:g} s") from error
        except (httpx.TransportError, zlib.error) as error:
            raise unreachable(self.server, what, error) from error
        finally:
            if not ended:
                await _end(raw)


async def _ask_before_sending(permit: Callable[[], None], event: str, _about: object) -> None:
    """Call ``permit``, which may raise to stop the request, just before httpx's own transport sends the request's first byte.

    That transport is used for proxies that ServerTransport does not support. httpcore calls this function at every step of a
    request, and passes its errors on. ``permit`` is also called before the CONNECT request for a tunnel.
    """
    if event.endswith(".send_request_headers.started"):
        permit()


def _is_upgraded(response: httpx.Response) -> bool:
    return isinstance(response.extensions.get(UPGRADED), trio.abc.Stream)


class _Inflater:
    """A gzip decompressor. It yields pieces of at most 1 MiB, even if a small chunk expands to much more."""

    def __init__(self) -> None:
        self._state = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decompressed pieces of a chunk. Raises zlib.error."""
        while chunk:
            if piece := self._state.decompress(chunk, 1024 * 1024):
                yield piece
            chunk = self._state.unconsumed_tail

    def finish(self) -> None:
        """Check that the whole compressed stream was received. Raises zlib.error if its end is missing."""
        if not self._state.eof:
            raise zlib.error("the compressed answer is incomplete")


def _inflater(encoding: str) -> _Inflater | None:
    if encoding in {"", "identity"}:
        return None
    if encoding != "gzip":
        raise zlib.error(f"the server answered with Content-Encoding {encoding[:40]!r}, which was not requested")
    return _Inflater()


async def _end(chunks: AsyncIterator[bytes]) -> None:
    """Finish the generators of a body that its reader abandoned.

    httpx, httpcore and a transport nest asynchronous generators; closing the outermost generator would leave the inner ones
    to the garbage collector. If the generators are resumed inside a cancelled scope, they all end immediately, the innermost
    first.
    """
    with trio.CancelScope(shield=True) as scope, suppress(httpx.TransportError, httpx.StreamError):
        scope.cancel()
        async for _ in chunks:
            pass


class _Credentials:
    """The Authorization header, cached for a while and renewed by one task at a time, in a thread."""

    def __init__(self, source: Authorization, age_s: float) -> None:
        self._source = source
        self._age_s = age_s
        self._lock = trio.Lock()
        self._value = ""
        self._until = -math.inf

    async def header(self) -> str:
        """Return the value of the Authorization header for a request that is sent now. Raises ConnectionConfigError."""
        if isinstance(self._source, StaticAuthorization):
            return self._source.header(renew=False)
        if trio.current_time() < self._until:
            return self._value
        async with self._lock:
            if trio.current_time() >= self._until:
                await self._load(renew=False)
            return self._value

    async def renew(self, refused: str) -> bool:
        """Renew the header after the server answered 401 to the header ``refused``; return whether it is a different one now."""
        if isinstance(self._source, StaticAuthorization):
            return False
        async with self._lock:
            if self._value == refused:
                await self._load(renew=True)
            return self._value != refused

    async def _load(self, *, renew: bool) -> None:
        self._value = await trio.to_thread.run_sync(lambda: self._source.header(renew=renew), abandon_on_cancel=True)
        self._until = trio.current_time() + self._age_s


@asynccontextmanager
async def open_session(
    connection: Connection, options: ClientOptions, transport: httpx.AsyncBaseTransport | None
) -> AsyncGenerator[HttpSession, None]:
    """Yield a session over ``transport``, or over TCP according to the connection. Raises ConnectionConfigError."""
    if transport is None:
        transport = await trio.to_thread.run_sync(_tcp_transport, connection)
    async with transport:
        yield HttpSession(connection, transport, options)


def _tcp_transport(connection: Connection) -> httpx.AsyncBaseTransport:
    """Return a transport over TCP. Reads certificates, so it blocks."""
    try:
        tls = _tls_context(connection) if connection.server.startswith("https:") else None
        if not connection.proxy or (tls is not None and connection.proxy.startswith("http://")):
            return ServerTransport(connection.server, tls, _SOCKET_OPTIONS, connection.proxy)
        return httpx.AsyncHTTPTransport(
            verify=tls or False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30),
            socket_options=_SOCKET_OPTIONS,
            proxy=connection.proxy,
        )
    except (OSError, ssl.SSLError) as error:
        raise ConnectionConfigError(
            f"{connection.server}: its certificates cannot be used: {error}; check the CA and the client certificate"
        ) from error
    except (ValueError, ImportError) as error:
        raise ConnectionConfigError(f"{connection.server}: the proxy cannot be used: {error}") from error


def _tls_context(connection: Connection) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=connection.ca_file)
    if not connection.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if connection.client_certificate is not None:
        context.load_cert_chain(connection.client_certificate, connection.client_key)
    return context
