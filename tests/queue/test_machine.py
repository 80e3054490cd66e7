"""Each row of the transition table in the docstring of `wharfinger.queue.machine`."""

import pytest

from wharfinger.queue.backoff import BackoffPolicy
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
    Retired,
    RetryDue,
    ScopeCancelled,
    StartTask,
)
from wharfinger.queue.machine import IllegalEvent, QueueFull, step
from wharfinger.queue.state import BackingOff, Completing, Ending, History, QueueState, Rules, Running

RULES = Rules(max_tasks=4, backoff=BackoffPolicy(initial_s=10, factor=2, max_s=60, jitter=0))
LIFE, OTHER = 100, 200  # The two numbers are scopes.


def after(*events: Event, state: QueueState | None = None) -> tuple[QueueState, tuple[Effect, ...]]:
    """Return the state after all events, and the effects of the last event."""
    state = state or QueueState(RULES)
    effects: tuple[Effect, ...] = ()
    for event in events:
        state, effects = step(state, event)
    return state, effects


def task(
    number: int, *, scope: int = LIFE, lane: str = "main", name: str = "", unique: bool = False, notifies: bool = True
) -> Enqueued:
    return Enqueued(number, name or f"task {number}", scope, at=0.0, lane=lane, unique=unique, notifies=notifies)


def failed(run: int, *, permanent: bool = False, at: float = 0.0) -> Failed:
    return Failed(run, "no route to host", permanent, at, draw=0.5)


def told(state: QueueState, lane: str = "main") -> list[str]:
    """Return a lane as text: each task with its phase and its details."""
    if lane not in state.lanes:
        return []
    head, waiting = state.lanes[lane].head, state.lanes[lane].waiting
    match head:
        case Running():
            phase = f"Running({head.run}{', input changed' if head.input_changed else ''})"
        case Completing():
            phase = f"Completing({head.run})"
        case Ending():
            phase = f"Ending({head.run}, {head.cause})"
        case BackingOff():
            phase = f"BackingOff({head.until:g})"
        case _:
            phase = type(head).__name__
    return [f"{head.entry.task} {phase}", *(f"{entry.task} waits" for entry in waiting)]


IN_PHASE: dict[str, tuple[Event, ...]] = {
    "waiting": (),
    "Running": (task(1), task(2, scope=OTHER)),
    "Completing": (task(1), task(2, scope=OTHER), Finished(1)),
    "Ending": (task(1), task(2, scope=OTHER), ScopeCancelled(LIFE, "superseded")),
    "BackingOff": (task(1), task(2, scope=OTHER), failed(1)),
    "Parked": (task(1), task(2, scope=OTHER), failed(1, permanent=True)),
}
"""The events that bring task 1 (run 1) into each phase, while task 2 of another scope waits behind it."""

SECOND_STARTS = StartTask(2, 2)


