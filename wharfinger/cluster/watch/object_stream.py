"""One list and watch for any number of subscribers: each is notified of all objects, then of every change.

:mod:`~wharfinger.cluster.watch.informer_core` is the state machine that decides when to list and when to watch.
:mod:`~wharfinger.cluster.watch.object_fanout` decides which subscriber is notified of which change. This module contains the
task that connects these two with a client. Objects are passed on as the JSON text that was received. No object is held after
all subscribers were notified of it.

A list is processed page by page as it arrives. A subscriber that joins after a list has begun makes the stream list again; all
subscribers that join before that new list begins share it. While a list is under way, nothing is watched. The next watch begins
at the list's revision, so it also reports the changes that were made during the list.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final, assert_never

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError, ClusterError, GoneError
from wharfinger.cluster.api.raw_object import OnRawChange, RawEvent
from wharfinger.cluster.traffic.heartbeats import Followed, Heartbeat
from wharfinger.cluster.watch import informer_core as core
from wharfinger.cluster.watch.informer import LIST_LIMIT_S, OPENING_LIMIT_S
from wharfinger.cluster.watch.object_fanout import Listener, ObjectFanout
from wharfinger.formats.json.value import ShapeError
from wharfinger.kube.resource import ResourceType

MIN_RELIST_S: Final = 1.0
"""The shortest interval in seconds between lists. If a subscriber requests a shorter interval, this one is used."""


@dataclass(frozen=True, slots=True, order=True)
class WatchTarget:
    """The target of a list and watch: a kind in a namespace ("" for all), limited by a label selector and a field selector.

    ``metadata_only``: the objects are requested without spec and status.
    """

    resource: ResourceType
    namespace: str
    label_selector: str
    field_selector: str
    metadata_only: bool = False

    def __str__(self) -> str:
        """Return the text that task names and messages show for the target: ``Pod in prod (app=x)``."""
        return str(self.followed)

    @property
    def followed(self) -> Followed:
        """The kind, namespace and selectors of the target, for the heartbeat of its watch."""
        return Followed(self.resource.group_kind, self.namespace, self.label_selector, self.field_selector)


class WatchSubscription:
    """One subscription to the changes of the objects in a stream. Made by :meth:`ObjectStream.join`."""

    def __init__(self, listener: Listener, relist_s: float | None, is_watching: Callable[[], bool]) -> None:
        self.listener = listener
        self.relist_s = relist_s
        self._is_watching = is_watching
        self._attempted = trio.Event()
        self._first_error: ClusterError | ShapeError | None = None

    @property
    def listed(self) -> bool:
        """Return whether the subscriber has been notified of all objects of a list."""
        return not self.listener.fresh

    @property
    def is_current(self) -> bool:
        """Return whether the subscriber was notified of all objects, and an open watch reports every further change."""
        return self.listed and self._is_watching()

    async def wait_first_list(self) -> None:
        """Wait until the subscriber was notified of all objects, or the first attempt to list failed.

        Raises the ClusterError or ShapeError of this attempt if it failed. Only attempts that began after the subscription
        count. Use this method if the error of a first failure is to be reported immediately; the stream continues to retry.
        """
        await self._attempted.wait()
        if self._first_error is not None:
            raise self._first_error

    def attempted(self, error: ClusterError | ShapeError | None) -> None:
        """Record the end of an attempt to list that began after this subscription. ``error`` is None if the attempt succeeded.
        Only the first call has an effect.
        """
        if not self._attempted.is_set():
            self._first_error = error
            self._attempted.set()


@dataclass(frozen=True, slots=True)
class SharedWatchStatistics:
    """The state of a stream. The counters begin at its start. A successful request sets ``last_error`` to ""."""

    resource: ResourceType
    namespace: str
    label_selector: str
    field_selector: str
    phase: str
    subscribers: int
    objects: int
    lists: int
    watches: int
    events: int
    failures: int
    last_error: str


class ObjectStream:
    """The stream of one target: it lists and watches the objects while :meth:`run` runs."""

    def __init__(self, client: ClusterClient, target: WatchTarget, jitter: Callable[[], float]) -> None:
        self.target = target
        self._client = client
        self._jitter = jitter
        self._fanout = ObjectFanout()
        self._subscriptions: list[WatchSubscription] = []
        self._life = trio.CancelScope()
        self._state, self._effect = core.start()
        self._action = trio.CancelScope()
        self._cut_short = False
        self._list_begun = False
        self._listed_at = -inf
        self._lists = self._watches = self._events = self._failures = 0
        self._last_error = ""
        self._beat: Heartbeat

    # -- subscribers

    def join(self, on_change: OnRawChange, relist_s: float | None) -> WatchSubscription:
        """Add a subscriber; ``relist_s`` is the interval in seconds at which all objects are to be listed again."""
        subscription = WatchSubscription(self._fanout.join(on_change), relist_s, self._is_watching)
        self._subscriptions.append(subscription)
        if self._state.phase is not core.Phase.LISTING or self._list_begun:
            self._ask()
        return subscription

    def leave(self, subscription: WatchSubscription) -> None:
        """Remove a subscriber, which is not notified any more. When the last one leaves, the stream ends."""
        self._subscriptions.remove(subscription)
        self._fanout.leave(subscription.listener)
        if not self._subscriptions:
            self._life.cancel(reason="its last subscriber left")

    @property
    def over(self) -> bool:
        """Return whether the last subscriber left. If so, no subscriber may join any more."""
        return self._life.cancel_called

    def statistics(self) -> SharedWatchStatistics:
        """Return the present state of the stream, and its counters."""
        return SharedWatchStatistics(
            resource=self.target.resource,
            namespace=self.target.namespace,
            label_selector=self.target.label_selector,
            field_selector=self.target.field_selector,
            phase=self._state.phase.value,
            subscribers=len(self._subscriptions),
            objects=len(self._fanout),
            lists=self._lists,
            watches=self._watches,
            events=self._events,
            failures=self._failures,
            last_error=self._last_error,
        )

    def _is_watching(self) -> bool:
        return self._state.phase is core.Phase.WATCHING and not self._last_error

    # -- the task

    async def run(self) -> None:
        """Follow the server until the last subscriber leaves, or until cancelled."""
        with self._life, self._client.heartbeats.follow(self.target.followed) as self._beat:
            while True:
                with trio.CancelScope() as self._action:
                    event = await self._perform(self._effect)
                    if not self._cut_short:
                        self._step(event)
                self._cut_short = False

    def _step(self, event: core.Event) -> None:
        self._state, effect = core.step(self._state, event)
        if effect is not None:
            self._effect = effect
            self._list_begun = False

    def _ask(self) -> None:
        """Request a list. The running action is cancelled, unless it is already a list."""
        listing = self._state.phase is core.Phase.LISTING
        self._step(core.Asked())
        if not listing:
            self._cut_short = True
            self._action.cancel(reason="another list is needed")

    async def _perform(self, effect: core.Effect) -> core.Event:
        match effect:
            case core.StartList():
                return await self._list(paged=not effect.whole)
            case core.StartWatch():
                return await self._watch(effect.resource_version)
            case core.Pause():
                self._beat.begin("pausing", effect.delay_s)
                await trio.sleep(effect.delay_s)
                return core.Paused()
            case _:
                assert_never(effect)

    async def _list(self, *, paged: bool) -> core.Event:
        self._lists += 1
        target, revision = self.target, ""
        self._beat.begin("listing", LIST_LIMIT_S)
        try:
            async with self._client.raw_list(
                target.resource,
                target.namespace,
                label_selector=target.label_selector,
                field_selector=target.field_selector,
                paged=paged,
                metadata_only=target.metadata_only,
            ) as pages:
                self._begin_list()
                async for page in pages:
                    revision = page.resource_version
                    self._beat.received()
                    self._fanout.take_listed(page.items)
        except (ClusterError, ShapeError) as error:
            self._begin_list()
            self._report_attempted(error)
            return self._failed(error)
        self._fanout.end_list()
        self._listed_at = trio.current_time()
        self._last_error = ""
        self._report_attempted(None)
        return core.Listed(revision)

    def _begin_list(self) -> None:
        if not self._list_begun:
            self._list_begun = True
            self._fanout.begin_list()

    def _report_attempted(self, error: ClusterError | ShapeError | None) -> None:
        for subscription in self._subscriptions:
            if subscription.listener.covered:
                subscription.attempted(error)

    async def _watch(self, resource_version: str) -> core.Event:
        self._watches += 1
        target, started = self.target, trio.current_time()
        self._beat.begin("opening", OPENING_LIMIT_S)
        with trio.CancelScope(deadline=self._relist_at()):
            try:
                async with self._client.raw_watch(
                    target.resource,
                    target.namespace,
                    resource_version=resource_version,
                    label_selector=target.label_selector,
                    field_selector=target.field_selector,
                    metadata_only=target.metadata_only,
                ) as events:
                    self._beat.begin("watching", self._client.silence_limit(target.resource))
                    self._beat.received()
                    self._last_error = ""
                    async for event in events:
                        if self._cut_short:  # the watch was just ended; the list will report this change
                            break
                        self._take(event)
            except (ClusterError, ShapeError) as error:
                return self._failed(error)
            return core.WatchEnded(trio.current_time() - started, self._jitter())
        return core.Asked()

    def _relist_at(self) -> float:
        """Return the time at which all objects are to be listed again."""
        shortest = min((one.relist_s for one in self._subscriptions if one.relist_s is not None), default=inf)
        return self._listed_at + max(shortest, MIN_RELIST_S)

    def _take(self, event: RawEvent) -> None:
        self._events += 1
        self._beat.received()
        self._step(core.Seen(event.object.resource_version))
        self._fanout.take(event)

    def _failed(self, error: ClusterError | ShapeError) -> core.Failed:
        gone = isinstance(error, GoneError)
        if isinstance(error, ApiError):
            self._beat.received()
        if not gone:
            self._failures += 1
            self._last_error = str(error)
        return core.Failed(gone, self._jitter())
