"""A forward proxy on loopback, like those of companies: CONNECT for https, whole URLs for http, and an optional login.

Every host name leads to this machine, so tests can use hosts that do not exist.
"""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

LOGIN = "porter:s3cret-proxy"


@dataclass(slots=True)
class ConnectProxy:
    """A proxy. Its first connection ends after ``cut[0]`` bytes from the server, the second after ``cut[1]`` bytes, and so on."""

    port: int
    demands_login: bool = False
    refuses: bool = False
    requests: list[str] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)

    def url(self, login: str = "") -> str:
        """Return the address of the proxy in the form of HTTPS_PROXY."""
        return f"http://{login}{'@' if login else ''}127.0.0.1:{self.port}"


@asynccontextmanager
async def open_connect_proxy() -> AsyncIterator[ConnectProxy]:
    """Serve the proxy while the block runs."""
    async with trio.open_nursery() as nursery:
        listeners: list[trio.SocketListener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        proxy = ConnectProxy(listeners[0].socket.getsockname()[1])

        async def serve(client: trio.SocketStream) -> None:
            async with client:
                try:
                    await _serve(proxy, client)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    return  # One of the two sides has closed the connection.

        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield proxy
        nursery.cancel_scope.cancel()


async def _serve(proxy: ConnectProxy, client: trio.SocketStream) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        received = bytes(await client.receive_some())
        if not received:
            return
        head += received
    head, _, rest = head.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    method, target, _ = line.split(" ")
    proxy.requests.append(f"{method} {target}")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
    allowed = f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
    if proxy.demands_login and headers.get("proxy-authorization") != allowed:
        await client.send_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        return
    if proxy.refuses:
        await client.send_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        return
    if method == "CONNECT":
        server = await trio.open_tcp_stream("127.0.0.1", int(target.rpartition(":")[2]))
        await client.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        first = rest
    else:
        host, _, path = target.removeprefix("http://").partition("/")
        server = await trio.open_tcp_stream("127.0.0.1", int(host.rpartition(":")[2]))
        kept = [each for each in fields if not each.lower().startswith(("proxy-", "connection:"))]
        first = "\r\n".join((f"{method} /{path} HTTP/1.1", *kept, "Connection: close", "", "")).encode() + rest
    async with server, trio.open_nursery() as nursery:
        await server.send_all(first)
        nursery.start_soon(_copy, client, server, None)
        await _copy(server, client, proxy.cut.pop(0) if proxy.cut else None)
        nursery.cancel_scope.cancel()


async def _copy(source: trio.SocketStream, target: trio.SocketStream, most: int | None) -> None:
    copied = 0
    try:
        while data := bytes(await source.receive_some()):
            if most is not None and copied + len(data) > most:
                await target.send_all(data[: most - copied])
                return
            copied += len(data)
            await target.send_all(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return
