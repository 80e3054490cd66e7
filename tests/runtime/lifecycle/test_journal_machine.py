"""The journal of one package, compared with its history. These invariants hold for every interleaving of operations and crashes:

* A step is complete if and only if its completion was reported while it was in flight, after the operation last started from its
  first step. So a complete step is never repeated, and a step that was in flight at a crash is repeated.
* After each crash, an operation continues at most once, with the same fingerprint, and only if no other operation has
  invalidated it.
* An operation that begins a second time in one process starts from its first step.
* A crash loses only memory, because the rows contain the whole state.
"""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.scale import scaled
from wharfinger.runtime.lifecycle.journal_machine import (
    MAX_RESULT,
    MAX_STEPS,
    UNTRUE,
    Begin,
    Complete,
    Drop,
    Effect,
    Event,
    Finish,
    Forget,
    Keep,
    Operation,
    Phase,
    Start,
    State,
    StepLimitError,
    completed,
    restored,
    step,
)

UPDATE, RECONCILIATION, DISABLE, REMOVAL = Operation
STEPS = ("Download", "Install", "hook")


@dataclass
class World:
    """One package in one state folder: the memory of its process, and the rows of the file."""

    state: State = field(default_factory=dict)
    rows: dict[tuple[Operation, str], Keep] = field(default_factory=dict)

    def __call__(self, *events: Event) -> tuple[Effect, ...]:
        effects: tuple[Effect, ...] = ()
        for event in events:
            self.state, effects = step(self.state, event)
            for effect in effects:
                match effect:
                    case Drop():
                        self.rows = {key: row for key, row in self.rows.items() if key[0] is not effect.operation}
                    case Keep():
                        self.rows[effect.operation, effect.name] = effect
        return effects

    def crash(self) -> None:
        self.state = restored(self.rows.values())

    def done(self, operation: Operation) -> dict[str, str]:
        found = {name: completed(self.state, operation, name) for name in STEPS}
        return {name: result for name, result in found.items() if result is not None}


def test_a_step_is_complete_once_it_was_started_and_completed() -> None:
    world = World()
    world(Begin(UPDATE, "f"))
    assert world.done(UPDATE) == {}
    world(Start(UPDATE, "Download"))
    assert world.done(UPDATE) == {}
    world(Complete(UPDATE, "Download", "sha256:1"))
    assert world.done(UPDATE) == {"Download": "sha256:1"}
    assert world(Finish(UPDATE)) == (Drop(UPDATE),)
    assert (world.done(UPDATE), world.rows) == ({}, {})


def interrupted(operation: Operation = UPDATE) -> World:
    """Return a `World` whose process died in the second step of an operation."""
    world = World()
    world(Begin(operation, "f"), Start(operation, "Download"), Complete(operation, "Download", "sha256:1"))
    world(Start(operation, "Install"))
    world.crash()
    assert world.done(operation) == {}  # this process has not begun the operation
    return world


def test_completed_steps_stay_complete_and_steps_in_flight_do_not() -> None:
    world = interrupted()
    assert world(Begin(UPDATE, "f")) == ()
    assert world.done(UPDATE) == {"Download": "sha256:1"}
    assert world.state[UPDATE].steps["Install"].phase is Phase.INTERRUPTED
    assert world(Start(UPDATE, "Install")) == ()  # the row of the step already has this phase
    assert [effect.number for effect in world(Complete(UPDATE, "Install")) if isinstance(effect, Keep)] == [2]
    assert world.done(UPDATE) == {"Download": "sha256:1", "Install": ""}


def test_an_interrupted_step_is_complete_only_after_another_start() -> None:
    world = interrupted()
    world(Begin(UPDATE, "f"), Complete(UPDATE, "Install"))
    assert world.done(UPDATE) == {"Download": "sha256:1"}


def test_another_fingerprint_restarts_the_operation() -> None:
    world = interrupted()
    assert world(Begin(UPDATE, "g")) == (Drop(UPDATE),)
    assert (world.done(UPDATE), world.rows) == ({}, {})


def test_an_operation_begun_again_in_one_process_restarts() -> None:
    world = interrupted()
    world(Begin(UPDATE, "f"), Begin(UPDATE, "f"))
    assert (world.done(UPDATE), world.rows) == ({}, {})


