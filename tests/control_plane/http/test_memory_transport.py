from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import httpx
import pytest
import trio
import trio.testing

from wharfinger.control_plane.http.memory_transport import MemoryTransport
from wharfinger.httpd.messages import Handler, Request, Response, StreamingResponse


def client(handler: Handler) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=MemoryTransport(handler), base_url="http://in-memory.invalid")


async def test_the_handler_gets_the_whole_request() -> None:
    seen: list[Request] = []

    async def handler(request: Request) -> Response:
        seen.append(request)
        return Response(201, b"made", "text/plain", (("warning", "one"), ("warning", "two")))

    async with client(handler) as http:
        response = await http.post(
            "/a%20b", params=[("x", "1"), ("x", "2")], content=b"body", headers=[("X-Many", "1"), ("x-many", "2")]
        )

    assert (response.status_code, response.content, response.headers["content-type"]) == (201, b"made", "text/plain")
    assert response.headers.get_list("warning") == ["one", "two"]
    [request] = seen
    assert (request.method, request.path, request.body) == ("POST", "/a b", b"body")
    assert (request.arg("x"), request.query["x"]) == ("2", ("1", "2"))
    assert request.headers["x-many"] == "1, 2"


async def test_a_body_in_several_chunks_is_joined() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    async def handler(request: Request) -> Response:
        return Response(200, request.body)

    async with client(handler) as http:
        assert (await http.post("/", content=pieces())).content == b"one two"


async def test_an_invalid_target_is_refused() -> None:
    async def handler(request: Request) -> Response:
        raise AssertionError(f"{request.path!r} came through")

    async with client(handler) as http:
        response = await http.get("/a%00b")
    assert response.status_code == 400
    assert "control character" in response.text


async def test_exceptions_of_the_handler_reach_the_client() -> None:
    async def handler(_: Request) -> Response:
        raise LookupError("a bug")

    async with client(handler) as http:
        with pytest.raises(LookupError, match="a bug"):
            await http.get("/")


async def test_each_request_is_a_checkpoint() -> None:
    async def handler(_: Request) -> Response:
        return Response(200)

    async with client(handler) as http:
        with trio.testing.assert_checkpoints():
            await MemoryTransport(handler).handle_async_request(http.build_request("GET", "/"))


class _Producer:
    """A handler whose response sends three numbers and then does not end. ``log`` records when it is opened and closed."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def __call__(self, _: Request) -> StreamingResponse:
        return StreamingResponse(200, self._open, "application/json", (("warning", "w"),))

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[AsyncIterator[bytes], None]:
        self.log.append("opened")
        try:
            async with aclosing(self._chunks()) as chunks:
                yield chunks
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
            self.log.append("closed")

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        for number in range(3):
            yield b"%d\n" % number
        await trio.sleep_forever()


async def test_a_stream_runs_from_the_first_read_until_its_end() -> None:
    producer = _Producer()

    response = await MemoryTransport(producer).handle_async_request(httpx.Request("GET", "http://in-memory.invalid/"))
    assert (response.headers["content-type"], response.headers["warning"]) == ("application/json", "w")
    assert producer.log == []
    assert isinstance(response.stream, httpx.AsyncByteStream)
    chunks = aiter(response.stream)
    assert [await anext(chunks) for _ in range(3)] == [b"0\n", b"1\n", b"2\n"]
    assert producer.log == ["opened"]
    with trio.CancelScope() as scope:
        scope.cancel()
        await response.aclose()
    assert producer.log == ["opened", "closed"]


async def test_a_stream_ends_if_its_reader_is_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    producer = _Producer()

    with trio.move_on_after(10) as scope:
        async with client(producer) as http, http.stream("GET", "/") as response:
            async for _ in response.aiter_bytes():
                assert autojump_clock.current_time() < 10

    assert scope.cancelled_caught
    assert producer.log == ["opened", "closed"]


async def test_an_unread_stream_is_never_opened() -> None:
    producer = _Producer()
    async with client(producer) as http, http.stream("GET", "/"):
        pass
    assert producer.log == []
