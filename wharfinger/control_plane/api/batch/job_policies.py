"""The validation of a Job's failure and success policies: ``podFailurePolicy``, ``successPolicy``, lists of indexes."""

import re
from typing import Final

from wharfinger.control_plane.objects.amounts import not_negative, number, optional_number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts, repeated
from wharfinger.control_plane.wire.field_errors import (
    duplicate,
    each,
    invalid,
    not_supported,
    quoted,
    required,
    too_long,
    too_many,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list
from wharfinger.kube.selectors import key_problems

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_STATUSES: Final = ("False", "True", "Unknown")
_MAX_RULES: Final = 20
_MAX_PATTERNS: Final = 20
_MAX_EXIT_CODES: Final = 255
_MAX_INDEXES_LENGTH: Final = 64 * 1024


class IndexesError(Exception):
    """The list of indexes cannot be read."""


def failure_policy_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the ``podFailurePolicy`` of a Job's spec."""
    rules = parts(spec, "podFailurePolicy", "rules")
    errors = [too_many(f"{path}.rules", len(rules), _MAX_RULES)] if len(rules) > _MAX_RULES else []
    names = {
        text(container, "name")
        for group in ("containers", "initContainers")
        for container in parts(spec, "template", "spec", group)
    }
    for index, rule in enumerate(rules):
        errors += _rule_errors(spec, rule, f"{path}.rules[{index}]", names)
    return errors


def _rule_errors(spec: JsonObject, rule: JsonObject, path: str, names: set[str]) -> list[FieldError]:
    action, errors = text(rule, "action"), list[FieldError]()
    if action == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            errors.append(invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    else:
        errors += _choice_errors(action, f"{path}.action", _ACTIONS)
    codes, patterns = part(rule, "onExitCodes"), parts(rule, "onPodConditions")
    if codes is not None:
        errors += _exit_code_errors(codes, f"{path}.onExitCodes", names)
    if len(patterns) > _MAX_PATTERNS:
        errors.append(too_many(f"{path}.onPodConditions", len(patterns), _MAX_PATTERNS))
    for index, pattern in enumerate(patterns):
        here, kind = f"{path}.onPodConditions[{index}]", text(pattern, "type")
        errors += each(f"{here}.type", kind, key_problems(kind))
        errors += _choice_errors(text(pattern, "status"), f"{here}.status", _STATUSES)
    if codes is not None and patterns:
        errors.append(invalid_without_value(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not patterns:
        errors.append(invalid_without_value(path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def invalid_without_value(path: str, why: str) -> FieldError:
    """Return an ``invalid`` error that does not show the value."""
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {why}")


def _choice_errors(value: str, path: str, choices: tuple[str, ...]) -> list[FieldError]:
    if not value:
        return [required(path, f"valid values: [{' '.join(map(quoted, choices))}]")]
    return [] if value in choices else [not_supported(path, value, choices)]


def _exit_code_errors(codes: JsonObject, path: str, names: set[str]) -> list[FieldError]:
    operator = text(codes, "operator")
    errors = _choice_errors(operator, f"{path}.operator", _OPERATORS)
    container = codes.get("containerName")
    if isinstance(container, str) and container not in names:
        why = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", container, why))
    values = [value for value in find_list(codes, "values") if isinstance(value, int)]
    shown: JsonValue = list(values) if values else codes.get("values")
    if not values:
        errors.append(invalid(f"{path}.values", shown, "at least one value is required"))
    elif len(values) > _MAX_EXIT_CODES:
        errors.append(too_many(f"{path}.values", len(values), _MAX_EXIT_CODES))
    twice = repeated(values)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if index in twice:
            errors.append(duplicate(f"{path}.values[{index}]", value))
    return errors if values == sorted(values) else [*errors, invalid(f"{path}.values", shown, "must be ordered")]


def success_policy_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the ``successPolicy`` of an indexed Job's spec."""
    rules = parts(spec, "successPolicy", "rules")
    errors: list[FieldError] = []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", why))
    if len(rules) > _MAX_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        errors += _success_rule_errors(rule, number(spec, "completions"), f"{path}.rules[{index}]")
    return errors


def _success_rule_errors(rule: JsonObject, completions: int, path: str) -> list[FieldError]:
    count, indexes = optional_number(rule, "succeededCount"), rule.get("succeededIndexes")
    errors: list[FieldError] = []
    if count is None and indexes is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if isinstance(indexes, str):
        if len(indexes.encode()) > _MAX_INDEXES_LENGTH:
            errors.append(too_long(f"{path}.succeededIndexes", _MAX_INDEXES_LENGTH))
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            why = f"error parsing succeededIndexes: {error}"
            errors.append(invalid(f"{path}.succeededIndexes", indexes, why))
    if count is None:
        return errors
    field, at_most = f"{path}.succeededCount", "must be less than or equal to"
    errors += not_negative(count, field)
    if count > completions:
        errors.append(invalid(field, count, f"{at_most} {completions} (the number of specified completions)"))
    if indexes is not None and count > total:
        why = f"{at_most} {total} (the number of indexes in the specified succeededIndexes field)"
        errors.append(invalid(field, count, why))
    return errors


def count_indexes(indexes: str, completions: int) -> int:
    """Return the number of indexes in a list such as ``1,3-5``. Raises IndexesError."""
    total, last = 0, None
    for interval in indexes.split(",") if indexes else []:
        low, high = index_interval(interval, completions)
        if last is not None and last >= low:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {low}")
        total, last = total + high - low + 1, high
    return total


def index_interval(interval: str, completions: int) -> tuple[int, int]:
    """Return the first and the last index of an interval such as ``3-5``, or ``3``. Raises IndexesError."""
    limits = interval.split("-")
    if len(limits) > 2:
        raise IndexesError(
            f"the fragment {quoted(interval)} violates the requirement that an index interval can have at most two parts "
            "separated by '-'"
        )
    found: list[int] = []
    for limit in limits:
        if not re.fullmatch(r"\+?[0-9]{1,18}", limit, re.ASCII):
            raise IndexesError(f"cannot convert string to integer for index: {quoted(limit)}")
        if int(limit) >= completions:
            raise IndexesError(f"too large index: {quoted(limit)}")
        found.append(int(limit))
    if len(found) == 2 and found[0] >= found[1]:
        raise IndexesError(f"non-increasing order, previous: {found[0]}, current: {found[1]}")
    return found[0], found[-1]


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """Return the first index in both lists; None if they have no common index. Intervals that cannot be read are skipped."""
    done, lost = (_intervals(text_, completions) for text_ in (completed, failed))
    while done and lost:
        if done[0][0] <= lost[0][1] and lost[0][0] <= done[0][1]:
            return max(done[0][0], lost[0][0])
        (done if done[0][0] <= lost[0][0] else lost).pop(0)
    return None


def _intervals(indexes: str, completions: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for interval in indexes.split(",") if indexes else []:
        try:
            found.append(index_interval(interval, completions))
        except IndexesError:
            continue
    return found


def condition_is(obj: JsonValue, kind: str, status: str = "True") -> bool:
    """Return whether an object has a condition of the given type and status."""
    return any(
        find(item, "type") == kind and find(item, "status") == status for item in parts(obj, "status", "conditions")
    )