def test_an_interrupted_operation_survives_several_crashes() -> None:
    world = interrupted()
    world.crash()
    world(Begin(UPDATE, "f"))
    world.crash()
    world(Begin(UPDATE, "f"), Start(UPDATE, "Install"), Complete(UPDATE, "Install"))
    world.crash()
    world(Begin(UPDATE, "f"))
    assert list(world.done(UPDATE)) == ["Download", "Install"]


@pytest.mark.parametrize(
    ("left", "begun", "stays"),
    [
        (UPDATE, RECONCILIATION, True),
        (UPDATE, DISABLE, True),
        (UPDATE, REMOVAL, False),
        (RECONCILIATION, UPDATE, True),
        (RECONCILIATION, DISABLE, False),
        (RECONCILIATION, REMOVAL, False),
        (DISABLE, UPDATE, True),
        (DISABLE, RECONCILIATION, False),
        (DISABLE, REMOVAL, False),
        (REMOVAL, UPDATE, False),
        (REMOVAL, RECONCILIATION, False),
        (REMOVAL, DISABLE, False),
    ],
)
def test_an_operation_forgets_the_steps_that_it_invalidates(left: Operation, begun: Operation, *, stays: bool) -> None:
    world = interrupted(left)
    world(Begin(begun, "g"), Begin(left, "f"))
    assert bool(world.done(left)) is stays
    assert bool(world.rows) is stays


def test_invalidation_of_operations_is_symmetric() -> None:
    assert all(operation in UNTRUE[other] for operation in Operation for other in UNTRUE[operation])


def test_a_late_report_of_a_superseded_task_changes_nothing() -> None:
    world = World()
    world(Begin(UPDATE, "f"), Start(UPDATE, "Download"), Begin(UPDATE, "g"), Complete(UPDATE, "Download", "old"))
    assert (world.done(UPDATE), world.rows) == ({}, {})
    world(Finish(UPDATE), Start(UPDATE, "Download"), Complete(UPDATE, "Download", "old"))
    assert (world.done(UPDATE), world.rows) == ({}, {})


def test_starting_or_completing_a_step_again_changes_nothing() -> None:
    world = World()
    world(Begin(UPDATE, "f"), Start(UPDATE, "Download"))
    assert world(Start(UPDATE, "Download")) == ()
    world(Complete(UPDATE, "Download", "first"))
    assert world(Start(UPDATE, "Download")) == ()
    assert world(Complete(UPDATE, "Download", "second")) == ()
    assert world.done(UPDATE) == {"Download": "first"}


def test_steps_and_results_are_limited() -> None:
    world = World()
    world(Begin(UPDATE, "f"), *(Start(UPDATE, f"step {number}") for number in range(MAX_STEPS)))
    before = world.state
    with pytest.raises(
        StepLimitError, match=f"step 'one more' is not recorded: an operation may have at most {MAX_STEPS} steps"
    ):
        world(Start(UPDATE, "one more"))
    world(Start(UPDATE, "step 7"), Complete(UPDATE, "step 7", "x" * MAX_RESULT))
    with pytest.raises(
        StepLimitError, match=f"'step 8' has {MAX_RESULT + 1} characters; the journal keeps at most {MAX_RESULT}"
    ):
        world(Complete(UPDATE, "step 8", "x" * (MAX_RESULT + 1)))
    assert before[UPDATE].steps["step 8"] == world.state[UPDATE].steps["step 8"]


