import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.control_plane.support.bench import DEFINITIONS, OPTIONS, config_maps, made, new_plane, served, thing, widgets
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.storage.interface import Change, ChangeType, Collection, Key, Record
from wharfinger.control_plane.storage.record import DecodedCache
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.options import DeleteOptions, ListOptions
from wharfinger.control_plane.verbs.reading import Selection, selection
from wharfinger.control_plane.verbs.updating import replace
from wharfinger.control_plane.verbs.watching import ChangeSignals, Watch, bookmark, event_of, object_at, watch_events
from wharfinger.formats.json.value import JsonObject, encode_json, find, find_str

MAPS = Collection("", "configmaps")
Event = tuple[str, str, str]
"""The type, the name and the resourceVersion of an event. An error has its reason instead of a name."""


def render(type_: str, obj: JsonObject) -> bytes:
    return encode_json({"type": type_, "object": obj}) + b"\n"


class Rig:
    """A backend, and signals that wake the watches at each change."""

    def __init__(self) -> None:
        self.backend: Backend = new_plane().backend
        self.signals = ChangeSignals()
        self.backend.observe_commits(lambda change: self.signals.notify_all())
        self.maps = config_maps(self.backend)

    def watch(
        self, options: ListOptions, kind: Served | None = None, namespace: str = ""
    ) -> AsyncGenerator[bytes, None]:
        kind = kind or self.maps
        wanted = Watch(kind, namespace, selection(kind, options), options)
        return watch_events(self.backend, self.signals, wanted, render)

    def make(self, name: str, **labels: str) -> JsonObject:
        return made(self.backend, self.maps, thing(self.maps, name, {"labels": {**labels}}))

    def put(self, name: str, **labels: str) -> JsonObject:
        body = thing(self.maps, name, {"labels": {**labels}})
        return replace(self.backend, self.maps, "default", name, "", body, OPTIONS).obj

    def drop(self, name: str) -> None:
        delete(self.backend, self.maps, "default", name, DeleteOptions())


def read(chunk: bytes) -> Event:
    event = json.loads(chunk)
    name = find_str(event, "object", "metadata", "name") or find_str(event, "object", "reason")
    return find_str(event, "type"), name, find_str(event, "object", "metadata", "resourceVersion")


async def rest(events: AsyncIterator[bytes]) -> list[Event]:
    return [read(line) async for chunk in events for line in chunk.splitlines()]


