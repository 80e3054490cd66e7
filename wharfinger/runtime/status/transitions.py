"""How a package is: everything that may happen to its status, as functions from one status to the next. Pure; time comes in.

Inside, each stage of the pipeline has one condition. What they mean outside follows from them: the conditions of the resource
(:mod:`~wharfinger.runtime.status.conditions`) and its summary (:mod:`~wharfinger.runtime.status.summary`); each function here
tells them anew.

* A stage that fails transiently leaves the package Reconciling: it will be tried again.
* A stage that fails permanently makes it Stalled: nothing but a change of an input helps, and the tip says which.
* `Scaled` survives an update (the old version keeps serving), `RequirementsMet` is the scheduler's to change; every other stage
  starts again as Unknown, or as done where a package may not have it.
* `Installed` is sticky: it becomes True when all stages are done for the first time, whichever was the last, and stays until the
  package is gone.
* What runs is judged anew after every apply: until it has been, a package is not Ready, however ready its old version was.
* Times move only when a condition's status does (inside and outside), so telling the same twice makes an equal status, an equal
  status an equal body, and an equal body is not written.
* Once it is being removed a status is frozen, but for what the removal itself says: what unwinds has no say any more. A removal
  that is held has not begun: what is installed goes on, and says so.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.runtime.status.conditions import tell, without_silent
from wharfinger.runtime.status.package_status import (
    OPTIONAL,
    Condition,
    PackageStatus,
    Stage,
    Told,
    Truth,
    open_condition,
)
from wharfinger.runtime.status.progress import progress_of
from wharfinger.runtime.status.reasons import LOOKED_AT_ANEW, Reason, explanation
from wharfinger.runtime.status.summary import summarize

MAX_WARNINGS: Final = 10
MAX_WARNING: Final = 300
MAX_URLS: Final = 100
MAX_MESSAGE: Final = 2_000
"""Characters, of whatever somebody else wrote: a request that is too large is refused, and would be tried for ever."""
_MAY_BE_ABSENT: Final = ("currentVersion", "release", "progress", "warnings", "urls")


def fresh(generation: int, now: datetime) -> PackageStatus:
    """The status of a package just heard of."""
    unknown = Condition(Truth.UNKNOWN, Reason.PENDING, "", now)
    stages = {stage: _started(stage, unknown, now) for stage in Stage}
    return _told(PackageStatus(generation, stages, now), now)


def restored(generation: int, written: JsonObject, now: datetime) -> PackageStatus:
    """The status of a package that an earlier process looked after, from what that wrote: what is installed stays so.

    Anybody may have written it: what is not as `external` writes it is passed over.
    """
    told = dict(_read_told(written))
    installed = told.get("Installed")
    status = fresh(generation, now)
    return _told(
        replace(
            status,
            version=_text(written, "currentVersion", "version"),
            digest=_text(written, "currentVersion", "digest"),
            revision=_number(written, "release", "revision"),
            namespace=_text(written, "release", "namespace"),
            urls=tuple(_read_urls(written))[:MAX_URLS],
            installed_since=installed.since if installed is not None and installed.truth is Truth.TRUE else None,
            told={**status.told, **told},
            ready_kept=told.get("Ready"),
            reconciling_kept=told.get("Reconciling"),
        ),
        now,
    )


def update_started(status: PackageStatus, generation: int, now: datetime, *, version: str = "") -> PackageStatus:
    """Every stage starts again, except Scaled (what is running keeps running) and what the scheduler has decided.

    ``version`` is what the update is for; without it, it is none to another version.
    """
    stages = {
        stage: condition if stage in (Stage.SCALED, Stage.REQUIREMENTS) else _started(stage, condition, now)
        for stage, condition in status.stages.items()
    }
    return _unless_removing(status, now, replace(_begun(status, generation), stages=stages, wanted=version))


def reconfigure_started(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """The stages from Configured on start again; what has lanes of its own (hooks, CRDs) stays a failure until it succeeds."""
    again = (Stage.CONFIGURED, Stage.WEBHOOKS, Stage.APPLIED)
    stages = {
        stage: _started(stage, condition, now) if stage in again else condition
        for stage, condition in status.stages.items()
    }
    return _unless_removing(status, now, replace(_begun(status, generation), stages=stages))


def observed(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """A new generation that asks for nothing new, or a wish that can be acted on again."""
    after = replace(status, generation=generation, blocked=None, held=_held_of(status, generation))
    return _unless_removing(status, now, after)


def progressing(status: PackageStatus, stage: Stage, reason: str, message: str, now: datetime) -> PackageStatus:
    """A stage is at work and not done; a message like ``waiting for Deployment.apps prod/web``.

    What is being applied is to be judged anew.
    """
    if stage is Stage.APPLIED and status.removal is None:
        status = replace(status, scale_checked=False)
    truth = Truth.FALSE if stage is Stage.SCALED else Truth.UNKNOWN
    return _with(status, stage, _moved(status.stages[stage], truth, reason, message, now), now)


def rolling_out(status: PackageStatus, message: str, now: datetime) -> PackageStatus:
    """What was ready is being updated, scaled or replaced by others: it is Reconciling, and still Ready.

    What was not ready does not become so before all of it is.
    """
    before = status.stages[Stage.SCALED]
    if before.truth is not Truth.TRUE:
        return progressing(status, Stage.SCALED, Reason.UNHEALTHY, message, now)
    return _with(status, Stage.SCALED, _moved(before, Truth.TRUE, Reason.ROLLING_OUT, message, now), now)


def succeeded(status: PackageStatus, stage: Stage, now: datetime) -> PackageStatus:
    """A stage is done."""
    if stage is Stage.SCALED and status.removal is None:
        status = replace(status, scale_checked=True, progress=None)
    return _with(status, stage, _moved(status.stages[stage], Truth.TRUE, stage.value, "", now), now)


def failed(
    status: PackageStatus, stage: Stage, reason: str, message: str, now: datetime, *, permanent: bool
) -> PackageStatus:
    """A stage failed; if not ``permanent`` it will be tried again."""
    condition = replace(_moved(status.stages[stage], Truth.FALSE, reason, message, now), permanent=permanent)
    return _with(status, stage, condition, now)


def released(status: PackageStatus, version: str, digest: str, revision: int) -> PackageStatus:
    """The version is applied, as this revision of the release."""
    if status.removal is not None:
        return status
    return replace(status, version=version, digest=digest, revision=revision)


def required(status: PackageStatus, reason: str, message: str, now: datetime, *, met: bool) -> PackageStatus:
    """What the scheduler decided: whether everything that the package requires is there, and wanted."""
    before = status.stages[Stage.REQUIREMENTS]
    condition = (
        _moved(before, Truth.TRUE, Stage.REQUIREMENTS.value, "", now)
        if met
        else replace(_moved(before, Truth.FALSE, reason, message, now), permanent=reason in LOOKED_AT_ANEW)
    )
    return _with(status, Stage.REQUIREMENTS, condition, now)


def stopped(status: PackageStatus, now: datetime) -> PackageStatus:
    """Its hooks rest and nothing is applied any more: what was true of its run has to be made true again."""
    again = (Stage.CONFIGURED, Stage.CRDS, Stage.WEBHOOKS, Stage.HOOKS, Stage.APPLIED)
    stages = {
        stage: _started(stage, condition, now) if stage in again else condition
        for stage, condition in status.stages.items()
    }
    return _unless_removing(status, now, replace(status, stages=stages, scale_checked=False, progress=None))


def placed(status: PackageStatus, namespace: str) -> PackageStatus:
    """From now on something of it may be in this namespace."""
    return status if status.removal is not None else replace(status, namespace=namespace)


def uninstalled(status: PackageStatus, now: datetime) -> PackageStatus:
    """Nothing of it is in the cluster any more, though it is still looked after."""
    stages = dict(status.stages)
    for stage in (Stage.APPLIED, Stage.SCALED):
        stages[stage] = _moved(stages[stage], Truth.UNKNOWN, Reason.PENDING, "", now)
    gone = replace(
        status,
        version="",
        digest="",
        revision=0,
        namespace="",
        urls=(),
        installed_since=None,
        stages=stages,
        scale_checked=False,
        progress=None,
        ready_kept=status.ready_kept if status.suspended else None,
    )
    # What was told of what was there is not true of anything any more.
    return _unless_removing(status, now, replace(gone, told=without_silent(gone)))


def blocked(status: PackageStatus, generation: int, reason: str, message: str, now: datetime) -> PackageStatus:
    """The pipeline cannot even start."""
    before = status.blocked
    since = before.since if before is not None else now
    condition = Condition(Truth.FALSE, reason, message, since, permanent=True)
    held = _held_of(status, generation)
    return _unless_removing(status, now, replace(status, generation=generation, blocked=condition, held=held))


def removal_held(status: PackageStatus, generation: int, reason: str, message: str, now: datetime) -> PackageStatus:
    """It is to be removed, as this generation says, and for others' sake that does not begin: it runs on as it was."""
    since = status.held.since if status.held is not None else now
    held = Condition(Truth.FALSE, reason, message, since)
    return _unless_removing(status, now, replace(status, generation=generation, held=held))


