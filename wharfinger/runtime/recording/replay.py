"""The replay of a recording: the recorded events are given to every state machine again, and its states and effects are
compared with the recorded ones.

The canonical forms are compared byte by byte. A difference has one of three causes: the state machine of this version decides
differently from the recorded version, a decision depended on something that is not in the recording, or a state was changed
without an event. The effects are compared after each event: effects of the scheduler in full, effects of other state machines
only by their kinds. If the changes of several events were recorded together, they are compared after the last of these events.

After a difference, the replay skips the events of this state machine until the recording has its complete state again, because
the differences until then would have the same cause.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.listing import counted
from wharfinger.runtime.recording.canonical import CanonicalError, Codec, as_bytes, normal, unmasked
from wharfinger.runtime.recording.machines import (
    LIFECYCLE,
    MACHINES,
    PACKAGE,
    QUEUE,
    SCHEDULER,
    Machine,
    kinds_of_effects,
)
from wharfinger.runtime.recording.marks import plain
from wharfinger.runtime.recording.package_machine import PackageCodec
from wharfinger.runtime.recording.record import LATER, EventRecord, GapRecord, HeadRecord, Record, StateRecord, Why

MOST_SHOWN = 200
"""The limit on the characters of a value that are shown in a difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between a recorded step and its replay. ``number`` is the number of the record, ``what`` names the part
    that differs.
    """

    number: int
    time: float
    machine: str
    key: str
    event: JsonValue
    what: str
    recorded: str
    replayed: str


@dataclass(slots=True)
class Replay:
    """A replay in progress: the state of each state machine, and the counts so far."""

    events: int = 0
    states: int = 0
    """The number of whole states in the recording. The replay continues from each of them. It compares some of them with the
    state that it has replayed so far.
    """
    skipped: int = 0
    """The number of events that were not replayed, because their state machine already differed from the recording."""
    lost: int = 0
    packages: set[str] = field(default_factory=set)
    _states: dict[tuple[str, str], object] = field(default_factory=dict)
    _codecs: dict[tuple[str, str], Codec] = field(default_factory=dict)
    """The codec for the records of each package. It remembers the objects that were described since the package's last whole
    state.
    """
    _off: set[tuple[str, str]] = field(default_factory=set)
    _open: dict[tuple[str, str], tuple[object, int]] = field(default_factory=dict)
    """The state machines with changes that are not compared yet. The value is the state before these changes, and the number of
    events since that state.
    """

    def take(self, record: Record) -> Difference | None:
        """Replay one record. Return the difference between the recorded and the replayed step; None if they are equal, or
        cannot be compared yet. Raises CanonicalError if the record's state machine is not known.
        """
        match record:
            case HeadRecord(first=first):
                if first:
                    self._reset()
                return None
            case GapRecord(lost=lost):
                self._reset()
                self.lost += lost
                return None
            case StateRecord():
                return self._state(record)
            case EventRecord():
                return self._event(record)

    def _reset(self) -> None:
        self._states.clear()
        self._off.clear()
        self._open.clear()

    def _state(self, record: StateRecord) -> Difference | None:
        machine, key = _machine(record.machine), (record.machine, record.key)
        self.states += 1
        codec = machine.codec
        if isinstance(codec, PackageCodec):
            codec = self._codecs[key] = codec.reader()
        adopted = codec.decode(record.state)
        known = key in self._states
        before = self._states.get(key)
        self._states[key] = adopted
        self._open.pop(key, None)
        if key in self._off:
            self._off.discard(key)
            return None
        if record.why is Why.UNEXPLAINED:
            what = "the state was changed without an event"
        elif record.why is Why.CONTINUES and known:
            what = "the whole state"
        else:
            return None
        replayed = codec.encode(before, unmasked) if known else None
        recorded = plain(record.state) if machine is PACKAGE else record.state
        if as_bytes(replayed) == as_bytes(recorded):
            return None
        return _difference(record, None, what, recorded, replayed)

    def _event(self, record: EventRecord) -> Difference | None:
        machine, key = _machine(record.machine), (record.machine, record.key)
        self.events += 1
        self.packages.add(record.key.partition("#")[0])
        if key in self._off:
            self.skipped += 1
            return None
        if key not in self._states:
            self._off.add(key)
            return _difference(
                record, record.event, "the state before this event, which the recording does not have,", None, None
            )
        before, codec = self._states[key], self._codecs.get(key, machine.codec)
        try:
            after, effects = machine.step(before, codec.decode(record.event), record.at)
            since, steps = self._open.pop(key, (before, 0))
            state: JsonValue = LATER
            if record.state == LATER:
                self._open[key] = since, steps + 1
            else:
                state = machine.changes(codec, since, after, lambda _: unmasked)
            given, told = _effects(machine, codec, effects, _list(record.effects))
        except CanonicalError:
            raise
        except Exception as error:  # noqa: BLE001 - a machine refuses an event by an exception of its own
            self._off.add(key)
            return _difference(record, record.event, "the step", record.state, f"{type(error).__name__}: {error}")
        self._states[key] = after
        told_state = plain(record.state) if machine is PACKAGE else record.state
        what_state = f"the state after {counted(steps + 1, 'event')}" if steps else "the state"
        for what, recorded, replayed in ((what_state, told_state, state), ("the effects", told, given)):
            if as_bytes(recorded) != as_bytes(replayed):
                self._off.add(key)
                return _difference(record, record.event, what, recorded, replayed)
        if _is_over(machine, after):
            del self._states[key]
        return None


def replayed(records: Iterable[Record], replay: Replay) -> Iterator[Difference]:
    """Process all records, and yield the differences. After a difference in the steps of one state machine, further events of
    this state machine are skipped until the recording has its complete state again. Raises CanonicalError.
    """
    for record in records:
        difference = replay.take(record)
        if difference is not None:
            yield difference


def _effects(
    machine: Machine, codec: Codec, effects: tuple[object, ...], recorded: list[JsonValue]
) -> tuple[JsonValue, JsonValue]:
    """Return the replayed effects and the recorded effects in a form in which the two can be compared. Effects of the scheduler
    are compared in full; the effects of another state machine are compared by their kinds.
    """
    if machine is SCHEDULER:
        return [codec.encode(effect) for effect in effects], [codec.plain(effect) for effect in recorded]
    return kinds_of_effects(effects), recorded


# --- expansion ---------------------------------------------------------------------------------------------------------------


def expanded(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the records; each event has its own changes of the state, and its effects in full.

    For all state machines except the scheduler, the writer records the changes of several events together (`LATER`), and only
    the kinds of effects. Each state machine is a pure function, so it is stepped again from its last whole state. Raises
    CanonicalError if an event cannot be replayed.
    """
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
    """Return the state after an event, and the event's record with all changes and effects added."""
    machine = MACHINES[record.machine]
    try:
        after, effects = machine.step(before, codec.decode(record.event), record.at)
        changes = normal(machine.changes(codec, before, after, lambda _: unmasked))
        given: JsonValue = [codec.encode(effect) for effect in effects]
    except CanonicalError:
        raise
    except Exception as error:
        raise CanonicalError(
            f"event {record.number}: the {record.machine} of {record.key} cannot process the event: "
            f"{type(error).__name__}: {error}"
        ) from error
    return after, replace(record, state=changes, effects=given)


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def _machine(name: str) -> Machine:
    machine = MACHINES.get(name)
    if machine is None:
        raise CanonicalError(f"expected one of the machines {', '.join(MACHINES)}, found {name[:80]!r}")
    return machine


