"""The deadlines after which the server disconnects clients."""

import pytest
import trio
import trio.testing

from tests.httpd.raw import GET, POST, SMALL, Recorder, Ticker, read_answers
from wharfinger.httpd.server import serve_connection


@pytest.mark.parametrize(
    ("sent", "status", "after"),
    [
        (b"", None, SMALL.idle_s),
        (b"G", 408, SMALL.header_read_s),
        (GET % b"/" + b"G", 408, SMALL.header_read_s),
        (POST % (b"/", b"Content-Length: 5", b"abc"), 408, SMALL.body_read_s),
        (POST % (b"/", b"Transfer-Encoding: chunked", b"5\r\nabc"), 408, SMALL.body_read_s),
    ],
)
async def test_the_server_waits_for_a_client_within_deadlines(
    sent: bytes, status: int | None, after: float, autojump_clock: trio.testing.MockClock
) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        await client.send_all(sent)
        answers = read_answers(b"".join([chunk async for chunk in client]))
        assert trio.current_time() == pytest.approx(after)
        assert [answer.status for answer in answers[-1:]] == ([] if status is None else [status])
        await client.aclose()


async def test_a_slowly_sent_request_has_the_same_deadline(autojump_clock: trio.testing.MockClock) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        with trio.move_on_after(60):
            async with trio.open_nursery() as both:

                async def trickle() -> None:
                    while True:
                        await client.send_all(b"a")
                        await trio.sleep(1)

                both.start_soon(trickle)
                assert read_answers(b"".join([chunk async for chunk in client]))[0].status == 408
                assert trio.current_time() == pytest.approx(SMALL.header_read_s)
                both.cancel_scope.cancel()
        await client.aclose()


async def test_idle_time_counts_from_the_last_answer(autojump_clock: trio.testing.MockClock) -> None:
    client, server = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, Recorder(), SMALL)
        for _ in range(3):
            await trio.sleep(SMALL.idle_s - 1)
            await client.send_all(GET % b"/")
            assert read_answers(bytes(await client.receive_some()))[0].status == 200
        assert await client.receive_some() == b""
        assert trio.current_time() == pytest.approx(3 * (SMALL.idle_s - 1) + SMALL.idle_s)


@pytest.mark.parametrize("path", [b"/whole", b"/watch"])
async def test_a_client_that_does_not_read_its_answer_is_disconnected(
    path: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    ticker = Ticker()
    client, server = trio.testing.lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_connection, server, ticker.handler, SMALL)
        await client.send_all(GET % path)
        if path == b"/watch":
            await ticker.closed.wait()
        else:
            await trio.sleep(SMALL.write_s + 1)
        assert SMALL.write_s <= trio.current_time() <= SMALL.write_s + 1
        with pytest.raises(trio.BrokenResourceError):
            await client.send_all(b"x")
