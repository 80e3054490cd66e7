"""A fake cluster for the random histories of test_watch_story. It implements the interface of a cluster client. Its watches
break on request.

It has ConfigMaps and Namespaces, and implements the part of a client that shared watches use. A list is split into small pages.
A watch begins after a given revision. Like a watch of a real API server, it reports an object that begins to match its selector
as added, and an object that ceases to match as deleted.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError, GoneError, UnreachableError
from wharfinger.cluster.api.raw_object import RawEvent, RawObject, RawPage, read_raw_object
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.traffic.heartbeats import Heartbeats
from wharfinger.kube.resource import ResourceType

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps", namespaced=True)
NAMESPACE = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
KINDS = {"configmap": CONFIG_MAP, "namespace": NAMESPACE}
PAGE = 2
TEAM = "team=a"
"""The label of a selected namespace."""
GONE = GoneError(410, "Expired", "too old")


@dataclass(frozen=True)
class Stored:
    """One state of one object."""

    resource: ResourceType
    namespace: str
    name: str
    uid: int
    revision: int
    label: str
    value: int

    def text(self, revision: int) -> bytes:
        """Return the object's JSON with this revision. For a deleted object, give the revision of the deletion."""
        metadata = {"name": self.name, "uid": f"uid-{self.uid}", "resourceVersion": str(revision)}
        if self.namespace:
            metadata["namespace"] = self.namespace
        document = {"metadata": metadata, "data": {"v": str(self.value)}}
        return json.dumps(document).encode()

    def raw(self, revision: int = 0) -> RawObject:
        """Return the object in the form in which a client returns it."""
        return read_raw_object(self.text(revision or self.revision), self.resource)


Place = tuple[str, str, str]
"""A place: kind, namespace, name."""


@dataclass(frozen=True)
class Query:
    """The objects that a list or watch selects. The label selector is ``app=x``, ``team=a`` or empty; the field selector is
    ``metadata.name=n`` or empty.
    """

    resource: ResourceType
    namespace: str
    label_selector: str
    field_selector: str

    def has(self, stored: Stored | None) -> bool:
        """Return whether an object in this state is selected. None, the state of a missing object, is never selected."""
        return (
            stored is not None
            and stored.resource == self.resource
            and self.namespace in ("", stored.namespace)
            and self.label_selector in ("", stored.label)
            and self.field_selector in ("", f"metadata.name={stored.name}")
        )


@dataclass
class StoryCluster:
    """A fake cluster: its objects, and the history of their changes. `break_watches`, `forget` and `failing` cause faults."""

    now: dict[Place, Stored] = field(default_factory=dict)
    history: list[tuple[int, Stored | None, Stored | None]] = field(default_factory=list)
    revision: int = 1
    compacted: int = 0
    failing: int = 0
    """The number of requests that will still fail."""
    requests: int = 0
    _uids: int = 0
    _changed: trio.Event = field(default_factory=trio.Event)
    _broken: int = 0

    def client(self) -> ClusterClient:
        """Return the cluster itself as a client. It has those methods of a client that shared watches and monitors use."""
        return cast("ClusterClient", self)

    # -- changes and faults

    def put(self, resource: ResourceType, namespace: str, name: str, *, label: str, value: int) -> None:
        """Create or change an object."""
        place = (resource.kind, namespace, name)
        old = self.now.get(place)
        if old is None:
            self._uids += 1
        uid = self._uids if old is None else old.uid
        self.revision += 1
        self.now[place] = Stored(resource, namespace, name, uid, self.revision, label, value)
        self._log(old, self.now[place])

    def delete(self, resource: ResourceType, namespace: str, name: str) -> None:
        """Delete an object. If it is a namespace, everything in it is deleted first."""
        if resource is NAMESPACE:
            for kind, where, inside in list(self.now):
                if where == name:
                    self.delete(KINDS[kind.lower()], where, inside)
        old = self.now.pop((resource.kind, namespace, name), None)
        if old is not None:
            self.revision += 1
            self._log(old, None)

    def break_watches(self) -> None:
        """Break every open watch."""
        self._broken += 1
        self._tell()

    def forget(self) -> None:
        """Forget the history so far, so that no watch or list can continue from an earlier revision."""
        self.compacted = self.revision
        self._tell()

    # -- the interface of a client

    heartbeats: Heartbeats = field(default_factory=Heartbeats)

    def silence_limit(self, _resource: ResourceType) -> float:
        return 60.0

    async def find_resource(self, kind: str, _api_version: str = "") -> ResourceType:
        await trio.lowlevel.checkpoint()
        return KINDS[kind.lower()]

    async def resource_type(self, _api_version: str, kind: str) -> ResourceType:
        return await self.find_resource(kind)

    @asynccontextmanager
    async def raw_list(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        paged: bool = True,
        metadata_only: bool = False,
    ) -> AsyncIterator[AsyncIterator[RawPage]]:
        await self._request()
        query = Query(resource, namespace, label_selector, field_selector)
        selected = [stored for _, stored in sorted(self.now.items()) if query.has(stored)]
        yield self._pages(selected, self.revision, PAGE if paged else len(selected) + 1)

    async def _pages(self, selected: list[Stored], revision: int, size: int) -> AsyncIterator[RawPage]:
        for first in range(0, max(len(selected), 1), size):
            await trio.lowlevel.checkpoint()
            if first and revision < self.compacted:
                raise GONE
            yield RawPage(tuple(stored.raw() for stored in selected[first : first + size]), str(revision))

    @asynccontextmanager
    async def raw_watch(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncIterator[AsyncIterator[RawEvent]]:
        await self._request()
        if int(resource_version) < self.compacted:
            raise GONE
        yield self._events(Query(resource, namespace, label_selector, field_selector), int(resource_version))

    async def _events(self, query: Query, revision: int) -> AsyncIterator[RawEvent]:
        opened = self._broken
        while True:
            for number, old, new in self.history[self._index(revision) :]:
                await trio.lowlevel.checkpoint()
                revision = number
                event = _told(query, number, old, new)
                if self._broken != opened:
                    raise UnreachableError("the connection was reset")
                if event is not None:
                    yield event
            if self._broken != opened:
                return
            if self._index(revision) == len(self.history):
                await self._changed.wait()

    def _index(self, revision: int) -> int:
        """Return the index of the first change in the history that is later than the revision."""
        return next((at for at, (number, _, _) in enumerate(self.history) if number > revision), len(self.history))

    async def _request(self) -> None:
        await trio.lowlevel.checkpoint()
        self.requests += 1
        if self.failing:
            self.failing -= 1
            raise ApiError(500, "InternalError", "etcd is away")

    def _log(self, old: Stored | None, new: Stored | None) -> None:
        self.history.append((self.revision, old, new))
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def _told(query: Query, revision: int, old: Stored | None, new: Stored | None) -> RawEvent | None:
    """Return the event that a watch reports for one change of one object, or None if it reports nothing."""
    was, is_there = query.has(old), query.has(new)
    if new is not None and is_there:
        return RawEvent(WatchType.MODIFIED if was else WatchType.ADDED, new.raw())
    if old is not None and was:
        return RawEvent(WatchType.DELETED, (new or old).raw(revision))
    return None
