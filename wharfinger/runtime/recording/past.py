"""The past state of one package, computed from its records.

A record contains only the changes of a step. `Past.fold` applies one record after the other, so the state at any time is the
result of all records until then. A Past has everything that an explanation needs: the status, the scheduler's entry and node,
and the lanes of the queue. In the daemon, `Ring.base` makes the state before the oldest kept step with `Past.update`, so that
older steps can be dropped (:mod:`~wharfinger.runtime.recording.ring`).
"""

from dataclasses import dataclass, field, replace
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.queue.events import Enqueued, Failed
from wharfinger.runtime.recording.machines import JOURNAL, LIFECYCLE, MACHINES, PACKAGE, QUEUE, SCHEDULER
from wharfinger.runtime.recording.record import EventRecord, StateRecord
from wharfinger.runtime.recording.status_form import status_after
from wharfinger.runtime.scheduler.events import NodeAdded
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.status.package_status import PackageStatus

MENTION: Final = "mention"
"""The tag of the recorded form of another package's event that concerned this package. The form also has the tag of that event,
and the name of the other package.
"""
_OF_PHASE: Final = (("files", ("definition",)), ("node", ("joined", "refused")))
UNCHANGED: Final = "unchanged"
"""The text in place of the scheduler's state, in a record of a step that mentions a package but did not change the package's
node.
"""


@dataclass(slots=True)
class Past:
    """The state of one package at some time, in the compact forms of its state machines. Fields are None or empty if their
    state is not known.
    """

    time: float = 0.0
    lifecycle: JsonValue = None
    entry: JsonValue = None
    node: Node | None = None
    """The node in the last NodeAdded event about the package; None if the package has no node."""
    status: PackageStatus | None = None
    phase: dict[str, bool] = field(default_factory=dict)
    """The facts that determine the phase of the package: whether a ``definition`` was read, whether a definition has
    ``joined`` the scheduler, and whether the last definition was ``refused``.
    """
    lanes: JsonObject = field(default_factory=dict)
    tasks: JsonObject = field(default_factory=dict)
    """The tasks that wait in each lane, in order. Each task is a pair of its number and its name."""
    retries: dict[str, float] = field(default_factory=dict)
    """The times at which lanes that back off run again, in seconds since 1970."""
    steps: JsonObject = field(default_factory=dict)
    """The operations in the journal."""

    def copy(self) -> "Past":
        """Return a copy that does not change when later records are applied to this object."""
        return replace(
            self,
            phase=dict(self.phase),
            lanes=dict(self.lanes),
            tasks=dict(self.tasks),
            retries=dict(self.retries),
            steps=dict(self.steps),
        )

    def fold(self, record: EventRecord | StateRecord) -> None:
        """Apply a record, which must follow all records that were applied before. Raises CanonicalError if the record cannot
        be read.
        """
        status = None
        if record.machine == PACKAGE.name:
            status = self._status_after(record)
        if isinstance(record, EventRecord):
            codec = MACHINES[record.machine].codec if record.machine in MACHINES else None
            read = codec is not None and record.machine in (QUEUE.name, SCHEDULER.name) and not is_mention(record.event)
            event = codec.decode(record.event) if codec is not None and read else None
            self.update(record.machine, record.time, event, record.state, status)
        elif status is not None:
            self.update(record.machine, record.time, None, record.state, status)

    def update(
        self, machine: str, time: float, event: object, state: JsonValue, status: PackageStatus | None = None
    ) -> None:
        """Apply a step: its event, and the parts of the state that it changed. ``status`` is the package's status after a step
        of the state machine ``package``.
        """
        self.time = time
        if machine == PACKAGE.name:
            self.status = status
            self._phase_changed(state)
        elif machine == LIFECYCLE.name:
            self._lifecycle_changed(state)
        elif machine == SCHEDULER.name:
            self._scheduler_changed(event, state)
        elif machine == QUEUE.name:
            self._queue_changed(time, event, state)
        elif machine == JOURNAL.name:
            self._journal_changed(state)

    def _status_after(self, record: EventRecord | StateRecord) -> PackageStatus | None:
        match record.state:
            case {"status": changes}:
                if isinstance(record, StateRecord):
                    return status_after(None, changes)
                return self.status if self.status is None else status_after(self.status, changes)
            case _:
                return self.status

    def _phase_changed(self, state: JsonValue) -> None:
        for part, names in _OF_PHASE:
            match state:
                case {**parts} if isinstance(fields := parts.get(part), dict):
                    self.phase |= {name: fields[name] is not None for name in names if name in fields}
                case _:
                    pass

    def _lifecycle_changed(self, state: JsonValue) -> None:
        match self.lifecycle, state:
            case [*_, desired], [scopes, applying, leaving, None]:
                self.lifecycle = [scopes, applying, leaving, desired]
            case _:
                self.lifecycle = state
        if state is None:  # the package is gone, so it has no status any more
            self.status = None

    def _scheduler_changed(self, event: object, state: JsonValue) -> None:
        if isinstance(event, NodeAdded):
            self.node = event.node
        if state != UNCHANGED:
            self.entry = state
        if state is None:
            self.node = None

    def _queue_changed(self, time: float, event: object, state: JsonValue) -> None:
        if not isinstance(state, list) or not isinstance(state[2], dict):
            return
        lanes = state[2]
        if isinstance(event, Enqueued) and event.lane in lanes:  # otherwise the task was not accepted
            waiting = self.tasks.setdefault(event.lane, [])
            if isinstance(waiting, list):
                waiting.append([event.task, event.name])
        for lane, form in lanes.items():
            self.retries.pop(lane, None)
            if not isinstance(form, list):
                self.lanes.pop(lane, None)
                self.tasks.pop(lane, None)
                continue
            self.lanes[lane] = form
            left = form[-1]
            if isinstance(left, list) and (known := self.tasks.get(lane)):
                self.tasks[lane] = [each for each in _list(known) if _list(each)[0] in left]
            if isinstance(event, Failed) and form[0] == "BackingOff":
                match form[3]:
                    case [float() | int() as until]:
                        self.retries[lane] = time + until - event.at
                    case _:
                        pass

    def _journal_changed(self, state: JsonValue) -> None:
        if not isinstance(state, dict):
            return
        for operation, form in state.items():
            if form is None:
                self.steps.pop(operation, None)
                continue
            fingerprint, earlier, changed = _list(form)
            steps: JsonObject = {}
            if isinstance(known := self.steps.get(operation), list) and isinstance(known[2], dict):
                steps = known[2]
            self.steps[operation] = [fingerprint, earlier, steps | changed if isinstance(changed, dict) else steps]


def is_mention(event: JsonValue) -> bool:
    """Return whether this event, in the record of one package, is only a mention of an event about another package."""
    return isinstance(event, list) and event[:1] == [MENTION]


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
