"""Runs the simulated controller manager against any ClusterClient.

Start order: watches of every kind, then one worker for each controller, which waits until the watches have listed all.
Leaving the block ends every task; whatever was not done is done by the next start, since everything is decided by what is
there (level-triggered).
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import trio

from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.control_plane.controllers.garbage_controller import GarbageController
from wharfinger.cluster.control_plane.controllers.mirror import Mirror
from wharfinger.cluster.control_plane.controllers.namespace_controller import NamespaceController
from wharfinger.cluster.control_plane.controllers.object_cache import ObjectCache
from wharfinger.cluster.control_plane.controllers.simulators import simulators
from wharfinger.cluster.control_plane.controllers.worker import Controller, Worker


@asynccontextmanager
async def open_controllers(
    client: ClusterClient, *, now: Callable[[], datetime] | None = None, root_ca: str = ""
) -> AsyncGenerator[None, None]:
    """Run all controllers for as long as the block runs.

    They write as whatever field manager the client's requests name. ``now`` is what conditions are dated with: the wall
    clock at the start, moved by trio's clock, unless given. ``root_ca`` is the certificate (PEM) that each namespace's
    ``kube-root-ca.crt`` holds.
    """
    clock = now or _trio_clock()
    cache = ObjectCache()
    controllers: list[Controller] = [
        *simulators(client, cache, clock),
        NamespaceController(client, cache, clock, root_ca),
        GarbageController(client, cache),
    ]
    mirror = Mirror(client, cache)
    async with trio.open_nursery() as nursery:
        for controller in controllers:
            worker = Worker(controller)
            cache.listen(worker.notice)
            nursery.start_soon(worker.run, mirror.synced, name=f"controller {controller.name}")
        nursery.start_soon(mirror.run, name="mirror")
        yield
        nursery.cancel_scope.cancel()


def _trio_clock() -> Callable[[], datetime]:
    start, base = datetime.now(UTC), trio.current_time()
    return lambda: start + timedelta(seconds=trio.current_time() - base)