class JournalModel(RuleBasedStateMachine):
    """The journal, compared with its whole history. The expected steps are found by reading the history backwards."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.history: list[Event | None] = []  # None stands for a crash

    @initialize()
    def nothing(self) -> None:
        assert self.world.state == {}

    @rule(
        event=st.one_of(
            st.builds(Begin, st.sampled_from(Operation), st.sampled_from("fg")),
            st.builds(Start, st.sampled_from(Operation), st.sampled_from(STEPS)),
            st.builds(Complete, st.sampled_from(Operation), st.sampled_from(STEPS), st.sampled_from(["", "x", "y"])),
            st.builds(Finish, st.sampled_from(Operation)),
            st.just(Forget()),
        )
    )
    def happens(self, event: Event) -> None:
        self.world(event)
        self.history.append(event)

    @rule(
        operation=st.sampled_from(Operation),
        fingerprint=st.sampled_from("fg"),
        steps=st.lists(st.sampled_from(STEPS), max_size=3),
        crashes=st.booleans(),
    )
    def runs(self, operation: Operation, fingerprint: str, steps: list[str], *, crashes: bool) -> None:
        """Run an operation with some steps as the daemon does, to its end or to a crash in the last step."""
        events: list[Event] = [Begin(operation, fingerprint)]
        for name in steps:
            events += [Start(operation, name), Complete(operation, name, f"of {len(self.history)}")]
        for event in events[:-1] if crashes else [*events, Finish(operation)]:
            self.happens(event)
        if crashes:
            self.crashes()

    @rule()
    def crashes(self) -> None:
        self.world.crash()
        self.history.append(None)

    @invariant()
    def complete_is_what_history_says(self) -> None:
        for operation in Operation:
            assert self.world.done(operation) == told(self.history, operation)

    @invariant()
    def what_contradicts_each_other_is_never_both_on_record(self) -> None:
        on_record = {operation for operation, _ in self.world.rows}
        assert not any(on_record & set(UNTRUE[operation]) for operation in on_record)

    @invariant()
    def the_rows_say_the_same(self) -> None:
        def as_found(state: State) -> State:
            asleep = {
                operation: replace(
                    entry,
                    earlier=True,
                    steps={
                        name: one if one.phase is Phase.COMPLETE else replace(one, phase=Phase.INTERRUPTED)
                        for name, one in entry.steps.items()
                    },
                )
                for operation, entry in state.items()
            }
            return {operation: entry for operation, entry in asleep.items() if entry.steps}

        assert as_found(restored(self.world.rows.values())) == as_found(self.world.state)


def told(history: list[Event | None], operation: Operation) -> dict[str, str]:
    """Return the completed steps of an operation that has begun in this process."""
    beginning = last_beginning(history, operation)
    if beginning is None or None in history[beginning:]:
        return {}
    return steps_since(history, beginning, operation)


def last_beginning(history: list[Event | None], operation: Operation) -> int | None:
    """Return the position at which the operation last began, or None if it has ended or was invalidated since then."""
    enemies = {
        UPDATE: {REMOVAL},
        RECONCILIATION: {DISABLE, REMOVAL},
        DISABLE: {RECONCILIATION, REMOVAL},
        REMOVAL: {UPDATE, RECONCILIATION, DISABLE},
    }
    for index, event in reversed(list(enumerate(history))):
        match event:
            case Begin(operation=begun) if begun is operation:
                return index
            case Begin(operation=begun) if begun in enemies[operation]:
                return None
            case Finish(operation=finished) if finished is operation:
                return None
            case Forget():
                return None
            case _:
                pass
    return None


def steps_since(history: list[Event | None], beginning: int, operation: Operation) -> dict[str, str]:
    """Return the steps completed since the operation began at this position. If the operation continues one that a crash had
    interrupted, add the steps completed before the crash.
    """
    begun = history[beginning]
    assert isinstance(begun, Begin)
    done: dict[str, str] = {}
    before = last_beginning(history[:beginning], operation)
    if before is not None and None in history[before:beginning]:
        left = history[before]
        found = steps_since(history[:beginning], before, operation)
        started = any(isinstance(event, Start) and event.operation is operation for event in history[before:beginning])
        if isinstance(left, Begin) and left.fingerprint == begun.fingerprint and (found or started):
            done = found
    flying: set[str] = set()
    for event in history[beginning:]:
        match event:
            case None:
                break  # later events belong to another beginning
            case Start(operation=of, step=name) if of is operation and name not in done:
                flying.add(name)
            case Complete(operation=of, step=name, result=result) if of is operation and name in flying:
                flying.discard(name)
                done[name] = result
            case _:
                pass
    return done


TestJournalModel = JournalModel.TestCase
TestJournalModel.settings = settings(max_examples=scaled(1_000, 40), stateful_step_count=scaled(60, 30), deadline=None)
