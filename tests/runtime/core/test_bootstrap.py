"""Detection of the end of a cluster's bootstrap, with a control plane in this process."""

import logging
from dataclasses import dataclass, field
from typing import cast

import pytest
import trio
import trio.testing

from tests.cluster.support.clusters import memory_cluster
from wharfinger.cluster.api.client import ClusterClient, ObjectList
from wharfinger.cluster.api.errors import UnreachableError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.core.bootstrap import open_bootstrap
from wharfinger.runtime.resources.resources import CONFIG_MAP

DONE = ObjectKey(CONFIG_MAP, "default", "done")


def config_map(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def test_an_existing_bootstrap_is_found_at_the_start() -> None:
    async with memory_cluster() as client:
        await client.create(config_map("done"))
        async with open_bootstrap(client, DONE) as bootstrap:
            assert bootstrap.finished
            with trio.fail_after(300):
                await bootstrap.wait_finished()


async def test_a_later_bootstrap_is_noticed(autojump_clock: trio.testing.MockClock) -> None:
    async with memory_cluster() as client, open_bootstrap(client, DONE) as bootstrap, trio.open_nursery() as nursery:
        assert not bootstrap.finished
        finished = trio.Event()

        async def wait() -> None:
            await bootstrap.wait_finished()
            finished.set()

        nursery.start_soon(wait)
        await client.create(config_map("other"))  # another ConfigMap in that namespace does not count
        with trio.move_on_after(60):
            await finished.wait()
        assert not finished.is_set()
        await client.create(config_map("done"))
        with trio.fail_after(60):
            await finished.wait()
        assert bootstrap.finished


@dataclass
class Hiding:
    """A ClusterClient that refuses lists until they are allowed."""

    client: ClusterClient
    allowed: trio.Event = field(default_factory=trio.Event)

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    async def list(
        self, resource: ResourceType, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        if not self.allowed.is_set():
            raise UnreachableError("connection refused")
        return await self.client.list(resource, namespace, label_selector=label_selector, field_selector=field_selector)


async def test_the_start_waits_for_the_bootstrap_state_and_logs_the_error(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="wharfinger")
    async with memory_cluster() as client:
        await client.create(config_map("done"))
        hiding, known = Hiding(client), trio.Event()

        async def look() -> None:
            async with open_bootstrap(cast("ClusterClient", hiding), DONE) as bootstrap:
                assert bootstrap.finished
                known.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            with trio.move_on_after(60):
                await known.wait()
            assert not known.is_set()
            assert "until it is known whether ConfigMap default/done exists: connection refused" in caplog.text
            hiding.allowed.set()
            with trio.fail_after(120):
                await known.wait()
