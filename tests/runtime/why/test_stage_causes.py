"""The causes in `wharfinger why` that come from the stages and tasks of a package."""

from dataclasses import replace

import pytest

from tests.runtime.support.explained import SINCE, condition, downloading, failing, known, node, package, ready, task
from wharfinger.runtime.daemon_details import SlotsSnapshot
from wharfinger.runtime.inspector import (
    ACCEPTED,
    REMOVED,
    ConditionSnapshot,
    HookSnapshot,
    OperationSnapshot,
    PackageSnapshot,
    ProgressSnapshot,
    QueueSnapshot,
    TaskSnapshot,
)
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import advice
from wharfinger.runtime.why.causes import Cause, Known
from wharfinger.runtime.why.remedies import WAIT, of_failed_hook, of_hook, of_shares, of_slots, of_work
from wharfinger.runtime.why.stage_causes import (
    aside_cause,
    gate_failure,
    is_being_brought,
    stage_causes,
)

NOBODY = known()
FAILED = "PackageHookFailed: hooks/a.sh: exit status 3"


def causes(found: PackageSnapshot, here: Known = NOBODY) -> list[Cause]:
    return list(stage_causes(here, found))


def aside(found: PackageSnapshot, here: Known = NOBODY) -> Cause:
    cause = aside_cause(here, found)
    assert cause is not None
    return cause


# Failures


def test_a_failure_shows_its_attempt_and_the_next_one() -> None:
    (cause,) = causes(failing("db"))
    assert cause.line == (
        "fails: PackageHookFailed: hooks/a.sh: exit status 3; attempt 4, next at 12:30:13 UTC (in 13 s)"
    )
    assert (cause.since, cause.by_hand, cause.through) == (SINCE, True, ())
    assert cause.remedy == advice("PackageHookFailed").replace(" NAME`", " db`")
    hooks = (HookSnapshot("hooks/a.sh", (), 0, None, ""),)
    (cause,) = causes(replace(failing("db"), hooks=hooks))
    assert cause.remedy == of_failed_hook("db", "hooks/a.sh")


@pytest.mark.parametrize(
    ("head", "ends"),
    [
        (task(error=FAILED, attempt=4, parked=True), "; attempt 4, parked until something changes"),
        (task(error=FAILED, attempt=4, running=True), "; attempt 4 is running"),
        (task(), "exit status 3"),
        (task(error="another", attempt=4, retry_in_s=13.4), "; attempt 4, next at 12:30:13 UTC (in 13 s)"),
    ],
)
def test_attempts_are_described_for_each_state_of_a_task(head: TaskSnapshot, ends: str) -> None:
    found = failing("db")
    (cause,) = causes(replace(found, queue=replace(found.queue, tasks=(head,))))
    assert cause.message.endswith(ends)
    assert cause.state == ("failed permanently" if head.parked else "fails")


def test_the_task_with_the_same_failure_is_described() -> None:
    found = failing("db")
    other = task("hooks/b.sh events", error="EventHookFailed: b", attempt=9, retry_in_s=1)
    found = replace(found, queue=replace(found.queue, tasks=(other, *found.queue.tasks)))
    (cause,) = causes(found)
    assert "attempt 4" in cause.message


def test_a_permanent_failure_promises_no_retry() -> None:
    said = condition(Stage.APPLIED, "False", "ClusterFailed", "no")
    parked = package("db", said, tasks=(task(error="ClusterFailed: no", parked=True),))
    (cause,) = causes(parked)
    assert cause.remedy == advice("ClusterFailed", permanent=True)


def at_rest(error: str, condition_says: str = "DynamicallyDisabled", name: str = "Disable") -> PackageSnapshot:
    required = condition(Stage.REQUIREMENTS, "False", condition_says, "hooks/a.sh: exit status 3")
    hooks = (HookSnapshot("hooks/a.sh", (), 0, None, ""),)
    tasks = (task(name, error=error, attempt=2, retry_in_s=13.4),)
    return replace(package("db", required, tasks=tasks), hooks=hooks)


