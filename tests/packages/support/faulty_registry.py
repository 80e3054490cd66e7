"""A loopback server that gives scripted replies, even wrong ones, for tests of the errors of a registry client.

Replies are listed by method and path (without the query). The last reply is repeated. Each connection serves one request.
"""

import hashlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h11
import trio

from wharfinger.packages.digest import digest_of
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.manifest import HELM_CHART, HELM_CONFIG, OCI_MANIFEST, write_manifest
from wharfinger.packages.registry.registry import Descriptor

REPOSITORY = "charts/web"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply to one request.

    ``cut`` ends the connection after this many bytes of the body. ``hang`` sends nothing until the client disconnects. ``stay``
    keeps the connection open after the reply.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    cut: int | None = None
    hang: bool = False
    chunked: bool = False
    stay: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class FaultyRegistry:
    """A server with its script and the requests that it has received. If ``answer`` is set, it replaces the script."""

    address: RegistryAddress
    answer: Callable[[Request], Reply] | None = None
    script: dict[tuple[str, str], list[Reply]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def on(self, method: str, path: str, *replies: Reply) -> None:
        """Set the replies to requests with this method and path, in order."""
        self.script[method, path] = list(replies)

    def manifest(self, reference: str, *replies: Reply) -> None:
        """Set the replies to requests for a manifest of REPOSITORY."""
        self.on("GET", f"/v2/{REPOSITORY}/manifests/{reference}", *replies)

    def blob(self, blob: Descriptor, *replies: Reply) -> None:
        """Set the replies to requests for a blob of REPOSITORY."""
        self.on("GET", f"/v2/{REPOSITORY}/blobs/{blob.digest}", *replies)

    def asked(self) -> list[tuple[str, str]]:
        """Return the method and path of each request so far."""
        return [(request.method, request.path) for request in self.requests]

    def next_reply(self, request: Request) -> Reply:
        """Return the next reply to a request. It is 404 if the script has none."""
        if self.answer is not None:
            return self.answer(request)
        replies = self.script.get((request.method, request.path), [Reply(404)])
        return replies.pop(0) if len(replies) > 1 else replies[0]


@asynccontextmanager
async def open_faulty_registry(tls: ssl.SSLContext | None = None) -> AsyncIterator[FaultyRegistry]:
    """Serve while the block runs, over TLS if a context is given."""
    async with trio.open_nursery() as nursery:
        listeners: list[trio.SocketListener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        registry = FaultyRegistry(RegistryAddress("127.0.0.1", listeners[0].socket.getsockname()[1]))

        async def serve(plain: trio.SocketStream) -> None:
            stream = plain if tls is None else trio.SSLStream(plain, tls, server_side=True, https_compatible=True)
            async with stream:
                try:
                    await _serve(registry, stream)
                except (trio.BrokenResourceError, h11.RemoteProtocolError):
                    return  # The client disconnected, as some tests intend.

        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield registry
        nursery.cancel_scope.cancel()


async def _serve(registry: FaultyRegistry, stream: trio.abc.Stream) -> None:
    connection = h11.Connection(h11.SERVER)
    head: h11.Request | None = None
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some()))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            break
        else:
            return
    assert head is not None
    path, _, query = head.target.decode().partition("?")
    headers = {name.decode(): value.decode() for name, value in head.headers}
    request = Request(head.method.decode(), path, query, headers, body)
    registry.requests.append(request)
    await _answer(registry.next_reply(request), request, stream)


async def _answer(reply: Reply, request: Request, stream: trio.abc.Stream) -> None:
    if reply.hang:
        await stream.receive_some()
        return
    headers = [*reply.headers, ("Connection", "close")]
    if reply.chunked:
        headers.append(("Transfer-Encoding", "chunked"))
    elif not any(name.lower() == "content-length" for name, _ in headers):
        headers.append(("Content-Length", str(len(reply.body))))
    text = f"HTTP/1.1 {reply.status} Scripted\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
    body = b"" if request.method == "HEAD" else reply.body
    if reply.chunked:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    await stream.send_all(text.encode() + body[: reply.cut])
    if reply.stay:
        await stream.receive_some()


@dataclass(frozen=True, slots=True)
class Sample:
    """An artifact from which tests make replies: its manifest, the descriptor of the manifest, and its only layer."""

    layer: Descriptor
    layer_bytes: bytes
    manifest_bytes: bytes
    manifest: Descriptor


def sample(layer: bytes = b"the layer") -> Sample:
    """Return a small valid artifact."""
    chart = Descriptor(HELM_CHART, digest_of(layer), len(layer))
    config = Descriptor(HELM_CONFIG, digest_of(b"{}"), 2)
    data = write_manifest(config, (chart,), {})
    return Sample(chart, layer, data, Descriptor(OCI_MANIFEST, digest_of(data), len(data)))


def same_length(data: bytes) -> bytes:
    """Return other bytes that are equally long."""
    return (hashlib.sha512(data).digest() * (len(data) // 64 + 1))[: len(data)]


def error_body(code: str, message: str) -> bytes:
    """Return an error document of the distribution specification."""
    return b'{"errors":[{"code":"%s","message":"%s"}]}' % (code.encode(), message.encode())
