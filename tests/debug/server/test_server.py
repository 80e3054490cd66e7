"""The debug server on a real socket."""

import json
import socket
import stat
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing

from tests.debug.support.canned import CannedInspector
from tests.debug.support.samples import PACKAGES
from tests.debug.support.socket_client import socket_client
from tests.scale import scaled
from wharfinger.debug.addresses import MAX_SETTINGS
from wharfinger.debug.errors import DebugSocketError
from wharfinger.debug.server.server import open_debug_server
from wharfinger.runtime.inspector import PackageSnapshot


def by_hand(path: Path) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path)), base_url="http://daemon")


async def test_the_server_answers_requests_of_an_http_client(tmp_path: Path) -> None:
    path = tmp_path / "run" / "debug.sock"
    async with open_debug_server(path, CannedInspector()), by_hand(path) as client:
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        answer = await client.get("/api/v1/packages/dump", params={"name": "prod.shop", "output": "json"})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert answer.json()["name"] == "prod.shop"
        assert (await client.head("/healthz")).status_code == 200
        refused = await client.post("/healthz", content=b"x")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
        assert (await client.post("/healthz", content=b"x" * (MAX_SETTINGS + 1))).status_code == 413
        assert (await client.get("/%zz".replace("zz", "00"))).status_code == 400
    assert not path.exists()


async def test_many_clients_are_answered_at_once(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    for _ in range(scaled(50, 5)):
        answers: list[tuple[PackageSnapshot, ...]] = []

        async def ask(answers: list[tuple[PackageSnapshot, ...]] = answers) -> None:
            answers.append(await socket_client(path).packages())

        async with open_debug_server(path, CannedInspector()), trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(ask)
        assert answers == [PACKAGES] * 50


async def test_a_second_daemon_is_refused_and_the_first_continues(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    async with open_debug_server(path, CannedInspector()):
        with pytest.raises(DebugSocketError, match="another daemon answers"):
            async with open_debug_server(path, CannedInspector()):
                raise AssertionError("not opened")
        assert (await socket_client(path).daemon()).packages == 3
    assert not path.exists()


async def test_the_socket_of_a_successor_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    async with open_debug_server(path, CannedInspector(contents=())):
        path.unlink()
        async with open_debug_server(path, CannedInspector()):
            assert (await socket_client(path).daemon()).packages == 3
    assert not path.exists()


async def test_an_answer_in_flight_is_sent_before_shutdown(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    asked, go_on, leave = trio.Event(), trio.Event(), trio.Event()

    class Slow(CannedInspector):
        async def packages(self) -> tuple[PackageSnapshot, ...]:
            asked.set()
            await go_on.wait()
            return await super().packages()

    async def serve() -> None:
        async with open_debug_server(path, Slow()):
            await leave.wait()

    client = socket_client(path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await trio.testing.wait_all_tasks_blocked()
        answers = []

        async def ask() -> None:
            answers.append(await client.packages())

        nursery.start_soon(ask)
        await asked.wait()
        leave.set()
        await trio.testing.wait_all_tasks_blocked()
        assert not path.exists()
        go_on.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert answers == [PACKAGES]


async def test_an_inherited_listener_is_served_and_its_file_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "theirs.sock"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    listening.bind(str(path))
    listening.listen()
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
    async with open_debug_server(tmp_path / "ours.sock", CannedInspector(), listener=listener):
        assert (await socket_client(path).daemon()).pid == 4711
        assert not (tmp_path / "ours.sock").exists()
    assert path.exists()


async def test_an_exception_of_the_inspector_is_a_500_and_the_daemon_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "debug.sock"

    class Broken(CannedInspector):
        async def queues(self) -> tuple[()]:
            raise KeyError("bug")

    async with open_debug_server(path, Broken()), by_hand(path) as client:
        assert (await client.get("/api/v1/queues/dump")).status_code == 500
        assert json.loads((await client.get("/api/v1/daemon")).content)["pid"] == 4711
    assert len(caplog.records) == 1


async def test_the_socket_is_removed_when_the_daemon_crashes(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"

    async def crash() -> None:
        async with open_debug_server(path, CannedInspector()):
            assert path.exists()
            raise KeyError("bug")

    with pytest.raises(ExceptionGroup) as raised:
        await crash()
    assert raised.group_contains(KeyError)
    assert not path.exists()
