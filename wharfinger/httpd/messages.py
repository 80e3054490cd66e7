"""HTTP messages as handlers see them: a handler gets a whole request, and returns a whole or a streamed response."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import msgspec
import trio

from wharfinger.httpd.peer import Peer


class Request(msgspec.Struct, frozen=True):
    """One complete request, within the limits. ``path`` is percent-decoded; header names are lower case.

    ``peer`` is the process that sent it over a Unix socket; None if it is not known.
    """

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]]
    headers: Mapping[str, str]
    body: bytes
    peer: Peer | None = None

    def arg(self, name: str, default: str = "") -> str:
        """Return the last value of a query parameter."""
        values = self.query.get(name)
        return values[-1] if values else default


class Response(msgspec.Struct, frozen=True):
    """A whole response; Content-Length is added by the server."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StreamingResponse:
    """A response, such as a watch, whose chunks are produced while it is sent. Leaving ``open_chunks`` ends the producer."""

    status: int
    open_chunks: Callable[[], AbstractAsyncContextManager[AsyncIterator[bytes]]]
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A reply that switches the connection from HTTP to ``protocol`` (101); ``run`` then serves that protocol on the stream.

    If the client did not ask for this protocol, the server answers with 400. ``run`` does not close the stream: the server closes
    the connection when ``run`` returns. ``run`` is cancelled if the server is drained.
    """

    protocol: str
    run: Callable[[trio.abc.Stream], Awaitable[None]]
    headers: tuple[tuple[str, str], ...] = field(default=())
    status: int = 101


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A reply that closes the connection without an answer, as if the server had died; for intentional faults."""


class CutError(Exception):
    """An error that the producer of a streamed response raises to close the connection too early, as an intentional fault."""


def is_cut(error: Exception) -> bool:
    """Return whether an exception, or every exception of a group, is a :class:`CutError`."""
    return isinstance(error, CutError) or (isinstance(error, ExceptionGroup) and error.split(CutError)[1] is None)


Answer = Response | StreamingResponse | Upgrade | NoAnswer
Handler = Callable[[Request], Awaitable[Answer]]
"""A function that answers one request.

For an expected failure it returns a response. An exception is a bug: the server logs it, and answers with 500.
"""
