"""Every failure, in every stage and every phase, sets certain external conditions and exactly one summary state.

In the tables, one letter stands for each condition about the installed version, in the order of MAPPERS. `T`, `F` and `U` mean
that the condition was just set to True, False or Unknown, for generation 2. `t` means that it is still True for generation 1,
and `-` that it was never set.
"""

import pytest
from msgspec.structs import replace

from tests.runtime.support.statuses import T0, T1, T2, before, conditions, ready, times
from wharfinger.kube.times import format_time
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.conditions import KINDS, MAPPERS
from wharfinger.runtime.status.package_status import PackageStatus, Phase, Stage, Truth
from wharfinger.runtime.status.reasons import OFF, Again, Reason
from wharfinger.runtime.status.summary import summarize

FAILURES = [reason for reason in Reason if reason.again is not Again.NOTHING]

#                     Installed, UpdateInstalled, Scaled, Managed, ConfigurationApplied
FAILED: dict[Stage, dict[Phase, str]] = {
    Stage.FETCHED: {Phase.INSTALL: "F----", Phase.UPDATE: "TFTtt", Phase.RECONCILE: "TFUFU"},
    Stage.LOADED: {Phase.INSTALL: "F----", Phase.UPDATE: "TFTtt", Phase.RECONCILE: "TFTFT"},
    Stage.REQUIREMENTS: {Phase.INSTALL: "F----", Phase.UPDATE: "TtUUU", Phase.RECONCILE: "TtUUU"},
    Stage.CONFIGURED: {Phase.INSTALL: "F---F", Phase.UPDATE: "TFTtt", Phase.RECONCILE: "TFTTF"},
    Stage.CRDS: {Phase.INSTALL: "F--FF", Phase.UPDATE: "TFUFF", Phase.RECONCILE: "TFTFF"},
    Stage.WEBHOOKS: {Phase.INSTALL: "F--FF", Phase.UPDATE: "TFUFF", Phase.RECONCILE: "TFTFF"},
    Stage.HOOKS: {Phase.INSTALL: "F--FF", Phase.UPDATE: "TFUFF", Phase.RECONCILE: "TFTFF"},
    Stage.APPLIED: {Phase.INSTALL: "F--FF", Phase.UPDATE: "TFFFF", Phase.RECONCILE: "TFTFF"},
    Stage.SCALED: {Phase.INSTALL: "F---T", Phase.UPDATE: "TTFtT", Phase.RECONCILE: "TTFtT"},
}
BLOCKED = {Phase.INSTALL: "F---F", Phase.UPDATE: "TFTtt", Phase.RECONCILE: "TFTTF"}
STATES: dict[Stage, dict[Phase, tuple[str, str]]] = {
    # Each pair has the state while the failure is retried, and the state while it is parked.
    Stage.FETCHED: {
        Phase.INSTALL: ("Failed", "Failed"), Phase.UPDATE: ("Updating", "Degraded"), Phase.RECONCILE: ("Degraded",) * 2,
    },
    Stage.LOADED: {
        Phase.INSTALL: ("Failed", "Failed"), Phase.UPDATE: ("Updating", "Degraded"), Phase.RECONCILE: ("Degraded",) * 2,
    },
    Stage.REQUIREMENTS: {
        Phase.INSTALL: ("Pending", "Failed"), Phase.UPDATE: ("Suspended", "Degraded"),
        Phase.RECONCILE: ("Suspended", "Degraded"),
    },
    Stage.CONFIGURED: {
        Phase.INSTALL: ("Failed", "Failed"), Phase.UPDATE: ("Updating", "Degraded"), Phase.RECONCILE: ("Degraded",) * 2,
    },
    **{
        stage: {Phase.INSTALL: ("Failed",) * 2, Phase.UPDATE: ("Failed",) * 2, Phase.RECONCILE: ("Degraded",) * 2}
        for stage in (Stage.CRDS, Stage.WEBHOOKS, Stage.HOOKS, Stage.APPLIED, Stage.SCALED)
    },
}  # fmt: skip


def letters(status: PackageStatus) -> str:
    said = ""
    for kind in MAPPERS:
        told = status.external.get(kind)
        letter = "-" if told is None else told.truth.value[0]
        said += letter.lower() if told is not None and told.generation == 1 else letter
    return said


def state_of(stage: Stage, reason: Reason, phase: Phase, *, permanent: bool) -> str:
    if reason in OFF:
        return "Disabled" if phase is Phase.INSTALL else "Disabling"
    if reason is Reason.NOT_READY and stage is not Stage.REQUIREMENTS:
        return "Pending" if phase is Phase.INSTALL else "Updating"
    return STATES[stage][phase][permanent]


