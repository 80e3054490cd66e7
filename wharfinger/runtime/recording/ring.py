"""The last steps of each package, in memory.

A step is stored as a few references to immutable values. Records are made from the steps only on request, so the stored steps
cost the daemon almost nothing.

A package has two generations of steps. When the newer generation is full, the older one is dropped, and a new generation begins
with the last step of each state machine. So once a generation was dropped, the number of kept steps is between half of the limit
and the limit. The state before the oldest kept step is kept, too. The limit of a package depends on the number of packages, so
that all packages together have about MOST_STEPS steps. The steps of packages that are gone are kept, for at most MOST_GONE
packages.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.queue.events import Failed
from wharfinger.queue.state import BackingOff, QueueState
from wharfinger.runtime.package.effects import (
    BeginDisable,
    BeginReconciliation,
    BeginUpdate,
    BeginVote,
    GiveWay,
    RepeatVote,
    Tell,
)
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.recording.canonical import Text, normal
from wharfinger.runtime.recording.machines import (
    JOURNAL,
    LIFECYCLE,
    PACKAGE,
    QUEUE,
    SCHEDULER,
    Machine,
    entry_form,
)
from wharfinger.runtime.recording.package_machine import PACKAGE_CODEC
from wharfinger.runtime.recording.past import MENTION, Past
from wharfinger.runtime.recording.record import EventRecord, StateRecord, Why
from wharfinger.runtime.recording.status_form import status_after, status_changes
from wharfinger.runtime.scheduler.events import Effect, Event, NodeAdded
from wharfinger.runtime.scheduler.state import Entry, Graph
from wharfinger.runtime.status.package_status import PackageStatus

MOST_STEPS: Final = 20_000
MOST_OF_ONE: Final = 200
LEAST_OF_ONE: Final = 8
MOST_GONE: Final = 100

_TOLD: Final = frozenset({BeginUpdate, BeginReconciliation, BeginDisable, BeginVote, RepeatVote, Tell, GiveWay})
"""The classes of those effects that a PackageStep keeps, because they show decisions."""
_SIMPLE: Final = frozenset(kind for kind in PACKAGE_CODEC.kinds if PACKAGE_CODEC.is_simple(kind))
"""The classes of those events that a PackageStep keeps whole, because they refer to no large objects."""
_BEFORE: Final[dict[str, object]] = {LIFECYCLE.name: None, JOURNAL.name: {}, QUEUE.name: QueueState()}
"""The states of state machines before their first event."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """A step of a state machine of one package."""

    number: int
    time: float
    machine: Machine
    package: str
    key: str
    """The key of the state machine: the name of the package; for a queue, the number of the queue follows."""
    before: object
    event: object
    after: object
    effects: tuple[object, ...]
    at: object = None
    """The recorded inputs of a package's step that are not part of the package's state; None if no log is written."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """A step of the scheduler, which may concern several packages."""

    number: int
    time: float
    before: Graph
    event: Event
    at: datetime | None
    after: Graph
    effects: tuple[Effect, ...]


class Part(msgspec.Struct, frozen=True, gc=False):
    """The part of a scheduler's step that concerns one package: its entry and effective order after the step.

    ``subject`` is the package that the event is about; empty if the event is about all packages.
    """

    number: int
    time: float
    event: Event
    subject: str
    at: datetime | None
    entry: Entry | None
    order: int
    effects: tuple[object, ...]


class PackageStep(msgspec.Struct, frozen=True, gc=False):
    """A step of a package, without references to large objects: of the states, only the status and the phase are kept.

    ``event`` is only the tag of the event if the event refers to a large object.
    """

    number: int
    time: float
    key: str
    before: PackageStatus
    event: object
    after: PackageStatus
    phase: tuple[bool, bool, bool]
    """Three facts: whether a definition was read, whether the scheduler has a node that was made from a definition, and whether
    the scheduler refused the last definition.
    """
    effects: tuple[object, ...]


Kept: TypeAlias = Step | Part | PackageStep


def package_step_of(step: Step) -> PackageStep:
    """Return the form of a package's step that is kept in memory."""
    before, event, after, effects = step.before, step.event, step.after, step.effects
    if type(before) is not Package or type(after) is not Package:
        raise TypeError(f"expected a step of a package, found one of the {step.machine.name}")
    node = after.node
    phase = (after.files.definition is not None, node.joined is not None, node.refused is not None)
    if type(event) not in _SIMPLE:
        event = type(event).__name__
    if effects:
        effects = tuple([effect for effect in effects if type(effect) in _TOLD])
    return PackageStep(step.number, step.time, step.package, before.status, event, after.status, phase, effects)


