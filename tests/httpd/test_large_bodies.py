"""The memory for large request bodies. All connections of a server share this memory. Small bodies are never refused."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import trio
import trio.testing

from tests.httpd.raw import Recorder
from tests.httpd.test_server import Arrivals, asking, serving
from wharfinger.httpd.large_bodies import SMALL_BODY, LargeBodies
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.messages import Request, Response
from wharfinger.httpd.server import open_server
from wharfinger.httpd.target import RefusedRequestError

MOST = 2 * SMALL_BODY
LIMITS = HttpLimits(body_bytes=MOST, large_bodies_bytes=3 * SMALL_BODY)


@dataclass(eq=False)
class Client:
    """A fake connection. ``slow`` is True if its client is slow. ``retired`` is the reason for which the connection was closed
    to free memory for other connections, or "".
    """

    slow: bool = False
    retired: str = ""

    def retire(self, reason: str) -> None:
        self.retired = reason


def test_memory_is_taken_and_released() -> None:
    bodies, first, second = LargeBodies(MOST), Client(), Client()
    bodies.take(second, SMALL_BODY)
    bodies.take(first, MOST)
    bodies.take(first, MOST)  # the same request takes its memory again
    bodies.take(second, SMALL_BODY)
    with pytest.raises(RefusedRequestError, match="too many large requests"):
        bodies.take(second, SMALL_BODY + 1)
    bodies.give_back(second)  # the small body took no shared memory
    bodies.give_back(first)
    bodies.take(second, MOST)
    assert (first.retired, second.retired) == ("", "")
    for each in (first, second):
        LargeBodies(0).take(each, 10 * MOST)


def test_slow_connections_are_closed_for_others() -> None:
    bodies, clients, late = LargeBodies(2 * MOST), (Client(slow=True), Client(slow=True)), Client()
    for each in clients:
        bodies.take(each, MOST)
    bodies.take(late, MOST)
    assert [bool(each.retired) for each in clients] == [True, False]
    bodies.give_back(clients[0])  # the closed connection releases its memory
    clients[1].slow = False
    with pytest.raises(RefusedRequestError):
        bodies.take(Client(), MOST)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_large_body_beyond_the_limit_is_refused_while_small_ones_are_answered(*, chunked: bool) -> None:
    go_on, begun = trio.Event(), trio.Event()
    handler = Recorder()

    async def hold(request: Request) -> Response:
        if request.path == "/held":
            begun.set()
            await go_on.wait()
        answer = await handler(request)
        assert isinstance(answer, Response)
        return Response(200, b"ok")

    async def pieces() -> AsyncIterator[bytes]:
        yield large

    large = b"x" * (SMALL_BODY + 1)
    async with serving(hold, LIMITS) as port, asking(port) as client, trio.open_nursery() as nursery:
        for number in range(3):  # each request releases its memory
            assert (await client.post(f"/{number}", content=b"x" * MOST)).status_code == 200

        async def held() -> None:
            assert (await client.post("/held", content=b"x" * MOST)).status_code == 200

        nursery.start_soon(held)
        await begun.wait()
        refused = await client.post("/large", content=pieces() if chunked else large)
        assert (refused.status_code, "too many large requests" in refused.text) == (503, True)
        assert (await client.post("/small", content=b"x" * SMALL_BODY)).status_code == 200
        go_on.set()
    assert [request.path for request in handler.seen if request.path == "/large"] == []


async def test_a_large_body_that_does_not_arrive_blocks_no_other(autojump_clock: trio.testing.MockClock) -> None:
    arrivals, handler = Arrivals(), Recorder()
    head = b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
    async with open_server([arrivals], handler, LIMITS):
        stuck, late = arrivals.connect(), [arrivals.connect() for _ in range(2)]
        await stuck.send_all(head % (1, MOST) + b"x")
        await trio.testing.wait_all_tasks_blocked()
        await late[0].send_all(head % (2, MOST) + b"x" * MOST)
        assert b"503" in await late[0].receive_some()
        await trio.sleep(0.3)  # meanwhile the first one is slow
        await late[1].send_all(head % (3, MOST) + b"x" * MOST)
        assert b"200 OK" in await late[1].receive_some()
        assert await stuck.receive_some() == b""
    assert [request.path for request in handler.seen] == ["/3"]
