"""The expansion of a recording: each event gets the changes of the state that it made itself, and its effects in full.

The writer records the changes once for several events of a machine (`LATER`), and of effects the kinds. Nothing is lost: a
machine is a pure function, so it is stepped again from the last whole state. History and explanations read expanded records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from wharfinger.formats.json.value import JsonValue
from wharfinger.runtime.recording.canonical import CanonicalError, Codec, normal, unmasked
from wharfinger.runtime.recording.machines import MACHINES, SCHEDULER
from wharfinger.runtime.recording.package_machine import PackageCodec
from wharfinger.runtime.recording.record import LATER, EventRecord, GapRecord, HeadRecord, Record, StateRecord


def expanded(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records, each event with its own changes. Raises CanonicalError if an event cannot be stepped again."""
    machines: dict[tuple[str, str], tuple[object, Codec]] = {}
    for record in records:
        match record:
            case HeadRecord(first=True) | GapRecord():
                machines.clear()
                yield record
            case StateRecord(machine=name) if name != SCHEDULER.name and name in MACHINES:
                codec = MACHINES[name].codec
                codec = codec.reader() if isinstance(codec, PackageCodec) else codec
                machines[name, record.key] = codec.decode(record.state), codec
                yield record
            case EventRecord() if (known := machines.get((record.machine, record.key))) is not None:
                after, full = _stepped(record, *known)
                machines[record.machine, record.key] = after, known[1]
                yield full
            case EventRecord() if record.state == LATER:
                raise CanonicalError(
                    f"event {record.number}: expected the whole state of {record.key} before it, found none"
                )
            case _:
                yield record


def _stepped(record: EventRecord, before: object, codec: Codec) -> tuple[object, EventRecord]:
    """Return the state after an event, and its record with the changes and the effects in full."""
    machine = MACHINES[record.machine]
    try:
        after, effects = machine.step(before, codec.decode(record.event), record.at)
        changes = normal(machine.changes(codec, before, after, lambda _: unmasked))
        given: JsonValue = [codec.encode(effect) for effect in effects]
    except CanonicalError:
        raise
    except Exception as error:
        raise CanonicalError(
            f"event {record.number}: the {record.machine} of {record.key} refuses it: {type(error).__name__}: {error}"
        ) from error
    return after, replace(record, state=changes, effects=given)