@pytest.mark.parametrize("said", ["DynamicallyDisabled", "PackageHookFailed"])
def test_a_failure_of_a_disable_is_a_cause(said: str) -> None:
    """The Disable has failed. The condition shows this failure, or the decision to disable the package if that was reported
    later.
    """
    cause = gate_failure(NOBODY, at_rest(FAILED, said))
    assert cause is not None
    assert cause.line == (
        "cannot be stopped: PackageHookFailed: hooks/a.sh: exit status 3; attempt 2, next at 12:30:13 UTC (in 13 s)"
    )
    assert (cause.since, cause.by_hand, cause.remedy) == (SINCE, True, of_failed_hook("db", "hooks/a.sh"))


def test_a_failure_without_a_known_reason_uses_the_condition() -> None:
    for error in ("boom", "boom: boom"):
        cause = gate_failure(NOBODY, at_rest(error, "PackageHookFailed", "EnabledScript"))
        assert cause is not None
        assert cause.line.startswith("cannot run its enabled script: PackageHookFailed: hooks/a.sh: exit status 3; ")
    parked = replace(at_rest(FAILED), queue=QueueSnapshot("db", (task("Disable", error=FAILED, parked=True),)))
    cause = gate_failure(NOBODY, parked)
    assert cause is not None
    assert cause.state == "failed permanently"


def test_other_tasks_are_no_failures_of_requirements() -> None:
    assert gate_failure(NOBODY, failing("db")) is None
    assert gate_failure(NOBODY, at_rest("")) is None
    assert gate_failure(NOBODY, at_rest(FAILED, name="Run")) is None


def test_failures_of_separate_lanes_are_all_listed() -> None:
    crds = condition(Stage.CRDS, "False", "ApplyFailed", "crd")
    hooks = condition(Stage.HOOKS, "False", "EventHookFailed", "hook")
    assert [cause.message for cause in causes(package("db", hooks, crds))] == [
        "ApplyFailed: crd",
        "EventHookFailed: hook",
    ]


NOT_READY = condition(Stage.SCALED, "False", "NotReady", "Deployment.apps prod/web: 0 of 1 available")


def test_a_package_that_is_not_ready_is_shown_with_its_progress() -> None:
    found = replace(package("prod.web", NOT_READY), progress=ProgressSnapshot(3, 1, ("Deployment.apps prod/web",)))
    (cause,) = causes(found)
    assert cause.line == (
        "is applied but not ready: 3 of 4 objects are ready; Deployment.apps prod/web: 0 of 1 available"
    )


def test_an_unready_old_version_is_no_cause_during_an_update() -> None:
    """The Deployment of the old version is not ready while the new version is downloaded. `wharfinger why` must not name the
    Deployment as a cause.
    """
    fetching = condition(Stage.FETCHED, "Unknown", "Downloading", "downloading web 2.0.0")
    (cause,) = causes(package("prod.web", fetching, NOT_READY))
    assert cause.line == "is at work: downloading web 2.0.0"


def test_unmet_requirements_are_no_failure_of_a_stage() -> None:
    (cause,) = causes(package("db", condition(Stage.REQUIREMENTS, "False", "DependencyNotEnabled", "x")))
    assert not cause.by_hand


# Running work


def test_running_work_is_described_with_its_task() -> None:
    (cause,) = causes(downloading("db"))
    assert cause == Cause(
        "is at work",
        "downloading web 1.0.0; Download:1.0.0, attempt 1",
        SINCE,
        remedy=of_work("Download:1.0.0"),
        by_hand=False,
    )


def test_work_that_has_not_begun_is_described() -> None:
    said = condition(Stage.FETCHED, "Unknown", "Loading")
    (cause,) = causes(package("db", said, tasks=(task("Load"), task("Run", index=2))))
    assert cause.message == "the files of the package are being read; next Load"


def test_a_package_being_checked_is_at_work() -> None:
    (cause,) = causes(package("db", state="Pending"))
    assert (cause.line, cause.since) == ("is at work: a message", None)


