"""The notifications that listeners get, in single cases and compared with a model that stores all objects."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.cluster.support.client_contract import key
from wharfinger.cluster.api.raw_object import RawChange, RawEvent, RawObject
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.watch.object_fanout import Listener, ObjectFanout

ADDED, MODIFIED, DELETED, BOOKMARK = WatchType


def obj(name: str, version: int = 1, uid: str = "u") -> RawObject:
    return RawObject(key(name), uid, str(version), f"{name} {uid} {version}".encode())


class Follower:
    """A listener that replays its notifications, and refuses repeated or missing ones."""

    def __init__(self) -> None:
        self.there: dict[str, bytes] = {}
        self.log: list[str] = []

    def __call__(self, change: RawChange) -> None:
        name = change.key.name
        self.log.append(f"{change.type.value} {name}" + ("" if change.object else "?"))
        if change.type is DELETED:
            del self.there[name]
            return
        assert change.object is not None
        assert (name in self.there) == (change.type is MODIFIED)
        assert self.there.get(name) != change.object.text
        self.there[name] = change.object.text

    def take(self) -> list[str]:
        log, self.log = self.log, []
        return log


def listed(fanout: ObjectFanout, *objects: RawObject) -> None:
    fanout.begin_list()
    for one in objects:
        fanout.take_listed([one])
    fanout.end_list()


def test_a_list_is_reported_before_watch_events() -> None:
    fanout, one = ObjectFanout(), Follower()
    listener = fanout.join(one)
    listed(fanout, obj("a"), obj("b"))
    assert not listener.fresh
    for event in (
        RawEvent(MODIFIED, obj("a", 2)),
        RawEvent(ADDED, obj("a", 2)),
        RawEvent(BOOKMARK, obj("a", 3)),
        RawEvent(DELETED, obj("b", 4)),
        RawEvent(DELETED, obj("b", 4)),
        RawEvent(ADDED, obj("b", 5, "v")),
    ):
        fanout.take(event)
    assert one.take() == ["ADDED a", "ADDED b", "MODIFIED a", "DELETED b", "ADDED b"]
    assert len(fanout) == 2


def test_a_replaced_object_is_reported_as_deleted_and_added() -> None:
    fanout, one = ObjectFanout(), Follower()
    fanout.join(one)
    listed(fanout, obj("a"))
    fanout.take(RawEvent(MODIFIED, obj("a", 2, "v")))
    listed(fanout, obj("a", 3, "w"))
    assert one.take() == ["ADDED a", "DELETED a?", "ADDED a", "DELETED a?", "ADDED a"]


def test_listeners_receive_differences_and_new_ones_everything() -> None:
    fanout, one, two = ObjectFanout(), Follower(), Follower()
    fanout.join(one)
    listed(fanout, obj("a"), obj("b"), obj("c"))
    one.take()
    fanout.join(two)
    listed(fanout, obj("a"), obj("b", 2), obj("d"))
    assert one.take() == ["MODIFIED b", "ADDED d", "DELETED c?"]
    assert two.take() == ["ADDED a", "ADDED b", "ADDED d"]


def test_a_listener_that_joins_during_a_list_receives_nothing_of_it() -> None:
    fanout, one, two = ObjectFanout(), Follower(), Follower()
    fanout.join(one)
    fanout.begin_list()
    fanout.take_listed([obj("a")])
    late = fanout.join(two)
    fanout.take_listed([obj("b")])
    fanout.end_list()
    assert (two.take(), late.fresh) == ([], True)
    listed(fanout, obj("b"))
    assert (two.take(), late.fresh) == (["ADDED b"], False)
    assert one.take() == ["ADDED a", "ADDED b", "DELETED a?"]


def test_an_interrupted_list_is_continued() -> None:
    fanout, one = ObjectFanout(), Follower()
    listener = fanout.join(one)
    fanout.begin_list()
    fanout.take_listed([obj("a"), obj("b")])
    assert listener.fresh
    listed(fanout, obj("a"), obj("c"))
    assert one.take() == ["ADDED a", "ADDED b", "ADDED c", "DELETED b?"]


def test_a_listener_that_left_receives_nothing_more() -> None:
    fanout, two = ObjectFanout(), Follower()
    listeners: list[Listener] = []

    def leave(_change: RawChange) -> None:
        fanout.leave(listeners[1])

    listeners += [fanout.join(leave), fanout.join(two)]
    listed(fanout, obj("a"))
    assert two.take() == []
    assert fanout.listeners == (listeners[0],)


def test_an_exception_of_one_listener_does_not_affect_others() -> None:
    fanout, two = ObjectFanout(), Follower()
    bug = KeyError("a bug")

    def broken(_change: RawChange) -> None:
        raise bug

    fanout.join(broken)
    fanout.join(two)
    fanout.begin_list()
    with pytest.raises(ExceptionGroup, match=r"listeners to ConfigMap default/a raised") as caught:
        fanout.take_listed([obj("a")])
    assert caught.value.exceptions == (bug,)
    assert two.take() == ["ADDED a"]
    fanout.end_list()
    with pytest.raises(ExceptionGroup):
        fanout.take(RawEvent(DELETED, obj("a", 2)))
    assert two.take() == ["DELETED a"]


NAMES = ("a", "b", "c")


class Fanout(RuleBasedStateMachine):
    """A changing cluster, a stream that lists it page by page or follows it, and listeners that join and leave."""

    def __init__(self) -> None:
        super().__init__()
        self.fanout = ObjectFanout()
        self.followers: list[tuple[Listener, Follower]] = []
        self.cluster: dict[str, RawObject] = {}
        self.revision = 0
        self.known: dict[str, RawObject] = {}
        """The state that results from all events that the fan-out got."""
        self.pages: list[RawObject] | None = None
        self.in_list: dict[str, RawObject] = {}
        self.events: list[RawEvent] | None = None
        """The events since the list was read; None if nothing was listed yet, or the watch failed."""

    @rule(name=st.sampled_from(NAMES), how=st.sampled_from(["put", "replace", "delete"]))
    def cluster_changes(self, name: str, how: str) -> None:
        self.revision += 1
        held = self.cluster.pop(name, None)
        if how == "delete":
            if held is not None:
                self.happened(RawEvent(DELETED, obj(name, self.revision, held.uid)))
            return
        if held is not None and how == "replace":
            self.happened(RawEvent(DELETED, obj(name, self.revision, held.uid)))
            held = None
        uid = held.uid if held else f"u{self.revision}"
        self.cluster[name] = obj(name, self.revision, uid)
        self.happened(RawEvent(MODIFIED if held else ADDED, self.cluster[name]))

    def happened(self, event: RawEvent) -> None:
        if self.events is not None:
            self.events.append(event)

    @precondition(lambda self: len(self.followers) < 4)
    @rule()
    def somebody_joins(self) -> None:
        follower = Follower()
        self.followers.append((self.fanout.join(follower), follower))

    @precondition(lambda self: self.followers)
    @rule(data=st.data())
    def somebody_leaves(self, data: st.DataObject) -> None:
        listener, _ = self.followers.pop(data.draw(st.integers(0, len(self.followers) - 1)))
        self.fanout.leave(listener)

    @precondition(lambda self: self.pages is None)
    @rule()
    def list_begins(self) -> None:
        self.fanout.begin_list()
        self.pages, self.events, self.in_list = list(self.cluster.values()), [], {}

    @precondition(lambda self: self.pages)
    @rule(data=st.data())
    def a_page_comes(self, data: st.DataObject) -> None:
        assert self.pages is not None
        count = data.draw(st.integers(1, len(self.pages)))
        page, self.pages = self.pages[:count], self.pages[count:]
        self.fanout.take_listed(page)
        self.in_list |= {one.key.name: one for one in page}
        self.known |= self.in_list

    @precondition(lambda self: self.pages is not None)
    @rule()
    def list_breaks_off(self) -> None:
        self.pages = self.events = None

    @precondition(lambda self: self.pages == [])
    @rule()
    def list_ends(self) -> None:
        self.fanout.end_list()
        self.known, self.pages = dict(self.in_list), None
        for listener, _ in self.followers:
            assert listener.fresh != listener.covered

    @precondition(lambda self: self.pages is None and self.events)
    @rule()
    def an_event_comes(self) -> None:
        assert self.events is not None
        event = self.events.pop(0)
        self.fanout.take(event)
        self.known.pop(event.object.key.name, None)
        if event.type is not DELETED:
            self.known[event.object.key.name] = event.object

    @invariant()
    def everybody_knows_what_he_should(self) -> None:
        known = {name: one.text for name, one in self.known.items()}
        assert len(self.fanout) == len(known)
        for listener, follower in self.followers:
            if not listener.fresh:
                assert follower.there == known
            else:
                assert follower.there.items() <= known.items()
            if not listener.covered:
                assert follower.there == {}


TestFanout = Fanout.TestCase
