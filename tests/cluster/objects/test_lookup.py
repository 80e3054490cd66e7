"""The lookup of a release's objects: reads of single objects, and the rows and keys of objects."""

import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import config_map, key
from tests.cluster.support.clusters import memory_cluster
from wharfinger.cluster.api.errors import UnknownKindError
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.lookup import key_of, look_up, rows_of
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject

WEB = Owner("web", "default")
ODD: JsonObject = {"apiVersion": "example.test/v1", "kind": "Odd", "metadata": {"name": "a"}}
CLUSTER_ROLE: JsonObject = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "a", "namespace": "ignored"},
}


async def test_the_key_of_an_object_is_found(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        assert await key_of(client, WEB, config_map("a")) == key("a")
        assert (await key_of(client, WEB, CLUSTER_ROLE)).namespace == ""
        with pytest.raises(UnknownKindError):
            await key_of(client, WEB, ODD)


async def test_an_existing_object_is_returned_and_a_missing_one_is_none(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        made = await client.create(config_map("a"))
        assert await look_up(client, key("a")) == made
        assert await look_up(client, key("b")) is None


async def test_rows_omit_kinds_that_are_no_longer_served(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        rows = await rows_of(client, WEB, [config_map("a"), ODD], DriftPolicy())
        assert [row.key for row in rows] == [key("a")]