def test_a_hook_that_runs_is_named_in_the_remedy() -> None:
    said = condition(Stage.HOOKS, "Unknown", "StartingHooks", "running hooks/10-init.sh (onStartup)")
    hooks = tuple(HookSnapshot(name, (), 0, None, "") for name in ("hooks/10", "hooks/10-init.sh"))
    found = replace(package("db", said, tasks=(task("Startup", running=True),)), hooks=hooks)
    (cause,) = causes(found)
    assert cause.message == "running hooks/10-init.sh (onStartup); Startup, attempt 1"
    assert cause.remedy == of_hook("db", "hooks/10-init.sh")


def test_a_hook_in_flight_in_the_journal_is_named() -> None:
    said = condition(Stage.APPLIED, "Unknown", "ApplyingManifests")
    steps = OperationSnapshot("reconciliation", (), ("beforeHelm/1/hooks/a.sh",), (), earlier=False)
    found = replace(package("db", said, tasks=(task("Run", running=True),)), operations=(steps,))
    (cause,) = causes(found)
    assert cause.message == "the package's manifests are being applied; running hooks/a.sh; Run, attempt 1"
    assert "hooks/a.sh" in cause.remedy
    applying = replace(steps, in_flight=("apply/1",))
    (cause,) = causes(replace(found, operations=(applying,)))
    assert cause.remedy == WAIT


AWAITING = package(
    "db",
    condition(Stage.CRDS, "Unknown", "WaitingForCRDs", "waiting for the custom resource definitions of a"),
    state="Pending",
    tasks=(task("AwaitCRDs", running=True, waits_for="the custom resource definitions of a"),),
)


def test_waiting_for_crds_leads_to_their_packages() -> None:
    (cause,) = causes(AWAITING, known(trying=("a", "b", "db")))
    assert cause.state == "waits for the custom resource definitions of a, b"
    assert cause.through == ("a", "b")


def test_finished_crds_of_other_packages_are_no_cause() -> None:
    (cause,) = causes(AWAITING, known(trying=("db",)))
    assert (cause.state, cause.by_hand) == ("is at work", False)


SLOTS = (SlotsSnapshot("work", 4, 3, 2), SlotsSnapshot("renders", 2, 2, 2), SlotsSnapshot("api", 1, 1, 0))


def test_a_limit_is_shown_with_its_use() -> None:
    said = condition(Stage.APPLIED, "Unknown", "ApplyingManifests")
    found = package("db", said, tasks=(task("Run", running=True, waits_for="a slot: renders"),))
    (cause,) = causes(replace(found, waits_for=("renders",)), known(slots=SLOTS))
    assert cause.line == (
        "waits for a slot: renders: Run; work: 3 of 4 in use, 2 waiting; renders: 2 of 2 in use, 2 waiting"
    )
    assert cause.remedy == of_slots("renders")
    full = (replace(SLOTS[0], used=4), replace(SLOTS[1], used=1))
    (cause,) = causes(replace(found, waits_for=("renders",)), known(slots=full))
    assert cause.remedy == of_slots("work")
    free = tuple(replace(each, used=1) for each in SLOTS)
    (cause,) = causes(replace(found, waits_for=("renders",)), known(slots=free))
    assert cause.remedy == of_shares()


# States that outrank the stages


def test_most_packages_have_no_outranking_cause() -> None:
    assert aside_cause(NOBODY, ready("db")) is None
    assert aside_cause(NOBODY, failing("db")) is None


def test_an_invalid_resource_is_a_cause() -> None:
    cause = aside(
        package("db", condition(ACCEPTED, "False", "RepositoryNotFound", "PackageRepository x does not exist"))
    )
    assert cause.line == "has a resource that cannot be used: RepositoryNotFound: PackageRepository x does not exist"
    assert cause.remedy.startswith("create the PackageRepository")


def test_a_suspension_is_a_cause() -> None:
    cause = aside(replace(failing("shop.web"), suspended=True))
    assert cause.state == "is suspended"
    assert "kubectl patch applications.wharfinger.dev web -n shop" in cause.remedy


