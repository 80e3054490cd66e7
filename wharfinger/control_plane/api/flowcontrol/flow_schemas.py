"""The validation of FlowSchemas (flowcontrol.apiserver.k8s.io/v1): requests, users and priority level."""

from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.internal_types import internal_form
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import flag, part, parts, texts
from wharfinger.control_plane.objects.names import dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import duplicate, each, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find

MANDATORY: Final = ("exempt", "catch-all")
"""The names of the flow schemas and priority levels that exist in every cluster, with a fixed spec."""
LAST: Final = 10_000
METHODS: Final = ("ByNamespace", "ByUser")
VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_NAMESPACE: Final = "each member of this list must be '*' or a DNS-1123 label; "


def flow_schema_errors(schema: JsonObject) -> list[FieldError]:
    """Return the errors of a FlowSchema."""
    spec, name = part(schema, "spec") or {}, text(schema, "metadata", "name")
    errors = _precedence_errors(number(spec, "matchingPrecedence"), name)
    method, level = part(spec, "distinguisherMethod"), text(spec, "priorityLevelConfiguration", "name")
    if method is not None and text(method, "type") not in METHODS:
        errors.append(not_supported("spec.distinguisherMethod.type", {"Type": text(method, "type")}, METHODS))
    field = "spec.priorityLevelConfiguration.name"
    if level:
        errors += each(field, level, subdomain_problems(level))
    else:
        errors.append(required(field, "must reference a priority level"))
    for index, rule in enumerate(parts(spec, "rules")):
        errors += _rule_errors(rule, f"spec.rules[{index}]")
    return errors + condition_errors(schema)


def condition_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of the conditions in a status: each type may occur once."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(parts(obj, "status", "conditions")):
        field, kind = f"status.conditions[{index}].type", text(condition, "type")
        errors += [duplicate(field, kind)] if kind in seen else []
        errors += [] if kind else [required(field)]
        seen.add(kind)
    return errors


def _precedence_errors(precedence: int, name: str) -> list[FieldError]:
    field = "spec.matchingPrecedence"
    if precedence <= 0:
        return [invalid(field, precedence, "must be a positive value")]
    if precedence > LAST:
        return [invalid(field, precedence, f"must not be greater than {LAST}")]
    if precedence == 1 and name != "exempt":
        return [invalid(field, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")]
    return []


def _rule_errors(rule: JsonObject, path: str) -> list[FieldError]:
    subjects, resources, urls = (parts(rule, name) for name in ("subjects", "resourceRules", "nonResourceRules"))
    errors = [] if subjects else [required(f"{path}.subjects", "subjects must contain at least one value")]
    for index, subject in enumerate(subjects):
        errors += _subject_errors(subject, f"{path}.subjects[{index}]")
    if not resources and not urls:
        errors.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for index, item in enumerate(resources):
        errors += _resource_errors(item, f"{path}.resourceRules[{index}]")
    for index, item in enumerate(urls):
        errors += _url_rule_errors(item, f"{path}.nonResourceRules[{index}]")
    return errors


def _account_errors(account: JsonObject, path: str) -> list[FieldError]:
    name, namespace = text(account, "name"), text(account, "namespace")
    errors = [] if name else [required(f"{path}.name")]
    if name and name != "*":
        errors += each(f"{path}.name", name, subdomain_problems(name))
    if namespace:
        return errors + each(f"{path}.namespace", namespace, dns_label_problems(namespace))
    return [*errors, required(f"{path}.namespace", "must specify namespace for service account")]


def _named_errors(subject: JsonObject, path: str) -> list[FieldError]:
    return [] if text(subject, "name") else [required(f"{path}.name")]


_SUBJECTS: Final[Mapping[str, tuple[str, Callable[[JsonObject, str], list[FieldError]]]]] = {
    "ServiceAccount": ("serviceAccount", _account_errors),
    "User": ("user", _named_errors),
    "Group": ("group", _named_errors),
}


def _subject_errors(subject: JsonObject, path: str) -> list[FieldError]:
    kind = text(subject, "kind")
    if kind not in _SUBJECTS:
        return [not_supported(f"{path}.kind", kind, sorted(_SUBJECTS))]
    member, check = _SUBJECTS[kind]
    found = part(subject, member)
    if found is None:
        errors = [required(f"{path}.{member}", f"{member} is required when subject kind is '{kind}'")]
    else:
        errors = check(found, f"{path}.{member}")
    for other, (name, _) in _SUBJECTS.items():
        if other != kind and part(subject, name) is not None:
            errors.append(forbidden(f"{path}.{name}", f"{name} is forbidden when subject kind is not '{other}'"))
    return errors


def _list_errors(values: list[str], field: str, what: str, missing: str) -> list[FieldError]:
    if not values:
        return [required(field, missing)]
    if "*" in values and len(values) > 1:
        return [invalid(field, [*values], f"if '*' is present, must not specify other {what}")]
    return []


def _verb_errors(verbs: list[str], path: str) -> list[FieldError]:
    errors = _list_errors(verbs, f"{path}.verbs", "verbs", "verbs must contain at least one value")
    if not errors and "*" not in verbs and not set(verbs) <= set(VERBS):
        listed: list[JsonValue] = [*verbs]
        errors.append(not_supported(f"{path}.verbs", listed, VERBS))
    return errors


def _resource_errors(rule: JsonObject, path: str) -> list[FieldError]:
    errors = _verb_errors(texts(rule, "verbs"), path)
    for name, what, one in (("apiGroups", "api groups", "api group"), ("resources", "resources", "resource")):
        missing = f"resource rules must supply at least one {one}"
        errors += _list_errors(texts(rule, name), f"{path}.{name}", what, missing)
    namespaces, field = texts(rule, "namespaces"), f"{path}.namespaces"
    if namespaces or not flag(rule, "clusterScope"):
        missing = "resource rules that are not cluster scoped must supply at least one namespace"
        errors += _list_errors(namespaces, field, "namespaces", missing)
    for index, namespace in enumerate(() if "*" in namespaces else namespaces):
        problems = [_NAMESPACE + problem for problem in dns_label_problems(namespace)]
        errors += each(f"{field}[{index}]", namespace, problems)
    return errors


def _url_rule_errors(rule: JsonObject, path: str) -> list[FieldError]:
    urls, field = texts(rule, "nonResourceURLs"), f"{path}.nonResourceURLs"
    errors = _verb_errors(texts(rule, "verbs"), path)
    errors += _list_errors(urls, field, "non-resource URLs", "nonResourceURLs must contain at least one value")
    for index, url in enumerate(() if "*" in urls else urls):
        if problem := _url_problem(url):
            errors.append(invalid(f"{field}[{index}]", url, problem))
    return errors


def _url_problem(path: str) -> str:
    if not path:
        return "must not be empty"
    if path == "/":
        return ""
    if not path.startswith("/"):
        return "must start with slash"
    if " " in path:
        return "must not contain white-space"
    if "//" in path:
        return "must not contain double slash"
    count = path.count("*")
    return "wildcard can only do suffix matching" if count > 1 or (count == 1 and not path.endswith("/*")) else ""


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors, name = flow_schema_errors(new), text(new, "metadata", "name")
    if name in MANDATORY and find(new, "spec") != find(old, "spec"):
        shown = internal_form("flowcontrol.FlowSchemaSpec", find(new, "spec"))
        errors.append(invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))
    return errors


FLOW_SCHEMA_RULES: Final[dict[str, Rules]] = {
    "FlowSchema.flowcontrol.apiserver.k8s.io": Rules(
        create=flow_schema_errors, update=_update_errors, status=lambda new, _old: condition_errors(new)
    ),
}