def removing(status: PackageStatus, reason: str, message: str, now: datetime) -> PackageStatus:
    """A removal has begun (reason Removing), waits for something, or failed and will be tried again."""
    since = status.removal.since if status.removal is not None else now
    condition = Condition(Truth.FALSE, reason, message, since)
    return _told(replace(status, removal=condition, held=None, progress=None), now)


def suspended(status: PackageStatus, now: datetime, *, suspended: bool) -> PackageStatus:
    """Somebody wants nothing to be done with it, or wants it to go on. What was Ready stays Ready, of the generation it was."""
    if suspended == status.suspended:
        return status
    kept = None
    if suspended:
        told = status.told if status.blocked is None else tell(replace(status, blocked=None), now)
        kept = status.ready_kept or told["Ready"]
    return _unless_removing(status, now, replace(status, suspended=suspended, ready_kept=kept, progress=None))


def set_maintenance(status: PackageStatus, mode: str, now: datetime) -> PackageStatus:
    """What is applied is to be left to people, in a mode like ``NoResourceReconciliation``; empty: it is not."""
    before = status.maintenance
    if mode == ("" if before is None else before.reason):
        return status
    condition = Condition(Truth.TRUE, mode, explanation(mode) or f"in maintenance: {mode}", now) if mode else None
    return _unless_removing(status, now, replace(status, maintenance=condition))


