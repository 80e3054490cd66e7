"""The queue of one package as a pure state machine, which decides when tasks run, wait and are dropped.

Theory of operation. A queue has *lanes*; a lane is a strict FIFO, and its head is the only task that may run. A task that fails
stays at the head, because the tasks behind it depend on it, as Install depends on Download. The head is always in one of five
phases; all tasks behind it wait:

==========  ===============================================================================================================
Running     started as run N
Completing  run N succeeded, and the caller is being notified (CallDone); until that is done, the lane starts no other run
Ending      run N is being interrupted; the task stays at the head until the run has ended, so a lane runs one task at a time
BackingOff  the last run failed; the next one starts at a given time
Parked      the last run failed permanently; the next one starts only after an input has changed
==========  ===============================================================================================================

================  ========  ==============  ==========  ===========  ===========  ===========
event             waiting   Running         Completing  Ending       BackingOff   Parked
================  ========  ==============  ==========  ===========  ===========  ===========
Finished(run)     -         Completing [4]  illegal     leaves       -            -
Completed(run)    -         illegal         retires     illegal      -            -
Failed(run)       -         BackingOff [5]  Parked [5]  leaves       -            -
  permanent       -         Parked [3] [5]  Parked [5]  leaves       -            -
Interrupted(run)  -         illegal         illegal     leaves       -            -
RetryDue(now)     same      same            same        same         Running [1]  same
InputChanged      same      same [3]        same        same         same         Running
ScopeCancelled    leaves    Ending          leaves      same         leaves       leaves
Draining          leaves    same [2]        same [2]    same         leaves       leaves
================  ========  ==============  ==========  ===========  ===========  ===========

[1] If its time has come. [2] With ``interrupt``: as ScopeCancelled. [3] If an input changed after the run began, the run may have
used the old inputs: after a permanent failure the task runs again immediately instead of being parked, so that the change is not
lost. [4] Retires immediately if no caller is to be notified. [5] Leaves if the queue is closing, because there will be no retry.

*Retires* means that the task leaves the queue after success, and *leaves* means that it is dropped with a cause. If the head
leaves, the next task of the lane starts in the same step. *Same* means that the phase does not change. "-" means that the event
cannot be about a task in this phase: the task has no run under way, so no run number matches. An event whose run number matches
no task has no effect. Only the step from Running to Completing has the effect CallDone. The *shell*, which is the code around
this machine (`queue.worker`), performs it before the next step, so the success of a cancelled task is never reported. An illegal
event raises IllegalEvent, and changes nothing.

The machine has no clock, no randomness and no I/O: events carry the time (seconds of any monotonic clock) and the random number
that jitter needs. The time of the next retry is not an effect; it is computed from the state (`state.next_wake`), so it is
never outdated.

The cost of a step does not depend on the number of waiting tasks, because states share their common parts (`queue.fifo`).
Only `unique`, a cancelled scope and a drain visit all waiting tasks.
"""

from collections.abc import Callable
from typing import Final, TypeAlias, assert_never

from wharfinger.queue.events import (
    DUPLICATE,
    CallDone,
    CancelRun,
    Completed,
    Draining,
    Dropped,
    Effect,
    Enqueued,
    Event,
    Failed,
    Finished,
    InputChanged,
    Interrupted,
    Report,
    Retired,
    RetryDue,
    ScopeCancelled,
    StartTask,
)
from wharfinger.queue.fifo import Fifo
from wharfinger.queue.state import (
    BackingOff,
    Completing,
    Ending,
    Head,
    History,
    Lane,
    Parked,
    QueueState,
    Running,
)

Answer: TypeAlias = tuple[QueueState, tuple[Effect, ...]]

_BEGUN: Final = (Running, Completing, Ending)
_EMPTY: Final[Fifo[Enqueued]] = Fifo()


class QueueFull(Exception):  # noqa: N818 - a refusal, not an error
    """The lane has as many tasks as its limit allows, so the offered task was not accepted."""


