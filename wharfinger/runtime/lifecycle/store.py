"""The lifecycle store: the desired state of each package, and a cancel scope for each operation that runs.

:mod:`~wharfinger.runtime.lifecycle.lifecycle_machine` explains the decisions about operations, and
:mod:`~wharfinger.runtime.lifecycle.desired_state` the work that a desired state requires. This module has a state machine for
each package, assigns the numbers of scopes, and makes a :class:`WorkScope` for each number. It does not await, so no other
event comes between a decision and the creation of its scope. The listeners of a cancelled scope run within the call, and see
the store as it is after the decision.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, assert_never

from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.lifecycle.desired_state import Decision, DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.lifecycle_machine import (
    Begin,
    BeginReconciliation,
    BeginScope,
    CancelScope,
    Decided,
    Desired,
    Effect,
    EndScope,
    Event,
    Operation,
    Package,
    Refusal,
    Refused,
    RemovalCompleted,
    RemovalFinished,
    RestartRemoval,
    RunCompleted,
    Tracked,
    UpdateCompleted,
    UpdateCutShort,
    step,
)


class RemovalStart(Enum):
    """The result of `begin_removal`. STARTED: the removal begins. IN_FLIGHT: the package is already being removed. DONE: the
    package is not known.
    """

    DONE = "done"
    IN_FLIGHT = "in flight"
    STARTED = "started"


Observe: TypeAlias = Callable[[str, Package | None, Event, Package | None, tuple[Effect, ...]], None]
"""A callback for each event. It gets the name of the package, its state before the event, the event, its state after the event,
and the effects.
"""


@dataclass(frozen=True, slots=True)
class _Answer:
    effects: tuple[Effect, ...]
    begun: WorkScope | None


@dataclass(slots=True)
class LifecycleStore:
    """The desired states and operations of all packages. Synchronous and single-threaded: one call is one atomic step."""

    _packages: dict[str, Package] = field(default_factory=dict)
    _scopes: dict[int, WorkScope] = field(default_factory=dict)
    """The live scopes, by number."""
    _next_scope: int = field(default=1, compare=False)
    observe: Observe | None = field(default=None, compare=False)

    def reconcile(self, name: str, desired: DesiredState) -> Decision:
        """Adopt ``desired``, and return the work that it requires. Nothing is started or cancelled here.

        If ``desired`` equals the adopted state, no work is required, and the state machine takes no step.
        """
        known = self._packages.get(name)
        if known is not None and known.removal is None and known.desired == desired:
            return Decision(DecisionKind.NONE)
        for effect in self._step(name, Desired(desired)).effects:
            if isinstance(effect, Decided):
                return effect.decision
        raise AssertionError(f"{name}: a bug in Wharfinger: no decision was made about a desired state")

    def adopt(self, name: str, desired: DesiredState) -> tuple[Decision, WorkScope | None]:
        """Adopt ``desired`` as `reconcile` does, and begin the update that it requires.

        Return the work that ``desired`` requires, and the scope for Download, Install and Load; the scope is None if no
        update was begun.
        """
        decision = self.reconcile(name, desired)
        updates = decision.kind in (DecisionKind.UPDATE, DecisionKind.RESUME)
        return decision, self.begin_update(name) if updates else None

    def track(self, name: str) -> None:
        """Add a package that is known only because it has to be removed; nothing is changed if the package is already known."""
        self._step(name, Tracked())

    def begin_update(self, name: str) -> WorkScope | None:
        """Return a scope for Download, Install and Load; None if the package is being removed, suspended or not known."""
        return self._begin(name, Operation.UPDATE).begun

    def begin_reconciliation(self, name: str, reason: str) -> WorkScope | None:
        """Return a scope for Configure and Run; None if the package is being removed, suspended or not known.

        ``reason`` is the cause with which an earlier reconciliation is cancelled. Raises ValueError if it is empty.
        """
        return self._step(name, BeginReconciliation(self._number(), reason)).begun

    def begin_disable(self, name: str) -> tuple[WorkScope | None, bool]:
        """Return a scope for Disable, and whether it interrupted an update, which has to begin again afterwards.

        The scope is None if the package is being removed, suspended (because nothing is deleted then) or not known.
        """
        answer = self._begin(name, Operation.DISABLE)
        return answer.begun, UpdateCutShort() in answer.effects

    def begin_vote(self, name: str) -> WorkScope | None:
        """Return a scope for another run of the enabled script; None if the package is being removed, suspended or not known."""
        return self._begin(name, Operation.VOTE).begun

    def begin_suspend(self, name: str) -> WorkScope | None:
        """Cancel all running operations, and return a scope for the task that stops the hooks.

        Return None, without any change, if the package is not suspended, is being removed, or is not known.
        """
        return self._begin(name, Operation.SUSPEND).begun

    def begin_removal(self, name: str) -> tuple[RemovalStart, WorkScope | None]:
        """Mark the package as being removed. Return the result, with a scope if the result is STARTED."""
        answer = self._begin(name, Operation.REMOVAL)
        if answer.begun is not None:
            return RemovalStart.STARTED, answer.begun
        return RemovalStart.DONE if Refused(Refusal.UNKNOWN) in answer.effects else RemovalStart.IN_FLIGHT, None

    def restart_removal(self, name: str) -> WorkScope | None:
        """Cancel the tasks of a running removal and return a new scope for it; None if no removal runs, or its last task has
        succeeded.
        """
        return self._step(name, RestartRemoval(self._number())).begun

    def finish_removal(self, name: str) -> None:
        """Record that the removal's last task has succeeded, so that the removal cannot be started again. Next, the package's
        queue is deleted, and `complete_removal` is called.
        """
        self._step(name, RemovalFinished())

    def complete_removal(self, name: str) -> bool:
        """Forget a removed package. Return False, without any change, if the package is not being removed."""
        return not any(isinstance(effect, Refused) for effect in self._step(name, RemovalCompleted()).effects)

    def package(self, name: str) -> Package | None:
        """Return the state of a package in the state machine; None if the package is not known."""
        return self._packages.get(name)

    def is_removing(self, name: str) -> bool:
        """Return whether a removal runs."""
        package = self._packages.get(name)
        return package is not None and package.removal is not None

    def is_suspended(self, name: str) -> bool:
        """Return whether a user has suspended the package. A removal is carried out nevertheless."""
        package = self._packages.get(name)
        return package is not None and package.desired.suspended

    def complete_run(self, name: str) -> None:
        """Record that the version is applied. From now on, a further request needs another run."""
        self._step(name, RunCompleted())

    def is_applying(self, name: str) -> bool:
        """Return whether a reconciliation of the package is under way, and its task Run is not complete yet."""
        package = self._packages.get(name)
        return package is not None and package.applying

    def complete_update(self, name: str) -> None:
        """Record that the version is loaded. From now on, a change of settings needs another reconciliation."""
        self._step(name, UpdateCompleted())

    def is_loading(self, name: str) -> bool:
        """Return whether an update of the package is under way. If so, a change of settings needs no reconciliation of its own,
        because the reconciliation after the update reads the newest settings.
        """
        package = self._packages.get(name)
        return package is not None and package.update is not None

    # --- inside --------------------------------------------------------------------------------------------------------

    def _number(self) -> int:
        self._next_scope += 1
        return self._next_scope - 1

    def _begin(self, name: str, operation: Operation) -> _Answer:
        return self._step(name, Begin(operation, self._number()))

    def _step(self, name: str, event: Event) -> _Answer:
        """Process an event of a package, and carry out its effects."""
        before = self._packages.get(name)
        after, effects = step(before, event)
        if self.observe is not None:
            self.observe(name, before, event, after, effects)
        if after is None:
            self._packages.pop(name, None)
        else:
            self._packages[name] = after
        begun = None
        cancelled: list[tuple[WorkScope, str]] = []
        for effect in effects:
            match effect:
                case BeginScope(number, operation):
                    begun = self._scopes[number] = WorkScope(f"{operation.value} of {name}")
                case CancelScope(number, cause):
                    cancelled.append((self._scopes.pop(number), cause))
                case EndScope(number):
                    del self._scopes[number]
                case Decided() | Refused() | UpdateCutShort():
                    pass  # the caller finds this answer in the effects
                case _:
                    assert_never(effect)
        for scope, cause in cancelled:
            scope.cancel(cause)
        return _Answer(effects, begun)
