"""The mirror follows the cluster: all kinds, custom ones as they come and go, through every failure of a watch."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import trio
from trio.testing import MockClock

from tests.cluster.control_plane.controllers.harness import config_map, key, obj, open_cluster, settle
from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.connection import Connection, bearer
from wharfinger.cluster.control_plane.controllers.mirror import Mirror, custom_type
from wharfinger.cluster.control_plane.controllers.object_cache import ObjectCache
from wharfinger.cluster.control_plane.service import LOCAL, open_control_plane
from wharfinger.cluster.http_client import open_client
from wharfinger.cluster.resource import ResourceType
from wharfinger.formats.json_value import JsonObject, JsonValue


class Failing(httpx.AsyncBaseTransport):
    """Answers the first requests of a kind (``list``, ``watch`` of ConfigMaps, ``discover``) with these codes; 0 refuses."""

    def __init__(self, inner: httpx.AsyncBaseTransport, **failures: list[int]) -> None:
        self._inner = inner
        self.failures = failures

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        codes = self.failures.get(self._kind_of(request), [])
        if not codes:
            return await self._inner.handle_async_request(request)
        code = codes.pop(0)
        if not code:
            raise httpx.ConnectError("refused")
        return httpx.Response(code, json={"kind": "Status", "status": "Failure", "code": code, "message": "as told"})

    def _kind_of(self, request: httpx.Request) -> str:
        path = request.url.path
        if path in {"/api", "/apis"}:
            return "discover"
        if path == "/api/v1/nodes":
            return "nodes"
        if path == "/api/v1/configmaps":
            return "watch" if request.url.params.get("watch") else "list"
        return ""


@asynccontextmanager
async def mirrored(client: ClusterClient) -> AsyncGenerator[tuple[Mirror, ObjectCache], None]:
    cache = ObjectCache()
    mirror = Mirror(client, cache)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mirror.run)
        yield mirror, cache
        nursery.cancel_scope.cancel()


def names(cache: ObjectCache, group_kind: str) -> list[str]:
    return sorted(found.name for found, _ in cache.of_kind(group_kind))


async def test_lists_and_watches_every_kind(autojump_clock: MockClock) -> None:
    async with open_cluster(controllers=False) as client:
        await client.create(config_map("a"))
        async with mirrored(client) as (mirror, cache):
            await mirror.synced.wait()
            assert names(cache, "ConfigMap") == ["a"]
            assert "default" in names(cache, "Namespace")
            await client.create(config_map("b"))
            await client.merge_patch(await key(client, "v1", "ConfigMap", "b"), {"data": {"x": "1"}})
            await client.delete(await key(client, "v1", "ConfigMap", "a"))
            await settle()
            assert [found.get("data") for _, found in cache.of_kind("ConfigMap")] == [{"x": "1"}]
            assert mirror.statistics()["unlisted"] == 0
            kinds = {resource.group_kind for resource in cache.kinds()}
            assert {"Deployment.apps", "CustomResourceDefinition.apiextensions.k8s.io"} <= kinds
            assert "Event" not in kinds


async def test_outlives_every_failure(autojump_clock: MockClock) -> None:
    connection = Connection(LOCAL, bearer(""))
    async with open_control_plane(simulate=False) as plane:
        failures = {"discover": [0, 500], "list": [0, 500], "watch": [410, 0, 500, 404], "nodes": [405]}
        failing = Failing(plane.transport(), **failures)
        async with (
            open_client(connection, transport=plane.transport()) as client,
            open_client(connection, transport=failing) as theirs,
            mirrored(theirs) as (mirror, cache),
        ):
            with trio.fail_after(600):
                await mirror.synced.wait()
            await client.create(config_map("a"))
            await settle(60)
            assert names(cache, "ConfigMap") == ["a"]
            assert not any(failing.failures.values())
            assert "Node" not in {resource.group_kind for resource in cache.kinds()}


def definition(*, established: bool = True, served: bool = True) -> JsonObject:
    condition: JsonObject = {"type": "Established", "status": "True" if established else "False"}
    schema: JsonObject = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec: JsonObject = {
        "group": "example.com",
        "names": {"kind": "Thing", "plural": "things"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": served, "storage": True, "schema": schema}],
    }
    made = obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com", "", spec=spec)
    return made | {"status": {"conditions": [condition]}}


def test_the_kind_of_a_definition() -> None:
    assert custom_type(definition()) == ResourceType("example.com", "v1", "Thing", "things", namespaced=True)
    assert custom_type(definition(established=False)) is None
    assert custom_type(definition(served=False)) is None


async def test_a_custom_kind_moves_to_another_version(autojump_clock: MockClock) -> None:
    async with open_cluster(controllers=False) as client, mirrored(client) as (mirror, cache):
        await mirror.synced.wait()
        made = definition()
        del made["status"]
        await client.create(made)
        await client.create(obj("example.com/v1", "Thing", "t"))
        await settle()
        schema: JsonObject = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        versions: list[JsonValue] = [
            {"name": "v1", "served": False, "storage": False, "schema": schema},
            {"name": "v2", "served": True, "storage": True, "schema": schema},
        ]
        made_key = await key(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com")
        await client.merge_patch(made_key, {"spec": {"versions": versions}})
        await settle(20)
        assert [found.resource.version for found, _ in cache.of_kind("Thing.example.com")] == ["v2"]


async def test_a_custom_kind_that_comes_back_at_once(autojump_clock: MockClock) -> None:
    async with open_cluster(controllers=False) as client, mirrored(client) as (mirror, cache):
        await mirror.synced.wait()
        made = definition()
        del made["status"]
        made_key = await key(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com")
        await client.create(made)
        await settle()
        await client.delete(made_key)
        await client.create(made)
        await client.create(obj("example.com/v1", "Thing", "t"))
        await settle(20)
        assert names(cache, "Thing.example.com") == ["t"]


async def test_custom_kinds_come_and_go(autojump_clock: MockClock) -> None:
    async with open_cluster(controllers=False) as client, mirrored(client) as (mirror, cache):
        await mirror.synced.wait()
        made = definition()
        del made["status"]
        for _ in range(2):
            await client.create(made)
            await settle()
            await client.create(obj("example.com/v1", "Thing", "t"))
            await settle()
            assert names(cache, "Thing.example.com") == ["t"]
            await client.delete(
                await key(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com")
            )
            await settle(20)
            assert names(cache, "Thing.example.com") == []
            assert "Thing.example.com" not in {resource.group_kind for resource in cache.kinds()}