def tracking(status: PackageStatus, completed: Iterable[str], remaining: Iterable[str], now: datetime) -> PackageStatus:
    """How far the operation under way is, over the objects named; it is over when nothing remains."""
    return _unless_removing(status, now, replace(status, progress=progress_of(completed, remaining)))


def warned(status: PackageStatus, warnings: Iterable[str], now: datetime) -> PackageStatus:
    """What is not wrong but should be known, in place of what was said before; of many the first MAX_WARNINGS."""
    each = list(dict.fromkeys(_one_line(warning) for warning in warnings))
    more = len(each) - MAX_WARNINGS
    shown = (*each[:MAX_WARNINGS], f"and {more} more") if more > 0 else tuple(each)
    return _unless_removing(status, now, replace(status, warnings=shown))


def reachable(status: PackageStatus, urls: Iterable[tuple[str, str]], now: datetime) -> PackageStatus:
    """Where it can be reached, as (URL, what for), in place of what was said before; of many the first MAX_URLS."""
    return _unless_removing(status, now, replace(status, urls=tuple(urls)[:MAX_URLS]))


def is_stalled(status: PackageStatus) -> bool:
    """A stage failed permanently: nothing is tried any more by itself."""
    problem = open_condition(status)
    aside = status.removal is not None or status.blocked is not None or status.suspended
    return not aside and problem is not None and problem.permanent


def external(status: PackageStatus) -> JsonObject:
    """The body of the resource's ``status``."""
    state, message, tip = summarize(status)
    conditions: list[JsonValue] = [_external(kind, told) for kind, told in status.told.items()]
    body: JsonObject = {
        "observedGeneration": status.generation,
        "conditions": conditions,
        "summary": {"state": state, "message": _cut(message, MAX_MESSAGE), "tip": _cut(tip, MAX_MESSAGE)},
    }
    if status.version:
        body["currentVersion"] = {"version": status.version, "digest": status.digest}
    if status.namespace:
        body["release"] = {"namespace": status.namespace, "revision": status.revision}
    if status.progress is not None and _is_under_way(status):
        body["progress"] = status.progress.as_json()
    if status.warnings:
        warnings: list[JsonValue] = list(status.warnings)
        body["warnings"] = warnings
    if status.urls:
        body["urls"] = [{"url": url, **({"description": about} if about else {})} for url, about in status.urls]
    return body


