"""Label selectors in objects (``metav1.LabelSelector``): their validation, and the labels that they match."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.selectors import key_problems, value_problems

Labels: TypeAlias = "JsonValue | Mapping[str, str]"
MISMATCH: Final = "`selector` does not match template `labels`"


def selector_errors(selector: JsonValue, path: str, *, any_value: bool = False) -> list[FieldError]:
    """Return the errors of a selector; a missing selector has none. With ``any_value``, values need not be valid label values."""
    if not isinstance(selector, dict):
        return []
    errors = labels_errors(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, term in enumerate(_terms(selector)):
        errors += _requirement_errors(term, f"{path}.matchExpressions[{index}]", any_value=any_value)
    return errors


def labels_errors(labels: Labels, path: str) -> list[FieldError]:
    """Return the errors of the labels at ``path``."""
    errors: list[FieldError] = []
    for key, value in sorted(labels_of(labels).items()):
        errors += each(path, key, key_problems(key))
        errors += each(path, value, value_problems(value))
    return errors


def _requirement_errors(term: JsonObject, path: str, *, any_value: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = _text(term.get("operator")), _values(term)
    if operator in {"In", "NotIn"}:
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{path}.values", why))
    else:
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = _text(term.get("key"))
    errors += each(f"{path}.key", key, key_problems(key))
    for index, value in enumerate([] if any_value else values):
        errors += each(f"{path}.values[{index}]", value, value_problems(value))
    return errors


def is_readable(selector: JsonValue) -> bool:
    """Return whether a selector is valid; None is valid, and selects nothing."""
    return not selector_errors(selector, "")


def has_invalid_value(selector: JsonValue) -> bool:
    """Return whether an expression of the selector has a value that no label can have."""
    terms = _terms(selector) if isinstance(selector, dict) else []
    return any(value_problems(value) for term in terms for value in _values(term))


def is_empty(selector: JsonValue) -> bool:
    """Return whether a selector is present and empty, and so selects everything."""
    return isinstance(selector, dict) and not selector.get("matchLabels") and not selector.get("matchExpressions")


def selects(selector: JsonValue, labels: Labels) -> bool:
    """Return whether a selector matches labels; None and selectors with an unknown operator match nothing."""
    if not isinstance(selector, dict):
        return False
    held = labels_of(labels)
    wanted = labels_of(selector.get("matchLabels"))
    return all(held.get(key) == value for key, value in wanted.items()) and all(
        _holds(term, held) for term in _terms(selector)
    )


def _holds(term: JsonObject, labels: dict[str, str]) -> bool:
    value = labels.get(_text(term.get("key")))
    match term.get("operator"):
        case "In":
            return value in _values(term)
        case "NotIn":
            return value not in _values(term)
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


def shown_selector(selector: JsonValue) -> JsonValue:
    """Return a selector as Go prints it: members in the struct's order, labels sorted."""
    if not isinstance(selector, dict):
        return None
    found: JsonObject = {}
    if labels := labels_of(selector.get("matchLabels")):
        found["matchLabels"] = dict[str, JsonValue](sorted(labels.items()))
    if terms := _terms(selector):
        found["matchExpressions"] = [_shown_term(term) for term in terms]
    return found


def _shown_term(term: JsonObject) -> JsonObject:
    shown: JsonObject = {name: _text(term.get(name)) for name in ("key", "operator")}
    return {**shown, "values": term["values"]} if term.get("values") else shown


def shown_labels(labels: Labels) -> JsonValue:
    """Return labels as Go prints them: sorted by key; null if they are missing."""
    return dict[str, JsonValue](sorted(labels_of(labels).items())) if isinstance(labels, Mapping) else None


def template_labels(spec: JsonValue) -> dict[str, str]:
    """Return the labels of the pod template in a workload's spec."""
    return labels_of(find(spec, "template", "metadata", "labels"))


def labels_of(value: Labels) -> dict[str, str]:
    """Return labels as strings; a value that is not a string, such as null, reads as ""."""
    return {key: _text(item) for key, item in value.items()} if isinstance(value, Mapping) else {}


def _terms(selector: JsonObject) -> list[JsonObject]:
    found = selector.get("matchExpressions")
    return [term for term in found if isinstance(term, dict)] if isinstance(found, list) else []


def _values(term: JsonObject) -> list[str]:
    found = term.get("values")
    return [_text(value) for value in found] if isinstance(found, list) else []


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
