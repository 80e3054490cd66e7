"""The recorder: it observes the shells of all machines, keeps the last records of each package, and passes all to a log.

Each observer is called after its machine has stepped and before the effects are performed, so the records are in the order of
the steps. An observer only puts the step aside, which takes a microsecond: states, events and effects never change. `drain` keeps
and encodes the steps later, many at once. An error of the recorder is logged once, counted, and costs that record.

A machine's state is written as a whole when it is first seen in a file of the log. After that, only its steps are written, for as
long as each of them begins with the state that the last one left; the replay relies on that. Texts are masked before they are
kept anywhere (:mod:`wharfinger.runtime.recording.masking`).

Synchronous: no trio, no I/O. The log (`Log`) takes bytes and decides when a file begins.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, Protocol, TypeAlias

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.redaction.redaction_text import TextRedactor
from wharfinger.queue import events as queue_events
from wharfinger.queue.state import QueueState
from wharfinger.runtime.lifecycle import journal_machine, lifecycle_machine
from wharfinger.runtime.package import state as package_state
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import Effect
from wharfinger.runtime.package.events import Event
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
)
from wharfinger.runtime.recording.masking import Derived, Masking, Renewals
from wharfinger.runtime.recording.package_form import marked_objects
from wharfinger.runtime.recording.package_machine import PACKAGE_CODEC, PackageCodec, surroundings
from wharfinger.runtime.recording.record import Lines, StateRecord, Why, encoded, state_line
from wharfinger.runtime.recording.ring import Part, Rings, Step, package_step_of
from wharfinger.runtime.scheduler import events as scheduler_events
from wharfinger.runtime.scheduler.state import Graph

log = logging.getLogger(__name__)

MOST_ASIDE: Final = 128
"""The most steps that are put aside; more are kept and encoded at once. They may keep old values and stopped monitors alive."""
ALL: Final = ""
"""The key of the scheduler, which has one state for all packages."""


Effects: TypeAlias = tuple[object, ...]
Decisions: TypeAlias = tuple[scheduler_events.Effect, ...]


class Log(Protocol):
    """A log on disk. ``file`` is the number of the file that the next record will be in."""

    @property
    def file(self) -> int:
        """The number of the file that the next record will be in."""
        ...

    def expect(self, drain: Callable[[], None]) -> None:
        """Call a function once before the next write, which is soon; it appends what is to be written."""
        ...

    def append(self, *records: Lines | Callable[[], bytes]) -> None:
        """Write records later, all to one file; a function is called then, in another thread. Never waits, never raises."""
        ...


@dataclass(slots=True)
class _Known:
    """The last recorded state of a machine, the file that it can be stepped in, and how often texts were renewed by then."""

    state: object
    file: int
    renewed: int


class Recorder:
    """The recorder of one daemon. ``secrets_of`` returns the known secrets of a package."""

    def __init__(
        self,
        secrets_of: Callable[[str], tuple[str, ...]],
        sink: Log | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.secrets_of = secrets_of
        self._rings = Rings(self.masking)
        self._failures = 0
        self._sink = sink
        self._now = now
        self._number = 0
        self._aside: list[tuple[Callable[[int, float], None], float]] = []
        self._lines: list[JsonValue] = []
        self._encoded: list[Lines | Callable[[], bytes]] = []
        self._known: dict[tuple[str, str], _Known] = {}
        self._maskings: dict[str, Masking] = {}
        self._renewals = Renewals()
        self._codecs: dict[str, PackageCodec] = {}

    @property
    def rings(self) -> Rings:
        """The last steps of all packages."""
        self.drain()
        return self._rings

    @property
    def records(self) -> int:
        """The number of records since the start."""
        return self._number + len(self._aside)

    @property
    def failures(self) -> int:
        """The number of records that were lost by an error of the recorder itself."""
        self.drain()
        return self._failures

    # --- observers -------------------------------------------------------------------------------------------------------

    def lifecycle(
        self,
        name: str,
        before: lifecycle_machine.Package | None,
        event: lifecycle_machine.Event,
        after: lifecycle_machine.Package | None,
        effects: tuple[lifecycle_machine.Effect, ...],
    ) -> None:
        """Record a step of a package's lifecycle. Events that are refused because there is no such package are left out."""
        if before is not None or after is not None:
            self._put_aside(partial(self._lifecycle_step, name, before, event, after, effects))

    def journal(
        self,
        name: str,
        before: journal_machine.State,
        event: journal_machine.Event,
        after: journal_machine.State,
        effects: tuple[journal_machine.Effect, ...],
    ) -> None:
        """Record a step of a package's journal."""
        if before or after:
            self._put_aside(partial(self._journal_step, name, before, event, after, effects))

    def queue(
        self,
        name: str,
        number: int,
        before: QueueState,
        event: queue_events.Event,
        after: QueueState,
        effects: tuple[queue_events.Effect, ...],
    ) -> None:
        """Record a step of one of a package's queues."""
        self._put_aside(partial(self._queue_step, name, number, before, event, after, effects))

    def scheduler(
        self,
        before: Graph,
        event: scheduler_events.Event,
        at: datetime | None,
        after: Graph,
        effects: tuple[scheduler_events.Effect, ...],
    ) -> None:
        """Record a step of the scheduler, in the records of each package that it concerns."""
        self._put_aside(partial(self._scheduler_step, before, event, at, after, effects))

    def package(
        self,
        before: package_state.Package,
        event: Event,
        around: Around,
        after: package_state.Package,
        effects: tuple[Effect, ...],
    ) -> None:
        """Record a step of a package: an event with its surroundings."""
        at = (
            surroundings(before, around) if self._sink is not None else None
        )  # now, because scopes may be cancelled later
        self._put_aside(partial(self._package_step, before, event, at, after, effects))

    def drain(self) -> None:
        """Keep the steps that were put aside, and pass them to the log."""
        steps, self._aside = self._aside, []
        for record, moment in steps:
            self._number += 1
            try:
                record(self._number, moment)
            except Exception:  # noqa: BLE001 - logged there
                self._failed(1)
        if self._sink is None or not (self._lines or self._encoded):
            return
        records = self._encoded
        try:
            self._encode()
            self._encoded = []
            self._sink.append(*records)
        except Exception:  # noqa: BLE001 - logged there
            self._lines, self._encoded = [], []
            self._failed(len(steps))

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _put_aside(self, record: Callable[[int, float], None]) -> None:
        self._aside.append((record, self._now()))
        if len(self._aside) >= MOST_ASIDE:
            self.drain()
        elif self._sink is not None and len(self._aside) == 1:
            self._sink.expect(self.drain)

    def _failed(self, records: int) -> None:
        """Count records that an error of the recorder has lost. The machines do not notice it."""
        if not self._failures:
            log.exception("the recorder failed; the record is lost, and further ones are only counted")
        self._failures += records
        self._known.clear()  # what follows is recorded from whole states

    def _encode(self) -> None:
        """Encode the records that are still objects."""
        lines, self._lines = self._lines, []
        if lines:
            self._encoded.append(Lines(as_lines(lines), len(lines)))

    def _lifecycle_step(
        self,
        name: str,
        before: lifecycle_machine.Package | None,
        event: lifecycle_machine.Event,
        after: lifecycle_machine.Package | None,
        effects: Effects,
        number: int,
        moment: float,
    ) -> None:
        try:
            self._step(Step(number, moment, LIFECYCLE, name, before, event, after, effects), name)
        finally:
            if after is None:
                self._known.pop((LIFECYCLE.name, name), None)
                self._known.pop((PACKAGE.name, name), None)
                self._codecs.pop(name, None)
                for dropped in self._rings.gone(name):
                    self._maskings.pop(dropped, None)

    def _journal_step(
        self,
        name: str,
        before: journal_machine.State,
        event: journal_machine.Event,
        after: journal_machine.State,
        effects: Effects,
        number: int,
        moment: float,
    ) -> None:
        self._step(Step(number, moment, JOURNAL, name, before, event, after, effects), name)
        if not after:
            self._known.pop((JOURNAL.name, name), None)

    def _queue_step(
        self,
        name: str,
        queue: int,
        before: QueueState,
        event: queue_events.Event,
        after: QueueState,
        effects: Effects,
        number: int,
        moment: float,
    ) -> None:
        key = f"{name}#{queue}"
        self._step(Step(number, moment, QUEUE, key, before, event, after, effects), name)
        if not after.lanes:
            self._known.pop((QUEUE.name, key), None)

    def _step(self, step: Step, name: str) -> None:
        self._rings.add(name, step)
        if self._sink is not None:
            masking = self.masking(name)
            self._write(step, None, step.machine.codec, masking, masking)

    def _package_step(
        self,
        before: package_state.Package,
        event: Event,
        at: JsonValue,
        after: package_state.Package,
        effects: tuple[Effect, ...],
        number: int,
        moment: float,
    ) -> None:
        name = after.id.name
        self._rings.add(name, package_step_of(number, moment, before, event, after, effects))
        if self._sink is None:
            return
        codec = self._codecs.get(name)
        if codec is None:
            codec = self._codecs[name] = PACKAGE_CODEC.writer()
        codec.status = before.status
        masking = self.masking(name)
        step = Step(number, moment, PACKAGE, name, before, event, after, effects)
        self._write(step, at, codec, masking, Derived(masking))
        if codec.marks is not None and codec.marks.has_many:
            codec.marks.forget(marked_objects(after))

    def _write(self, step: Step, at: JsonValue, codec: Codec, masking: Masking, text: Masking | Derived) -> None:
        """Pass a step to the log; with the whole state before it if it does not continue the last record."""
        number, moment, machine, key, before, event, after, effects = step
        file = self._sink.file if self._sink is not None else 0
        while True:
            renewed = masking.renewed
            why = self._why(machine, key, before, file, renewed)
            whole: JsonValue = None
            if why is not None:
                if isinstance(codec, PackageCodec) and codec.marks is not None:
                    codec.marks.begin()
                whole = codec.encode(before, masking)
            form = codec.quick(event, text, masking.clean)
            derived, clean = _derived(text, masking)
            state = machine.changes(codec, before, after, _only(derived))
            given: JsonValue = [codec.quick(effect, derived, clean) for effect in effects] if effects else []
            if masking.renewed == renewed:
                break
        if why is not None:
            self._lines.append(state_line(StateRecord(number, moment, machine.name, key, whole, why)))
        self._lines.append(["e", number, moment, machine.name, key, form, at, state, given])
        self._know(machine, key, after, file, renewed)

    def _scheduler_step(
        self,
        before: Graph,
        event: scheduler_events.Event,
        at: datetime | None,
        after: Graph,
        effects: Decisions,
        number: int,
        moment: float,
    ) -> None:
        subject = _subject(event)
        stamp = None if at is None else at.isoformat()
        names = {*(after.touched if before is not after else ()), *(effect.name for effect in effects)}
        for name in sorted(names | ({subject} if subject else set())):
            entry = after.entries.get(name)
            order = 0 if entry is None else after.topology.effective[name]
            own = tuple(effect for effect in effects if effect.name == name)
            self._rings.add(name, Part(number, moment, event, subject, stamp, entry, order, own))
        if self._sink is None:
            return
        codec, file = SCHEDULER.codec, self._sink.file
        while True:
            renewed = self._renewals.count
            masking = self.masking(subject)
            form = codec.quick(event, masking, masking.clean)
            state = SCHEDULER.changes(codec, before, after, self.masking)
            given: JsonValue = [
                codec.quick(effect, own, own.clean) for effect in effects for own in (self.masking(effect.name),)
            ]
            if self._why(SCHEDULER, ALL, before, file, renewed) is not None:
                for name, entry in before.entries.items():  # texts that were forgotten get their masked form again
                    entry_form(codec, entry, 0, self.masking(name))
            if self._renewals.count == renewed:
                break
        why = self._why(SCHEDULER, ALL, before, file, renewed)
        if why is not None:
            self._encode()
            self._encoded.append(partial(self._whole_graph, number, moment, before, why))
        self._lines.append(["e", number, moment, SCHEDULER.name, ALL, form, stamp, state, given])
        self._know(SCHEDULER, ALL, after, file, renewed)

    def _whole_graph(self, number: int, moment: float, graph: Graph, why: Why) -> bytes:
        """Return the record of a scheduler's whole state. It is called in another thread, because it may take a second."""
        texts: dict[str, str] = {}
        for masking in tuple(self._maskings.values()):
            texts |= {text: masked for text, masked in masking.texts().items() if masked != text or text not in texts}
        masked = TextRedactor()
        form = SCHEDULER.codec.encode(graph, lambda text: texts[text] if text in texts else masked.redact(text))
        return encoded(StateRecord(number, moment, SCHEDULER.name, ALL, form, why))

    def _why(self, machine: Machine, key: str, before: object, file: int, renewed: int) -> Why | None:
        """Return the reason to record a whole state; None if the state continues from the last record."""
        known = self._known.get((machine.name, key))
        if known is None:
            return Why.BEGINS
        if known.state is not before and not (machine is LIFECYCLE and known.state == before):
            return Why.REPLACED if machine is PACKAGE else Why.UNEXPLAINED
        if known.renewed != renewed:
            return Why.RENEWED
        return Why.CONTINUES if known.file != file else None

    def _know(self, machine: Machine, key: str, after: object, file: int, renewed: int) -> None:
        known = self._known.get((machine.name, key))
        if known is None:
            self._known[machine.name, key] = _Known(after, file, renewed)
        else:
            known.state, known.file, known.renewed = after, file, renewed

    def masking(self, name: str) -> Masking:
        """Return the masking of a package's texts."""
        masking = self._maskings.get(name)
        if masking is None:
            masking = self._maskings[name] = Masking(partial(self.secrets_of, name), self._renewals)
        return masking


def _only(text: Text) -> TextOf:
    """Return the masking of a machine whose texts are all of one package."""
    return lambda _: text


def _derived(text: Masking | Derived, masking: Masking) -> tuple[Text, Clean]:
    """Return the masking of the texts that a machine made of an event's, and the texts that need no mask then."""
    if isinstance(text, Derived) and text.masked:
        return text.derived, set()
    return masking, masking.clean


def _subject(event: scheduler_events.Event) -> str:
    """Return the package that an event is about; empty if it is about all."""
    match event:
        case scheduler_events.NodeAdded(node):
            return node.name
        case scheduler_events.FactsChanged() | scheduler_events.Paused() | scheduler_events.Resumed():
            return ""
        case _:
            return event.name
