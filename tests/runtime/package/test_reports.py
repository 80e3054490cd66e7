"""The effect of reports on the status, tested with the machine alone."""

from dataclasses import replace

import pytest
from msgspec import structs

from tests.runtime.package.test_machine import IDLE, NOW, PLAIN, after, effects, installed, loaded, operations, package
from wharfinger.cluster.objects.drift_policy import DriftMode
from wharfinger.runtime.package.effects import Attempt, GiveWay, Log, Phase, Simple, Tell
from wharfinger.runtime.package.events import (
    DriftReported,
    EventHookDone,
    ForeignRevision,
    HealthSeen,
    HookDone,
    Placed,
    Progressed,
    Reachable,
    Released,
    Removing,
    Report,
    StageFailed,
    Succeeded,
    Tracked,
    Troubled,
    Uninstalled,
    ValuesChanged,
    WarnedOf,
)
from wharfinger.runtime.package.findings import PackageRead
from wharfinger.runtime.package.machine import step
from wharfinger.runtime.package.reports import DRIFT, RELEASE, UPKEEP
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.resources.identity import GLOBAL, AppId, ModuleId
from wharfinger.runtime.resources.upgrade_policy import UpgradePolicy
from wharfinger.runtime.scheduler.events import Rescheduled
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import Stage, Truth
from wharfinger.runtime.status.reasons import Reason

BROKEN = Failure(Reason.RENDER_FAILED, "broken", permanent=False)


def told(known: Package, *events: Report) -> Package:
    for event in events:
        known = after(known, event)
    return known


def condition(known: Package, stage: Stage) -> tuple[Truth, str]:
    found = known.status.stages[stage]
    return found.truth, found.reason


def ready() -> Package:
    """Return a package whose release was applied and was found healthy."""
    return told(installed(loaded()), *(Succeeded(stage) for stage in Stage))


def test_a_stage_is_in_progress_and_then_done_or_failed() -> None:
    known = told(loaded(), Progressed(Stage.APPLIED, "ApplyingManifests", "at work"))
    assert condition(known, Stage.APPLIED) == (Truth.UNKNOWN, "ApplyingManifests")
    assert condition(told(known, Succeeded(Stage.APPLIED)), Stage.APPLIED)[0] is Truth.TRUE
    assert condition(told(known, StageFailed(Stage.APPLIED, BROKEN)), Stage.APPLIED) == (Truth.FALSE, "RenderFailed")


def test_a_failure_gives_way_at_once_if_permanent() -> None:
    def ends(permanent: bool) -> tuple[object, ...]:
        return effects(loaded(), StageFailed(Stage.APPLIED, replace(BROKEN, permanent=permanent)))

    tried = (Attempt(Phase.CRDS, begins=False), Attempt(Phase.LOAD, begins=False))
    assert ends(permanent=False) == (*tried, GiveWay(0, at_once=False))
    assert ends(permanent=True) == (*tried, GiveWay(0, at_once=True))
    _, (said, *_) = step(loaded(), StageFailed(Stage.APPLIED, BROKEN), IDLE)
    assert said == Log("ManifestsApplied: RenderFailed: broken", warning=True)


def test_a_repeated_report_changes_nothing() -> None:
    known = told(loaded(), Progressed(Stage.APPLIED, "ApplyingManifests", "at work"), Placed())
    assert told(known, Placed()) is known
    assert told(known, Progressed(Stage.APPLIED, "ApplyingManifests", "at work")) is known


def test_health_is_checked_once_the_package_is_ready() -> None:
    assert effects(loaded(), Succeeded(Stage.SCALED)) == (Simple.LOOK_AT_HEALTH,)
    assert effects(loaded(), Succeeded(Stage.LOADED)) == ()
    unnamed = package(PackageRead(PLAIN, ()), identity=AppId("prod", "a" * 60))
    assert effects(unnamed, Succeeded(Stage.SCALED)) == ()


def test_the_status_shows_namespace_version_revision_and_urls() -> None:
    known = told(loaded(), Placed(), Released(3), Reachable((("https://x", "it"),)), Tracked(("a",), ("b",)))
    status = known.status
    assert (status.namespace, status.version, status.revision, status.urls) == (
        "prod",
        "1.0.0",
        3,
        (("https://x", "it"),),
    )
    assert status.progress is not None
    gone = told(known, Uninstalled())
    assert (gone.status.namespace, gone.status.version) == ("", "")
    assert effects(known, Uninstalled()) == (Simple.RESTATE,)


def test_a_removal_is_logged_if_it_fails() -> None:
    _, done = step(loaded(), Removing("Removing", "waiting"), IDLE)
    assert done == ()
    known, done = step(loaded(), Removing("RenderFailed", "broken"), IDLE)
    assert done == (Log("removal: RenderFailed: broken", warning=True),)
    assert known.status.removal is not None


