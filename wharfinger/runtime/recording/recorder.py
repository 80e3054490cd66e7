"""The recorder: it observes the shells of all machines, keeps the last records of each package, and passes all to a log.

Each observer is called after its machine has stepped and before the effects are performed, so the records are in the order of
the steps. An observer only puts the step aside, which takes a microsecond: states, events and effects never change. `drain` keeps
and encodes the steps later, many at once. An error of the recorder is logged once and counted, and its record is lost.

Texts are masked before they are kept anywhere (:mod:`wharfinger.runtime.recording.masking`). Records are made by the writer
(:mod:`wharfinger.runtime.recording.record_writer`).

Synchronous: no trio, no I/O.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonValue
from wharfinger.queue import events as queue_events
from wharfinger.queue.state import QueueState
from wharfinger.runtime.lifecycle import journal_machine, lifecycle_machine
from wharfinger.runtime.package import state as package_state
from wharfinger.runtime.package.around import Around
from wharfinger.runtime.package.effects import Effect
from wharfinger.runtime.package.events import Event
from wharfinger.runtime.recording.machines import (
    JOURNAL,
    LIFECYCLE,
    PACKAGE,
    QUEUE,
)
from wharfinger.runtime.recording.masking import Masking, Renewals
from wharfinger.runtime.recording.package_machine import surroundings
from wharfinger.runtime.recording.record_writer import Decisions, Log, RecordWriter
from wharfinger.runtime.recording.ring import Part, Rings, Step, package_step_of
from wharfinger.runtime.scheduler import events as scheduler_events
from wharfinger.runtime.scheduler.state import Graph

log = logging.getLogger(__name__)

MOST_ASIDE: Final = 128
"""The most steps that are put aside. They may keep old values and stopped monitors alive."""
MOST_ENCODED: Final = 512
"""The same limit if there is a log, which takes the steps every moment. If more are put aside, they are encoded at once, which
takes some milliseconds.
"""

Effects: TypeAlias = tuple[object, ...]


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
        self._maskings: dict[str, Masking] = {}
        self._renewals = Renewals()
        self._writer = None if sink is None else RecordWriter(sink, self.masking, self._maskings, self._renewals)

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
        """Record a step of a package's lifecycle. Events that are refused because the package is not known are left out."""
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
        # Now, because scopes may be cancelled later.
        at = surroundings(before, around) if self._writer is not None else None
        self._put_aside(partial(self._package_step, before, event, at, after, effects))

    def drain(self) -> None:
        """Keep the steps that were put aside, and pass them to the log."""
        steps, self._aside = self._aside, []
        if self._writer is not None:
            self._writer.begin()
        for record, moment in steps:
            self._number += 1
            try:
                record(self._number, moment)
            except Exception:  # noqa: BLE001 - logged there
                self._failed(1)
        if self._writer is not None:
            try:
                lost = self._writer.flush()
            except Exception:  # noqa: BLE001 - logged there
                self._failed(len(steps))
            else:
                if lost:
                    self._failed(lost)

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _put_aside(self, record: Callable[[int, float], None]) -> None:
        self._aside.append((record, self._now()))
        if len(self._aside) >= (MOST_ASIDE if self._sink is None else MOST_ENCODED):
            self.drain()
        elif self._sink is not None and len(self._aside) == 1:
            self._sink.expect(self.drain)

    def _failed(self, records: int) -> None:
        """Count records that an error of the recorder has lost. The machines do not notice it."""
        if not self._failures:
            log.exception("the recorder failed; the record is lost, and further lost records are only counted")
        self._failures += records
        if self._writer is not None:
            self._writer.forget_all()  # what follows is recorded from whole states

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
            self._step(
                Step(number, moment, LIFECYCLE, name, before, event, after, effects), name, is_over=after is None
            )
        finally:
            if after is None:
                if self._writer is not None:
                    self._writer.over(PACKAGE, name)
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
        self._step(Step(number, moment, JOURNAL, name, before, event, after, effects), name, is_over=not after)

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
        self._step(Step(number, moment, QUEUE, key, before, event, after, effects), name, is_over=not after.lanes)

    def _step(self, step: Step, name: str, *, is_over: bool) -> None:
        self._rings.add(name, step)
        if self._writer is not None:
            self._writer.add(step, name)
            if is_over:
                self._writer.over(step.machine, step.key)

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
        self._rings.add(name, package_step_of(name, number, moment, before, event, after, effects))
        if self._writer is not None:
            self._writer.add(Step(number, moment, PACKAGE, name, before, event, after, effects), name, at)

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
        if self._writer is not None:
            self._writer.add_decision(number, moment, before, event, subject, stamp, after, effects)

    def masking(self, name: str) -> Masking:
        """Return the masking of a package's texts."""
        masking = self._maskings.get(name)
        if masking is None:
            masking = self._maskings[name] = Masking(partial(self.secrets_of, name), self._renewals)
        return masking


def _subject(event: scheduler_events.Event) -> str:
    """Return the package that an event is about; empty if it is about all packages."""
    match event:
        case scheduler_events.NodeAdded(node):
            return node.name
        case scheduler_events.FactsChanged() | scheduler_events.Paused() | scheduler_events.Resumed():
            return ""
        case _:
            return event.name
