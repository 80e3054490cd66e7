"""The rules that decide whether an upgrade has failed, and to which revision a package returns. Pure.

An attempt to reach the state that a resource asks for is an *upgrade* if the package was Ready in another state before. An
upgrade has failed

* immediately, if a stage failed and cannot succeed without a change of its inputs;
* if its stages failed more than ``spec.upgrade.retries`` times;
* if the package is not Ready ``spec.upgrade.timeout`` after the attempt began.

No upgrade fails while its package is suspended, in maintenance, not wanted, or to be removed. An attempt that became Ready is
over, so a later failure does not count as a failed upgrade. An attempt with the same content as the revision that was Ready
before does not count as an upgrade, because a return to that revision would change nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from wharfinger.cluster.records.release import Release, ReleaseStatus
from wharfinger.runtime.lifecycle.way_back_record import ReadyRevision
from wharfinger.runtime.package.state import Attempt
from wharfinger.runtime.resources.upgrade_policy import UpgradePolicy
from wharfinger.runtime.status.package_status import PackageStatus, open_condition
from wharfinger.runtime.status.reasons import OFF


@dataclass(frozen=True, slots=True)
class Continues:
    """The upgrade continues; ``again`` is the time after which it must be judged again, None if no time limit applies."""

    again: timedelta | None = None


@dataclass(frozen=True, slots=True)
class HasFailed:
    """The upgrade has failed, for the reason ``why``."""

    why: str


Verdict: TypeAlias = Continues | HasFailed


def judge_upgrade(
    policy: UpgradePolicy,
    attempt: Attempt,
    status: PackageStatus,
    ready: ReadyRevision | None,
    content: str,
    now: datetime,
    digest: str = "",
) -> Verdict:
    """Return HasFailed if the attempt is an upgrade that has failed, and otherwise Continues.

    ``content`` is the checksum of the package, version and settings that the attempt installs (:class:`RecordedInputs`).
    ``ready`` is the revision that was Ready before; None if no such revision is recorded.
    """
    if (
        not policy.rollback
        or attempt.settled
        or attempt.since is None
        or not _is_upgrade(attempt, ready, content, digest)
    ):
        return Continues()
    problem = open_condition(status)
    aside = status.suspended or status.maintenance is not None or status.removal is not None or status.held is not None
    if aside or problem is None or problem.reason in OFF or status.installed_since is None:
        return Continues()
    last = f"{attempt.failure.reason}: {attempt.failure.message}" if attempt.failure is not None else ""
    if attempt.failure is not None and attempt.failure.permanent:
        return HasFailed(last)
    if attempt.failures > policy.retries:
        return HasFailed(last if attempt.failures == 1 else f"{last} (after {attempt.failures} attempts)")
    left = attempt.since + policy.timeout - now
    if left <= timedelta(0):
        said = problem.message or last
        return HasFailed(f"it is not Ready after {_seconds(policy.timeout)} s" + (f": {said}" if said else ""))
    return Continues(left)


def _is_upgrade(attempt: Attempt, ready: ReadyRevision | None, content: str, digest: str) -> bool:
    if ready is None:
        return attempt.changed
    return ready.asked != attempt.asked and ready.inputs.differs(content, digest)


def _seconds(time: timedelta) -> str:
    return f"{time.total_seconds():g}"


@dataclass(frozen=True, slots=True)
class Target:
    """The revision to return to; ``release`` may be a summary without the manifest."""

    release: Release


@dataclass(frozen=True, slots=True)
class NoTarget:
    """The answer that there is no revision to return to, with the reason."""

    why: str


def find_target(history: Sequence[Release], revision: int) -> Target | NoTarget:
    """Return the revision that a user asks for, or why the package cannot return to it."""
    if not history:
        return NoTarget("the package has no release, so it has no revisions")
    deployed = [release for release in history if was_deployed(release)]
    found = next((release for release in history if release.revision == revision), None)
    known = _listed(release.revision for release in deployed)
    if found is None:
        return NoTarget(f"there is no revision {revision}; deployed revisions that are still recorded: {known}")
    if found not in deployed:
        return NoTarget(f"revision {revision} was never deployed ({found.status}); the deployed revisions are {known}")
    return Target(found)


def was_deployed(release: Release) -> bool:
    """Return whether a revision was installed completely; a package can return only to such a revision."""
    return release.status in (ReleaseStatus.DEPLOYED, ReleaseStatus.SUPERSEDED)


def _listed(revisions: Iterable[int]) -> str:
    return ", ".join(str(each) for each in revisions) or "none"
