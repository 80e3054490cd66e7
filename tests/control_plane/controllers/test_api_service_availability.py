"""The reason why an APIService is not available, as its condition ``Available`` reports it.

The recording ``recorded_answers/recordings/hunt3-kinds-others.jsonl`` contains the condition of a real API server.
"""

from trio.testing import MockClock

from tests.control_plane.support.controller_harness import conditions_of, key, look, obj, open_cluster, settle
from wharfinger.formats.json.value import JsonObject

VERSION = "apiregistration.k8s.io/v1"
NAME = "v1.x.example.com"
LABELS: JsonObject = {"labels": {"kubernetes.io/service-name": "s"}}


async def test_the_reason_follows_the_state_of_the_service(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:

        async def reason() -> object:
            await settle()
            return conditions_of(await look(client, VERSION, "APIService", NAME))["Available"][1]

        behind: JsonObject = {"name": "s", "namespace": "default", "port": 443}
        names: JsonObject = {"group": "x.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
        spec: JsonObject = {**names, "insecureSkipTLSVerify": True, "service": behind}
        await client.create(obj(VERSION, "APIService", NAME, "", spec=spec))
        assert await reason() == "ServiceNotFound"
        await client.create(obj("v1", "Service", "s", spec={"type": "ClusterIP", "ports": [{"port": 80}]}))
        assert await reason() == "ServicePortError"
        await client.delete(await key(client, "v1", "Service", "s"))
        assert await reason() == "ServiceNotFound"
        await client.create(obj("v1", "Service", "s", spec={"ports": [{"port": 443}]}))
        assert await reason() == "EndpointsNotFound"
        ports: JsonObject = {"addressType": "IPv4", "ports": [{"port": 443}]}
        unready: JsonObject = {"addresses": ["10.1.2.4"], "conditions": {"ready": False}}
        ready: JsonObject = {"addresses": ["10.1.2.3"]}
        for name, endpoint, wanted in (("away", unready, "MissingEndpoints"), ("here", ready, "FailedDiscoveryCheck")):
            one = obj("discovery.k8s.io/v1", "EndpointSlice", name, metadata=LABELS, endpoints=[endpoint])
            await client.create({**one, **ports})
            assert await reason() == wanted
        await client.delete(await key(client, VERSION, "APIService", NAME, ""))
        await settle()