def difference(status: PackageStatus, written: JsonObject) -> JsonObject:
    """The merge patch that makes what is ``written`` say this status; empty when it says so already.

    A merge patch keeps what it does not name: what is no longer said is taken back.
    """
    body = external(status)
    body |= {name: None for name in _MAY_BE_ABSENT if name not in body}
    return body if any(find(written, name) != value for name, value in body.items()) else {}


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as Kubernetes writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _external(kind: str, told: Told) -> JsonObject:
    return {
        "type": kind,
        "status": told.truth.value,
        "reason": str(told.reason),
        "message": _cut(told.message, MAX_MESSAGE),
        "lastTransitionTime": timestamp(told.since),
        "observedGeneration": told.generation,
    }


def _read_told(written: JsonObject) -> Iterator[tuple[str, Told]]:
    entries = find(written, "conditions")
    for entry in entries if isinstance(entries, list) else ():
        since, truth = _moment(_text(entry, "lastTransitionTime")), _text(entry, "status")
        if since is not None and truth in set(Truth):
            reason, message = _text(entry, "reason"), _text(entry, "message")
            told = Told(Truth(truth), reason, message, since, _number(entry, "observedGeneration"))
            yield _text(entry, "type"), told


def _read_urls(written: JsonObject) -> Iterator[tuple[str, str]]:
    entries = find(written, "urls")
    for entry in entries if isinstance(entries, list) else ():
        if url := _text(entry, "url"):
            yield url, _text(entry, "description")


def _text(written: JsonValue, *path: str) -> str:
    found = find(written, *path)
    return found if isinstance(found, str) else ""


def _number(written: JsonValue, *path: str) -> int:
    found = find(written, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _is_under_way(status: PackageStatus) -> bool:
    return status.told["Reconciling"].truth is Truth.TRUE


def _begun(status: PackageStatus, generation: int) -> PackageStatus:
    held = _held_of(status, generation)
    return replace(status, generation=generation, blocked=None, held=held, scale_checked=False, progress=None)


def _held_of(status: PackageStatus, generation: int) -> Condition | None:
    """What holds its removal; nothing any more where another generation is looked at: that is another object of its name."""
    return status.held if generation == status.generation else None


def _started(stage: Stage, before: Condition, now: datetime) -> Condition:
    """A stage before its work: Unknown, or done where a package may not have it."""
    if stage in OPTIONAL:
        return _moved(before, Truth.TRUE, stage.value, "", now)
    return _moved(before, Truth.UNKNOWN, Reason.PENDING, "", now)


def _with(status: PackageStatus, stage: Stage, condition: Condition, now: datetime) -> PackageStatus:
    return _unless_removing(status, now, replace(status, stages={**status.stages, stage: condition}))


def _unless_removing(status: PackageStatus, now: datetime, after: PackageStatus) -> PackageStatus:
    """``after`` with what follows from it outside; what is being removed stays as it is."""
    if status.removal is not None:
        return status
    if after.stages is not status.stages and not after.suspended and after.ready_kept is not None:
        problem = open_condition(after)
        if problem is None:
            return _verified(status, after, now)
        if not after.stays_ready(problem):
            after = replace(after, ready_kept=None)  # this process has judged for itself
    if after.installed_since is None and open_condition(after) is None:
        after = replace(after, installed_since=now)
    return _told(after, now)


def _verified(before: PackageStatus, after: PackageStatus, now: datetime) -> PackageStatus:
    """All stages are done; where that is as an earlier process left it, no condition has moved."""
    told = _told(replace(after, ready_kept=None), now)
    found, kept = told.told["Reconciling"], after.reconciling_kept
    if before.is_being_verified and kept is not None and replace(found, since=kept.since) == kept:
        told = replace(told, told={**told.told, "Reconciling": kept})
    return told


def _told(status: PackageStatus, now: datetime) -> PackageStatus:
    told: Mapping[str, Told] = tell(status, now)
    return status if told is status.told else replace(status, told=told)


def _moved(before: Condition, truth: Truth, reason: str, message: str, now: datetime) -> Condition:
    return Condition(truth, reason, message, before.since if before.truth is truth else now)


def _one_line(text: str) -> str:
    return _cut(" ".join(text.split()), MAX_WARNING)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _moment(text: str) -> datetime | None:
    """A time as `timestamp` writes it; None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