class IllegalEvent(Exception):  # noqa: N818 - named for what happened
    """An event was reported that cannot happen in this state. This is a bug in the code that reports events to the machine."""


def step(state: QueueState, event: Event) -> tuple[QueueState, tuple[Effect, ...]]:
    """Return the state after ``event``, and the effects in their order.

    Raises QueueFull if there is no room for the task, and IllegalEvent if the event cannot happen in this state. In both cases
    nothing has changed.
    """
    match event:
        case Enqueued():
            return _enqueued(state, event)
        case Finished() | Completed() | Failed() | Interrupted():
            for name, lane in state.lanes.items():
                head = lane.head
                if isinstance(head, _BEGUN) and head.run == event.run:
                    return _outcome(state, name, head, event)
            return state, ()
        case RetryDue(now):
            return _retry_due(state, now)
        case InputChanged():
            return _input_changed(state)
        case ScopeCancelled(scope, cause):
            return _leave(state, lambda entry: entry.scope == scope, cause, interrupt=True)
        case Draining(cause, interrupt):
            closing = QueueState(state.rules, state.lanes, state.closing or cause, state.next_run)
            return _leave(closing, lambda _: True, cause, interrupt=interrupt)
        case _:
            assert_never(event)


def _enqueued(state: QueueState, event: Enqueued) -> Answer:
    if state.closing is not None:
        return state, (Dropped(event.task, state.closing),)
    lane = state.lanes.get(event.lane)
    if lane is None:
        run = state.next_run
        started = Lane(Running(event, run), _EMPTY)
        return _with_lane(state, event.lane, started, run + 1), (StartTask(event.task, run),)
    if event.unique and _same_work_waits(lane, event):
        return state, (Dropped(event.task, DUPLICATE),)
    if len(lane.waiting) + 1 >= state.rules.max_tasks:
        raise QueueFull(f"{event.name}: not queued, lane {event.lane} holds {len(lane)} tasks, which is its limit")
    return _with_lane(state, event.lane, Lane(lane.head, lane.waiting.put(event)), state.next_run), ()


def _same_work_waits(lane: Lane, event: Enqueued) -> bool:
    """Return whether a task of the same name and scope is waiting already.

    A running task does not count, because it may have read its inputs before they changed. A task of another scope does not
    count either, because it may be cancelled together with its operation.
    """
    waiting = lane.waiting if isinstance(lane.head, _BEGUN) else lane
    return any(entry.name == event.name and entry.scope == event.scope for entry in waiting)


def _outcome(state: QueueState, lane: str, head: Running | Completing | Ending, report: Report) -> Answer:
    """Return the state after a report about the run of a lane's first task (``head``), and the effects."""
    entry = head.entry
    if isinstance(head, Running) and isinstance(report, Finished):
        if not entry.notifies:
            return _next(state, lane, Retired(entry.task))
        return _with_head(state, lane, Completing(entry, head.run, head.history)), (CallDone(entry.task, head.run),)
    if isinstance(head, Completing) and isinstance(report, Completed):
        return _next(state, lane, Retired(entry.task))
    if isinstance(head, Ending) and not isinstance(report, Completed):
        return _next(state, lane, Dropped(entry.task, head.cause))
    if not isinstance(head, Ending) and isinstance(report, Failed):
        if state.closing is not None:
            return _next(state, lane, Dropped(entry.task, state.closing))
        return _failed(state, lane, head, report)
    raise IllegalEvent(f"{type(report).__name__} for {entry.name!r}, which is {type(head).__name__}")


def _failed(state: QueueState, lane: str, head: Running | Completing, report: Failed) -> Answer:
    entry, history = head.entry, head.history
    failures = history.failures + 1
    failed = History(history.attempt, failures, report.error)
    if isinstance(head, Completing) or (report.permanent and not head.input_changed):
        return _with_head(state, lane, Parked(entry, failed)), ()
    if report.permanent:
        return _run_again(state, lane, entry, History(history.attempt, 0, report.error))
    until = report.at + state.rules.backoff.delay(failures, report.draw)
    return _with_head(state, lane, BackingOff(entry, until, failed)), ()