# --- hooks -------------------------------------------------------------------------------------------------------------------


def test_event_hooks_fail_and_recover_by_lane() -> None:
    known = told(ready(), EventHookDone("b", "main", "b is broken"), EventHookDone("a", "main", "a is broken"))
    assert known.status.stages[Stage.HOOKS].message == "a is broken"
    assert told(known, EventHookDone("a", "slow", "")) is known
    # A completed run does not end the failure of an event hook in a lane.
    assert condition(told(known, Succeeded(Stage.APPLIED), Succeeded(Stage.HOOKS)), Stage.HOOKS)[0] is Truth.FALSE
    known = told(known, EventHookDone("a", "main", ""))
    assert known.status.stages[Stage.HOOKS].message == "b is broken"
    assert condition(told(known, EventHookDone("b", "main", "")), Stage.HOOKS)[0] is Truth.TRUE


def test_the_failure_of_a_run_outranks_a_failed_event_hook() -> None:
    """The status shows why a run is parked, even if an event hook fails or recovers after that."""
    stuck = StageFailed(Stage.HOOKS, replace(BROKEN, permanent=True))
    lane = EventHookDone("a", "main", "a is broken")
    for known in (told(ready(), stuck, lane), told(ready(), lane, stuck)):
        assert condition(known, Stage.HOOKS) == (Truth.FALSE, BROKEN.reason)
        assert statuses.is_stalled(known.status)
        assert known.hooks.failing == {("a", "main"): "a is broken"}
        recovered = told(known, EventHookDone("a", "main", ""))
        assert statuses.is_stalled(recovered.status)
        assert condition(told(recovered, Succeeded(Stage.APPLIED)), Stage.HOOKS)[0] is Truth.TRUE
        # The run has succeeded, but the event hook still fails.
        assert condition(told(known, Succeeded(Stage.APPLIED)), Stage.HOOKS) == (Truth.FALSE, "EventHookFailed")
    assert effects(told(ready(), stuck), lane) == effects(ready(), lane)


def test_a_recovered_event_hook_does_not_complete_the_start_of_hooks() -> None:
    starting = Progressed(Stage.HOOKS, "StartingHooks", "running b (onStartup)")
    known = told(ready(), EventHookDone("a", "main", "a is broken"), starting, EventHookDone("a", "main", ""))
    assert condition(known, Stage.HOOKS) == (Truth.UNKNOWN, "StartingHooks")
    assert condition(told(known, Succeeded(Stage.HOOKS)), Stage.HOOKS)[0] is Truth.TRUE


def test_a_completed_later_stage_ends_the_failure_of_hooks() -> None:
    known = told(ready(), StageFailed(Stage.HOOKS, BROKEN))
    assert condition(told(known, Succeeded(Stage.LOADED)), Stage.HOOKS)[0] is Truth.FALSE
    assert condition(told(known, Succeeded(Stage.APPLIED)), Stage.HOOKS)[0] is Truth.TRUE


def test_the_runs_of_hooks_are_counted() -> None:
    known = told(loaded(), HookDone("a", "exit status 1"), HookDone("a", ""))
    assert (known.hooks.history["a"].runs, known.hooks.history["a"].last_error) == (2, "")
    assert known.hooks.history["a"].last_run == NOW
    assert effects(loaded(), HookDone("a", "")) == ()
    assert effects(package(identity=ModuleId(GLOBAL)), HookDone("a", "")) == (Simple.FLAGS_SEEN,)


def test_changed_values_request_a_run_now_or_after_the_current_run() -> None:
    again = Tell(Rescheduled("prod.shop", "HookValuesChanged"))
    assert effects(loaded(), ValuesChanged("a")) == (again,)
    applying = operations(applying=True)
    assert effects(loaded(), ValuesChanged("a"), applying) == ()
    assert after(loaded(), ValuesChanged("a"), applying).applied.dirty
    # A parked run does not read the values any more.
    stalled = told(ready(), StageFailed(Stage.APPLIED, replace(BROKEN, permanent=True)))
    assert effects(stalled, ValuesChanged("a"), applying) == (again,)


# --- the release -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "truth", "reason"),
    [
        (HealthSeen(failed="x"), Truth.FALSE, "WorkloadFailed"),
        (HealthSeen(stalled="x", any_stalled=True), Truth.FALSE, "Unhealthy"),
        (HealthSeen(rolling="x"), Truth.TRUE, "RollingOut"),
        (HealthSeen(), Truth.TRUE, "Scaled"),
    ],
)
def test_health_counts_once_the_package_was_ready(seen: HealthSeen, truth: Truth, reason: str) -> None:
    assert condition(told(ready(), seen), Stage.SCALED) == (truth, reason)
    assert told(loaded(), seen).status.stages[Stage.SCALED] == loaded().status.stages[Stage.SCALED]


