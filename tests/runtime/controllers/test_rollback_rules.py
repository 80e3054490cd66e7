"""The rules that decide when an upgrade has failed, and to which revision a package returns."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from msgspec import structs

from wharfinger.cluster.records.release import Release, ReleaseStatus, new_release
from wharfinger.runtime.controllers.rollback_rules import (
    Continues,
    HasFailed,
    NoTarget,
    Target,
    find_target,
    judge_upgrade,
)
from wharfinger.runtime.lifecycle.way_back_record import ReadyRevision
from wharfinger.runtime.package.state import Attempt
from wharfinger.runtime.resources.recorded_inputs import RecordedInputs
from wharfinger.runtime.resources.upgrade_policy import UpgradePolicy
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import PackageStatus, Stage
from wharfinger.runtime.status.reasons import Reason

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
POLICY: Final = UpgradePolicy(rollback=True, timeout=timedelta(minutes=5), retries=2)
READY: Final = ReadyRevision("before", 1, RecordedInputs("web", "1.0.0", "sha256:a"))
NEW: Final = "other content"
HOOK: Final = Failure(Reason.HOOK_FAILED, "no", permanent=False)
ATTEMPT: Final = Attempt("now", NOW, changed=True)


def upgrading() -> PackageStatus:
    """Return an installed package whose upgrade is being applied."""
    status = statuses.fresh(1, NOW)
    for stage in Stage:
        status = statuses.succeeded(status, stage, NOW)
    return statuses.update_started(statuses.released(status, "1.0.0", "", 1), 2, NOW, version="2.0.0")


def judge(
    attempt: Attempt = ATTEMPT,
    *,
    status: PackageStatus | None = None,
    ready: ReadyRevision | None = READY,
    after: timedelta = timedelta(0),
    policy: UpgradePolicy = POLICY,
    content: str = NEW,
) -> Continues | HasFailed:
    return judge_upgrade(policy, attempt, upgrading() if status is None else status, ready, content, NOW + after)


def test_an_upgrade_continues_until_its_timeout() -> None:
    assert judge() == Continues(timedelta(minutes=5))
    assert judge(after=timedelta(minutes=4)) == Continues(timedelta(minutes=1))
    failed = judge(after=timedelta(minutes=5))
    assert isinstance(failed, HasFailed)
    assert failed.why.startswith("it is not Ready after 300 s")


def test_an_upgrade_fails_after_its_retries_or_at_a_permanent_error() -> None:
    assert judge(structs.replace(ATTEMPT, failures=2, failure=HOOK)) == Continues(timedelta(minutes=5))
    assert judge(structs.replace(ATTEMPT, failures=3, failure=HOOK)) == HasFailed("HookFailed: no (after 3 attempts)")
    permanent = replace(HOOK, permanent=True)
    assert judge(structs.replace(ATTEMPT, failures=1, failure=permanent)) == HasFailed("HookFailed: no")


LATE: Final = timedelta(days=1)


@pytest.mark.parametrize(
    "judged",
    [
        judge(policy=replace(POLICY, rollback=False), after=LATE),
        judge(structs.replace(ATTEMPT, settled=True), after=LATE),
        judge(Attempt(), after=LATE),
        judge(structs.replace(ATTEMPT, asked="before"), after=LATE),
        judge(content=READY.inputs.content, after=LATE),
        judge(structs.replace(ATTEMPT, changed=False), ready=None, after=LATE),
        judge(status=statuses.fresh(1, NOW), after=LATE),
        judge(status=statuses.suspended(upgrading(), NOW, suspended=True), after=LATE),
        judge(status=statuses.set_maintenance(upgrading(), "NoResourceReconciliation", NOW), after=LATE),
        judge(status=statuses.removing(upgrading(), "Removing", "", NOW), after=LATE),
        judge(status=statuses.required(upgrading(), Reason.DYNAMICALLY_DISABLED, "", NOW, met=False)),
    ],
)
def test_only_an_upgrade_can_fail(judged: Continues | HasFailed) -> None:
    assert judged in (Continues(), Continues(POLICY.timeout))


def test_an_upgrade_without_a_recorded_former_revision_can_fail() -> None:
    assert isinstance(judge(ready=None, after=LATE), HasFailed)


def revision(number: int, status: ReleaseStatus) -> Release:
    return new_release(
        name="shop", namespace="prod", revision=number, status=status, description="", chart={}, values={}, manifest="",
        hooks=[], now=NOW,
    )  # fmt: skip


HISTORY: Final = [
    revision(1, ReleaseStatus.SUPERSEDED),
    revision(2, ReleaseStatus.FAILED),
    revision(3, ReleaseStatus.DEPLOYED),
]


def test_only_recorded_deployed_revisions_can_be_requested() -> None:
    assert find_target(HISTORY, 1) == Target(HISTORY[0])
    assert find_target(HISTORY, 3) == Target(HISTORY[2])
    assert find_target(HISTORY, 2) == NoTarget(
        "revision 2 was never deployed (failed); the deployed revisions are 1, 3"
    )
    assert find_target(HISTORY, 7) == NoTarget(
        "there is no revision 7; deployed revisions that are still recorded: 1, 3"
    )
    assert find_target([], 1) == NoTarget("the package has no release, so it has no revisions")
