"""Names of existing objects that carry no release label, on a control plane in memory and on scripted servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import CONFIG_MAP, config_map, key
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import Answer, FaultyTransport, Hang, Reply, Until
from tests.cluster.support.watch_script import page
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.objects.live_objects import LiveObjects, open_live_objects
from wharfinger.cluster.objects.ownership import RELEASE_LABEL
from wharfinger.cluster.objects.unmarked_names import UnmarkedNames
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject

LABEL: JsonObject = {RELEASE_LABEL: "web"}


@asynccontextmanager
async def live_objects(client: ClusterClient, most: int = 100) -> AsyncIterator[LiveObjects]:
    async with (
        open_shared_watches(client, jitter=lambda: 0.0) as watches,
        open_live_objects(client, watches, unmarked=UnmarkedNames(watches, most)) as live,
    ):
        yield live


async def test_an_object_is_absent_only_if_the_watch_does_not_report_it(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, live_objects(client) as live:
        await client.create(config_map("before"))
        await client.create(config_map("ours", labels=LABEL))
        assert not live.is_absent(key("none"))  # the kind is not watched
        live.attend(CONFIG_MAP)
        assert not live.is_absent(key("none"))  # the kind is not listed yet
        await wait_all_tasks_blocked()
        assert live.is_absent(key("none"))
        assert not live.is_absent(key("before"))
        assert not live.is_absent(key("ours"))
        assert live.is_absent(key("before", "kube-public"))

        await client.create(config_map("none"))
        await client.delete(key("before"))
        await wait_all_tasks_blocked()
        assert not live.is_absent(key("none"))
        assert live.is_absent(key("before"))

        # An object that gets or loses the release label is never reported as absent.
        for label in ("web", None):
            await client.merge_patch(key("none"), {"metadata": {"labels": {RELEASE_LABEL: label}}})
            await wait_all_tasks_blocked()
            assert not live.is_absent(key("none"))

        live.release(CONFIG_MAP)
        assert not live.is_absent(key("before"))


async def test_absence_is_unknown_for_a_kind_with_too_many_objects(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, live_objects(client, most=3) as live:
        live.attend(CONFIG_MAP)
        await wait_all_tasks_blocked()
        assert live.is_absent(key("a"))
        for name in ("b", "c", "d"):
            await client.create(config_map(name))
        await client.merge_patch(key("b"), {"data": {"v": "2"}})
        await wait_all_tasks_blocked()
        assert live.is_absent(key("a"))
        await client.create(config_map("e"))
        await wait_all_tasks_blocked()
        assert not live.is_absent(key("a"))
        await client.create(config_map("f"))
        await wait_all_tasks_blocked()
        assert not live.is_absent(key("a"))
        live.release(CONFIG_MAP)


async def test_a_kind_with_too_many_objects_is_not_watched(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, open_shared_watches(client, jitter=lambda: 0.0) as watches:
        names = UnmarkedNames(watches, most=3)
        names.attend(CONFIG_MAP)
        await wait_all_tasks_blocked()
        assert [one.subscribers for one in watches.statistics()] == [1]
        for name in ("a", "b", "c", "d", "e"):
            await client.create(config_map(name))
        await wait_all_tasks_blocked()
        assert watches.statistics() == ()
        names.attend(CONFIG_MAP)  # another release has objects of this kind
        await wait_all_tasks_blocked()
        assert watches.statistics() == ()

        # The kind may have fewer objects when it is watched again.
        names.release(CONFIG_MAP)
        for name in ("d", "e"):
            await client.delete(key(name))
        names.attend(CONFIG_MAP)
        await wait_all_tasks_blocked()
        assert names.is_absent(key("d"))
        assert not names.is_absent(key("a"))


async def test_absence_is_unknown_while_a_watch_fails(autojump_clock: MockClock) -> None:
    broken = trio.Event()

    def answer(request: httpx.Request) -> Answer:
        if "watch" not in request.url.params:
            return page(version=1)
        if request.url.params["labelSelector"] == RELEASE_LABEL:
            return Reply(200, [Hang()])
        assert "as=PartialObjectMetadata;" in request.headers["accept"]
        return (
            httpx.ConnectError("refused") if broken.is_set() else Reply(200, [Until(broken), httpx.ReadError("reset")])
        )

    transport = FaultyTransport(answer)
    async with (
        open_client(Connection("http://api.example"), transport=transport) as client,
        live_objects(client) as live,
    ):
        live.attend(CONFIG_MAP)
        await wait_all_tasks_blocked()
        assert live.is_absent(key("a"))
        broken.set()
        await wait_all_tasks_blocked()
        assert not live.is_absent(key("a"))
