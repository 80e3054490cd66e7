"""The webhook bindings of a hook: for admission requests that the hook allows or changes, and for custom resources that it
converts (spec hook-protocol §1.4.4, §1.4.5). Pure.

The documents already have the right shape. This module checks what the API server would check only when the webhook is
registered, long after the hook was loaded: the name, the rules and the time limit of each validating webhook, the label
selectors of all admission webhooks, and the versions of conversions.
"""

import re
from collections.abc import Iterator
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str
from wharfinger.hooks.config.bindings import AdmissionBinding, AdmissionRule, ConversionBinding
from wharfinger.hooks.config.problems import Problems
from wharfinger.hooks.config.selectors import label_selector
from wharfinger.hooks.config.shapes import whole
from wharfinger.hooks.config.snapshots import Snapshots
from wharfinger.kube.names import is_subdomain

VALIDATING: Final = "kubernetesValidating"
MUTATING: Final = "kubernetesMutating"
CONVERSION: Final = "kubernetesCustomResourceConversion"
DEFAULT_TIMEOUT_S: Final = 10
_TIMEOUTS_S: Final = range(1, 31)
_SEGMENTS: Final = 3
_VERSION: Final = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")


def validating_bindings(document: JsonObject, snapshots: Snapshots, problems: Problems) -> tuple[AdmissionBinding, ...]:
    """Return the ``kubernetesValidating`` bindings of a document of the right shape; faults are added to ``problems``."""
    bindings = _admission_bindings(document, VALIDATING, snapshots, problems)
    names: set[str] = set()
    for binding in bindings:
        if binding.name in names:
            problems.add(
                f"{VALIDATING}.name is invalid: several bindings are named {binding.name[:80]!r}; choose different names"
            )
        names.add(binding.name)
        for problem in _faults(binding):
            problems.add(f"{VALIDATING}.{problem}")
    return bindings


def mutating_bindings(document: JsonObject, snapshots: Snapshots, problems: Problems) -> tuple[AdmissionBinding, ...]:
    """Return the ``kubernetesMutating`` bindings of a document of the right shape. Their names and rules are not checked,
    because the hook protocol does not require it.
    """
    return _admission_bindings(document, MUTATING, snapshots, problems)


def conversion_bindings(
    document: JsonObject, snapshots: Snapshots, problems: Problems
) -> tuple[ConversionBinding, ...]:
    """Return the ``kubernetesCustomResourceConversion`` bindings."""
    return tuple(_conversion(item, snapshots, problems) for item in find_list(document, CONVERSION))


def _admission_bindings(
    document: JsonObject, key: str, snapshots: Snapshots, problems: Problems
) -> tuple[AdmissionBinding, ...]:
    return tuple(_admission(item, key, snapshots, problems) for item in find_list(document, key))


def _admission(item: JsonValue, where: str, snapshots: Snapshots, problems: Problems) -> AdmissionBinding:
    objects, namespaces = find_object(item, "labelSelector"), find_object(item, "namespace", "labelSelector")
    problems.value_of(lambda: label_selector(objects), f"{where}.labelSelector", "")
    problems.value_of(lambda: label_selector(namespaces), f"{where}.namespace.labelSelector", "")
    timeout = whole(find(item, "timeoutSeconds"))
    return AdmissionBinding(
        name=find_str(item, "name"),
        rules=tuple(_rule(rule) for rule in find_list(item, "rules")),
        object_selector=objects,
        namespace_selector=namespaces,
        match_conditions=tuple(
            (find_str(condition, "name"), find_str(condition, "expression"))
            for condition in find_list(item, "matchConditions")
        ),
        failure_policy=find_str(item, "failurePolicy", default="Fail"),
        side_effects=find_str(item, "sideEffects", default="None"),
        timeout_s=DEFAULT_TIMEOUT_S if timeout is None else timeout,
        group=find_str(item, "group"),
        include_snapshots_from=snapshots.of(item, where),
    )


def _rule(rule: JsonValue) -> AdmissionRule:
    def texts(key: str) -> tuple[str, ...]:
        return tuple(str(text) for text in find_list(rule, key))

    return AdmissionRule(
        texts("apiGroups"),
        texts("apiVersions"),
        texts("resources"),
        texts("operations"),
        find_str(rule, "scope", default="*"),
    )


def _conversion(item: JsonValue, snapshots: Snapshots, problems: Problems) -> ConversionBinding:
    pairs = tuple((find_str(one, "fromVersion"), find_str(one, "toVersion")) for one in find_list(item, "conversions"))
    for version in dict.fromkeys(version for pair in pairs for version in pair):
        if not _VERSION.fullmatch(version):
            problems.add(
                f"{CONVERSION}.conversions is invalid: {version[:80]!r} is neither a version such as v1beta1 nor group/version"
            )
    return ConversionBinding(
        name=find_str(item, "name"),
        crd_name=find_str(item, "crdName"),
        conversions=pairs,
        group=find_str(item, "group"),
        include_snapshots_from=snapshots.of(item, CONVERSION),
    )


def _faults(binding: AdmissionBinding) -> Iterator[str]:
    """Yield the faults for which the API server would refuse the webhook, each with its field."""
    name = binding.name
    if name.count(".") < _SEGMENTS - 1 or not is_subdomain(name):
        yield (
            f"name is invalid: {name[:80]!r} is not fully qualified: it takes at least three segments of lower-case letters, "
            "digits and '-' with dots between them, such as pods.example.com"
        )
    if binding.timeout_s not in _TIMEOUTS_S:
        yield f"timeoutSeconds is invalid: {binding.timeout_s} is not from 1 to 30"
    for rule in binding.rules:
        yield from _alone(rule.api_groups, "rules.apiGroups", "API groups")
        yield from _alone(rule.api_versions, "rules.apiVersions", "API versions")
        yield from _alone(rule.operations, "rules.operations", "operations")
        if "" in rule.api_versions:
            yield 'rules.apiVersions is invalid: "" is not a version'
        yield from (f"rules.resources is invalid: {why}" for why in _resource_faults(rule.resources))


def _alone(values: tuple[str, ...], where: str, what: str) -> Iterator[str]:
    if "*" in values and len(values) > 1:
        yield f"{where} is invalid: if '*' is present, must not specify other {what}"


def _resource_faults(resources: tuple[str, ...]) -> Iterator[str]:
    """Yield the faults of a rule's resources: entries like ``pods``, ``pods/status``, ``pods/*``, ``*/scale``, ``*``, ``*/*``
    must not overlap.
    """
    whole_resources: set[str] = set()
    whole_subresources: set[str] = set()
    for text in resources:
        if not text:
            yield '"" is not a resource'
        resource, slash, sub = text.partition("/")
        if not slash or text == "*/*":
            continue
        if resource in whole_resources:
            yield f"if '{resource}/*' is present, must not specify {text[:80]}"
        if sub in whole_subresources:
            yield f"if '*/{sub}' is present, must not specify {text[:80]}"
        if sub == "*":
            whole_resources.add(resource)
        if resource == "*":
            whole_subresources.add(sub)
    if "*/*" in resources and len(resources) > 1:
        yield "if '*/*' is present, must not specify other resources"
    if "*" in resources and any(text and text != "*" and "/" not in text for text in resources):
        yield "if '*' is present, must not specify other resources without subresources"