@asynccontextmanager
async def collecting(events: AsyncGenerator[bytes, None]) -> AsyncIterator[list[Event]]:
    """Collect the events of a watch while the block runs, and close the watch after it."""
    found: list[Event] = []

    async def collect() -> None:
        async with aclosing(events):
            async for chunk in events:
                found.extend(map(read, chunk.splitlines()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect)
        await wait_all_tasks_blocked()
        yield found
        nursery.cancel_scope.cancel(reason="the test has seen enough")


def change(type_: ChangeType, obj: JsonObject, previous: JsonObject | None, *, namespace: str = "default") -> Change:
    key = Key(MAPS, namespace, "a")
    before = None if previous is None else Record(key, 8, encode_json(previous), DecodedCache())
    return Change(type_, Record(key, 9, encode_json(obj), DecodedCache()), before)


def event_for(made_change: Change, namespace: str, selected: Selection) -> tuple[str, JsonObject] | None:
    found = event_of(made_change, namespace, selected)
    return None if found is None else (found[0], object_at(*found[1:]))


def chosen(label: str = "") -> Selection:
    return selection(config_maps(new_plane().backend), ListOptions(label_selector=label))


IN: JsonObject = {"metadata": {"name": "a", "labels": {"x": "y"}, "resourceVersion": "8"}}
OUT: JsonObject = {"metadata": {"name": "a", "resourceVersion": "9"}}
LEFT: JsonObject = {"metadata": {"name": "a", "labels": {"x": "y"}, "resourceVersion": "9"}}


@pytest.mark.parametrize(
    ("made_change", "event"),
    [
        (change(ChangeType.ADDED, IN, None), ("ADDED", IN)),
        (change(ChangeType.ADDED, OUT, None), None),
        (change(ChangeType.MODIFIED, IN, IN), ("MODIFIED", IN)),
        (change(ChangeType.MODIFIED, IN, OUT), ("ADDED", IN)),
        (change(ChangeType.MODIFIED, OUT, IN), ("DELETED", LEFT)),
        (change(ChangeType.MODIFIED, OUT, OUT), None),
        (change(ChangeType.DELETED, LEFT, IN), ("DELETED", LEFT)),
        (change(ChangeType.DELETED, OUT, OUT), None),
        (change(ChangeType.ADDED, IN, None, namespace="other"), None),
    ],
)
def test_changes_become_events_of_the_selection(made_change: Change, event: tuple[str, JsonObject] | None) -> None:
    assert event_for(made_change, "default", chosen("x=y")) == event


def test_changes_in_any_namespace_become_events() -> None:
    assert event_for(change(ChangeType.ADDED, OUT, None, namespace="other"), "", chosen()) == ("ADDED", OUT)


def test_a_bookmark_has_only_a_revision() -> None:
    maps = config_maps(new_plane().backend)
    assert bookmark(maps, 7) == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
    assert find(bookmark(maps, 7, initial_end=True), "metadata", "annotations") == {"k8s.io/initial-events-end": "true"}


def test_change_signals_wake_waiting_streams() -> None:
    signals = ChangeSignals()
    waiting, other = signals.next(MAPS), signals.next(Collection("", "pods"))

    signals.notify(MAPS)
    signals.notify(MAPS)
    assert (waiting.is_set(), other.is_set()) == (True, False)
    again = signals.next(MAPS)
    assert not again.is_set()
    signals.notify_all()
    assert again.is_set()
    assert other.is_set()


async def test_a_watch_from_a_revision_sends_later_changes(autojump_clock: MockClock) -> None:
    rig = Rig()
    start = rig.backend.storage.revision
    rig.make("a")
    rig.put("a", x="1")
    rig.drop("a")

    events = await rest(rig.watch(ListOptions(revision=start, timeout_seconds=5)))

    assert events == [
        ("ADDED", "a", str(start + 1)),
        ("MODIFIED", "a", str(start + 2)),
        ("DELETED", "a", str(start + 3)),
    ]
    assert trio.current_time() == 5


@pytest.mark.parametrize("revision", [None, 0])
async def test_a_watch_without_a_revision_begins_with_existing_objects(
    revision: int | None, autojump_clock: MockClock
) -> None:
    rig = Rig()
    rig.make("b", x="y")
    rig.make("a", x="y")
    rig.make("c")

    options = ListOptions(revision=revision, label_selector="x=y", timeout_seconds=1)
    events = await rest(rig.watch(options))

    assert [event[:2] for event in events] == [("ADDED", "a"), ("ADDED", "b")]


async def test_changes_are_sent_when_they_happen(autojump_clock: MockClock) -> None:
    rig = Rig()
    async with collecting(rig.watch(ListOptions(label_selector="x"), namespace="default")) as events:
        rig.make("a", x="1")
        await wait_all_tasks_blocked()
        assert [event[:2] for event in events] == [("ADDED", "a")]
        rig.put("a")
        rig.make("b", x="1")
        made(rig.backend, rig.maps, thing(rig.maps, "c", {"labels": {"x": "1"}}), namespace="kube-public")
        await wait_all_tasks_blocked()

        assert [event[:2] for event in events] == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]


