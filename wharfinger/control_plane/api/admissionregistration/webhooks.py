"""The validation of webhook configurations (admissionregistration.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.api.admissionregistration.expressions import condition_refusal, own_text
from wharfinger.control_plane.api.admissionregistration.webhook_clients import client_errors
from wharfinger.control_plane.objects.amounts import optional_number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.label_selectors import selector_errors
from wharfinger.control_plane.objects.lenient_fields import part, parts, repeated, texts
from wharfinger.control_plane.objects.names import dns_1035_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import duplicate, each, invalid, not_supported, required, too_many
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.selectors import key_problems

OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES: Final = ("*", "Cluster", "Namespaced")
REVIEW_VERSIONS: Final = ("v1", "v1beta1")
CONDITIONS_LIMIT: Final = 64
RESERVED_SUFFIX: Final = ".static.k8s.io"
_CHOICES: Final = {"failurePolicy": ("Fail", "Ignore"), "matchPolicy": ("Equivalent", "Exact")}
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_REINVOCATION: Final = ("IfNeeded", "Never")


def configuration_errors(configuration: JsonObject, *, conditions: bool = True) -> list[FieldError]:
    """Return the errors of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration.

    The match conditions are only checked if ``conditions`` is true.
    """
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, hook in enumerate(parts(configuration, "webhooks")):
        path = f"webhooks[{index}]"
        errors += _webhook_errors(hook, path)
        errors += condition_errors(parts(hook, "matchConditions"), f"{path}.matchConditions") if conditions else []
        errors += _version_errors(texts(hook, "admissionReviewVersions"), f"{path}.admissionReviewVersions")
        name = text(hook, "name")
        if name and name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    return errors


def _webhook_errors(hook: JsonObject, path: str) -> list[FieldError]:
    errors = _name_errors(text(hook, "name"), f"{path}.name")
    for index, rule in enumerate(parts(hook, "rules")):
        errors += operation_errors(texts(rule, "operations"), f"{path}.rules[{index}].operations")
        errors += rule_errors(rule, f"{path}.rules[{index}]")
    for field, choices in _CHOICES.items():
        value = find(hook, field)
        if value is not None and value not in choices:
            errors.append(not_supported(f"{path}.{field}", value, choices))
    effects = find(hook, "sideEffects")
    if effects is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    elif effects not in _SIDE_EFFECTS:
        errors.append(not_supported(f"{path}.sideEffects", effects, _SIDE_EFFECTS))
    timeout = optional_number(hook, "timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        errors.append(invalid(f"{path}.timeoutSeconds", timeout, "the timeout value must be between 1 and 30 seconds"))
    for field in ("namespaceSelector", "objectSelector"):
        if part(hook, field) is not None:
            errors += selector_errors(hook[field], f"{path}.{field}")
    again = find(hook, "reinvocationPolicy")
    if again is not None and again not in _REINVOCATION:
        errors.append(not_supported(f"{path}.reinvocationPolicy", again, _REINVOCATION))
    return errors + client_errors(part(hook, "clientConfig") or {}, f"{path}.clientConfig")


def _name_errors(name: str, field: str) -> list[FieldError]:
    """Return the errors of a fully qualified name: it must have at least three segments."""
    if not name:
        return [required(field)]
    if problems := subdomain_problems(name):
        return [invalid(field, name, ",".join(problems))]
    if name.count(".") < 2:
        return [invalid(field, name, "should be a domain with at least three segments separated by dots")]
    return []


def operation_errors(operations: list[str], field: str) -> list[FieldError]:
    """Return the errors of the operations of a rule."""
    errors = [] if operations else [required(field)]
    if len(operations) > 1 and "*" in operations:
        errors.append(invalid(field, [*operations], "if '*' is present, must not specify other operations"))
    return errors + [
        not_supported(f"{field}[{index}]", operation, OPERATIONS)
        for index, operation in enumerate(operations)
        if operation not in OPERATIONS
    ]


def rule_errors(rule: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of the resources that a rule selects: groups, versions, resources, scope."""
    groups, versions = texts(rule, "apiGroups"), texts(rule, "apiVersions")
    errors = [] if groups else [required(f"{path}.apiGroups")]
    if len(groups) > 1 and "*" in groups:
        why = "if '*' is present, must not specify other API groups"
        errors.append(invalid(f"{path}.apiGroups", [*groups], why))
    errors += [] if versions else [required(f"{path}.apiVersions")]
    if len(versions) > 1 and "*" in versions:
        why = "if '*' is present, must not specify other API versions"
        errors.append(invalid(f"{path}.apiVersions", [*versions], why))
    errors += [required(f"{path}.apiVersions[{index}]") for index, version in enumerate(versions) if not version]
    errors += _resource_errors(texts(rule, "resources"), f"{path}.resources")
    scope = find(rule, "scope")
    if scope is not None and scope not in SCOPES:
        errors.append(not_supported(f"{path}.scope", scope, SCOPES))
    return errors