def test_a_package_ready_before_a_restart_is_judged_early_only_if_stalled() -> None:
    known = ready()
    known = structs.replace(
        known, status=structs.replace(known.status, scale_checked=False, ready_kept=known.status.external["Ready"])
    )
    assert known.status.is_being_verified
    assert told(known, HealthSeen(rolling="x")) is known
    seen = told(known, HealthSeen(stalled="x", any_stalled=True))
    assert condition(seen, Stage.SCALED) == (Truth.FALSE, "Unhealthy")


def test_fights_are_shown_while_no_apply_runs() -> None:
    fought = DriftReported(("a by x",), ("a again", "b again", "c again", "d again"))
    known = told(ready(), fought)
    assert condition(known, Stage.APPLIED) == (Truth.FALSE, "DriftFought")
    assert known.status.stages[Stage.APPLIED].message == "a again; b again; c again; and 1 more"
    assert condition(told(known, DriftReported((), ())), Stage.APPLIED)[0] is Truth.TRUE
    early = told(ready(), Progressed(Stage.APPLIED, "ApplyingManifests", "at work"), fought)
    assert condition(early, Stage.APPLIED) == (Truth.UNKNOWN, "ApplyingManifests")
    assert condition(told(early, Succeeded(Stage.APPLIED)), Stage.APPLIED) == (Truth.FALSE, "DriftFought")


def test_drift_and_fights_are_logged_together() -> None:
    _, said = step(ready(), DriftReported(("a by x",), ("a again",)), IDLE)
    fought = Log(
        "another manager changes fields again after each correction, so stop that manager or remove these "
        "fields from the package: a again",
        warning=True,
    )
    assert said == (Log("drift: a by x"), fought)


def test_a_failed_upgrade_with_rollback_notifies_the_controller() -> None:
    known, failure = ready(), StageFailed(Stage.APPLIED, BROKEN)
    directives = replace(known.desired.directives, upgrade=UpgradePolicy(rollback=True))
    may = structs.replace(known, desired=structs.replace(known.desired, directives=directives))
    assert effects(may, failure) == (*effects(known, failure), Simple.NOTIFY)


def test_an_attempt_is_settled_when_all_stages_are_done() -> None:
    assert not told(loaded(), Succeeded(Stage.LOADED)).desired.attempt.settled
    assert ready().desired.attempt.settled


def test_drift_is_a_warning_if_it_is_not_corrected() -> None:
    known = told(ready(), DriftReported(("a by x",), ()))
    assert known.warnings.get(DRIFT, ()) == ()
    assert told(known, ForeignRevision("release: helm")).warnings[DRIFT] == ("drift: a by x",)
    directives = known.desired.directives
    policy = replace(directives.release_policy, drift=replace(directives.release_policy.drift, mode=DriftMode.WARN))
    warned = structs.replace(
        ready(), desired=structs.replace(known.desired, directives=replace(directives, release_policy=policy))
    )
    assert told(warned, DriftReported(("a by x",), ())).warnings[DRIFT] == ("drift: a by x",)
    _, said = step(known, DriftReported(("a by x", "b by y"), ()), IDLE)
    assert said == (Log("drift: b by y"),)


def test_a_revision_of_another_writer_is_logged_once() -> None:
    known, said = step(ready(), ForeignRevision("release: helm"), IDLE)
    assert said == (Log("release: helm", warning=True),)
    assert known.status.warnings == ("release: helm",)
    assert known.warnings[RELEASE] == ("release: helm",)
    assert step(known, ForeignRevision("release: helm"), IDLE) == (known, ())


def test_failing_corrections_are_logged_at_their_begin_and_end() -> None:
    known, said = step(ready(), Troubled(("a", "b")), IDLE)
    assert said == (Log("a", warning=True), Log("b", warning=True))
    known, said = step(known, Troubled(("b", "c")), IDLE)
    assert (said, known.warnings[UPKEEP]) == ((Log("c", warning=True),), ("b", "c"))
    known, said = step(known, Troubled(()), IDLE)
    assert said == (Log("all corrections and deletions of objects succeed again"),)
    assert step(known, Troubled(()), IDLE) == (known, ())


def test_warnings_are_shown_in_the_order_of_their_subjects() -> None:
    known = told(ready(), WarnedOf("settings", ("s",)), WarnedOf("hooks", ("h",)))
    assert known.status.warnings == ("h", "s")
    assert told(known, WarnedOf("hooks", ("h",))) is known
