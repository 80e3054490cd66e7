"""Expanded records: each event has its own changes and effects, as if they had been written at once."""

import pytest

from tests.runtime.support.recorded import T0, MemoryLog, Story
from wharfinger.queue.events import Enqueued
from wharfinger.queue.state import QueueState, Rules
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.recording.canonical import CanonicalError
from wharfinger.runtime.recording.expansion import expanded
from wharfinger.runtime.recording.machines import QUEUE, SCHEDULER
from wharfinger.runtime.recording.record import LATER, EventRecord, GapRecord, StateRecord, Why
from wharfinger.runtime.recording.recorder import Recorder


@pytest.mark.parametrize("seed", range(2))
def test_records_of_a_moment_are_those_of_steps_that_were_written_one_by_one(seed: int) -> None:
    """A ring keeps each step, so its records are made of the states before and after it."""
    story = Story(seed).tell(120)
    for name in story.recorder.rings.names():
        ring = story.recorder.rings.get(name)
        assert ring is not None
        kept = {
            each.number: each
            for each in ring.records(story.recorder.masking(name))
            if isinstance(each, EventRecord) and each.machine not in (SCHEDULER.name, "package")
        }
        for record in expanded(story.log.read()):
            if isinstance(record, EventRecord) and record.number in kept and record.machine != SCHEDULER.name:
                assert (record.state, record.effects) == (kept[record.number].state, kept[record.number].effects)


def test_an_event_without_a_state_before_it_is_refused() -> None:
    event = EventRecord(3, 1.0, "lifecycle", "shop.web", ["Tracked"], None, LATER, [])
    with pytest.raises(CanonicalError, match=r"event 3: expected the whole state of shop\.web before it, found none"):
        list(expanded([event]))


def test_after_a_gap_machines_begin_again() -> None:
    log = MemoryLog()
    store = LifecycleStore(observe=Recorder(lambda _: (), log, T0.timestamp).lifecycle)
    store.reconcile("shop.web", DesiredState("oci://r/x", "web", "1.0.0", "sha256:a"))
    store.begin_update("shop.web")
    state, first, second = log.read()
    assert isinstance(second, EventRecord)
    assert len(list(expanded([state, first, second]))) == 3
    with pytest.raises(CanonicalError):
        list(expanded([state, GapRecord(0, 1.0, 3), first]))


def test_an_event_that_its_machine_refuses_is_named() -> None:
    whole = QUEUE.codec.encode(QueueState(Rules(max_tasks=1), {}, None, 1))
    state = StateRecord(1, 1.0, QUEUE.name, "shop.web#1", whole, Why.BEGINS)
    events = [
        EventRecord(
            number, 1.0, QUEUE.name, "shop.web#1", QUEUE.codec.encode(Enqueued(number, "Load", 1, 1.0)), None, LATER, []
        )
        for number in (2, 3)
    ]
    with pytest.raises(CanonicalError, match=r"event 3: the queue of shop\.web#1 refuses it: QueueFull"):
        list(expanded([state, *events]))
