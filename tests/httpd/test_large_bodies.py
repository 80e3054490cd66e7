"""The room for large bodies is shared by all connections of a server, and small ones are never kept out."""

from collections.abc import AsyncIterator

import pytest
import trio

from tests.httpd.raw import Recorder
from tests.httpd.test_server import asking, serving
from wharfinger.httpd.large_bodies import SMALL_BODY, LargeBodies
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.messages import Request, Response
from wharfinger.httpd.target import RefusedRequestError

MOST = 2 * SMALL_BODY
LIMITS = HttpLimits(body_bytes=MOST, large_bodies_bytes=3 * SMALL_BODY)


def test_room_is_taken_and_given_back() -> None:
    bodies = LargeBodies(MOST)
    assert bodies.take(SMALL_BODY) == 0
    assert bodies.take(MOST) == MOST
    assert bodies.take(SMALL_BODY) == 0
    with pytest.raises(RefusedRequestError, match="too many large requests"):
        bodies.take(SMALL_BODY + 1)
    bodies.give_back(MOST)
    assert bodies.take(MOST) == MOST
    assert LargeBodies(0).take(10 * MOST) == 0


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_large_body_beyond_the_room_is_refused_while_small_ones_are_answered(*, chunked: bool) -> None:
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
        for number in range(3):  # what earlier requests took is given back
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
