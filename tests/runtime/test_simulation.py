"""The state machines that manage a package, run together with random sequences of desired states, outcomes and times.

The model (`simulated.py`) and this file check these invariants at each step:

* At most one operation of each kind runs at a time, and in each lane at most one task. No task of a superseded operation
  starts.
* Nothing runs after a completed removal. The package has no task, no run and no live operation until it is wanted again.
* Every accepted update is run or superseded in the end. Once everything succeeds, either the update's Load task has succeeded,
  or the update was cancelled with a cause.
* The success of a superseded run is never reported.
* No task outlives its package.
* Nothing is lost. Once everything succeeds, the last desired state is loaded and applied, even if it was set during a removal, a
  suspension or an update. Packages that are off or removed have no objects in the cluster.
"""

from dataclasses import replace
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.runtime.support.simulated import Outcome, SimulatedPackage, suspended
from tests.scale import scaled
from wharfinger.runtime.lifecycle.desired_state import DecisionKind, DesiredState
from wharfinger.runtime.lifecycle.lifecycle_machine import NOTHING, Operation

V1: Final = DesiredState("https://r", "web", "1.0.0", "sha256:a")
V2: Final = replace(V1, version="2.0.0")
DESIRED_STATES: Final = (V1, replace(V1, settings_checksum="sha256:b"), V2, replace(V2, settings_checksum="sha256:b"))
OUTCOMES: Final = st.sampled_from([*["finished"] * 12, "failed", "failed for good"])


class Simulation(RuleBasedStateMachine):
    """One package with random outcomes and times."""

    def __init__(self) -> None:
        super().__init__()
        self.model = SimulatedPackage()
        self.wanted: DesiredState | None = None

    @initialize(installed=st.booleans())
    def begin(self, installed: bool) -> None:
        if installed:
            self.desired(V1)
            self.model.settle()

    @rule(desired=st.sampled_from(DESIRED_STATES))
    def desired(self, desired: DesiredState) -> None:
        removing = Operation.REMOVAL in self.model.live.values()
        decision = self.model.desired(desired)
        assert (decision.kind is DecisionKind.REMOVING) is removing
        self.wanted = desired

    @rule()
    def suspend_or_resume(self) -> None:
        if self.wanted is not None:
            self.wanted = replace(self.wanted, suspended=not self.wanted.suspended)
            self.model.desired(self.wanted)

    @rule(really=st.integers(0, 3))
    def delete(self, really: int) -> None:
        if really == 3:
            self.model.delete()
            self.wanted = None

    @rule()
    def restart_removal(self) -> None:
        self.model.restart_removal()

    @rule(off=st.booleans())
    def turn(self, off: bool) -> None:
        self.model.turn(off=off)

    @rule()
    def hook_event(self) -> None:
        self.model.hook_event()

    @rule(outcomes=st.lists(OUTCOMES, min_size=1, max_size=10))
    def go_on(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if self.model.telling:
                self.model.tell(min(self.model.telling))
            elif self.model.runs:
                run = min(self.model.runs)
                self.model.end_run(run, "interrupted" if run in self.model.ending else outcome)

    @precondition(lambda self: self.model.runs)
    @rule(which=st.integers(0, 9), outcome=OUTCOMES)
    def end_run(self, which: int, outcome: Outcome) -> None:
        runs = sorted(self.model.runs)
        self.model.end_run(runs[which % len(runs)], outcome)

    @precondition(lambda self: self.model.ending)
    @rule(which=st.integers(0, 9))
    def interrupt(self, which: int) -> None:
        runs = sorted(self.model.ending)
        self.model.end_run(runs[which % len(runs)], "interrupted")

    @precondition(lambda self: self.model.telling)
    @rule(which=st.integers(0, 9))
    def tell(self, which: int) -> None:
        runs = sorted(self.model.telling)
        self.model.tell(runs[which % len(runs)])

    @rule(seconds=st.sampled_from([0.0, 5.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        self.model.pass_time(seconds)

    @rule()
    def change_input(self) -> None:
        self.model.change_input()

    @precondition(lambda self: self.model.cleaning)
    @rule()
    def clean(self) -> None:
        self.model.clean()

    @rule(really=st.integers(0, 3))
    def settle(self, really: int) -> None:
        if really == 3:
            self.model.settle()
            check_settled(self.model, self.wanted)

    @invariant()
    def nothing_outlives_its_package(self) -> None:
        if self.model.package is None:
            assert not self.model.tasks
            assert not self.model.runs
            assert not self.model.live

    @invariant()
    def nothing_but_the_rest_goes_on_while_suspended(self) -> None:
        package = self.model.package
        if package is None or not package.desired.suspended or package.removal is not None:
            return
        assert set(self.model.live.values()) == {Operation.SUSPEND}
        begun = {self.model.tasks[task].name for run, task in self.model.runs.items() if run not in self.model.ending}
        assert begun <= {"Pause", "Hook"}

    def teardown(self) -> None:
        self.model.settle()
        check_settled(self.model, self.wanted)


def check_settled(model: SimulatedPackage, wanted: DesiredState | None) -> None:
    """Check that every accepted update was run or superseded, and that the actual state is the desired one."""
    for update in model.updates:
        assert update in model.loads or model.causes.get(update), "an accepted update was neither run nor superseded"
    if wanted is None:
        assert model.package is None
        assert not model.present
    elif wanted.suspended:
        assert model.package is not None
        assert model.package.desired == wanted
        assert model.hooks is None
    else:
        assert model.loaded == wanted.version
        assert model.present is not model.off
        assert model.off or model.applied == wanted.settings_checksum
        assert (model.hooks is None) is model.off


TestSimulation = Simulation.TestCase
TestSimulation.settings = settings(max_examples=scaled(2000, 80), stateful_step_count=60, deadline=None)


def test_a_desired_state_set_during_a_removal_is_applied_afterwards() -> None:
    model = SimulatedPackage()
    model.desired(V1)
    model.settle()
    model.delete()
    assert model.desired(V2).kind is DecisionKind.REMOVING
    model.settle()
    check_settled(model, V2)


def test_a_removal_of_an_unknown_package_is_completed() -> None:
    model = SimulatedPackage()
    model.present = True  # an earlier process has installed the package
    model.delete()
    assert model.package is not None
    assert model.package.desired == NOTHING
    model.settle()
    check_settled(model, None)


def test_changes_during_a_suspension_are_applied_on_resumption() -> None:
    model = SimulatedPackage()
    model.desired(V1)
    model.settle()
    model.desired(suspended(V1))
    model.desired(suspended(V2))
    model.turn(off=True)
    model.settle()
    check_settled(model, suspended(V2))
    assert (model.loaded, model.present) == (V1.version, True)
    model.desired(V2)
    model.settle()
    check_settled(model, V2)


def test_a_package_is_forgotten_after_its_last_run_has_ended() -> None:
    model = SimulatedPackage()
    model.desired(V1)
    model.settle()
    model.hook_event()
    (hook,) = model.runs
    model.delete()
    while not model.cleaning:
        for run in [run for run in model.runs if run != hook]:
            model.end_run(run, "finished")
        for run in list(model.telling):
            model.tell(run)
    assert model.ending == {hook}
    model.clean()
    assert model.desired(V2).kind is DecisionKind.REMOVING
    model.end_run(hook, "interrupted")
    model.clean()
    assert model.package is not None
    assert model.package.desired == V2
    model.settle()
    check_settled(model, V2)
