"""One list and watch for each target (kind, namespace, selectors), however many hooks and packages follow it.

    with watches.subscribe(pods, "prod", "app=x", "", on_change) as subscription:
        await subscription.wait_first_list()

Subscribers may rely on this: ``on_change`` is called with ADDED for every object before `wait_first_list` returns, then with
every change, in the order of the watch; after the block, ``on_change`` is not called any more. ``on_change`` must not block
or raise. An exception is a bug, which ends the block of :func:`open_shared_watches`, after the other subscribers were
notified of the same object.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from functools import partial
from random import random

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.raw_object import OnRawChange
from wharfinger.cluster.watch.object_stream import ObjectStream, SharedWatchStatistics, WatchSubscription, WatchTarget
from wharfinger.kube.resource import ResourceType


class SharedWatches:
    """The shared watches: one stream of objects for each target (a kind, a namespace and selectors). Made by
    :func:`open_shared_watches`.
    """

    def __init__(self, client: ClusterClient, jitter: Callable[[], float], nursery: trio.Nursery) -> None:
        """Initialize the watches; only `open_shared_watches` calls this, because it owns the nursery."""
        self._client = client
        self._jitter = jitter
        self._nursery = nursery
        self._context = copy_context()
        self._streams: dict[WatchTarget, ObjectStream] = {}

    @contextmanager
    def subscribe(
        self,
        resource: ResourceType,
        namespace: str,
        label_selector: str,
        field_selector: str,
        on_change: OnRawChange,
        *,
        relist_s: float | None = None,
        metadata_only: bool = False,
    ) -> Iterator[WatchSubscription]:
        """Subscribe to the selected objects of a kind in a namespace ("" for all) for as long as the block runs.

        ``relist_s``: the number of seconds after a list until everything is listed again; the stream uses the shortest interval
        of its subscribers. ``metadata_only``: objects are requested without spec and status, if the server supports that.
        """
        place = namespace if resource.namespaced else ""
        target = WatchTarget(resource, place, label_selector, field_selector, metadata_only)
        stream = self._streams.get(target)
        if stream is None:
            stream = self._streams[target] = ObjectStream(self._client, target, self._jitter)
            # The task does not run in the context of the first subscriber, because its log lines belong to no single subscriber.
            self._context.run(partial(self._nursery.start_soon, stream.run, name=f"watch {target}"))
        subscription = stream.join(on_change, relist_s)
        try:
            yield subscription
        finally:
            stream.leave(subscription)
            if stream.over:
                del self._streams[target]

    def statistics(self) -> tuple[SharedWatchStatistics, ...]:
        """Return the state of each stream, sorted by target."""
        return tuple(self._streams[target].statistics() for target in sorted(self._streams))


@asynccontextmanager
async def open_shared_watches(
    client: ClusterClient, *, jitter: Callable[[], float] = random
) -> AsyncGenerator[SharedWatches, None]:
    """Yield shared watches for as long as the block runs.

    ``jitter`` returns a number in [0, 1), for the delays after failures. Each target that has subscribers occupies a task and
    an open watch.
    """
    async with trio.open_nursery() as nursery:
        yield SharedWatches(client, jitter, nursery)
        nursery.cancel_scope.cancel()