@pytest.mark.sampled(4)
@pytest.mark.unmeasured
@pytest.mark.parametrize("permanent", [False, True], ids=["tried again", "parked"])
@pytest.mark.parametrize("phase", list(Phase), ids=lambda phase: phase.name)
@pytest.mark.parametrize("stage", list(Stage), ids=lambda stage: stage.name)
def test_every_failure_sets_its_conditions(stage: Stage, phase: Phase, permanent: bool) -> None:
    for reason in FAILURES:
        status = statuses.failed(before(stage, phase), stage, reason, "why", T2, permanent=permanent)
        assert status.phase is phase
        expected = FAILED[stage][phase]
        if reason is Reason.HOOK_INVALID and phase is Phase.INSTALL:
            expected = expected[:3] + "-" + expected[4:]  # Hooks that were never started have managed nothing.
        assert letters(status) == expected, reason
        for kind in MAPPERS:
            told = status.external.get(kind)
            if told is not None and told.generation == 2 and told.truth is not Truth.TRUE:
                pending = kind == "Installed" and stage is Stage.SCALED
                assert (told.reason, told.message) == ((Reason.PENDING, "") if pending else (reason, "why"))
        got = conditions(status)
        at_rest = reason in OFF and phase is Phase.INSTALL
        assert got["Ready"] == ("False", reason)
        assert got["Stalled"] == (("True", reason) if permanent else ("False", "NotStalled"))
        assert got["Reconciling"][0] == str(not permanent and not at_rest)
        assert summarize(status).state == state_of(stage, reason, phase, permanent=permanent)
        assert summarize(status).message == "why"


@pytest.mark.parametrize("phase", list(Phase), ids=lambda phase: phase.name)
def test_an_invalid_resource_sets_its_conditions(phase: Phase) -> None:
    stage = Stage.FETCHED if phase is not Phase.RECONCILE else Stage.SCALED
    status = statuses.blocked(before(stage, phase), 2, Reason.SPEC_INVALID, "why", T2)
    assert letters(status) == BLOCKED[phase]
    assert conditions(status)["Stalled"] == ("True", "SpecInvalid")
    assert summarize(status)[:2] == ("Failed" if phase is Phase.INSTALL else "Degraded", "why")


@pytest.mark.parametrize("reason", ["Downloading", "StartingHooks", "ApplyingManifests"])
@pytest.mark.parametrize("phase", [Phase.INSTALL, Phase.UPDATE], ids=lambda phase: phase.name)
@pytest.mark.parametrize("stage", list(Stage)[:-1], ids=lambda stage: stage.name)
def test_work_in_progress_changes_no_external_condition(stage: Stage, phase: Phase, reason: str) -> None:
    earlier = before(stage, phase)
    status = statuses.progressing(earlier, stage, reason, "at it", T2)
    assert letters(status) == letters(earlier) == ("F----" if phase is Phase.INSTALL else "TtTtt")
    assert conditions(status)["Ready"] == ("False", reason)
    assert summarize(status) == ("Pending" if phase is Phase.INSTALL else "Updating", "at it", "")


def test_a_routine_reconciliation_changes_no_condition_and_no_time() -> None:
    status = ready()
    for each in (
        statuses.reconfigure_started(status, 1, T1),
        statuses.update_started(status, 1, T1, version="1.0.0"),
        statuses.progressing(status, Stage.APPLIED, Reason.APPLYING_MANIFESTS, "applying", T1),
    ):
        assert {kind: each.external[kind] for kind in MAPPERS} == {kind: status.external[kind] for kind in MAPPERS}
        assert summarize(each).state == "Updating"


def test_a_retried_update_is_reported_as_applying() -> None:
    failed = statuses.failed(
        before(Stage.APPLIED, Phase.UPDATE), Stage.APPLIED, Reason.APPLY_FAILED, "no", T1, permanent=False
    )
    again = statuses.progressing(failed, Stage.APPLIED, Reason.APPLYING_MANIFESTS, "applying", T2)
    assert conditions(again)["UpdateInstalled"] == ("False", "ApplyingManifests")
    assert times(again)["UpdateInstalled"] == format_time(T1)
    assert conditions(statuses.succeeded(again, Stage.APPLIED, T2))["UpdateInstalled"] == ("True", "UpdateInstalled")


def test_scaled_is_absent_during_an_installation_until_it_is_true() -> None:
    status = before(Stage.SCALED, Phase.INSTALL)
    status = statuses.failed(status, Stage.HOOKS, Reason.EVENT_HOOK_FAILED, "why", T1, permanent=False)
    assert "Scaled" not in status.external
    status = statuses.succeeded(status, Stage.SCALED, T1)
    assert conditions(status)["Scaled"] == ("True", "Scaled")
    status = statuses.progressing(status, Stage.SCALED, Reason.NOT_READY, "1 of 2", T2)
    assert conditions(status)["Scaled"] == ("False", "NotReady")


