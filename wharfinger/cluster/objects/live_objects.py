"""The objects of all releases as they are in the cluster, reported as they change: one watch for each kind, for all
listeners.

    async with open_live_objects(client, watches) as live:
        live.listen(health.changed)
        live.attend(deployments)

A kind is *attended* from :meth:`LiveObjects.attend` to :meth:`LiveObjects.release`. Meanwhile the objects of this kind that have
the label of a release are watched in all namespaces. Each change is parsed once and reported to every listener: the object, or
None once it is deleted or has lost the label (a watch with a selector cannot distinguish the two). Only the key of an object is
kept here; listeners keep the small facts that they need.

With :class:`~wharfinger.cluster.objects.unmarked_names.UnmarkedNames`, the names of the objects without that label are
watched as well, so that `LiveObjects.is_absent` needs no request.

Invariants:

* For every attended kind, the reports to a listener add up to the objects that exist: after a broken watch only the differences
  are reported.
* If a kind is no longer served, its objects do not exist any more. A watch does not report this; it fails instead. So a kind
  whose watch fails is looked up, and if the server does not know it, all its objects are reported as gone. The watch keeps
  trying, because the kind may come back.
* An object that cannot be read is only counted: it is reported neither as present nor as gone. So it does not block others.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.http_errors import NotServedError
from wharfinger.cluster.api.raw_object import RawChange, RawObject
from wharfinger.cluster.api.watch_stream import MAX_LINE_BYTES
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.objects.ownership import RELEASE_LABEL
from wharfinger.cluster.objects.unmarked_names import UnmarkedNames
from wharfinger.cluster.watch.object_stream import WatchSubscription
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, ShapeError, as_object, decode_json
from wharfinger.kube.resource import ObjectKey, ResourceType

CHECK_S: Final = 15.0
"""The interval in seconds at which the daemon searches for failing watches, and looks up their kinds."""

LiveListener: TypeAlias = Callable[[ObjectKey, JsonObject | None], None]
"""A callback that gets the present state of an object; None if the object is gone, or no longer has the label by which the
watch selects objects. It must not block, and must not raise.
"""

OnLookedUp: TypeAlias = Callable[[ResourceType, str | None], None]
"""A callback for the result of looking up a kind. The text is "" once all objects of the kind were reported; otherwise it is
the reason why they cannot be reported. It is None if the kind was released meanwhile.

