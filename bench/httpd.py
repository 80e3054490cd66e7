"""The HTTP server: requests one after the other over one connection, against a plain h11 loop."""

from collections.abc import Iterator

import h11
import trio

from bench.measure import Ratio, compare_async
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.messages import Request, Response
from wharfinger.httpd.server import serve_connection

REQUESTS = 200
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def measure(long: bool) -> Iterator[Ratio]:
    """Measure small requests on one connection."""
    yield from trio.run(_measure)


async def _measure() -> list[Ratio]:
    async def handler(_request: Request) -> Response:
        return Response(200, b"ok\n", "text/plain")

    async def ours() -> None:
        await _drive(lambda stream: serve_connection(stream, handler, HttpLimits()))

    async def theirs() -> None:
        await _drive(_bare)

    what = f"{REQUESTS} requests, one connection"
    return [await compare_async("httpd", what, "bare h11 loop, no limits", ours, theirs, budget=3.0)]


async def _drive(serve: "object") -> None:
    """Send requests one by one over a socket pair and read each answer."""
    assert callable(serve)
    near, far = trio.socket.socketpair()
    client = trio.SocketStream(near)
    async with trio.open_nursery() as nursery, client:
        nursery.start_soon(serve, trio.SocketStream(far))
        for _ in range(REQUESTS):
            await client.send_all(GET)
            answer = b""
            while not answer.endswith(b"ok\n"):
                answer += await client.receive_some()


async def _bare(stream: trio.SocketStream) -> None:
    async with stream:
        connection = h11.Connection(h11.SERVER)
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.ConnectionClosed):
                return
            elif isinstance(event, h11.EndOfMessage):
                head = h11.Response(status_code=200, headers=[("content-length", "3"), ("content-type", "text/plain")])
                out = connection.send(head) or b""
                out += connection.send(h11.Data(data=b"ok\n")) or b""
                out += connection.send(h11.EndOfMessage()) or b""
                await stream.send_all(out)
                connection.start_next_cycle()
