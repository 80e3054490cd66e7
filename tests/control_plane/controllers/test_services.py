"""Services: their Endpoints, EndpointSlices and load balancers."""

from trio.testing import MockClock

from tests.control_plane.support.controller_harness import key, listed, look, obj, open_cluster, settle, workload
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list

PORTS: list[JsonValue] = [{"port": 80, "targetPort": "http"}]
TEMPLATE: JsonObject = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "a", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}]},
}


async def slices(client: ClusterClient) -> list[JsonObject]:
    """Return the EndpointSlices of the Service ``web``."""
    found = await listed(client, "discovery.k8s.io/v1", "EndpointSlice")
    return [one for one in found if find(one, "metadata", "labels", "kubernetes.io/service-name") == "web"]


async def test_endpoints_list_ready_and_unready_pods(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(obj("v1", "Service", "web", spec={"selector": {"a": "b"}, "ports": PORTS}))
        await settle()
        assert find(await look(client, "v1", "Endpoints", "web"), "subsets") is None
        await client.create(workload("Deployment", "web", replicas=2, template=TEMPLATE))
        never: JsonObject = {"wharfinger.dev/never-ready": "true"}
        await client.create(workload("StatefulSet", "stuck", annotations=never, template=TEMPLATE))
        await settle()
        (subset,) = find_list(await look(client, "v1", "Endpoints", "web"), "subsets")
        assert (len(find_list(subset, "addresses")), len(find_list(subset, "notReadyAddresses"))) == (2, 1)
        assert find(subset, "ports") == [{"port": 8080, "protocol": "TCP"}]
        (found,) = await slices(client)
        assert sorted(str(find(one, "conditions", "ready")) for one in find_list(found, "endpoints")) == [
            "False",
            "True",
            "True",
        ]
        assert find(found, "ports", 0, "port") == 8080
        await client.delete(await key(client, "v1", "Service", "web"))
        await settle()
        assert await slices(client) == []
        assert await look(client, "v1", "Endpoints", "web") is None


async def test_deleted_endpoints_are_created_again(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        headless: JsonObject = {"selector": {"a": "b"}, "clusterIP": "None"}
        await client.create(obj("v1", "Service", "web", spec=headless))
        await settle()
        await client.delete(await key(client, "v1", "Endpoints", "web"))
        (one,) = await slices(client)
        await client.delete(
            await key(client, "discovery.k8s.io/v1", "EndpointSlice", str(find(one, "metadata", "name")))
        )
        await settle()
        found = await look(client, "v1", "Endpoints", "web")
        assert find(found, "metadata", "labels", "service.kubernetes.io/headless") == ""
        assert len(await slices(client)) == 1


async def test_a_load_balancer_gets_an_address(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(obj("v1", "Service", "web", spec={"type": "LoadBalancer", "ports": [{"port": 80}]}))
        await settle()
        found = await look(client, "v1", "Service", "web")
        assert str(find(found, "status", "loadBalancer", "ingress", 0, "ip")).startswith("198.51.100.")
        assert await look(client, "v1", "Endpoints", "web") is None
