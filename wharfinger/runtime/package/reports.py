"""The changes of a package's status by the reports of its tasks, its hooks and its release. Pure.

A report about a stage replaces the condition of that stage. If an operation runs a hook and the hook fails, the stage of the
hooks shows this failure until the operation's hooks succeed, because the failure prevents the package from being applied. A
failure of an event hook is shown only if no operation's hook has failed. Health is shown only after the package was ready once:
until then, the task that waits for readiness reports the objects that are not ready. If objects are not ready for a while, as
during scaling or a rollout, the package stays Ready, and is Reconciling; it becomes Degraded once an object has failed or
stalled. Drift that is not corrected, and revisions made by another writer, are shown as warnings, because a retry would not
help. If another manager sets fields again and again, the package is Degraded, with that manager's name, until the manager
stops.
"""

from typing import Final, assert_never

from wharfinger.cluster.objects.drift_policy import DriftMode
from wharfinger.formats.listing import listed
from wharfinger.runtime.package.around import Around, Next
from wharfinger.runtime.package.effects import Attempt, CastVote, Effect, GiveWay, Log, Phase, Simple, Tell
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
    Voted,
    WarnedOf,
)
from wharfinger.runtime.package.facts import (
    AttemptFailed,
    AttemptSettled,
    DriftSeen,
    HookRan,
    LaneFailed,
    LaneRecovered,
    StatusSet,
    ValuesOutdated,
    Warned,
)
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.package.transitions import applied
from wharfinger.runtime.resources.identity import has_release, is_global
from wharfinger.runtime.scheduler.events import Rescheduled
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.failures import Failure
from wharfinger.runtime.status.package_status import PackageStatus, Stage, Truth, open_condition
from wharfinger.runtime.status.reasons import Reason

SHOWN_FIGHTS: Final = 3
UPKEEP: Final = "upkeep"
"""The subject of warnings about objects that could not be corrected or pruned."""
RELEASE: Final = "release"
"""The subject of warnings about another writer's revisions. These warnings are cleared when the package is applied again."""
DRIFT: Final = "drift"


def with_status(package: Package, status: PackageStatus) -> Package:
    """Return the package with this status."""
    return package if status == package.status else applied(package, StatusSet(status))


def reported(package: Package, event: Report, around: Around) -> Next:
    """Return the package after a report, and the effects."""
    match event:
        case HookDone(hook, error):  # checked first, because this is the most frequent report
            package = applied(package, HookRan(hook, error, around.now))
            return package, (Simple.FLAGS_SEEN,) if is_global(package.id) else ()
        case Progressed() | Placed() | Released() | Tracked() | Reachable() | Removing():
            return _shown(package, event, around)
        case Succeeded() | StageFailed() | Uninstalled():
            return _ended(package, event, around)
        case EventHookDone() | ValuesChanged() | Voted():
            return _by_hook(package, event, around)
        case WarnedOf(subject, warnings):
            return warned(package, around, subject, warnings), ()
        case HealthSeen() | DriftReported() | ForeignRevision() | Troubled():
            return _by_release(package, event, around)
        case _:
            assert_never(event)


def _shown(
    package: Package, event: Progressed | Placed | Released | Tracked | Reachable | Removing, around: Around
) -> Next:
    """Return the package and the effects after a report about the progress of a task."""
    before, now, effects = package.status, around.now, tuple[Effect, ...]()
    match event:
        case Progressed(stage, reason, message):
            status = statuses.progressing(before, stage, reason, message, now)
        case Placed():
            status = statuses.placed(before, package.id.namespace)
        case Released(revision):
            manifest = package.files.manifest
            digest = str(manifest.descriptor.digest) if manifest else ""
            status = statuses.released(before, package.desired.version, digest, revision)
        case Tracked(completed, remaining):
            status = statuses.tracking(before, completed, remaining, now)
        case Reachable(urls):
            status = statuses.reachable(before, urls, now)
        case Removing(reason, message):
            status = statuses.removing(before, reason, message, now)
            if reason != "Removing":
                effects = (Log(f"removal: {reason}: {message}", warning=True),)
        case _:
            assert_never(event)
    return with_status(package, status), effects