def _retry_due(state: QueueState, now: float) -> Answer:
    started: list[Effect] = []
    for name, lane in state.lanes.items():
        head = lane.head
        if isinstance(head, BackingOff) and head.until <= now:
            state, effects = _run_again(state, name, head.entry, head.history)
            started += effects
    return state, tuple(started)


def _input_changed(state: QueueState) -> Answer:
    started: list[Effect] = []
    for name, lane in state.lanes.items():
        head = lane.head
        if isinstance(head, Parked):
            history = History(head.history.attempt, 0, head.history.error)
            state, effects = _run_again(state, name, head.entry, history)
            started += effects
        elif isinstance(head, Running):
            state = _with_head(state, name, Running(head.entry, head.run, head.history, input_changed=True))
    return state, tuple(started)


def _leave(state: QueueState, must_leave: Callable[[Enqueued], bool], cause: str, *, interrupt: bool) -> Answer:
    """Drop every task for which ``must_leave`` is true. If ``interrupt`` is set, a running task is interrupted; otherwise it
    stays.
    """
    effects: list[Effect] = []
    started: list[Effect] = []
    lanes: dict[str, Lane] = {}
    run = state.next_run
    for name, lane in state.lanes.items():
        head: Head | None = lane.head
        if must_leave(lane.head.entry) and (interrupt or not isinstance(lane.head, Running | Completing)):
            head, ordered = _ended(lane.head, cause)
            effects += ordered
        gone = [entry for entry in lane.waiting if must_leave(entry)]
        effects += [Dropped(entry.task, cause) for entry in gone]
        waiting = Fifo.of(entry for entry in lane.waiting if not must_leave(entry)) if gone else lane.waiting
        if head is None and waiting:
            entry, waiting = waiting.take()
            head = Running(entry, run)
            started.append(StartTask(entry.task, run))
            run += 1
        if head is not None:
            lanes[name] = Lane(head, waiting)
    return QueueState(state.rules, lanes, state.closing, run), (*effects, *started)


def _ended(head: Head, cause: str) -> tuple[Head | None, tuple[Effect, ...]]:
    """Return the new phase of a lane's head whose task is being dropped, and the effects; the phase is None if the task has
    already left the lane.
    """
    match head:
        case Ending():
            return head, ()
        case Running(entry, run, history):
            return Ending(entry, run, cause, history), (CancelRun(run, cause),)
        case Completing(entry) | BackingOff(entry) | Parked(entry):
            return None, (Dropped(entry.task, cause),)
        case _:
            assert_never(head)


# --- the next state --------------------------------------------------------------------------------------------------------


def _next(state: QueueState, name: str, left: Retired | Dropped) -> Answer:
    """Remove the completed or dropped task at the head of a lane, and start the next task of the lane, if there is one."""
    lanes = dict(state.lanes)
    waiting = lanes[name].waiting
    if waiting:
        run = state.next_run
        entry, rest = waiting.take()
        lanes[name] = Lane(Running(entry, run), rest)
        return QueueState(state.rules, lanes, state.closing, run + 1), (left, StartTask(entry.task, run))
    del lanes[name]
    return QueueState(state.rules, lanes, state.closing, state.next_run), (left,)


def _run_again(state: QueueState, name: str, entry: Enqueued, history: History) -> Answer:
    run = state.next_run
    running = Running(entry, run, History(history.attempt + 1, history.failures, history.error))
    return _with_lane(state, name, Lane(running, state.lanes[name].waiting), run + 1), (StartTask(entry.task, run),)


def _with_head(state: QueueState, name: str, head: Head) -> QueueState:
    return _with_lane(state, name, Lane(head, state.lanes[name].waiting), state.next_run)


def _with_lane(state: QueueState, name: str, lane: Lane, next_run: int) -> QueueState:
    lanes = dict(state.lanes)
    lanes[name] = lane
    return QueueState(state.rules, lanes, state.closing, next_run)
