"""The validation of scheduling fields: affinities, tolerations, topology spread, scheduling gates."""

from typing import Final

from wharfinger.control_plane.objects.amounts import number, optional_number, text
from wharfinger.control_plane.objects.label_selectors import selector_errors
from wharfinger.control_plane.objects.lenient_fields import part, parts, text_map, texts
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import duplicate, each, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.selectors import key_problems, value_problems

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES: Final = ("Honor", "Ignore")
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"
_WEIGHT: Final = "must be in the range 1-100"
_NOT_AN_OPERATOR: Final = "not a valid selector operator"


def node_selector_errors(selector: JsonObject, path: str, *, any_value: bool = False) -> list[FieldError]:
    """Return the errors of the node selector (``nodeSelectorTerms``) at ``path``; ``any_value`` skips the check of values."""
    terms = parts(selector, "nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for index, term in enumerate(terms):
        errors += _term_errors(term, f"{path}.nodeSelectorTerms[{index}]", any_value=any_value)
    return errors


def _term_errors(term: JsonObject, path: str, *, any_value: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, requirement in enumerate(parts(term, "matchExpressions")):
        errors += _expression_errors(requirement, f"{path}.matchExpressions[{index}]", any_value=any_value)
    for index, requirement in enumerate(parts(term, "matchFields")):
        errors += _field_errors(requirement, f"{path}.matchFields[{index}]")
    return errors


def _expression_errors(requirement: JsonObject, path: str, *, any_value: bool) -> list[FieldError]:
    operator, key, values = text(requirement, "operator"), text(requirement, "key"), texts(requirement, "values")
    errors: list[FieldError] = []
    if operator in {"In", "NotIn"}:
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{path}.values", why))
    elif operator in {"Gt", "Lt"}:
        if len(values) != 1:
            errors.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR))
    errors += each(f"{path}.key", key, key_problems(key))
    for index, value in enumerate([] if any_value else values):
        errors += each(f"{path}.values[{index}]", value, value_problems(value))
    return errors