@pytest.mark.parametrize(
    ("phase", "event", "head", "effects"),
    [
        ("Running", Finished(1), "1 Completing(1)", (CallDone(1, 1),)),
        ("Running", failed(1, at=5), "1 BackingOff(15)", ()),
        ("Running", failed(1, permanent=True), "1 Parked", ()),
        ("Running", RetryDue(1e9), "1 Running(1)", ()),
        ("Running", InputChanged(), "1 Running(1, input changed)", ()),
        ("Running", ScopeCancelled(LIFE, "superseded"), "1 Ending(1, superseded)", (CancelRun(1, "superseded"),)),
        ("Running", ScopeCancelled(999, "superseded"), "1 Running(1)", ()),
        ("Running", Draining("stop", interrupt=False), "1 Running(1)", (Dropped(2, "stop"),)),
        (
            "Running",
            Draining("stop", interrupt=True),
            "1 Ending(1, stop)",
            (CancelRun(1, "stop"), Dropped(2, "stop")),
        ),
        ("Completing", Completed(1), "2 Running(2)", (Retired(1), SECOND_STARTS)),
        ("Completing", failed(1), "1 Parked", ()),
        ("Completing", RetryDue(1e9), "1 Completing(1)", ()),
        ("Completing", InputChanged(), "1 Completing(1)", ()),
        ("Completing", ScopeCancelled(LIFE, "late"), "2 Running(2)", (Dropped(1, "late"), SECOND_STARTS)),
        ("Completing", Draining("stop", interrupt=False), "1 Completing(1)", (Dropped(2, "stop"),)),
        ("Completing", Draining("stop", interrupt=True), None, (Dropped(1, "stop"), Dropped(2, "stop"))),
        ("Ending", Finished(1), "2 Running(2)", (Dropped(1, "superseded"), SECOND_STARTS)),
        ("Ending", failed(1), "2 Running(2)", (Dropped(1, "superseded"), SECOND_STARTS)),
        ("Ending", failed(1, permanent=True), "2 Running(2)", (Dropped(1, "superseded"), SECOND_STARTS)),
        ("Ending", Interrupted(1), "2 Running(2)", (Dropped(1, "superseded"), SECOND_STARTS)),
        ("Ending", RetryDue(1e9), "1 Ending(1, superseded)", ()),
        ("Ending", InputChanged(), "1 Ending(1, superseded)", ()),
        ("Ending", ScopeCancelled(LIFE, "again"), "1 Ending(1, superseded)", ()),
        ("Ending", Draining("stop", interrupt=True), "1 Ending(1, superseded)", (Dropped(2, "stop"),)),
        ("BackingOff", RetryDue(9.9), "1 BackingOff(10)", ()),
        ("BackingOff", RetryDue(10.0), "1 Running(2)", (StartTask(1, 2),)),
        ("BackingOff", InputChanged(), "1 BackingOff(10)", ()),
        ("BackingOff", ScopeCancelled(LIFE, "superseded"), "2 Running(2)", (Dropped(1, "superseded"), SECOND_STARTS)),
        ("BackingOff", Draining("stop", interrupt=False), None, (Dropped(1, "stop"), Dropped(2, "stop"))),
        ("Parked", RetryDue(1e9), "1 Parked", ()),
        ("Parked", InputChanged(), "1 Running(2)", (StartTask(1, 2),)),
        ("Parked", ScopeCancelled(LIFE, "superseded"), "2 Running(2)", (Dropped(1, "superseded"), SECOND_STARTS)),
        ("Parked", Draining("stop", interrupt=False), None, (Dropped(1, "stop"), Dropped(2, "stop"))),
    ],
)
def test_each_event_has_the_effects_of_the_transition_table(
    phase: str, event: Event, head: str | None, effects: tuple[Effect, ...]
) -> None:
    state, seen = after(*IN_PHASE[phase], event)
    assert seen == effects
    assert next(iter(told(state)), None) == head


@pytest.mark.parametrize(
    ("phase", "event"),
    [
        ("Running", Completed(1)),
        ("Running", Interrupted(1)),
        ("Completing", Finished(1)),
        ("Completing", Interrupted(1)),
        ("Ending", Completed(1)),
    ],
)
def test_an_illegal_event_raises_an_error_that_names_it(phase: str, event: Event) -> None:
    state, _ = after(*IN_PHASE[phase])
    with pytest.raises(IllegalEvent, match=rf"{type(event).__name__} for 'task 1', which is {phase}"):
        step(state, event)


@pytest.mark.parametrize("event", [Finished(1), Completed(1), failed(1), failed(1, permanent=True), Interrupted(1)])
@pytest.mark.parametrize("phase", ["waiting", "BackingOff", "Parked"])
def test_a_report_of_an_ended_run_changes_nothing(phase: str, event: Event) -> None:
    state, _ = after(*IN_PHASE[phase])
    assert step(state, event) == (state, ())


def test_tasks_of_a_lane_run_in_order() -> None:
    state, effects = after(task(1), task(2), task(3))
    assert told(state) == ["1 Running(1)", "2 waits", "3 waits"]
    assert effects == ()
    started = []
    for run in (1, 2, 3):
        state, _ = after(Finished(run), state=state)
        state, effects = after(Completed(run), state=state)
        started += [effect for effect in effects if isinstance(effect, StartTask)]
    assert started == [StartTask(2, 2), StartTask(3, 3)]
    assert state.lanes == {}


def test_a_task_without_a_callback_retires_and_the_next_starts_in_one_step() -> None:
    state, effects = after(task(1, notifies=False), task(2, notifies=False), Finished(1))
    assert (told(state), effects) == (["2 Running(2)"], (Retired(1), StartTask(2, 2)))
    state, effects = after(Finished(2), state=state)
    assert (state.lanes, effects) == ({}, (Retired(2),))


