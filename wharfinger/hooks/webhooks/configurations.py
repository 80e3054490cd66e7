"""The objects that register a package's webhooks with API servers (spec hook-protocol §1.4.4, §3.4, §3.5). Pure.

A package has at most one ValidatingWebhookConfiguration and one MutatingWebhookConfiguration of its own, so they are removed
together with the package. No webhook is called for objects that the daemon needs in order to start, or to remove the package.
Otherwise a hook with wide rules could permanently stop the daemon that runs it.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.bindings import AdmissionBinding, AdmissionRule
from wharfinger.hooks.webhooks.addresses import Address, ReviewKind
from wharfinger.hooks.webhooks.bound_webhooks import AdmissionWebhook, BoundWebhooks
from wharfinger.kube.names import MAX_SUBDOMAIN, is_subdomain
from wharfinger.kube.resource import ResourceType

VALIDATING_CONFIGURATION: Final = ResourceType(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
MUTATING_CONFIGURATION: Final = ResourceType(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
CONFIGURATIONS: Final[Mapping[ReviewKind, ResourceType]] = {
    ReviewKind.VALIDATING: VALIDATING_CONFIGURATION,
    ReviewKind.MUTATING: MUTATING_CONFIGURATION,
}
LABEL: Final = "wharfinger.dev/hooks"
LABELLED: Final = "webhooks"
"""The value of LABEL on every webhook configuration, and on every CRD whose custom resources a package converts."""
PACKAGE_ANNOTATION: Final = "wharfinger.dev/webhooks-of"
"""The annotation that contains the name of the package, on each object with the label LABEL."""
NAME_PREFIX: Final = "wharfinger-hooks-"
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
REVIEW_VERSIONS: Final = ("v1",)
OWN_CONDITION: Final = "wharfinger.dev/not-of-the-daemon"
_REVIEWS: Final = ("authentication.k8s.io", "authorization.k8s.io")
"""The API groups of reviews such as SelfSubjectAccessReview. The daemon creates such reviews
to check its rights before it acquires its Lease.
"""
_OWN_SECRETS: Final = ("sh.helm.release.v1.", "wharfinger.")
"""The prefixes of the names of Secrets in which the daemon keeps releases and the state of packages."""
_HASH: Final = 12


@dataclass(frozen=True, slots=True)
class Server:
    """The address by which API servers reach the admission server.

    This is the ``service`` (namespace, name, port) or, if there is no Service, the base ``url``. ``bundle`` contains the
    certificates of the trusted certificate authorities, in PEM form.
    """

    bundle: str
    url: str = ""
    service: tuple[str, str, int] | None = None

    def client_config(self, path: str) -> JsonObject:
        """Return the ``clientConfig`` of a webhook with this path."""
        config: JsonObject = {"caBundle": base64.b64encode(self.bundle.encode()).decode()}
        if self.service is None:
            return {**config, "url": f"{self.url}{path}"}
        namespace, name, port = self.service
        return {**config, "service": {"namespace": namespace, "name": name, "port": port, "path": path}}


def configuration_name(package: str) -> str:
    """Return the name of a package's configurations; a name that is too long ends with a hash."""
    name = f"{NAME_PREFIX}{package}"
    if is_subdomain(name):
        return name
    digest = hashlib.sha256(package.encode()).hexdigest()[:_HASH]
    return f"{name[: MAX_SUBDOMAIN - _HASH - 1].rstrip('.-')}-{digest}"


