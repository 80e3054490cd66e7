"""The validation of device capacities and of their request policies (``devices[].capacity`` of a ResourceSlice)."""

from fractions import Fraction
from typing import Final

from wharfinger.control_plane.api.resource.device_names import set_errors
from wharfinger.control_plane.objects.lenient_fields import list_at, part
from wharfinger.control_plane.wire.field_errors import forbidden, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.quantities import amount, canonical_quantity, format_quantity, whole

CHOICES_LIMIT: Final = 10
_BOTH: Final = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'


def capacity_errors(capacity: JsonObject, path: str, *, shared: bool) -> list[FieldError]:
    """Return the errors of one capacity; ``shared`` is true if its device may be allocated to several claims."""
    policy = part(capacity, "requestPolicy")
    if policy is None:
        return []
    field = f"{path}.requestPolicy"
    if not shared:
        return [forbidden(field, "allowMultipleAllocations must be true")]
    values, bounds = list_at(policy, "validValues"), part(policy, "validRange")
    if values and bounds is not None:
        return [forbidden(field, _BOTH)]
    if not values and bounds is None:
        return []
    default, most = policy.get("default"), capacity.get("value")
    name = "validValues" if values else "validRange"
    if default is None:
        return [required(f"{field}.default", f"required when {name} is defined")]
    if bounds is None:
        return _choice_errors(default, most, values, f"{field}.{name}")
    return _bounds_errors(default, most, bounds, f"{field}.{name}")


def _choice_errors(default: JsonValue, most: JsonValue, values: list[JsonValue], field: str) -> list[FieldError]:
    errors = [
        invalid(f"{field}[{index}]", canonical_quantity(value), "values must be sorted in ascending order")
        for index, value in enumerate(values)
        if index and amount(values[index - 1]) > amount(value)
    ]
    errors += set_errors(
        values, CHOICES_LIMIT, field,
        lambda value, at: (
            [invalid(at, canonical_quantity(value), f"option is larger than capacity value: {canonical_quantity(most)}")]
            if amount(value) > amount(most)
            else []
        ),
        whole, lambda value: str(whole(value)),
    )  # fmt: skip
    judged = values if len(values) <= CHOICES_LIMIT else []
    if all(amount(value) != amount(default) for value in judged):
        why = "default value is not valid according to the requestPolicy"
        errors.append(invalid(field, canonical_quantity(default), why))
    return errors


def _bounds_errors(default: JsonValue, most: JsonValue, bounds: JsonObject, field: str) -> list[FieldError]:
    low, high, step = bounds.get("min"), bounds.get("max"), bounds.get("step")
    if low is None:
        return [required(f"{field}.min", "required when validRange is defined")]
    pairs: list[tuple[str, JsonValue, JsonValue, JsonValue, str, JsonValue]] = []
    pairs.append(("min", low, most, low, "min is larger than capacity value", most))
    pairs.append(("min", low, default, default, "default is less than min", low))
    if high is not None:
        pairs.append(("max", low, high, low, "min is larger than max", high))
        pairs.append(("max", high, most, high, "max is larger than capacity value", most))
        pairs.append(("max", default, high, default, "default is more than max", high))
    errors = [
        invalid(f"{field}.{name}", canonical_quantity(shown), f"{why}: {canonical_quantity(bound)}")
        for name, smaller, larger, shown, why, bound in pairs
        if amount(smaller) > amount(larger)
    ]
    if step is None:
        return errors
    one = amount(low) + amount(step)
    if one > amount(most):
        why = f"one step {format_quantity(one, low)} is larger than capacity value: {canonical_quantity(most)}"
        errors.append(invalid(f"{field}.step", canonical_quantity(step), why))
    return errors + [
        error
        for value in (default, *([] if high is None else [high]))
        for error in _step_errors(value, low, step, f"{field}.step")
    ]


def _step_errors(value: JsonValue, low: JsonValue, step: JsonValue, field: str) -> list[FieldError]:
    """Return an error if a value is not a whole number of steps above the minimum, or if the step is zero."""
    distance = Fraction(whole(value) - whole(low))
    if whole(step) and (distance / whole(step)).denominator == 1:
        return []
    why = f"value is not a multiple of a given step ({canonical_quantity(step)}) from ({canonical_quantity(low)})"
    return [invalid(field, canonical_quantity(value), why)]
