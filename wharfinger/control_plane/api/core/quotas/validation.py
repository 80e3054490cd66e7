"""The validation of ResourceQuotas and LimitRanges: names of resources, scopes, and amounts that contradict each other."""

from fractions import Fraction
from typing import Final

from wharfinger.control_plane.api.core.pod_specs.resources import (
    STANDARD,
    container_resource_name_errors,
    overcommits,
    quantity_errors,
    resource_name_errors,
)
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import part, parts, texts
from wharfinger.control_plane.wire.field_errors import (
    IMMUTABLE,
    MAX_LIST_ERRORS,
    duplicate,
    each,
    forbidden,
    invalid,
    required,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.quantities import amount, canonical_quantity, whole
from wharfinger.kube.selectors import key_problems

_POD_SCOPES: Final = frozenset(
    {"Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"}
)
SCOPES: Final = _POD_SCOPES | {"BestEffort", "VolumeAttributesClass"}
_ONLY_EXISTS: Final = SCOPES - {"PriorityClass", "VolumeAttributesClass"}
_PAIRS: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_COMPUTE: Final = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_CLAIMS: Final = frozenset({"persistentvolumeclaims", "requests.storage"})
_STANDARD_QUOTA: Final = STANDARD - {"storage"}
_MUST_EXIST: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_UNFIT: Final = "unsupported scope applied to resource"


def _is_standard(name: str) -> bool:
    return name in _STANDARD_QUOTA or name.startswith(("hugepages-", "requests.hugepages-"))


def _amount_errors(amounts: JsonObject, field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, value in amounts.items():
        at = f"{field}[{name}]"
        errors += resource_name_errors(name, at)
        if "/" not in name and not _is_standard(name):
            errors.append(invalid(at, name, "must be a standard resource for quota"))
        errors += quantity_errors(name, value, at)
    return errors


def _fits(scope: str, name: str) -> bool:
    """Return whether a ResourceQuota with this scope can limit the resource ``name``."""
    if scope in _POD_SCOPES:
        return name in _COMPUTE
    if scope == "BestEffort":
        return name == "pods"
    return name in _CLAIMS if scope == "VolumeAttributesClass" else True


def _spec_errors(quota: JsonObject) -> list[FieldError]:
    hard, scopes = part(quota, "spec", "hard") or {}, texts(quota, "spec", "scopes")
    errors = _amount_errors(hard, "spec.hard")
    shown: JsonValue = list(scopes) or None
    unsupported, unfit = (invalid("spec.scopes", shown, why) for why in ("unsupported scope", _UNFIT))
    for scope in scopes[:MAX_LIST_ERRORS]:
        if scope not in SCOPES:
            errors.append(unsupported)
        errors += [unfit] * _unfit(scope, hard)
    errors += _conflict_errors(scopes, "spec.scopes", shown)
    selector = part(quota, "spec", "scopeSelector")
    return errors if selector is None else errors + _selector_errors(selector, hard, shown)


def _unfit(scope: str, hard: JsonObject) -> int:
    return sum(1 for name in hard if _is_standard(name) and not _fits(scope, name))


def _conflict_errors(scopes: list[str], field: str, shown: JsonValue) -> list[FieldError]:
    return [invalid(field, shown, "conflicting scopes") for pair in _PAIRS if set(pair) <= set(scopes)]


def _selector_errors(selector: JsonObject, hard: JsonObject, scopes: JsonValue) -> list[FieldError]:
    field = "spec.scopeSelector.matchExpressions"
    errors: list[FieldError] = []
    requirements = parts(selector, "matchExpressions")
    for requirement in requirements:
        scope, operator, values = (
            text(requirement, "scopeName"),
            text(requirement, "operator"),
            texts(requirement, "values"),
        )
        if scope not in SCOPES:
            errors.append(invalid(f"{field}.scopeName", scope, "unsupported scope"))
        errors += [invalid(field, _selector_form(requirements), _UNFIT)] * _unfit(scope, hard)
        if scope in _ONLY_EXISTS and operator != "Exists":
            errors.append(invalid(f"{field}.operator", operator, _MUST_EXIST))
        errors += _operator_errors(operator, values, field)
    named = [text(requirement, "scopeName") for requirement in requirements]
    return errors + _conflict_errors(named, field, scopes)


def _selector_form(requirements: list[JsonObject]) -> JsonObject:
    """Return a scope selector as it is printed in kube-apiserver's errors."""
    forms: list[JsonValue] = [
        {
            "ScopeName": text(item, "scopeName"),
            "Operator": text(item, "operator"),
            "Values": list(texts(item, "values")) or None,
        }
        for item in requirements
    ]
    return {"MatchExpressions": forms or None}


def _operator_errors(operator: str, values: list[str], field: str) -> list[FieldError]:
    if operator in {"In", "NotIn"}:
        why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return [] if values else [required(f"{field}.values", why)]
    if operator in {"Exists", "DoesNotExist"}:
        why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [invalid(f"{field}.values", list(values), why)] if values else []
    return [invalid(f"{field}.operator", operator, "not a valid selector operator")]


def _quota_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = _spec_errors(new)
    scopes = texts(new, "spec", "scopes")
    if set(scopes) != set(texts(old, "spec", "scopes")):
        errors.append(invalid("spec.scopes", list(scopes) or None, IMMUTABLE))
    return errors


def _quota_status_errors(new: JsonObject, _old: JsonObject) -> list[FieldError]:
    errors = _amount_errors(part(new, "status", "hard") or {}, "status.hard")
    return errors + _amount_errors(part(new, "status", "used") or {}, "status.used")


def _quota_warnings(quota: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a new quota that allows more ``requests`` than ``limits``."""
    hard = part(quota, "spec", "hard") or {}
    said = []
    for name in () if old is not None else ("cpu", "memory", "storage", "ephemeral-storage"):
        asked, most = f"requests.{name}", f"limits.{name}"
        if asked not in hard and name in {"cpu", "memory"} and name in hard:
            asked = name
        if asked in hard and most in hard and amount(hard[asked]) > amount(hard[most]):
            said.append(f"ResourceQuota {asked} ({hard[asked]}) should be less than {most} ({hard[most]})")
    return said


QUOTA_RULES: Final = Rules(
    create=_spec_errors, update=_quota_update_errors, status=_quota_status_errors, warnings=_quota_warnings
)


def _limit_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, limit in enumerate(parts(obj, "spec", "limits")):
        field, kind = f"spec.limits[{index}]", text(limit, "type")
        errors += _kind_errors(kind, f"{field}.type")
        if kind in seen:
            errors.append(duplicate(f"{field}.type", kind))
        seen.add(kind)
        errors += _name_errors(limit, kind, field)
        for name in _names(limit, kind):
            errors += _pair_errors(_Amounts(limit, kind, name), field, name)
    return errors


def _kind_errors(kind: str, field: str) -> list[FieldError]:
    if errors := each(field, kind, key_problems(kind)):
        return errors
    if "/" in kind or kind in {"Pod", "Container", "PersistentVolumeClaim"}:
        return []
    return [invalid(field, kind, "must be a standard limit type or fully qualified")]


def _maps(kind: str) -> tuple[str, ...]:
    return ("max", "min", "maxLimitRequestRatio") if kind == "Pod" else (
        "max", "min", "default", "defaultRequest", "maxLimitRequestRatio"
    )  # fmt: skip


def _names(limit: JsonObject, kind: str) -> dict[str, None]:
    return {name: None for member in _maps(kind) for name in part(limit, member) or {}}


def _name_errors(limit: JsonObject, kind: str, field: str) -> list[FieldError]:
    check = container_resource_name_errors if kind in {"Pod", "Container"} else resource_name_errors
    errors: list[FieldError] = []
    for member in ("max", "min"):
        for name in part(limit, member) or {}:
            errors += check(name, f"{field}.{member}[{name}]")
    for member in ("default", "defaultRequest"):
        amounts = part(limit, member) or {}
        if kind == "Pod":
            why = "may not be specified when `type` is 'Pod'"
            errors += [forbidden(f"{field}.{member}", why)] if amounts else []
            continue
        for name in amounts:
            errors += check(name, f"{field}.{member}[{name}]")
    stored = ("storage" in (part(limit, "min") or {}), "storage" in (part(limit, "max") or {}))
    if kind == "PersistentVolumeClaim" and not any(stored):
        why = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{field}.limits", why))
    for name in part(limit, "maxLimitRequestRatio") or {}:
        errors += check(name, f"{field}.maxLimitRequestRatio[{name}]")
    return errors


class _Amounts:
    """The amounts that an item of a LimitRange sets for one resource; None for an amount that it does not set."""

    def __init__(self, limit: JsonObject, kind: str, name: str) -> None:
        found = {member: (part(limit, member) or {}).get(name) for member in _maps(kind)}
        self.least, self.most = found["min"], found["max"]
        self.default, self.request = found.get("default"), found.get("defaultRequest")
        self.ratio = found["maxLimitRequestRatio"]


def _above(one: JsonValue, other: JsonValue) -> bool:
    return one is not None and other is not None and amount(one) > amount(other)


def _pair_errors(amounts: _Amounts, field: str, name: str) -> list[FieldError]:
    least, most, default, request = amounts.least, amounts.most, amounts.default, amounts.request
    said = [canonical_quantity(value) for value in (least, most, default, request)]
    checks = [
        (_above(least, most), "min", least, f"min value {said[0]} is greater than max value {said[1]}"),
        (
            _above(least, request),
            "defaultRequest",
            request,
            f"min value {said[0]} is greater than default request value {said[3]}",
        ),
        (
            _above(request, most),
            "defaultRequest",
            request,
            f"default request value {said[3]} is greater than max value {said[1]}",
        ),
        (
            _above(request, default),
            "defaultRequest",
            request,
            f"default request value {said[3]} is greater than default limit value {said[2]}",
        ),
        (_above(least, default), "default", least, f"min value {said[0]} is greater than default value {said[2]}"),
        (_above(default, most), "default", most, f"default value {said[2]} is greater than max value {said[1]}"),
    ]
    errors = [
        invalid(f"{field}.{member}[{name}]", canonical_quantity(value), why)
        for wrong, member, value, why in checks
        if wrong
    ]
    errors += _ratio_errors(amounts, f"{field}.maxLimitRequestRatio[{name}]")
    if default is not None and request is not None and not overcommits(name) and amount(default) != amount(request):
        why = f"default value {said[2]} must equal to defaultRequest value {said[3]} in {name}"
        errors.append(invalid(f"{field}.defaultRequest[{name}]", said[3], why))
    return errors


def _ratio_errors(amounts: _Amounts, field: str) -> list[FieldError]:
    if amounts.ratio is None:
        return []
    ratio = canonical_quantity(amounts.ratio)
    errors = []
    if amount(amounts.ratio) < 1:
        errors.append(invalid(field, ratio, f"ratio {ratio} is less than 1"))
    if amounts.least is None or amounts.most is None:
        return errors
    bound = _quotient(amount(amounts.most), amount(amounts.least))
    if bound is not None and amount(amounts.ratio) > bound:
        errors.append(invalid(field, ratio, f"ratio {ratio} is greater than max/min = {float(bound):f}"))
    return errors


def _quotient(most: Fraction, least: Fraction) -> Fraction | None:
    """Return the quotient of two amounts; ``most`` is rounded up to thousandths first. None if ``least`` is zero."""
    return Fraction(whole(str(most * 1000)), 1) / (least * 1000) if least else None


LIMIT_RANGE_RULES: Final = Rules(create=_limit_errors, update=lambda new, _old: _limit_errors(new))
