"""The transitions of a package's status: a pure function for every event, from one status to the next. Time is a parameter.

Each stage of the pipeline has one internal condition. Each transition derives the external conditions, which are written to the
resource, from the internal conditions (:mod:`~wharfinger.runtime.status.conditions`). `external` derives the summary from the
internal conditions, too (:mod:`~wharfinger.runtime.status.summary`).

* A package with a stage that fails transiently stays Reconciling, because the stage will be retried.
* A package with a stage that fails permanently is Stalled: a retry with the same input is unlikely to help, and the tip of the
  summary says what a user can do.
* When an update begins, `Scaled` is kept, because the old version keeps running, and `RequirementsMet` is kept, because only
  the scheduler changes it. Every other stage starts again as Unknown, or as done if a package may lack the stage.
* `Installed` becomes True when all stages are done for the first time, in any order, and stays True until the package is
  uninstalled.
* After every apply, the readiness of the objects is checked again. Until then, the package is not Ready, even if its old version
  was Ready.
* The time of an internal or external condition changes only when its status changes. So a repeated report makes an equal
  status, and a status that equals the written one is not written again.
* Once a package is being removed, only reports of the removal change its status, so that tasks that are being cancelled
  cannot change it any more. A removal that is held back has not begun: the package keeps running, and its status changes as
  usual.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.times import format_time, parse_time
from wharfinger.runtime.status.conditions import external_conditions, without_silent
from wharfinger.runtime.status.package_status import (
    OPTIONAL,
    Condition,
    ExternalCondition,
    PackageStatus,
    Stage,
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
"""The limit on the length of each message and each tip in the written status, in characters.

Without a limit, the request that writes the status could be too large, and would be refused and retried forever.
"""
_MAY_BE_ABSENT: Final = ("currentVersion", "release", "progress", "warnings", "urls", "update", "rollback")


def fresh(generation: int, now: datetime) -> PackageStatus:
    """Return the status of a package that has just been discovered."""
    unknown = Condition(Truth.UNKNOWN, Reason.PENDING, "", now)
    stages = {stage: _started(stage, unknown, now) for stage in Stage}
    return _told(PackageStatus(generation, stages, now), now)


def restored(generation: int, written: JsonObject, now: datetime) -> PackageStatus:
    """Return the status of a package, restored from the status that an earlier process wrote. An installed package stays
    installed.

    Another program may have changed the written status, so fields that `external` would not write in this form are ignored.
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
            external={**status.external, **told},
            ready_kept=told.get("Ready"),
            reconciling_kept=told.get("Reconciling"),
        ),
        now,
    )


def update_started(status: PackageStatus, generation: int, now: datetime, *, version: str = "") -> PackageStatus:
    """Start every stage again except for Scaled and RequirementsMet: Scaled describes the objects that keep running during an
    update, and only the scheduler changes RequirementsMet.

    ``version`` is the version to install; "" if it is not known.
    """
    stages = {
        stage: condition if stage in (Stage.SCALED, Stage.REQUIREMENTS) else _started(stage, condition, now)
        for stage, condition in status.stages.items()
    }
    return _unless_removing(status, now, replace(_begun(status, generation), stages=stages, wanted=version))