def _ended(package: Package, event: Succeeded | StageFailed | Uninstalled, around: Around) -> Next:
    match event:
        case Succeeded(stage):
            return _succeeded(package, stage, around)
        case StageFailed(stage, failure):
            package, effects = failed(applied(package, AttemptFailed(failure)), stage, failure, around)
            # The controller decides whether the package returns to its former revision.
            return package, (*effects, *((Simple.NOTIFY,) if package.desired.directives.upgrade.rollback else ()))
        case Uninstalled():
            return with_status(package, statuses.uninstalled(package.status, around.now)), (Simple.RESTATE,)
        case _:
            assert_never(event)


def _succeeded(package: Package, stage: Stage, around: Around) -> Next:
    """Report that a stage is done.

    Once the hooks have run, no hook counts as failed any more, except event hooks whose last run in a lane failed.
    """
    status = package.status
    if stage in (Stage.HOOKS, Stage.APPLIED) and not (package.hooks.failing and _shows_event_hook(status)):
        status = _with_event_hooks(package, around)
    if stage is not Stage.HOOKS:
        status = statuses.succeeded(status, stage, around.now)
    package = with_status(package, status)
    if open_condition(status) is None and not package.desired.attempt.settled:
        package = applied(package, AttemptSettled())
    if stage is Stage.APPLIED and package.applied.fought:
        return _fought(package, around)
    if stage is Stage.SCALED and has_release(package.id):
        return package, (Simple.LOOK_AT_HEALTH,)
    return package, ()


def failed(package: Package, stage: Stage, failure: Failure, around: Around) -> Next:
    """Report that a stage failed. Packages that wait for this package's first attempt do not wait any longer."""
    return _with_failure(package, stage, failure, around), _after_failure(package, stage, failure)


def _after_failure(package: Package, stage: Stage, failure: Failure) -> tuple[Effect, ...]:
    text = f"{stage}: {failure.reason}: {failure.message}"
    return (
        Log(text, warning=True),
        Attempt(Phase.CRDS, begins=False),
        Attempt(Phase.LOAD, begins=False),
        # The run may still be completed. After this effect, only the package's dependents wait for the run.
        GiveWay(package.node.run, failure.permanent),
    )


def _with_failure(package: Package, stage: Stage, failure: Failure, around: Around) -> Package:
    status = statuses.failed(
        package.status, stage, failure.reason, failure.message, around.now, permanent=failure.permanent
    )
    return with_status(package, status)


def warned(package: Package, around: Around, subject: str, warnings: tuple[str, ...]) -> Package:
    """Return the package with these warnings about a subject, which replace earlier warnings about the subject."""
    if package.warnings.get(subject, ()) == warnings:
        return package
    package = applied(package, Warned(subject, warnings))
    every = tuple(warning for _, some in sorted(package.warnings.items()) for warning in some)
    return with_status(package, statuses.warned(package.status, every, around.now))


# --- hooks -------------------------------------------------------------------------------------------------------------------


def _by_hook(package: Package, event: EventHookDone | ValuesChanged | Voted, around: Around) -> Next:
    match event:
        case EventHookDone(hook, lane, error):
            return _lane_done(package, hook, lane, error, around)
        case ValuesChanged(hook):
            said = Log(f"{hook} changed the values")
            # A run under way is not interrupted, because otherwise a hook that often changes values could prevent each run
            # from being completed.
            if around.applying and not statuses.is_stalled(package.status):
                return applied(package, ValuesOutdated()), (said,)
            return package, (said, Tell(Rescheduled(package.id.name, "HookValuesChanged")))
        case Voted(enabled, reason, script_failed):
            has_script = package.files.definition is not None and package.files.definition.enabled_script
            words = ("", reason) if script_failed else (reason, "")
            return package, (CastVote(enabled, *words, may_be_early=has_script),)
        case _:
            assert_never(event)


def _lane_done(package: Package, hook: str, lane: str, error: str, around: Around) -> Next:
    if error:
        failure, package = _of_event_hook(error), applied(package, LaneFailed(hook, lane, error))
        stage = package.status.stages[Stage.HOOKS]
        if stage.truth is Truth.FALSE and not _shows_event_hook(package.status):
            return package, _after_failure(package, Stage.HOOKS, failure)
        return failed(package, Stage.HOOKS, failure, around)
    if (hook, lane) not in package.hooks.failing:
        return package, ()
    package = applied(package, LaneRecovered(hook, lane))
    return with_status(package, _with_event_hooks(package, around)) if _shows_event_hook(
        package.status
    ) else package, ()


