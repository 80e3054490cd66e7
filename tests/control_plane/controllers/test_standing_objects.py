"""Objects that the API server needs, and creates again after a deletion."""

import pytest
from trio.testing import MockClock

from tests.control_plane.support.controller_harness import key, look, open_cluster, settle

FLOW = "flowcontrol.apiserver.k8s.io/v1"


@pytest.mark.parametrize(
    ("api_version", "kind", "name", "namespace", "pause_s"),
    [
        ("v1", "Service", "kubernetes", "default", 10),
        ("v1", "Endpoints", "kubernetes", "default", 10),
        ("discovery.k8s.io/v1", "EndpointSlice", "kubernetes", "default", 10),
        (FLOW, "FlowSchema", "probes", "", 60),
        ("v1", "Namespace", "kube-node-lease", "", 60),
    ],
)
async def test_a_deleted_standing_object_is_created_again(
    api_version: str, kind: str, name: str, namespace: str, pause_s: int, autojump_clock: MockClock
) -> None:
    async with open_cluster() as client:
        await client.delete(await key(client, api_version, kind, name, namespace))
        await settle(1)
        assert await look(client, api_version, kind, name, namespace) is None
        await settle(pause_s)
        assert await look(client, api_version, kind, name, namespace) is not None


async def test_other_deleted_objects_are_not_created_again(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.delete(await key(client, "apiregistration.k8s.io/v1", "APIService", "v2.autoscaling", ""))
        await settle(100)
        assert await look(client, "apiregistration.k8s.io/v1", "APIService", "v2.autoscaling", "") is None