def test_a_failure_without_a_message_uses_the_text_of_its_reason() -> None:
    status = statuses.failed(
        before(Stage.CRDS, Phase.UPDATE), Stage.CRDS, Reason.CLUSTER_FAILED, "", T2, permanent=False
    )
    assert {status.external[kind].message for kind in ("Ready", "Managed", "Scaled")} == {Reason.CLUSTER_FAILED.text}
    assert summarize(status).message == Reason.CLUSTER_FAILED.text


def test_maintenance_sets_managed_to_false_and_is_no_failure() -> None:
    status = statuses.set_maintenance(ready(), Reason.NO_RECONCILIATION, T1)
    assert conditions(status)["Managed"] == ("False", "NoResourceReconciliation")
    assert conditions(status)["Ready"][0] == "True"
    state, message, tip = summarize(status)
    assert state == "Ready"
    assert "objects are not reconciled" in message
    assert "spec.maintenance" in tip
    assert conditions(statuses.set_maintenance(status, "", T2))["Managed"] == ("True", "Managed")


def test_conditions_of_a_removed_package_are_false_with_their_last_message() -> None:
    failed = statuses.failed(replace(ready(), generation=2), Stage.HOOKS, Reason.HOOK_FAILED, "why", T1, permanent=True)
    status = statuses.removing(failed, Reason.REMOVING, "going", T2)
    assert {
        kind: (told.truth, told.reason, told.message) for kind, told in status.external.items() if kind in MAPPERS
    } == {
        "Installed": (Truth.FALSE, "Removing", ""),
        "UpdateInstalled": (Truth.FALSE, "Removing", "why"),
        "Scaled": (Truth.FALSE, "Removing", ""),
        "Managed": (Truth.FALSE, "Removing", "why"),
        "ConfigurationApplied": (Truth.FALSE, "Removing", "why"),
    }
    assert set(statuses.removing(statuses.fresh(1, T1), Reason.REMOVING, "going", T2).external) == set(KINDS[:4])


def test_a_held_removal_does_not_change_conditions_of_the_installation() -> None:
    held = statuses.removal_held(ready(), 2, Reason.WOULD_BREAK_DEPENDENTS, "it would", T1)
    got = conditions(held)
    assert {got[kind][0] for kind in MAPPERS} == {"True"}
    assert (got["Ready"], got["Reconciling"]) == (("False", "WouldBreakDependents"), ("True", "WouldBreakDependents"))
    assert got["Stalled"] == ("False", "NotStalled")
    # The package still runs, so its failures are reported.
    failed = statuses.failed(held, Stage.SCALED, Reason.WORKLOAD_FAILED, "crashes", T2, permanent=True)
    assert conditions(failed)["Scaled"] == ("False", "WorkloadFailed")
    assert conditions(failed)["Ready"] == ("False", "WouldBreakDependents")


def test_a_held_removal_does_not_change_conditions_of_a_suspended_package() -> None:
    status = statuses.suspended(ready(), T1, suspended=True)
    held = statuses.removal_held(status, 2, Reason.WOULD_BREAK_DEPENDENTS, "it would", T2)
    assert {kind: held.external[kind] for kind in MAPPERS} == {kind: status.external[kind] for kind in MAPPERS}
    assert conditions(held)["Ready"] == ("False", "WouldBreakDependents")
    assert conditions(held)["Reconciling"] == ("True", "WouldBreakDependents")


@pytest.mark.parametrize("last", list(Stage), ids=lambda stage: stage.name)
def test_a_package_is_installed_once_its_last_stage_is_done(last: Stage) -> None:
    status = statuses.update_started(statuses.fresh(1, T0), 1, T0, version="1.0.0")
    for stage in Stage:
        status = statuses.failed(status, stage, Reason.CLUSTER_FAILED, "why", T0, permanent=False)
    status = statuses.released(status, "1.0.0", "sha256:aa", 1)
    for stage in (*(stage for stage in Stage if stage is not last), last):
        assert conditions(status)["Installed"][0] == "False"
        if stage is Stage.REQUIREMENTS:
            status = statuses.required(status, "", "", T1, met=True)
        else:
            status = statuses.succeeded(status, stage, T1)
    assert (status.installed_since, status.phase) == (T1, Phase.RECONCILE)
    assert {kind: truth for kind, (truth, _) in conditions(status).items() if kind in ("Ready", "Installed")} == {
        "Ready": "True",
        "Installed": "True",
    }


def test_unchanged_conditions_are_the_same_objects() -> None:
    earlier = ready()
    later = statuses.failed(earlier, Stage.APPLIED, "ApplyFailed", "no", T2, permanent=False)
    same = {kind for kind, told in later.external.items() if told == earlier.external[kind]}
    assert same
    assert all(later.external[kind] is earlier.external[kind] for kind in same)
