"""Selectors in access reviews, which restrict a review to some objects.

The decision does not depend on selectors, because RBAC rules have none; but errors in selectors are reported.
"""

from typing import Final

from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.selectors import (
    SelectorError,
    key_problems,
    parse_field_selector,
    parse_label_selector,
    value_problems,
)

_MANY: Final = ("In", "NotIn")
_NONE: Final = ("Exists", "DoesNotExist")


def selector_errors(attributes: JsonValue, path: str) -> list[FieldError]:
    """Return the errors of the selectors in ``resourceAttributes`` at ``path``; unknown operators are accepted."""
    errors: list[FieldError] = []
    for name in ("fieldSelector", "labelSelector"):
        selector = part(attributes, name)
        if selector is not None:
            errors += _errors(selector, f"{path}.{name}", labels=name == "labelSelector")
    return errors


def _errors(selector: JsonObject, path: str, *, labels: bool) -> list[FieldError]:
    raw, requirements = text(selector, "rawSelector"), parts(selector, "requirements")
    errors: list[FieldError] = []
    if raw and requirements:
        errors.append(invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements"))
    if not raw and not requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(required(f"{path}.requirements", why))
    for index, requirement in enumerate(requirements):
        errors += _requirement_errors(requirement, f"{path}.requirements[{index}]", labels=labels)
    return errors


def _requirement_errors(requirement: JsonObject, path: str, *, labels: bool) -> list[FieldError]:
    key, operator, values = text(requirement, "key"), text(requirement, "operator"), texts(requirement, "values")
    errors = [] if labels or key else [required(f"{path}.key", "must be specified")]
    if operator in _MANY and not values:
        errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in _NONE and values:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(forbidden(f"{path}.values", why))
    if not labels:
        return errors
    errors += each(f"{path}.key", key, key_problems(key))
    for index, value in enumerate(values):
        errors += each(f"{path}.values[{index}]", value, value_problems(value))
    return errors


def evaluation_error(attributes: JsonValue) -> str:
    """Return the message about selectors with requirements that cannot be parsed; "" if there are none."""
    problems = []
    for name in ("fieldSelector", "labelSelector"):
        selector = part(attributes, name)
        read, failed = _read(selector, labels=name == "labelSelector") if selector is not None else (0, False)
        if failed:
            partly = "partially " if read else ""
            problems.append(f"spec.resourceAttributes.{name} {partly}ignored due to parse error")
    return "; ".join(problems)


def _read(selector: JsonObject, *, labels: bool) -> tuple[int, bool]:
    """Return the number of valid requirements in a selector, and whether any requirement is invalid."""
    requirements = parts(selector, "requirements")
    if requirements:
        understood = sum(_is_label(one) if labels else _is_field(one) for one in requirements)
        return understood, understood < len(requirements)
    raw = text(selector, "rawSelector")
    try:
        if labels:
            parse_label_selector(raw)
        else:
            parse_field_selector(raw, lambda _path: True)
    except SelectorError:
        return 0, True
    return 1, False


def _is_label(requirement: JsonObject) -> bool:
    return text(requirement, "operator") in (*_MANY, *_NONE)


def _is_field(requirement: JsonObject) -> bool:
    return text(requirement, "operator") in _MANY and len(texts(requirement, "values")) == 1
