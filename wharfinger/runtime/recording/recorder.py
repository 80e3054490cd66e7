"""The recorder: it observes the steps of all state machines, keeps the last records of each package, and passes all records
to a log.

For each state machine, the recorder has an observer: a method that is called after each step of the state machine, before the
effects are carried out. So the records are in the order of the steps. An observer only stores references to the step's states,
event and effects, which are immutable; this takes a microsecond. `drain` keeps and encodes the stored steps later, many steps
together. If the recorder itself fails, the record is lost. Only the first error is logged; lost records are counted.

Texts are masked before they are kept anywhere (:mod:`wharfinger.runtime.recording.masking`). Records are made by the writer
(:mod:`wharfinger.runtime.recording.record_writer`).

Synchronous: no trio, no I/O.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

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
from wharfinger.runtime.recording.record_writer import Log, RecordWriter
from wharfinger.runtime.recording.ring import Decision, Part, Rings, Step, package_step_of
from wharfinger.runtime.scheduler import events as scheduler_events
from wharfinger.runtime.scheduler.state import Graph

log = logging.getLogger(__name__)

MOST_ASIDE: Final = 128
"""The limit on the number of steps that are stored for `drain`. There is a limit because stored steps may keep old values and
stopped monitors in memory.
"""
MOST_ENCODED: Final = 512
"""The limit on the number of steps that are stored until they are encoded. It applies if there is a log, which calls `drain`
before each write. If the limit is reached, the steps are encoded immediately, which takes some milliseconds.
"""


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
        self._aside: list[Step | Decision] = []
        self._most_aside = MOST_ASIDE if sink is None else MOST_ENCODED
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
        return self._number

    @property
    def failures(self) -> int:
        """The number of records that were lost because the recorder itself failed."""
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
        """Record a step of a package's lifecycle. Events that are refused because the package is not known are not recorded."""
        if before is not None or after is not None:
            self._number += 1
            self._put_aside(Step(self._number, self._now(), LIFECYCLE, name, name, before, event, after, effects))

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
            self._number += 1
            self._put_aside(Step(self._number, self._now(), JOURNAL, name, name, before, event, after, effects))

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
        self._number += 1
        key = f"{name}#{number}"
        self._put_aside(Step(self._number, self._now(), QUEUE, name, key, before, event, after, effects))

    def scheduler(
        self,
        before: Graph,
        event: scheduler_events.Event,
        at: datetime | None,
        after: Graph,
        effects: tuple[scheduler_events.Effect, ...],
    ) -> None:
        """Record a step of the scheduler in the records of each package that the step concerns."""
        self._number += 1
        self._put_aside(Decision(self._number, self._now(), before, event, at, after, effects))

    def package(
        self,
        before: package_state.Package,
        event: Event,
        around: Around,
        after: package_state.Package,
        effects: tuple[Effect, ...],
    ) -> None:
        """Record a step of a package: the event, and the data outside of the package that the step reads (``around``)."""
        # The surroundings are recorded now, because scopes may be cancelled later.
        at = surroundings(before, around) if self._writer is not None else None
        self._number += 1
        name = after.id.name
        self._put_aside(Step(self._number, self._now(), PACKAGE, name, name, before, event, after, effects, at))

    def drain(self) -> None:
        """Process the steps that were put aside: keep them in memory, and pass them to the log."""
        steps, self._aside = self._aside, []
        self._renewals.trim()
        if self._writer is not None:
            self._writer.begin()
        for step in steps:
            try:
                if type(step) is Step:
                    self._keep(step)
                elif type(step) is Decision:
                    self._keep_decision(step)
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

    def end(self) -> None:
        """Write the states that are still missing in the log. Must be called once, when the state machines have ended."""
        if self._writer is not None:
            self.drain()
            try:
                self._writer.end(self._number, self._now())
            except Exception:  # noqa: BLE001 - logged there
                self._failed(1)
            self.drain()

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _put_aside(self, step: Step | Decision) -> None:
        self._aside.append(step)
        if len(self._aside) >= self._most_aside:
            self.drain()
        elif self._sink is not None and len(self._aside) == 1:
            self._sink.expect(self.drain)

    def _failed(self, records: int) -> None:
        """Count records that were lost because the recorder failed, and log the first failure."""
        if not self._failures:
            log.exception("a bug in the recorder: a record is lost; further lost records are only counted")
        self._failures += records
        if self._writer is not None:
            self._writer.forget_all()  # the next records have whole states again

    def _keep(self, step: Step) -> None:
        machine, writer = step.machine, self._writer
        self._rings.add(step.package, package_step_of(step) if machine is PACKAGE else step)
        try:
            if writer is not None:
                writer.add(step)
        finally:
            if machine is LIFECYCLE and step.after is None:
                self._forget(step.package)

    def _forget(self, name: str) -> None:
        """Forget a package that is gone, but keep its last steps for a while."""
        if self._writer is not None:
            self._writer.over(PACKAGE, name)
            self._writer.over(JOURNAL, name)
        for dropped in self._rings.gone(name):
            self._maskings.pop(dropped, None)

    def _keep_decision(self, step: Decision) -> None:
        event, after, effects = step.event, step.after, step.effects
        subject = _subject(event)
        touched = after.touched if step.before is not after else ()
        for name in _concerned(subject, touched, effects):
            entry = after.entries.get(name)
            order = 0 if entry is None else after.topology.effective[name]
            own = tuple([effect for effect in effects if effect.name == name]) if effects else effects
            self._rings.add(name, Part(step.number, step.time, event, subject, step.at, entry, order, own))
        if self._writer is not None:
            self._writer.add_decision(step, subject)

    def masking(self, name: str) -> Masking:
        """Return the object that masks the secrets in the texts of a package."""
        masking = self._maskings.get(name)
        if masking is None:
            masking = self._maskings[name] = Masking(partial(self.secrets_of, name), self._renewals)
        return masking


def _concerned(
    subject: str, touched: tuple[str, ...], effects: tuple[scheduler_events.Effect, ...]
) -> tuple[str, ...] | list[str]:
    """Return the packages that a step of the scheduler concerns: the package that the event is about, the packages whose entries
    the step changed, and the packages that the effects are about.
    """
    if not touched or (len(touched) == 1 and touched[0] == subject):
        for effect in effects:
            if effect.name != subject:
                break
        else:
            return (subject,) if subject else ()
    names = {*touched, *(effect.name for effect in effects)}
    if subject:
        names.add(subject)
    return sorted(names)


def _subject(event: scheduler_events.Event) -> str:
    """Return the package that an event is about; empty if the event is about all packages."""
    match event:
        case scheduler_events.NodeAdded(node):
            return node.name
        case scheduler_events.FactsChanged() | scheduler_events.Paused() | scheduler_events.Resumed():
            return ""
        case _:
            return event.name
