"""The queue of one package as a pure machine: what runs, what waits, for what, and what may never run.

Theory of operation. A queue has *lanes*; a lane is a strict FIFO, and its head is the only task that may run. A task that
fails stays at the head: what comes after it in the lane builds on it (Install on Download). So the head is always in one of
five phases, and everything behind it is waiting:

==========  ===============================================================================================================
Waiting     behind the head; a head is Waiting only between two lines of `step`
Running     started as run N
Completing  run N succeeded and the asker is being told (CallDone); the lane stands still until that is done
Ending      run N is being interrupted; it keeps its place until the run really ended, so that a lane never runs two things
BackingOff  failed for now; starts again at a given time
Parked      failed for good, as things are; starts again only when an input changed
==========  ===============================================================================================================

================  ==========  ==========  ==========  ===========  ===========  ===========
event             Waiting     Running     Completing  Ending       BackingOff   Parked
================  ==========  ==========  ==========  ===========  ===========  ===========
Finished(run)     -           Completing  illegal     leaves       -            -
Completed(run)    -           illegal     retires     illegal      -            -
Failed(run)       -           BackingOff  Parked      leaves       -            -
  permanent       -           Parked [3]  Parked      leaves       -            -
Interrupted(run)  -           illegal     illegal     leaves       -            -
RetryDue(now)     same        same        same        same         Running [1]  same
InputChanged      same        same [3]    same        same         same         Running
ScopeCancelled    leaves      Ending      leaves      same         leaves       leaves
Draining          leaves      same [2]    same [2]    same         leaves       leaves
================  ==========  ==========  ==========  ===========  ===========  ===========

[1] when its time has come. [2] with ``interrupt`` as ScopeCancelled; without, a run that then fails leaves instead of waiting
for a retry that will not come. [3] a run that began before the inputs changed has judged the old ones: if it fails for good,
it is not parked but run once more at once, or the change would be lost.

"-": a run is known by its number, and the number of a run that is over matches nothing, so whatever a superseded run reports
changes nothing. *Retires* = left after success, *leaves* = dropped with a cause. CallDone comes only out of Running, and the
shell performs it only while the task is still there, so nobody is told of the success of something that was cancelled. An
illegal pair raises IllegalEvent and changes nothing.

No clock, no randomness, no I/O: events carry the time (seconds of any monotonic clock) and the draw that jitter needs.
When to wake is not an effect but a question about the state (`state.next_wake`): nothing to keep in step, nothing to go stale.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, assert_never

from wharfinger.queue.state import (
    MAIN_LANE,
    BackingOff,
    Completing,
    Ending,
    Entry,
    Lane,
    Parked,
    QueueState,
    Running,
    Waiting,
)


class QueueFull(Exception):  # noqa: N818 - a refusal, not a failure
    """The lane holds as many tasks as it may; the one offered was not taken."""


class IllegalEvent(Exception):  # noqa: N818 - named for what happened
    """The shell reported something that cannot have happened: a bug of the shell."""


# --- events ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A task is offered. ``task`` is a number never used before in this queue, ``scope`` that of its operation."""

    task: int
    name: str
    scope: int
    at: float
    lane: str = MAIN_LANE
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The run succeeded."""

    run: int


@dataclass(frozen=True, slots=True)
class Completed:
    """The asker has been told that the run succeeded."""

    run: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The run, or telling its asker, failed; ``draw`` in [0, 1) is for the jitter."""

    run: int
    error: str
    permanent: bool
    at: float
    draw: float


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The run ended because of CancelRun."""

    run: int


@dataclass(frozen=True, slots=True)
class RetryDue:
    """Time has passed."""

    now: float


@dataclass(frozen=True, slots=True)
class InputChanged:
    """What permanent failures were blamed on may be different now."""


@dataclass(frozen=True, slots=True)
class ScopeCancelled:
    """An operation was cancelled."""

    scope: int
    cause: str


@dataclass(frozen=True, slots=True)
class Draining:
    """Take nothing more and drop what waits; ``interrupt`` what runs as well, or let it finish."""

    cause: str
    interrupt: bool


Event: TypeAlias = (
    Enqueued | Finished | Completed | Failed | Interrupted | RetryDue | InputChanged | ScopeCancelled | Draining
)


# --- effects ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartTask:
    """Execute the task; report Finished, Failed or Interrupted with this run."""

    task: int
    run: int


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Interrupt the run; it still has to report that it ended."""

    run: int
    cause: str


@dataclass(frozen=True, slots=True)
class CallDone:
    """If the task is still here, tell its asker that it succeeded; report Completed or Failed with this run."""

    task: int
    run: int


@dataclass(frozen=True, slots=True)
class Retired:
    """The task left after success."""

    task: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """The task left, or was never taken, without success."""

    task: int
    cause: str


Effect: TypeAlias = StartTask | CancelRun | CallDone | Retired | Dropped

DUPLICATE: Final = "the same task is already waiting"


# --- the machine -----------------------------------------------------------------------------------------------------------


def step(state: QueueState, event: Event) -> tuple[QueueState, tuple[Effect, ...]]:
    """The state after ``event``, and what is to be done now, in this order.

    Raises QueueFull if the task offered has no room, and IllegalEvent; either way nothing changed.
    """
    match event:
        case Enqueued():
            return _enqueued(state, event)
        case Finished() | Completed() | Failed() | Interrupted():
            return _reported(state, event)
        case RetryDue(now):
            return _retry_due(state, now)
        case InputChanged():
            return _input_changed(state)
        case ScopeCancelled(scope, cause):
            return _cancel(state, lambda entry: entry.scope == scope, cause)
        case Draining(cause, interrupt):
            closing = replace(state, closing=state.closing or cause)
            return _cancel(closing, lambda entry: interrupt or not isinstance(entry.phase, Running | Completing), cause)
        case _:
            assert_never(event)


