"""The validation of a Job's status. It also applies to Job controllers other than the built-in one.

Most checks only consider the fields that the write changes, so a wrong field does not prevent writes of the other fields.
"""

from typing import Final

from wharfinger.control_plane.api.batch.job_policies import (
    IndexesError,
    condition_is,
    count_indexes,
    invalid_without_value,
    overlap,
)
from wharfinger.control_plane.objects.amounts import none_negative, number, optional_number, text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.lenient_fields import part, texts
from wharfinger.control_plane.wire.field_errors import duplicate, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find

_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")
_IMMUTABLE: Final = "field is immutable"
_CONDITIONS: Final = "status.conditions"
_TERMINAL: Final = ("Failed", "Complete", "FailureTarget")


class _Change:
    """The new and the old state of a Job, and the differences between them."""

    def __init__(self, new: JsonObject, old: JsonObject) -> None:
        self.new, self.old = new, old
        self.complete = condition_is(new, "Complete")
        self.failed = condition_is(new, "Failed")
        self.finished = self.complete or self.failed
        self.was_finished = condition_is(old, "Complete") or condition_is(old, "Failed")
        self.finish_changed = self.finished != self.was_finished
        self.indexed = find(new, "spec", "completionMode") == "Indexed"

    def changed(self, *names: str) -> bool:
        """Return whether one of the named members differs between the new and the old status."""
        return any(
            (find(self.new, "status", name) or None) != (find(self.old, "status", name) or None) for name in names
        )

    def turned(self, *kinds: str) -> bool:
        """Return whether one of the named conditions became true or ceased to be true."""
        return any(condition_is(self.new, kind) != condition_is(self.old, kind) for kind in kinds)