def test_running_and_failed_removals_are_causes() -> None:
    at_work = condition(REMOVED, "False", "Removing", "running the package's beforeDeleteHelm hooks: hooks/a.sh")
    hooks = (HookSnapshot("hooks/a.sh", (), 0, None, ""),)
    found = replace(package("db", at_work, tasks=(task("Uninstall", running=True),)), hooks=hooks)
    cause = aside(found)
    assert (cause.state, cause.by_hand, cause.remedy) == ("is being removed", False, of_hook("db", "hooks/a.sh"))
    assert aside(replace(found, hooks=())).remedy == WAIT
    failed = condition(REMOVED, "False", "PackageHookFailed", "hooks/a.sh: exit status 1")
    retried = task("Uninstall", error="PackageHookFailed: hooks/a.sh: exit status 1", attempt=2, retry_in_s=5.0)
    cause = aside(package("db", failed, tasks=(retried,)))
    assert cause.line == (
        "cannot be removed: PackageHookFailed: hooks/a.sh: exit status 1; attempt 2, next at 12:30:05 UTC (in 5 s)"
    )
    assert "skip-delete-hooks" in cause.remedy


def test_a_removal_may_wait_for_a_slot() -> None:
    at_work = condition(REMOVED, "False", "Removing", "x")
    found = package("db", at_work, tasks=(task("Uninstall", running=True, waits_for="a slot: hooks"),))
    assert aside(replace(found, waits_for=("hooks",))).state == "waits for a slot: hooks"


def test_a_held_removal_leads_to_leaving_dependents() -> None:
    """The cause leads to the dependent that is being removed, and not to a dependent that stays or that is deleted already."""
    held = package("db", condition(REMOVED, "False", "WaitingForDependents", "it waits"))
    db = replace(node("db"), dependents=("shop.cache", "shop.gone", "shop.web"))
    going = package("shop.web", condition(REMOVED, "False", "Removing"), state="Removing")
    cause = aside(held, known(db, going, ready("shop.cache")))
    assert (cause.state, cause.through) == ("waits until shop.web is uninstalled", ("shop.web",))
    assert aside(held, known(leaving=("shop.web",))).through == ("shop.web",)
    for here in (known(), known(db)):
        assert aside(held, here).line == "cannot be removed: WaitingForDependents: it waits"


def test_a_held_change_leads_to_leaving_dependents() -> None:
    held = package("db", condition(ACCEPTED, "False", "WaitingForDependents", "spec.enabled: false waits for shop.web"))
    going = package("shop.web", state="Disabling")
    assert aside(held, known(replace(node("db"), dependents=("shop.web",)), going)).through == ("shop.web",)
    broken = package("db", condition(ACCEPTED, "False", "WouldBreakDependents", "the removal would break shop.web"))
    assert "ignore-dependents" in aside(broken, known(replace(node("db"), dependents=("shop.web",)), going)).remedy


@pytest.mark.parametrize(
    ("said", "brought"),
    [
        ((), False),
        ((condition(Stage.FETCHED, "Unknown"),), True),
        ((condition(Stage.LOADED, "False", "HookInvalid", "x"),), True),
        ((condition(Stage.REQUIREMENTS, "False"), condition(Stage.CONFIGURED, "Unknown")), False),
    ],
)
def test_a_version_is_being_installed_until_it_is_read(said: tuple[ConditionSnapshot, ...], brought: bool) -> None:
    assert is_being_brought(package("db", *said)) is brought


def test_crds_that_the_api_server_never_establishes_have_a_remedy() -> None:
    """The remedy must not be "nothing to do: it continues automatically", because nothing would continue."""
    message = (
        "CustomResourceDefinition.apiextensions.k8s.io a.example.test: the API server has not established it for 20 s"
    )
    waits = condition(Stage.APPLIED, "Unknown", "DefinitionsNotEstablished", message)
    (cause,) = causes(replace(ready("db"), conditions=(waits,)))
    assert cause.line.startswith(f"waits for the API server: {message}")
    assert cause.by_hand
    assert "kubectl annotate crd NAME" in cause.remedy
