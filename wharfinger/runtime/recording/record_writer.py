"""The writer of records: it encodes the steps of state machines for a log, many steps together.

A whole state is written when a state machine is recorded for the first time in a file of the log. After that, only its steps are
written, as long as each step begins with the state in which the previous step ended; the replay relies on this. Most steps of a
task follow each other within a moment. So if several steps of a state machine are encoded together, the changes of its state are
written only once, in the record of the last of these steps (`LATER`). Of the effects, only the kinds are written, except for
effects of the scheduler. This is sufficient, because a replay steps the state machine through all events, and so computes each
state and each effect again.

Synchronous: no trio, no I/O. The log (`Log`) takes bytes, and decides when a new file begins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeAlias, cast

import msgspec

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.redaction.redaction_text import TextRedactor
from wharfinger.queue.state import QueueState
from wharfinger.runtime.lifecycle.journal_machine import Forget
from wharfinger.runtime.package import state as package_state
from wharfinger.runtime.package.events import Changed
from wharfinger.runtime.recording.canonical import Clean, Codec, Text, as_lines
from wharfinger.runtime.recording.machines import (
    JOURNAL,
    LIFECYCLE,
    PACKAGE,
    QUEUE,
    SCHEDULER,
    Machine,
    TextOf,
    entry_form,
    kinds_of_effects,
)
from wharfinger.runtime.recording.masking import Derived, Masking, Renewals
from wharfinger.runtime.recording.package_form import marked_objects
from wharfinger.runtime.recording.package_machine import PACKAGE_CODEC, PackageCodec
from wharfinger.runtime.recording.record import LATER, Lines, StateRecord, Why, encoded
from wharfinger.runtime.recording.ring import Decision, Step
from wharfinger.runtime.scheduler.events import NodeAdded
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.state import Graph

ALL: Final = ""
"""The text in the records of the scheduler that takes the place of a package's name. The scheduler has one state for all
packages.
"""
_STATE: Final = 7
"""The record of an event is a list; this is the index of the changes of the state in the list."""
MOST_TOGETHER: Final = 128
"""The changes of at most this many steps of one state machine are written together. They are the most expensive part of a
record.
"""
_NO_EFFECTS: Final[list[JsonValue]] = []

Later: TypeAlias = Callable[[], bytes]
"""A function that returns a record; it is called in another thread."""


class Log(Protocol):
    """A log on disk. ``file`` is the number of the file that the next record will be in."""

    @property
    def file(self) -> int:
        """The number of the file that the next record will be in."""
        ...

    def expect(self, drain: Callable[[], None]) -> None:
        """Schedule a write. Just before the write, ``drain`` is called once; it appends the records to write."""
        ...

    def append(self, *records: Lines | Later) -> None:
        """Write records later, all to one file. Instead of a record, a function that returns the record may be passed; it is
        called in another thread at the time of the write.

        Never waits, never raises.
        """
        ...


@dataclass(slots=True)
class _Known:
    """The facts about a recorded state machine. ``state`` is its last state, and ``file`` is the file that has its whole state.
    ``renewed`` is the number of times that the masking of texts had changed before the whole state was recorded.

    ``line`` is the record of the last event, as long as the changes of the state are not added to it; otherwise None. ``since``
    is the state before these changes, and ``steps`` is the number of steps that made them.
    """

    machine: Machine
    codec: Codec
    masking: Masking
    text: Derived
    state: object
    file: int
    renewed: int
    clean: Clean = field(init=False)
    """The texts of the package that are known to contain no secret."""
    since: object = None
    line: list[object] | None = None
    steps: int = 0

    def __post_init__(self) -> None:
        self.clean = self.masking.clean

    @property
    def is_renewed(self) -> bool:
        """Return whether texts are now masked in a different way than at the time when the whole state was recorded."""
        return self.masking.renewed != self.renewed

    def set_status(self, before: object) -> None:
        """Remember the package's status before the event, because some events are written as changes of this status. Do nothing
        if this writer records another state machine than that of a package.
        """
        if isinstance(self.codec, PackageCodec) and isinstance(before, package_state.Package):
            self.codec.status = before.status

    def close(self) -> None:
        """Add the changes of the state to the last record. If that record was already written, the changes are not recorded,
        and a replay does not compare them.
        """
        line, self.line, self.steps = self.line, None, 0
        if line is None or self.is_renewed:
            return  # the texts of these records are masked in another way by now, and a whole state follows
        derived = self.text.derived if self.text.masked else self.masking
        changes = self.machine.changes(self.codec, self.since, self.state, _only(derived))
        if not self.is_renewed:
            line[_STATE] = changes
        self.text.masked.clear()
        if isinstance(self.codec, PackageCodec) and self.codec.marks is not None and self.codec.marks.has_many:
            self.codec.marks.forget(marked_objects(cast("package_state.Package", self.state)))


class RecordWriter:
    """The writer of the records of one daemon. ``masking_of`` returns the object that masks the secrets of a package."""

    def __init__(
        self, sink: Log, masking_of: Callable[[str], Masking], maskings: dict[str, Masking], renewals: Renewals
    ) -> None:
        self._sink = sink
        self._masking_of = masking_of
        self._maskings = maskings
        self._renewals = renewals
        self._file = sink.file
        """The number of the log file for which records are now added. It stays the same until these records are passed to the
        log.
        """
        self._lines: list[list[object]] = []
        """The newest records, not encoded yet: changes of a state are still added to the last record of its state machine."""
        self._batches: list[list[list[object]] | Later] = [self._lines]
        """All records since the last flush, in batches; the last batch is ``_lines``."""
        self._known: dict[tuple[str, str], _Known] = {}
        self._begun: tuple[object, JsonValue] = None, None
        """The last initial state of a queue, and its form. Almost all queues begin in the same state."""
        self._nodes: dict[str, tuple[Node, JsonValue]] = {}
        """The node that each package last offered, and the recorded form of the event of this offer. The form contains no texts
        that are masked, so it can be used again.
        """
        self._graph: tuple[Graph, int, int] | None = None
        """The last recorded state of the scheduler, the number of the file that contains it, and the count of renewals of the
        masked texts at that time.
        """

    def add(self, step: Step) -> None:
        """Write one step of one of a package's state machines. If the step does not continue the last record, write the whole
        state first.
        """
        machine, key, before, event, after = step.machine, step.key, step.before, step.event, step.after
        known = self._known.get((machine.name, key))
        if known is None or known.state is not before or known.file != self._file:
            known = self._continued(step, known)
        while True:
            if type(event) is Changed:
                known.set_status(before)
            form = known.codec.quick(event, known.text, known.clean)
            if known.masking.renewed == known.renewed:
                break
            known = self._begin(step, Why.RENEWED)
        effects = kinds_of_effects(step.effects) if step.effects else _NO_EFFECTS
        line: list[object] = ["e", step.number, step.time, machine.name, key, form, step.at, LATER, effects]
        self._lines.append(line)
        if known.line is None:
            known.since = before
        known.line, known.state = line, after
        known.steps += 1
        if known.steps >= MOST_TOGETHER:
            known.close()
        if machine is QUEUE:
            if isinstance(after, QueueState) and not after.lanes:
                self.over(machine, key)
        elif not after and _is_over(step):
            self.over(machine, key)

    def _continued(self, step: Step, known: _Known | None) -> _Known:
        """Return the facts about a state machine before a step; write the whole state first if the step does not continue the
        last record.
        """
        why = _why(known, step.before, self._file)
        return known if known is not None and why is None else self._begin(step, why or Why.BEGINS)

    def _begin(self, step: Step, why: Why) -> _Known:
        """Write the whole state that a state machine has before a step; ``why`` is the reason that the record states."""
        machine, key, masking = step.machine, step.key, self._masking_of(step.package)
        known = self._known.get((machine.name, key))
        if known is not None:
            known.close()
            codec = known.codec
        else:
            codec = PACKAGE_CODEC.writer() if machine is PACKAGE else machine.codec
        if isinstance(codec, PackageCodec) and codec.marks is not None:
            codec.marks.begin()
        while True:
            renewed = masking.renewed
            whole = self._queue_form(step.before, masking) if machine is QUEUE else codec.encode(step.before, masking)
            if masking.renewed == renewed:
                break
        self._lines.append(["s", step.number, step.time, machine.name, key, whole, why.value])
        new = self._known[machine.name, key] = _Known(
            machine, codec, masking, Derived(masking), step.before, self._file, renewed
        )
        return new

    def _queue_form(self, state: object, masking: Masking) -> JsonValue:
        """Return the recorded form of a queue's state. The form of the last state of an empty queue is cached."""
        known, form = self._begun
        if state != known:
            form = QUEUE.codec.encode(state, masking)
            if isinstance(state, QueueState) and not state.lanes and state.closing is None:
                self._begun = state, form
        return form

    def over(self, machine: Machine, key: str) -> None:
        """Forget a state machine that has ended. If it begins again, its whole state is recorded first."""
        known = self._known.pop((machine.name, key), None)
        if known is not None:
            known.close()
        if machine is PACKAGE:
            self._nodes.pop(key, None)

    def forget_all(self) -> None:
        """Forget what was recorded, so that the whole state of each state machine is recorded before its next step."""
        self._known.clear()
        self._graph = None

    def end(self, number: int, time: float) -> None:
        """Write the whole state of each state machine whose last steps were not written one by one.

        The written records have this step number and time.
        """
        for (_, key), known in tuple(self._known.items()):
            if known.line is not None:
                package, state = key.partition("#")[0], known.state
                self._begin(Step(number, time, known.machine, package, key, state, None, state, ()), Why.CONTINUES)

    def flush(self) -> int:
        """Pass all records to the log, and return the number of records that could not be encoded."""
        batches, self._batches, self._lines = self._batches, [], []
        self._batches.append(self._lines)
        parts = [_encoded(batch) if isinstance(batch, list) else batch for batch in batches if batch]
        if parts:
            self._sink.append(*parts)
        made = sum(part.records for part in parts if isinstance(part, Lines))
        return sum(len(batch) for batch in batches if isinstance(batch, list)) - made

    def begin(self) -> None:
        """Note which file is open now: all records that are added after this call belong to this file."""
        self._file = self._sink.file

    # --- the scheduler ---------------------------------------------------------------------------------------------------

    def add_decision(self, step: Decision, subject: str) -> None:
        """Write a step of the scheduler, whose one state covers all packages. Mask the secrets of the package ``subject`` in
        the event.
        """
        codec, file, before, event, after = SCHEDULER.codec, self._file, step.before, step.event, step.after
        while True:
            renewed = self._renewals.count
            why = self._why_graph(before, file, renewed)
            masking = self._masking_of(subject)
            form: object = (
                self._offer(event) if isinstance(event, NodeAdded) else codec.quick(event, masking, masking.clean)
            )
            state = SCHEDULER.changes(codec, before, after, self._masking_of)
            given: list[object] = []
            for effect in step.effects:
                own = self._masking_of(effect.name)
                given.append(codec.quick(effect, own, own.clean))
            if why is not None:
                for name, entry in before.entries.items():  # texts that were forgotten are masked again
                    entry_form(codec, entry, 0, self._masking_of(name))
            if self._renewals.count == renewed:
                break
        number, moment = step.number, step.time
        if why is not None:
            self._lines = []
            texts = tuple(
                [masking.texts() for masking in self._maskings.values()]
            )  # a copy, because texts may be forgotten before the state is written
            self._batches += (partial(_whole_graph, number, moment, before, why, texts), self._lines)
        self._lines.append(["e", number, moment, SCHEDULER.name, ALL, form, step.at, state, given])
        self._graph = after, file, renewed

    def _offer(self, event: NodeAdded) -> JsonValue:
        """Return the recorded form of an event that passes a node to the scheduler. Most nodes are passed again without a
        change, so the form of each package's last event is kept.
        """
        name = event.node.name
        known = self._nodes.get(name)
        if known is None or known[0] != event.node:
            known = self._nodes[name] = event.node, SCHEDULER.codec.encode(event)
        return known[1]

    def _why_graph(self, before: Graph, file: int, renewed: int) -> Why | None:
        if self._graph is None:
            return Why.BEGINS
        known, in_file, by_then = self._graph
        if known is not before:
            return Why.UNEXPLAINED
        if by_then != renewed:
            return Why.RENEWED
        return Why.CONTINUES if in_file != file else None


