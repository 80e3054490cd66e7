"""The end of a run as a pure state machine, without trio, clock and signals; :mod:`wharfinger.process.run` performs its
effects.

Theory. A run has a *leader* (the child itself) and two *pipes* (stdout, stderr). The run is over when three things have
happened: the leader has ended, no process of the run is alive any more, and the pipes have been read to their end. The waits
for the last two have time limits. Until the run is over, the leader is not reaped. The kernel reuses neither the pid of a
zombie nor the process group and the session of the same number, so signals sent to that number can only reach this run.

::

    Running ──deadline, output, cancel──► Terminating ──grace over──────────────┐
       │                                       │ leader gone and pipes closed   │
       │ leader gone                           └────────────────────────────────┤
       ▼                                                                        ▼
    Draining ──pipes closed, drain over, output, cancel──────────────────────► Killing
    (Running goes straight to Killing when the pipes are closed already)         │ swept
                                                                                 ▼
                                  Ended ◄──pipes closed, flush over── Flushing ◄─┴─► Dying ──time over──► Stuck
                                                                          ▲            │ leader gone
                                                                          └────────────┘

* Every way to the end leads through Killing: even a child that exits by itself may leave processes behind.
* There is at most one timer; each SetTimer replaces the previous timer. Killing has no timer, because KillEverything has a time
  limit of its own.
* A cancelled task still waits for the end of its run. So a cancellation has a grace of its own, which is usually shorter than
  the grace after the deadline. If a wait has already begun, a cancellation never lengthens it: it can shorten the grace
  (Terminating) and the wait for output that no caller will see (Flushing), and it ends the drain time (Draining).
* The first cause of an end is kept, with two exceptions: output over the limit turns EXITED into OUTPUT_LIMIT (the output is
  incomplete), and a cancellation turns any cause into ``None`` (no caller will see an outcome).
* In Terminating the grace belongs to the whole group: if the leader dies of SIGTERM immediately, as a shell does, the processes
  that it started may still clean up for the rest of the grace, as long as they hold a pipe.
"""

from dataclasses import dataclass, replace
from typing import Final, assert_never

from wharfinger.process.command import Ending, Limits

PIPES: Final = 2
"""The number of pipes that a run waits for by default: stdout and stderr."""
DYING_S: Final = 10.0
"""The time after SIGKILL in which the leader must end. If it has not ended by then, it counts as stuck in the kernel."""
FLUSH_S: Final = 5.0
"""The time to wait for the end of the pipes once all processes are dead. It runs out only if a pipe is held by a process that was
not found or cannot be killed.
"""
FLUSH_CANCELLED_S: Final = 0.1
"""The time to wait for the end of the pipes, in place of FLUSH_S, if the run was cancelled. It is enough to pass on the rest of
the output.
"""


@dataclass(frozen=True, slots=True)
class Running:
    """The state while the child runs. The timer fires at the deadline of the run."""

    pipes: int = PIPES


@dataclass(frozen=True, slots=True)
class Terminating:
    """The state after SIGTERM was sent to the process group. The timer fires at the end of the grace time."""

    ending: Ending | None
    pipes: int
    leader_gone: bool = False


@dataclass(frozen=True, slots=True)
class Draining:
    """The leader has ended, but another process still holds a pipe. The timer fires at the end of the drain time."""

    ending: Ending | None
    pipes: int


@dataclass(frozen=True, slots=True)
class Killing:
    """All remaining processes of the run are being killed."""

    ending: Ending | None
    pipes: int
    leader_gone: bool


@dataclass(frozen=True, slots=True)
class Dying:
    """The state after SIGKILL was sent to all processes, while the leader has not ended yet. The timer fires after DYING_S
    seconds.
    """

    ending: Ending | None
    pipes: int


