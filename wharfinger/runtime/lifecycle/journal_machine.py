"""The journal as a pure state machine: it records which steps of a package's operations are done, so that they are skipped
after a restart.

Theory of operation. An *operation* (an update, a reconciliation, ...) of a package consists of named *steps*. A step is
started, then its effects happen, and then it is completed, with a text that later steps need (a digest, a revision). The row
of a step is written before the effects of the step, and again after them. So if the process is killed at any point, there is
no row, the row of a step in flight, or the row of a complete step.

Only the rows of an *earlier process* are resumed, and only by the first `Begin` of the same operation with the same
fingerprint, which is a checksum of everything on which the operation depends. (Rows from before the last boot of the computer
are ignored; see `runtime.lifecycle.journal`.) If the same process begins an operation again, all steps are done again, because
the operation was requested once more.

=====================  ====================================================================================================
event                  effect on the rows of the operation
=====================  ====================================================================================================
Begin(fingerprint)     If an earlier process left the rows with this fingerprint, complete steps stay complete, and a step in
                       flight counts as interrupted. Otherwise all rows are deleted, and so are records of other
                       operations that become untrue (see below).
Start(step)            The step is in flight. A complete step stays complete.
Complete(step, text)   A step in flight becomes complete. Otherwise nothing changes: see *Stale*.
Finish                 All rows are deleted.
Forget                 All rows of all operations of the package are deleted.
=====================  ====================================================================================================

One operation can make the records of another operation untrue, even records of an earlier process. A removal undoes every
other operation. A reconciliation applies objects that a Disable deleted, and a Disable deletes objects that a reconciliation
applied. If another operation begins, the package is not being removed any more (its resource was created again), so the
records of a removal are untrue. An update keeps the records of a Reconciliation and a Disable, because after a restart every
package is updated first, and only then resumes its interrupted operation.

*Stale*: a superseded task may report once more before it notices that it was superseded. The tasks of the new operation run
only after the superseded tasks have ended. So when the late report arrives, no step of the new operation is in flight, and
the report changes nothing.

Limits: MAX_STEPS steps for an operation, and MAX_RESULT characters for a step's text; an event that exceeds a limit raises
StepLimitError and changes nothing. No clock, no I/O: the effects name rows, and the caller writes either all rows of one
event or none of them, before it adopts the new state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

MAX_STEPS: Final = 1000
MAX_RESULT: Final = 4096


class Operation(StrEnum):
    """The kinds of operations. At most one operation of each kind runs for a package."""

    UPDATE = "update"
    RECONCILIATION = "reconciliation"
    DISABLE = "disable"
    REMOVAL = "removal"


UNTRUE: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    Operation.UPDATE: (Operation.REMOVAL,),
    Operation.RECONCILIATION: (Operation.DISABLE, Operation.REMOVAL),
    Operation.DISABLE: (Operation.RECONCILIATION, Operation.REMOVAL),
    Operation.REMOVAL: (Operation.UPDATE, Operation.RECONCILIATION, Operation.DISABLE),
}
"""For each operation, the operations whose records are deleted when it begins, because it undoes their results."""


class StepLimitError(Exception):
    """The journal cannot record an operation, because the operation has too many steps, or one of its steps has too long a
    result.
    """


class Phase(StrEnum):
    """The phase of a step. A step is INTERRUPTED if its process ended while the step was in flight. The row in the journal then
    still says that the step is in flight.
    """

    INTERRUPTED = "interrupted"
    IN_FLIGHT = "in flight"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Step:
    """A recorded step: its number in the order of starts, its phase, and its result once it is complete."""

    number: int
    phase: Phase
    result: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded operation. ``earlier`` is True if an earlier process began the operation, and the present process has not
    begun it.
    """

    fingerprint: str
    earlier: bool = False
    steps: Mapping[str, Step] = field(default_factory=dict)


State: TypeAlias = Mapping[Operation, Entry]
"""The recorded operations of one package."""


@dataclass(frozen=True, slots=True)
class Begin:
    """An operation begins; ``fingerprint`` is a checksum of everything on which it depends."""

    operation: Operation
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Start:
    """A step of an operation is about to have its first effect."""

    operation: Operation
    step: str


