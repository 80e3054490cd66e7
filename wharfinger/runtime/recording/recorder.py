"""The recorder: it observes the shells of all machines, keeps the last records of each package, and passes all to a log.

Each observer is called after its machine has stepped and before the effects are performed, so the records are in the order of
the steps. An observer changes nothing and never raises: an error here is logged once, counted, and costs that record.

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
from typing import Final, NamedTuple, Protocol, TypeAlias

from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.redaction.redaction_text import TextRedactor
from wharfinger.queue import events as queue_events
from wharfinger.queue.state import QueueState
from wharfinger.runtime.lifecycle import journal_machine, lifecycle_machine
from wharfinger.runtime.package import state as package_state
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import Effect
from wharfinger.runtime.package.events import Event
from wharfinger.runtime.recording.canonical import Codec, Text, as_bytes
from wharfinger.runtime.recording.machines import JOURNAL, LIFECYCLE, PACKAGE, QUEUE, SCHEDULER, Machine, entry_form
from wharfinger.runtime.recording.masking import Derived, Masking, Renewals
from wharfinger.runtime.recording.package_form import marked_objects
from wharfinger.runtime.recording.package_machine import PACKAGE_CODEC, PackageCodec, surroundings
from wharfinger.runtime.recording.record import StateRecord, Why, encoded
from wharfinger.runtime.recording.ring import Part, Rings, Step, package_step_of
from wharfinger.runtime.scheduler import events as scheduler_events
from wharfinger.runtime.scheduler.state import Graph

log = logging.getLogger(__name__)

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

    def append(self, *records: bytes | Callable[[], bytes]) -> None:
        """Write records later, all to one file; a function is called then, in another thread. Never waits, never raises."""
        ...


@dataclass(slots=True)
class _Known:
    """The last recorded state of a machine, the file that it can be stepped in, and how often texts were renewed by then."""

    state: object
    file: int
    renewed: int


class _Written(NamedTuple):
    """A step that is written to the log."""

    number: int
    time: float
    machine: Machine
    key: str
    before: object
    event: object
    at: JsonValue
    after: object
    effects: Effects


class Recorder:
    """The recorder of one daemon. ``secrets_of`` returns the known secrets of a package."""

    def __init__(
        self,
        secrets_of: Callable[[str], tuple[str, ...]],
        sink: Log | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.rings = Rings(self.masking)
        self.secrets_of = secrets_of
        self.failures = 0
        """The number of records that were lost by an error of the recorder itself."""
        self._sink = sink
        self._now = now
        self._number = 0
        self._known: dict[tuple[str, str], _Known] = {}
        self._maskings: dict[str, Masking] = {}
        self._renewals = Renewals()
        self._codecs: dict[str, PackageCodec] = {}

    @property
    def records(self) -> int:
        """The number of records since the start."""
        return self._number

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
        if before is None and after is None:
            return
        self._guarded(lambda: self._step(LIFECYCLE, name, name, before, event, after, effects))
        if after is None:
            self._known.pop((LIFECYCLE.name, name), None)
            self._known.pop((PACKAGE.name, name), None)
            self._codecs.pop(name, None)
            for dropped in self.rings.gone(name):
                self._maskings.pop(dropped, None)

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
            self._guarded(lambda: self._step(JOURNAL, name, name, before, event, after, effects))
            if not after:
                self._known.pop((JOURNAL.name, name), None)

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
        key = f"{name}#{number}"
        self._guarded(lambda: self._step(QUEUE, key, name, before, event, after, effects))
        if not after.lanes:
            self._known.pop((QUEUE.name, key), None)

    def scheduler(
        self,
        before: Graph,
        event: scheduler_events.Event,
        at: datetime | None,
        after: Graph,
        effects: tuple[scheduler_events.Effect, ...],
    ) -> None:
        """Record a step of the scheduler, in the records of each package that it concerns."""
        self._guarded(lambda: self._scheduler_step(before, event, at, after, effects))

    def package(
        self,
        before: package_state.Package,
        event: Event,
        around: Around,
        after: package_state.Package,
        effects: tuple[Effect, ...],
    ) -> None:
        """Record a step of a package: an event with its surroundings."""
        self._guarded(lambda: self._package_step(before, event, around, after, effects))

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _guarded(self, record: Callable[[], None]) -> None:
        """Record, and keep an error of the recorder away from the machine that is observed."""
        try:
            record()
        except Exception:
            self.failures += 1
            self._known.clear()  # what follows is recorded from whole states
            if self.failures == 1:
                log.exception("the recorder failed; the record is lost, and further ones are only counted")

    def _step(
        self, machine: Machine, key: str, name: str, before: object, event: object, after: object, effects: Effects
    ) -> None:
        moment, number = self._now(), self._next()
        self.rings.add(name, Step(number, moment, machine, key, before, event, after, effects))
        if self._sink is not None:
            masking = self.masking(name)
            self._write(
                _Written(number, moment, machine, key, before, event, None, after, effects),
                machine.codec,
                masking,
                masking,
            )

    def _package_step(
        self,
        before: package_state.Package,
        event: Event,
        around: Around,
        after: package_state.Package,
        effects: tuple[Effect, ...],
    ) -> None:
        moment, number, name = self._now(), self._next(), after.id.name
        self.rings.add(name, package_step_of(number, moment, before, event, after, effects))
        if self._sink is None:
            return
        codec = self._codecs.get(name)
        if codec is None:
            codec = self._codecs[name] = PACKAGE_CODEC.writer()
        codec.status = before.status
        text = Derived(self.masking(name))
        at = surroundings(before, around)
        self._write(
            _Written(number, moment, PACKAGE, name, before, event, at, after, effects), codec, text, text.derived
        )
        if codec.marks is not None and codec.marks.has_many:
            codec.marks.forget(marked_objects(after))

    def _write(self, step: "_Written", codec: Codec, text: Text, derived: Text) -> None:
        """Pass a step to the log; with the whole state before it if it does not continue the last record."""
        sink, machine, key, before = self._sink, step.machine, step.key, step.before
        if sink is None:
            return
        masking = self.masking(key.partition("#")[0])
        while True:
            renewed = masking.renewed
            why = self._why(machine, key, before, renewed)
            whole: JsonValue = None
            if why is not None:
                if isinstance(codec, PackageCodec) and codec.marks is not None:
                    codec.marks.begin()
                whole = codec.encode(before, text)
            form = codec.quick(step.event, text)
            state = machine.changes(codec, before, step.after, lambda _: derived)
            given: JsonValue = [codec.quick(effect, derived) for effect in step.effects] if step.effects else []
            if masking.renewed == renewed:
                break
        data = as_bytes(["e", step.number, step.time, machine.name, key, form, step.at, state, given])
        file = sink.file
        if why is None:
            sink.append(data)
        else:
            sink.append(encoded(StateRecord(step.number, step.time, machine.name, key, whole, why)), data)
        self._known[machine.name, key] = _Known(step.after, file, renewed)

    def _scheduler_step(
        self, before: Graph, event: scheduler_events.Event, at: datetime | None, after: Graph, effects: Decisions
    ) -> None:
        moment, number, subject = self._now(), self._next(), _subject(event)
        stamp = None if at is None else at.isoformat()
        names = {*(after.touched if before is not after else ()), *(effect.name for effect in effects)}
        for name in sorted(names | ({subject} if subject else set())):
            entry = after.entries.get(name)
            order = 0 if entry is None else after.topology.effective[name]
            own = tuple(effect for effect in effects if effect.name == name)
            self.rings.add(name, Part(number, moment, event, subject, stamp, entry, order, own))
        if self._sink is None:
            return
        codec = SCHEDULER.codec
        while True:
            renewed = self._renewals.count
            form = codec.quick(event, self.masking(subject))
            state = SCHEDULER.changes(codec, before, after, self.masking)
            given: JsonValue = [codec.quick(effect, self.masking(effect.name)) for effect in effects]
            if self._why(SCHEDULER, ALL, before, renewed) is not None:
                for name, entry in before.entries.items():  # texts that were forgotten get their masked form again
                    entry_form(codec, entry, 0, self.masking(name))
            if self._renewals.count == renewed:
                break
        why, file = self._why(SCHEDULER, ALL, before, renewed), self._sink.file
        whole = () if why is None else (partial(self._whole_graph, number, moment, before, why),)
        step = as_bytes(["e", number, moment, SCHEDULER.name, ALL, form, stamp, state, given])
        self._sink.append(*whole, step)
        self._known[SCHEDULER.name, ALL] = _Known(after, file, renewed)

    def _whole_graph(self, number: int, moment: float, graph: Graph, why: Why) -> bytes:
        """Return the record of a scheduler's whole state. It is called in another thread, because it may take a second."""
        texts: dict[str, str] = {}
        for masking in tuple(self._maskings.values()):
            texts |= {text: masked for text, masked in masking.texts().items() if masked != text or text not in texts}
        masked = TextRedactor()
        form = SCHEDULER.codec.encode(graph, lambda text: texts[text] if text in texts else masked.redact(text))
        return encoded(StateRecord(number, moment, SCHEDULER.name, ALL, form, why))

    def _why(self, machine: Machine, key: str, before: object, renewed: int) -> Why | None:
        """Return the reason to record a whole state; None if the state continues from the last record."""
        known = self._known.get((machine.name, key))
        if known is None:
            return Why.BEGINS
        if known.state is not before and not (machine is LIFECYCLE and known.state == before):
            return Why.REPLACED if machine is PACKAGE else Why.UNEXPLAINED
        if known.renewed != renewed:
            return Why.RENEWED
        return Why.CONTINUES if self._sink is not None and known.file != self._sink.file else None

    def masking(self, name: str) -> Masking:
        """Return the masking of a package's texts."""
        masking = self._maskings.get(name)
        if masking is None:
            masking = self._maskings[name] = Masking(partial(self.secrets_of, name), self._renewals)
        return masking

    def _next(self) -> int:
        self._number += 1
        return self._number


def _subject(event: scheduler_events.Event) -> str:
    """Return the package that an event is about; empty if it is about all."""
    match event:
        case scheduler_events.NodeAdded(node):
            return node.name
        case scheduler_events.FactsChanged() | scheduler_events.Paused() | scheduler_events.Resumed():
            return ""
        case _:
            return event.name
