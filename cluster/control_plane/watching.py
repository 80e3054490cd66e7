"""Watches: which events a change makes for one watcher (pure), and the stream that waits for changes.

A stream keeps no queue: it remembers the revision it has told, and asks the storage for what came after. So a slow client
costs no memory; one that falls behind the storage's history is told 410 and lists again.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.options import ListOptions
from wharfinger.cluster.control_plane.reading import Selection, presented
from wharfinger.cluster.control_plane.storage import Change, ChangeType, Collection, CompactedError
from wharfinger.formats.json_value import JsonObject, find_object

DEFAULT_TIMEOUT_S: Final = 1800
MAX_TIMEOUT_S: Final = 86_400
BOOKMARK_INTERVAL_S: Final = 60.0
LAST_BOOKMARK_S: Final = 2.0
"""How long before the end of a watch its last bookmark comes."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

Render = Callable[[str, JsonObject], bytes]
"""Writes one event: its type and object."""


class Bells:
    """Wakes watchers of a collection when it changes. Edge-triggered: take :meth:`next` before looking."""

    def __init__(self) -> None:
        self._events: defaultdict[Collection, trio.Event] = defaultdict(trio.Event)

    def next(self, collection: Collection) -> trio.Event:
        """Set at the next change of the collection."""
        return self._events[collection]

    def ring(self, collection: Collection) -> None:
        """Wake everybody who waits for a collection."""
        event = self._events.pop(collection, None)
        if event is not None:
            event.set()

    def ring_all(self) -> None:
        """Wake everybody."""
        for collection in list(self._events):
            self.ring(collection)


@dataclass(frozen=True, slots=True)
class Watch:
    """What one watcher asked for."""

    served: Served
    namespace: str
    selection: Selection
    options: ListOptions


def event_of(change: Change, namespace: str, selection: Selection) -> tuple[str, JsonObject] | None:
    """The event a change is to a watcher, or None: what leaves a selection is deleted, what enters it is added."""
    if namespace and change.key.namespace != namespace:
        return None
    was = change.previous is not None and selection.matches(change.previous)
    if change.type is ChangeType.DELETED:
        return ("DELETED", change.obj) if was else None
    if selection.matches(change.obj):
        return ("MODIFIED" if was else "ADDED", change.obj)
    return ("DELETED", _at(change.previous, change.revision)) if was and change.previous is not None else None


def _at(obj: JsonObject, revision: int) -> JsonObject:
    """An object as it was last selected, at the revision where it no longer is."""
    return {**obj, "metadata": {**find_object(obj, "metadata"), "resourceVersion": str(revision)}}


def bookmark(served: Served, revision: int, *, initial_end: bool = False) -> JsonObject:
    """An object that says nothing but how far the watch is."""
    metadata: JsonObject = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return {"kind": served.kind.kind, "apiVersion": served.api_version, "metadata": metadata}


async def watch_events(backend: Backend, bells: Bells, watch: Watch, render: Render) -> AsyncGenerator[bytes, None]:
    """The events of a watch until its time is over, its kind is gone, or its reader closes the generator."""
    options, served = watch.options, watch.served
    seconds = options.timeout_seconds if options.timeout_seconds and options.timeout_seconds > 0 else DEFAULT_TIMEOUT_S
    end = trio.current_time() + min(seconds, MAX_TIMEOUT_S)
    told, initial = _start(backend, options)
    if initial:
        for obj in backend.storage.list(served.kind.collection, watch.namespace):
            if watch.selection.matches(obj):
                yield render("ADDED", presented(served, obj))
        if options.initial_events and options.bookmarks:
            yield render("BOOKMARK", bookmark(served, told, initial_end=True))
    clock = _BookmarkClock(options.bookmarks, end)
    while True:
        bell = bells.next(served.kind.collection)
        current = backend.storage.revision
        try:
            changes = backend.storage.changes(served.kind.collection, told) if told < current else ()
        except CompactedError as error:
            yield render("ERROR", status.expired(f"too old resource version: {told} ({error.oldest})").body())
            return
        for change in changes:
            event = event_of(change, watch.namespace, watch.selection)
            if event is not None:
                yield render(event[0], presented(served, event[1]))
        told = max(told, current)
        if clock.due():
            yield render("BOOKMARK", bookmark(served, told))
        if trio.current_time() >= end or not _still_served(backend, served):
            return
        with trio.move_on_at(clock.next_wake()):
            await bell.wait()


def _start(backend: Backend, options: ListOptions) -> tuple[int, bool]:
    """The revision a watch starts after, and whether what is there already comes first."""
    current = backend.storage.revision
    if options.initial_events is not None:
        return (current, True) if options.initial_events else (options.revision or current, False)
    return (options.revision, False) if options.revision else (current, True)


def _still_served(backend: Backend, served: Served) -> bool:
    return backend.catalog.find(served.kind.group, served.version.name, served.kind.plural) is not None


class _BookmarkClock:
    """When the next bookmark is due: each minute, and once shortly before the end."""

    def __init__(self, wanted: bool, end: float) -> None:  # noqa: FBT001 - a parameter of the request
        self._end = end
        self._wanted = wanted
        self._last_at = end - LAST_BOOKMARK_S
        self._next_at = trio.current_time() + BOOKMARK_INTERVAL_S

    def next_wake(self) -> float:
        """When to look again, whatever happens."""
        return min(self._end, self._next_at, self._last_at) if self._wanted else self._end

    def due(self) -> bool:
        """Whether a bookmark is due now; asking takes it."""
        if not self._wanted:
            return False
        now = trio.current_time()
        if now >= self._last_at:
            self._last_at = self._next_at = float("inf")
            return True
        if now >= self._next_at:
            self._next_at = now + BOOKMARK_INTERVAL_S
            return True
        return False
