"""The statuses that are written when the daemon stops, with a control plane in memory."""

import httpx
import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.release_bench import cluster
from tests.runtime.support.statuses import ready
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.runtime.controllers.last_statuses import WRITE_S, LastStatuses, open_last_statuses
from wharfinger.runtime.resources.custom_resources import ensure_crds
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import APPLICATION, resource_key
from wharfinger.runtime.status.writer import StatusWriter


def unknown(*_: object) -> None:
    """Do nothing. The controllers have ended, so nothing is reconciled again."""


def writer(*unwritten: str) -> StatusWriter:
    made = StatusWriter(unknown, unknown)
    made.unwritten |= set(unwritten)
    return made


async def create(client: ClusterClient, name: str, **metadata: list[str]) -> None:
    app: JsonObject = {
        "apiVersion": APPLICATION.api_version,
        "kind": "Application",
        "metadata": {"name": name, "namespace": "default", **{key: list(value) for key, value in metadata.items()}},
        "spec": {"packageName": "web", "packageVersion": "1.0.0"},
    }
    await client.create(app)


async def state(client: ClusterClient, name: str) -> str:
    return find_str(await client.get(resource_key(AppId("default", name))), "status", "summary", "state")


async def test_only_changed_statuses_of_objects_that_stay_are_written(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        await ensure_crds(client, "test")
        for name in ("changed", "compared"):
            await create(client, name)
        await create(client, "going", finalizers=["example.com/hold"])
        await client.delete(resource_key(AppId("default", "going")))
        names = ("changed", "going", "gone", "unknown")
        async with open_last_statuses(client, writer(*(f"default.{name}" for name in names))) as last:
            last.status_of = lambda name: None if name == "default.unknown" else ready()
            transport.requests.clear()
        assert transport.writes == ["PATCH status"]
        assert [await state(client, name) for name in ("changed", "compared", "going")] == ["Ready", "", ""]
        async with open_last_statuses(client, writer("default.changed")) as last:
            last.status_of = lambda _: ready()
            transport.requests.clear()
        assert transport.requests == ["GET changed"]  # the written status is already correct


async def test_nothing_is_written_after_a_cancellation(autojump_clock: MockClock) -> None:
    async with cluster() as (client, transport):
        with trio.CancelScope() as scope:
            async with open_last_statuses(client, writer("default.web")) as last:
                last.status_of = lambda _: ready()
                scope.cancel()
                await trio.lowlevel.checkpoint()
        assert transport.requests == []


async def test_failed_or_hanging_writes_do_not_delay_the_stop(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with cluster() as (client, transport):
        never = trio.Event()
        await ensure_crds(client, "test")
        await create(client, "web")
        transport.fault = lambda _: never
        started = trio.current_time()
        await LastStatuses(client, writer("default.web"), lambda _: ready()).write()
        assert trio.current_time() - started == WRITE_S
        assert "the statuses of 1 packages had to be written before the stop, and not all" in caplog.text
        transport.fault = lambda _: httpx.Response(403, json={"kind": "Status", "code": 403, "reason": "Forbidden"})
        await LastStatuses(client, writer("default.web"), lambda _: ready()).write()
        assert "default.web: cannot write the last status now, so the next start writes it" in caplog.text
