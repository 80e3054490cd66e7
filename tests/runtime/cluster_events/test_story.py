"""The Events that changes of a package's status cause."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from tests.runtime.support.statuses import T0, T1, T2, ready
from wharfinger.runtime.cluster_events.reasons import EventReason
from wharfinger.runtime.cluster_events.story import Note, Story, begin, next_story
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus, Stage
from wharfinger.runtime.status.reasons import Reason


def told(first: PackageStatus, *later: PackageStatus, story: Story | None = None) -> list[str]:
    """Return the Events that a sequence of statuses causes, each as its reason and its text."""
    story = begin(first) if story is None else story
    found: list[Note] = []
    for before, after in zip((first, *later), later, strict=False):
        story, notes = next_story(story, before, after)
        found += notes
    return [f"{note.reason} {note.text}" for note in found]


def upgraded(status: PackageStatus, version: str) -> list[PackageStatus]:
    """Return the statuses of a successful update."""
    steps = [statuses.update_started(status, status.generation + 1, T1, version=version)]
    for stage in list(Stage)[:-1]:
        steps.append(statuses.succeeded(steps[-1], stage, T1))
    steps.append(statuses.released(steps[-1], version, "sha256:bb", 2))
    steps.append(statuses.succeeded(steps[-1], Stage.SCALED, T1))
    return steps


def failed(status: PackageStatus, stage: Stage, reason: str, text: str = "it broke") -> PackageStatus:
    return statuses.failed(status, stage, reason, text, T2, permanent=False)


def test_an_install_is_reported_once_it_is_complete() -> None:
    assert told(statuses.fresh(1, T0), *upgraded(statuses.fresh(1, T0), "1.0.0")) == [
        "Installed version 1.0.0 is installed and ready"
    ]


@pytest.mark.parametrize(
    ("version", "reason"),
    [("1.1.0", "Upgraded"), ("0.9.0", "RolledBack"), ("main", "Upgraded"), ("1.0.0-rc1", "RolledBack")],
)
def test_a_version_change_is_reported_with_the_former_version(version: str, reason: str) -> None:
    assert told(ready(), *upgraded(ready(), version)) == [
        f"{reason} version {version} is installed and ready; the former version was 1.0.0"
    ]


def test_a_successful_change_of_settings_is_not_reported() -> None:
    assert told(ready(), *upgraded(ready(), "1.0.0")) == []


def test_a_restart_without_changes_is_not_reported() -> None:
    found = statuses.restored(1, statuses.external(ready()), T1)
    assert found.is_being_verified
    assert told(found, *upgraded(found, "1.0.0")) == []


@pytest.mark.parametrize(
    ("stage", "reason", "event"),
    [
        (Stage.FETCHED, Reason.REGISTRY_FAILED, EventReason.FAILED),
        (Stage.HOOKS, Reason.PACKAGE_HOOK_FAILED, EventReason.HOOK_FAILED),
        (Stage.HOOKS, Reason.EVENT_HOOK_FAILED, EventReason.HOOK_FAILED),
        (Stage.APPLIED, Reason.HOOK_FAILED, EventReason.HOOK_FAILED),
        (Stage.APPLIED, Reason.APPLY_FAILED, EventReason.FAILED),
        (Stage.SCALED, Reason.WORKLOAD_FAILED, EventReason.UNHEALTHY),
    ],
)
def test_failure_and_recovery_are_reported(stage: Stage, reason: str, event: EventReason) -> None:
    broken = failed(ready(), stage, reason)
    mended = statuses.succeeded(broken, stage, T2)
    assert told(ready(), broken, mended) == [
        f"{event} {reason}: it broke",
        "Recovered version 1.0.0 is installed and ready",
    ]


def test_each_equal_failure_is_reported_so_that_it_is_counted() -> None:
    broken = failed(ready(), Stage.APPLIED, Reason.CLUSTER_FAILED)
    again = statuses.progressing(broken, Stage.APPLIED, Reason.APPLYING_MANIFESTS, "at work", T2)
    assert told(ready(), broken, again, broken, broken) == ["Failed ClusterFailed: it broke"] * 2


def test_objects_that_are_not_ready_yet_are_not_reported() -> None:
    waiting = statuses.progressing(ready(), Stage.SCALED, Reason.NOT_READY, "waiting for Deployment.apps prod/web", T1)
    assert told(ready(), waiting) == []


def test_a_requirement_is_lost_by_installed_packages_and_missing_for_others() -> None:
    reason = Reason.DEPENDENCY_NOT_ENABLED
    lost = failed(ready(), Stage.REQUIREMENTS, reason, "it requires db")
    assert told(ready(), lost) == ["RequirementLost DependencyNotEnabled: it requires db"]
    fresh = statuses.fresh(1, T0)
    for stage in (Stage.FETCHED, Stage.LOADED):
        fresh = statuses.succeeded(fresh, stage, T0)
    assert told(fresh, failed(fresh, Stage.REQUIREMENTS, reason, "it requires db")) == [
        "RequirementMissing DependencyNotEnabled: it requires db"
    ]


def test_disabling_a_package_is_not_reported_as_a_failure() -> None:
    off = failed(ready(), Stage.REQUIREMENTS, Reason.DYNAMICALLY_DISABLED, "spec.enabled is false")
    gone = statuses.uninstalled(off, T2)
    assert told(ready(), off, gone) == ["Disabled spec.enabled is false"]


def test_the_event_of_contested_drift_names_the_other_writer() -> None:
    fought = failed(ready(), Stage.APPLIED, Reason.DRIFT_FOUGHT, "Deployment.apps prod/web: changed again by kubectl")
    assert told(ready(), fought) == ["DriftFought Deployment.apps prod/web: changed again by kubectl"]


def test_a_held_change_is_reported_as_held() -> None:
    held = statuses.blocked(ready(), 2, Reason.WOULD_BREAK_DEPENDENTS, "web/shop requires it", T1)
    assert told(ready(), held) == ["Held web/shop requires it"]
    wrong = statuses.blocked(ready(), 2, Reason.SPEC_INVALID, "spec.packageName: missing", T1)
    assert told(ready(), wrong) == ["Failed SpecInvalid: spec.packageName: missing"]


def test_suspension_and_removal_are_reported_once() -> None:
    suspended = statuses.suspended(ready(), T1, suspended=True)
    assert told(ready(), suspended, suspended, statuses.suspended(suspended, T2, suspended=False)) == [
        "Suspended spec.suspend is true: nothing is reconciled, and nothing is deleted",
        "Resumed it is reconciled again",
    ]
    removing = statuses.removing(ready(), Reason.REMOVING, "the release is being uninstalled", T1)
    broken = statuses.removing(removing, Reason.PACKAGE_HOOK_FAILED, "hooks/clean.sh: exited with 1", T2)
    assert told(ready(), removing, broken, broken) == [
        "Removing it is being uninstalled",
        "HookFailed PackageHookFailed: hooks/clean.sh: exited with 1",
    ]


def test_a_refused_registry_is_also_reported_about_the_repository() -> None:
    def of_repository(reason: str) -> Iterable[bool]:
        return [note.of_repository for note in next_story(Story(), ready(), failed(ready(), Stage.FETCHED, reason))[1]]

    assert of_repository(Reason.REGISTRY_REFUSED) == [True]
    assert of_repository(Reason.ARTIFACT_NOT_FOUND) == [False]


def test_a_recovery_is_not_reported_before_the_package_is_ready() -> None:
    broken = failed(ready(), Stage.APPLIED, Reason.CLUSTER_FAILED)
    waiting = statuses.progressing(
        statuses.succeeded(broken, Stage.APPLIED, T2), Stage.SCALED, Reason.NOT_READY, "waiting", T2
    )
    assert told(broken, replace(waiting, ready_kept=None), story=Story("1.0.0", troubled=True)) == []
