"""The lifecycle machine under every order of events, compared with a model of its inputs.

Invariants that hold after every step:

* At most one operation of each kind runs at a time, so at most one scope of each kind is open.
* After a removal is complete, nothing runs. A forgotten package has no open scope, and none begins until the package is desired
  or tracked again.
* During a removal, only the scope of the removal is open. During a suspension, only the scope of the suspension is open.
* A scope is cancelled or ended only after it has begun, and at most once. A cancellation has a cause.
* A desired state is either adopted, or answered with REMOVING.
* A refused event changes nothing.
"""

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from wharfinger.runtime.lifecycle.desired_state import DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.lifecycle_machine import (
    NOTHING,
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

V1: Final = DesiredState("https://r", "web", "1.0.0", "sha256:a")
DESIRED_STATES: Final = (V1, replace(V1, version="2.0.0"), replace(V1, settings_checksum="sha256:b"))
SUSPENDED: Final = tuple(replace(desired, suspended=True) for desired in DESIRED_STATES)
BUSY: Final = Package(V1, update=1, reconciliation=2, disabling=3, vote=4, applying=True)

PLAIN: Final = (Operation.UPDATE, Operation.DISABLE, Operation.VOTE)
"""Operations that the event `Begin` begins, and that are refused while the package is suspended."""


def begin(operation: Operation, scope: int) -> Event:
    """Return the event that begins this operation."""
    if operation is Operation.RECONCILIATION:
        return BeginReconciliation(scope, "because")
    return Begin(operation, scope)


# --- the tables at the top of the machine ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "after", "causes"),
    [
        (
            Operation.UPDATE,
            Package(V1, update=9, disabling=3),
            {1: "update superseded", 2: "update started", 4: "update started"},
        ),
        (Operation.RECONCILIATION, replace(BUSY, reconciliation=9, disabling=None), {2: "because", 3: "because"}),
        (
            Operation.DISABLE,
            Package(V1, disabling=9, vote=4),
            {1: "disabled", 2: "disabled", 3: "disabled"},
        ),
        (Operation.VOTE, replace(BUSY, vote=9), {4: "asked again"}),
        (Operation.REMOVAL, Package(V1, removal=9), dict.fromkeys((1, 2, 3, 4), "removal started")),
    ],
)
def test_an_operation_cancels_conflicting_operations_at_its_start(
    operation: Operation, after: Package, causes: dict[int, str]
) -> None:
    package, effects = step(BUSY, begin(operation, 9))
    assert package == after
    assert {effect.scope: effect.cause for effect in effects if isinstance(effect, CancelScope)} == causes
    assert BeginScope(9, operation) in effects
    assert (UpdateCutShort() in effects) is (operation is Operation.DISABLE)


def test_a_suspension_cancels_all_operations_and_an_update_ends_it() -> None:
    suspended = replace(BUSY, desired=SUSPENDED[0])
    package, effects = step(suspended, begin(Operation.SUSPEND, 9))
    assert package == Package(SUSPENDED[0], suspension=9)
    assert effects == (*(CancelScope(scope, "suspended") for scope in (1, 2, 3, 4)), BeginScope(9, Operation.SUSPEND))
    again, effects = step(package, begin(Operation.SUSPEND, 10))
    assert again == Package(SUSPENDED[0], suspension=10)
    assert CancelScope(9, "suspended") in effects
    resumed, effects = step(again, Desired(V1))
    assert resumed == Package(V1, suspension=10)
    assert step(resumed, begin(Operation.UPDATE, 11)) == (
        Package(V1, update=11),
        (CancelScope(10, "resumed"), BeginScope(11, Operation.UPDATE)),
    )


@pytest.mark.parametrize("operation", Operation)
def test_operations_are_refused_while_unknown_removing_or_suspended(operation: Operation) -> None:
    event = begin(operation, 9)
    assert step(None, event) == (None, (Refused(Refusal.UNKNOWN),))
    removing = Package(V1, removal=1)
    assert step(removing, event) == (removing, (Refused(Refusal.REMOVING),))
    resting = Package(SUSPENDED[0], suspension=1)
    refused = step(resting, event) == (resting, (Refused(Refusal.SUSPENDED),))
    assert refused is (operation in {*PLAIN, Operation.RECONCILIATION})