def _enqueued(state: QueueState, event: Enqueued) -> tuple[QueueState, tuple[Effect, ...]]:
    if state.closing is not None:
        return state, (Dropped(event.task, state.closing),)
    lane = state.lanes.get(event.lane, ())
    # A run that has begun may have read its inputs already, so one more may wait behind it. Only tasks of the same scope
    # stand for each other: another operation's task goes when that operation does, and the work would be lost with it.
    if event.unique and any(_same_work(entry, event) for entry in lane):
        return state, (Dropped(event.task, DUPLICATE),)
    if len(lane) >= state.rules.max_tasks:
        raise QueueFull(f"{event.name}: not queued, lane {event.lane} holds {len(lane)} tasks, which is its limit")
    entry = Entry(event.task, event.name, event.scope, event.at)
    return _advance(replace(state, lanes={**state.lanes, event.lane: (*lane, entry)}), ())


def _same_work(entry: Entry, event: Enqueued) -> bool:
    begun = isinstance(entry.phase, Running | Completing | Ending)
    return not begun and entry.name == event.name and entry.scope == event.scope


def _reported(
    state: QueueState, event: Finished | Completed | Failed | Interrupted
) -> tuple[QueueState, tuple[Effect, ...]]:
    for name, lane in state.lanes.items():
        head = lane[0]
        if isinstance(head.phase, Running | Completing | Ending) and head.phase.run == event.run:
            after, effects = _outcome(state, head, head.phase, event)
            return _advance(_with_head(state, name, after), effects)
    return state, ()


def _outcome(
    state: QueueState,
    head: Entry,
    phase: Running | Completing | Ending,
    event: Finished | Completed | Failed | Interrupted,
) -> tuple[Entry | None, tuple[Effect, ...]]:
    """What becomes of the head whose run reported, None if it leaves."""
    match phase, event:
        case Ending(), Finished() | Failed() | Interrupted():
            return None, (Dropped(head.task, phase.cause),)
        case Running(run), Finished():
            return replace(head, phase=Completing(run)), (CallDone(head.task, run),)
        case Completing(), Completed():
            return None, (Retired(head.task),)
        case ((Running() | Completing()), Failed()):
            if state.closing is not None:
                return None, (Dropped(head.task, state.closing),)
            failures = head.failures + 1
            failed = replace(head, failures=failures, error=event.error)
            if isinstance(phase, Completing) or (event.permanent and not phase.input_changed):
                return replace(failed, phase=Parked()), ()
            if event.permanent:
                return replace(failed, phase=Waiting(), failures=0), ()
            until = event.at + state.rules.backoff.delay(failures, event.draw)
            return replace(failed, phase=BackingOff(until)), ()
        case _:
            raise IllegalEvent(f"{type(event).__name__} for {head.name!r}, which is {type(phase).__name__}")


def _retry_due(state: QueueState, now: float) -> tuple[QueueState, tuple[Effect, ...]]:
    for name, lane in state.lanes.items():
        head = lane[0]
        if isinstance(head.phase, BackingOff) and head.phase.until <= now:
            state = _with_head(state, name, replace(head, phase=Waiting()))
    return _advance(state, ())


def _input_changed(state: QueueState) -> tuple[QueueState, tuple[Effect, ...]]:
    for name, lane in state.lanes.items():
        head = lane[0]
        if isinstance(head.phase, Parked):
            state = _with_head(state, name, replace(head, phase=Waiting(), failures=0))
        elif isinstance(head.phase, Running):
            state = _with_head(state, name, replace(head, phase=replace(head.phase, input_changed=True)))
    return _advance(state, ())


def _cancel(state: QueueState, wanted: Callable[[Entry], bool], cause: str) -> tuple[QueueState, tuple[Effect, ...]]:
    """Take the wanted entries out, or order their end where they run."""
    effects: list[Effect] = []
    lanes: dict[str, Lane] = {}
    for name, lane in state.lanes.items():
        kept: list[Entry] = []
        for entry in lane:
            if isinstance(entry.phase, Ending) or not wanted(entry):
                kept.append(entry)
            elif isinstance(entry.phase, Running):
                kept.append(replace(entry, phase=Ending(entry.phase.run, cause)))
                effects.append(CancelRun(entry.phase.run, cause))
            else:
                effects.append(Dropped(entry.task, cause))
        if kept:
            lanes[name] = tuple(kept)
    return _advance(replace(state, lanes=lanes), effects)


def _advance(state: QueueState, effects: Iterable[Effect]) -> tuple[QueueState, tuple[Effect, ...]]:
    """Start every head whose turn has come."""
    done = list(effects)
    for name, lane in state.lanes.items():
        head = lane[0]
        if isinstance(head.phase, Waiting):
            run = state.next_run
            state = _with_head(state, name, replace(head, phase=Running(run), attempt=head.attempt + 1))
            state = replace(state, next_run=run + 1)
            done.append(StartTask(head.task, run))
    return state, tuple(done)


def _with_head(state: QueueState, name: str, head: Entry | None) -> QueueState:
    rest = state.lanes[name][1:]
    lane = rest if head is None else (head, *rest)
    lanes = {key: value for key, value in state.lanes.items() if key != name or lane}
    if lane:
        lanes[name] = lane
    return replace(state, lanes=lanes)