def configurations(
    package: str, bound: BoundWebhooks, server: Server, system_namespace: str, group: str
) -> dict[ReviewKind, JsonObject]:
    """Return the webhook configurations of a package, by their kind; a kind without webhooks has no configuration.

    ``system_namespace`` is the daemon's namespace, and ``group`` is the API group of the daemon's own kinds. No webhook is
    called for objects in this namespace or of this group.
    """
    made: dict[ReviewKind, JsonObject] = {}
    for kind, webhooks in ((ReviewKind.VALIDATING, bound.validating), (ReviewKind.MUTATING, bound.mutating)):
        if webhooks:
            resource = CONFIGURATIONS[kind]
            made[kind] = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {
                    "name": configuration_name(package),
                    "labels": {"app.kubernetes.io/managed-by": "wharfinger", LABEL: LABELLED},
                    "annotations": {PACKAGE_ANNOTATION: package},
                },
                "webhooks": [
                    _webhook(one, server.client_config(Address(package, kind, one.webhook).path), bound.namespace)
                    | {"matchConditions": _conditions(one.binding, system_namespace, group)}
                    for one in webhooks
                ],
            }
    return made


def conversion_patch(package: str, crd: str, server: Server) -> JsonObject:
    """Return the merge patch of a CRD that lets the package convert the custom resources of this CRD."""
    path = Address(package, ReviewKind.CONVERSION, crd).path
    client = server.client_config(path)
    client.setdefault("url", None)
    client.setdefault("service", None)
    return {
        "metadata": {"labels": {LABEL: LABELLED}, "annotations": {PACKAGE_ANNOTATION: package}},
        "spec": {
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": [*REVIEW_VERSIONS]},
            }
        },
    }


def no_conversion_patch() -> JsonObject:
    """Return the merge patch of a CRD after which no webhook converts its custom resources."""
    return {
        "metadata": {"labels": {LABEL: None}, "annotations": {PACKAGE_ANNOTATION: None}},
        "spec": {"conversion": {"strategy": "None", "webhook": None}},
    }


def _webhook(one: AdmissionWebhook, client: JsonObject, namespace: str | None) -> JsonObject:
    binding = one.binding
    return {
        "name": binding.name,
        "clientConfig": client,
        "rules": [_rule(rule, namespace) for rule in binding.rules],
        "failurePolicy": binding.failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": binding.side_effects,
        "timeoutSeconds": binding.timeout_s,
        "objectSelector": {**binding.object_selector},
        "namespaceSelector": _namespaces(binding, namespace),
        "admissionReviewVersions": [*REVIEW_VERSIONS],
    }


def _rule(rule: AdmissionRule, namespace: str | None) -> JsonObject:
    return {
        "apiGroups": [*rule.api_groups],
        "apiVersions": [*rule.api_versions],
        "resources": [*rule.resources],
        "operations": [*rule.operations],
        # A namespace selector never excludes cluster-scoped objects.
        "scope": rule.scope if namespace is None else "Namespaced",
    }


def _namespaces(binding: AdmissionBinding, namespace: str | None) -> JsonObject:
    """Return the namespace selector; for an Application, it selects only the Application's own namespace."""
    selector: JsonObject = {**binding.namespace_selector}
    if namespace is None:
        return selector
    terms = selector.get("matchExpressions")
    own: JsonValue = {"key": NAMESPACE_LABEL, "operator": "In", "values": [namespace]}
    return {**selector, "matchExpressions": [*(terms if isinstance(terms, list) else ()), own]}


def _conditions(binding: AdmissionBinding, system_namespace: str, group: str) -> list[JsonValue]:
    named = "has(request.name) && request.name"
    own = " && ".join(
        (
            f"!(has(request.namespace) && request.namespace == '{system_namespace}')",
            f"request.resource.group != '{group}'",
            f"!(request.resource.group in [{', '.join(map(repr, _REVIEWS))}])",
            f"!(request.resource.group == 'apiextensions.k8s.io' && {named}.endsWith('.{group}'))",
            *(
                f"!(request.resource.resource == 'secrets' && {named}.startsWith('{prefix}'))"
                for prefix in _OWN_SECRETS
            ),
        )
    )
    found: Sequence[tuple[str, str]] = ((OWN_CONDITION, own), *binding.match_conditions)
    return [{"name": name, "expression": expression} for name, expression in found]