async def test_initial_events_end_with_a_bookmark(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.make("a")
    options = ListOptions(initial_events=True, bookmarks=True, timeout_seconds=1)

    async with aclosing(rig.watch(options)) as events:
        first, second = json.loads(await anext(events)), json.loads(await anext(events))

    assert find(first, "object", "metadata", "name") == "a"
    assert second == {
        "type": "BOOKMARK",
        "object": bookmark(rig.maps, rig.backend.storage.revision, initial_end=True),
    }


async def test_initial_events_can_be_declined(autojump_clock: MockClock) -> None:
    rig = Rig()
    before = rig.backend.storage.revision
    rig.make("a")

    assert await rest(rig.watch(ListOptions(initial_events=False, timeout_seconds=1))) == []
    from_before = ListOptions(initial_events=False, revision=before, timeout_seconds=1)
    assert [event[:2] for event in await rest(rig.watch(from_before))] == [("ADDED", "a")]


async def test_initial_events_without_bookmarks_have_no_end_mark(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.make("a")
    options = ListOptions(initial_events=True, timeout_seconds=1)
    assert [event[:2] for event in await rest(rig.watch(options))] == [("ADDED", "a")]


async def test_bookmarks_are_sent_each_minute_and_shortly_before_the_end(autojump_clock: MockClock) -> None:
    rig = Rig()
    times: list[float] = []
    revision = rig.backend.storage.revision
    made(rig.backend, served(rig.backend, "", "v1", "secrets"), {"metadata": {"name": "other"}})

    async for chunk in rig.watch(ListOptions(revision=revision, bookmarks=True, timeout_seconds=150)):
        assert read(chunk) == ("BOOKMARK", "", str(revision + 1))
        times.append(trio.current_time())

    assert times == [60, 120, 148]
    assert trio.current_time() == 150


async def test_a_short_watch_gets_its_bookmark_at_once(autojump_clock: MockClock) -> None:
    rig = Rig()
    assert [event[0] for event in await rest(rig.watch(ListOptions(bookmarks=True, timeout_seconds=1)))] == ["BOOKMARK"]


@pytest.mark.parametrize(("asked", "lasts"), [(None, 1800), (0, 1800), (-5, 1800), (7, 7), (10**9, 86_400)])
async def test_a_watch_ends_after_its_timeout(asked: int | None, lasts: int, autojump_clock: MockClock) -> None:
    rig = Rig()
    assert await rest(rig.watch(ListOptions(timeout_seconds=asked))) == []
    assert trio.current_time() == lasts


async def test_a_watch_from_a_compacted_revision_is_expired(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.make("a")
    rig.backend.storage.compact()
    oldest = rig.backend.storage.oldest

    chunks = [chunk async for chunk in rig.watch(ListOptions(revision=oldest - 1))]

    assert [read(chunk)[:2] for chunk in chunks] == [("ERROR", "Expired")]
    assert find(json.loads(chunks[0]), "object") == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"too old resource version: {oldest - 1} ({oldest})",
        "reason": "Expired",
        "code": 410,
    }
    assert trio.current_time() == 0


async def test_a_reader_that_falls_behind_the_history_is_expired(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.make("a")
    async with aclosing(rig.watch(ListOptions())) as events:
        assert read(await anext(events))[:2] == ("ADDED", "a")
        rig.make("b")
        rig.make("c")
        rig.backend.storage.compact()

        assert [event[:2] for event in await rest(events)] == [("ERROR", "Expired")]


async def test_a_slow_reader_receives_every_change(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.make("a")
    async with aclosing(rig.watch(ListOptions(timeout_seconds=3))) as events:
        await anext(events)
        for name in ("b", "c", "d"):
            rig.make(name)
            await trio.sleep(1)

        assert [event[:2] for event in await rest(events)] == [("ADDED", "b"), ("ADDED", "c"), ("ADDED", "d")]


async def test_a_watch_ends_when_its_kind_is_no_longer_served(autojump_clock: MockClock) -> None:
    rig = Rig()
    kind = widgets(rig.backend)
    made(rig.backend, kind, thing(kind))
    found: list[Event] = []

    async def collect() -> None:
        found.extend(await rest(rig.watch(ListOptions(), kind)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect)
        await wait_all_tasks_blocked()
        delete(rig.backend, served(rig.backend, *DEFINITIONS), "", "widgets.example.com", DeleteOptions())

    assert [event[:2] for event in found] == [("ADDED", "a"), ("DELETED", "a")]
    assert trio.current_time() == 0
