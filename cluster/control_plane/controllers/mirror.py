"""Keeps an :class:`~.object_cache.ObjectCache` like the cluster: one list-and-watch per kind that can be listed.

The built-in kinds are discovered once; custom kinds come and go with their CustomResourceDefinitions, which are mirrored
themselves. ``synced`` is set when each kind known at the start has been listed once: before that, what is absent from the
cache may be there.
"""

import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.cluster.client import ClusterClient, WatchEvent, WatchType
from wharfinger.cluster.control_plane.controllers.object_cache import Change, ObjectCache, key_of
from wharfinger.cluster.errors import ApiError, ClusterError, GoneError, UnknownKindError
from wharfinger.cluster.resource import ResourceType
from wharfinger.formats.json_value import JsonObject, find, find_list, find_str

log: Final = logging.getLogger(__name__)

DEFINITION: Final = "CustomResourceDefinition.apiextensions.k8s.io"
FIRST_PAUSE_S: Final = 0.05
LAST_PAUSE_S: Final = 10.0
_NOT_SERVED: Final = 404
_NOT_LISTED: Final = 405
_SKIPPED: Final = frozenset({"Event", "Event.events.k8s.io"})
"""Kinds that own nothing, are owned by nobody, and come in floods."""


@dataclass(frozen=True, slots=True, eq=False)
class _Mirrored:
    """The mirror of one kind, by which it is stopped."""

    resource: ResourceType
    scope: trio.CancelScope


class Mirror:
    """Runs the watches. Made and run by :func:`~.service.open_controllers`."""

    def __init__(self, client: ClusterClient, cache: ObjectCache) -> None:
        self._client = client
        self._cache = cache
        self.synced = trio.Event()
        self._unlisted: set[ResourceType] = set()
        self._running: dict[tuple[str, str], _Mirrored] = {}
        self._arrivals: trio.Event = trio.Event()
        self._waiting: dict[tuple[str, str], ResourceType] = {}
        cache.listen(self._definition_changed)

    async def run(self) -> None:
        """Mirror until cancelled."""
        found = await self._discover()
        self._unlisted = set(found)
        self._waiting |= {(resource.group, resource.plural): resource for resource in found}
        async with trio.open_nursery() as nursery:
            while True:
                waiting, self._waiting = self._waiting, {}
                for kind, resource in waiting.items():
                    running = self._running.get(kind)
                    if running is not None and running.resource != resource:
                        self._stop(kind)
                        running = None
                    if running is None and resource is not None:
                        self._running[kind] = _Mirrored(resource, trio.CancelScope())
                        nursery.start_soon(self._mirror, self._running[kind], name=f"mirror {resource.plural}")
                self._check_synced()
                self._arrivals = trio.Event()  # no await between looking at what waits and this line
                await self._arrivals.wait()

    def statistics(self) -> dict[str, int]:
        """What the cache holds, and how many kinds were never listed."""
        return {**self._cache.statistics(), "unlisted": len(self._unlisted)}

    # -- which kinds

    async def _discover(self) -> list[ResourceType]:
        """One type for each kind that is served, at its first version."""
        for pause in _pauses():
            try:
                return await self._served()
            except ClusterError as error:
                log.warning("cannot discover what to watch: %s; trying again in %.2f s", error, pause)
            await trio.sleep(pause)
        raise AssertionError("pauses never end")

    async def _served(self) -> list[ResourceType]:
        found: dict[tuple[str, str], ResourceType] = {}
        for text in await self._client.api_versions():
            api_version, _, kind = text.rpartition("/")
            if not kind[:1].isupper():
                continue
            try:
                resource = await self._client.resource_type(api_version, kind)
            except UnknownKindError:
                continue
            if resource.group_kind not in _SKIPPED:
                found.setdefault((resource.group, resource.plural), resource)
        return list(found.values())

    def _definition_changed(self, change: Change) -> None:
        if change.key.resource.group_kind != DEFINITION:
            return
        kind = find_str(change.known, "spec", "group"), find_str(change.known, "spec", "names", "plural")
        if change.after is None:
            self._stop(kind)
            self._waiting.pop(kind, None)
            return
        resource = custom_type(change.after)
        if resource is not None:
            self._waiting[kind] = resource
            self._arrivals.set()

    def _stop(self, kind: tuple[str, str]) -> None:
        running = self._running.pop(kind, None)
        if running is not None:
            running.scope.cancel()

    # -- one kind

    async def _mirror(self, running: _Mirrored) -> None:
        resource, pauses = running.resource, _pauses()
        with running.scope:
            while True:
                try:
                    version = await self._list(resource)
                    pauses = _pauses()
                    await self._watch(resource, version)
                except GoneError:
                    log.debug("%s: the watch is too old; listing again", resource.group_kind)
                except ApiError as error:
                    if error.code == _NOT_LISTED:
                        break
                    if error.code == _NOT_SERVED:
                        self._cache.forget_kind(resource)
                        self._listed(resource)
                    log.log(_level(error), "watching %s: %s", resource.group_kind, error)
                except ClusterError as error:
                    log.warning("watching %s: %s", resource.group_kind, error)
                await trio.sleep(next(pauses))
        successor = self._running.get((resource.group, resource.plural))
        if successor is None or successor is running or successor.resource != resource:
            self._cache.forget_kind(resource)
        self._listed(resource)

    async def _list(self, resource: ResourceType) -> str:
        """List all there is; the revision to watch from."""
        listed = await self._client.list(resource)
        self._cache.replace_kind(resource, listed.items)
        self._listed(resource)
        return listed.resource_version

    async def _watch(self, resource: ResourceType, version: str) -> None:
        """Watch, again each time the server ends it, until it raises."""
        while True:
            async with self._client.watch(resource, resource_version=version) as events:
                async for event in events:
                    version = find_str(event.object, "metadata", "resourceVersion", default=version)
                    self._apply(resource, event)
            await trio.sleep(FIRST_PAUSE_S)

    def _apply(self, resource: ResourceType, event: WatchEvent) -> None:
        key = key_of(resource, event.object)
        match event.type:
            case WatchType.ADDED | WatchType.MODIFIED:
                self._cache.put(key, event.object)
            case WatchType.DELETED:
                self._cache.drop(key)
            case WatchType.BOOKMARK:
                pass

    def _listed(self, resource: ResourceType) -> None:
        self._unlisted.discard(resource)
        self._check_synced()

    def _check_synced(self) -> None:
        if not self._unlisted:
            self.synced.set()


def custom_type(definition: JsonObject) -> ResourceType | None:
    """The kind a CustomResourceDefinition makes, at its first served version; None until it is established."""
    entries = find_list(definition, "status", "conditions")
    if not any(find(one, "type") == "Established" and find(one, "status") == "True" for one in entries):
        return None
    served = [one for one in find_list(definition, "spec", "versions") if find(one, "served") is True]
    if not served:
        return None
    return ResourceType(
        find_str(definition, "spec", "group"),
        find_str(served[0], "name"),
        find_str(definition, "spec", "names", "kind"),
        find_str(definition, "spec", "names", "plural"),
        namespaced=find_str(definition, "spec", "scope") == "Namespaced",
    )


def _level(error: ApiError) -> int:
    """A kind that is not served is no news: its definition may just have gone."""
    return logging.DEBUG if error.code == _NOT_SERVED else logging.WARNING


def _pauses() -> Iterator[float]:
    """Growing pauses with jitter, at last LAST_PAUSE_S."""
    pause = FIRST_PAUSE_S
    while True:
        yield pause * (0.5 + random.random() / 2)  # noqa: S311 - jitter
        pause = min(pause * 2, LAST_PAUSE_S)
