"""Tests with many concurrent clients, whose answers are compared with a model.

The server runs in this process, or in another process that is killed a few times.
"""

import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import trio

from tests.control_plane.support.model import Story, revision_of
from tests.control_plane.support.model_clients import MAPS, SELECTOR, Follower, Writer
from tests.programs import ROOT
from tests.scale import scaled
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import JsonObject, as_object, find_list

TOKEN = "model-" + "x" * 20
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'httpx:ResourceWarning")
"""If a stream is cancelled, httpx leaves its generators to the garbage collector."""


class Clients:
    """Clients of one server: some write objects, and others (*followers*) list and watch them."""

    def __init__(self, seed: int, new: Callable[[], httpx.AsyncClient], opened: AsyncExitStack) -> None:
        self.story = Story()
        self._new = new
        self._opened = opened
        self._rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.followers: list[Follower] = []

    async def client(self) -> httpx.AsyncClient:
        return await self._opened.enter_async_context(self._new())

    async def run(self, writers: int, writes: int, nursery: trio.Nursery) -> None:
        """Run writers and followers until the writers are done. The followers continue to run in ``nursery``."""
        for _ in range(3):
            self.followers.append(Follower(self.story, await self.client()))
            nursery.start_soon(self.followers[-1].run)
        for follower in self.followers:
            await follower.until(0)
        async with trio.open_nursery() as busy:
            for number in range(writers):
                rng = random.Random(self._rng.random())  # noqa: S311 - repeatable on purpose
                busy.start_soon(Writer(self.story, await self.client(), number, rng).run, writes)

    async def settle(self) -> list[JsonObject]:
        """Wait until every follower has seen a last write, and return the final list of objects without this write."""
        client = await self.client()
        marker = {"metadata": {"name": "zz-end", "labels": {"model": "1"}}}
        made = (await client.post(MAPS, json=marker)).json()
        with trio.fail_after(60):
            for follower in self.followers:
                await follower.until(revision_of(made))
        for follower in self.followers:
            follower.objects.pop("zz-end")
        self.story.watched = [event for event in self.story.watched if event[1] != "zz-end"]
        listed = (await client.get(f"{MAPS}?{SELECTOR}")).json()
        whole: JsonObject = {"kind": "ConfigMap", "apiVersion": "v1"}
        items = [{**whole, **as_object(item, "item")} for item in find_list(listed, "items")]
        return [item for item in items if as_object(item["metadata"], "metadata")["name"] != "zz-end"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(scaled(200, 8)))
async def test_concurrent_clients_in_memory_see_a_consistent_history(seed: int) -> None:
    storage = MemoryStorage(history_limit=random.Random(seed).choice((6, 10_000)))  # noqa: S311
    async with AsyncExitStack() as opened:
        plane = await opened.enter_async_context(open_control_plane(storage=storage))
        clients = Clients(seed, lambda: httpx.AsyncClient(transport=plane.transport(), base_url=LOCAL), opened)
        async with trio.open_nursery() as nursery:
            await clients.run(6, scaled(60, 25), nursery)
            final = await clients.settle()
            nursery.cancel_scope.cancel()
        clients.story.check(final, [follower.objects for follower in clients.followers])


@contextmanager
def served(folder: Path, port: int) -> Iterator["subprocess.Popen[str]"]:
    """Run a server on a data file in a separate process, and kill it at the end of the block."""
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    command = [sys.executable, "-m", "wharfinger", "control-plane", "--no-tls", "--listen", f"127.0.0.1:{port}"]
    command += [
        "--kubeconfig",
        str(folder / "kubeconfig"),
        "--token-file",
        str(token),
        "--data",
        str(folder / "data.db"),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "ready" in process.stdout.readline()
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("seed", range(scaled(12, 1)))
async def test_concurrent_clients_of_a_killed_server_see_a_consistent_history(seed: int, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
    headers = {"authorization": f"Bearer {TOKEN}"}
    last, over = trio.Event(), trio.Event()

    def serve_and_kill() -> None:
        """Start the server and kill it a few times. After that, serve until the end of the test."""
        for _ in range(scaled(6, 2)):
            with served(tmp_path, port):
                trio.from_thread.run(trio.sleep, rng.uniform(0.4, 1.2))
        with served(tmp_path, port):
            trio.from_thread.run_sync(last.set)
            trio.from_thread.run(over.wait)

    async with AsyncExitStack() as opened, trio.open_nursery() as servers:
        servers.start_soon(trio.to_thread.run_sync, serve_and_kill)
        url = f"http://127.0.0.1:{port}"
        clients = Clients(seed, lambda: httpx.AsyncClient(base_url=url, headers=headers), opened)
        async with trio.open_nursery() as nursery:
            await clients.run(6, scaled(1500, 100), nursery)
            await last.wait()
            final = await clients.settle()
            nursery.cancel_scope.cancel()
        over.set()
    clients.story.check(final, [follower.objects for follower in clients.followers])