def _is_over(machine: Machine, after: object) -> bool:
    """Return whether a state machine has ended. Then the next record with its name has a whole state."""
    if machine is LIFECYCLE:
        return after is None
    return machine is QUEUE and not getattr(after, "lanes", None)


def _difference(
    record: EventRecord | StateRecord, event: JsonValue, what: str, recorded: JsonValue, replayed: JsonValue
) -> Difference:
    if event is not None:
        event = _machine(record.machine).codec.plain(event)
    where, old, new = _first_difference(recorded, replayed)
    return Difference(
        record.number, record.time, record.machine, record.key, event, f"{what}{where}", _shown(old), _shown(new)
    )


def _first_difference(recorded: JsonValue, replayed: JsonValue) -> tuple[str, JsonValue, JsonValue]:
    """Return the path of the first part that differs, and the two values at this path."""
    if isinstance(recorded, list) and isinstance(replayed, list) and len(recorded) == len(replayed):
        for index, (old, new) in enumerate(zip(recorded, replayed, strict=True)):
            if as_bytes(old) != as_bytes(new):
                where, one, other = _first_difference(old, new)
                return f"[{index}]{where}", one, other
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        for name in sorted({*recorded, *replayed}):
            if as_bytes(recorded.get(name)) != as_bytes(replayed.get(name)):
                where, one, other = _first_difference(recorded.get(name), replayed.get(name))
                return f".{name}{where}", one, other
    return "", recorded, replayed


def _shown(value: JsonValue) -> str:
    text = as_bytes(value).decode("utf-8", "replace")
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"
