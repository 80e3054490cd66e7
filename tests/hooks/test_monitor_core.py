"""What a change of one object means to a hook."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hooks.bindings import binding
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError
from wharfinger.hooks.config import WatchVerb
from wharfinger.hooks.monitor_core import Entry, Gone, MonitorEvent, Observation, Seen, entry_of, place, step

POD = ResourceType("", "v1", "Pod", "pods", namespaced=True)
NODE = ResourceType("", "v1", "Node", "nodes", namespaced=False)
OBJECT: JsonObject = {"metadata": {"name": "a", "resourceVersion": "1"}}
LATER: JsonObject = {"metadata": {"name": "a", "resourceVersion": "2"}}


def entry(number: int, checksum: str = "") -> Entry:
    return Entry({"filterResult": number}, checksum or str(number))


def test_an_object_comes_changes_and_goes() -> None:
    assert step(None, Seen(entry(1))) == (entry(1), MonitorEvent(WatchVerb.ADDED, {"filterResult": 1}))
    assert step(entry(1), Seen(entry(2))) == (entry(2), MonitorEvent(WatchVerb.MODIFIED, {"filterResult": 2}))
    assert step(entry(2), Gone(entry(3))) == (None, MonitorEvent(WatchVerb.DELETED, {"filterResult": 3}))
    assert step(entry(2), Gone(None)) == (None, MonitorEvent(WatchVerb.DELETED, {"filterResult": 2}))


def test_the_same_checksum_is_no_event_but_the_newer_object_is_kept() -> None:
    assert step(entry(1, "same"), Seen(entry(2, "same"))) == (entry(2, "same"), None)
    assert step(entry(1, "same"), Gone(entry(2, "same")))[1] is not None


def test_what_was_never_told_is_not_told_as_gone() -> None:
    assert step(None, Gone(entry(1))) == (None, None)


@given(st.lists(st.none() | st.integers(0, 2)))
def test_events_of_an_object_alternate(story: list[int | None]) -> None:
    held: Entry | None = None
    there = False
    for number in story:
        seen: Observation = Gone(None) if number is None else Seen(entry(number))
        before = held
        held, event = step(held, seen)
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
    ("keep", "jq", "item"),
    [
        (True, "", {"object": OBJECT}),
        (True, ".x", {"object": OBJECT, "filterResult": None}),
        (False, ".x", {"filterResult": None}),
        (False, "", {}),
    ],
)
def test_items_have_what_the_binding_asks_for(keep: bool, jq: str, item: JsonObject) -> None:
    assert entry_of(binding(keep_full_objects=keep, jq_filter=jq), OBJECT, None).item == item


def test_what_counts_is_the_filter_s_result_or_else_the_whole_object() -> None:
    def same(jq: str, first: tuple[JsonObject, JsonValue], second: tuple[JsonObject, JsonValue]) -> bool:
        made = [entry_of(binding(jq_filter=jq), obj, result).checksum for obj, result in (first, second)]
        return made[0] == made[1]

    assert same(".x", (OBJECT, {"a": 1, "b": [None]}), (LATER, {"b": [None], "a": 1.0}))
    assert not same(".x", (OBJECT, True), (OBJECT, 1))
    assert not same("", (OBJECT, None), (LATER, None))
    assert same("", (OBJECT, 1), (OBJECT, 2))


def test_a_result_without_a_checksum_is_refused() -> None:
    deep: JsonValue = None
    for _ in range(300):
        deep = [deep]
    with pytest.raises(ShapeError):
        entry_of(binding(jq_filter=".x"), OBJECT, deep)


def test_items_are_sorted_as_the_contract_says() -> None:
    names = [("b", "a"), ("a", "z"), ("a-b", "c"), ("a", "b")]
    keys = [ObjectKey(POD, namespace, name) for namespace, name in names]

    def order(keep: bool) -> list[str]:
        by = binding(keep_full_objects=keep)
        return [f"{one.namespace}/{one.name}" for one in sorted(keys, key=lambda key: place(by, key))]

    assert order(True) == ["a/b", "a/z", "a-b/c", "b/a"]
    assert order(False) == ["a-b/c", "a/b", "a/z", "b/a"]
    assert place(binding(keep_full_objects=False), ObjectKey(NODE, "", "n")) == ("/Node/n",)