def reconfigure_started(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """Start the stages CONFIGURED, WEBHOOKS and APPLIED again.

    The stages CRDS and HOOKS, whose tasks have lanes of their own, keep a failure until they succeed.
    """
    again = (Stage.CONFIGURED, Stage.WEBHOOKS, Stage.APPLIED)
    stages = {
        stage: _started(stage, condition, now) if stage in again else condition
        for stage, condition in status.stages.items()
    }
    return _unless_removing(status, now, replace(_begun(status, generation), stages=stages))


def observed(status: PackageStatus, generation: int, now: datetime) -> PackageStatus:
    """Record that this generation of the resource was observed, and that nothing blocks the package any more. No pipeline
    starts: the desired state has not changed, or the package is suspended.
    """
    after = replace(status, generation=generation, blocked=None, held=_held_of(status, generation))
    return _unless_removing(status, now, after)


def progressing(status: PackageStatus, stage: Stage, reason: str, message: str, now: datetime) -> PackageStatus:
    """Record that a stage is in progress, with a message like ``waiting for Deployment.apps prod/web``.

    If objects are being applied, their readiness has to be checked again.
    """
    if stage is Stage.APPLIED and status.removal is None:
        status = replace(status, scale_checked=False)
    truth = Truth.FALSE if stage is Stage.SCALED else Truth.UNKNOWN
    return _with(status, stage, _moved(status.stages[stage], truth, reason, message, now), now)


def versions_unknown(status: PackageStatus, generation: int, message: str, now: datetime) -> PackageStatus:
    """Record that the package waits for the first scan of its repository. If the status reported that the repository is
    missing, or another reason why the pipeline cannot start, remove this report.
    """
    unblocked = replace(status, generation=generation, blocked=None)
    return progressing(unblocked, Stage.FETCHED, Reason.VERSIONS_UNKNOWN, message, now)


def rolling_out(status: PackageStatus, message: str, now: datetime) -> PackageStatus:
    """Record that ready objects are being updated, scaled or replaced. The package is Reconciling, and still Ready.

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
    """Record that a stage failed; the stage will be retried, unless ``permanent`` is true."""
    condition = replace(_moved(status.stages[stage], Truth.FALSE, reason, message, now), permanent=permanent)
    return _with(status, stage, condition, now)


def released(status: PackageStatus, version: str, digest: str, revision: int) -> PackageStatus:
    """Record that the version is applied, as this revision of the release."""
    if status.removal is not None:
        return status
    return replace(status, version=version, digest=digest, revision=revision)


def required(status: PackageStatus, reason: str, message: str, now: datetime, *, met: bool) -> PackageStatus:
    """Record the scheduler's decision: ``met`` is True if all requirements of the package are met, and the package is wanted."""
    before = status.stages[Stage.REQUIREMENTS]
    condition = (
        _moved(before, Truth.TRUE, Stage.REQUIREMENTS.value, "", now)
        if met
        else replace(_moved(before, Truth.FALSE, reason, message, now), permanent=reason in LOOKED_AT_ANEW)
    )
    return _with(status, Stage.REQUIREMENTS, condition, now)


def stopped(status: PackageStatus, now: datetime) -> PackageStatus:
    """Record that the package's hooks are stopped and nothing is applied any more. All stages after RequirementsMet except for
    Scaled have to be done again.
    """
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
    """Record that no object of the package is in the cluster any more, although its resource still exists."""
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
    # The conditions about the objects would be wrong after their removal.
    return _unless_removing(status, now, replace(gone, external=without_silent(gone)))


def blocked(status: PackageStatus, generation: int, reason: str, message: str, now: datetime) -> PackageStatus:
    """Record that the pipeline cannot start, with the reason."""
    before = status.blocked
    since = before.since if before is not None else now
    condition = Condition(Truth.FALSE, reason, message, since, permanent=True)
    held = _held_of(status, generation)
    return _unless_removing(status, now, replace(status, generation=generation, blocked=condition, held=held))


def removal_held(status: PackageStatus, generation: int, reason: str, message: str, now: datetime) -> PackageStatus:
    """Record that the removal requested by this generation is held back because of the package's dependents. The package keeps
    running.
    """
    since = status.held.since if status.held is not None else now
    held = Condition(Truth.FALSE, reason, message, since)
    return _unless_removing(status, now, replace(status, generation=generation, held=held))


def removing(status: PackageStatus, reason: str, message: str, now: datetime) -> PackageStatus:
    """Record that a removal has begun (reason Removing), waits for something, or failed and will be retried."""
    since = status.removal.since if status.removal is not None else now
    condition = Condition(Truth.FALSE, reason, message, since)
    return _told(replace(status, removal=condition, held=None, progress=None), now)


def suspended(status: PackageStatus, now: datetime, *, suspended: bool) -> PackageStatus:
    """Suspend or resume the package. While it is suspended, the condition Ready keeps its status, and the generation for which
    it was reported.
    """
    if suspended == status.suspended:
        return status
    kept = None
    if suspended:
        told = status.external if status.blocked is None else external_conditions(replace(status, blocked=None), now)
        kept = status.ready_kept or told["Ready"]
    return _unless_removing(status, now, replace(status, suspended=suspended, ready_kept=kept, progress=None))


def set_maintenance(status: PackageStatus, mode: str, now: datetime) -> PackageStatus:
    """Record a maintenance mode such as ``NoResourceReconciliation``, in which applied objects are not reconciled; "" ends
    the maintenance.
    """
    before = status.maintenance
    if mode == ("" if before is None else before.reason):
        return status
    condition = Condition(Truth.TRUE, mode, explanation(mode) or f"in maintenance: {mode}", now) if mode else None
    return _unless_removing(status, now, replace(status, maintenance=condition))


def rolled_back(status: PackageStatus, note: RollbackNote | None, now: datetime) -> PackageStatus:
    """Record a note: about the rollback in force, or about the reason why a rollback was impossible. None removes the note."""
    return status if note == status.rollback else _unless_removing(status, now, replace(status, rollback=note))


def tracking(status: PackageStatus, completed: Iterable[str], remaining: Iterable[str], now: datetime) -> PackageStatus:
    """Record the progress of the current operation on the named objects; the progress is removed when no object remains."""
    return _unless_removing(status, now, replace(status, progress=progress_of(completed, remaining)))


def warned(status: PackageStatus, warnings: Iterable[str], now: datetime) -> PackageStatus:
    """Replace the warnings. They state facts that users should know, although nothing failed. At most MAX_WARNINGS are kept."""
    each = list(dict.fromkeys(_one_line(warning) for warning in warnings))
    more = len(each) - MAX_WARNINGS
    shown = (*each[:MAX_WARNINGS], f"and {more} more") if more > 0 else tuple(each)
    return _unless_removing(status, now, replace(status, warnings=shown))


def chosen(status: PackageStatus, note: VersionNote | None, now: datetime) -> PackageStatus:
    """Record the note about the choice of the version. ``note`` is None if the resource names an exact version."""
    return _unless_removing(status, now, replace(status, update=note))


def reachable(status: PackageStatus, urls: Iterable[tuple[str, str]], now: datetime) -> PackageStatus:
    """Replace the addresses of the package, which are pairs of a URL and a description. At most MAX_URLS are kept."""
    return _unless_removing(status, now, replace(status, urls=tuple(urls)[:MAX_URLS]))


def is_stalled(status: PackageStatus) -> bool:
    """Return whether a stage has failed permanently. Return False for a package that is suspended, that is being removed, or
    whose pipeline cannot start.
    """
    problem = open_condition(status)
    aside = status.removal is not None or status.blocked is not None or status.suspended
    return not aside and problem is not None and problem.permanent


def external(status: PackageStatus) -> JsonObject:
    """Return the ``status`` to write to the resource."""
    state, message, tip = summarize(status)
    conditions: list[JsonValue] = [_external(kind, told) for kind, told in status.external.items()]
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
    """Return the merge patch that turns the ``written`` status into ``status``; empty if they agree already.

    A merge patch does not change fields that it does not name, so fields that are only in the written status are set to null.
    """
    body = external(status)
    body |= {name: None for name in _MAY_BE_ABSENT if name not in body}
    if all(find(written, name) == value for name, value in body.items()):
        return {}
    update = body.get("update")
    if isinstance(update, dict):  # a merge patch does not change the fields that it does not name
        body["update"] = {"follows": None, "pending": None, **update}
    return body


def _external(kind: str, told: ExternalCondition) -> JsonObject:
    return {
        "type": kind,
        "status": told.truth.value,
        "reason": str(told.reason),
        "message": _cut(told.message, MAX_MESSAGE),
        "lastTransitionTime": format_time(told.since),
        "observedGeneration": told.generation,
    }


def _read_told(written: JsonObject) -> Iterator[tuple[str, ExternalCondition]]:
    entries = find(written, "conditions")
    for entry in entries if isinstance(entries, list) else ():
        since, truth = parse_time(_text(entry, "lastTransitionTime")), _text(entry, "status")
        if since is not None and truth in set(Truth):
            reason, message = _text(entry, "reason"), _text(entry, "message")
            told = ExternalCondition(Truth(truth), reason, message, since, _number(entry, "observedGeneration"))
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
    return status.external["Reconciling"].truth is Truth.TRUE


def _begun(status: PackageStatus, generation: int) -> PackageStatus:
    held = _held_of(status, generation)
    return replace(status, generation=generation, blocked=None, held=held, scale_checked=False, progress=None)


def _held_of(status: PackageStatus, generation: int) -> Condition | None:
    """Return the condition of a removal that is held back; None if it was recorded for another generation, because the
    resource may have been created again since.
    """
    return status.held if generation == status.generation else None


def _started(stage: Stage, before: Condition, now: datetime) -> Condition:
    """Return the condition that a stage has before its work begins: Unknown, or True for a stage that packages need
    not have.
    """
    if stage in OPTIONAL:
        return _moved(before, Truth.TRUE, stage.value, "", now)
    return _moved(before, Truth.UNKNOWN, Reason.PENDING, "", now)


def _with(status: PackageStatus, stage: Stage, condition: Condition, now: datetime) -> PackageStatus:
    return _unless_removing(status, now, replace(status, stages={**status.stages, stage: condition}))


def _unless_removing(status: PackageStatus, now: datetime, after: PackageStatus) -> PackageStatus:
    """Return ``after`` with its external conditions. If the package is being removed, return ``status`` unchanged."""
    if status.removal is not None:
        return status
    if after.stages is not status.stages and not after.suspended and after.ready_kept is not None:
        problem = open_condition(after)
        if problem is None:
            return _verified(status, after, now)
        if not after.stays_ready(problem):
            after = replace(after, ready_kept=None)  # this process itself has checked the package now
    if after.installed_since is None and open_condition(after) is None:
        after = replace(after, installed_since=now)
    return _told(after, now)


def _verified(before: PackageStatus, after: PackageStatus, now: datetime) -> PackageStatus:
    """Return ``after``, in which all stages are done, with its external conditions. If an earlier process had reported the
    package as Ready, and the new condition Reconciling differs from the old one only in its time, the old one is kept.
    """
    told = _told(replace(after, ready_kept=None), now)
    found, kept = told.external["Reconciling"], after.reconciling_kept
    if before.is_being_verified and kept is not None and replace(found, since=kept.since) == kept:
        told = replace(told, external={**told.external, "Reconciling": kept})
    return told


def _told(status: PackageStatus, now: datetime) -> PackageStatus:
    told: Mapping[str, ExternalCondition] = external_conditions(status, now)
    return status if told is status.external else replace(status, external=told)


def _moved(before: Condition, truth: Truth, reason: str, message: str, now: datetime) -> Condition:
    return Condition(truth, reason, message, before.since if before.truth is truth else now)


def _one_line(text: str) -> str:
    return _cut(" ".join(text.split()), MAX_WARNING)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
