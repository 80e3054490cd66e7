"""The limited client: it fulfills the contract of all clients. Some calls take a slot, which is charged to the call's package."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.cluster.support.client_contract import CONFIG_MAP, CONTRACT, config_map, key
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import Answer, json_reply
from tests.cluster.support.scripted_client import Server, client_of
from wharfinger.cluster.api.client import ClusterClient, Propagation
from wharfinger.cluster.api.errors import ApiError, NotFoundError
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.value import JsonObject
from wharfinger.queue.scope import WorkScope
from wharfinger.queue.service import open_queues
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import Kind, SlotLimits
from wharfinger.runtime.daemon.limited_client import LimitedClient


async def list_raw(client: ClusterClient) -> None:
    async with client.raw_list(CONFIG_MAP, "default", label_selector="app=x") as pages:
        assert (await anext(pages)).items == ()


LIMITED: dict[str, Callable[[ClusterClient], Awaitable[object]]] = {
    "server_version": lambda client: client.server_version(),
    "get": lambda client: client.get(key("a")),
    "list": lambda client: client.list(CONFIG_MAP, "default", label_selector="app=x", field_selector="metadata.name=a"),
    "raw_list": list_raw,
    "create": lambda client: client.create(config_map("b")),
    "replace": lambda client: client.replace(config_map("a", v="2")),
    "apply": lambda client: client.apply(config_map("a", v="3"), field_manager="test", force=True, dry_run=True),
    "merge_patch": lambda client: client.merge_patch(key("a"), {"data": {"v": "4"}}),
    "json_patch": lambda client: client.json_patch(key("a"), [{"op": "add", "path": "/data/w", "value": "5"}]),
    "delete": lambda client: client.delete(key("a"), propagation=Propagation.FOREGROUND),
}

_CONFIG_MAPS: JsonObject = {"resource": "configmaps", "scope": "Namespaced", "responseKind": {"kind": "ConfigMap"}}
SERVED: JsonObject = {
    "kind": "APIGroupDiscoveryList",
    "items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [_CONFIG_MAPS]}]}],
}


@asynccontextmanager
async def limited(limits: SlotLimits | None = None) -> AsyncIterator[tuple[LimitedClient, Slots]]:
    slots = Slots(limits or SlotLimits())
    async with memory_cluster() as client:
        yield LimitedClient(client, slots), slots


def used(slots: Slots) -> tuple[int, int]:
    """Return the numbers of used slots and of waiting calls."""
    numbers = slots.statistics().kinds[Kind.API]
    return numbers.used, numbers.waiting


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CONTRACT)
async def test_the_contract_of_clients_is_fulfilled(name: str) -> None:
    async with limited() as (client, slots):
        await CONTRACT[name](client)
        assert used(slots) == (0, 0)


@pytest.mark.parametrize("name", LIMITED)
async def test_a_call_waits_for_a_slot_and_releases_it(name: str) -> None:
    async with limited(SlotLimits(api=1)) as (client, slots):
        await client.create(config_map("a", v="1"))
        go, over = trio.Event(), trio.Event()

        async def call() -> None:
            await go.wait()
            await LIMITED[name](client)
            over.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            async with slots.use(Kind.API, "another.package"):
                go.set()
                await wait_all_tasks_blocked()
                assert used(slots) == (1, 1)
                assert not over.is_set()
        assert over.is_set()
        assert used(slots) == (0, 0)


@pytest.mark.parametrize("name", LIMITED)
async def test_a_refused_call_releases_its_slot(name: str) -> None:
    slots = Slots(SlotLimits())
    seen: list[tuple[int, int]] = []

    def refuse(_: httpx.Request) -> Answer:
        seen.append(used(slots))
        return json_reply({"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}, 403)

    async with client_of(Server(refuse, SERVED)) as (client, _):
        with pytest.raises(ApiError, match="no"):
            await LIMITED[name](LimitedClient(client, slots))
    assert seen == [(1, 0)]
    assert used(slots) == (0, 0)


async def test_watches_and_discovery_take_no_slot() -> None:
    async with limited(SlotLimits(api=1)) as (client, slots):
        revision = (await client.list(CONFIG_MAP, "default")).resource_version
        async with client.watch(CONFIG_MAP, "default", resource_version=revision) as events:
            await client.create(config_map("a"))
            async with slots.use(Kind.API, "another.package"):
                assert "v1/ConfigMap" in await client.api_versions()
                assert await client.resource_type("v1", "ConfigMap") == CONFIG_MAP
                assert await client.find_resource("cm") == CONFIG_MAP
                with trio.fail_after(300):
                    event = await anext(events)
                assert event.type is WatchType.ADDED
                assert used(slots) == (1, 0)
        async with (
            client.raw_watch(CONFIG_MAP, "default", resource_version=revision) as raw,
            slots.use(Kind.API, "another.package"),
        ):
            with trio.fail_after(300):
                assert (await anext(raw)).object.key == key("a")
            assert used(slots) == (1, 0)


class Read:
    """A task that reads one object that does not exist."""

    name = "Read"

    def __init__(self, client: ClusterClient) -> None:
        self.client = client

    async def execute(self) -> None:
        with pytest.raises(NotFoundError):
            await self.client.get(key("missing"))


async def test_a_call_is_charged_to_the_package_of_its_queue() -> None:
    async with limited(SlotLimits(api=1)) as (client, slots), open_queues() as queues:
        async with slots.use(Kind.API, "another.package"):
            queues.enqueue("shop.web", Read(client), WorkScope("update of shop.web"))
            await wait_all_tasks_blocked()
            assert slots.waiting("shop.web") == (Kind.API,)
        await queues.wait_idle("shop.web")
        assert queues.statistics().retired == 1


async def test_a_package_that_floods_the_server_leaves_a_slot_for_others() -> None:
    """There are two slots, and the calls of one package never end. They occupy only one slot, however many they are."""
    slots = Slots(SlotLimits(api=2))
    async with memory_cluster() as real:
        client = LimitedClient(real, slots)
        never = trio.Event()

        async def flood() -> None:
            async with slots.use(Kind.API, "shop.flood"):
                await never.wait()

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(flood)
            await wait_all_tasks_blocked()
            for number in range(10):
                await client.create(config_map(f"c-{number}"))
            assert used(slots) == (1, 4)
            nursery.cancel_scope.cancel()
        assert used(slots) == (0, 0)
