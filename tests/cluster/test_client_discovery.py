"""The cached discovery of a client, with scripted servers."""

from collections.abc import Callable
from contextlib import suppress

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.api.test_discovery import POD
from tests.cluster.support.faulty_transport import Answer, Reply, in_turn, json_reply, status_reply
from tests.cluster.support.scripted_client import Server, client_of
from wharfinger.cluster.api.errors import ApiError, NotFoundError, UnknownKindError
from wharfinger.cluster.api.http_client import HttpClusterClient
from wharfinger.cluster.api.http_errors import MalformedAnswerError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey

KEY = ObjectKey(POD, "prod", "web")


async def test_discovery_is_cached_and_repeated_on_a_miss() -> None:
    server = Server(in_turn())
    async with client_of(server) as (client, transport):
        assert await client.resource_type("v1", "Pod") == POD
        assert (await client.resource_type("v1", "Namespace")).plural == "namespaces"
        assert len(transport.requests) == 2
        with pytest.raises(UnknownKindError, match=r"Widget of example/v1: .* does not serve this kind"):
            await client.resource_type("example/v1", "Widget")
        assert len(transport.requests) == 4
        server.apis = {
            "kind": "APIGroupDiscoveryList",
            "items": [
                {
                    "metadata": {"name": "example"},
                    "versions": [
                        {
                            "version": "v1",
                            "resources": [
                                {"resource": "widgets", "scope": "Cluster", "responseKind": {"kind": "Widget"}}
                            ],
                        }
                    ],
                }
            ],
        }
        assert (await client.resource_type("example/v1", "Widget")).plural == "widgets"
        assert client.statistics()["kinds"] == 3


async def test_discovery_is_repeated_for_an_unknown_name() -> None:
    async with client_of(Server(in_turn())) as (client, transport):
        assert await client.find_resource("pods") == POD
        assert await client.find_resource("POD", "v1") == POD
        assert len(transport.requests) == 2
        with pytest.raises(
            UnknownKindError, match=r"^widgets: .* does not serve this kind.*behind metrics\.example/v1beta1 do not"
        ):
            await client.find_resource("widgets")
        assert len(transport.requests) == 4
        with pytest.raises(
            UnknownKindError, match=r"^pods of apps/v1: .* does not serve this kind; check that its .* is installed$"
        ):
            await client.find_resource("pods", "apps/v1")
        with pytest.raises(UnknownKindError, match=r"^nodes of metrics.example/v1beta1: the API server behind"):
            await client.find_resource("nodes", "metrics.example/v1beta1")


async def test_simultaneous_misses_cause_one_discovery() -> None:
    async with client_of(Server(in_turn())) as (client, transport):

        async def miss(kind: str) -> None:
            with pytest.raises(UnknownKindError):
                await client.resource_type("v1", kind)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(miss, f"Kind{number}")
        assert len(transport.requests) <= 4


async def test_a_group_with_an_unavailable_server_is_named() -> None:
    async with client_of(Server(in_turn())) as (client, _):
        with pytest.raises(UnknownKindError, match=r"the API server behind metrics\.example/v1beta1 does not answer"):
            await client.resource_type("metrics.example/v1beta1", "NodeMetrics")


async def test_api_versions_are_cached_for_a_minute(autojump_clock: MockClock) -> None:
    async with client_of(Server(in_turn())) as (client, transport):
        assert "apps/v1/Deployment" in await client.api_versions()
        await client.api_versions()
        assert len(transport.requests) == 2
        await trio.sleep(61)
        await client.api_versions()
        assert len(transport.requests) == 4


async def test_plain_discovery_tolerates_an_unavailable_group() -> None:
    documents: dict[str, JsonObject] = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": "metrics.example/v1beta1"}]}]},
        "/api/v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]},
    }

    def script(request: httpx.Request) -> Answer:
        found = documents.get(request.url.path)
        return status_reply(503, "ServiceUnavailable", "down") if found is None else json_reply(found)

    async with client_of(script) as (client, _):
        assert await client.resource_type("v1", "Pod") == POD
        assert await client.api_versions() == ("metrics.example/v1beta1", "v1", "v1/Pod")
        with pytest.raises(UnknownKindError, match="does not answer"):
            await client.resource_type("metrics.example/v1beta1", "NodeMetrics")
    documents["/api"] = {"kind": "APIVersions", "versions": 5}
    async with client_of(script) as (client, _):
        with pytest.raises(MalformedAnswerError):
            await client.api_versions()


async def test_forbidden_discovery_is_an_error() -> None:
    documents: dict[str, JsonObject] = {"/api": {"versions": ["v1"]}, "/apis": {"groups": []}}

    def script(request: httpx.Request) -> Answer:
        found = documents.get(request.url.path)
        return status_reply(403, "Forbidden", "no") if found is None else json_reply(found)

    async with client_of(script) as (client, _):
        with pytest.raises(ApiError, match="discover v1: no"):
            await client.api_versions()


async def count_discoveries(act: Callable[[HttpClusterClient], object], *answers: Answer) -> int:
    async with client_of(Server(in_turn(*answers))) as (client, transport):
        await client.resource_type("v1", "Pod")
        awaitable = act(client)
        assert hasattr(awaitable, "__await__")
        with suppress(NotFoundError):
            await awaitable
        await client.resource_type("v1", "Pod")
        return transport.paths.count("GET /apis")


async def test_a_kind_that_is_no_longer_served_is_discovered_again() -> None:
    gone = Reply(404, [b"404 page not found"])
    assert await count_discoveries(lambda client: client.get(KEY), gone) == 2
    assert await count_discoveries(lambda client: client.list(POD), gone) == 2
    assert await count_discoveries(lambda client: client.get(KEY), status_reply(404, "NotFound", "not found")) == 1

    async def watch(client: HttpClusterClient) -> None:
        async with client.watch(POD, resource_version="1"):
            pytest.fail("it never opens")

    assert await count_discoveries(watch, gone) == 2


async def test_writing_a_definition_invalidates_discovery() -> None:
    crds: JsonObject = {
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
    crd: JsonObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example"},
    }
    async with client_of(Server(in_turn(json_reply(crd)), apis=crds)) as (client, transport):
        await client.apply(crd, field_manager="wharfinger")
        await client.resource_type("v1", "Pod")
        assert transport.paths.count("GET /apis") == 2
