"""Transitions of a status, and its external form: the three kstatus conditions, and a summary for people."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.runtime.support.statuses import T0, T1, T2, before, conditions, ready, times
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list
from wharfinger.kube.times import format_time
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.conditions import MAPPERS
from wharfinger.runtime.status.package_status import PackageStatus, Phase, Stage, Truth
from wharfinger.runtime.status.reasons import OFF, Reason, advice
from wharfinger.runtime.status.summary import summarize
from wharfinger.runtime.versions.rollback_note import RollbackNote
from wharfinger.runtime.versions.version_note import VersionNote


def test_a_new_package_is_pending_and_reconciling() -> None:
    status = statuses.fresh(3, T0)
    assert summarize(status)[0] == "Pending"
    got = conditions(status)
    assert got["Ready"] == ("False", "Pending")
    assert got["Reconciling"] == ("True", "Pending")
    assert got["Stalled"][0] == "False"
    assert statuses.external(status)["observedGeneration"] == 3


def test_all_stages_true_is_ready() -> None:
    status = ready()
    assert summarize(status)[0] == "Ready"
    assert {kind: truth for kind, (truth, _) in conditions(status).items()} == {
        "Ready": "True", "Reconciling": "False", "Stalled": "False", "Installed": "True",
        "UpdateInstalled": "True", "Scaled": "True", "Managed": "True", "ConfigurationApplied": "True",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("permanent", "installed", "state", "reconciling", "stalled"),
    [
        (False, False, "Failed", "True", "False"),
        (True, False, "Failed", "False", "True"),
        (False, True, "Degraded", "True", "False"),
        (True, True, "Degraded", "False", "True"),
    ],
)
def test_a_failure_is_reconciling_or_stalled(
    permanent: bool, installed: bool, state: str, reconciling: str, stalled: str
) -> None:
    status = ready() if installed else statuses.fresh(1, T0)
    status = statuses.failed(status, Stage.FETCHED, "ArtifactInvalid", "no Chart.yaml", T1, permanent=permanent)
    assert summarize(status) == (state, "no Chart.yaml", advice("ArtifactInvalid", permanent=permanent))
    got = conditions(status)
    assert (got["Ready"][0], got["Reconciling"][0], got["Stalled"][0]) == ("False", reconciling, stalled)
    assert got["Installed"][0] == ("True" if installed else "False")
    messages = {
        find(entry, "type"): find(entry, "message") for entry in find_list(statuses.external(status), "conditions")
    }
    assert messages["Ready"] == "no Chart.yaml"
    assert messages["Installed"] == ("" if installed else "no Chart.yaml")


def test_ready_waits_until_the_objects_are_checked_again() -> None:
    """Scaled stays True during an update, but the new version does not count as Ready before its own objects are checked."""
    for start in (statuses.update_started, statuses.reconfigure_started):
        status = start(ready(), 2, T1)
        for stage in (Stage.FETCHED, Stage.LOADED, Stage.CONFIGURED, Stage.HOOKS, Stage.APPLIED):
            status = statuses.succeeded(status, stage, T2)
        assert conditions(status)["Scaled"][0] == "True"
        assert conditions(status)["Ready"] == ("False", "Pending")
        assert summarize(status)[:2] == ("Updating", "checking the applied objects")
        assert summarize(statuses.succeeded(status, Stage.SCALED, T2))[0] == "Ready"


def test_an_update_retains_conditions_of_the_running_version() -> None:
    status = statuses.update_started(ready(), 2, T1)
    assert status.stages[Stage.SCALED].truth is Truth.TRUE
    kept = (Stage.SCALED, Stage.REQUIREMENTS)
    optional = (Stage.CRDS, Stage.WEBHOOKS)
    assert {status.stages[stage].truth for stage in Stage if stage not in (*kept, *optional)} == {Truth.UNKNOWN}
    assert {status.stages[stage].truth for stage in kept} == {Truth.TRUE}
    assert summarize(status)[0] == "Updating"
    assert conditions(status)["Installed"][0] == "True"


def test_new_settings_start_again_from_configured() -> None:
    status = statuses.reconfigure_started(ready(), 2, T1)
    assert status.stages[Stage.LOADED].truth is Truth.TRUE
    assert status.stages[Stage.CONFIGURED].truth is Truth.UNKNOWN


def test_waiting_for_workloads_is_no_failure() -> None:
    status = statuses.progressing(ready(), Stage.SCALED, "NotReady", "waiting for Deployment.apps prod/web", T1)
    state, message, tip = summarize(status)
    assert (state, message) == ("Updating", "waiting for Deployment.apps prod/web")
    assert tip == advice("NotReady")
    assert conditions(status)["Reconciling"][0] == "True"


def test_blocked_is_stalled_until_it_is_observed_again() -> None:
    status = statuses.blocked(ready(), 2, "RepositoryNotFound", "PackageRepository x does not exist", T1)
    assert conditions(status)["Stalled"] == ("True", "RepositoryNotFound")
    assert summarize(status)[0] == "Degraded"
    assert summarize(statuses.observed(status, 3, T2))[0] == "Ready"


def test_a_removal_outranks_all_other_states() -> None:
    status = statuses.removing(statuses.blocked(ready(), 2, "SpecInvalid", "x", T1), "Removing", "going", T2)
    assert summarize(status)[0] == "Removing"
    got = conditions(status)
    assert (got["Ready"], got["Stalled"][0], got["Reconciling"][0]) == (("False", "Removing"), "False", "True")


def test_a_held_removal_belongs_to_its_generation() -> None:
    held = statuses.removal_held(ready(), 2, Reason.WOULD_BREAK_DEPENDENTS, "it would", T1)
    assert held.held is not None
    assert statuses.external(held)["observedGeneration"] == 2
    again = statuses.removal_held(held, 2, Reason.WAITING_FOR_DEPENDENTS, "", T2)
    assert again.held is not None
    assert again.held.since == T1
    assert conditions(again)["Ready"] == ("False", "WaitingForDependents")
    # The installed version is verified again. The removal is still held, because the generation is the same.
    assert statuses.update_started(held, 2, T2).held == statuses.blocked(held, 2, "Internal", "x", T2).held == held.held
    # Another object with the same name is not held.
    for other in (
        statuses.update_started(held, 1, T2), statuses.observed(held, 1, T2), statuses.blocked(held, 1, "x", "x", T2)
    ):  # fmt: skip
        assert other.held is None
    begun = statuses.removing(held, Reason.REMOVING, "going", T2)
    assert begun.held is None
    assert statuses.removal_held(begun, 3, Reason.WAITING_FOR_DEPENDENTS, "", T2) == begun


def test_times_of_conditions_change_only_with_their_truth() -> None:
    status = statuses.failed(statuses.fresh(1, T0), Stage.FETCHED, "RegistryFailed", "a", T1, permanent=False)
    status = statuses.failed(status, Stage.FETCHED, "RegistryFailed", "b", T2, permanent=False)
    assert status.stages[Stage.FETCHED].since == T1
    assert status.stages[Stage.FETCHED].message == "b"


def test_external_times_change_only_with_the_external_status() -> None:
    status = statuses.fresh(1, T0)
    for stage in list(Stage)[:-1]:
        status = statuses.succeeded(status, stage, T1)
    assert times(status)["Ready"] == format_time(T0)
    assert times(status)["ConfigurationApplied"] == format_time(T1)
    status = statuses.succeeded(status, Stage.SCALED, T2)
    assert times(status)["Ready"] == format_time(T2)
    assert times(statuses.update_started(status, 2, T2 + timedelta(minutes=1)))["Installed"] == format_time(T2)


def test_a_status_of_an_earlier_process_is_restored() -> None:
    written = statuses.external(statuses.released(statuses.placed(ready(T0), "prod"), "1.0.0", "sha256:aa", 3))
    status = statuses.restored(1, written, T2)
    assert status.namespace == "prod"
    assert (status.version, status.digest, status.revision) == ("1.0.0", "sha256:aa", 3)
    assert conditions(status)["Installed"][0] == "True"
    assert times(status)["Installed"] == format_time(T0)
    # The package stays Ready while it is verified again. A failure in this time makes it Degraded.
    assert (conditions(status)["Ready"][0], times(status)["Ready"]) == ("True", format_time(T0))
    failure = statuses.failed(status, Stage.FETCHED, "RegistryFailed", "down", T2, permanent=False)
    assert summarize(failure)[0] == "Degraded"


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"conditions": [{"type": "Installed", "status": "True", "lastTransitionTime": "yesterday"}]},
        {"conditions": [{}]},
    ],
)
def test_an_empty_or_invalid_status_is_restored_as_fresh(written: JsonObject) -> None:
    assert statuses.restored(1, written, T0) == statuses.fresh(1, T0)


def test_a_parked_package_is_stalled() -> None:
    status = statuses.failed(ready(), Stage.APPLIED, "ApplyFailed", "immutable", T1, permanent=True)
    assert statuses.is_stalled(status)
    assert not statuses.is_stalled(ready())
    assert not statuses.is_stalled(statuses.failed(ready(), Stage.APPLIED, "ClusterFailed", "503", T1, permanent=False))
    assert not statuses.is_stalled(statuses.removing(status, "Removing", "going", T2))


def test_a_removal_reports_its_obstacle() -> None:
    status = statuses.removing(ready(), "ClusterFailed", "503", T1)
    assert summarize(status) == ("Removing", "503", advice("ClusterFailed"))
    assert conditions(status)["Ready"] == ("False", "ClusterFailed")


def test_version_and_revision_are_written_once_known() -> None:
    assert "currentVersion" not in statuses.external(statuses.fresh(1, T0))
    status = statuses.released(statuses.placed(ready(), "prod"), "1.0.0", "sha256:aa", 2)
    body = statuses.external(status)
    assert body["currentVersion"] == {"version": "1.0.0", "digest": "sha256:aa"}
    assert body["release"] == {"namespace": "prod", "revision": 2}


def test_a_package_whose_repository_came_late_waits_for_its_scan() -> None:
    blocked = statuses.blocked(statuses.fresh(1, T0), 1, "RepositoryNotFound", "there is none", T0)
    waits = statuses.versions_unknown(blocked, 2, "not scanned yet", T1)
    assert (waits.blocked, waits.generation) == (None, 2)
    assert summarize(waits)[1] == "not scanned yet"


def test_a_pending_version_ends_with_its_update() -> None:
    waits = VersionNote("range >=1", "1.0.0", "AwaitsApproval", "1.1.0 waits", pending="1.1.0")
    written = statuses.external(replace(ready(), update=waits))
    after = replace(ready(), update=VersionNote("range >=1", "1.1.0", "Newest", "1.1.0 is the newest version"))
    assert find(statuses.difference(after, written), "update", "pending") is None
    assert "pending" in as_object(statuses.difference(after, written)["update"], "update")
    assert statuses.difference(after, statuses.external(after)) == {}


def test_a_lost_requirement_suspends_and_an_unmet_one_is_waited_for() -> None:
    """An installed package that loses a requirement is Suspended. A new package whose requirement has never been met is
    Pending.
    """
    status = statuses.fresh(1, T0)
    for stage in (Stage.FETCHED, Stage.LOADED):
        status = statuses.succeeded(status, stage, T0)
    unmet = statuses.required(status, "DependencyNotEnabled", "dependency db is not enabled", T1, met=False)
    assert summarize(unmet)[:2] == ("Pending", "dependency db is not enabled")
    assert conditions(unmet)["Reconciling"] == ("True", "DependencyNotEnabled")
    assert summarize(unmet)[2] == advice("DependencyNotEnabled")
    lost = statuses.required(ready(), "DependencyNotEnabled", "dependency db is not enabled", T1, met=False)
    assert summarize(lost)[0] == "Suspended"
    assert conditions(lost)["Installed"][0] == "True"
    assert statuses.required(lost, "", "", T2, met=True).stages[Stage.REQUIREMENTS].truth is Truth.TRUE


@pytest.mark.parametrize("reason", sorted(OFF))
def test_an_unwanted_package_is_disabled_without_reconciling(reason: str) -> None:
    installed = statuses.released(ready(), "1.0.0", "sha256:a", 1)
    leaving = statuses.required(installed, reason, "it is disabled", T1, met=False)
    assert summarize(leaving)[0] == "Disabling"
    assert conditions(leaving)["Reconciling"][0] == "True"
    status = statuses.uninstalled(leaving, T2)
    assert summarize(status)[:2] == ("Disabled", "it is disabled")
    got = conditions(status)
    assert (got["Ready"][0], got["Reconciling"][0], got["Stalled"][0]) == ("False", "False", "False")
    assert got["Installed"][0] == "False"
    assert "currentVersion" not in statuses.external(status)


def test_a_failed_script_is_stalled() -> None:
    status = statuses.required(ready(), "EnabledScriptError", "exit status 1", T1, met=False)
    assert statuses.is_stalled(status)


def test_an_update_to_another_version_has_its_own_phase() -> None:
    status = ready()
    assert status.phase is Phase.RECONCILE
    status = statuses.update_started(status, 2, T1, version="2.0.0")
    assert status.phase is Phase.UPDATE
    assert statuses.released(status, "2.0.0", "sha256:bb", 2).phase is Phase.RECONCILE
    assert statuses.update_started(ready(), 2, T1, version="1.0.0").phase is Phase.RECONCILE
    assert statuses.update_started(ready(), 2, T1).phase is Phase.RECONCILE
    assert statuses.update_started(statuses.fresh(1, T0), 2, T1, version="1.0.0").phase is Phase.INSTALL


def test_an_optional_stage_is_done_unless_its_task_reports_otherwise() -> None:
    status = before(Stage.APPLIED, Phase.UPDATE)
    assert status.stages[Stage.CRDS].truth is Truth.TRUE
    status = statuses.progressing(status, Stage.WEBHOOKS, Reason.PENDING, "", T2)
    assert summarize(status).message == "waiting for WebhooksEnsured"
    again = statuses.reconfigure_started(status, 3, T2)
    assert again.stages[Stage.WEBHOOKS].truth is Truth.TRUE
    assert statuses.stopped(status, T2).stages[Stage.WEBHOOKS].truth is Truth.TRUE


def kstatus(status: PackageStatus) -> list[str]:
    return [conditions(status)[kind][0] for kind in ("Ready", "Reconciling", "Stalled")]


@pytest.mark.parametrize(
    ("status", "is_ready"),
    [
        (ready(), "True"),
        (statuses.update_started(ready(), 2, T1, version="2.0.0"), "False"),
        (statuses.failed(ready(), Stage.APPLIED, Reason.APPLY_FAILED, "no", T1, permanent=True), "False"),
        (statuses.fresh(1, T1), "False"),
    ],
)
def test_a_suspension_retains_all_conditions(status: PackageStatus, is_ready: str) -> None:
    paused = statuses.suspended(replace(status, generation=9), T2, suspended=True)
    state, message, tip = summarize(paused)
    assert (state, message) == ("Suspended", "spec.suspend is true: nothing is reconciled, and nothing is deleted")
    assert "spec.suspend" in tip
    assert kstatus(paused) == [is_ready, "False", "False"]
    # The status still belongs to the earlier generation, so nothing is reported about the new one.
    assert {kind: told for kind, told in paused.external.items() if kind in ("Ready", *MAPPERS)} == {
        kind: told for kind, told in status.external.items() if kind in ("Ready", *MAPPERS)
    }
    assert not statuses.is_stalled(paused)
    # A repeated suspension changes nothing. After its end, the state follows from the stages again.
    assert statuses.suspended(paused, T2, suspended=True) is paused
    resumed = statuses.suspended(paused, T2, suspended=False)
    assert (summarize(resumed), kstatus(resumed)) == (summarize(status), kstatus(status))


def test_an_invalid_spec_is_reported_during_a_suspension() -> None:
    paused = statuses.suspended(ready(), T1, suspended=True)
    status = statuses.blocked(paused, 2, Reason.SPEC_INVALID, "why", T2)
    assert summarize(status)[:2] == ("Degraded", "why; it is suspended")
    assert kstatus(status) == ["False", "False", "True"]
    again = statuses.observed(status, 3, T2)
    assert summarize(again).state == "Suspended"
    assert again.external["Ready"] == ready().external["Ready"]
    # The reverse order has the same result.
    later = statuses.suspended(statuses.blocked(ready(), 2, Reason.SPEC_INVALID, "why", T1), T1, suspended=True)
    assert summarize(later)[:2] == ("Degraded", "why; it is suspended")
    assert kstatus(statuses.observed(later, 3, T2)) == ["True", "False", "False"]


def test_a_suspended_ready_package_stays_ready_over_a_restart() -> None:
    written = statuses.external(ready())
    status = statuses.suspended(statuses.restored(1, written, T2), T2, suspended=True)
    assert kstatus(status) == ["True", "False", "False"]
    assert times(status)["Ready"] == format_time(T0)
    # A later result of this process takes precedence.
    begun = statuses.update_started(statuses.restored(1, written, T1), 1, T1)
    assert kstatus(statuses.suspended(begun, T2, suspended=True)) == ["True", "False", "False"]
    failed = statuses.failed(begun, Stage.FETCHED, "RegistryFailed", "down", T2, permanent=False)
    assert kstatus(statuses.suspended(failed, T2, suspended=True)) == ["False", "False", "False"]


def test_an_unchanged_package_stays_ready_over_a_restart() -> None:
    """Every stage starts again after a restart. The package stays Ready nevertheless, because otherwise each restart would
    cause false alarms.
    """
    written = statuses.external(statuses.released(ready(T0), "1.0.0", "sha256:aa", 3))
    status = statuses.update_started(statuses.restored(1, written, T1), 1, T1, version="1.0.0")
    for stage in Stage:
        assert status.is_being_verified
        assert kstatus(status) == ["True", "True", "False"]
        if stage is not Stage.SCALED:
            status = statuses.progressing(status, stage, Reason.PENDING, "at work", T2)
        status = statuses.succeeded(status, stage, T2)
    assert statuses.difference(status, written) == {}
    assert not status.is_being_verified


def test_a_package_found_unready_after_a_restart_is_reconciling_until_it_fails() -> None:
    written = statuses.external(statuses.released(ready(T0), "1.0.0", "sha256:aa", 3))
    status = statuses.restored(1, written, T1)
    for stage in list(Stage)[:-1]:
        status = statuses.succeeded(status, stage, T1)
    waits = statuses.progressing(status, Stage.SCALED, Reason.NOT_READY, "Deployment a: 1 of 2", T2)
    assert kstatus(waits) == ["True", "True", "False"]
    assert (waits.external["Reconciling"].reason, waits.external["Reconciling"].message) == (
        "NotReady",
        "Deployment a: 1 of 2",
    )
    assert kstatus(statuses.succeeded(waits, Stage.SCALED, T2)) == ["True", "False", "False"]
    failed = statuses.failed(waits, Stage.SCALED, Reason.WORKLOAD_FAILED, "Deployment a: late", T2, permanent=False)
    assert (kstatus(failed), summarize(failed).state) == (["False", "True", "False"], "Degraded")


def test_a_package_changed_during_a_restart_is_not_ready() -> None:
    written = statuses.external(statuses.released(ready(T0), "1.0.0", "sha256:aa", 3))
    assert kstatus(statuses.restored(2, written, T1)) == ["False", "True", "False"]


def test_a_restart_changes_no_external_condition() -> None:
    status = statuses.restored(1, statuses.external(ready()), T2)
    assert {kind: status.external[kind] for kind in MAPPERS} == {kind: ready().external[kind] for kind in MAPPERS}


def test_progress_is_reported_while_an_operation_runs() -> None:
    status = statuses.progressing(ready(), Stage.APPLIED, Reason.APPLYING_MANIFESTS, "applying", T1)
    status = statuses.tracking(status, ("a", "b"), ("c",), T1)
    assert statuses.external(status)["progress"] == {"completed": 2, "remaining": 1, "waitingFor": ["c"]}
    for over in (
        statuses.tracking(status, ("a", "b", "c"), (), T2),
        statuses.succeeded(status, Stage.SCALED, T2),
        statuses.failed(status, Stage.APPLIED, Reason.APPLY_FAILED, "no", T2, permanent=True),
        statuses.update_started(status, 2, T2),
        statuses.reconfigure_started(status, 2, T2),
        statuses.stopped(status, T2),
        statuses.uninstalled(status, T2),
        statuses.suspended(status, T2, suspended=True),
        statuses.removing(status, Reason.REMOVING, "going", T2),
    ):
        assert "progress" not in statuses.external(over)
    # A failure that is retried does not end the progress.
    tried = statuses.failed(status, Stage.APPLIED, Reason.CLUSTER_FAILED, "503", T2, permanent=False)
    assert "progress" in statuses.external(tried)


def test_warnings_are_deduplicated_and_limited() -> None:
    status = statuses.warned(ready(), ("a  is\ndeprecated", "a is deprecated", "x" * 1000), T1)
    assert statuses.external(status)["warnings"] == ["a is deprecated", "x" * (statuses.MAX_WARNING - 1) + "…"]
    many = statuses.warned(status, (f"warning {number}" for number in range(100)), T1)
    assert len(many.warnings) == statuses.MAX_WARNINGS + 1
    assert many.warnings[-1] == "and 90 more"
    assert "warnings" not in statuses.external(statuses.warned(many, (), T2))


def test_urls_are_reported_until_the_package_is_uninstalled() -> None:
    status = statuses.reachable(ready(), [("https://a.example", "for customers"), ("https://b.example", "")], T1)
    urls = [{"url": "https://a.example", "description": "for customers"}, {"url": "https://b.example"}]
    assert statuses.external(status)["urls"] == urls
    assert statuses.difference(status, statuses.external(ready()))["urls"] == urls
    many = statuses.reachable(status, ((f"https://{number}.example", "") for number in range(1000)), T1)
    assert len(many.urls) == statuses.MAX_URLS
    assert "urls" not in statuses.external(statuses.uninstalled(status, T2))


def test_an_unhealthy_ready_package_is_degraded() -> None:
    status = statuses.progressing(ready(), Stage.SCALED, Reason.UNHEALTHY, "Deployment a: 0 of 1", T1)
    assert summarize(status)[:2] == ("Degraded", "Deployment a: 0 of 1")
    told = {kind: condition.truth.value for kind, condition in status.external.items()}
    assert (told["Ready"], told["Scaled"], told["Installed"]) == ("False", "False", "True")
    assert summarize(statuses.succeeded(status, Stage.SCALED, T2)).state == "Ready"


def test_a_rollout_found_after_a_restart_keeps_the_summary_ready() -> None:
    """The summary says Ready and describes the rollout, as the summary of the earlier process did."""
    written = statuses.external(statuses.released(ready(T0), "1.0.0", "sha256:aa", 3))
    status = statuses.update_started(statuses.restored(1, written, T1), 1, T1, version="1.0.0")
    for stage in Stage:
        if stage is not Stage.SCALED:
            status = statuses.succeeded(status, stage, T2)
    waits = statuses.progressing(status, Stage.SCALED, Reason.NOT_READY, "Deployment a: 1 of 3", T2)
    assert summarize(waits)[:2] == ("Ready", "version 1.0.0 is installed and ready; Deployment a: 1 of 3")
    assert kstatus(waits) == ["True", "True", "False"]


def test_a_rollout_is_ready_and_reconciling() -> None:
    status = statuses.rolling_out(ready(), "Deployment a: 1 of 3", T1)
    message = summarize(ready()).message
    assert summarize(status)[:2] == ("Ready", f"{message}; Deployment a: 1 of 3")
    told = {kind: (told.truth.value, told.reason, told.message) for kind, told in status.external.items()}
    assert told["Ready"] == ("True", "Ready", message)
    assert told["Reconciling"] == ("True", "RollingOut", "Deployment a: 1 of 3")
    assert (told["Stalled"][0], told["Scaled"][0]) == ("False", "True")
    assert status.external["Ready"].since == ready().external["Ready"].since
    over = statuses.succeeded(status, Stage.SCALED, T2)
    assert (summarize(over), over.external["Reconciling"].truth) == (summarize(ready()), Truth.FALSE)


def test_a_broken_package_is_not_ready_during_a_rollout() -> None:
    broken = statuses.progressing(ready(), Stage.SCALED, Reason.UNHEALTHY, "Deployment a: 0 of 2", T1)
    moves = statuses.rolling_out(broken, "Deployment a: 1 of 2", T2)
    assert summarize(moves)[:2] == ("Degraded", "Deployment a: 1 of 2")
    assert moves.external["Ready"].truth is Truth.FALSE


def test_the_length_of_messages_is_limited() -> None:
    """The API server would refuse a patch that is too large, and the daemon would retry it forever."""
    status = statuses.failed(ready(), Stage.REQUIREMENTS, Reason.ANY_OF_UNMET, "x" * 3_000_000, T1, permanent=False)
    body = statuses.external(status)
    assert find(body, "summary", "message") == "x" * (statuses.MAX_MESSAGE - 1) + "…"
    assert len(json.dumps(body)) < 30_000
    assert statuses.difference(status, body) == {}
    short = statuses.failed(
        ready(), Stage.APPLIED, Reason.CLUSTER_FAILED, "x" * statuses.MAX_MESSAGE, T1, permanent=False
    )
    assert find(statuses.external(short), "summary", "message") == "x" * statuses.MAX_MESSAGE


def test_maintenance_is_set_and_cleared() -> None:
    status = ready()
    assert statuses.set_maintenance(status, "", T1) is status
    on = statuses.set_maintenance(status, Reason.NO_RECONCILIATION, T1)
    assert on.maintenance is not None
    assert (on.maintenance.truth, on.maintenance.reason) == (Truth.TRUE, "NoResourceReconciliation")
    assert on.maintenance.message
    assert statuses.set_maintenance(on, Reason.NO_RECONCILIATION, T2) is on
    assert statuses.set_maintenance(on, "", T2).maintenance is None
    other = statuses.set_maintenance(on, "SomethingElse", T2)
    assert "SomethingElse" in summarize(other).message


def test_a_difference_clears_old_fields_and_omits_unchanged_ones() -> None:
    full = statuses.warned(ready(), ("a",), T1)
    full = statuses.progressing(full, Stage.APPLIED, Reason.APPLYING_MANIFESTS, "applying", T1)
    full = statuses.tracking(full, (), ("c",), T1)
    full = statuses.reachable(full, (("https://a", ""),), T1)
    full = statuses.chosen(full, VersionNote("range >=1", "1.0.0", "Newest", "1.0.0 is the newest"), T1)
    full = statuses.rolled_back(full, RollbackNote(1, "1.0.0", "2.0.0", "UpgradeFailed", "why"), T1)
    written = statuses.external(full)
    assert statuses.difference(full, written) == {}
    patch = statuses.difference(statuses.fresh(1, T2), written)
    assert {field for field, value in patch.items() if value is None} == {
        "currentVersion", "release", "progress", "warnings", "urls", "update", "rollback",
    }  # fmt: skip
    merged: JsonObject = {field: value for field, value in (written | patch).items() if value is not None}
    assert merged == statuses.external(statuses.fresh(1, T2))
    assert statuses.difference(statuses.fresh(1, T2), merged) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["True", "Ready", "2026-01-01T00:00:00Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["conditions", "type", "status", "lastTransitionTime", "reason", "observedGeneration", "release",
                         "currentVersion", "version", "revision"]), inner, max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["conditions", "currentVersion", "release"]), JSON))
def test_any_written_status_can_be_restored(written: dict[str, JsonValue]) -> None:
    """Any user may write the status of a resource, so every content has to give a valid status."""
    status = statuses.restored(1, written, T2)
    again = statuses.restored(1, statuses.external(status), T2)
    assert statuses.external(again) == statuses.external(status)
    assert status.external["Ready"].truth is Truth.FALSE


def test_a_time_without_a_time_zone_is_ignored() -> None:
    entry: JsonObject = {"type": "Installed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00"}
    assert statuses.restored(1, {"conditions": [entry]}, T0) == statuses.fresh(1, T0)


def test_during_a_removal_other_reports_are_ignored() -> None:
    """Late reports of cancelled work change nothing during a removal. Only reports of the removal count."""
    status = statuses.removing(ready(), Reason.REMOVING, "going", T1)
    for after in (
        statuses.update_started(status, 2, T2),
        statuses.reconfigure_started(status, 2, T2),
        statuses.observed(status, 2, T2),
        statuses.progressing(status, Stage.APPLIED, Reason.APPLYING_MANIFESTS, "applying", T2),
        statuses.succeeded(status, Stage.SCALED, T2),
        statuses.failed(status, Stage.HOOKS, Reason.HOOK_FAILED, "why", T2, permanent=False),
        statuses.released(status, "2.0.0", "sha256:bb", 2),
        statuses.placed(status, "test"),
        statuses.required(status, Reason.DEPENDENCY_NOT_ENABLED, "why", T2, met=False),
        statuses.stopped(status, T2),
        statuses.uninstalled(status, T2),
        statuses.blocked(status, 0, Reason.INTERNAL, "why", T2),
        statuses.suspended(status, T2, suspended=True),
        statuses.set_maintenance(status, Reason.NO_RECONCILIATION, T2),
        statuses.tracking(status, (), ("a",), T2),
        statuses.warned(status, ("a",), T2),
    ):
        assert after == status
    later = statuses.removing(status, Reason.CLUSTER_FAILED, "503", T2 + timedelta(minutes=1))
    assert later.removal is not None
    assert later.removal.since == T1
    assert summarize(later).message == "503"


def test_an_uninstalled_package_loses_its_restored_ready() -> None:
    status = statuses.restored(1, statuses.external(ready()), T1)
    assert conditions(status)["Ready"][0] == "True"
    assert conditions(statuses.uninstalled(status, T2))["Ready"][0] == "False"


def test_a_rolled_back_package_is_ready_for_an_earlier_generation() -> None:
    note = RollbackNote(3, "1.0.0", "2.0.0", "UpgradeFailed", "HookFailed: no")
    back = statuses.rolled_back(statuses.observed(ready(), 5, T2), note, T2)
    conditions = {kind: (told.truth, told.reason, told.generation) for kind, told in back.external.items()}
    assert conditions["Ready"] == (Truth.TRUE, Reason.ROLLED_BACK, 4)
    assert conditions["Stalled"] == (Truth.TRUE, Reason.ROLLED_BACK, 5)
    assert conditions["Reconciling"] == (Truth.FALSE, Reason.STALLED, 5)
    assert conditions["UpdateInstalled"] == (Truth.FALSE, Reason.ROLLED_BACK, 5)
    assert summarize(back).state == "RolledBack"
    assert "rolled back from 2.0.0 to revision 3 (1.0.0): HookFailed: no" in summarize(back).message
    # A later process reads the same rollback.
    restored = statuses.restored(5, statuses.external(back), T2)
    assert restored.rollback == note
    # The messages about a rollback differ from those about an upgrade.
    failing = statuses.failed(back, Stage.APPLIED, Reason.APPLY_FAILED, "refused", T2, permanent=False)
    assert summarize(failing).message == (
        "returning to revision 3 (1.0.0), because 2.0.0 failed (HookFailed: no): refused"
    )
    asked = statuses.rolled_back(failing, RollbackNote(3, "1.0.0", "2.0.0", "Requested", ""), T2)
    assert summarize(asked).message == "returning to revision 3 (1.0.0), because a rollback was requested: refused"
    stuck = statuses.rolled_back(failing, RollbackNote(0, "", "2.0.0", "NoWayBack", "no revision"), T2)
    assert summarize(stuck).message == "refused; the package cannot return to a former revision: no revision"
    assert statuses.rolled_back(back, None, T2).rollback is None
