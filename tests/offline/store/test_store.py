"""The store of a tree's objects: equal objects, events for listeners, and repeated runs of nodes (spec/schedulers §B.6)."""

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.store.status import PENDING, READY
from wharfinger.offline.store.store import Change, ObjectStore, Place
from wharfinger.runtime.fixpoint.model import Id

WHO = Id("ConfigMap", "a", "x")


def obj(value: float = 1) -> JsonObject:
    return {"kind": "ConfigMap", "data": {"n": value}}


class Heard:
    """A listener that records its events."""

    def __init__(self, store: ObjectStore) -> None:
        self.events: list[tuple[Change, Id]] = []
        self.statuses: list[object] = []
        self._store = store

    def __call__(self, change: Change, who: Id) -> None:
        self.events.append((change, who))
        self.statuses.append(self._store.status(who))


def test_equal_additions_cause_one_event() -> None:
    store = ObjectStore()
    heard = Heard(store)
    with store.subscribed(heard):
        assert store.add(WHO, obj(3))[1]
        assert not store.add(WHO, obj(3))[1]
        assert not store.add(WHO, obj(3.0))[1]
        assert store.add(WHO, obj(4))[1]
    assert heard.events == [(Change.ADDED, WHO)] * 2


def test_a_refire_resets_the_status_before_the_event() -> None:
    store = ObjectStore()
    store.add(WHO, obj())
    store.set_status(WHO, READY)
    heard = Heard(store)
    with store.subscribed(heard):
        store.refire(WHO)
        store.refire(Id("ConfigMap", "a", "unknown"))
    assert heard.events == [(Change.REFIRED, WHO)]
    assert heard.statuses == [PENDING]


def test_an_equal_status_causes_no_event() -> None:
    store = ObjectStore()
    store.add(WHO, obj())
    heard = Heard(store)
    with store.subscribed(heard):
        store.set_status(WHO, READY)
        store.set_status(WHO, READY)
    assert heard.events == [(Change.STATUS, WHO)]


def test_no_event_follows_the_end_of_a_subscription() -> None:
    store = ObjectStore()
    heard = Heard(store)
    with store.subscribed(heard):
        pass
    store.add(WHO, obj())
    assert heard.events == []


def test_a_removal_causes_one_event_and_removes_the_status() -> None:
    store = ObjectStore()
    store.add(WHO, obj())
    store.set_status(WHO, READY)
    heard = Heard(store)
    with store.subscribed(heard):
        store.remove(WHO)
        store.remove(WHO)
    assert heard.events == [(Change.REMOVED, WHO)]
    assert store.status(WHO) == PENDING
    assert store.statuses() == ()


def test_lists_are_sorted_and_can_be_limited_to_a_kind() -> None:
    store = ObjectStore()
    others = [Id("Secret", "a", "s"), Id("ConfigMap", "b", "y"), WHO]
    for who in others:
        store.add(who, obj())
    assert [each.id for each in store.list()] == sorted(others)
    assert [each.id for each in store.list("ConfigMap")] == [WHO, Id("ConfigMap", "b", "y")]


def test_a_rendered_object_retains_the_place_of_its_declaration() -> None:
    store = ObjectStore()
    store.add(WHO, obj(1), place=Place("a.yaml", 3))
    stored, changed = store.add(WHO, obj(2), producer=Id("Kustomization", "a", "k"))
    assert changed
    assert str(stored.place) == "a.yaml:3"
    assert str(Place("a.yaml")) == "a.yaml"