def test_a_suspension_is_refused_unless_the_package_is_suspended() -> None:
    assert step(BUSY, begin(Operation.SUSPEND, 9)) == (BUSY, (Refused(Refusal.NOT_SUSPENDED),))


def test_only_a_running_removal_can_be_completed() -> None:
    assert step(None, RemovalCompleted()) == (None, (Refused(Refusal.UNKNOWN),))
    assert step(BUSY, RemovalCompleted()) == (BUSY, (Refused(Refusal.NOT_REMOVING),))
    assert step(Package(V1, removal=1), RemovalCompleted()) == (None, (CancelScope(1, "removal complete"),))


def test_a_desired_state_during_a_removal_is_answered_with_removing() -> None:
    removing = Package(V1, removal=1)
    package, (answer,) = step(removing, Desired(DESIRED_STATES[1]))
    assert package == removing
    assert isinstance(answer, Decided)
    assert answer.decision.kind is DecisionKind.REMOVING


def test_a_removal_is_restarted_only_if_it_runs() -> None:
    assert step(None, RestartRemoval(9)) == (None, (Refused(Refusal.UNKNOWN),))
    assert step(BUSY, RestartRemoval(9)) == (BUSY, (Refused(Refusal.NOT_REMOVING),))
    assert step(Package(V1, removal=1), RestartRemoval(9)) == (
        Package(V1, removal=9),
        (CancelScope(1, "removal started again"), BeginScope(9, Operation.REMOVAL)),
    )


def test_a_finished_removal_is_not_restarted_and_refuses_operations() -> None:
    leaving = Package(V1, removal=1, leaving=True)
    assert step(Package(V1, removal=1), RemovalFinished()) == (leaving, ())
    assert step(leaving, RestartRemoval(9)) == (leaving, (Refused(Refusal.LEAVING),))
    assert step(leaving, begin(Operation.UPDATE, 9)) == (leaving, (Refused(Refusal.REMOVING),))
    assert step(leaving, RemovalCompleted())[0] is None
    assert step(BUSY, RemovalFinished()) == (BUSY, (Refused(Refusal.NOT_REMOVING),))
    assert step(None, RemovalFinished()) == (None, (Refused(Refusal.UNKNOWN),))


def test_tracking_adds_an_unknown_package_and_changes_no_other() -> None:
    assert step(None, Tracked()) == (Package(NOTHING), ())
    assert step(BUSY, Tracked()) == (BUSY, ())


def test_completed_operations_end_their_scope() -> None:
    assert step(BUSY, UpdateCompleted()) == (replace(BUSY, update=None), (EndScope(1),))
    assert step(Package(V1), UpdateCompleted()) == (Package(V1), ())
    assert step(BUSY, RunCompleted()) == (replace(BUSY, applying=False), ())
    assert step(None, UpdateCompleted())[0] is None
    assert step(None, RunCompleted())[0] is None


def test_a_reconciliation_needs_its_own_event_and_a_reason() -> None:
    with pytest.raises(ValueError, match="BeginReconciliation"):
        step(Package(V1), Begin(Operation.RECONCILIATION, 9))
    with pytest.raises(ValueError, match="reason"):
        step(Package(V1), BeginReconciliation(9, ""))


# --- every order -----------------------------------------------------------------------------------------------------------


