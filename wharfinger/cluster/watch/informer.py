"""A copy in memory of all objects of a kind (within a namespace and a selector), which is kept up to date with the server.

:mod:`~wharfinger.cluster.watch.informer_core` is the state machine that decides when to list and when to watch.
:mod:`~wharfinger.cluster.watch.object_cache` holds the objects. This module contains the task that connects both with a
client.

While the API server does not answer, the last known objects remain readable, and :meth:`Informer.statistics` has the error.
When the server answers again, the cache catches up, and reports the changes.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from math import inf
from random import random
from typing import Final, assert_never

import trio

from wharfinger.cluster.api.client import ClusterClient, WatchEvent
from wharfinger.cluster.api.errors import ApiError, ClusterError, GoneError
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.traffic.heartbeats import Followed, Heartbeat
from wharfinger.cluster.watch import informer_core as core
from wharfinger.cluster.watch.object_cache import Changes, ObjectCache, OnChange, ignore_change, whole
from wharfinger.formats.json.value import JsonObject, ShapeError, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType

log = logging.getLogger(__name__)

LIST_PATIENCE_S: Final = 5.0
"""The interval, in seconds, at which `wait_listed` logs why the first list of an informer is still missing."""
LIST_LIMIT_S: Final = 600.0
"""The time limit, in seconds, for a list, or for one page of a list. After this time, the watch counts as stale. The limit for
each request is shorter.
"""
OPENING_LIMIT_S: Final = 600.0
"""The time limit for opening a watch. After it, the watch counts as stale. The limit is long, because requests to an
overloaded server wait long for their turn.
"""


@dataclass(frozen=True, slots=True)
class InformerStatistics:
    """The state of an informer. The counters begin at its start. A successful request sets ``last_error`` to ""."""

    phase: str
    synced: bool
    objects: int
    resource_version: str
    lists: int
    watches: int
    events: int
    failures: int
    failures_in_a_row: int
    last_error: str


class Informer:
    """An informer of one kind. Made by :func:`open_informer`."""

    def __init__(
        self,
        client: ClusterClient,
        resource: ResourceType,
        namespace: str,
        label_selector: str,
        field_selector: str,
        cache: ObjectCache,
        jitter: Callable[[], float],
    ) -> None:
        self.resource = resource
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._jitter = jitter
        self._cache = cache
        self._attempted = trio.Event()
        self._first_error: ClusterError | ShapeError | None = None
        self._synced = trio.Event()
        self._state = core.State()
        self._action = trio.CancelScope()
        self._replacement: core.Effect | None = None
        """The action to start after the running action, which was cancelled, has ended; None if no action was cancelled."""
        self._waiting: list[trio.Event] = []
        """Events of the calls of :meth:`list_anew`, one for each call whose list has not begun yet."""
        self._lists = self._watches = self._events = self._failures = 0
        self._last_error = ""
        self._beat: Heartbeat

    def objects(self) -> Mapping[ObjectKey, JsonObject]:
        """Return a snapshot of all objects, which must not be changed."""
        return self._cache.objects()

    def get(self, key: ObjectKey) -> JsonObject | None:
        """Return the last known state of one object; None if it is not known to exist."""
        return self._cache.get(key)

    def changes(self) -> AbstractContextManager[Changes]:
        """Return a subscription to changes. Its first wait returns the keys of all objects.

        Used as ``with informer.changes() as changes: keys = await changes.wait()``.
        """
        return self._cache.subscribe()

    async def wait_synced(self) -> None:
        """Wait until the first list is complete. The caller sets the deadline; :meth:`statistics` has the reason for a delay."""
        await self._synced.wait()

    async def list_anew(self) -> None:
        """Wait for a new list that begins after this call. A running watch or pause is ended, so that the list can begin;
        failed attempts are repeated as usual.
        """
        listed = trio.Event()
        self._waiting.append(listed)
        self._state, effect = core.step(self._state, core.Asked())
        if effect is not None:
            self._replacement = effect
            self._action.cancel(reason="another list is needed")
        await listed.wait()

    def heard_s_ago(self) -> float:
        """Return the seconds since the server last answered or sent anything; infinity if it never did."""
        heard = self._beat.sign().heard_s_ago
        return inf if heard is None else heard

    async def wait_first_list(self) -> None:
        """Wait until the first attempt to list ends. Raises the ClusterError or ShapeError of this attempt if it failed.

        Use this method if the error of a first failure is to be reported immediately; the informer continues to retry.
        """
        await self._attempted.wait()
        if self._first_error is not None:
            raise self._first_error

    def statistics(self) -> InformerStatistics:
        """Return the present state."""
        return InformerStatistics(
            phase=self._state.phase.value,
            synced=self._synced.is_set(),
            objects=len(self._cache),
            resource_version=self._state.resource_version,
            lists=self._lists,
            watches=self._watches,
            events=self._events,
            failures=self._failures,
            failures_in_a_row=self._state.failures,
            last_error=self._last_error,
        )

    async def run(self) -> None:
        """Follow the server until cancelled."""
        self._state, effect = core.start()
        chosen = (self._label_selector, self._field_selector)
        with self._client.heartbeats.follow(Followed(self.resource.group_kind, self._namespace, *chosen)) as beat:
            self._beat = beat
            while True:
                with trio.CancelScope() as self._action:
                    event = await self._perform(effect)
                if self._replacement is not None:
                    effect, self._replacement = self._replacement, None
                    continue
                self._state, following = core.step(self._state, event)
                assert following is not None, f"{event} ends an action"  # noqa: S101 - an invariant of the machine
                effect = following

    async def _perform(self, effect: core.Effect) -> core.Event:
        match effect:
            case core.StartList():
                return await self._list()  # the client itself repeats a list that the server forgot
            case core.StartWatch():
                return await self._watch(effect.resource_version)
            case core.Pause():
                self._beat.begin("pausing", effect.delay_s)
                await trio.sleep(effect.delay_s)
                return core.Paused()
            case _:
                assert_never(effect)

    async def _list(self) -> core.Event:
        self._lists += 1
        self._beat.begin("listing", LIST_LIMIT_S)
        waiting, self._waiting = self._waiting, []
        try:
            listed = await self._client.list(
                self.resource,
                self._namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
            )
            self._cache.replace(listed.items)
        except (ClusterError, ShapeError) as error:
            self._waiting += waiting
            if not self._attempted.is_set():
                self._first_error = error
                self._attempted.set()
            return self._failed(error)
        self._beat.received()
        self._last_error = ""
        self._attempted.set()
        self._synced.set()
        for listed_anew in waiting:
            listed_anew.set()
        return core.Listed(listed.resource_version)

    async def _watch(self, resource_version: str) -> core.Event:
        self._watches += 1
        self._beat.begin("opening", OPENING_LIMIT_S)
        started = trio.current_time()
        try:
            async with self._client.watch(
                self.resource,
                self._namespace,
                resource_version=resource_version,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
            ) as events:
                self._beat.begin("watching", self._client.silence_limit(self.resource))
                self._beat.received()
                self._last_error = ""
                async for event in events:
                    if self._replacement is not None:
                        break  # the list that replaces this watch has the change, too
                    self._take(event)
        except (ClusterError, ShapeError) as error:
            return self._failed(error)
        return core.WatchEnded(trio.current_time() - started, self._jitter())

    def _take(self, event: WatchEvent) -> None:
        """Apply one event to the cache, and pass the event's revision to the state machine."""
        self._events += 1
        self._beat.received()
        match event.type:
            case WatchType.ADDED | WatchType.MODIFIED:
                self._cache.put(event.object)
            case WatchType.DELETED:
                self._cache.drop(event.object)
            case WatchType.BOOKMARK:
                pass
            case _:
                assert_never(event.type)
        self._state, _ = core.step(self._state, core.Seen(find_str(event.object, "metadata", "resourceVersion")))

    def _failed(self, error: ClusterError | ShapeError) -> core.Failed:
        gone = isinstance(error, GoneError)
        if isinstance(error, ApiError):
            self._beat.received()
        if not gone:
            self._failures += 1
            self._last_error = str(error)
        return core.Failed(gone, self._jitter())


