"""Events that result from changes of one object."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hooks.support.bindings import binding
from tests.hooks.support.watching import plain
from wharfinger.cluster.api.raw_object import RawObject
from wharfinger.formats.json.packed_json import PackedJson
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.config.bindings import WatchVerb
from wharfinger.hooks.watching.monitor_core import (
    Entry,
    Gone,
    Item,
    MonitorEvent,
    Observation,
    Seen,
    Sighting,
    entry_of,
    place,
    sighting_of,
    step,
)
from wharfinger.kube.resource import ObjectKey, ResourceType

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
NODE = ResourceType("", "v1", "Node", "nodes", namespaced=False)
KEY = ObjectKey(POD, "prod", "a")
OBJECT: JsonObject = {"metadata": {"name": "a"}}
SEEN = Sighting("uid 1", b'{"metadata":{"name":"a"}}')


def entry(number: int, checksum: bytes = b"") -> Entry:
    return Entry(Item(None, PackedJson(str(number).encode())), checksum or str(number).encode())


def told(verb: WatchVerb, number: int) -> MonitorEvent:
    return MonitorEvent(verb, KEY, entry(number).item)


def test_object_is_added_modified_and_deleted() -> None:
    assert step(KEY, None, Seen(entry(1))) == (entry(1), told(WatchVerb.ADDED, 1))
    assert step(KEY, entry(1), Seen(entry(2))) == (entry(2), told(WatchVerb.MODIFIED, 2))
    assert step(KEY, entry(2), Gone(entry(3))) == (None, told(WatchVerb.DELETED, 3))
    assert step(KEY, entry(2), Gone(None)) == (None, told(WatchVerb.DELETED, 2))


def test_equal_checksum_is_no_event_but_stores_the_newer_object() -> None:
    assert step(KEY, entry(1, b"same"), Seen(entry(2, b"same"))) == (entry(2, b"same"), None)
    assert step(KEY, entry(1, b"same"), Gone(entry(2, b"same")))[1] is not None


def test_deletion_of_an_unreported_object_is_no_event() -> None:
    assert step(KEY, None, Gone(entry(1))) == (None, None)


@given(st.lists(st.none() | st.integers(0, 2)))
def test_events_of_an_object_alternate(story: list[int | None]) -> None:
    held: Entry | None = None
    there = False
    for number in story:
        seen: Observation = Gone(None) if number is None else Seen(entry(number))
        before = held
        held, event = step(KEY, held, seen)
        assert (held is None) == (number is None)
        if event is None:
            assert before is held is None or (
                before is not None and held is not None and before.checksum == held.checksum
            )
            continue
        assert there == (event.verb is not WatchVerb.ADDED)
        there = event.verb is not WatchVerb.DELETED
    assert there == (held is not None)


@pytest.mark.parametrize(
    ("keep", "filtered", "item"),
    [
        (True, None, {"object": OBJECT}),
        (True, b"null", {"object": OBJECT, "filterResult": None}),
        (False, b'["x"]', {"filterResult": ["x"]}),
        (False, None, {}),
    ],
)
def test_items_have_the_fields_that_the_binding_requests(keep: bool, filtered: bytes | None, item: JsonObject) -> None:
    assert plain(entry_of(binding(keep_full_objects=keep), SEEN, filtered).item) == item


def test_checksum_is_of_the_filter_result_or_the_whole_object() -> None:
    def same(first: tuple[Sighting, bytes | None], second: tuple[Sighting, bytes | None]) -> bool:
        made = [entry_of(binding(), seen, filtered).checksum for seen, filtered in (first, second)]
        return made[0] == made[1]

    later, other = Sighting("uid 2", SEEN.text), Sighting("uid 1", b'{"metadata":{ "name":"a"}}')
    assert same((SEEN, b"1"), (later, b"1"))
    assert not same((SEEN, b"true"), (SEEN, b"1"))
    assert not same((SEEN, None), (later, None))
    assert same((SEEN, None), (other, None)), "an equal uid and version mean an equal state, whatever its text is"
    nameless = [Sighting("", SEEN.text), Sighting("", other.text)]
    assert same((nameless[0], None), (nameless[0], None))
    assert not same((nameless[0], None), (nameless[1], None)), "without a uid and a version, the text decides"
    assert entry_of(binding(), SEEN, b"1").checksum == hashlib.sha256(b"1").digest()


@pytest.mark.parametrize(("uid", "version", "state"), [("u", "7", "u 7"), ("", "7", ""), ("u", "", ""), ("", "", "")])
def test_state_is_identified_by_uid_and_resource_version(uid: str, version: str, state: str) -> None:
    assert sighting_of(RawObject(KEY, uid, version, b"{}")) == Sighting(state, b"{}")


def test_packed_sighting_equals_the_plain_one() -> None:
    small = SEEN.small()
    assert (small.state, small.plain()) == (SEEN.state, SEEN.plain())
    assert small.small().packed() is small.packed(), "a sighting is packed only once"
    assert entry_of(binding(), small, b"1") == entry_of(binding(), SEEN, b"1")
    assert entry_of(binding(), small, None).item.object is small.packed()


def test_items_are_sorted_by_namespace_and_name() -> None:
    names = [("b", "a"), ("a", "z"), ("a-b", "c"), ("a", "b")]
    keys = [ObjectKey(POD, namespace, name) for namespace, name in names]

    def order(keep: bool) -> list[str]:
        by = binding(keep_full_objects=keep)
        return [f"{one.namespace}/{one.name}" for one in sorted(keys, key=lambda key: place(by, key))]

    assert order(True) == ["a/b", "a/z", "a-b/c", "b/a"]
    assert order(False) == ["a-b/c", "a/b", "a/z", "b/a"]
    assert place(binding(keep_full_objects=False), ObjectKey(NODE, "", "n")) == ("/Node/n",)
