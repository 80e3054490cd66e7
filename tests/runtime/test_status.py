"""What a package's stages mean outside: the three of kstatus, and one line for people."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json_value import JsonObject, find, find_list
from wharfinger.runtime import status as statuses
from wharfinger.runtime.status import PackageStatus, Stage, Truth

T0 = datetime(2026, 1, 1, tzinfo=UTC)
T1 = T0 + timedelta(minutes=1)
T2 = T0 + timedelta(minutes=2)


def conditions(status: PackageStatus) -> dict[str, tuple[str, str]]:
    return {
        str(find(entry, "type")): (str(find(entry, "status")), str(find(entry, "reason")))
        for entry in find_list(statuses.external(status), "conditions")
    }


def ready(now: datetime = T0) -> PackageStatus:
    status = statuses.fresh(1, now)
    for stage in Stage:
        status = statuses.succeeded(status, stage, now)
    return status


def test_a_new_package_is_pending_and_reconciling() -> None:
    status = statuses.fresh(3, T0)
    assert statuses.summary(status)[0] == "Pending"
    got = conditions(status)
    assert got["Ready"] == ("False", "Pending")
    assert got["Reconciling"] == ("True", "Pending")
    assert got["Stalled"][0] == "False"
    assert statuses.external(status)["observedGeneration"] == 3


def test_all_stages_true_is_ready() -> None:
    status = ready()
    assert statuses.summary(status)[0] == "Ready"
    assert {kind: truth for kind, (truth, _) in conditions(status).items()} == {
        "Ready": "True", "Reconciling": "False", "Stalled": "False", "Installed": "True",
        "ConfigurationApplied": "True", "Scaled": "True",
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
    assert statuses.summary(status) == (state, "no Chart.yaml", statuses.TIPS["ArtifactInvalid"])
    got = conditions(status)
    assert (got["Ready"][0], got["Reconciling"][0], got["Stalled"][0]) == ("False", reconciling, stalled)
    assert got["Installed"][0] == ("True" if installed else "False")
    messages = {
        find(entry, "type"): find(entry, "message") for entry in find_list(statuses.external(status), "conditions")
    }
    assert messages["Ready"] == "no Chart.yaml"
    assert messages["Installed"] == ""


def test_ready_waits_until_what_runs_was_judged_again() -> None:
    """Scaled stays True through an update, but the new version is not Ready on the strength of the old one."""
    for start in (statuses.update_started, statuses.reconfigure_started):
        status = start(ready(), 2, T1)
        for stage in (Stage.FETCHED, Stage.LOADED, Stage.CONFIGURED, Stage.HOOKS, Stage.APPLIED):
            status = statuses.succeeded(status, stage, T2)
        assert conditions(status)["Scaled"][0] == "True"
        assert conditions(status)["Ready"] == ("False", "Pending")
        assert statuses.summary(status)[:2] == ("Updating", "looking at what was applied")
        assert statuses.summary(statuses.succeeded(status, Stage.SCALED, T2))[0] == "Ready"


def test_an_update_keeps_what_is_running() -> None:
    status = statuses.update_started(ready(), 2, T1)
    assert status.stages[Stage.SCALED].truth is Truth.TRUE
    kept = (Stage.SCALED, Stage.REQUIREMENTS)
    assert {status.stages[stage].truth for stage in Stage if stage not in kept} == {Truth.UNKNOWN}
    assert {status.stages[stage].truth for stage in kept} == {Truth.TRUE}
    assert statuses.summary(status)[0] == "Updating"
    assert conditions(status)["Installed"][0] == "True"


def test_new_settings_start_again_from_configured() -> None:
    status = statuses.reconfigure_started(ready(), 2, T1)
    assert status.stages[Stage.LOADED].truth is Truth.TRUE
    assert status.stages[Stage.CONFIGURED].truth is Truth.UNKNOWN


def test_waiting_for_workloads_is_no_failure() -> None:
    status = statuses.progressing(ready(), Stage.SCALED, "NotReady", "waiting for Deployment.apps prod/web", T1)
    state, message, tip = statuses.summary(status)
    assert (state, message) == ("Updating", "waiting for Deployment.apps prod/web")
    assert tip == statuses.TIPS["NotReady"]
    assert conditions(status)["Reconciling"][0] == "True"


def test_blocked_is_stalled_until_it_is_observed_again() -> None:
    status = statuses.blocked(ready(), 2, "RepositoryNotFound", "PackageRepository x does not exist", T1)
    assert conditions(status)["Stalled"] == ("True", "RepositoryNotFound")
    assert statuses.summary(status)[0] == "Degraded"
    assert statuses.summary(statuses.observed(status, 3, T2))[0] == "Ready"


def test_removing_outranks_everything() -> None:
    status = statuses.removing(statuses.blocked(ready(), 2, "SpecInvalid", "x", T1), "Removing", "going", T2)
    assert statuses.summary(status)[0] == "Removing"
    got = conditions(status)
    assert (got["Ready"], got["Stalled"][0], got["Reconciling"][0]) == (("False", "Removing"), "False", "True")


def test_times_move_only_with_the_truth() -> None:
    status = statuses.failed(statuses.fresh(1, T0), Stage.FETCHED, "RegistryFailed", "a", T1, permanent=False)
    status = statuses.failed(status, Stage.FETCHED, "RegistryFailed", "b", T2, permanent=False)
    assert status.stages[Stage.FETCHED].since == T1
    assert status.stages[Stage.FETCHED].message == "b"


def times(status: PackageStatus) -> dict[str, str]:
    return {
        str(find(entry, "type")): str(find(entry, "lastTransitionTime"))
        for entry in find_list(statuses.external(status), "conditions")
    }


def test_external_times_move_only_with_the_external_status() -> None:
    status = statuses.fresh(1, T0)
    for stage in list(Stage)[:-1]:
        status = statuses.succeeded(status, stage, T1)
    assert times(status)["Ready"] == statuses.timestamp(T0)
    assert times(status)["ConfigurationApplied"] == statuses.timestamp(T1)
    status = statuses.succeeded(status, Stage.SCALED, T2)
    assert times(status)["Ready"] == statuses.timestamp(T2)
    assert times(statuses.update_started(status, 2, T2 + timedelta(minutes=1)))["Installed"] == statuses.timestamp(T2)


def test_what_an_earlier_process_wrote_is_taken_up() -> None:
    written = statuses.external(statuses.released(statuses.placed(ready(T0), "prod"), "1.0.0", "sha256:aa", 3))
    status = statuses.restored(1, written, T2)
    assert status.namespace == "prod"
    assert (status.version, status.digest, status.revision) == ("1.0.0", "sha256:aa", 3)
    assert conditions(status)["Installed"][0] == "True"
    assert times(status)["Installed"] == statuses.timestamp(T0)
    # Not ready until it was looked at, and a failure now is a degradation of what runs.
    assert conditions(status)["Ready"][0] == "False"
    failure = statuses.failed(status, Stage.FETCHED, "RegistryFailed", "down", T2, permanent=False)
    assert statuses.summary(failure)[0] == "Degraded"


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"conditions": [{"type": "Installed", "status": "True", "lastTransitionTime": "yesterday"}]},
        {"conditions": [{}]},
    ],
)
def test_a_status_that_says_nothing_is_a_fresh_one(written: JsonObject) -> None:
    assert statuses.restored(1, written, T0) == statuses.fresh(1, T0)


def test_what_is_parked_is_stalled() -> None:
    status = statuses.failed(ready(), Stage.APPLIED, "ApplyFailed", "immutable", T1, permanent=True)
    assert statuses.is_stalled(status)
    assert not statuses.is_stalled(ready())
    assert not statuses.is_stalled(statuses.failed(ready(), Stage.APPLIED, "ClusterFailed", "503", T1, permanent=False))
    assert not statuses.is_stalled(statuses.removing(status, "Removing", "going", T2))


def test_a_removal_says_what_it_waits_for() -> None:
    status = statuses.removing(ready(), "ClusterFailed", "503", T1)
    assert statuses.summary(status) == ("Removing", "503", statuses.TIPS["ClusterFailed"])
    assert conditions(status)["Ready"] == ("False", "ClusterFailed")


def test_the_body_carries_version_and_revision_once_there_are_any() -> None:
    assert "currentVersion" not in statuses.external(statuses.fresh(1, T0))
    status = statuses.released(statuses.placed(ready(), "prod"), "1.0.0", "sha256:aa", 2)
    body = statuses.external(status)
    assert body["currentVersion"] == {"version": "1.0.0", "digest": "sha256:aa"}
    assert body["release"] == {"namespace": "prod", "revision": 2}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["succeed", "fail", "park", "progress", "update", "reconfigure", "block", "observe", "remove"]),
        st.sampled_from(list(Stage)),
    ),
    max_size=12,
)


def after(status: PackageStatus, step: str, stage: Stage, now: datetime) -> PackageStatus:
    match step:
        case "succeed":
            return statuses.succeeded(status, stage, now)
        case "fail" | "park":
            return statuses.failed(status, stage, "RenderFailed", "m", now, permanent=step == "park")
        case "progress":
            return statuses.progressing(status, stage, "NotReady", "m", now)
        case "update":
            return statuses.update_started(status, status.generation + 1, now)
        case "reconfigure":
            return statuses.reconfigure_started(status, status.generation + 1, now)
        case "block":
            return statuses.blocked(status, status.generation + 1, "SpecInvalid", "m", now)
        case "observe":
            return statuses.observed(status, status.generation, now)
        case _:
            return statuses.removing(status, "Removing", "going", now)


@given(STEPS)
def test_kstatus_holds_after_any_story(steps: list[tuple[str, Stage]]) -> None:
    """Ready excludes the other two; one of the three always holds; every condition is one the API would accept."""
    status = statuses.fresh(1, T0)
    installed = False
    for number, (step, stage) in enumerate(steps):
        status = after(status, step, stage, T0 + timedelta(seconds=number + 1))
        body: JsonObject = statuses.external(status)
        got = conditions(status)
        held = [kind for kind in ("Ready", "Reconciling", "Stalled") if got[kind][0] == "True"]
        assert len(held) == 1
        assert (statuses.summary(status)[0] == "Ready") == (held == ["Ready"])
        installed = installed or held == ["Ready"]
        assert (got["Installed"][0] == "True") >= installed
        for entry in find_list(body, "conditions"):
            assert find(entry, "reason")
            assert str(find(entry, "lastTransitionTime")).endswith("Z")


def test_a_lost_requirement_suspends_and_an_unmet_one_is_waited_for() -> None:
    """Nothing is stalled: others have to change, and their change is noticed."""
    status = statuses.fresh(1, T0)
    for stage in (Stage.FETCHED, Stage.LOADED):
        status = statuses.succeeded(status, stage, T0)
    unmet = statuses.required(status, "DependencyNotEnabled", "dependency db is not enabled", T1, met=False)
    assert statuses.summary(unmet)[:2] == ("Pending", "dependency db is not enabled")
    assert conditions(unmet)["Reconciling"] == ("True", "DependencyNotEnabled")
    assert statuses.summary(unmet)[2] == statuses.TIPS["DependencyNotEnabled"]
    lost = statuses.required(ready(), "DependencyNotEnabled", "dependency db is not enabled", T1, met=False)
    assert statuses.summary(lost)[0] == "Suspended"
    assert conditions(lost)["Installed"][0] == "True"
    assert statuses.required(lost, "", "", T2, met=True).stages[Stage.REQUIREMENTS].truth is Truth.TRUE


@pytest.mark.parametrize("reason", sorted(statuses.OFF_REASONS))
def test_what_nobody_wants_is_disabled_and_at_rest(reason: str) -> None:
    installed = statuses.released(ready(), "1.0.0", "sha256:a", 1)
    leaving = statuses.required(installed, reason, "it is disabled", T1, met=False)
    assert statuses.summary(leaving)[0] == "Disabling"
    assert conditions(leaving)["Reconciling"][0] == "True"
    status = statuses.uninstalled(leaving, T2)
    assert statuses.summary(status)[:2] == ("Disabled", "it is disabled")
    got = conditions(status)
    assert (got["Ready"][0], got["Reconciling"][0], got["Stalled"][0]) == ("False", "False", "False")
    assert got["Installed"][0] == "False"
    assert "currentVersion" not in statuses.external(status)


def test_a_script_that_fails_is_stalled_and_so_looked_at_again() -> None:
    status = statuses.required(ready(), "EnabledScriptError", "exit status 1", T1, met=False)
    assert statuses.is_stalled(status)
