"""Watches of the objects of all releases, on a control plane in memory and on scripted servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import CONFIG_MAP, config_map, key, widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.cluster.support.faulty_transport import Answer, FaultyTransport, Hang, Reply, Until, status_reply
from tests.cluster.support.watch_script import WatchScript, obj, page, watch
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.errors import ApiError, NotFoundError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.objects.live_objects import CHECK_S, LiveObjects, open_live_objects
from wharfinger.cluster.objects.ownership import RELEASE_LABEL
from wharfinger.cluster.watch.object_waits import wait_ready
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of

WIDGET = ResourceType("example.test", "v1", "Widget", "widgets", namespaced=True)
WIDGET_CRD = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
LABEL: JsonObject = {RELEASE_LABEL: "web"}


class Told:
    """A listener that records the name and ``data.a`` of each reported object, or ``-`` and the name if it is deleted."""

    def __init__(self) -> None:
        self.changes: list[str] = []

    def __call__(self, key: ObjectKey, obj: JsonObject | None) -> None:
        assert obj is None or name_of(obj) == key.name
        self.changes.append(f"-{key.name}" if obj is None else key.name + find_str(obj, "data", "a"))

    def take(self) -> list[str]:
        taken, self.changes = self.changes, []
        return taken


@asynccontextmanager
async def live_objects(client: ClusterClient, told: Told) -> AsyncIterator[LiveObjects]:
    async with open_shared_watches(client, jitter=lambda: 0.0) as watches, open_live_objects(client, watches) as live:
        live.listen(told)
        yield live


@asynccontextmanager
async def scripted(script: WatchScript) -> AsyncIterator[tuple[LiveObjects, Told]]:
    """Watch the live objects of a scripted server. Yield them and their listener."""
    told = Told()
    transport = FaultyTransport(script)
    async with (
        open_client(Connection("http://api.example"), transport=transport) as client,
        live_objects(client, told) as live,
    ):
        yield live, told
    assert transport.open_streams == 0


async def define_widgets(client: ClusterClient) -> None:
    made = await client.apply(widget_crd(), field_manager="test")
    await wait_ready(client, [ObjectKey(WIDGET_CRD, "", name_of(made))])


def widget(name: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default", "labels": LABEL}
    return {"apiVersion": "example.test/v1", "kind": "Widget", "metadata": metadata}


async def test_labelled_objects_of_all_namespaces_are_reported(autojump_clock: MockClock) -> None:
    told = Told()
    async with memory_cluster() as client, live_objects(client, told) as live:
        await client.create(config_map("a", labels=LABEL, a="1"))
        await client.create(config_map("b", "kube-public", labels=LABEL))
        await client.create(config_map("without"))
        live.attend(CONFIG_MAP)
        live.attend(CONFIG_MAP)
        await live.synced(CONFIG_MAP)
        assert told.take() == ["a1", "b"]
        assert live.statistics().objects == {"ConfigMap/v1": 2}

        await client.merge_patch(key("a"), {"data": {"a": "2"}})
        await client.delete(key("b", "kube-public"))
        await wait_all_tasks_blocked()
        assert told.take() == ["a2", "-b"]
        assert client.statistics()["watches"] == 1


async def test_an_object_that_loses_the_label_is_lost_and_one_that_gains_it_is_found(autojump_clock: MockClock) -> None:
    told = Told()
    async with memory_cluster() as client, live_objects(client, told) as live:
        live.attend(CONFIG_MAP)
        await client.create(config_map("a", labels=LABEL))
        await live.synced(CONFIG_MAP)
        await wait_all_tasks_blocked()
        assert told.take() == ["a"]
        await client.merge_patch(key("a"), {"metadata": {"labels": {RELEASE_LABEL: None}}})
        await wait_all_tasks_blocked()
        assert told.take() == ["-a"]
        await client.merge_patch(key("a"), {"metadata": {"labels": {RELEASE_LABEL: "other"}}})
        await wait_all_tasks_blocked()
        assert told.take() == ["a"]


async def test_every_listener_is_notified_until_the_kind_is_released(autojump_clock: MockClock) -> None:
    first, second = Told(), Told()
    async with memory_cluster() as client, live_objects(client, first) as live:
        looked_up: list[str | None] = []
        live.listen(second, lambda _, why: looked_up.append(why))
        live.attend(CONFIG_MAP)
        await live.synced(CONFIG_MAP)
        await client.create(config_map("a", labels=LABEL))
        await wait_all_tasks_blocked()
        assert first.take() == second.take() == ["a"]
        live.release(CONFIG_MAP)
        live.release(CONFIG_MAP)
        await client.delete(key("a"))
        await wait_all_tasks_blocked()
        assert (first.take(), live.statistics().objects, client.statistics()["watches"]) == ([], {}, 0)
        await live.synced(CONFIG_MAP)
        assert looked_up == ["", None]


async def test_releasing_a_kind_ends_the_wait_for_its_first_list(autojump_clock: MockClock) -> None:
    async with scripted(WatchScript([Reply(200, [Hang()])])) as (live, _), trio.open_nursery() as nursery:
        live.attend(CONFIG_MAP)
        nursery.start_soon(live.synced, CONFIG_MAP)
        await wait_all_tasks_blocked()
        live.release(CONFIG_MAP)


async def test_the_first_failure_is_raised_and_the_watch_continues(autojump_clock: MockClock) -> None:
    script = WatchScript([status_reply(403, "Forbidden", "configmaps is forbidden"), page(obj("a", 1), version=3)])
    async with scripted(script) as (live, told):
        looked_up: list[str | None] = []
        live.listen(told, lambda _, why: looked_up.append(why))
        live.attend(CONFIG_MAP)
        with pytest.raises(ApiError, match="configmaps is forbidden"):
            await live.synced(CONFIG_MAP)
        assert list(live.statistics().failing) == ["ConfigMap/v1"]
        assert "forbidden" in live.statistics().failing["ConfigMap/v1"]
        await trio.sleep(CHECK_S + 1)
        assert told.take() == ["a", "a"]
        assert live.statistics().failing == {}
        assert looked_up == ["list ConfigMap: configmaps is forbidden (403 Forbidden)", ""]


async def test_only_the_difference_is_reported_after_a_broken_watch(autojump_clock: MockClock) -> None:
    gone = status_reply(410, "Expired", "too old resource version")
    script = WatchScript(
        [page(obj("a", 1), obj("b", 2), version=3), page(obj("b", 5), version=5)],
        [watch(("MODIFIED", obj("a", 4))), gone],
    )
    async with scripted(script) as (live, told):
        live.attend(CONFIG_MAP)
        await trio.sleep(CHECK_S / 2)
        assert told.take() == ["a", "b", "a", "b", "-a"]


async def test_unreadable_objects_are_counted_and_do_not_block_others(autojump_clock: MockClock) -> None:
    deep: JsonObject = {"a": {}}
    for _ in range(400):
        deep = {"a": deep}
    script = WatchScript(
        [page({**obj("a", 1), "deep": deep}, obj("b", 2), version=3)],
        [
            watch(
                ("MODIFIED", {**obj("b", 4), "deep": deep}),
                ("DELETED", obj("a", 5)),
                ("DELETED", obj("b", 6)),
                then=Hang(),
            )
        ],
    )
    async with scripted(script) as (live, told):
        live.attend(CONFIG_MAP)
        await trio.sleep(1)
        assert told.take() == ["b", "-b"]  # a was never reported, so its deletion is not reported either
        statistics = live.statistics()
        assert (statistics.unreadable, statistics.changes) == (2, 5)


async def test_a_deleted_kind_loses_its_objects_and_may_return(autojump_clock: MockClock) -> None:
    told = Told()
    async with memory_cluster() as client, live_objects(client, told) as live:
        await define_widgets(client)
        await client.create(widget("one"))
        live.attend(WIDGET)
        await live.synced(WIDGET)
        assert told.take() == ["one"]
        await client.delete(ObjectKey(WIDGET_CRD, "", "widgets.example.test"))
        await trio.sleep(120)
        assert told.take() == ["-one"]
        assert list(live.statistics().failing) == ["Widget.example.test/v1"]
        await define_widgets(client)
        await client.create(widget("one"))
        await trio.sleep(120)
        assert told.take() == ["one"]


async def test_a_wait_for_a_kind_that_is_not_served_raises(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, live_objects(client, Told()) as live:
        live.attend(WIDGET)
        with pytest.raises(NotFoundError, match="does not serve"):
            await live.synced(WIDGET)


class Router:
    """A server with a single object. While ``failing`` is set, every answer is ``failure``."""

    def __init__(self, failure: Answer) -> None:
        self.failure = failure
        self.failing = trio.Event()

    def __call__(self, request: httpx.Request) -> Answer:
        if self.failing.is_set():
            return self.failure
        if "watch" in request.url.params:
            return Reply(200, [Until(self.failing)])
        return page(obj("a", 2), version=2)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Reply(404, [b"404 page not found\n"]), ["-a", "a"]),
        (status_reply(503, "ServiceUnavailable", "apiserver is down"), []),
    ],
)
async def test_only_a_kind_that_is_not_served_loses_its_objects(
    autojump_clock: MockClock, failure: Answer, expected: list[str]
) -> None:
    """A CRD may be deleted while the watch of its kind is broken. Only the answer 404 shows that the objects are gone."""
    router = Router(failure)
    told = Told()
    async with (
        open_client(Connection("http://api.example"), transport=FaultyTransport(router)) as client,
        live_objects(client, told) as live,
    ):
        live.attend(CONFIG_MAP)
        await trio.sleep(1)
        assert told.take() == ["a"]
        router.failing.set()
        await trio.sleep(4 * CHECK_S)
        assert told.take() == expected[:1]
        router.failing = trio.Event()
        await trio.sleep(4 * CHECK_S)
        assert told.take() == expected[1:]


async def test_the_end_of_one_version_does_not_remove_objects_of_another(autojump_clock: MockClock) -> None:
    older = ResourceType("", "v1beta1", "ConfigMap", "configmaps", namespaced=True)

    def serve(request: httpx.Request) -> Answer:
        in_older = "v1beta1" in request.url.path
        if in_older and ended.is_set():
            return Reply(404, [b"404 page not found\n"])
        if "watch" in request.url.params:
            return Reply(200, [Until(ended)] if in_older else [Hang()])
        return page(obj("a", 2), *([obj("b", 3)] if in_older else []), version=4)

    ended = trio.Event()
    told = Told()
    async with (
        open_client(Connection("http://api.example"), transport=FaultyTransport(serve)) as client,
        live_objects(client, told) as live,
    ):
        live.attend(CONFIG_MAP)
        live.attend(older)
        await trio.sleep(0.5)
        assert sorted(told.take()) == ["a", "a", "b"]
        ended.set()
        await trio.sleep(4 * CHECK_S)
        assert told.take() == ["-b"]


async def test_a_kind_released_during_its_lookup_stays_released(autojump_clock: MockClock) -> None:
    released = trio.Event()
    answers: list[Answer] = [Reply(404, [b"404 page not found\n"])]
    script = FaultyTransport(
        lambda _: answers.pop() if answers else Reply(404, [Until(released), b"404 page not found\n"])
    )
    told = Told()
    async with (
        open_client(Connection("http://api.example"), transport=script) as client,
        live_objects(client, told) as live,
    ):
        live.attend(CONFIG_MAP)
        await trio.sleep(CHECK_S + 1)
        assert script.open_streams == 2  # the list of the watch, and the lookup of the kind
        live.release(CONFIG_MAP)
        released.set()
        await wait_all_tasks_blocked()
        assert (live.statistics().objects, script.open_streams) == ({}, 0)
