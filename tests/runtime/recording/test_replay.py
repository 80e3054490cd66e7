"""Stories are recorded and replayed. Each replayed state has the recorded bytes, and a changed recording is detected."""

import json
from dataclasses import replace

import msgspec
import pytest

from tests.runtime.support.recorded import SECRETS, T0, MemoryLog, Story
from tests.scale import scaled
from wharfinger.queue.events import Enqueued
from wharfinger.queue.state import QueueState, Rules
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.recording import record_writer
from wharfinger.runtime.recording.canonical import CanonicalError
from wharfinger.runtime.recording.machines import QUEUE, SCHEDULER
from wharfinger.runtime.recording.record import LATER, EventRecord, GapRecord, Record, StateRecord, Why
from wharfinger.runtime.recording.recorder import Recorder
from wharfinger.runtime.recording.replay import Replay, expanded, replayed

STORIES = scaled(1_000, 12)


@pytest.mark.parametrize("part", range(4))
def test_stories_replay_byte_identically(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events = 0
    if part >= 2:  # in half of the stories, the states are compared after each event
        monkeypatch.setattr(record_writer, "MOST_TOGETHER", 1)
    for seed in range(part, STORIES, 4):
        story = Story(seed, secrets=SECRETS if seed % 2 else ()).tell(120)
        story.recorder.end()
        replay = Replay()
        assert list(replayed(story.log.read(), replay)) == [], f"seed {seed}"
        assert story.recorder.failures == 0
        assert replay.skipped == 0
        events += replay.events
    assert events > 40 * STORIES / 4


def told(seed: int = 3, steps: int = 150) -> list[Record]:
    return Story(seed).tell(steps).log.read()


@pytest.mark.parametrize("machine", ["lifecycle", "journal", "queue", "scheduler", "package"])
@pytest.mark.parametrize("field", ["state", "effects"])
def test_a_changed_record_is_the_first_difference(machine: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "MOST_TOGETHER", 2)
    records = told()
    number = None
    for index, record in enumerate(records):
        if not isinstance(record, EventRecord) or record.machine != machine:
            continue
        changed = _changed(record, field)
        if changed is not None and index > len(records) // 3:
            records[index], number = changed, record.number
            break
    if number is None:
        assert field == "effects"
        return
    differences = list(replayed(records, Replay()))
    assert [each.number for each in differences][:1] == [number]
    assert differences[0].machine == machine


def _changed(record: EventRecord, field: str) -> EventRecord | None:
    """Return the record with one changed value in this field, or None if the field has no value that can be changed."""
    text = msgspec.json.encode(getattr(record, field)).decode()
    for old, new in (("true", "false"), ('"Failed"', '"Finished"'), ("1", "7"), ("2", "8"), ("null", "true")):
        if old in text:
            value = json.loads(text.replace(old, new, 1))
            return replace(record, state=value) if field == "state" else replace(record, effects=value)
    return None


def test_a_missing_event_is_a_difference() -> None:
    records = told()
    events = [
        index for index, each in enumerate(records) if isinstance(each, EventRecord) and each.machine == "scheduler"
    ]
    index = next(each for each in events[len(events) // 3 :] if _touches(records[each]))
    del records[index]
    assert list(replayed(records, Replay()))


def _touches(record: Record) -> bool:
    match record:
        case EventRecord(state=[_, _, _, dict() as entries]):
            return bool(entries)
        case _:
            return False


def test_an_event_without_a_state_before_it_is_a_difference() -> None:
    records = [each for each in told() if not isinstance(each, StateRecord)]
    replay = Replay()
    (first, *_) = replayed(records, replay)
    assert first.what == "the state before this event, which the recording does not have,"


def test_a_state_that_was_changed_without_an_event_is_a_difference() -> None:
    records = told()
    index = next(
        index for index, each in enumerate(records) if isinstance(each, StateRecord) and each.machine == "scheduler"
    )
    state = records[index]
    assert isinstance(state, StateRecord)
    whole = [each for each in records if isinstance(each, StateRecord) and each.machine == "scheduler"]
    records[-1:] = [replace(whole[0], why=Why.UNEXPLAINED)]
    (*_, last) = replayed(records, Replay())
    assert last.what.startswith("the state was changed without an event")


def test_after_a_gap_every_machine_begins_from_a_whole_state() -> None:
    records = [GapRecord(0, 0.0, 12), *told()]
    replay = Replay()
    assert list(replayed(records, replay)) == []
    assert replay.lost == 12


# --- expanded records


@pytest.mark.parametrize("seed", range(2))
def test_expanded_records_equal_records_of_single_steps(seed: int) -> None:
    """The log on disk combines several steps in one record, but the rings in memory store single steps. The records of the log,
    when they are expanded, are the same as those of the rings.
    """
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


def test_after_a_gap_an_event_needs_a_whole_state() -> None:
    log = MemoryLog()
    store = LifecycleStore(observe=Recorder(lambda _: (), log, T0.timestamp).lifecycle)
    store.reconcile("shop.web", DesiredState("oci://r/x", "web", "1.0.0", "sha256:a"))
    store.begin_update("shop.web")
    state, first, second = log.read()
    assert isinstance(second, EventRecord)
    assert len(list(expanded([state, first, second]))) == 3
    with pytest.raises(CanonicalError):
        list(expanded([state, GapRecord(0, 1.0, 3), first]))


def test_an_event_that_its_machine_refuses_is_reported() -> None:
    whole = QUEUE.codec.encode(QueueState(Rules(max_tasks=1), {}, None, 1))
    state = StateRecord(1, 1.0, QUEUE.name, "shop.web#1", whole, Why.BEGINS)
    events = [
        EventRecord(
            number, 1.0, QUEUE.name, "shop.web#1", QUEUE.codec.encode(Enqueued(number, "Load", 1, 1.0)), None, LATER, []
        )
        for number in (2, 3)
    ]
    with pytest.raises(CanonicalError, match=r"event 3: the queue of shop\.web#1 cannot process the event: QueueFull"):
        list(expanded([state, *events]))