def _field_errors(requirement: JsonObject, path: str) -> list[FieldError]:
    operator, key, values = text(requirement, "operator"), text(requirement, "key"), texts(requirement, "values")
    errors: list[FieldError] = []
    if operator not in {"In", "NotIn"}:
        errors.append(invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", why))
    if key != "metadata.name":
        return [*errors, invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        errors += each(f"{path}.values[{index}]", value, subdomain_problems(value))
    return errors


def affinity_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``affinity`` of the pod spec at ``path``."""
    errors: list[FieldError] = []
    nodes, at = part(spec, "affinity", "nodeAffinity") or {}, f"{path}.affinity.nodeAffinity"
    if (selector := part(nodes, REQUIRED)) is not None:
        errors += node_selector_errors(selector, f"{at}.{REQUIRED}")
    for index, term in enumerate(parts(nodes, PREFERRED)):
        errors += _weight_errors(term, f"{at}.{PREFERRED}[{index}]")
        preference = part(term, "preference") or {}
        errors += _term_errors(preference, f"{at}.{PREFERRED}[{index}].preference", any_value=True)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods, at = part(spec, "affinity", kind) or {}, f"{path}.affinity.{kind}"
        for index, term in enumerate(parts(pods, REQUIRED)):
            errors += _pod_term_errors(term, f"{at}.{REQUIRED}[{index}]")
        for index, term in enumerate(parts(pods, PREFERRED)):
            errors += _weight_errors(term, f"{at}.{PREFERRED}[{index}]")
            inner = part(term, "podAffinityTerm") or {}
            errors += _pod_term_errors(inner, f"{at}.{PREFERRED}[{index}].podAffinityTerm")
    return errors


def _weight_errors(term: JsonObject, path: str) -> list[FieldError]:
    weight = number(term, "weight")
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, _WEIGHT)]


def _pod_term_errors(term: JsonObject, path: str) -> list[FieldError]:
    errors = selector_errors(term.get("labelSelector"), f"{path}.labelSelector")
    errors += selector_errors(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in texts(term, "namespaces"):
        errors += each(f"{path}.namespace", name, dns_label_problems(name))
    errors += _label_key_errors(term, path)
    key = text(term, "topologyKey")
    errors += [] if key else [required(f"{path}.topologyKey", "can not be empty")]
    return errors + each(f"{path}.topologyKey", key, key_problems(key))


def _label_key_errors(term: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``matchLabelKeys`` and ``mismatchLabelKeys``, which contain keys of the pod's own labels.

    The keys must be valid, and no key may occur in both lists. A key in ``matchLabelKeys`` may occur only once in the
    selector: in the term that the server itself has added for this key.
    """
    selector = part(term, "labelSelector")
    same, other = texts(term, "matchLabelKeys"), texts(term, "mismatchLabelKeys")
    errors: list[FieldError] = []
    for name, keys in (("matchLabelKeys", same), ("mismatchLabelKeys", other)):
        if keys and selector is None:
            errors.append(forbidden(f"{path}.{name}", _NO_SELECTOR))
        elif keys:
            for index, key in enumerate(keys):
                errors += each(f"{path}.{name}[{index}]", key, key_problems(key))
    selected = set(text_map(selector, "matchLabels"))
    places = {key: index for index, key in enumerate(same)}
    for expression in parts(selector, "matchExpressions"):
        key = text(expression, "key")
        if key in places and key in selected:
            errors.append(invalid(f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector"))
        selected.add(key)
    for index, key in enumerate(same):
        if key in other:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{index}]", key, why))
    return errors


def spread_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``topologySpreadConstraints`` of the pod spec at ``path``."""
    constraints = parts(spec, "topologySpreadConstraints")
    pairs = [(text(one, "topologyKey"), text(one, "whenUnsatisfiable")) for one in constraints]
    last = {pair: index for index, pair in enumerate(pairs)}
    errors: list[FieldError] = []
    for index, constraint in enumerate(constraints):
        place = f"{path}.topologySpreadConstraints[{index}]"
        errors += _constraint_errors(constraint, place, comes_again=last[pairs[index]] != index)
    return errors


def _constraint_errors(constraint: JsonObject, path: str, *, comes_again: bool) -> list[FieldError]:
    key, action = text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable")
    errors = _positive(number(constraint, "maxSkew"), f"{path}.maxSkew")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    if action not in _ACTIONS:
        errors.append(not_supported(f"{path}.whenUnsatisfiable", action, _ACTIONS))
    if comes_again:
        errors.append(duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
    domains = optional_number(constraint, "minDomains")
    if domains is not None:
        errors += _positive(domains, f"{path}.minDomains")
        if action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(invalid(f"{path}.minDomains", domains, why))
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(name)
        if isinstance(policy, str) and policy not in _POLICIES:
            errors.append(not_supported(f"{path}.{name}", policy, _POLICIES))
    errors += _label_key_errors({**constraint, "mismatchLabelKeys": None}, path)
    return errors + selector_errors(constraint.get("labelSelector"), f"{path}.labelSelector")


def _positive(count: int, path: str) -> list[FieldError]:
    return [] if count > 0 else [invalid(path, count, "must be greater than zero")]


def toleration_errors(tolerations: JsonValue, path: str) -> list[FieldError]:
    """Return the errors of a list of tolerations at ``path``."""
    errors: list[FieldError] = []
    for index, toleration in enumerate(parts({"": tolerations}, "")):
        errors += _toleration_errors(toleration, f"{path}[{index}]")
    return errors


def _toleration_errors(toleration: JsonObject, path: str) -> list[FieldError]:
    key, operator, value, effect = (text(toleration, name) for name in ("key", "operator", "value", "effect"))
    errors = each(f"{path}.key", key, key_problems(key)) if key else []
    if not key and operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(f"{path}.operator", operator, why))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        errors.append(invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    if operator in {"", "Equal"}:
        if problems := value_problems(value):
            errors.append(invalid(f"{path}.operator", value, ";".join(problems)))
    elif operator == "Exists":
        if value:
            errors.append(invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'"))
    else:
        known = ("Equal", "Exists", "Lt", "Gt") if operator in {"Lt", "Gt"} else ("Equal", "Exists")
        errors.append(not_supported(f"{path}.operator", operator, known))
    if effect and effect not in EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, EFFECTS))
    return errors


def gate_errors(spec: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``readinessGates`` and ``schedulingGates`` of the pod spec at ``path``."""
    errors: list[FieldError] = []
    for index, gate in enumerate(parts(spec, "readinessGates")):
        condition = text(gate, "conditionType")
        errors += each(f"{path}.readinessGates[{index}].conditionType", condition, key_problems(condition))
    seen: set[str] = set()
    for index, gate in enumerate(parts(spec, "schedulingGates")):
        at, name = f"{path}.schedulingGates[{index}]", text(gate, "name")
        errors += each(at, name, key_problems(name))
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
    return errors
