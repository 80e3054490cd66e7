"""The transitions of a package's status: a pure function for every event, from one status to the next. Time is a parameter.

Each stage of the pipeline has one internal condition. The conditions of the resource
(:mod:`~wharfinger.runtime.status.conditions`) and its summary (:mod:`~wharfinger.runtime.status.summary`) are derived from the
internal conditions, by each function here.

* A stage that fails transiently leaves the package Reconciling: it will be retried.
* A stage that fails permanently makes it Stalled: only a changed input helps, and the tip names it.
* `Scaled` survives an update, because the old version keeps serving. `RequirementsMet` is changed by the scheduler only. Every
  other stage starts again as Unknown, or as done if a package may lack it.
* `Installed` becomes True when all stages are done for the first time, in any order, and stays True until the package is gone.
* The running objects are judged again after every apply: until then a package is not Ready, however ready its old version was.
* Times change only when a condition's status does (inside and outside). So a report that repeats the last one makes an equal
  status, and a status that is equal to the written one is not written again.
* Once a package is being removed, its status is frozen except for reports of the removal: tasks that are being cancelled cannot
  change it any more. A removal that is held back has not begun: the package keeps running, and its status says so.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.times import format_time, parse_time
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
from wharfinger.runtime.versions.rollback_note import RollbackNote, read_rollback_note, rollback_object
from wharfinger.runtime.versions.version_note import VersionNote, note_object, read_note

MAX_WARNINGS: Final = 10
MAX_WARNING: Final = 600
MAX_URLS: Final = 100
MAX_MESSAGE: Final = 2_000
"""The limit, in characters, of any text from elsewhere.

A request that is too large would be refused and retried forever.
"""
_MAY_BE_ABSENT: Final = ("currentVersion", "release", "progress", "warnings", "urls", "update", "rollback")


def fresh(generation: int, now: datetime) -> PackageStatus:
    """Return the status of a package that has just been discovered."""
    unknown = Condition(Truth.UNKNOWN, Reason.PENDING, "", now)
    stages = {stage: _started(stage, unknown, now) for stage in Stage}
    return _told(PackageStatus(generation, stages, now), now)


def restored(generation: int, written: JsonObject, now: datetime) -> PackageStatus:
    """Return the status of a package that an earlier process managed, from the status that it wrote: an installed package stays
    installed.

    Another program may have changed that status, so fields that do not have the form of `external` are ignored.
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
            update=read_note(find(written, "update")),
            rollback=read_rollback_note(find(written, "rollback")),
            installed_since=installed.since if installed is not None and installed.truth is Truth.TRUE else None,
            told={**status.told, **told},
            ready_kept=told.get("Ready"),
            reconciling_kept=told.get("Reconciling"),
        ),
        now,
    )


def update_started(status: PackageStatus, generation: int, now: datetime, *, version: str = "") -> PackageStatus:
    """Start every stage again, except Scaled (the running objects keep running) and the scheduler's decision.

    ``version`` is the version that the update is for; without it, the update does not change the version.
    """
    stages = {
        stage: condition if stage in (Stage.SCALED, Stage.REQUIREMENTS) else _started(stage, condition, now)
        for stage, condition in status.stages.items()
    }
    return _unless_removing(status, now, replace(_begun(status, generation), stages=stages, wanted=version))


