"""The records of a recording, each one line of JSON. Most records have an event of a state machine, and the changes of the state.

====  ================================================================================================================
mark  record
====  ================================================================================================================
e     an event: its machine and key, the event with its time, the parts of the state that it changed, and its effects
s     a whole state, to which the next events of its machine apply
h     the head of a file: which daemon wrote it
g     a gap: records are missing, and every machine begins from a whole state again
====  ================================================================================================================

Records are numbered from 1 by each daemon. Pure.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec

from wharfinger.formats.json.value import JsonValue
from wharfinger.runtime.recording.canonical import CanonicalError, as_bytes

FORMAT: Final = 6
"""The version of the format of records and states."""


LATER: Final = "later"
"""The value that the record of an event has instead of the changes of the state. These changes are in a later record of the
same state machine, together with the changes of the events in between.
"""


class Why(StrEnum):
    """The reason why a whole state was recorded."""

    BEGINS = "begins"
    """The state machine is recorded for the first time."""
    CONTINUES = "continues"
    """A new file begins."""
    RENEWED = "renewed"
    """Texts may be masked in another way than before, for example because a new secret is known."""
    REPLACED = "replaced"
    """The state was replaced without an event; for example, a package was created again."""
    UNEXPLAINED = "unexplained"
    """The state differs from the last one, although there was no event. This is a bug."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One step of a machine.

    ``key`` is the name of the package. For a queue, ``#`` and the number of the queue follow the name; for the scheduler,
    ``key`` is empty. ``at`` is the time of the event; for the state machine of a package, it also has the other inputs of the
    step (:class:`~wharfinger.runtime.package.around.Around`).
    """

    number: int
    time: float
    machine: str
    key: str
    event: JsonValue
    at: JsonValue
    state: JsonValue
    effects: JsonValue


@dataclass(frozen=True, slots=True)
class StateRecord:
    """The whole state of one machine, before its next event."""

    number: int
    time: float
    machine: str
    key: str
    state: JsonValue
    why: Why


@dataclass(frozen=True, slots=True)
class HeadRecord:
    """The head of a file. ``first`` is True if the daemon has just started, so that no state machine continues from an
    earlier file.
    """

    number: int
    time: float
    format: int
    version: str
    pid: int
    first: bool


@dataclass(frozen=True, slots=True)
class GapRecord:
    """The mark of a gap in a recording: ``lost`` records are missing before this one."""

    number: int
    time: float
    lost: int


class Lines(NamedTuple):
    """Some records as bytes, one record a line, and the number of records."""

    data: bytes
    records: int


Record: TypeAlias = EventRecord | StateRecord | HeadRecord | GapRecord


def encoded_event(record: EventRecord) -> bytes:
    """Return the record as bytes."""
    return as_bytes(
        [
            "e",
            record.number,
            record.time,
            record.machine,
            record.key,
            record.event,
            record.at,
            record.state,
            record.effects,
        ]
    )


def state_line(record: StateRecord) -> list[JsonValue]:
    """Return the record of a whole state as JSON."""
    return ["s", record.number, record.time, record.machine, record.key, record.state, record.why.value]


def encoded(record: Record) -> bytes:
    """Return a record of any kind as bytes."""
    match record:
        case EventRecord():
            return encoded_event(record)
        case StateRecord():
            return as_bytes(state_line(record))
        case HeadRecord(number, time, form, version, pid, first):
            return as_bytes(["h", number, time, form, version, pid, first])
        case GapRecord(number, time, lost):
            return as_bytes(["g", number, time, lost])


def lines_of(data: bytes) -> list[bytes]:
    """Split bytes into the lines of records; the last line may lack its line end."""
    return data.removesuffix(b"\n").split(b"\n")


def read_record(data: bytes) -> Record:
    """Read a record. Raises CanonicalError."""
    try:
        found = cast("JsonValue", msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CanonicalError(f"expected a record, found something else: {error}") from error
    match found:
        case [
            "e",
            int(number),
            int() | float() as time,
            str(machine),
            str(key),
            event,
            at,
            state,
            effects,
        ]:
            return EventRecord(number, float(time), machine, key, event, at, state, effects)
        case ["s", int(number), int() | float() as time, str(machine), str(key), state, str(why)] if why in set(Why):
            return StateRecord(number, float(time), machine, key, state, Why(why))
        case ["h", int(number), int() | float() as time, int(form), str(version), int(pid), bool(first)]:
            return HeadRecord(number, float(time), form, version, pid, first)
        case ["g", int(number), int() | float() as time, int(lost)]:
            return GapRecord(number, float(time), lost)
        case _:
            raise CanonicalError("expected a record of an event, a state, a head or a gap, found something else")
