"""The history of a package: the recorded events, each described in words, with the state before and the state after it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.runtime.inspector import EventSnapshot, HistorySnapshot
from wharfinger.runtime.recording.machines import MACHINES, PACKAGE, QUEUE, SCHEDULER
from wharfinger.runtime.recording.past import MENTION, UNCHANGED, Past, is_mention
from wharfinger.runtime.recording.record import EventRecord, GapRecord, HeadRecord, Record, StateRecord
from wharfinger.runtime.recording.replay import expanded
from wharfinger.runtime.recording.ring import Rings
from wharfinger.runtime.recording.wording import STATUS, state_of, words_of, words_of_status


def history_of(rings: Rings, name: str) -> HistorySnapshot | None:
    """Return the events of a package that are in memory; None if there are no events."""
    ring = rings.get(name)
    if ring is None or not len(ring):
        return None
    text = rings.text_of(name)
    return HistorySnapshot(name, events_of(ring.base(text), ring.records(text)), ring.dropped)


def recorded_history(records: Iterable[Record], name: str) -> HistorySnapshot | None:
    """Return the events of a package in a recording, which may span several starts of the daemon; None if it has no events of the
    package.
    """
    events: list[EventSnapshot] = []
    past = Past()
    for record in expanded(each for each in records if _concerns(each, name)):
        if is_start(record):
            past = Past()
        elif (part := part_of(record, name)) is not None:
            events += events_of(past, [part])
    return HistorySnapshot(name, tuple(events)) if events else None


def _concerns(record: Record, name: str) -> bool:
    return isinstance(record, HeadRecord | GapRecord) or part_of(record, name) is not None


def part_of(record: Record, name: str) -> EventRecord | StateRecord | None:
    """Return the part of a record that is about the package ``name``; None if the record is not about it. Records of the
    scheduler may be about several packages.
    """
    match record:
        case EventRecord(machine=SCHEDULER.name):
            return _scheduler_part(record, name)
        case EventRecord() | StateRecord() if record.key == name or (
            record.machine == QUEUE.name and record.key.rpartition("#")[0] == name
        ):
            return record
        case _:
            return None


def names_in(record: Record) -> tuple[str, ...]:
    """Return the packages that a record is about."""
    match record:
        case EventRecord(machine=SCHEDULER.name):
            subject = _subject(SCHEDULER.codec.plain(record.event))
            return tuple(dict.fromkeys([*_entries(record), *([subject] if subject else [])]))
        case EventRecord() | StateRecord() if record.machine != SCHEDULER.name:
            return (record.key.rpartition("#")[0] if record.machine == QUEUE.name else record.key,)
        case _:
            return ()


def events_of(base: Past, records: Iterable[EventRecord | StateRecord]) -> tuple[EventSnapshot, ...]:
    """Return the events in ``records``, which follow the state ``base``. The call changes ``base`` to the state after the last
    record.
    """
    events = []
    for record in records:
        if isinstance(record, StateRecord):
            base.fold(record)
            continue
        told = [(record.machine, state_of(record.machine, base), words_of(plain(record), base))]
        if record.machine == PACKAGE.name and (status := words_of_status(record.state)) is not None:
            told.append((STATUS, state_of(STATUS, base), status))
            if isinstance(record.event, list) and record.event[0] == "Changed":
                del told[0]  # the event consists only of this change
        base.fold(record)
        at = datetime.fromtimestamp(record.time, UTC)
        events += [
            EventSnapshot(at, machine, words.event, words.cause, before, state_of(machine, base), words.decides)
            for machine, before, words in told
        ]
    return tuple(events)


def is_start(record: Record) -> bool:
    """Return whether a daemon started with this record, so that no state machine continues from earlier records."""
    return isinstance(record, HeadRecord) and record.first


def _scheduler_part(record: EventRecord, name: str) -> EventRecord | None:
    record = plain(record)
    entries = _entries(record)
    subject = _subject(record.event)
    if name not in entries and subject != name:
        return None
    own: list[JsonValue] = [effect for effect in _lists(record.effects) if effect[1] == name]
    event = record.event if subject == name else [MENTION, _lists([record.event])[0][0], subject]
    return replace(record, key=name, event=event, state=entries.get(name, UNCHANGED), effects=own)


def plain(record: EventRecord) -> EventRecord:
    """Return a record with the canonical forms of its event and its effects."""
    if record.machine not in MACHINES:
        return record
    codec = MACHINES[record.machine].codec
    is_tag = is_mention(record.event) or (isinstance(record.event, list) and len(record.event) == 1)
    event = record.event if is_tag else codec.plain(record.event)
    effects: list[JsonValue] = [codec.plain(effect) for effect in _lists(record.effects)]
    return replace(record, event=event, effects=effects)


def _entries(record: EventRecord) -> JsonObject:
    match record.state:
        case [_, _, _, dict() as entries]:
            return entries
        case _:
            return {}


def _subject(event: JsonValue) -> str:
    """Return the package that an event of the scheduler is about; empty if the event is about all packages."""
    match event:
        case [_, ["Node", str(name), *_]] | [_, str(name), *_]:
            return name
        case _:
            return ""


def _lists(value: JsonValue) -> list[list[JsonValue]]:
    return [each for each in value if isinstance(each, list)] if isinstance(value, list) else []