class LifecycleMachine(RuleBasedStateMachine):
    """The lifecycle machine of one package, with a model of its open scopes and of its adopted desired state."""

    def __init__(self) -> None:
        super().__init__()
        self.package: Package | None = None
        self.numbers = 0
        self.live: dict[int, Operation] = {}
        self.over: set[int] = set()
        self.adopted: DesiredState | None = None
        self.leaving = False

    def send(self, event: Event) -> tuple[Effect, ...]:
        before = self.package
        self.package, effects = step(before, event)
        for effect in effects:
            match effect:
                case BeginScope(scope, operation):
                    assert scope not in self.live
                    assert scope not in self.over
                    self.live[scope] = operation
                case CancelScope(scope, cause):
                    assert cause
                    self.retire(scope)
                case EndScope(scope):
                    self.retire(scope)
                case Refused():
                    assert self.package == before
                    assert effects == (effect,)
                case UpdateCutShort():
                    assert before is not None
                    assert before.update in self.over
                case Decided():
                    assert isinstance(event, Desired)
        return effects

    def retire(self, scope: int) -> None:
        del self.live[scope]
        self.over.add(scope)

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    @property
    def removing(self) -> bool:
        return Operation.REMOVAL in self.live.values()

    @rule(desired=st.sampled_from(DESIRED_STATES + SUSPENDED))
    def desired(self, desired: DesiredState) -> None:
        (answer,) = self.send(Desired(desired))
        assert isinstance(answer, Decided)
        assert (answer.decision.kind is DecisionKind.REMOVING) is self.removing
        if not self.removing:
            self.adopted = desired

    @rule(operation=st.sampled_from(Operation))
    def begin(self, operation: Operation) -> None:
        scope = self.number()
        self.send(begin(operation, scope))
        assert (scope in self.live) is self.may_begin(operation, scope)

    def may_begin(self, operation: Operation, scope: int) -> bool:
        """Return whether the model allows an operation to begin, given the adopted state and the open scopes."""
        if self.adopted is None or any(old is Operation.REMOVAL for n, old in self.live.items() if n != scope):
            return False
        if operation is Operation.REMOVAL:
            return True
        return self.adopted.suspended is (operation is Operation.SUSPEND)

    @rule()
    def track(self) -> None:
        self.send(Tracked())
        self.adopted = self.adopted or NOTHING

    @rule()
    def restart_removal(self) -> None:
        expected, scope = self.removing and not self.leaving, self.number()
        self.send(RestartRemoval(scope))
        assert (scope in self.live) is expected

    @rule()
    def finish_removal(self) -> None:
        self.send(RemovalFinished())
        self.leaving = self.removing

    @rule()
    def complete_update(self) -> None:
        loading = Operation.UPDATE in self.live.values()
        effects = self.send(UpdateCompleted())
        assert any(isinstance(effect, EndScope) for effect in effects) is loading
        assert Operation.UPDATE not in self.live.values()

    @rule()
    def complete_run(self) -> None:
        live = dict(self.live)
        self.send(RunCompleted())
        assert self.live == live

    @precondition(lambda self: self.removing)
    @rule()
    def complete_removal(self) -> None:
        self.send(RemovalCompleted())
        assert self.package is None
        self.adopted, self.leaving = None, False

    @precondition(lambda self: not self.removing)
    @rule()
    def complete_a_removal_that_does_not_run(self) -> None:
        (answer,) = self.send(RemovalCompleted())
        assert isinstance(answer, Refused)

    @invariant()
    def one_operation_of_a_kind(self) -> None:
        assert len(set(self.live.values())) == len(self.live)

    @invariant()
    def the_machine_knows_what_lives(self) -> None:
        assert sorted(self.live) == sorted(self.package.scopes if self.package else ())
        assert (self.package and self.package.desired) == self.adopted

    @invariant()
    def a_removal_is_alone_and_so_is_a_rest(self) -> None:
        operations = set(self.live.values())
        assert Operation.REMOVAL not in operations or operations == {Operation.REMOVAL}
        assert Operation.SUSPEND not in operations or operations == {Operation.SUSPEND}

    @invariant()
    def what_is_on_its_way_to_be_applied_has_a_reconciliation(self) -> None:
        if self.package is not None and self.package.applying:
            assert Operation.RECONCILIATION in self.live.values()


TestLifecycleMachine = LifecycleMachine.TestCase