@dataclass(frozen=True, slots=True)
class Flushing:
    """All processes were killed, but a pipe has not been read to its end. The timer fires after FLUSH_S seconds, or after
    FLUSH_CANCELLED_S seconds if the run was cancelled.
    """

    ending: Ending | None
    pipes: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over, and the leader may be reaped."""

    ending: Ending | None


@dataclass(frozen=True, slots=True)
class Stuck:
    """The state machine has given up, because the leader is still alive after SIGKILL."""


State = Running | Terminating | Draining | Killing | Dying | Flushing | Ended | Stuck


@dataclass(frozen=True, slots=True)
class LeaderExited:
    """The leader, which is the process that was started, has exited and is a zombie now. This event comes at most once."""


@dataclass(frozen=True, slots=True)
class PipeClosed:
    """A pipe, stdout or stderr, has been read to its end. This event comes once for each pipe."""


@dataclass(frozen=True, slots=True)
class OutputExceeded:
    """The output on stdout went beyond its limit. This event comes at most once."""


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """The run must end: the task that waits for it was cancelled, or the ``with`` block of a worker was left."""


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The timer that was set last has expired."""


@dataclass(frozen=True, slots=True)
class Swept:
    """The effect KillEverything was performed."""


Event = LeaderExited | PipeClosed | OutputExceeded | CancelRequested | TimerFired | Swept


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Set the timer, in place of the previous one, so that TimerFired arrives after ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class HastenTimer:
    """Shorten the time of the timer if necessary, so that TimerFired arrives after ``seconds`` at the latest."""

    seconds: float


@dataclass(frozen=True, slots=True)
class TerminateGroup:
    """Send SIGTERM to the process group."""


@dataclass(frozen=True, slots=True)
class KillEverything:
    """Send SIGKILL to all processes of the run, until none is left or the time limit is reached; then report Swept."""


Effect = SetTimer | HastenTimer | TerminateGroup | KillEverything