def test_lanes_run_in_parallel_and_a_parked_lane_blocks_no_other() -> None:
    state, effects = after(task(1), failed(1, permanent=True), task(2, lane="events"), task(3, lane="events"))
    assert told(state) == ["1 Parked"]
    assert told(state, "events") == ["2 Running(2)", "3 waits"]
    state, effects = after(Finished(2), Completed(2), state=state)
    assert effects == (Retired(2), StartTask(3, 3))


def test_backoff_grows_and_an_input_change_resets_it() -> None:
    state, _ = after(task(1), failed(1, at=0))
    assert told(state) == ["1 BackingOff(10)"]
    state, _ = after(RetryDue(10), failed(2, at=10), state=state)
    assert told(state) == ["1 BackingOff(30)"]
    state, _ = after(RetryDue(30), failed(3, at=30), state=state)
    assert told(state) == ["1 BackingOff(70)"]
    assert state.lanes["main"].head.history == History(3, 3, "no route to host")
    state, _ = after(RetryDue(70), failed(4, permanent=True), InputChanged(), failed(5, at=100), state=state)
    assert told(state) == ["1 BackingOff(110)"]
    assert state.lanes["main"].head.history == History(5, 1, "no route to host")


def test_a_permanent_failure_on_old_inputs_is_retried_once() -> None:
    state, effects = after(task(1), InputChanged(), failed(1, permanent=True))
    assert effects == (StartTask(1, 2),)
    state, effects = after(failed(2, permanent=True), state=state)
    assert (told(state), effects) == (["1 Parked"], ())


def test_cancelling_a_scope_removes_its_tasks_in_every_phase() -> None:
    state, effects = after(
        task(1, scope=OTHER), task(2), task(3, scope=OTHER), task(4, lane="events"), ScopeCancelled(LIFE, "superseded")
    )
    assert effects == (Dropped(2, "superseded"), CancelRun(2, "superseded"))
    assert told(state) == ["1 Running(1)", "3 waits"]
    assert told(state, "events") == ["4 Ending(2, superseded)"]


def test_a_full_lane_refuses_a_task_and_other_lanes_do_not() -> None:
    state, _ = after(task(1), task(2), task(3), task(4))
    with pytest.raises(QueueFull, match="task 5: not queued, lane main holds 4 tasks, which is its limit"):
        step(state, task(5))
    state, _ = after(task(6, lane="events"), state=state)
    state, _ = after(Finished(1), Completed(1), task(7), state=state)
    assert state.length == 5


def test_unique_allows_one_running_and_one_waiting_task() -> None:
    state, _ = after(task(1, name="sync", unique=True), task(2, name="sync", unique=True))
    assert told(state) == ["1 Running(1)", "2 waits"]
    assert step(state, task(3, name="sync", unique=True)) == (state, (Dropped(3, DUPLICATE),))
    for different in (
        task(3, name="sync"),
        task(3, name="other", unique=True),
        task(3, name="sync", unique=True, scope=OTHER),
        task(3, name="sync", unique=True, lane="events"),
    ):
        assert step(state, different)[0].length == 3


@pytest.mark.parametrize("phase", ["BackingOff", "Parked"])
def test_unique_counts_a_task_that_will_run_again(phase: str) -> None:
    state, _ = after(*IN_PHASE[phase])
    assert step(state, task(3, name="task 1", unique=True)) == (state, (Dropped(3, DUPLICATE),))


def test_a_duplicate_is_distinguished_from_a_full_queue() -> None:
    state, _ = after(task(1), task(2, name="sync"), task(3), task(4))
    assert step(state, task(5, name="sync", unique=True)) == (state, (Dropped(5, DUPLICATE),))


def test_a_closing_queue_accepts_no_tasks_and_does_not_retry() -> None:
    state, _ = after(task(1), Draining("stop", interrupt=False))
    assert step(state, task(2)) == (state, (Dropped(2, "stop"),))
    assert after(failed(1), state=state)[1] == (Dropped(1, "stop"),)
    assert after(Finished(1), failed(1), state=state)[1] == (Dropped(1, "stop"),)
    assert after(Finished(1), Completed(1), state=state)[1] == (Retired(1),)


def test_draining_twice_retains_the_first_cause_and_may_still_interrupt() -> None:
    state, effects = after(task(1), Draining("stop", interrupt=False), Draining("removed", interrupt=True))
    assert effects == (CancelRun(1, "removed"),)
    assert state.closing == "stop"