def job_status_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of the new status of a Job."""
    change = _Change(new, old)
    errors = none_negative(new.get("status"), "status", _COUNTS) + _uncounted_errors(new)
    for rules in (_completion_errors, _finish_errors, _index_errors, _criteria_errors, _history_errors):
        errors += rules(change)
    return errors


def _uncounted_errors(obj: JsonObject) -> list[FieldError]:
    seen, errors = set[str](), list[FieldError]()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(texts(obj, "status", "uncountedTerminatedPods", name)):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _completion_errors(change: _Change) -> list[FieldError]:
    status, errors = part(change.new, "status") or {}, list[FieldError]()
    done, start = text(status, "completionTime"), text(status, "startTime")
    if change.turned("Complete", "Failed") and change.complete and change.failed:
        errors.append(invalid_without_value(_CONDITIONS, "cannot set Complete=True and Failed=true conditions"))
    target = condition_is(change.new, "FailureTarget")
    if change.turned("Complete", "FailureTarget") and change.complete and target:
        errors.append(invalid_without_value(_CONDITIONS, "cannot set Complete=True and FailureTarget=true conditions"))
    if change.turned("Complete") or change.changed("completionTime"):
        if done and not change.complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid("status.completionTime", done, why))
        if not done and change.complete:
            errors.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    if change.changed("startTime", "completionTime") and start and done and done < start:
        errors.append(invalid("status.completionTime", done, "must be equal to or after `startTime`"))
    if (change.turned("Failed") or change.changed("failedIndexes")) and change.failed and not target:
        why = "cannot set Failed=True condition without the FailureTarget=true condition"
        errors.append(invalid_without_value(_CONDITIONS, why))
    met = condition_is(change.new, "SuccessCriteriaMet")
    if change.turned("Complete", "SuccessCriteriaMet") and change.complete and not met:
        why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(invalid_without_value(_CONDITIONS, why))
    return errors


def _finish_errors(change: _Change) -> list[FieldError]:
    """Return the errors of a finished Job: Pods that are still active or uncounted, and a missing start time."""
    status, errors = part(change.new, "status") or {}, list[FieldError]()
    active = number(status, "active")
    if not change.finished:
        return []
    if (change.finish_changed or change.changed("active")) and active > 0:
        errors.append(invalid("status.active", active, "active>0 is invalid for finished job"))
    empty = find(change.new, "spec", "suspend") is True and optional_number(change.new, "spec", "completions") == 0
    if (change.finish_changed or change.changed("startTime")) and not empty and not status.get("startTime"):
        errors.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = part(status, "uncountedTerminatedPods")
    held = texts(uncounted, "succeeded") + texts(uncounted, "failed")
    if (change.finish_changed or change.changed("uncountedTerminatedPods")) and held:
        shown = internal_form("batch.UncountedTerminatedPods", uncounted)
        errors.append(invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job"))
    return errors


def _index_errors(change: _Change) -> list[FieldError]:
    status, errors = part(change.new, "status") or {}, list[FieldError]()
    completions = optional_number(change.new, "spec", "completions")
    completed, failed = text(status, "completedIndexes"), status.get("failedIndexes")
    limited = find(change.new, "spec", "backoffLimitPerIndex") is not None
    new_completed = text(change.old, "status", "completedIndexes") != completed
    new_failed = find(change.old, "status", "failedIndexes") != failed
    if new_completed and completions is not None:
        errors += _unreadable("completedIndexes", completed, completions)
    if new_failed and completions is not None and limited and isinstance(failed, str):
        errors += _unreadable("failedIndexes", failed, completions)
    if new_completed and completed and not change.indexed:
        why = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid("status.completedIndexes", completed, why))
    if new_failed and not limited and failed is not None:
        why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", failed, why))
    if (new_failed or new_completed) and completions is not None and isinstance(failed, str):
        index = overlap(completed, failed, completions)
        if index is not None:
            why = f"failedIndexes and completedIndexes overlap at index: {index}"
            errors.append(invalid("status.failedIndexes", failed, why))
    terminating = number(status, "terminating")
    if (change.finish_changed or change.changed("terminating")) and terminating > 0 and change.finished:
        errors.append(invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"))
    ready = number(status, "ready")
    if change.changed("ready", "active") and ready > number(status, "active"):
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    return errors


def _unreadable(name: str, indexes: str, completions: int) -> list[FieldError]:
    try:
        count_indexes(indexes, completions)
    except IndexesError as error:
        return [invalid(f"status.{name}", indexes, f"error parsing {name}: {error}")]
    return []


def _criteria_errors(change: _Change) -> list[FieldError]:
    errors, met = list[FieldError](), condition_is(change.new, "SuccessCriteriaMet")
    if met and change.failed:
        errors.append(
            invalid_without_value(_CONDITIONS, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
        )
    if met and condition_is(change.new, "FailureTarget"):
        errors.append(
            invalid_without_value(_CONDITIONS, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
        )
    if find(change.new, "spec", "successPolicy") is not None and not met and change.complete:
        why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(invalid_without_value(_CONDITIONS, why))
    return errors


def _history_errors(change: _Change) -> list[FieldError]:
    """Return an error for each change that reverts something permanent: terminal conditions, counters, times."""
    new, old, errors = change.new, change.old, list[FieldError]()
    errors += [
        invalid_without_value(_CONDITIONS, f"cannot disable the terminal {kind}=True condition")
        for kind in _TERMINAL
        if condition_is(old, kind) and not condition_is(new, kind)
    ]
    counters = ["failed"]
    scaled = find(new, "spec", "completions") == find(new, "spec", "parallelism")
    counters += [] if change.indexed and scaled else ["succeeded"]
    for name in counters:
        value = number(new, "status", name)
        if value < number(old, "status", name):
            errors.append(invalid(f"status.{name}", value, f"cannot decrease the {name} counter"))
    done, was_done = text(new, "status", "completionTime"), text(old, "status", "completionTime")
    if done and was_done and done != was_done:
        errors.append(invalid("status.completionTime", done, _IMMUTABLE))
    start, began = find(new, "status", "startTime"), find(old, "status", "startTime")
    resuming = condition_is(old, "Suspended") and condition_is(new, "Suspended", "False")
    if began is not None and began != start and not resuming and find(new, "spec", "suspend") is not True:
        errors.append(invalid("status.startTime", start, "field is immutable for unsuspended job once set"))
    met, was_met = condition_is(new, "SuccessCriteriaMet"), condition_is(old, "SuccessCriteriaMet")
    if was_met and not met:
        errors.append(invalid_without_value(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition"))
    if condition_is(old, "Complete") and not was_met and met:
        why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(invalid_without_value(_CONDITIONS, why))
    return errors
