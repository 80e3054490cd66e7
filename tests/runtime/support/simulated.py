"""One package as a pure model: the lifecycle machine, the queue machine, and between them the actions of the runtime.

Nothing is mocked and nothing waits. The work of a task is a line of code in this module, and the caller that drives the model
decides when a run of a task ends. Each effect of a machine is checked against the effects before it. The model does what the
runtime does, but without a cluster. An update consists of Pause (if a package is loaded), Download, Install and Load. After
Load has succeeded, a reconciliation begins, or a disable if the package is off. A removal consists of Uninstall and Undeploy.
After it, the queue is removed, and then the package is forgotten.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.events import (
    CallDone,
    CancelRun,
    Completed,
    Draining,
    Dropped,
    Enqueued,
    Failed,
    Finished,
    InputChanged,
    Interrupted,
    Retired,
    RetryDue,
    ScopeCancelled,
    StartTask,
)
from wharfinger.queue.events import Event as QueueEvent
from wharfinger.queue.machine import step as queue_step
from wharfinger.queue.state import QueueState, Rules, next_wake
from wharfinger.runtime.lifecycle import lifecycle_machine as lifecycle
from wharfinger.runtime.lifecycle.desired_state import Decision, DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.lifecycle_machine import Operation, Package

RULES: Final = Rules(1000, BackoffPolicy(initial_s=5, factor=2, max_s=20, jitter=0.5))

Outcome = Literal["finished", "failed", "failed for good", "interrupted"]


@dataclass(frozen=True, slots=True)
class SimulatedTask:
    """A task of the model. `SimulatedPackage.tasks` maps the number of each task in the queue to such an object."""

    name: str
    scope: int
    lane: str


@dataclass(slots=True)
class SimulatedPackage:
    """A model of one package. Every public method except `settle` is an event that may happen at any moment."""

    now: float = 0.0
    package: Package | None = None
    queue: QueueState | None = None
    # These fields follow from the effects of the machines.
    live: dict[int, Operation] = field(default_factory=dict)
    causes: dict[int, str] = field(default_factory=dict)
    """For each cancelled scope, why it was cancelled."""
    tasks: dict[int, SimulatedTask] = field(default_factory=dict)
    """The tasks in the queue."""
    runs: dict[int, int] = field(default_factory=dict)
    """The task of each run that has not ended."""
    ending: set[int] = field(default_factory=set)
    telling: dict[int, int] = field(default_factory=dict)
    # This is the state of the package.
    fetched: str = ""
    loaded: str = ""
    configured: str = ""
    applied: str = ""
    present: bool = False
    """True if objects of the package are in the cluster."""
    hooks: int | None = None
    """The scope of the hooks that get events."""
    off: bool = False
    again: DesiredState | None = None
    """A desired state that was set during a removal, and was answered with REMOVING. It is set again after the removal."""
    cleaning: bool = False
    # These are records for the invariants.
    updates: set[int] = field(default_factory=set)
    """The scopes of all updates that were accepted."""
    loads: set[int] = field(default_factory=set)
    """The scopes of the updates whose Load was reported as successful."""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    # --- events from users and the world ----------------------------------------------------------------------------------

    def desired(self, desired: DesiredState) -> Decision:
        """Set the desired state, as a change of the resource does."""
        (answer,) = self._lifecycle(lifecycle.Desired(desired))
        assert isinstance(answer, lifecycle.Decided)
        match answer.decision.kind:
            case DecisionKind.REMOVING:
                self.again = desired
            case DecisionKind.UPDATE | DecisionKind.RESUME:
                self._update()
            case DecisionKind.RECONFIGURE if Operation.UPDATE in self.live.values():
                self.change_input()  # a running Load reads the settings at its end
            case DecisionKind.RECONFIGURE if self.loaded and not self.off:
                self._reconcile("settings changed")
            case DecisionKind.SUSPEND:
                if scope := self._begin(Operation.SUSPEND):
                    self._enqueue(scope, "Pause")
            case _:
                pass
        return answer.decision

    def delete(self) -> None:
        """Delete the resource."""
        self.again = None
        self._lifecycle(lifecycle.Tracked())
        if scope := self._begin(Operation.REMOVAL):
            self._enqueue(scope, "Uninstall", "Undeploy")

    def restart_removal(self) -> None:
        """Restart the removal with other options, as a user does."""
        scope = next(self.numbers)
        if lifecycle.BeginScope(scope, Operation.REMOVAL) in self._lifecycle(lifecycle.RestartRemoval(scope)):
            self._enqueue(scope, "Uninstall", "Undeploy")

    def turn(self, *, off: bool) -> None:
        """Process a decision of the scheduler that the package is off or on."""
        flipped, self.off = off is not self.off, off
        if not flipped or not self.loaded:
            return
        if off:
            self._disable()
        else:
            self._reconcile("enabled")

    def hook_event(self) -> None:
        """Report an event for which a hook has a binding."""
        if self.hooks is not None:
            self._enqueue(self.hooks, "Hook", lane="events", unique=True)

    # --- events from time and tasks ----------------------------------------------------------------------------------------

    def end_run(self, run: int, outcome: Outcome) -> None:
        """End a run with this outcome. The outcome may be "interrupted" only if the queue machine has cancelled the run."""
        task = self.tasks.get(self.runs.pop(run))
        assert task is not None, "a run continues after its task was removed"
        superseded = run in self.ending
        self.ending.discard(run)
        assert superseded or outcome != "interrupted"
        if outcome == "finished":
            self._did(task, superseded=superseded)
        events: dict[Outcome, QueueEvent] = {
            "finished": Finished(run),
            "failed": Failed(run, "error", permanent=False, at=self.now, draw=0.5),
            "failed for good": Failed(run, "error", permanent=True, at=self.now, draw=0.5),
            "interrupted": Interrupted(run),
        }
        self._queue(events[outcome])

    def tell(self, run: int) -> None:
        """Report the success of a run to the machines, unless its task has left the queue."""
        number = self.telling.pop(run)
        if number not in self.tasks:
            return
        task = self.tasks[number]
        assert task.scope in self.live or task.scope == self.hooks, (
            f"{task} was superseded, but its success is reported"
        )
        match task.name:
            case "Load":
                self.loads.add(task.scope)
                self._lifecycle(lifecycle.UpdateCompleted())
                if self.off:
                    self._disable()
                else:
                    self._reconcile("loaded")
            case "Run":
                self._lifecycle(lifecycle.RunCompleted())
            case "Undeploy":
                self._lifecycle(lifecycle.RemovalFinished())
                self.cleaning = True
        self._queue(Completed(run))

    def pass_time(self, seconds: float) -> None:
        """Let the clock advance."""
        self.now += seconds
        self._queue(RetryDue(self.now))

    def change_input(self) -> None:
        """Report that an input has changed. With the new input, failed tasks may succeed."""
        self._queue(InputChanged())

    def clean(self) -> None:
        """Finish a removal: remove the queue, and then forget the package."""
        if not self.cleaning:
            return
        self._queue(Draining("the package is removed", interrupt=True))
        if self.runs:
            return
        assert not self.tasks, "a task remains after its queue was removed"
        self.queue, self.cleaning = None, False
        self._lifecycle(lifecycle.RemovalCompleted())
        assert self.package is None
        assert not self.live
        self.fetched = self.loaded = self.configured = self.applied = ""
        self.off = False
        if self.again is not None:
            desired, self.again = self.again, None
            self.desired(desired)

    def settle(self) -> None:
        """Let all work succeed from now on, and wait until no work is left."""
        for _ in range(200):
            self.change_input()
            if self.queue is not None and (wake := next_wake(self.queue)) is not None:
                self.pass_time(max(0.0, wake - self.now))
            for run in sorted(self.runs):
                self.end_run(run, "interrupted" if run in self.ending else "finished")
            for run in sorted(self.telling):
                self.tell(run)
            self.clean()
            if not (self.tasks or self.runs or self.telling or self.cleaning):
                return
        raise AssertionError(f"never becomes idle: {self.tasks}")

    # --- inside: operations --------------------------------------------------------------------------------------------

    def _begin(self, operation: Operation) -> int | None:
        scope = next(self.numbers)
        effects = self._lifecycle(lifecycle.Begin(operation, scope))
        if lifecycle.BeginScope(scope, operation) not in effects:
            return None
        return scope

    def _update(self) -> None:
        if scope := self._begin(Operation.UPDATE):
            self.updates.add(scope)
            self._enqueue(scope, *(["Pause"] if self.loaded else []), "Download", "Install", "Load")

    def _reconcile(self, reason: str) -> None:
        scope = next(self.numbers)
        effects = self._lifecycle(lifecycle.BeginReconciliation(scope, reason))
        if lifecycle.BeginScope(scope, Operation.RECONCILIATION) in effects:
            self._enqueue(scope, "Configure", "Startup", "Run", "WaitReady")

    def _disable(self) -> None:
        scope = next(self.numbers)
        effects = self._lifecycle(lifecycle.Begin(Operation.DISABLE, scope))
        if lifecycle.BeginScope(scope, Operation.DISABLE) in effects:
            self._enqueue(scope, "Disable")
        if lifecycle.UpdateCutShort() in effects:
            self._update()

    def _started(self, task: SimulatedTask) -> None:
        """Record what a task reads when it begins."""
        assert self.package is not None, f"{task} runs, and its package is gone"
        if task.name == "Download":
            self.fetched = self.package.desired.version
        elif task.name == "Configure":
            self.configured = self.package.desired.settings_checksum

    def _did(self, task: SimulatedTask, *, superseded: bool) -> None:
        """Perform the work of a task.

        The work in the cluster is done even if the task was superseded, but its result does not count in this case.
        """
        match task.name:
            case "Run":
                self.present = True
                self.applied = self.applied if superseded else self.configured
            case "Disable" | "Uninstall":
                self.present = False
                self._rest()
            case "Pause":
                self._rest()
            case "Load" if not superseded:
                self.loaded = self.fetched
            case "Startup" if not superseded:
                self._rest()
                self.hooks = next(self.numbers)

    def _rest(self) -> None:
        if self.hooks is not None:
            scope, self.hooks = self.hooks, None
            self._queue(ScopeCancelled(scope, "the hooks are stopped"))

    # --- inside: the machines ------------------------------------------------------------------------------------------

    def _lifecycle(self, event: lifecycle.Event) -> tuple[lifecycle.Effect, ...]:
        self.package, effects = lifecycle.step(self.package, event)
        for effect in effects:
            match effect:
                case lifecycle.BeginScope(scope, operation):
                    assert operation not in self.live.values(), f"two of {operation}"
                    self.live[scope] = operation
                case lifecycle.CancelScope(scope, cause):
                    del self.live[scope]
                    self.causes[scope] = cause
                    self._queue(ScopeCancelled(scope, cause))
                case lifecycle.EndScope(scope):
                    del self.live[scope]
                case _:
                    pass
        return effects

    def _enqueue(self, scope: int, *names: str, lane: str = "main", unique: bool = False) -> None:
        self.queue = self.queue or QueueState(RULES)
        for name in names:
            number = next(self.numbers)
            self.tasks[number] = SimulatedTask(name, scope, lane)
            self._queue(Enqueued(number, name, scope, self.now, lane, unique))

    def _queue(self, event: QueueEvent) -> None:
        if self.queue is None:
            return
        self.queue, effects = queue_step(self.queue, event)
        for effect in effects:
            match effect:
                case StartTask(number, run):
                    task = self.tasks[number]
                    assert task.scope in self.live or task.scope == self.hooks, f"{task} starts, and was superseded"
                    assert all(self.tasks[other].lane != task.lane for other in self.runs.values()), (
                        "two runs in one lane"
                    )
                    assert not self.cleaning, f"{task} starts, and the package is on its way out"
                    self.runs[run] = number
                    self._started(task)
                case CancelRun(run, cause):
                    assert cause
                    self.ending.add(run)
                case CallDone(number, run):
                    self.telling[run] = number
                case Retired(number):
                    del self.tasks[number]
                case Dropped(number, cause):
                    assert cause
                    del self.tasks[number]


def suspended(desired: DesiredState) -> DesiredState:
    """Return this desired state with ``suspended`` set to true."""
    return replace(desired, suspended=True)