def _resource_errors(resources: list[str], field: str) -> list[FieldError]:
    errors = [] if resources else [required(field)]
    all_subresources: set[str] = set()
    of_all_resources: set[str] = set()
    bare = False
    for index, item in enumerate(resources):
        if not item:
            errors.append(required(f"{field}[{index}]"))
            continue
        resource, slash, subresource = item.partition("/")
        if not slash:
            bare = item != "*"
            continue
        if resource in all_subresources:
            why = f"if '{resource}/*' is present, must not specify {item}"
            errors.append(invalid(f"{field}[{index}]", item, why))
        if subresource in of_all_resources:
            why = f"if '*/{subresource}' is present, must not specify {item}"
            errors.append(invalid(f"{field}[{index}]", item, why))
        all_subresources |= {resource} if subresource == "*" else set()
        of_all_resources |= {subresource} if resource == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(field, [*resources], "if '*/*' is present, must not specify other resources"))
    if "*" in resources and bare:
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(field, [*resources], why))
    return errors


def _version_errors(versions: list[str], field: str) -> list[FieldError]:
    listed = ", ".join(REVIEW_VERSIONS)
    if not versions:
        return [required(field, f"must specify one of {listed}")]
    errors: list[FieldError] = []
    twice = repeated(versions)
    for index, version in enumerate(versions):
        if index in twice:
            errors.append(invalid(f"{field}[{index}]", version, "duplicate version"))
        else:
            errors += each(f"{field}[{index}]", version, dns_1035_label_problems(version))
    if not set(versions) & set(REVIEW_VERSIONS):
        errors.append(invalid(field, [*versions], f"must include at least one of {listed}"))
    return errors


def changed_configuration_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed webhook configuration; unchanged match conditions are not checked again."""
    before, after = (
        [hook.get("matchConditions") or [] for hook in parts(configuration, "webhooks")] for configuration in (old, new)
    )
    return configuration_errors(new, conditions=before != after)


def condition_errors(conditions: list[JsonObject], path: str, *, params: bool = False) -> list[FieldError]:
    """Return the errors of ``matchConditions``: names and expressions. With ``params``, the expressions may use
    parameters."""
    errors: list[FieldError] = []
    if len(conditions) > CONDITIONS_LIMIT:
        errors.append(too_many(path, len(conditions), CONDITIONS_LIMIT))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here = f"{path}[{index}]"
        expression = own_text(condition, "expression")
        if not expression:
            errors.append(required(f"{here}.expression"))
        elif refused := condition_refusal(expression, params=params):
            errors.append(invalid(f"{here}.expression", expression, refused))
        name = text(condition, "name")
        errors += each(f"{here}.name", name, key_problems(name)) if name else [required(f"{here}.name")]
        if name and name in seen:
            errors.append(duplicate(f"{here}.name", name))
        seen.add(name)
    return errors


def reserved_name_warnings(configuration: JsonObject, _old: JsonObject | None) -> list[str]:
    """Return a warning if the name of a webhook configuration, policy or binding is reserved for the server's own manifests."""
    if not text(configuration, "metadata", "name").endswith(RESERVED_SUFFIX):
        return []
    why = "are reserved for static manifest-based configurations and cannot be managed via the API"
    return [f'metadata.name: names ending with "{RESERVED_SUFFIX}" {why}']


_BOTH: Final = Rules(create=configuration_errors, update=changed_configuration_errors, warnings=reserved_name_warnings)
WEBHOOK_RULES: Final[dict[str, Rules]] = {
    "MutatingWebhookConfiguration.admissionregistration.k8s.io": _BOTH,
    "ValidatingWebhookConfiguration.admissionregistration.k8s.io": _BOTH,
}