async def wait_listed(*informers: Informer, fresh_s: float = inf) -> None:
    """Wait for the first list of each informer, and log every few seconds why one is late.

    An informer that has received nothing from its server for ``fresh_s`` seconds lists anew: its connection may have broken
    unnoticed, so changes may be missing.
    """
    for informer in informers:
        while True:
            with trio.move_on_after(LIST_PATIENCE_S) as patience:
                await informer.wait_synced()
                if informer.heard_s_ago() > fresh_s:
                    await informer.list_anew()
            if not patience.cancelled_caught:
                break
            why = informer.statistics().last_error or "no answer yet"
            log.warning("cannot list %s: %s; retrying", informer.resource.group_kind, why)


@asynccontextmanager
async def open_informer(
    client: ClusterClient,
    resource: ResourceType,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
    *,
    keep: Callable[[JsonObject], JsonObject] = whole,
    on_change: OnChange = ignore_change,
    jitter: Callable[[], float] = random,
) -> AsyncGenerator[Informer, None]:
    """Yield an informer of a kind in a namespace ("" for all) for as long as the block runs.

    ``keep`` returns the part of an object that the cache holds. ``on_change`` is called for each change, and for each object of
    the first list. ``jitter`` returns a number in [0, 1).
    """
    cache = ObjectCache(resource, keep=keep, on_change=on_change)
    informer = Informer(client, resource, namespace, label_selector, field_selector, cache, jitter)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(informer.run, name=f"informer {resource.group_kind} {namespace}".strip())
        yield informer
        nursery.cancel_scope.cancel()
