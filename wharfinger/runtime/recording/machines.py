"""The recorded state machines: for each, its step function, the form of its events and states, and the form of the changes
that a step has made.

=========  ===================================================================  ==========================================
machine    the pure function                                                    one state for
=========  ===================================================================  ==========================================
lifecycle  :func:`wharfinger.runtime.lifecycle.lifecycle_machine.step`          each package
journal    :func:`wharfinger.runtime.lifecycle.journal_machine.step`            each package
queue      :func:`wharfinger.queue.machine.step`                                each queue of a package, by its number
scheduler  :func:`wharfinger.runtime.scheduler.machine.step`                    all packages together
package    :func:`wharfinger.runtime.package.machine.step`                      each package, with its status
=========  ===================================================================  ==========================================

A whole state is written when a state machine is recorded for the first time in a file. After that, its steps are written. With
a step, or once for several steps that are written together, the parts of the state that changed are written in a compact form
(`Machine.changes`). This form depends only on the states before and after these steps, so a replay computes the form again, and
compares the bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, cast

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.definition import requirements
from wharfinger.queue import events as queue_events
from wharfinger.queue import machine as queue_machine
from wharfinger.queue import state as queue_state
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.runtime.fixpoint import model as engine_model
from wharfinger.runtime.fixpoint import state as engine_state
from wharfinger.runtime.lifecycle import desired_state, journal_machine, lifecycle_machine
from wharfinger.runtime.package.effects import Simple
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.recording.canonical import Codec, Text, kinds_of
from wharfinger.runtime.recording.package_form import package_changes
from wharfinger.runtime.recording.package_machine import PACKAGE_CODEC, PackageCodec, package_step
from wharfinger.runtime.scheduler import events as scheduler_events
from wharfinger.runtime.scheduler import gates, graph, rules, soft_edges, tiers
from wharfinger.runtime.scheduler import machine as scheduler_machine
from wharfinger.runtime.scheduler import state as scheduler_state
from wharfinger.runtime.status.reasons import Reason

MOST_WAITING: Final = 16
"""The largest number of waiting tasks of a lane that are listed in a recorded state. If more tasks wait, only their number is
recorded.
"""

Step: TypeAlias = Callable[[object, object, JsonValue], tuple[object, tuple[object, ...]]]
TextOf: TypeAlias = Callable[[str], Text]
"""A function that takes a package's name, and returns the function that masks the package's texts."""
Changes: TypeAlias = Callable[[Codec, object, object, TextOf], JsonValue]
_KIND: Final[dict[type, list[JsonValue]]] = {}
"""Cached results of :func:`kinds_of_effects` for single effects: the list with the name of the class, by the class."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One state machine. ``step`` takes a state, an event, and the event's time or surroundings. ``changes`` takes the codec,
    the states before and after the step, and a TextOf, for which "" means the package that the state belongs to.
    """

    name: str
    codec: Codec
    step: Step
    changes: Changes


def kinds_of_effects(effects: tuple[object, ...]) -> list[JsonValue]:
    """Return the kinds of effects: the class name of a record, or the name of a member of an enumeration.

    Callers must not change the list, because all steps with a single effect of the same class share it.
    """
    if len(effects) == 1 and (kind := type(effects[0])) is not Simple:
        known = _KIND.get(kind)
        if known is None:
            known = _KIND[kind] = [kind.__name__]
        return known
    return [effect._name_ if type(effect) is Simple else type(effect).__name__ for effect in effects]


# --- lifecycle ---------------------------------------------------------------------------------------------------------------


def _lifecycle_changes(codec: Codec, before: object, after: object, text_of: TextOf) -> JsonValue:
    text = text_of("")
    if not isinstance(after, lifecycle_machine.Package):
        return None
    desired: JsonValue = None
    if not isinstance(before, lifecycle_machine.Package) or before.desired is not after.desired:
        desired = codec.encode(after.desired, text)
    scopes: list[JsonValue] = [
        after.update,
        after.reconciliation,
        after.disabling,
        after.vote,
        after.suspension,
        after.removal,
    ]
    return [scopes, after.applying, after.leaving, desired]


def _lifecycle_step(state: object, event: object, _at: JsonValue) -> tuple[object, tuple[object, ...]]:
    return lifecycle_machine.step(
        cast("lifecycle_machine.Package | None", state), cast("lifecycle_machine.Event", event)
    )


# --- journal -----------------------------------------------------------------------------------------------------------------


def _journal_changes(_codec: Codec, before: object, after: object, text_of: TextOf) -> JsonValue:
    text = text_of("")
    old, new = cast("journal_machine.State", before), cast("journal_machine.State", after)
    changed: JsonObject = {operation.value: None for operation in old if operation not in new}
    for operation, entry in new.items():
        earlier = old.get(operation)
        if earlier is not entry:
            known = earlier.steps if earlier is not None else {}
            steps: JsonObject = {name: None for name in known if name not in entry.steps}
            steps |= {
                name: [one.number, one.phase.value, text(one.result)]
                for name, one in entry.steps.items()
                if known.get(name) is not one
            }
            changed[operation.value] = [entry.fingerprint, entry.earlier, steps]
    return changed


def _journal_step(state: object, event: object, _at: JsonValue) -> tuple[object, tuple[object, ...]]:
    return journal_machine.step(cast("journal_machine.State", state), cast("journal_machine.Event", event))


# --- queue -------------------------------------------------------------------------------------------------------------------


def _queue_changes(_codec: Codec, before: object, after: object, text_of: TextOf) -> JsonValue:
    text = text_of("")
    old, new = cast("queue_state.QueueState", before), cast("queue_state.QueueState", after)
    lanes: JsonObject = {name: None for name in old.lanes if name not in new.lanes}
    for name, lane in new.lanes.items():
        if old.lanes.get(name) is not lane:
            lanes[name] = _lane(lane, text)
    return [new.next_run, None if new.closing is None else text(new.closing), lanes]


def _lane(lane: queue_state.Lane, text: Text) -> JsonValue:
    head = lane.head
    history = head.history
    of_phase: list[JsonValue]
    match head:
        case queue_state.Running(_, run, _, changed):
            of_phase = [run, changed]
        case queue_state.Completing(_, run, _):
            of_phase = [run]
        case queue_state.Ending(_, run, cause, _):
            of_phase = [run, text(cause)]
        case queue_state.BackingOff(_, until, _):
            of_phase = [until]
        case queue_state.Parked():
            of_phase = []
    waiting = len(lane.waiting)
    return [
        type(head).__name__,
        head.entry.name,
        head.entry.task,
        of_phase,
        [history.attempt, history.failures, text(history.error)],
        waiting,
        [each.task for each in lane.waiting] if waiting <= MOST_WAITING else None,
    ]


def _queue_step(state: object, event: object, _at: JsonValue) -> tuple[object, tuple[object, ...]]:
    return queue_machine.step(cast("queue_state.QueueState", state), cast("queue_events.Event", event))


# --- scheduler ---------------------------------------------------------------------------------------------------------------


def _scheduler_changes(codec: Codec, before: object, after: object, text_of: TextOf) -> JsonValue:
    new = cast("scheduler_state.Graph", after)
    touched = new.touched if before is not after else ()
    orders = new.topology.effective
    entries: dict[str, object] = {}
    for name in touched:
        entry = new.entries.get(name)
        entries[name] = None if entry is None else entry_form(codec, entry, orders[name], text_of(name))
    form: list[object] = [new.paused, new.runs, new.news, entries]
    return cast("JsonValue", form)


def entry_form(codec: Codec, entry: scheduler_state.Entry, order: int, text: Text) -> list[object]:
    """Return the compact form of an entry of the scheduler: its effective order, and all of its fields except for the node."""
    phase: list[JsonValue]
    match entry.phase:
        case scheduler_state.Active():
            phase = ["active"]
        case scheduler_state.Scheduled(run, failed):
            phase = ["scheduled", run, failed]
        case scheduler_state.Idle(reason):
            phase = ["idle", reason]
    decision, lacks = entry.decision, entry.lacks
    return [
        order,
        phase,
        None
        if decision is None
        else [decision.verdict._value_, decision.reason._value_, text(decision.message), decision.uninstall],
        None if entry.vote is None else codec.encode(entry.vote, text),
        entry.vote_due,
        [[each.kind, each.name] for each in lacks] if lacks else [],
        entry.since,  # times are not encoded here, because msgspec writes them
        entry.run,
        entry.stuck,
    ]


def _scheduler_step(state: object, event: object, at: JsonValue) -> tuple[object, tuple[object, ...]]:
    moment = None if at is None else datetime.fromisoformat(str(at))
    return scheduler_machine.step(cast("scheduler_state.Graph", state), cast("scheduler_events.Event", event), moment)


# --- package -----------------------------------------------------------------------------------------------------------------


def _package_changes(codec: Codec, before: object, after: object, text_of: TextOf) -> JsonValue:
    package = cast("PackageCodec", codec)
    return package_changes(package, cast("Package", before), cast("Package", after), text_of(""), package.mark)


_NAMES: Final = frozenset({"name"})
_OF_SCHEDULER: Final = {
    **kinds_of(scheduler_events, gates, graph, rules, soft_edges, tiers, scheduler_state),
    **kinds_of(requirements),
    **{name: kind for name, kind in kinds_of(engine_model).items() if name == "Id"},
    **{f"Engine{name}": kind for name, kind in kinds_of(engine_state, engine_model).items() if name != "Id"},
    "Reason": Reason,
}

LIFECYCLE: Final = Machine(
    "lifecycle",
    Codec(
        kinds_of(lifecycle_machine, desired_state),
        {
            "DesiredState": frozenset(
                {
                    "settings_checksum",
                    "resources",
                    "patches",
                    "upkeep",
                    "upgrade",
                    "version",
                    "package",
                    "namespace",
                    "maintenance",
                }
            )
        },
    ),
    _lifecycle_step,
    _lifecycle_changes,
)
JOURNAL: Final = Machine(
    "journal",
    Codec(
        kinds_of(journal_machine),
        {
            **dict.fromkeys(("Begin", "Entry"), frozenset({"fingerprint"})),
            **dict.fromkeys(("Start", "Complete"), frozenset({"step"})),
            "Keep": frozenset({"fingerprint", "name"}),
        },
    ),
    _journal_step,
    _journal_changes,
)
QUEUE: Final = Machine(
    "queue",
    Codec(
        {**kinds_of(queue_events, queue_state), "BackoffPolicy": BackoffPolicy},
        {"Enqueued": frozenset({"name", "lane"})},
    ),
    _queue_step,
    _queue_changes,
)
SCHEDULER: Final = Machine(
    "scheduler",
    Codec(
        _OF_SCHEDULER,
        {
            **dict.fromkeys(_OF_SCHEDULER, _NAMES),
            "NodeAdded": frozenset({"node"}),
            "Rescheduled": frozenset({"name", "reason"}),
            **dict.fromkeys(("Decided", "Disable", "Schedule"), frozenset({"name", "reason"})),
            "Idle": frozenset({"reason"}),
            "Entry": frozenset({"node", "lacks"}),
            "Graph": frozenset({"intents", "flags", "facts", "topology", "tiers", "subscribers", "engine", "touched"}),
        },
    ),
    _scheduler_step,
    _scheduler_changes,
)
PACKAGE: Final = Machine("package", PACKAGE_CODEC, package_step, _package_changes)
MACHINES: Final = {machine.name: machine for machine in (LIFECYCLE, JOURNAL, QUEUE, SCHEDULER, PACKAGE)}
