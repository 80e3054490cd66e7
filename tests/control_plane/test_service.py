import random
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import trio.testing

from tests.cluster.support.client_contract import config_map, key
from tests.control_plane.support.controller_harness import settle
from tests.control_plane.support.samples import NOW, definition
from wharfinger.cluster.api.client import ObjectList
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.control_plane import service
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.service import (
    FIRST_NAMESPACES,
    LOCAL,
    ControlPlane,
    assemble,
    open_control_plane,
    utc_now,
)
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.control_plane.storage.sqlite import open_sqlite_storage
from wharfinger.control_plane.verbs.creation import NAMESPACES
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
NAMESPACE = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)


def web_deployment() -> JsonObject:
    labels: JsonObject = {"app": "web"}
    template: JsonObject = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


async def namespaces(client: HttpClusterClient) -> ObjectList:
    return await client.list(NAMESPACE)


async def test_the_first_namespaces_exist() -> None:
    async with (
        open_control_plane(simulate=False, now=lambda: NOW) as plane,
        open_client(Connection(LOCAL), transport=plane.transport()) as client,
    ):
        found = await namespaces(client)
    assert tuple(name_of(item) for item in found.items) == FIRST_NAMESPACES
    assert {find(item, "metadata", "creationTimestamp") for item in found.items} == {"2026-11-21T04:00:00Z"}


async def test_the_same_random_source_gives_the_same_uids() -> None:
    seen = []
    for seed in (1, 1, 2):
        async with open_control_plane(
            simulate=False,
            now=lambda: NOW,
            randomness=random.Random(seed),  # noqa: S311 - repeatable on purpose
        ) as plane:
            stored = plane.backend.storage.list(NAMESPACES, "")
            seen.append([find(item, "metadata", "uid") for item in stored])
    assert seen[0] == seen[1] != seen[2]


async def test_stored_objects_and_kinds_survive_a_restart() -> None:
    storage = MemoryStorage()
    async with (
        open_control_plane(storage=storage, simulate=False) as plane,
        open_client(Connection(LOCAL), transport=plane.transport()) as client,
    ):
        await client.create(definition())
        await client.create(config_map("kept"))
        before = await namespaces(client)
    async with (
        open_control_plane(storage=storage, simulate=False) as plane,
        open_client(Connection(LOCAL), transport=plane.transport()) as client,
    ):
        assert name_of(await client.get(key("kept"))) == "kept"
        assert (await client.resource_type("example.com/v1", "Widget")).plural == "widgets"
        assert (await namespaces(client)).items == before.items


async def test_controllers_continue_after_a_restart(autojump_clock: trio.testing.MockClock, tmp_path: Path) -> None:
    """The first process runs no controllers, as if it had died before any of them ran. The second process does their work."""
    path = tmp_path / "data.db"
    with open_sqlite_storage(path) as storage:
        async with (
            open_control_plane(storage=storage, simulate=False) as plane,
            open_client(Connection(LOCAL), transport=plane.transport()) as client,
        ):
            await client.create(web_deployment())
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "left"}})
            await client.create(config_map("content", namespace="left"))
            await client.delete(ObjectKey(NAMESPACE, "", "left"))
    with open_sqlite_storage(path) as storage:
        async with (
            open_control_plane(storage=storage) as plane,
            open_client(Connection(LOCAL), transport=plane.transport()) as client,
        ):
            await settle(60)
            web = ObjectKey(await client.resource_type("apps/v1", "Deployment"), "default", "web")
            assert find(await client.get(web), "status", "readyReplicas") == 2
            assert "left" not in {name_of(item) for item in (await namespaces(client)).items}
            assert (await client.list(CONFIG_MAP, namespace="left")).items == ()