@dataclass(frozen=True, slots=True)
class Complete:
    """A step is complete: it has no further effects."""

    operation: Operation
    step: str
    result: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """The operation is over."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Forget:
    """The package is gone."""


Event: TypeAlias = Begin | Start | Complete | Finish | Forget


@dataclass(frozen=True, slots=True)
class Drop:
    """The effect of deleting the rows of an operation from the journal."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Keep:
    """The effect: write the row of a step to the journal."""

    operation: Operation
    fingerprint: str
    name: str
    number: int
    complete: bool
    result: str


Effect: TypeAlias = Drop | Keep


def step(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    """Return the records after the event, and the changes of rows, with the deletions first. Raises StepLimitError."""
    match event:
        case Begin():
            return _begin(state, event)
        case Start():
            return _start(state, event)
        case Complete():
            return _complete(state, event)
        case Finish():
            return _drop(state, (event.operation,))
        case Forget():
            return _drop(state, tuple(Operation))
        case _:
            assert_never(event)


def completed(state: State, operation: Operation, name: str) -> str | None:
    """Return the recorded result of the step ``name``; None if the operation is not under way, or the step is not complete."""
    entry = _begun(state, operation)
    found = entry.steps.get(name) if entry is not None else None
    return found.result if found is not None and found.phase is Phase.COMPLETE else None


def restored(rows: Iterable[Keep]) -> State:
    """Return the state of a package in a process that starts now, and finds these rows of an earlier process."""
    state: dict[Operation, Entry] = {}
    for row in sorted(rows, key=lambda row: row.number):
        entry = state.get(row.operation, Entry(row.fingerprint, earlier=True))
        one = Step(row.number, Phase.COMPLETE if row.complete else Phase.INTERRUPTED, row.result)
        state[row.operation] = replace(entry, steps={**entry.steps, row.name: one})
    return state


def _begun(state: State, operation: Operation) -> Entry | None:
    entry = state.get(operation)
    return None if entry is None or entry.earlier else entry


def _begin(state: State, event: Begin) -> tuple[State, tuple[Effect, ...]]:
    left = state.get(event.operation)
    if left is not None and left.earlier and left.fingerprint == event.fingerprint:
        # No records of the operations in UNTRUE have to be dropped: if one of them had begun later, it would have dropped this
        # entry.
        return {**state, event.operation: replace(left, earlier=False)}, ()
    rest, effects = _drop(state, (event.operation, *UNTRUE[event.operation]))
    return {**rest, event.operation: Entry(event.fingerprint)}, effects


def _start(state: State, event: Start) -> tuple[State, tuple[Effect, ...]]:
    entry = _begun(state, event.operation)
    if entry is None:
        return state, ()
    found = entry.steps.get(event.step)
    if found is None:
        if len(entry.steps) >= MAX_STEPS:
            raise StepLimitError(
                f"step {event.step!r} is not recorded: an operation may have at most {MAX_STEPS} steps"
            )
        number = 1 + max((one.number for one in entry.steps.values()), default=0)
        found = Step(number, Phase.INTERRUPTED)
        effects: tuple[Effect, ...] = (_row(event.operation, entry, event.step, found),)
    else:
        effects = ()  # the row of this step already says that it is in flight
    if found.phase is Phase.COMPLETE:
        return state, ()
    return _with(state, event.operation, event.step, replace(found, phase=Phase.IN_FLIGHT)), effects


def _complete(state: State, event: Complete) -> tuple[State, tuple[Effect, ...]]:
    entry = _begun(state, event.operation)
    found = entry.steps.get(event.step) if entry is not None else None
    if entry is None or found is None or found.phase is not Phase.IN_FLIGHT:
        return state, ()
    if len(event.result) > MAX_RESULT:
        raise StepLimitError(
            f"the result of step {event.step!r} has {len(event.result)} characters; the journal keeps at most {MAX_RESULT}"
        )
    done = Step(found.number, Phase.COMPLETE, event.result)
    return _with(state, event.operation, event.step, done), (_row(event.operation, entry, event.step, done),)


def _with(state: State, operation: Operation, name: str, one: Step) -> State:
    entry = state[operation]
    return {**state, operation: replace(entry, steps={**entry.steps, name: one})}


def _row(operation: Operation, entry: Entry, name: str, one: Step) -> Keep:
    return Keep(operation, entry.fingerprint, name, one.number, one.phase is Phase.COMPLETE, one.result)


def _drop(state: State, operations: tuple[Operation, ...]) -> tuple[State, tuple[Effect, ...]]:
    rest = {operation: entry for operation, entry in state.items() if operation not in operations}
    return rest, tuple(Drop(operation) for operation in operations if operation in state and state[operation].steps)