@dataclass(slots=True)
class _Generation:
    base: dict[str, Kept]
    """The last step of each state machine before the first step in ``kept``."""
    kept: list[Kept] = field(default_factory=list)


@dataclass(slots=True)
class Ring:
    """The steps of one package, oldest first."""

    name: str
    dropped: int = 0
    """The number of steps that are not kept any more."""
    _older: _Generation = field(default_factory=lambda: _Generation({}))
    _newer: _Generation = field(default_factory=lambda: _Generation({}))
    newest: list[Kept] = field(init=False)
    """The newer half of the steps. New steps are appended to this list."""

    def __post_init__(self) -> None:
        self.newest = self._newer.kept

    def begin_generation(self) -> list[Kept]:
        """Drop the older half of the steps, and return the empty list for new steps. The newer half becomes the older one."""
        self.dropped += len(self._older.kept)
        self._older, self._newer = self._newer, _Generation(self.lasts)
        self.newest = self._newer.kept
        return self.newest

    @property
    def lasts(self) -> dict[str, Kept]:
        """The last step of each state machine. Queues that have ended are left out; the key "node" has the step in which the
        package's node was last offered to the scheduler.
        """
        found: dict[str, Kept | None] = {}  # None: the state machine has ended
        earlier = sorted(self._newer.base.values(), key=lambda one: one.number, reverse=True)
        for kept in chain(reversed(self._newer.kept), earlier):
            if type(kept) is PackageStep:
                if PACKAGE.name not in found:
                    found[PACKAGE.name] = kept
            elif type(kept) is Step:
                name = kept.machine.name if kept.machine is not QUEUE else kept.key
                if name not in found:
                    is_over = isinstance(kept.after, QueueState) and not kept.after.lanes
                    found[name] = None if is_over else kept
            elif isinstance(kept, Part):
                if SCHEDULER.name not in found:
                    found[SCHEDULER.name] = kept
                if "node" not in found:
                    if kept.entry is None:
                        found["node"] = None
                    elif isinstance(kept.event, NodeAdded) and kept.subject == self.name:
                        found["node"] = kept
        return {name: kept for name, kept in found.items() if kept is not None}

    def base(self, text: Text) -> Past:
        """Return the state before the oldest step that is kept."""
        past = Past()
        base = self._older.base if self._older.kept else self._newer.base
        for kept in sorted(base.values(), key=lambda one: one.number):
            if isinstance(kept, Part):
                event = kept.event if kept.subject == self.name else None
                past.update(SCHEDULER.name, kept.time, event, _entry(kept, text))
            elif isinstance(kept, PackageStep):
                masked = status_after(None, normal(status_changes(None, kept.after, text)))
                past.update(PACKAGE.name, kept.time, None, _phase_form(kept.phase), masked)
            else:
                before = _BEFORE[kept.machine.name]
                state = kept.machine.changes(kept.machine.codec, before, kept.after, lambda _: text)
                past.update(kept.machine.name, kept.time, None, state)
                if isinstance(kept.after, QueueState):
                    _add_tasks(past, kept)
        return past

    def records(self, text: Text) -> Iterator[EventRecord | StateRecord]:
        """Iterate over the steps as records, oldest first.

        If a step of the package begins with another status than the one with which its previous step ended, the status is
        yielded as a separate record first.
        """
        base = self._older.base if self._older.kept else self._newer.base
        known = base.get(PACKAGE.name)
        status = known.after if isinstance(known, PackageStep) else None
        for generation in (self._older, self._newer):
            for kept in generation.kept:
                if isinstance(kept, Step):
                    yield _record(kept, text)
                elif isinstance(kept, Part):
                    yield _part_record(kept, self.name, text)
                else:
                    if kept.before is not status:
                        whole: JsonValue = {"status": normal(status_changes(None, kept.before, text))}
                        yield StateRecord(kept.number, kept.time, PACKAGE.name, kept.key, whole, Why.REPLACED)
                    status = kept.after
                    yield _package_record(kept, text)

    def __len__(self) -> int:
        return len(self._older.kept) + len(self._newer.kept)


