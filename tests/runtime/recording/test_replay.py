"""Stories are recorded and stepped again: every state has the same bytes, and a change anywhere is found."""

import json
from dataclasses import replace

import msgspec
import pytest

from tests.runtime.support.recorded import SECRETS, Story
from tests.scale import scaled
from wharfinger.runtime.recording.record import EventRecord, GapRecord, Record, StateRecord, Why
from wharfinger.runtime.recording.replay import Replay, replayed

STORIES = scaled(1_000, 12)


@pytest.mark.parametrize("part", range(4))
def test_stories_replay_byte_identically(part: int) -> None:
    events = 0
    for seed in range(part, STORIES, 4):
        story = Story(seed, secrets=SECRETS if seed % 2 else ()).tell(120)
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
def test_a_changed_record_is_the_first_difference(machine: str, field: str) -> None:
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
    """The record with another number, truth or word somewhere in this field; None if there is none in it."""
    text = msgspec.json.encode(getattr(record, field)).decode()
    for old, new in (("true", "false"), ('"Failed"', '"Finished"'), ("1", "7"), ("2", "8"), ("null", "true")):
        if old in text:
            value = json.loads(text.replace(old, new, 1))
            return replace(record, state=value) if field == "state" else replace(record, effects=value)
    return None


def test_a_missing_event_is_noticed() -> None:
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
    assert first.what == "there is no state before it"


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