def _whole_graph(number: int, moment: float, graph: Graph, why: Why, texts_of: tuple[Mapping[str, str], ...]) -> bytes:
    """Return the record of a scheduler's whole state. This function is called in another thread, because it may take a second.

    ``texts_of`` has the masked texts of each package, to which more texts may be added meanwhile.
    """
    texts: dict[str, str] = {}
    for each in texts_of:
        texts |= {text: masked for text, masked in {**each}.items() if masked != text or text not in texts}
    masked = TextRedactor()
    form = SCHEDULER.codec.encode(graph, lambda text: texts[text] if text in texts else masked.redact(text))
    return encoded(StateRecord(number, moment, SCHEDULER.name, ALL, form, why))


def _why(known: _Known | None, before: object, file: int) -> Why | None:
    """Return the reason to record the whole state ``before``; None if the last record already leads to this state."""
    if known is None:
        return Why.BEGINS
    if known.state is not before and not _continues(known, before):
        return Why.REPLACED if known.machine is PACKAGE else Why.UNEXPLAINED
    if known.renewed != known.masking.renewed:
        return Why.RENEWED
    return Why.CONTINUES if known.file != file else None


def _continues(known: _Known, before: object) -> bool:
    """Return whether a state continues the last recorded state, although it is another object. This is so for an equal state of
    a lifecycle, and for an empty journal after an empty journal.
    """
    if known.machine is JOURNAL:
        return not known.state and not before
    return known.machine is LIFECYCLE and known.state == before


def _is_over(step: Step) -> bool:
    """Return whether a state machine has ended with this step. If so, the next record of this machine has a whole state."""
    if step.machine is JOURNAL:  # an empty state is no end, because the next operation begins soon
        return type(step.event) is Forget
    return step.after is None


def _only(text: Text) -> TextOf:
    """Return a function that gives the same Text for every package, for a state machine whose texts all belong to one
    package.
    """
    return lambda _: text


def _encoded(lines: Sequence[object]) -> Lines:
    """Return the lines that can be encoded. A line whose text contains a lone surrogate cannot be encoded."""
    try:
        return Lines(as_lines(lines), len(lines))
    except (UnicodeEncodeError, msgspec.EncodeError, TypeError):
        made = [data for line in lines if (data := _line(line))]
        return Lines(b"".join(made), len(made))


def _line(line: object) -> bytes:
    try:
        return as_lines([line])
    except (UnicodeEncodeError, msgspec.EncodeError, TypeError):
        return b""
