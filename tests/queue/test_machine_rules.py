"""The queue machine under random orders of events, compared with a model that knows only the offered tasks and the reports.

These invariants hold:

* a lane has at most one run at a time, strictly in the order of its tasks;
* no task is lost: each offered task is in the queue, or has left it exactly once (retired, dropped with a cause, or refused);
* no lane with tasks stands still: its head is running, completing, ending, backing off or parked;
* only a task with a callback reports success, only after its own run has succeeded, and never after its scope was cancelled;
* a parked task starts only at the event ``InputChanged``, and a task in backoff starts only when its time has come;
* each backoff is within the bounds of the policy, however often the task has failed;
* of a cancelled scope, only a run that is ending remains; a report of an ended run changes nothing;
* a closing queue starts no task and accepts no task;
* a step changes neither the given state nor the event.
"""

import copy

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.events import (
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
from wharfinger.queue.state import BackingOff, Ending, Head, Parked, QueueState, Rules, Running

LANES = st.sampled_from(["main", "events"])
LIMIT = 6
POLICY = BackoffPolicy(initial_s=5, factor=2, max_s=20, jitter=0.5)
SHORTEST_S, LONGEST_S = 2.5, 20.0


class QueueMachine(RuleBasedStateMachine):
    """A model of `wharfinger.queue.worker`, the trio code around the machine. It records the effects of the machine and the
    reported events.
    """

    def __init__(self) -> None:
        super().__init__()
        self.state = QueueState(Rules(LIMIT, POLICY))
        self.now = 0.0
        self.tasks = 0
        self.lane_of: dict[int, str] = {}
        self.scope_of: dict[int, int] = {}
        self.tells: set[int] = set()
        self.live_scopes = [1, 2, 3]
        self.open_runs: dict[int, int] = {}
        self.telling: dict[int, int] = {}
        self.run_task: dict[int, int] = {}
        self.first_starts: list[int] = []
        self.retired: list[int] = []
        self.dropped: list[int] = []

    # --- the shell -----------------------------------------------------------------------------------------------------

    def send(self, event: Event) -> None:
        given = self.state
        kept = copy.deepcopy((given, event))
        heads = {lane.head.entry.task: lane.head for lane in given.lanes.values()}
        try:
            self.state, effects = step(given, event)
        finally:
            assert (given, event) == kept, "a step changed its input"
        for effect in effects:
            self.perform(effect, event, heads)
        self.telling = {run: task for run, task in self.telling.items() if task not in self.retired + self.dropped}

    def perform(self, effect: Effect, event: Event, heads: dict[int, Head]) -> None:
        match effect:
            case StartTask(task, run):
                self.started(task, run, heads.get(task), event)
            case CancelRun(run):
                assert run in self.open_runs
                assert isinstance(event, ScopeCancelled | Draining)
            case CallDone(task, run):
                assert event == Finished(run), "the callback ran without a success"
                assert self.run_task[run] == task
                assert task in self.tells
                assert self.scope_of[task] in self.live_scopes
                self.telling[run] = task
            case Retired(task):
                assert isinstance(event, Completed if task in self.tells else Finished)
                assert self.run_task[event.run] == task
                assert self.scope_of[task] in self.live_scopes
                self.retired.append(task)
            case Dropped(task, cause):
                assert cause
                self.dropped.append(task)

    def started(self, task: int, run: int, before: Head | None, event: Event) -> None:
        assert run not in self.run_task, "a run number was used twice"
        assert self.state.closing is None
        if isinstance(before, Parked):
            assert isinstance(event, InputChanged), "a parked task was started without a changed input"
        if isinstance(before, BackingOff):
            assert isinstance(event, RetryDue)
            assert event.now >= before.until
        if before is None:
            self.first_starts.append(task)
        self.run_task[run] = task
        self.open_runs[run] = task

    # --- what may happen -----------------------------------------------------------------------------------------------

    @rule(lane=LANES, name=st.sampled_from("ab"), which=st.integers(0, 2), unique=st.booleans(), tells=st.booleans())
    def enqueue(self, lane: str, name: str, which: int, unique: bool, tells: bool) -> None:
        if not self.live_scopes:
            return
        self.tasks += 1
        scope = self.live_scopes[which % len(self.live_scopes)]
        before = self.state
        found = before.lanes.get(lane)
        begun = found is not None and not isinstance(found.head, BackingOff | Parked)
        waiting = [entry for entry in list(found or ())[begun:] if (entry.name, entry.scope) == (name, scope)]
        if tells:
            self.tells.add(self.tasks)
        self.lane_of[self.tasks], self.scope_of[self.tasks] = lane, scope
        try:
            self.send(Enqueued(self.tasks, name, scope, self.now, lane, unique, tells))
        except QueueFull:
            assert len(before.lanes[lane]) == LIMIT
            assert self.state is before
            self.dropped.append(self.tasks)
        else:
            refused = self.tasks in self.dropped
            assert refused is (before.closing is not None or (unique and bool(waiting)))

    @rule(which=st.integers(0, 1000), permanent=st.booleans(), draw=st.floats(0, 1, exclude_max=True))
    def fail_run(self, which: int, permanent: bool, draw: float) -> None:
        if run := self.pick_open(which):
            del self.open_runs[run]
            self.send(Failed(run, "error", permanent, self.now, draw))
            for lane in self.state.lanes.values():
                if isinstance(lane.head, BackingOff) and lane.head.entry.task == self.run_task[run]:
                    assert SHORTEST_S <= lane.head.until - self.now <= LONGEST_S + 1e-9

    @rule(which=st.integers(0, 1000))
    def finish_run(self, which: int) -> None:
        if run := self.pick_open(which):
            del self.open_runs[run]
            self.send(Finished(run))

    @rule(which=st.integers(0, 1000))
    def end_interrupted_run(self, which: int) -> None:
        ending = [lane.head.run for lane in self.state.lanes.values() if isinstance(lane.head, Ending)]
        if ending:
            run = ending[which % len(ending)]
            del self.open_runs[run]
            self.send(Interrupted(run))

    @rule(bug=st.booleans())
    def tell(self, bug: bool) -> None:
        if self.telling:
            run = min(self.telling)
            del self.telling[run]
            self.send(Failed(run, "bug", permanent=True, at=self.now, draw=0.0) if bug else Completed(run))

    @rule(which=st.integers(0, 1000), kind=st.sampled_from(["finished", "completed", "failed", "interrupted"]))
    def report_a_run_that_is_over(self, which: int, kind: str) -> None:
        over = sorted(set(self.run_task) - set(self.open_runs) - set(self.telling))
        if over:
            run = over[which % len(over)]
            events: dict[str, Event] = {
                "finished": Finished(run),
                "completed": Completed(run),
                "failed": Failed(run, "late", permanent=True, at=self.now, draw=0.0),
                "interrupted": Interrupted(run),
            }
            assert step(self.state, events[kind]) == (self.state, ())

    @rule(seconds=st.floats(0, 30))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.send(RetryDue(self.now))
        assert all(
            lane.head.until > self.now for lane in self.state.lanes.values() if isinstance(lane.head, BackingOff)
        )

    @rule()
    def change_input(self) -> None:
        self.send(InputChanged())
        assert self.state.closing or not any(isinstance(lane.head, Parked) for lane in self.state.lanes.values())

    @rule(which=st.integers(0, 2))
    def cancel_scope(self, which: int) -> None:
        if self.live_scopes:
            scope = self.live_scopes.pop(which % len(self.live_scopes))
            self.send(ScopeCancelled(scope, "cancelled"))

    @rule(interrupt=st.booleans(), really=st.integers(0, 9))
    def drain(self, interrupt: bool, really: int) -> None:
        if really == 0:
            self.send(Draining("stop", interrupt))

    def pick_open(self, which: int) -> int | None:
        runs = sorted(self.open_runs)
        return runs[which % len(runs)] if runs else None

    # --- what must hold ------------------------------------------------------------------------------------------------

    @invariant()
    def a_lane_has_at_most_one_run_and_the_machine_knows_which(self) -> None:
        lanes = [self.lane_of[task] for task in self.open_runs.values()]
        assert len(lanes) == len(set(lanes))
        heads = [lane.head for lane in self.state.lanes.values()]
        assert {head.run for head in heads if isinstance(head, Running | Ending)} == set(self.open_runs)

    @invariant()
    def a_lane_is_first_in_first_out(self) -> None:
        for name in ("main", "events"):
            entries = [entry.task for entry in self.state.lanes.get(name) or ()]
            starts = [task for task in self.first_starts if self.lane_of[task] == name]
            ends = [task for task in self.retired if self.lane_of[task] == name]
            assert entries == sorted(entries)
            assert starts == sorted(set(starts))
            assert ends == sorted(set(ends))

    @invariant()
    def nothing_of_a_cancelled_scope_stays_but_a_run_that_is_ending(self) -> None:
        for lane in self.state.lanes.values():
            for entry in lane:
                assert entry.scope in self.live_scopes or (isinstance(lane.head, Ending) and entry is lane.head.entry)

    @invariant()
    def every_task_is_here_or_left_exactly_once(self) -> None:
        here = [entry.task for lane in self.state.lanes.values() for entry in lane]
        assert sorted(here + self.retired + self.dropped) == list(range(1, self.tasks + 1))

    @invariant()
    def the_length_is_bounded_and_a_closed_queue_only_finishes(self) -> None:
        assert all(len(lane) <= LIMIT for lane in self.state.lanes.values())
        assert self.state.closing is None or all(len(lane) == 1 for lane in self.state.lanes.values())

    @invariant()
    def an_interruption_cannot_be_reported_for_a_run_nobody_interrupted(self) -> None:
        for lane in self.state.lanes.values():
            if isinstance(lane.head, Running):
                try:
                    step(self.state, Interrupted(lane.head.run))
                except IllegalEvent:
                    continue
                raise AssertionError("accepted")


TestQueueMachine = QueueMachine.TestCase
