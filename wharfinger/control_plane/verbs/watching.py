"""Watches: a pure function that returns the event of a change for one watcher, and the stream that waits for changes.

A stream has no queue: it remembers the revision up to which it has sent events, and reads later events from the storage. So a
slow client needs no memory. A client that falls behind the storage's history gets a 410, and lists again.

Changes that accumulate between two chunks are sent together in the next chunk, and streams of the same events share the bytes of
the chunk. If many streams follow a collection that changes all the time, each stream pauses between two chunks
(``ChangeSignals.pace_s``): fifty streams that wake for every write would leave no time for the writes.
"""

from collections import OrderedDict, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

import trio

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.webhook_conversions import gather
from wharfinger.control_plane.storage.interface import Change, ChangeType, Collection, CompactedError, Record, Storage
from wharfinger.control_plane.verbs.options import ListOptions
from wharfinger.control_plane.verbs.reading import Selection, is_plain, presented
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, find_object

DEFAULT_TIMEOUT_S: Final = 1800
MAX_TIMEOUT_S: Final = 86_400
BOOKMARK_INTERVAL_S: Final = 60.0
LAST_BOOKMARK_S: Final = 2.0
"""The time before the end of a watch at which its last bookmark is sent."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
CHUNK_BYTES: Final = 256 * 1024
"""The approximate maximum size of a chunk; it is exceeded by at most one event."""
CHUNK_EVENTS: Final = 512
MAX_PACE_S: Final = 0.025
_SHARED: Final = 16
"""The number of encoded chunks that are kept, so that other streams of the same events can send them, too."""

Render = Callable[[str, JsonObject], bytes]
"""A function that encodes one event from its type and object."""
Result = TypeVar("Result")


class Converting(Protocol):
    """A function that runs an attempt. If the attempt needs answers of webhooks, the function calls these webhooks and runs the
    attempt again.
    """

    def __call__(self, attempt: Callable[[], Result], /) -> Awaitable[Result]:
        """Call ``attempt``, again if necessary, and return its result. Raises StatusError."""
        ...


async def run_once(attempt: Callable[[], Result], /) -> Result:
    """Call ``attempt`` once and return its result: the `Converting` for attempts that need no webhook."""
    return attempt()


class UnshowableError(Exception):
    """An event cannot be shown in the requested form, so the watch ends."""


class ChangeSignals:
    """The notifications that wake the streams of a collection when the collection changes.

    The notifications are edge-triggered: call :meth:`next` before reading the storage.
    """

    def __init__(self) -> None:
        self._events: defaultdict[Collection, trio.Event] = defaultdict(trio.Event)
        self.watches: defaultdict[Collection, int] = defaultdict(int)
        """The number of open streams by collection."""
        self.pace_s = 0.0
        """The pause of a stream between two chunks, in seconds, is this number times the number of streams of its collection."""
        self.shared: OrderedDict[tuple[object, ...], tuple[int, bytes]] = OrderedDict()
        """The recent chunks, each with its last revision. The keys are the parameters of streams; streams with equal parameters
        share a chunk.
        """
        self._intervals: dict[Collection, tuple[float, int, Storage]] = {}
        """For each busy collection, the end of the current interval, the revision up to which streams send events in this
        interval, and the storage that has this revision.
        """
        self._waits: dict[Collection, trio.Event] = {}
        """The event of each busy collection, which is set at the end of the collection's current interval."""

    def pace(self, collection: Collection) -> float:
        """Return the time in seconds that a stream of a collection waits after a chunk."""
        return min(self.pace_s * self.watches[collection], MAX_PACE_S) if self.pace_s else 0.0

    def interval(self, collection: Collection, storage: Storage) -> tuple[int, float]:
        """Return the revision up to which the streams of a collection send events now, and the time at which they continue.

        The streams of a busy collection wake at the same time. All of them send events up to the revision that the first one
        has found, so that they can share the encoded chunks.
        """
        pace, committed = self.pace(collection), storage.committed
        if not pace:
            return committed, 0.0
        now = trio.current_time()
        end, upto, storage_of_interval = self._intervals.get(collection, (0.0, 0, storage))
        if now >= end:
            end, upto, storage_of_interval = max((now // pace + 1) * pace, now + pace / 8), committed, storage
            self._intervals[collection] = end, upto, storage_of_interval
        return (upto if storage_of_interval is storage else committed), end

    async def until(self, collection: Collection, end: float) -> None:
        """Wait until ``end``, or until shortly before ``end``.

        The first stream of a collection that calls this method sleeps until ``end``, and then wakes the other waiting streams.
        """
        over = self._waits.get(collection)
        if over is not None:
            await over.wait()
            return
        over = self._waits[collection] = trio.Event()
        try:
            await trio.sleep_until(end)
        finally:
            del self._waits[collection]
            over.set()

    def next(self, collection: Collection) -> trio.Event:
        """Return an event that is set at the next change of the collection."""
        return self._events[collection]

    def notify(self, collection: Collection) -> None:
        """Wake all streams that wait for a collection."""
        event = self._events.pop(collection, None)
        if event is not None:
            event.set()

    def notify_all(self) -> None:
        """Wake all waiting streams."""
        for collection in list(self._events):
            self.notify(collection)


@dataclass(frozen=True, slots=True)
class Watch:
    """The watch that one client has requested."""

    served: Served
    namespace: str
    selection: Selection
    options: ListOptions
    plain: bool = False
    """True if objects are shown unchanged, so that their stored bytes can be sent."""


def event_of(change: Change, namespace: str, selection: Selection) -> tuple[str, Record, int] | None:
    """Return the event of a change for a watcher: its type, the object and its revision; None if the object is not selected.

    An object that is no longer selected is reported as deleted, and an object that is selected only now is reported as added.
    """
    if namespace and change.key.namespace != namespace:
        return None
    was = change.before is not None and selection.takes(change.before)
    if change.type is ChangeType.DELETED:
        return ("DELETED", change.record, change.revision) if was else None
    if selection.takes(change.record):
        return ("MODIFIED" if was else "ADDED", change.record, change.revision)
    return ("DELETED", change.before, change.revision) if was and change.before is not None else None


def object_at(record: Record, revision: int) -> JsonObject:
    """Return the object in ``record`` with ``revision`` as its resourceVersion. The record may be older than that revision: if
    the selectors no longer match an object, its record has the last state that they matched.
    """
    obj = record.decode()
    if record.revision == revision:
        return obj
    return {**obj, "metadata": {**find_object(obj, "metadata"), "resourceVersion": str(revision)}}


def bookmark(served: Served, revision: int, *, initial_end: bool = False) -> JsonObject:
    """Return an object that only states the revision that the watch has reached."""
    metadata: JsonObject = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    return {"kind": served.kind.kind, "apiVersion": served.api_version, "metadata": metadata}


class _Stream:
    """One watch: its progress, and the form of its events."""

    def __init__(self, backend: Backend, signals: ChangeSignals, watch: Watch, render: Render) -> None:
        self._storage = backend.storage
        self._signals = signals
        self._watch = watch
        self._collection = watch.served.kind.collection
        self._render = render
        self.sent_revision, self.initial = _start(backend, watch.options)

    def event(self, type_: str, record: Record, revision: int) -> bytes:
        """Return one event in the stream's form."""
        served = self._watch.served
        if self._watch.plain and record.revision == revision and is_plain(served, record):
            return b'{"type":"%s","object":%s}\n' % (type_.encode(), record.body)
        return self._render(type_, presented(served, object_at(record, revision)))

    def first(self) -> Iterator[bytes]:
        """Yield the existing objects in chunks, and then, if requested, the bookmark that marks their end."""
        if not self.initial:
            return
        found = self._storage.records(self._collection, self._watch.namespace, at=self.sent_revision)
        lines: list[bytes] = []
        size = 0
        # The records are copied, because other tasks write between two chunks.
        records = tuple(filter(self._watch.selection.takes, found))
        if self._watch.served.kind.converter:
            gather(partial(self.event, "ADDED", record, record.revision) for record in records)
        for record in records:
            lines.append(self.event("ADDED", record, record.revision))
            size += len(lines[-1])
            if size >= CHUNK_BYTES:
                yield b"".join(lines)
                lines, size = [], 0
        if lines:
            yield b"".join(lines)
        if self._watch.options.initial_events and self._watch.options.bookmarks:
            yield self._render("BOOKMARK", bookmark(self._watch.served, self.sent_revision, initial_end=True))

    def next(self, upto: int) -> bytes:
        """Return the next events, at most one chunk, and none later than the revision ``upto``. Raises CompactedError."""
        watch = self._watch
        if not watch.plain or not watch.selection.everything:
            return self._made(upto)
        asked = (self._collection, watch.namespace, watch.served.api_version, self.sent_revision, upto)
        known = self._signals.shared.get(asked)
        if known is None:
            chunk = self._made(upto)
            self._signals.shared[asked] = (self.sent_revision, chunk)
            if len(self._signals.shared) > _SHARED:
                self._signals.shared.popitem(last=False)
            return chunk
        self.sent_revision = known[0]
        return known[1]

    def _made(self, upto: int) -> bytes:
        watch = self._watch
        changes = self._storage.changes(self._collection, self.sent_revision, limit=CHUNK_EVENTS, upto=upto)
        if watch.served.kind.converter:
            events = [event_of(change, watch.namespace, watch.selection) for change in changes]
            gather(partial(self.event, *event) for event in events if event is not None)
        lines: list[bytes] = []
        size = 0
        for change in changes:
            event = event_of(change, watch.namespace, watch.selection)
            self.sent_revision = change.revision
            if event is not None:
                lines.append(self.event(*event))
                size += len(lines[-1])
                if size >= CHUNK_BYTES:
                    return b"".join(lines)
        if len(changes) < CHUNK_EVENTS:
            self.sent_revision = upto
        return b"".join(lines)


async def watch_events(
    backend: Backend, signals: ChangeSignals, watch: Watch, render: Render, converting: Converting = run_once
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a watch in chunks of one or more lines, until its time is over or its kind is no longer served.

    If a webhook converts the objects of the watched kind, the functions that make chunks are called through ``converting``.
    """
    options, served = watch.options, watch.served
    collection = served.kind.collection
    seconds = options.timeout_seconds if options.timeout_seconds and options.timeout_seconds > 0 else DEFAULT_TIMEOUT_S
    end = trio.current_time() + min(seconds, MAX_TIMEOUT_S)
    stream = _Stream(backend, signals, watch, render)
    clock = _BookmarkClock(options.bookmarks, end)
    signals.watches[collection] += 1
    try:
        converted = bool(served.kind.converter)
        if options.initial_events and stream.sent_revision < (options.revision or 0):
            yield render("ERROR", status.too_large_revision(options.revision or 0, stream.sent_revision).body())
            return
        for chunk in await converting(lambda: [*stream.first()]) if converted else stream.first():
            yield chunk
        while True:
            changed = signals.next(collection)
            sent = False
            while stream.sent_revision < (interval := signals.interval(collection, backend.storage))[0]:
                following = partial(stream.next, interval[0])
                chunk = await converting(following) if converted else following()
                if chunk:
                    sent = True
                    yield chunk
            again_at = interval[1] if sent or stream.sent_revision < backend.storage.committed else 0.0
            # A watch from a revision that does not exist yet gets no bookmarks. The client of such a watch has seen another
            # history of the storage; it can notice this if it receives nothing at all.
            if clock.due() and stream.sent_revision <= backend.storage.committed:
                yield render("BOOKMARK", bookmark(served, stream.sent_revision))
            if trio.current_time() >= end or not _still_served(backend, served):
                return
            if again_at:
                await signals.until(collection, again_at)
            else:
                with trio.move_on_at(clock.next_wake()):
                    await changed.wait()
    except UnshowableError:
        return
    except status.StatusError as error:
        yield render("ERROR", error.body())
    except CompactedError as error:
        yield render("ERROR", status.expired(f"too old resource version: {error.asked} ({error.oldest})").body())
    finally:
        signals.watches[collection] -= 1


def _start(backend: Backend, options: ListOptions) -> tuple[int, bool]:
    """Return the revision after which a watch starts, and whether existing objects are sent first."""
    current = backend.storage.committed
    if options.initial_events is not None:
        return (current, True) if options.initial_events else (options.revision or current, False)
    return (options.revision, False) if options.revision else (current, True)


def _still_served(backend: Backend, served: Served) -> bool:
    return backend.catalog.find(served.kind.group, served.version.name, served.kind.plural) is not None


class _BookmarkClock:
    """The times of a watch's bookmarks: each minute, and once shortly before the watch ends."""

    def __init__(self, wanted: bool, end: float) -> None:  # noqa: FBT001 - a parameter of the request
        self._end = end
        self._wanted = wanted
        self._last_at = end - LAST_BOOKMARK_S
        self._next_at = trio.current_time() + BOOKMARK_INTERVAL_S

    def next_wake(self) -> float:
        """Return the time at which the stream must call :meth:`due` again, even if no event arrives before."""
        return min(self._end, self._next_at, self._last_at) if self._wanted else self._end

    def due(self) -> bool:
        """Return whether a bookmark is due now. If it is, record it as sent, so the caller must send it."""
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
