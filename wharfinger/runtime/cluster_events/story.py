"""The rules that decide which changes of a package's status are worth an Event. Pure.

`next_story` compares a status with the one before. Successful work is reported once, when it is complete. A problem is reported
when it occurs, and again when it occurs in a later attempt. If the second report follows soon, the recorder only raises the
count of the first Event, because equal Events form one series. The texts come from the status, in which secrets are masked
already.

A restarted daemon verifies installed packages. A package that was only verified has not changed, so it gets no Event.
"""

from dataclasses import dataclass, replace
from typing import Final

from wharfinger.formats.version_constraint import ConstraintError, parse_version
from wharfinger.runtime.cluster_events.reasons import EventReason, EventType
from wharfinger.runtime.status.package_status import (
    Condition,
    PackageStatus,
    Phase,
    Stage,
    Truth,
    first_open,
    is_under_way,
)
from wharfinger.runtime.status.reasons import HELD, OFF, Reason, explanation
from wharfinger.runtime.status.summary import State, summarize
from wharfinger.runtime.versions.rollback_note import REQUESTED

_HOOKS: Final = frozenset({Reason.PACKAGE_HOOK_FAILED, Reason.EVENT_HOOK_FAILED, Reason.HOOK_FAILED})
_UNHEALTHY: Final = frozenset({Reason.UNHEALTHY, Reason.WORKLOAD_FAILED})
_OF_REPOSITORY: Final = frozenset({Reason.REPOSITORY_INVALID, Reason.REGISTRY_FAILED, Reason.REGISTRY_REFUSED})
"""The reasons of failures for which two Events are recorded: one about the package, and one about its repository."""


@dataclass(frozen=True, slots=True)
class Note:
    """One Event to record. With ``of_repository``, it is recorded about the package's PackageRepository, too."""

    reason: EventReason
    text: str
    of_repository: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """The facts about a package's earlier Events: the last version that was reported as ready, and whether a reported problem
    still exists.
    """

    version: str = ""
    troubled: bool = False


def begin(status: PackageStatus) -> Story:
    """Return the `Story` of a package that this process has not reported about yet."""
    return Story(status.version if status.installed_since is not None else "")


def next_story(story: Story, before: PackageStatus, after: PackageStatus) -> tuple[Story, tuple[Note, ...]]:
    """Return the Events to record after a change of the status, and the new `Story`, which remembers what they reported."""
    notes = list(_requested(before, after))
    problem = _problem(after)
    if problem is not None:
        if problem != _problem(before):
            notes.append(problem)
        return replace(story, troubled=story.troubled or problem.reason.type is EventType.WARNING), tuple(notes)
    summary = summarize(after)
    if summary.state == State.ROLLED_BACK:
        if summarize(before).state != State.ROLLED_BACK and not after.is_being_verified:
            notes.append(Note(EventReason.RETURNED, summary.message))
        return Story(after.version), tuple(notes)
    if summary.state != State.READY or after.is_being_verified:
        return story, tuple(notes)
    if after.version != story.version:
        notes.append(_completed(story.version, after.version))
    elif story.troubled:
        notes.append(Note(EventReason.RECOVERED, summary.message))
    return Story(after.version), tuple(notes)


def _completed(old: str, new: str) -> Note:
    if not old:
        return Note(EventReason.INSTALLED, f"version {new} is installed and ready")
    reason = EventReason.ROLLED_BACK if _is_older(new, old) else EventReason.UPGRADED
    return Note(reason, f"version {new} is installed and ready; the former version was {old}")


def _is_older(new: str, old: str) -> bool:
    """Return whether a version is older than another one; False if either cannot be read as a version."""
    try:
        return parse_version(new) < parse_version(old)
    except ConstraintError:
        return False


def _requested(before: PackageStatus, after: PackageStatus) -> tuple[Note, ...]:
    """Return the Events about a suspension and its end, an automatic rollback, the beginning of a removal, and the end of
    a disable.
    """
    notes: list[Note] = []
    if after.suspended and not before.suspended:
        notes.append(Note(EventReason.SUSPENDED, explanation(Reason.SUSPENDED)))
    elif before.suspended and not after.suspended:
        notes.append(Note(EventReason.RESUMED, "it is reconciled again"))
    if after.rollback is not None and after.rollback != before.rollback and after.rollback.reason != REQUESTED:
        notes.append(Note(EventReason.UPGRADE_FAILED, after.rollback.line))
    if after.removal is not None and before.removal is None:
        notes.append(Note(EventReason.REMOVING, "it is being uninstalled"))
    becomes = summarize(after)
    if becomes.state == State.DISABLED and summarize(before).state == State.DISABLING:
        notes.append(Note(EventReason.DISABLED, becomes.message))
    return tuple(notes)


def _problem(status: PackageStatus) -> Note | None:
    """Return the problem that a status has now; None if nothing is wrong, or if work is under way."""
    if status.removal is not None:
        failed = status.removal.reason not in (Reason.REMOVING, Reason.WAITING_FOR_DEPENDENTS)
        return _note(_kind_of(status.removal, EventReason.FAILED), status.removal) if failed else None
    if status.held is not None:
        return _note(EventReason.HELD, status.held)
    if status.blocked is not None:
        reason = EventReason.HELD if status.blocked.reason in HELD else EventReason.FAILED
        return _note(reason, status.blocked)
    found = None if status.suspended else first_open(status)
    if found is None:
        return None
    stage, problem = found
    if problem.reason in OFF:
        return None
    if stage is Stage.SCALED and problem.reason in _UNHEALTHY:
        return _note(EventReason.UNHEALTHY, problem)
    if problem.truth is not Truth.FALSE or is_under_way(problem):
        return None
    if stage is Stage.REQUIREMENTS:
        is_installed = status.phase is not Phase.INSTALL
        return _note(EventReason.REQUIREMENT_LOST if is_installed else EventReason.REQUIREMENT_MISSING, problem)
    if problem.reason == Reason.DRIFT_FOUGHT:
        return _note(EventReason.DRIFT_FOUGHT, problem)
    return _note(_kind_of(problem, EventReason.FAILED), problem)


def _kind_of(problem: Condition, other: EventReason) -> EventReason:
    return EventReason.HOOK_FAILED if problem.reason in _HOOKS else other


def _note(reason: EventReason, problem: Condition) -> Note:
    text = problem.message or explanation(problem.reason)
    shown = text if reason in (EventReason.HELD, EventReason.DRIFT_FOUGHT) else f"{problem.reason}: {text}"
    return Note(reason, shown, problem.reason in _OF_REPOSITORY)
