"""The applier where a healthy control plane cannot lead it; the rest is tested through the engine."""

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.client_contract import config_map, key, widget_crd
from tests.cluster.clusters import memory_cluster
from tests.cluster.faulty_transport import Answer, FaultyTransport, Hang, Reply, json_reply
from tests.cluster.scripted_client import Server
from wharfinger.cluster.apply import Applier, CrdError
from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.connection import Connection
from wharfinger.cluster.control_plane.service import LOCAL, open_control_plane
from wharfinger.cluster.http_client import open_client
from wharfinger.cluster.object_waits import silent
from wharfinger.cluster.ownership import ForeignObjectError, Owner
from wharfinger.formats.json_value import JsonObject

OWNER = Owner("web", "default")
DEFINITIONS: JsonObject = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {"name": "apiextensions.k8s.io"},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "customresourcedefinitions",
                            "scope": "Cluster",
                            "responseKind": {"kind": "CustomResourceDefinition"},
                        }
                    ],
                }
            ],
        }
    ],
}


def applier(client: ClusterClient) -> Applier:
    return Applier(client, OWNER, field_manager="test", force=False, progress=silent)


async def test_a_definition_that_is_not_accepted(autojump_clock: MockClock) -> None:
    refused = widget_crd()
    refused["metadata"] = {"name": "widgets.example.test", "resourceVersion": "5", "uid": "u"}
    refused["status"] = {"conditions": [{"type": "NamesAccepted", "status": "False", "message": "widget is in use"}]}

    def script(request: httpx.Request) -> Answer:
        if request.method == "PATCH":
            return json_reply(refused)
        if "watch" in request.url.params:
            return Reply(200, [Hang()])
        return json_reply({"kind": "List", "metadata": {"resourceVersion": "5"}, "items": [refused]})

    transport = FaultyTransport(Server(script, apis=DEFINITIONS))
    async with open_client(Connection("http://api.example"), transport=transport) as client:
        with pytest.raises(CrdError, match=r"widgets\.example\.test: not accepted: widget is in use"):
            await applier(client).apply_crds([widget_crd()])


async def test_what_was_not_checked_before_is_checked_when_it_is_written(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await client.create(config_map("a"))
        with pytest.raises(ForeignObjectError):
            await applier(client).apply([config_map("a")])


async def test_nothing_to_do_asks_nothing(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        nothing = applier(client)
        await nothing.check([], [])
        assert await nothing.apply([]) == {}
        assert await nothing.apply_crds([]) == []
        gone = await nothing.delete([config_map("never")])
        assert (gone.deleted, gone.kept) == ({}, {})


async def test_kinds_that_are_no_longer_served_have_nothing_left_to_delete(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        widget: JsonObject = {"apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "one"}}
        assert (await applier(client).delete([widget])).deleted == {}


class Held(httpx.AsyncBaseTransport):
    """Holds the first delete until ``go``."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.held = trio.Event()
        self.go = trio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE" and not self.held.is_set():
            self.held.set()
            await self.go.wait()
        return await self._inner.handle_async_request(request)


async def test_an_object_that_another_replaces_while_it_is_deleted_stays(autojump_clock: MockClock) -> None:
    """The name is taken by somebody else between the look and the delete: the UID precondition saves it."""
    async with open_control_plane(simulate=False) as control_plane:
        held = Held(control_plane.transport())
        async with open_client(Connection(LOCAL), transport=held) as client, trio.open_nursery() as nursery:
            ours = applier(client)
            await ours.apply([config_map("a", v="1")])

            async def replace() -> None:
                await held.held.wait()
                await client.delete(key("a"))
                await client.create(config_map("a", v="theirs"))
                held.go.set()

            nursery.start_soon(replace)
            gone = await ours.delete([config_map("a")])
            assert gone.deleted == {}
            assert (await client.get(key("a")))["data"] == {"v": "theirs"}