async def test_older_revisions_are_answered_410_after_a_restart(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    path = tmp_path / "data.db"
    with open_sqlite_storage(path) as storage:
        async with open_control_plane(storage=storage, simulate=False) as plane:
            old = storage.revision
            async with open_client(Connection(LOCAL), transport=plane.transport()) as client:
                latest = find(await client.create(config_map("a")), "metadata", "resourceVersion")
    with open_sqlite_storage(path) as storage:
        async with (
            open_control_plane(storage=storage, simulate=False) as plane,
            httpx.AsyncClient(transport=plane.transport(), base_url=LOCAL) as http,
        ):
            watch = {"watch": "1", "timeoutSeconds": "1"}
            expired = await http.get("/api/v1/configmaps", params={**watch, "resourceVersion": str(old)})
            exact = {"resourceVersion": str(old), "resourceVersionMatch": "Exact"}
            gone = await http.get("/api/v1/configmaps", params=exact)
            going_on = await http.get("/api/v1/configmaps", params={**watch, "resourceVersion": str(latest)})
    assert (expired.json()["type"], expired.json()["object"]["code"]) == ("ERROR", 410)
    assert (gone.status_code, gone.json()["reason"]) == (410, "Expired")
    assert (going_on.status_code, going_on.text) == (200, "")


async def test_clients_without_the_token_are_refused() -> None:
    async with open_control_plane(simulate=False, token="sesame") as plane:
        async with open_client(Connection(LOCAL, bearer("sesame")), transport=plane.transport()) as client:
            assert len((await namespaces(client)).items) == 4
        async with open_client(Connection(LOCAL, bearer("wrong")), transport=plane.transport()) as client:
            with pytest.raises(ClusterError, match=r"401|[Uu]nauthorized"):
                await namespaces(client)


async def test_controllers_run_while_the_block_runs(autojump_clock: trio.testing.MockClock) -> None:
    storage = MemoryStorage()
    async with (
        open_control_plane(storage=storage, token="sesame") as plane,
        open_client(Connection(LOCAL, bearer("sesame")), transport=plane.transport()) as client,
    ):
        created = await client.create(web_deployment())
        await settle(60)
        web = ObjectKey(await client.resource_type("apps/v1", "Deployment"), "default", "web")
        ready = await client.get(web)
    assert find(created, "status", "readyReplicas") is None
    assert find(ready, "status", "readyReplicas") == find(ready, "spec", "replicas")
    assert autojump_clock.current_time() > 60

    async with (
        open_control_plane(storage=storage, simulate=False) as plane,
        open_client(Connection(LOCAL), transport=plane.transport()) as client,
    ):
        before = storage.revision
        await client.merge_patch(web, {"spec": {"replicas": 7}})
        await settle(60)
        assert storage.revision == before + 1


async def test_watches_of_a_kind_end_with_its_definition(autojump_clock: trio.testing.MockClock) -> None:
    async with (
        open_control_plane(simulate=False) as plane,
        open_client(Connection(LOCAL), transport=plane.transport()) as client,
        httpx.AsyncClient(transport=plane.transport(), base_url=LOCAL) as http,
    ):
        await client.create(definition())
        crd = await client.resource_type("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        began = autojump_clock.current_time()
        async with http.stream("GET", "/apis/example.com/v1/widgets", params={"watch": "1"}) as response:
            assert response.status_code == 200
            async with trio.open_nursery() as nursery:
                nursery.start_soon(response.aread)
                await trio.testing.wait_all_tasks_blocked()
                await client.delete(ObjectKey(crd, "", "widgets.example.com"))
        assert autojump_clock.current_time() - began < 1


def test_assembling_a_control_plane_makes_no_requests() -> None:
    plane = assemble(MemoryStorage(), utc_now, None, None)
    assert isinstance(plane, ControlPlane)
    assert plane.handler.metrics.requests == {}


def test_an_unknown_built_in_kind_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"wharves of group 'example\.com' is not in the table"):
        service._served(Catalog(), "example.com", "wharves")


def test_the_clock_is_utc() -> None:
    before = datetime.now(UTC)
    assert before <= utc_now() <= datetime.now(UTC)
    assert utc_now().utcoffset() == before.utcoffset()
