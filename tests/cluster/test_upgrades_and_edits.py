"""An upgrade, a user's edit, and the correction of an earlier edit. The tests force their order."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import config_map as live_map
from tests.cluster.support.client_contract import key
from tests.cluster.support.release_bench import Clock
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.fields.conflicts import FieldConflictError
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.service import open_release_engine
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.control_plane.service import LOCAL, open_control_plane


class LateAnswer(httpx.AsyncBaseTransport):
    """A transport that holds the answer to a completed write of the object ``a``, as a busy network might do."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.armed = False
        self.done = trio.Event()
        self.go = trio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        written = request.method == "PATCH" and request.url.path.endswith("/a") and response.status_code < 300
        if self.armed and written:
            self.armed = False
            self.done.set()
            await self.go.wait()
        return response


@asynccontextmanager
async def late() -> AsyncIterator[tuple[HttpClusterClient, ReleaseEngine, LateAnswer]]:
    """Open a client for a user, and an engine. Yield both of them, and the transport through which the engine sends its
    requests.
    """
    async with open_control_plane(simulate=False) as control_plane:
        held = LateAnswer(control_plane.transport())
        async with (
            open_client(Connection(LOCAL), transport=control_plane.transport()) as person,
            open_client(Connection(LOCAL), transport=held) as client,
            open_shared_watches(client) as watches,
            open_release_engine(client, watches, EngineOptions(now=Clock())) as engine,
        ):
            yield person, engine, held


async def edit(person: HttpClusterClient, value: str) -> None:
    await person.apply(live_map("a", v=value), field_manager="ann", force=True)


async def test_an_upgrade_after_an_edit_tolerates_a_correction_in_progress(autojump_clock: MockClock) -> None:
    """An object is edited again, and its package is upgraded, before the answer to the correction of the first edit arrives.

    The upgrade knows the applied fields even before this answer arrives. The edited field was ours, so it is taken back.
    """
    async with late() as (person, engine, held):
        await engine.upgrade(request(config_map("a", v="1")))
        held.armed = True
        await edit(person, "person")
        with trio.fail_after(60):
            await held.done.wait()
        await edit(person, "person again")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.upgrade, request(config_map("a", v="2")))
            await wait_all_tasks_blocked()  # the upgrade's row waits for the attempt in progress
            held.go.set()
        assert (await person.get(key("a")))["data"] == {"v": "2"}


async def test_a_field_that_was_never_ours_is_refused(autojump_clock: MockClock) -> None:
    """While the engine corrects an edit, the package is upgraded. The new chart sets a field that only another manager has set
    so far.
    """
    async with late() as (person, engine, held):
        await engine.upgrade(request(config_map("a", v="1")))
        held.armed = True
        await person.apply(live_map("a", v="person", w="hers"), field_manager="ann", force=True)
        with trio.fail_after(60):
            await held.done.wait()
        with pytest.raises(ExceptionGroup) as caught:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(engine.upgrade, request(config_map("a", v="1", w="ours")))
                await wait_all_tasks_blocked()
                held.go.set()
        assert caught.group_contains(FieldConflictError, match=r"\.data\.w belongs to 'ann'")