Must not block, and must not raise.
"""


@dataclass(frozen=True, slots=True)
class LiveStatistics:
    """The counts of watched objects. ``unreadable`` and ``changes`` are totals since the start.

    ``objects`` is the number of objects known now, by kind (``ResourceType.group_kind`` with its version).
    """

    objects: dict[str, int]
    failing: dict[str, str]
    """The kinds that cannot be watched now, each with the reason."""
    changes: int
    unreadable: int


@dataclass(slots=True)
class _Followed:
    """A kind whose objects are watched for listeners. ``keys``: the objects that were reported to listeners and are not
    gone.
    """

    stack: ExitStack
    subscription: WatchSubscription
    told: str | None = None
    """The last result reported to the `OnLookedUp` callbacks; None if no result was reported."""
    keys: set[ObjectKey] = field(default_factory=set)
    waits: set[trio.CancelScope] = field(default_factory=set)

    def end(self) -> None:
        """Report nothing more, and wake the waiting tasks."""
        self.stack.close()
        for wait in tuple(self.waits):
            wait.cancel(reason="the kind is no longer watched")


class LiveObjects:
    """The live objects of the watched kinds. Made by :func:`open_live_objects`."""

    def __init__(
        self,
        client: ClusterClient,
        watches: SharedWatches,
        selector: str,
        unmarked: UnmarkedNames | None,
        nursery: trio.Nursery,
    ) -> None:
        """Initialize the watches; only `open_live_objects` calls this, because it owns the nursery."""
        self._client = client
        self._watches = watches
        self._selector = selector
        self._nursery = nursery
        self._listeners: tuple[LiveListener, ...] = ()
        self._looked_up: tuple[OnLookedUp, ...] = ()
        self._followed: dict[ResourceType, _Followed] = {}
        self._changes = 0
        self._unreadable = 0
        self._unmarked = unmarked

    def listen(self, listener: LiveListener, looked_up: OnLookedUp | None = None) -> None:
        """Report every change to this listener from now on. For a kind that is watched already, objects that were reported
        before are not reported again.

        ``looked_up`` is called for each watched kind once all objects of the kind were reported, or with the reason why they
        could not be reported. It is called again when this result changes, and when the kind is not watched any more.
        """
        self._listeners = (*self._listeners, listener)
        if looked_up is not None:
            self._looked_up = (*self._looked_up, looked_up)

    def attend(self, resource: ResourceType) -> None:
        """Watch this kind; do nothing if it is watched already."""
        if resource not in self._followed:
            self._follow(resource)
            if self._unmarked is not None:
                self._unmarked.attend(resource)

    def release(self, resource: ResourceType) -> None:
        """Stop watching a kind: from now on, nothing is reported about it, not even that its objects are gone."""
        if (followed := self._followed.pop(resource, None)) is not None:
            followed.end()
            if self._unmarked is not None:
                self._unmarked.release(resource)
            for looked_up in self._looked_up:
                looked_up(resource, None)

    def is_absent(self, key: ObjectKey) -> bool:
        """Return whether it is known that no object, in a release or not, has this kind and name.

        The result is False if this is not known, for example because the kind is not attended, or its watch is interrupted.
        """
        followed = self._followed.get(key.resource)
        if followed is None or not followed.subscription.is_current or key in followed.keys:
            return False
        return self._unmarked is not None and self._unmarked.is_absent(key)

    async def synced(self, resource: ResourceType) -> None:
        """Wait until all objects of a watched kind were reported. If the first attempt fails, raise its ClusterError or
        ShapeError.

        The watch keeps trying after that. If the kind is not watched, or its watch ends, return without waiting further.
        """
        if (followed := self._followed.get(resource)) is None:
            return
        with trio.CancelScope() as wait:
            followed.waits.add(wait)
            try:
                await followed.subscription.wait_first_list()
            finally:
                followed.waits.discard(wait)

    def statistics(self) -> LiveStatistics:
        """Return the number of watched objects by kind, and the kinds that cannot be watched now."""
        return LiveStatistics(
            objects={_named(resource): len(followed.keys) for resource, followed in sorted(self._followed.items())},
            failing={_named(resource): why for resource, why in self._failing().items()},
            changes=self._changes,
            unreadable=self._unreadable,
        )

    async def run(self) -> None:
        """Find the kinds that are no longer served, until cancelled. Runs in a task of :func:`open_live_objects`."""
        while True:
            await trio.sleep(CHECK_S)
            for resource in tuple(self._followed):
                self._report_looked_up(resource)
            for resource in self._failing():
                if await self._unserved(resource):
                    self._forget(resource)

    def close(self) -> None:
        """Stop watching all kinds."""
        for resource in tuple(self._followed):
            self.release(resource)

    # -- one kind

    def _follow(self, resource: ResourceType) -> None:
        with ExitStack() as stack:
            subscription = stack.enter_context(
                self._watches.subscribe(resource, "", self._selector, "", self._take),
            )
            self._followed[resource] = _Followed(stack.pop_all(), subscription)
        self._nursery.start_soon(self._await_list, resource, name=f"first list of {resource.group_kind}")

    async def _await_list(self, resource: ResourceType) -> None:
        try:
            await self.synced(resource)
        except (ClusterError, ShapeError) as error:
            self._report_looked_up(resource, str(error))
        else:
            self._report_looked_up(resource)

    def _report_looked_up(self, resource: ResourceType, why: str = "") -> None:
        """Report that a kind was listed or, with ``why``, why it could not be listed; do nothing if the same was reported last,
        or if the kind was reported as listed before.
        """
        followed = self._followed.get(resource)
        if followed is None or (not why and not followed.subscription.listed) or followed.told in ("", why):
            return
        followed.told = why
        for looked_up in self._looked_up:
            looked_up(resource, why)

    def _failing(self) -> dict[ResourceType, str]:
        return {
            one.resource: one.last_error
            for one in self._watches.statistics()
            if one.last_error
            and (one.namespace, one.label_selector, one.field_selector) == ("", self._selector, "")
            and one.resource in self._followed
        }

    async def _unserved(self, resource: ResourceType) -> bool:
        try:
            async with self._client.raw_list(resource, label_selector=self._selector) as pages:
                async for _ in pages:
                    return False
        except NotServedError:
            return True
        except ClusterError:
            return False
        return False

    def _forget(self, resource: ResourceType) -> None:
        """Report all objects of a kind as gone, and start a new watch, since a continued watch would not report the objects
        again.
        """
        followed = self._followed.get(resource)
        if followed is None:
            return
        followed.end()
        self._follow(resource)
        others = {
            (key.namespace, key.name)
            for other, one in self._followed.items()
            if other.group_kind == resource.group_kind
            for key in one.keys
        }
        for key in sorted(followed.keys):
            if (key.namespace, key.name) not in others:  # the object still exists if it is served in another version
                self._tell(key, None)

    # -- one object

    def _take(self, change: RawChange) -> None:
        self._changes += 1
        keys = self._followed[change.key.resource].keys
        if change.type is WatchType.DELETED or change.object is None:
            if change.key in keys:
                keys.discard(change.key)
                self._tell(change.key, None)
            return
        if (obj := _parsed(change.object)) is None:
            self._unreadable += 1
            return
        keys.add(change.key)
        self._tell(change.key, obj)

    def _tell(self, key: ObjectKey, obj: JsonObject | None) -> None:
        for listener in self._listeners:
            listener(key, obj)


@asynccontextmanager
async def open_live_objects(
    client: ClusterClient,
    watches: SharedWatches,
    *,
    selector: str = RELEASE_LABEL,
    unmarked: UnmarkedNames | None = None,
) -> AsyncGenerator[LiveObjects, None]:
    """Yield the watched kinds; their watches end with the block. Only objects that the label selector ``selector`` selects are
    watched.

    Resources: for each watched kind, a subscription to a shared watch, and a task until the kind has been listed; one further
    task for all kinds.
    """
    async with trio.open_nursery() as nursery:
        live = LiveObjects(client, watches, selector, unmarked, nursery)
        nursery.start_soon(live.run, name="live objects")
        try:
            yield live
        finally:
            live.close()
        nursery.cancel_scope.cancel()


def _parsed(raw: RawObject) -> JsonObject | None:
    """Return the object, or None if it cannot be read, for example because it is nested too deep."""
    try:
        return as_object(decode_json(raw.text, max_bytes=MAX_LINE_BYTES, what=str(raw.key)), str(raw.key))
    except FormatError:
        return None


def _named(resource: ResourceType) -> str:
    """Return the kind's name as text: ``Deployment.apps/v1``."""
    return f"{resource.group_kind}/{resource.version}"
