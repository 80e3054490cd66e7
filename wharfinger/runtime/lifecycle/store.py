"""The lifecycle store: the desired state of each package, and a scope, which queues understand, for each operation that may run.

:mod:`~wharfinger.runtime.lifecycle.lifecycle_machine` explains the decisions, and
:mod:`~wharfinger.runtime.lifecycle.desired_state` what a desired state requires. This module is the shell: it keeps a machine for
each name, gives out the numbers, and turns them into :class:`WorkScope` objects. It neither enqueues nor awaits, so a
decision and its scope are never separated. A cancelled scope's listeners run within the call; they find the store as it is
after the decision.
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
    """The result of `begin_removal`."""

    DONE = "done"
    IN_FLIGHT = "in flight"
    STARTED = "started"


Observe: TypeAlias = Callable[[str, Package | None, Event, Package | None, tuple[Effect, ...]], None]
"""A callback for each step: the name of the package, and its state before and after an event with its effects."""


@dataclass(frozen=True, slots=True)
class _Answer:
    effects: tuple[Effect, ...]
    begun: WorkScope | None


@dataclass(slots=True)
class LifecycleStore:
    """All packages. Synchronous and single-threaded: one call is one atomic step."""

    _packages: dict[str, Package] = field(default_factory=dict)
    _scopes: dict[int, WorkScope] = field(default_factory=dict)
    """The live scopes, by number."""
    _next_scope: int = field(default=1, compare=False)
    observe: Observe | None = field(default=None, compare=False)

    def reconcile(self, name: str, desired: DesiredState) -> Decision:
        """Adopt ``desired`` and return what it requires; nothing is started or cancelled here.

        The state that is adopted already requires nothing, which is no step of the machine.
        """
        known = self._packages.get(name)
        if known is not None and known.removal is None and known.desired == desired:
            return Decision(DecisionKind.NONE)
        for effect in self._step(name, Desired(desired)).effects:
            if isinstance(effect, Decided):
                return effect.decision
        raise AssertionError(f"{name}: the machine gave no decision about a desired state")

    def adopt(self, name: str, desired: DesiredState) -> tuple[Decision, WorkScope | None]:
        """Adopt ``desired`` as `reconcile` does, and begin the update that it requires.

        Return what it requires, and the scope for Download, Install and Load; None if no update was begun.
        """
        decision = self.reconcile(name, desired)
        updates = decision.kind in (DecisionKind.UPDATE, DecisionKind.RESUME)
        return decision, self.begin_update(name) if updates else None

    def track(self, name: str) -> None:
        """Add a package that is known only because it has to be removed; a package that is tracked already is not changed."""
        self._step(name, Tracked())

    def begin_update(self, name: str) -> WorkScope | None:
        """Return a scope for Download, Install and Load; None while removing, suspended or untracked."""
        return self._begin(name, Operation.UPDATE).begun

    def begin_reconciliation(self, name: str, reason: str) -> WorkScope | None:
        """Return a scope for Configure and Run; None while removing, suspended or untracked.

        ``reason`` is the cause with which an earlier reconciliation is cancelled. Raises ValueError if it is empty.
        """
        return self._step(name, BeginReconciliation(self._number(), reason)).begun

    def begin_disable(self, name: str) -> tuple[WorkScope | None, bool]:
        """Return a scope for Disable, and whether it interrupted an update, which has to begin again afterwards.

        There is no scope while removing, suspended (nothing is deleted then) or untracked.
        """
        answer = self._begin(name, Operation.DISABLE)
        return answer.begun, UpdateCutShort() in answer.effects

    def begin_vote(self, name: str) -> WorkScope | None:
        """Return a scope for running the enabled script again; None while removing, suspended or untracked."""
        return self._begin(name, Operation.VOTE).begun

    def begin_suspend(self, name: str) -> WorkScope | None:
        """End all running operations; return a scope for pausing the hooks.

        None if the package is not suspended, is being removed, or is not tracked.
        """
        return self._begin(name, Operation.SUSPEND).begun

    def begin_removal(self, name: str) -> tuple[RemovalStart, WorkScope | None]:
        """Mark the package as being removed. Only the result STARTED comes with a scope."""
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
        """Record that the removal's last task succeeded: the removal cannot be started again. Next, its queue is deleted, and
        `complete_removal` is called.
        """
        self._step(name, RemovalFinished())

    def complete_removal(self, name: str) -> bool:
        """Forget a removed package; False (and nothing changes) unless it is being removed."""
        return not any(isinstance(effect, Refused) for effect in self._step(name, RemovalCompleted()).effects)

    def package(self, name: str) -> Package | None:
        """Return the machine's state of a package; None if the package is not known."""
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
        """Record that the version is applied. A request that arrives later needs another run."""
        self._step(name, RunCompleted())

    def is_applying(self, name: str) -> bool:
        """Return whether a reconciliation is on its way to Run, or in it."""
        package = self._packages.get(name)
        return package is not None and package.applying

    def complete_update(self, name: str) -> None:
        """Record that the version is loaded; a change of settings may be acted on from now on."""
        self._step(name, UpdateCompleted())

    def is_loading(self, name: str) -> bool:
        """Return whether an update runs. The reconciliation after it reads the settings late, so a change of settings needs no
        other reconciliation.
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
        """Apply an event to a package and perform what follows."""
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
                    pass  # an answer, which the caller reads from the effects
                case _:
                    assert_never(effect)
        for scope, cause in cancelled:
            scope.cancel(cause)
        return _Answer(effects, begun)
