"""Watches over real connections with faults of networks and servers. Each watch continues, and no change is lost."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.cluster.support.client_contract import CONFIG_MAP, config_map, key
from tests.cluster.support.tcp_proxy import TcpProxy, open_proxy
from tests.programs import PATIENCE_S
from wharfinger.cluster.api.connection import load_connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.cluster.api.raw_object import RawChange
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.cluster.watch.shared_watches import SharedWatches, open_shared_watches
from wharfinger.control_plane.serving import Address, serve_control_plane
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.control_plane.verbs import watching
from wharfinger.formats.json.value import JsonObject

SILENCE_S = 1.5
OPTIONS = ClientOptions(watch_silence_s=SILENCE_S, random=lambda: 0.0)


@dataclass
class World:
    """A server with a proxy in front of it, two clients (``direct`` does not use the proxy), and two followers of the same
    kind.

    The followers are ``informer`` and a subscriber of ``watches``. ``seen`` has the changes that the subscriber was notified
    of.
    """

    proxy: TcpProxy
    storage: MemoryStorage
    direct: HttpClusterClient
    client: HttpClusterClient
    informer: Informer
    watches: SharedWatches
    seen: list[tuple[str, str]] = field(default_factory=list)
    changed: trio.Event = field(default_factory=trio.Event)

    def take(self, change: RawChange) -> None:
        """Record a change: its type, and the value of its object."""
        value = "" if change.object is None else msgspec.json.decode(change.object.text)["data"]["v"]
        self.seen.append((f"{change.type} {change.key.name}", value))
        self.changed.set()

    async def write(self, client: HttpClusterClient, name: str, values: range) -> None:
        """Write an object once for each value."""
        for value in values:
            body: JsonObject = {**config_map(name), "data": {"v": str(value)}}
            await client.apply(body, field_manager="t", force=True)

    async def followed(self, name: str, value: str) -> None:
        """Wait until both followers (the informer and the subscriber) know an object with this value."""
        with trio.fail_after(PATIENCE_S):
            with self.informer.changes() as changes:
                while (self.informer.get(key(name)) or {}).get("data") != {"v": value}:
                    await changes.wait()
            while not any(seen.endswith(f" {name}") and last == value for seen, last in self.seen):
                await self.changed.wait()
                self.changed = trio.Event()

    def counts(self) -> tuple[int, int]:
        """Return how many lists the informer and the shared watches have requested."""
        return self.informer.statistics().lists, self.watches.statistics()[0].lists


@asynccontextmanager
async def server(folder: Path, storage: MemoryStorage) -> AsyncIterator[tuple[int, HttpClusterClient]]:
    """Serve a control plane on loopback. Yield its port, and a client that does not use the proxy."""
    path = folder / "kubeconfig"
    async with serve_control_plane(Address("127.0.0.1", 0), path, "token", simulate=False, storage=storage):
        connection = await trio.to_thread.run_sync(load_connection, path)
        async with open_client(connection) as client:
            yield urlsplit(connection.server).port or 0, client


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    """Open an informer and a subscription to shared watches, both for ConfigMaps and behind a proxy. Both already know the
    object ``a`` with the value 0.
    """
    storage = MemoryStorage()
    async with AsyncExitStack() as stack:
        port, direct = await stack.enter_async_context(server(folder, storage))
        proxy = await stack.enter_async_context(open_proxy(port))
        connection = await trio.to_thread.run_sync(load_connection, folder / "kubeconfig")
        behind = replace(connection, server=f"http://127.0.0.1:{proxy.port}")
        client = await stack.enter_async_context(open_client(behind, options=OPTIONS))
        informer = await stack.enter_async_context(open_informer(client, CONFIG_MAP, jitter=lambda: 0.9))
        watches = await stack.enter_async_context(open_shared_watches(client, jitter=lambda: 0.9))
        made = World(proxy, storage, direct, client, informer, watches)
        stack.enter_context(watches.subscribe(CONFIG_MAP, "default", "", "", made.take))
        await made.write(direct, "a", range(1))
        await made.followed("a", "0")
        yield made


@pytest.fixture(autouse=True)
def _frequent_bookmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_INTERVAL_S", 0.1)


async def test_a_half_open_connection_times_out_and_every_change_is_reported(tmp_path: Path) -> None:
    async with world(tmp_path) as found:
        lists = found.counts()
        found.proxy.silence()
        await found.write(found.direct, "a", range(1, 6))
        silent = trio.current_time()
        found.proxy.forget()  # new connections work; the existing ones stay silent
        await found.followed("a", "5")
        assert trio.current_time() - silent < PATIENCE_S
        values = [value for what, value in found.seen if what.endswith(" a")]
        assert values == ["0", "1", "2", "3", "4", "5"]
        assert found.counts() == lists, "both watches resumed at their revisions"
        assert found.informer.statistics().failures >= 1


@pytest.mark.slow
async def test_a_cut_in_the_middle_of_a_line_loses_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as found:
        lists = found.counts()
        for round_number in range(1, 4):
            found.proxy.cut, found.proxy.cut_at = trio.Event(), b'"kind":"ConfigMap"'
            await found.write(found.direct, "a", range(round_number, round_number + 1))
            with trio.fail_after(PATIENCE_S):
                await found.proxy.cut.wait()
            await found.followed("a", str(round_number))
        values = [value for what, value in found.seen if what.endswith(" a")]
        assert values == ["0", "1", "2", "3"]
        assert found.counts() == lists


@pytest.mark.slow
async def test_a_watch_that_lost_its_bookmarks_is_replaced(tmp_path: Path) -> None:
    async with world(tmp_path) as found:
        found.proxy.lost = b'"BOOKMARK"'
        with trio.fail_after(PATIENCE_S):
            while not found.informer.statistics().failures:
                await wait_all_tasks_blocked(0.01)
        found.proxy.lost = b""
        await found.write(found.direct, "a", range(1, 3))
        await found.followed("a", "2")
        assert [value for what, value in found.seen if what.endswith(" a")] == ["0", "1", "2"]


async def test_a_revision_forgotten_by_the_server_is_listed_again(tmp_path: Path) -> None:
    async with world(tmp_path) as found:
        found.proxy.silence()
        await found.write(found.direct, "a", range(1, 4))
        await found.write(found.direct, "b", range(1))
        await found.direct.delete(key("a"))
        found.storage.compact()
        await found.write(found.direct, "c", range(1))
        found.proxy.drop()
        found.proxy.forget()
        await found.followed("c", "0")
        assert {one.name for one in found.informer.objects()} == {"b", "c"}
        assert ("DELETED a", "") in found.seen
        assert found.informer.statistics().lists > 1


@pytest.mark.slow
async def test_a_server_that_returns_with_another_history_is_accepted(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with world(tmp_path) as found:
        await found.write(found.direct, "a", range(1, 9))
        await found.followed("a", "8")
        async with server(other, MemoryStorage()) as (port, direct):
            await found.write(direct, "b", range(1))
            found.proxy.upstream = port
            found.proxy.drop()
            await found.followed("b", "0")
            assert {one.name for one in found.informer.objects()} == {"b"}
            assert ("DELETED a", "") in found.seen
