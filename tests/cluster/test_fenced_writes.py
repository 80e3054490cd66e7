"""Writes of a former Lease holder. Each write is held up at a point where it can wait, until another daemon has taken over.

The server, the connections and both clients are real. The old leader's clock is moved by hand.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.cluster.support.client_contract import config_map, key
from tests.cluster.support.tcp_proxy import TcpProxy, open_proxy
from tests.programs import PATIENCE_S
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.errors import FencedError, NotFoundError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.api.pod_exec import PodCommand
from wharfinger.cluster.lease.fence import Fence
from wharfinger.control_plane.faults.rule import ErrorAnswer, Rule, Selection
from wharfinger.control_plane.serving import Address, Faults, serve_control_plane
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.pools.pods.resources import POD


class Clock:
    """A clock that tests advance."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Leaders:
    """The old leader, whose requests go through a proxy, and the new leader."""

    old: HttpClusterClient
    new: HttpClusterClient
    proxy: TcpProxy
    clock: Clock

    async def write(self, client: HttpClusterClient, value: str) -> None:
        """Apply the object that both leaders write, with a value."""
        body: JsonObject = {**config_map("a"), "data": {"v": value}}
        await client.apply(body, field_manager="wharfinger", force=True)

    async def take_over(self) -> None:
        """Advance the old leader's clock past the end of its Lease, and write with the new leader."""
        self.clock.now += 60.0
        await self.write(self.new, "new")

    async def value(self) -> str:
        return find_str(await self.new.get(key("a")), "data", "v")


@asynccontextmanager
async def leaders(folder: Path, *, at_once: int = 8, rules: tuple[Rule, ...] = ()) -> AsyncIterator[Leaders]:
    """Open two clients of one control plane over TLS. The old leader may write for ten seconds of its clock."""
    path, clock = folder / "kubeconfig", Clock()
    fence = Fence(clock, clock)
    fence.permit(10.0)
    options = ClientOptions(concurrency=at_once, before_write=fence.check)
    async with serve_control_plane(Address("127.0.0.1", 0), path, "t", simulate=False, tls=True, faults=Faults(rules)):
        connection = await trio.to_thread.run_sync(load_connection, path)
        async with open_proxy(urlsplit(connection.server).port or 0) as proxy:
            behind = replace(connection, server=f"https://127.0.0.1:{proxy.port}")
            async with open_client(behind, options=options) as old, open_client(connection) as new:
                found = Leaders(old, new, proxy, clock)
                await found.write(old, "old")
                assert await found.value() == "old"
                yield found


async def refused(found: Leaders, refusals: list[FencedError]) -> None:
    with pytest.raises(
        FencedError, match="not sent, because this daemon does not hold the Lease: it was not renewed"
    ) as caught:
        await found.write(found.old, "late")
    refusals.append(caught.value)


async def test_a_write_that_waited_for_its_connection_is_fenced(tmp_path: Path) -> None:
    refusals: list[FencedError] = []
    async with leaders(tmp_path) as found:
        found.proxy.drop()
        await wait_all_tasks_blocked(0.05)
        found.proxy.silence()  # the handshake of the next connection does not complete
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(refused, found, refusals)
                while not found.proxy.held:
                    await wait_all_tasks_blocked(0.01)
                await found.take_over()
                found.proxy.speak()
        assert len(refusals) == 1
        assert await found.value() == "new"


async def test_a_write_that_waited_for_its_turn_is_fenced(tmp_path: Path) -> None:
    refusals: list[FencedError] = []
    async with leaders(tmp_path, at_once=1) as found:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                found.proxy.silence()
                nursery.start_soon(found.old.get, key("a"))
                await wait_all_tasks_blocked(0.05)
                nursery.start_soon(refused, found, refusals)
                await wait_all_tasks_blocked(0.05)
                await found.take_over()
                found.proxy.speak()
        assert len(refusals) == 1
        assert await found.value() == "new"


@pytest.mark.slow
async def test_a_write_that_waited_for_its_next_attempt_is_fenced(tmp_path: Path) -> None:
    refusals: list[FencedError] = []
    busy = ErrorAnswer(429, "TooManyRequests", "slow down", retry_after_s=1)
    rule = Rule(busy, Selection(verbs=frozenset({"patch"})), skip=1, times=1)
    async with leaders(tmp_path, rules=(rule,)) as found:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(refused, found, refusals)
                while not found.old.pace().refused:
                    await wait_all_tasks_blocked(0.01)
                await found.take_over()
        assert len(refusals) == 1
        assert await found.value() == "new"


def ignore(_data: bytes) -> None:
    pass


async def test_a_command_in_a_pod_is_fenced_although_it_is_a_get(tmp_path: Path) -> None:
    async with leaders(tmp_path) as found:
        await found.take_over()
        command = PodCommand(ObjectKey(POD, "default", "worker"), ("sh", "-c", "true"))
        with pytest.raises(FencedError, match=r"run a command in .*worker: not sent"):
            await found.old.executor.run(command, stdout=ignore, stderr=ignore)
        with pytest.raises(NotFoundError):
            await found.new.executor.run(command, stdout=ignore, stderr=ignore)


async def test_reads_are_not_fenced(tmp_path: Path) -> None:
    async with leaders(tmp_path) as found:
        await found.take_over()
        assert find_str(await found.old.get(key("a")), "data", "v") == "new"
        with pytest.raises(FencedError):
            await found.old.delete(key("a"))
        with pytest.raises(FencedError):
            await found.old.create(config_map("b"))
