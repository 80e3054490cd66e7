"""One request over a real socket, and the error message if no daemon answers."""

import errno
import socket
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
import trio

from tests.debug.support.canned import CannedInspector
from tests.debug.support.socket_client import exchange_in_thread, socket_client
from tests.programs import PATIENCE_S
from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.exchange import Question, Reply, exchange_blocking, run_without_loop
from wharfinger.debug.errors import NoDaemonError
from wharfinger.debug.server.server import open_debug_server


async def test_requests_get_the_status_and_body_of_the_server(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    async with open_debug_server(path, CannedInspector()):
        for parameters, status in (({"name": "prod.shop"}, 200), ({"name": "a&b=c ü"}, 200), ({"what": ""}, 400)):
            reply = await exchange_in_thread(path, Question("/api/v1/packages/dump", parameters, 30.0))
            assert (reply.status, bool(reply.body)) == (status, True)
        assert (await exchange_in_thread(path, Question("/healthz", {}, 30.0, b"x"))).status == 405


def test_a_coroutine_that_never_waits_runs_without_an_event_loop() -> None:
    async def answer() -> int:
        return 5

    async def fail() -> int:
        raise NoDaemonError("none")

    assert run_without_loop(answer()) == 5
    with pytest.raises(NoDaemonError, match="none"):
        run_without_loop(fail())


async def test_a_coroutine_that_waits_is_refused_without_an_event_loop() -> None:
    async def wait() -> None:
        await trio.lowlevel.checkpoint()

    with pytest.raises(AssertionError, match="waited for an event loop"):
        run_without_loop(wait())


async def ask(path: Path) -> None:
    await socket_client(path).daemon()


async def test_a_missing_socket_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    with pytest.raises(NoDaemonError) as raised:
        await ask(path)
    assert str(raised.value) == (
        f"no daemon answers on {path}: no such socket;"
        " start `wharfinger run`, or name its socket with --socket or WHARFINGER_SOCKET"
    )


async def test_a_stale_socket_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(path))
        gone.listen()
    with pytest.raises(
        NoDaemonError, match=r"no daemon answers on .*: the daemon of this socket has exited; start `wharf"
    ):
        await ask(path)


async def test_a_folder_or_a_file_instead_of_a_socket_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NoDaemonError, match="the file is not a socket; start `wharf"):
        await ask(tmp_path / "file")
    with pytest.raises(NoDaemonError, match="it is a folder; name a socket"):
        await ask(tmp_path)
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "run" / "debug.sock"))
        with pytest.raises(NoDaemonError, match=f"it is a folder; the socket in it is {tmp_path}/run/debug.sock"):
            await ask(tmp_path)


async def test_a_regular_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NoDaemonError, match=r"no daemon answers on .*the file is not a socket"):
        await ask(tmp_path / "file")


async def test_the_remedy_for_too_long_a_path_is_a_shorter_one(tmp_path: Path) -> None:
    with pytest.raises(NoDaemonError, match=r"bytes is too long for a socket .*name a shorter one with --socket"):
        await ask(tmp_path / ("x" * 200))


async def test_a_connection_closed_without_an_answer_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def hang_up() -> None:
            listening.accept()[0].close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, hang_up)
            with pytest.raises(NoDaemonError, match="no daemon answers on"):
                await ask(path)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (PermissionError(errno.EACCES, "denied"), "belongs to another user; run this command as"),
        (PermissionError(errno.EPERM, "denied"), "belongs to another user; run this command as"),
        (TimeoutError("timed out"), "does not answer in time"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), r"reset; start `wharfinger run`, or name its socket"),
        (OSError(), r"the answer was complete; start `wharfinger run`, or name its socket"),
        (OSError("half a message"), "half a message"),
    ],
)
def test_errors_of_connect_are_reported(
    error: OSError, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(socket.socket):
        def connect(self, _address: object, /) -> None:
            raise error

    monkeypatch.setattr("wharfinger.debug.client.exchange.socket.socket", Refusing)
    with pytest.raises(NoDaemonError, match=why):
        run_without_loop(DebugClient(tmp_path / "debug.sock").daemon())


def test_a_stopped_daemon_is_reported_after_the_timeout(tmp_path: Path) -> None:
    """If the daemon's process is stopped (SIGSTOP), the kernel still accepts connections, but nothing answers."""
    path = tmp_path / "debug.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        with pytest.raises(NoDaemonError, match="does not answer in time; check whether it is stopped or busy"):
            run_without_loop(exchange_blocking(path, Question("/healthz", {}, 0.01)))


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello and more", Reply(200, b"hello")),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", Reply(204, b"")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Reply(200, None)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n", Reply(200, None)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Reply(200, None)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "closed"),
        (b"SSH-2.0-x\r\n\r\n", "not HTTP"),
        (b"x" * 100_000, "not HTTP"),
    ],
)
def test_answers_of_any_http_server_are_parsed(answer: bytes, reply: Reply | str, tmp_path: Path) -> None:
    check_answer(answer, reply, tmp_path, Question("/x", {"a": "b c"}, PATIENCE_S))


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", Reply(200, b"hello")),
        (CHUNKED + b"5;a=b\r\nhel\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", Reply(200, b"hel\r\n0123456789")),
        (CHUNKED + b"0\r\n\r\n", Reply(200, b"")),
        (CHUNKED + b"5\r\nhello\r\n", "closed"),
        (CHUNKED + b"5\r\nhel", "closed"),
        (CHUNKED + b"fffffffff\r\n", Reply(200, None)),
        (CHUNKED + b"-1\r\n", "not HTTP"),
        (CHUNKED + b"\r\n", "not HTTP"),
        (CHUNKED + b"x" * 100_000, "not HTTP"),
        (b"HTTP/1.1 503 x\r\nContent-Length: 2\r\n\r\nno", Reply(503, b"no")),
    ],
)
def test_streamed_answers_are_parsed(answer: bytes, reply: Reply | str, tmp_path: Path) -> None:
    check_answer(answer, reply, tmp_path, Question("/x", {}, PATIENCE_S, streamed=True))


def check_answer(answer: bytes, reply: Reply | str, tmp_path: Path, asked: Question) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)

        def serve() -> None:
            with server.accept()[0] as client:
                client.recv(10_000)
                # A client that has read too much closes before the whole answer is sent.
                with suppress(BrokenPipeError, ConnectionResetError):
                    client.sendall(answer)

        thread = Thread(target=serve)
        thread.start()
        question = exchange_blocking(path, asked)
        if isinstance(reply, Reply):
            assert run_without_loop(question) == reply
        else:
            with pytest.raises(NoDaemonError, match=reply):
                run_without_loop(question)
        thread.join()