def _of_event_hook(error: str) -> Failure:
    return Failure(Reason.EVENT_HOOK_FAILED, error, permanent=False)


def _shows_event_hook(status: PackageStatus) -> bool:
    """Return whether the stage of the hooks shows the failure of an event hook, and not of a hook that an operation ran."""
    return status.stages[Stage.HOOKS].reason == Reason.EVENT_HOOK_FAILED


def _with_event_hooks(package: Package, around: Around) -> PackageStatus:
    """Return the status after the hooks of an operation are done. The stage of the hooks is done as well, unless the last run
    of an event hook in any lane has failed.
    """
    if not package.hooks.failing:
        return statuses.succeeded(package.status, Stage.HOOKS, around.now)
    _, left = min(package.hooks.failing.items())
    return _with_failure(package, Stage.HOOKS, _of_event_hook(left), around).status


# --- the release -------------------------------------------------------------------------------------------------------------


def _by_release(
    package: Package, event: HealthSeen | DriftReported | ForeignRevision | Troubled, around: Around
) -> Next:
    match event:
        case HealthSeen():
            return _health(package, event, around), ()
        case DriftReported(drift, fought):
            return _drifted(package, drift, fought, around)
        case ForeignRevision(text):
            said = () if package.warnings.get(RELEASE) == (text,) else (Log(text, warning=True),)
            package = warned(package, around, RELEASE, (text,))
            return _warned_of_drift(package, around), said
        case Troubled(texts):
            before = package.warnings.get(UPKEEP, ())
            new = tuple(Log(text, warning=True) for text in texts if text not in before)
            done = (Log("all corrections and deletions of objects succeed again"),) if before and not texts else ()
            return warned(package, around, UPKEEP, texts), (*new, *done)
        case _:
            assert_never(event)


def _health(package: Package, seen: HealthSeen, around: Around) -> Package:
    status, now = package.status, around.now
    # Before WaitReady has succeeded, health is shown only if an object has stalled while the status is still Ready from an
    # earlier process, because WaitReady would wait for that object forever.
    if not status.scale_checked and not (status.is_being_verified and seen.any_stalled):
        return package
    if seen.failed:
        after = statuses.failed(status, Stage.SCALED, Reason.WORKLOAD_FAILED, seen.failed, now, permanent=False)
    elif seen.stalled:
        after = statuses.progressing(status, Stage.SCALED, Reason.UNHEALTHY, seen.stalled, now)
    elif seen.rolling:
        after = statuses.rolling_out(status, seen.rolling, now)
    else:
        after = statuses.succeeded(status, Stage.SCALED, now)
    return with_status(package, after)


def _drifted(package: Package, drift: tuple[str, ...], fought: tuple[str, ...], around: Around) -> Next:
    said = tuple(Log(f"drift: {text}") for text in drift if text not in package.applied.drift)
    package = _warned_of_drift(applied(package, DriftSeen(drift, fought)), around)
    if fought:
        package, more = _fought(package, around)
        return package, (*said, *more)
    if package.status.stages[Stage.APPLIED].reason == Reason.DRIFT_FOUGHT:
        package = with_status(package, statuses.succeeded(package.status, Stage.APPLIED, around.now))
    return package, said


def _fought(package: Package, around: Around) -> Next:
    stage = package.status.stages[Stage.APPLIED]
    if stage.truth is not Truth.TRUE and stage.reason != Reason.DRIFT_FOUGHT:
        return package, ()  # the package is being applied; its drift is reported after that
    text = listed(package.applied.fought, SHOWN_FIGHTS, "; ")
    failure = Failure(Reason.DRIFT_FOUGHT, text, permanent=False)
    after = _with_failure(package, Stage.APPLIED, failure, around)
    return after, (
        Log(
            "another manager changes fields again after each correction, so stop that manager or remove these "
            f"fields from the package: {text}",
            warning=True,
        ),
    )


def _warned_of_drift(package: Package, around: Around) -> Package:
    """Warn about drift if it is not corrected. Drift is not corrected if the package's drift mode is WARN, or if another writer
    made the last revision of the release.
    """
    mode = package.desired.directives.release_policy.drift.mode
    shown = mode is DriftMode.WARN or bool(package.warnings.get(RELEASE))
    texts = tuple(f"drift: {drift}" for drift in package.applied.drift if shown)
    return warned(package, around, DRIFT, texts)
