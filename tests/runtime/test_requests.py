"""The number of requests to the API server for one package: at its install, at a change of its settings, at its removal, and at a
restart of the daemon.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest
import trio.testing

from tests.packages.support.charts import CONFIG_MAP, SIX_OBJECTS, write
from tests.runtime.support import world as world_module
from tests.runtime.support.world import PATIENCE_S, World, open_ground, open_world
from wharfinger.cluster.releases import revision_record
from wharfinger.control_plane.http.memory_transport import MemoryTransport
from wharfinger.runtime.controllers.controller import VERIFY_S
from wharfinger.runtime.status import writer
from wharfinger.runtime.status.writer import PAUSE_S

NAMES = ("first", "second", "third")
INSTALL = {
    "PATCH applications": 1,  # the finalizer
    "PATCH applications/status": 2,  # for the first reconciliation, and for Ready
    "GET secrets": 1,  # for the package's state
    "POST secrets": 2,  # for the state and the record
    "GET namespaces": 1,
    **{f"PATCH {kind}": 1 for kind in ("configmaps", "deployments", "roles", "secrets", "serviceaccounts", "services")},
    "PUT secrets": 1,  # the record is marked as deployed
}
CHANGE = {
    "PATCH applications/status": 1,
    "PATCH deployments": 1,
    "POST secrets": 1,  # for the record
}
CHANGE_OF_TWO = {**CHANGE, "PATCH configmaps": 1}
KINDS = ("configmaps", "deployments", "roles", "serviceaccounts", "services")
REMOVAL = {
    "PATCH applications/status": 1,
    "PATCH applications": 1,  # the finalizer
    "PUT secrets": 1,  # before the removal, the record is marked
    "GET namespaces": 1,
    **{f"{method} {kind}": 1 for kind in KINDS for method in ("GET", "DELETE")},
    "GET secrets": 1,
    "DELETE secrets": 3,  # for the chart's own Secret, the record and the state
}


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the requests to the control plane in this process, by method and resource."""
    requests = Counter[str]()
    original = MemoryTransport.handle_async_request

    async def handle(transport: MemoryTransport, request: httpx.Request) -> httpx.Response:
        parts = request.url.path.rpartition("/namespaces/")[2].split("/")
        resource = parts[1] if len(parts) > 1 else "namespaces"
        requests[f"{request.method} {'/'.join([resource, *parts[3:]])}"] += 1
        return await original(transport, request)

    with patch.object(MemoryTransport, "handle_async_request", handle):
        yield requests


async def settle(world: World, name: str) -> None:
    """Wait until the package is Ready and its queue is empty, and until all tasks of the daemon are blocked for a while."""
    await world.until_state("prod", name, "Ready")
    await world.runtime.queues.wait_idle(f"prod.{name}")
    await trio.testing.wait_all_tasks_blocked(0.05)


@pytest.mark.slow
async def test_install_change_and_removal_make_the_expected_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world_module, "STATUS_PAUSE_S", PAUSE_S)
    monkeypatch.setattr(writer, "BEGUN_S", PATIENCE_S)  # every change counts as quick, even on a slow machine
    monkeypatch.setattr(revision_record, "QUICK_S", PATIENCE_S)
    files = {**SIX_OBJECTS, "templates/config.yaml": CONFIG_MAP}
    async with open_world(tmp_path) as world:
        await world.push_folder(write(tmp_path / "six", files), "six", "1.0.0")
        await world.repository()
        await world.create("prod", "first", package="six")
        await settle(world, "first")  # after this, the kinds of the package are known and watched
        await world.create("prod", "second", package="six")
        with counted() as install:
            await settle(world, "second")
        assert install == INSTALL
        with counted() as change:
            await world.change("prod", "second", {"settings": {"replicas": 2}})
            await settle(world, "second")
        change["PATCH applications"] -= 1  # the test has made this request itself
        assert +change == CHANGE
        with counted() as change:
            await world.change("prod", "second", {"settings": {"replicas": 3, "text": "red"}})
            await settle(world, "second")
        change["PATCH applications"] -= 1
        assert +change == CHANGE_OF_TWO
        with counted() as removal:
            await world.delete("prod", "first")
            await world.until_gone("prod", "first")
        removal["DELETE applications"] -= 1  # the test has made this request itself
        assert +removal == REMOVAL


@pytest.mark.slow
async def test_a_restart_makes_the_expected_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world_module, "VERIFY_S", VERIFY_S)
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push_folder(write(tmp_path / "six", dict(SIX_OBJECTS)), "six", "1.0.0")
            await world.repository()
            for name in NAMES:
                await world.create("prod", name, package="six")
            for name in NAMES:
                await settle(world, name)
            await world.change("prod", NAMES[0], {"settings": {"replicas": 2}})
            await settle(world, NAMES[0])
        with counted() as restart:
            async with ground.open_world() as world:
                for name in NAMES:
                    await settle(world, name)
        for_all = {
            request for request in restart if request.startswith("GET api")
        }  # requests that list or watch the objects of a kind in all namespaces
        assert {request: count for request, count in restart.items() if request not in for_all} == {}