class IllegalEventError(Exception):
    """The event cannot happen in this state. This is a bug in the caller. The state is unchanged."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"{event} cannot happen in {state}")


def begin(limits: Limits, pipes: int = PIPES) -> tuple[State, tuple[Effect, ...]]:
    """Return the state of a child that has just been started; ``pipes`` is the number of its pipes that the run waits for."""
    return Running(pipes), (SetTimer(limits.wall_s),)


def step(state: State, event: Event, limits: Limits) -> tuple[State, tuple[Effect, ...]]:
    """Return the state after ``event``, and the effects. Raises IllegalEventError."""
    match state:
        case Running():
            return _step_running(state, event, limits)
        case Terminating():
            return _step_terminating(state, event, limits)
        case Draining():
            return _step_draining(state, event)
        case Killing():
            return _step_killing(state, event)
        case Dying():
            return _step_dying(state, event)
        case Flushing():
            return _step_flushing(state, event)
        case Ended() | Stuck():
            raise IllegalEventError(state, event)
        case _:
            assert_never(state)


def _step_running(state: Running, event: Event, limits: Limits) -> tuple[State, tuple[Effect, ...]]:
    def terminate(ending: Ending | None) -> tuple[State, tuple[Effect, ...]]:
        grace_s = limits.term_grace_s if ending is not None else _cancel_grace_s(limits)
        return Terminating(ending, state.pipes), (TerminateGroup(), SetTimer(grace_s))

    match event:
        case LeaderExited():
            if state.pipes:
                return Draining(Ending.EXITED, state.pipes), (SetTimer(limits.drain_s),)
            return _kill(Ending.EXITED, 0, leader_gone=True)
        case PipeClosed():
            return Running(_one_less(state, event)), ()
        case OutputExceeded():
            return terminate(Ending.OUTPUT_LIMIT)
        case CancelRequested():
            return terminate(None)
        case TimerFired():
            return terminate(Ending.DEADLINE)
        case Swept():
            raise IllegalEventError(state, event)
        case _:
            assert_never(event)


def _step_terminating(state: Terminating, event: Event, limits: Limits) -> tuple[State, tuple[Effect, ...]]:
    effects: tuple[Effect, ...] = ()
    match event:
        case LeaderExited() if not state.leader_gone:
            following = replace(state, leader_gone=True)
        case PipeClosed():
            following = replace(state, pipes=_one_less(state, event))
        case OutputExceeded():
            following = replace(state, ending=_cause(state.ending, event))
        case CancelRequested():
            following = replace(state, ending=None)
            effects = (HastenTimer(_cancel_grace_s(limits)),)
        case TimerFired():
            return _kill(state.ending, state.pipes, leader_gone=state.leader_gone)
        case LeaderExited() | Swept():
            raise IllegalEventError(state, event)
        case _:
            assert_never(event)
    if following.leader_gone and following.pipes == 0:
        return _kill(following.ending, 0, leader_gone=True)
    return following, effects


def _step_draining(state: Draining, event: Event) -> tuple[State, tuple[Effect, ...]]:
    match event:
        case PipeClosed():
            pipes = _one_less(state, event)
            return (Draining(state.ending, pipes), ()) if pipes else _kill(state.ending, 0, leader_gone=True)
        case OutputExceeded() | CancelRequested():
            return _kill(_cause(state.ending, event), state.pipes, leader_gone=True)
        case TimerFired():
            return _kill(state.ending, state.pipes, leader_gone=True)
        case LeaderExited() | Swept():
            raise IllegalEventError(state, event)
        case _:
            assert_never(event)


def _step_killing(state: Killing, event: Event) -> tuple[State, tuple[Effect, ...]]:
    match event:
        case LeaderExited() if not state.leader_gone:
            return replace(state, leader_gone=True), ()
        case PipeClosed():
            return replace(state, pipes=_one_less(state, event)), ()
        case OutputExceeded() | CancelRequested():
            return replace(state, ending=_cause(state.ending, event)), ()
        case Swept():
            if state.leader_gone:
                return _flush(state.ending, state.pipes)
            return Dying(state.ending, state.pipes), (SetTimer(DYING_S),)
        case LeaderExited() | TimerFired():
            raise IllegalEventError(state, event)
        case _:
            assert_never(event)


def _step_dying(state: Dying, event: Event) -> tuple[State, tuple[Effect, ...]]:
    match event:
        case LeaderExited():
            return _flush(state.ending, state.pipes)
        case PipeClosed():
            return Dying(state.ending, _one_less(state, event)), ()
        case OutputExceeded() | CancelRequested():
            return Dying(_cause(state.ending, event), state.pipes), ()
        case TimerFired():
            return Stuck(), ()
        case Swept():
            raise IllegalEventError(state, event)
        case _:
            assert_never(event)


def _step_flushing(state: Flushing, event: Event) -> tuple[State, tuple[Effect, ...]]:
    match event:
        case PipeClosed():
            pipes = _one_less(state, event)
            return (Flushing(state.ending, pipes) if pipes else Ended(state.ending)), ()
        case OutputExceeded():
            return Flushing(_cause(state.ending, event), state.pipes), ()
        case CancelRequested():
            return Flushing(None, state.pipes), (HastenTimer(FLUSH_CANCELLED_S),)
        case TimerFired():
            return Ended(state.ending), ()
        case LeaderExited() | Swept():
            raise IllegalEventError(state, event)
        case _:
            assert_never(event)


def _kill(ending: Ending | None, pipes: int, *, leader_gone: bool) -> tuple[State, tuple[Effect, ...]]:
    return Killing(ending, pipes, leader_gone), (KillEverything(),)


def _flush(ending: Ending | None, pipes: int) -> tuple[State, tuple[Effect, ...]]:
    if pipes:
        return Flushing(ending, pipes), (SetTimer(FLUSH_S if ending is not None else FLUSH_CANCELLED_S),)
    return Ended(ending), ()


def _cancel_grace_s(limits: Limits) -> float:
    """Return the time that a cancelled run gets between SIGTERM and SIGKILL. It is never longer than after the deadline."""
    return min(limits.cancel_grace_s, limits.term_grace_s)


def _one_less(state: Running | Terminating | Draining | Killing | Dying | Flushing, event: PipeClosed) -> int:
    if state.pipes == 0:
        raise IllegalEventError(state, event)
    return state.pipes - 1


def _cause(ending: Ending | None, event: OutputExceeded | CancelRequested) -> Ending | None:
    """Return the ending to report for a run that was ending already (as ``ending``) when ``event`` came. Return None if the run
    was cancelled.
    """
    if isinstance(event, CancelRequested):
        return None
    return Ending.OUTPUT_LIMIT if ending is Ending.EXITED else ending