class Rings:
    """The last steps of the state machines of all packages. ``text_of`` returns the function that masks a package's texts."""

    def __init__(self, text_of: Callable[[str], Text]) -> None:
        self.text_of = text_of
        self.limit = MOST_OF_ONE
        """The limit on the number of steps that are kept for one package. It is lower if there are many packages."""
        self._most_of_newer = self.limit // 2
        self._rings: dict[str, Ring] = {}
        self._gone: OrderedDict[str, Ring] = OrderedDict()

    def add(self, name: str, kept: Kept) -> None:
        """Add a step of a package."""
        ring = self._rings.get(name)
        if ring is None:
            ring = self._begun(name, kept)
        newest = ring.newest
        if len(newest) >= self._most_of_newer:
            newest = ring.begin_generation()
        newest.append(kept)

    def _begun(self, name: str, kept: Kept) -> Ring:
        """Return a ring for a step of a package that has no current ring. If the package is gone, only a step of its lifecycle
        or of a queue makes its old ring current again.
        """
        # The package's journal is forgotten later than the package.
        is_late = not isinstance(kept, Step) or kept.machine is JOURNAL
        ring = self._gone.get(name) if is_late else None
        if ring is None:
            ring = self._rings[name] = self._gone.pop(name) if name in self._gone else Ring(name)
            self._resize()
        return ring

    def gone(self, name: str) -> tuple[str, ...]:
        """Record that a package is gone; its steps are kept until too many other packages are gone, too.

        Return the packages whose steps were dropped to make room.
        """
        ring = self._rings.pop(name, None)
        if ring is not None:
            self._gone[name] = ring
            self._resize()
        most = len(self._gone) - MOST_GONE
        return tuple(self._gone.popitem(last=False)[0] for _ in range(most))

    def get(self, name: str) -> Ring | None:
        """Return the steps of a package, even if the package is gone; None if there are no steps."""
        found = self._rings.get(name)
        return self._gone.get(name) if found is None else found

    def names(self) -> tuple[str, ...]:
        """Return the names of the packages that are not gone, sorted."""
        return tuple(sorted(self._rings))

    def count(self) -> int:
        """Return the number of steps of all packages."""
        return sum(len(ring) for rings in (self._rings, self._gone) for ring in rings.values())

    def _resize(self) -> None:
        self.limit = min(MOST_OF_ONE, max(LEAST_OF_ONE, MOST_STEPS // (len(self._rings) or 1)))
        self._most_of_newer = self.limit // 2


def _record(step: Step, text: Text) -> EventRecord:
    machine, codec = step.machine, step.machine.codec
    state = machine.changes(codec, step.before, step.after, lambda _: text)
    effects: JsonValue = [codec.encode(effect, text) for effect in step.effects]
    return EventRecord(
        step.number, step.time, machine.name, step.key, codec.encode(step.event, text), None, state, effects
    )


def _package_record(step: PackageStep, text: Text) -> EventRecord:
    event: JsonValue = [step.event] if isinstance(step.event, str) else PACKAGE.codec.encode(step.event, text)
    state = _phase_form(step.phase)
    if step.before is not step.after:
        state["status"] = normal(status_changes(step.before, step.after, text))
    effects: JsonValue = [PACKAGE.codec.encode(effect, text) for effect in step.effects]
    return EventRecord(step.number, step.time, PACKAGE.name, step.key, event, None, state, effects)


def _phase_form(phase: tuple[bool, bool, bool]) -> JsonObject:
    """Return the parts of a package's form that determine its phase. Each part is True if the package has it, and None
    otherwise.
    """
    read, joined, refused = (True if each else None for each in phase)
    return {"files": {"definition": read}, "node": {"joined": joined, "refused": refused}}


def _part_record(part: Part, name: str, text: Text) -> EventRecord:
    codec = SCHEDULER.codec
    mention: JsonValue = [MENTION, type(part.event).__name__, part.subject]
    event = codec.encode(part.event, text) if part.subject == name else mention
    effects: JsonValue = [codec.encode(effect, text) for effect in part.effects]
    at = None if part.at is None else part.at.isoformat()
    return EventRecord(part.number, part.time, SCHEDULER.name, name, event, at, _entry(part, text), effects)


def _entry(part: Part, text: Text) -> JsonValue:
    return None if part.entry is None else normal(entry_form(SCHEDULER.codec, part.entry, part.order, text))


def _add_tasks(past: Past, step: Step) -> None:
    """Add the waiting tasks of a queue, and the times of its retries, to ``past``. The compact form of a queue's state does not
    contain them.
    """
    if not isinstance(step.after, QueueState):
        return
    for name, lane in step.after.lanes.items():
        past.tasks[name] = [[entry.task, entry.name] for entry in lane.waiting]
        if isinstance(lane.head, BackingOff) and isinstance(step.event, Failed):
            past.retries[name] = step.time + lane.head.until - step.event.at
