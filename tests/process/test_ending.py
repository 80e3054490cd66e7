"""The state machine for ending a run: the paths in the docstring of `wharfinger.process.ending`, and the invariants of all
paths.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.process.command import Ending, Limits
from wharfinger.process.ending import (
    DYING_S,
    FLUSH_CANCELLED_S,
    FLUSH_S,
    CancelRequested,
    Draining,
    Dying,
    Effect,
    Ended,
    Event,
    Flushing,
    HastenTimer,
    IllegalEventError,
    KillEverything,
    Killing,
    LeaderExited,
    OutputExceeded,
    PipeClosed,
    Running,
    SetTimer,
    State,
    Stuck,
    Swept,
    TerminateGroup,
    Terminating,
    TimerFired,
    begin,
    step,
)

LIMITS = Limits(wall_s=60.0, stdout_bytes=1, term_grace_s=7.0, cancel_grace_s=0.5, drain_s=2.0)
EXIT, PIPE, OUTPUT, CANCEL, TIME, SWEPT = (
    LeaderExited(),
    PipeClosed(),
    OutputExceeded(),
    CancelRequested(),
    TimerFired(),
    Swept(),
)
EVENTS: list[Event] = [EXIT, PIPE, OUTPUT, CANCEL, TIME, SWEPT]


def run(*events: Event, limits: Limits = LIMITS) -> tuple[State, list[Effect]]:
    """Return the state after these events, and the effects of all steps."""
    state, first = begin(limits)
    effects = list(first)
    for event in events:
        state, more = step(state, event, limits)
        effects += more
    return state, effects


WALL, TERM, GRACE, DRAIN = SetTimer(60.0), TerminateGroup(), SetTimer(7.0), SetTimer(2.0)
KILL, DYING, FLUSH = KillEverything(), SetTimer(DYING_S), SetTimer(FLUSH_S)
CANCEL_GRACE, HASTEN = SetTimer(0.5), HastenTimer(0.5)
SHORT_FLUSH, HASTEN_FLUSH = SetTimer(FLUSH_CANCELLED_S), HastenTimer(FLUSH_CANCELLED_S)


@pytest.mark.parametrize(
    ("events", "state", "effects"),
    [
        ([], Running(2), [WALL]),
        ([PIPE, PIPE, EXIT, SWEPT], Ended(Ending.EXITED), [WALL, KILL]),
        ([EXIT], Draining(Ending.EXITED, 2), [WALL, DRAIN]),
        ([EXIT, PIPE, PIPE], Killing(Ending.EXITED, 0, leader_gone=True), [WALL, DRAIN, KILL]),
        ([EXIT, TIME, SWEPT], Flushing(Ending.EXITED, 2), [WALL, DRAIN, KILL, FLUSH]),
        ([EXIT, TIME, PIPE, SWEPT, PIPE], Ended(Ending.EXITED), [WALL, DRAIN, KILL, FLUSH]),
        ([EXIT, TIME, SWEPT, TIME], Ended(Ending.EXITED), [WALL, DRAIN, KILL, FLUSH]),
        ([EXIT, OUTPUT, SWEPT, PIPE, PIPE], Ended(Ending.OUTPUT_LIMIT), [WALL, DRAIN, KILL, FLUSH]),
        ([EXIT, CANCEL, SWEPT, PIPE, PIPE], Ended(None), [WALL, DRAIN, KILL, SHORT_FLUSH]),
        ([EXIT, TIME, CANCEL, SWEPT, TIME], Ended(None), [WALL, DRAIN, KILL, SHORT_FLUSH]),
        ([TIME], Terminating(Ending.DEADLINE, 2), [WALL, TERM, GRACE]),
        ([TIME, EXIT], Terminating(Ending.DEADLINE, 2, leader_gone=True), [WALL, TERM, GRACE]),
        ([TIME, EXIT, PIPE, PIPE, SWEPT], Ended(Ending.DEADLINE), [WALL, TERM, GRACE, KILL]),
        ([TIME, PIPE, PIPE, EXIT, SWEPT], Ended(Ending.DEADLINE), [WALL, TERM, GRACE, KILL]),
        ([TIME, TIME, SWEPT], Dying(Ending.DEADLINE, 2), [WALL, TERM, GRACE, KILL, DYING]),
        ([TIME, TIME, SWEPT, PIPE, EXIT, PIPE], Ended(Ending.DEADLINE), [WALL, TERM, GRACE, KILL, DYING, FLUSH]),
        ([TIME, TIME, SWEPT, TIME], Stuck(), [WALL, TERM, GRACE, KILL, DYING]),
        ([TIME, TIME, EXIT, PIPE, PIPE, SWEPT], Ended(Ending.DEADLINE), [WALL, TERM, GRACE, KILL]),
        ([TIME, TIME, CANCEL, OUTPUT, SWEPT, EXIT], Flushing(None, 2), [WALL, TERM, GRACE, KILL, DYING, SHORT_FLUSH]),
        ([OUTPUT, EXIT, PIPE, PIPE, SWEPT], Ended(Ending.OUTPUT_LIMIT), [WALL, TERM, GRACE, KILL]),
        ([CANCEL], Terminating(None, 2), [WALL, TERM, CANCEL_GRACE]),
        ([CANCEL, OUTPUT, EXIT, PIPE, PIPE, SWEPT], Ended(None), [WALL, TERM, CANCEL_GRACE, KILL]),
        ([CANCEL, TIME], Killing(None, 2, leader_gone=False), [WALL, TERM, CANCEL_GRACE, KILL]),
        ([TIME, OUTPUT, CANCEL], Terminating(None, 2), [WALL, TERM, GRACE, HASTEN]),
        ([TIME, EXIT, CANCEL], Terminating(None, 2, leader_gone=True), [WALL, TERM, GRACE, HASTEN]),
        ([EXIT, TIME, SWEPT, CANCEL, PIPE], Flushing(None, 1), [WALL, DRAIN, KILL, FLUSH, HASTEN_FLUSH]),
        ([EXIT, TIME, SWEPT, OUTPUT], Flushing(Ending.OUTPUT_LIMIT, 2), [WALL, DRAIN, KILL, FLUSH]),
        ([TIME, TIME, SWEPT, OUTPUT], Dying(Ending.DEADLINE, 2), [WALL, TERM, GRACE, KILL, DYING]),
    ],
)
def test_events_lead_to_the_expected_state_and_effects(
    events: list[Event], state: State, effects: list[Effect]
) -> None:
    assert run(*events) == (state, effects)


@pytest.mark.parametrize("events", [[CANCEL], [TIME, CANCEL], [OUTPUT, CANCEL]])
def test_the_grace_after_a_cancellation_is_not_longer_than_after_the_deadline(events: list[Event]) -> None:
    _, effects = run(*events, limits=replace(LIMITS, cancel_grace_s=100.0))

    assert effects[-1] in {SetTimer(LIMITS.term_grace_s), HastenTimer(LIMITS.term_grace_s)}


@pytest.mark.parametrize(
    ("events", "illegal"),
    [
        ([], SWEPT),
        ([PIPE, PIPE], PIPE),
        ([EXIT], EXIT),
        ([EXIT], SWEPT),
        ([TIME], SWEPT),
        ([TIME, EXIT], EXIT),
        ([EXIT, TIME], TIME),
        ([EXIT, TIME], EXIT),
        ([TIME, TIME, SWEPT], SWEPT),
        ([EXIT, TIME, SWEPT], SWEPT),
        ([EXIT, TIME, SWEPT], EXIT),
        ([PIPE, PIPE, EXIT, SWEPT], CANCEL),
        ([TIME, TIME, SWEPT, TIME], EXIT),
    ],
)
def test_impossible_events_are_refused(events: list[Event], illegal: Event) -> None:
    state, _ = run(*events)

    with pytest.raises(IllegalEventError, match="cannot happen in"):
        step(state, illegal, LIMITS)


class World:
    """The events that the machine can get at any moment, and the effects that it asks for."""

    def __init__(self) -> None:
        self.state, effects = begin(LIMITS)
        self.pipes, self.alive, self.may_output, self.may_cancel = 2, True, True, True
        self.timer = self.sweeping = self.swept = False
        self.perform(effects)

    def perform(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            self.timer = isinstance(effect, SetTimer) or (self.timer and not isinstance(effect, KillEverything))
            self.sweeping = self.sweeping or isinstance(effect, KillEverything)
            assert self.timer or not isinstance(effect, HastenTimer)

    def possible(self) -> list[Event]:
        can = {
            EXIT: self.alive,
            PIPE: self.pipes > 0,
            OUTPUT: self.pipes > 0 and self.may_output,
            CANCEL: self.may_cancel,
            TIME: self.timer,
            SWEPT: self.sweeping,
        }
        return [event for event in EVENTS if can[event]]

    def tell(self, event: Event) -> None:
        match event:
            case LeaderExited():
                self.alive = False
            case PipeClosed():
                self.pipes -= 1
            case OutputExceeded():
                self.may_output = False
            case CancelRequested():
                self.may_cancel = False
            case TimerFired():
                self.timer = False
            case Swept():
                self.sweeping, self.swept = False, True
        self.state, effects = step(self.state, event, LIMITS)
        self.perform(effects)


@given(st.data())
def test_every_possible_sequence_ends_with_all_processes_dead(data: st.DataObject) -> None:
    world = World()
    told: list[Event] = []
    while not isinstance(world.state, Ended | Stuck):
        event = data.draw(st.sampled_from(world.possible()))
        told.append(event)
        world.tell(event)
        assert len(told) < 20

    assert world.swept
    if isinstance(world.state, Ended):
        assert not world.alive
        assert (world.state.ending is None) == (CANCEL in told)
        if world.state.ending is Ending.EXITED:
            assert OUTPUT not in told
    else:
        assert world.alive


@given(st.lists(st.sampled_from(EVENTS), max_size=15))
def test_any_order_of_events_is_a_step_or_an_illegal_event_error(events: list[Event]) -> None:
    state, _ = begin(LIMITS)
    for event in events:
        before = replace(state)
        try:
            state, effects = step(state, event, LIMITS)
        except IllegalEventError:
            assert state == before
        else:
            assert sum(isinstance(effect, SetTimer) for effect in effects) <= 1
