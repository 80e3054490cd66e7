"""The summary: a state, a message and a tip. These tests check which state is shown if several states apply.

Summaries of failures are tested in test_conditions.py.
"""

from itertools import product

import pytest

from tests.runtime.support.statuses import T1, T2, before, conditions, ready
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import Phase, Stage
from wharfinger.runtime.status.reasons import Reason, advice
from wharfinger.runtime.status.summary import State, summarize


@pytest.mark.parametrize(("removed", "held", "blocked", "suspended", "failed"), list(product([False, True], repeat=5)))
def test_states_outrank_each_other(removed: bool, held: bool, blocked: bool, suspended: bool, failed: bool) -> None:
    status = ready()
    if failed:
        status = statuses.failed(status, Stage.APPLIED, Reason.APPLY_FAILED, "refused", T1, permanent=True)
    if suspended:
        status = statuses.suspended(status, T1, suspended=True)
    if blocked:
        status = statuses.blocked(status, 2, Reason.SPEC_INVALID, "spec.packageName is missing", T1)
    if held:
        status = statuses.removal_held(status, 2, Reason.WOULD_BREAK_DEPENDENTS, "it would", T2)
    if removed:
        status = statuses.removing(status, Reason.REMOVING, "the release is being uninstalled", T2)
    expected = next(
        state
        for state, holds in (
            (State.REMOVING, removed or held),
            (State.DEGRADED, blocked),
            (State.SUSPENDED, suspended),
            (State.DEGRADED, failed),
            (State.READY, True),
        )
        if holds
    )
    assert summarize(status).state == expected
    assert summarize(status).message
    assert bool(summarize(status).tip) == (not removed if expected is State.REMOVING else expected is not State.READY)


def test_a_failed_removal_has_a_tip() -> None:
    status = statuses.removing(ready(), Reason.PACKAGE_HOOK_FAILED, "hooks/a.sh: exit status 1", T1)
    assert summarize(status) == ("Removing", "hooks/a.sh: exit status 1", advice(Reason.PACKAGE_HOOK_FAILED))
    assert "skip-delete-hooks" in summarize(status).tip


@pytest.mark.parametrize("phase", list(Phase))
def test_a_held_change_degrades_the_package(phase: Phase) -> None:
    status = statuses.blocked(before(Stage.APPLIED, phase), 3, Reason.WOULD_BREAK_DEPENDENTS, "it would", T2)
    assert summarize(status) == ("Degraded", "it would", advice(Reason.WOULD_BREAK_DEPENDENTS))
    assert conditions(status)["Stalled"] == ("True", "WouldBreakDependents")


def test_a_held_removal_is_removing_and_names_its_reason() -> None:
    status = statuses.removal_held(ready(), 2, Reason.WAITING_FOR_DEPENDENTS, "", T1)
    assert summarize(status)[:2] == ("Removing", Reason.WAITING_FOR_DEPENDENTS.text)
    assert conditions(status)["Reconciling"] == ("True", "WaitingForDependents")


def test_a_reason_without_a_message_is_explained() -> None:
    status = statuses.removing(ready(), Reason.REMOVING, "", T1)
    assert summarize(status).message == Reason.REMOVING.text


def test_a_reason_of_another_version_is_shown_with_a_general_tip() -> None:
    status = statuses.failed(ready(), Stage.HOOKS, "FromTheFuture", "what", T1, permanent=False)
    assert summarize(status)[:2] == ("Degraded", "what")
    assert "log" in summarize(status).tip


@pytest.mark.parametrize(("phase", "state"), list(zip(Phase, ("Failed", "Degraded", "Degraded"), strict=True)))
def test_a_failed_enabled_script_is_a_failure_and_not_a_wait(phase: Phase, state: str) -> None:
    status = before(Stage.REQUIREMENTS, phase)
    status = statuses.required(status, Reason.SCRIPT_ERROR, "exit status 1", T2, met=False)
    assert conditions(status)["Stalled"] == ("True", "EnabledScriptError")
    assert summarize(status) == (state, "exit status 1", Reason.SCRIPT_ERROR.tip)
    status = statuses.required(status, Reason.DEPENDENCY_NOT_ENABLED, "", T2, met=False)
    assert summarize(status).state == ("Pending" if phase is Phase.INSTALL else "Suspended")