def reconfigure_started(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """Start the stages from Configured on again.

    Stages with lanes of their own (hooks, CRDs) keep a failure until they succeed.
    """
    again = (Stage.CONFIGURED, Stage.WEBHOOKS, Stage.APPLIED)
    stages = {
        stage: _started(stage, condition, now) if stage in again else condition
        for stage, condition in status.stages.items()
    }
    return _unless_removing(status, now, replace(_begun(status, generation), stages=stages))


def observed(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """Record a new generation with an unchanged desired state, or that the resource can be acted on again."""
    after = replace(status, generation=generation, blocked=None, held=_held_of(status, generation))
    return _unless_removing(status, now, after)


def progressing(status: PackageStatus, stage: Stage, reason: str, message: str, now: datetime) -> PackageStatus:
    """Record that a stage is at work and not done, with a message like ``waiting for Deployment.apps prod/web``.

    Objects that are being applied have to be judged again.
    """
    if stage is Stage.APPLIED and status.removal is None:
        status = replace(status, scale_checked=False)
    truth = Truth.FALSE if stage is Stage.SCALED else Truth.UNKNOWN
    return _with(status, stage, _moved(status.stages[stage], truth, reason, message, now), now)


def versions_unknown(status: PackageStatus, generation: int, message: str, now: datetime) -> PackageStatus:
    """Report that the package waits for the first scan of its repository, which exists by now."""
    unblocked = replace(status, generation=generation, blocked=None)
    return progressing(unblocked, Stage.FETCHED, Reason.VERSIONS_UNKNOWN, message, now)


def rolling_out(status: PackageStatus, message: str, now: datetime) -> PackageStatus:
    """Record that other writers update, scale or replace ready objects: the package is Reconciling and still Ready.

    A package that was not Ready becomes Ready only when all of its objects are ready.
    """
    before = status.stages[Stage.SCALED]
    if before.truth is not Truth.TRUE:
        return progressing(status, Stage.SCALED, Reason.UNHEALTHY, message, now)
    return _with(status, Stage.SCALED, _moved(before, Truth.TRUE, Reason.ROLLING_OUT, message, now), now)


def succeeded(status: PackageStatus, stage: Stage, now: datetime) -> PackageStatus:
    """Record that a stage is done."""
    if stage is Stage.SCALED and status.removal is None:
        status = replace(status, scale_checked=True, progress=None)
    return _with(status, stage, _moved(status.stages[stage], Truth.TRUE, stage.value, "", now), now)


def failed(
    status: PackageStatus, stage: Stage, reason: str, message: str, now: datetime, *, permanent: bool
) -> PackageStatus:
    """Record that a stage failed; unless ``permanent``, it will be retried."""
    condition = replace(_moved(status.stages[stage], Truth.FALSE, reason, message, now), permanent=permanent)
    return _with(status, stage, condition, now)


def released(status: PackageStatus, version: str, digest: str, revision: int) -> PackageStatus:
    """Record that the version is applied, as this revision of the release."""
    if status.removal is not None:
        return status
    return replace(status, version=version, digest=digest, revision=revision)


def required(status: PackageStatus, reason: str, message: str, now: datetime, *, met: bool) -> PackageStatus:
    """Record the scheduler's decision: whether all requirements of the package are met and it is wanted."""
    before = status.stages[Stage.REQUIREMENTS]
    condition = (
        _moved(before, Truth.TRUE, Stage.REQUIREMENTS.value, "", now)
        if met
        else replace(_moved(before, Truth.FALSE, reason, message, now), permanent=reason in LOOKED_AT_ANEW)
    )
    return _with(status, Stage.REQUIREMENTS, condition, now)


def stopped(status: PackageStatus, now: datetime) -> PackageStatus:
    """Record that its hooks are stopped and nothing is applied any more: the stages of its run have to be done again."""
    again = (Stage.CONFIGURED, Stage.CRDS, Stage.WEBHOOKS, Stage.HOOKS, Stage.APPLIED)
    stages = {
        stage: _started(stage, condition, now) if stage in again else condition
        for stage, condition in status.stages.items()
    }
    return _unless_removing(status, now, replace(status, stages=stages, scale_checked=False, progress=None))


def placed(status: PackageStatus, namespace: str) -> PackageStatus:
    """Record that objects of the package may be in this namespace from now on."""
    return status if status.removal is not None else replace(status, namespace=namespace)


def uninstalled(status: PackageStatus, now: datetime) -> PackageStatus:
    """Record that nothing of the package is in the cluster any more, though it is still managed."""
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
    # Conditions about the removed objects are not true any more.
    return _unless_removing(status, now, replace(gone, told=without_silent(gone)))


def blocked(status: PackageStatus, generation: int, reason: str, message: str, now: datetime) -> PackageStatus:
    """Record that the pipeline cannot start."""
    before = status.blocked
    since = before.since if before is not None else now
    condition = Condition(Truth.FALSE, reason, message, since, permanent=True)
    held = _held_of(status, generation)
    return _unless_removing(status, now, replace(status, generation=generation, blocked=condition, held=held))


def removal_held(status: PackageStatus, generation: int, reason: str, message: str, now: datetime) -> PackageStatus:
    """Record that this generation requests a removal, which is held back for its dependents: the package keeps running."""
    since = status.held.since if status.held is not None else now
    held = Condition(Truth.FALSE, reason, message, since)
    return _unless_removing(status, now, replace(status, generation=generation, held=held))


def removing(status: PackageStatus, reason: str, message: str, now: datetime) -> PackageStatus:
    """Record that a removal has begun (reason Removing), waits for something, or failed and will be retried."""
    since = status.removal.since if status.removal is not None else now
    condition = Condition(Truth.FALSE, reason, message, since)
    return _told(replace(status, removal=condition, held=None, progress=None), now)


def suspended(status: PackageStatus, now: datetime, *, suspended: bool) -> PackageStatus:
    """Suspend or resume the package. A Ready package stays Ready, for the generation that this was reported for."""
    if suspended == status.suspended:
        return status
    kept = None
    if suspended:
        told = status.told if status.blocked is None else tell(replace(status, blocked=None), now)
        kept = status.ready_kept or told["Ready"]
    return _unless_removing(status, now, replace(status, suspended=suspended, ready_kept=kept, progress=None))


def set_maintenance(status: PackageStatus, mode: str, now: datetime) -> PackageStatus:
    """Record a maintenance mode like ``NoResourceReconciliation``, in which applied objects are not reconciled; empty: none."""
    before = status.maintenance
    if mode == ("" if before is None else before.reason):
        return status
    condition = Condition(Truth.TRUE, mode, explanation(mode) or f"in maintenance: {mode}", now) if mode else None
    return _unless_removing(status, now, replace(status, maintenance=condition))


def rolled_back(status: PackageStatus, note: RollbackNote | None, now: datetime) -> PackageStatus:
    """Record the rollback that is in force, or why it was impossible; None: neither."""
    return status if note == status.rollback else _unless_removing(status, now, replace(status, rollback=note))


def tracking(status: PackageStatus, completed: Iterable[str], remaining: Iterable[str], now: datetime) -> PackageStatus:
    """Record the progress of the current operation over the named objects; it is over when nothing remains."""
    return _unless_removing(status, now, replace(status, progress=progress_of(completed, remaining)))


def warned(status: PackageStatus, warnings: Iterable[str], now: datetime) -> PackageStatus:
    """Replace the warnings: facts that are not failures but should be known. At most MAX_WARNINGS are kept."""
    each = list(dict.fromkeys(_one_line(warning) for warning in warnings))
    more = len(each) - MAX_WARNINGS
    shown = (*each[:MAX_WARNINGS], f"and {more} more") if more > 0 else tuple(each)
    return _unless_removing(status, now, replace(status, warnings=shown))


def chosen(status: PackageStatus, note: VersionNote | None, now: datetime) -> PackageStatus:
    """Record the choice of the version; None for an exact version."""
    return _unless_removing(status, now, replace(status, update=note))


def reachable(status: PackageStatus, urls: Iterable[tuple[str, str]], now: datetime) -> PackageStatus:
    """Replace the addresses of the package, pairs of URL and description. At most MAX_URLS are kept."""
    return _unless_removing(status, now, replace(status, urls=tuple(urls)[:MAX_URLS]))


def is_stalled(status: PackageStatus) -> bool:
    """Return whether a stage failed permanently: nothing is retried any more."""
    problem = open_condition(status)
    aside = status.removal is not None or status.blocked is not None or status.suspended
    return not aside and problem is not None and problem.permanent


def external(status: PackageStatus) -> JsonObject:
    """Return the body of the resource's ``status``."""
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
    if status.update is not None:
        body["update"] = note_object(
            dataclasses.replace(status.update, message=_cut(status.update.message, MAX_MESSAGE))
        )
    if status.rollback is not None:
        note = dataclasses.replace(status.rollback, message=_cut(status.rollback.message, MAX_MESSAGE))
        body["rollback"] = rollback_object(note)
    if status.urls:
        body["urls"] = [{"url": url, **({"description": about} if about else {})} for url, about in status.urls]
    return body


def difference(status: PackageStatus, written: JsonObject) -> JsonObject:
    """Return the merge patch that turns the ``written`` status into this one; empty if they agree already.

    A merge patch keeps fields that it does not name, so fields that this status lacks are set to null.
    """
    body = external(status)
    body |= {name: None for name in _MAY_BE_ABSENT if name not in body}
    if all(find(written, name) == value for name, value in body.items()):
        return {}
    update = body.get("update")
    if isinstance(update, dict):  # a merge patch keeps the fields that it does not name
        body["update"] = {"follows": None, "pending": None, **update}
    return body


def _external(kind: str, told: Told) -> JsonObject:
    return {
        "type": kind,
        "status": told.truth.value,
        "reason": str(told.reason),
        "message": _cut(told.message, MAX_MESSAGE),
        "lastTransitionTime": format_time(told.since),
        "observedGeneration": told.generation,
    }


def _read_told(written: JsonObject) -> Iterator[tuple[str, Told]]:
    entries = find(written, "conditions")
    for entry in entries if isinstance(entries, list) else ():
        since, truth = parse_time(_text(entry, "lastTransitionTime")), _text(entry, "status")
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
    """Return the condition of a removal that is held back; None for another generation, because its object may not be the object
    to remove.
    """
    return status.held if generation == status.generation else None


def _started(stage: Stage, before: Condition, now: datetime) -> Condition:
    """Return the condition of a stage before its work: Unknown, or done if a package may lack the stage."""
    if stage in OPTIONAL:
        return _moved(before, Truth.TRUE, stage.value, "", now)
    return _moved(before, Truth.UNKNOWN, Reason.PENDING, "", now)


def _with(status: PackageStatus, stage: Stage, condition: Condition, now: datetime) -> PackageStatus:
    return _unless_removing(status, now, replace(status, stages={**status.stages, stage: condition}))


def _unless_removing(status: PackageStatus, now: datetime, after: PackageStatus) -> PackageStatus:
    """Return ``after`` with its external conditions; the status of a package that is being removed is returned unchanged."""
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
    """Return the status when all stages are done. If it equals the status of an earlier process, its `Reconciling` is kept."""
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
