"""The chain of all admission plugins, in the order in which kube-apiserver calls them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from wharfinger.control_plane.admission.permissions import PARAMETER_PLUGIN
from wharfinger.control_plane.api.by_kind.other_groups_admission import GROUP_PLUGINS
from wharfinger.control_plane.api.common.admission import Admission, Mutation, Operation, Plugin
from wharfinger.control_plane.api.core.admission import CORE_PLUGINS
from wharfinger.control_plane.api.core.pods.admission import POD_PLUGINS
from wharfinger.control_plane.api.rbac.escalation import ESCALATION
from wharfinger.control_plane.backend import Backend
from wharfinger.formats.json.value import JsonObject

ORDER: Final = (
    "ParameterAccess",
    "NamespaceLifecycle",
    "LimitRanger",
    "ServiceAccount",
    "TaintNodesByCondition",
    "PodSecurity",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "NodeDeclaredFeatureValidator",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ResourceQuota",
    "RoleEscalation",
)
"""The order of the plugins.

The first and the last plugin exist only in this server. All others are default plugins of kube-apiserver, but this list lacks
some of its default plugins.
"""


def _enforce_policies(admission: Admission) -> None:
    """Raise StatusError if a validating policy or webhook refuses the request, and VerdictsNeededError if webhooks have to be
    called first.
    """
    if admission.policies is not None and not admission.own:
        admission.policies.enforce(admission)


_MUTATING_POLICIES: Final = Plugin("MutatingAdmissionPolicy", frozenset({Operation.CREATE, Operation.UPDATE}))
"""A plugin that only marks the place of mutating policies in the order; :func:`mutated` evaluates them."""
_MUTATING: Final = Plugin("MutatingAdmissionWebhook", frozenset({Operation.CREATE, Operation.UPDATE}))
"""A plugin that only marks the place of mutating webhooks in the order; :func:`mutated` applies their patches."""
_POLICIES: Final = Plugin("ValidatingAdmissionPolicy", frozenset(Operation), check=_enforce_policies)
PLUGINS: Final[tuple[Plugin, ...]] = tuple(
    sorted(
        (
            *CORE_PLUGINS,
            *POD_PLUGINS,
            *GROUP_PLUGINS,
            ESCALATION,
            PARAMETER_PLUGIN,
            _MUTATING_POLICIES,
            _MUTATING,
            _POLICIES,
        ),
        key=lambda plugin: ORDER.index(plugin.name),
    )
)


def mutated(admission: Admission, obj: JsonObject, completed: Callable[[str, JsonObject], JsonObject]) -> JsonObject:
    """Return the object with the changes of all mutating plugins, policies and webhooks.

    If a policy or a webhook changes the object, all mutating plugins are called a second time, and so are the policies and
    webhooks with ``reinvocationPolicy: IfNeeded``. ``completed`` is described at ``Mutation``. Raises StatusError if the
    request is refused, and VerdictsNeededError if webhooks have to be called first.
    """
    by_policies, by_webhooks = Mutation(completed), Mutation(completed)
    obj = _mutated_once(admission, obj, by_policies, by_webhooks)
    if by_policies.wanted or by_webhooks.wanted:
        by_policies.second = by_webhooks.second = True
        obj = _mutated_once(admission, obj, by_policies, by_webhooks)
    return obj


def _mutated_once(admission: Admission, obj: JsonObject, by_policies: Mutation, by_webhooks: Mutation) -> JsonObject:
    for plugin in concerned(admission.operation, admission.kind.group_kind):
        policies = None if admission.own else admission.policies
        if plugin is _MUTATING_POLICIES and policies is not None:
            obj = policies.mutate_by_policies(admission.of(obj), by_policies) or obj
        elif plugin is _MUTATING and policies is not None:
            obj = policies.mutate(admission.of(obj), by_webhooks) or obj
        elif plugin.mutate is not None:
            obj = plugin.mutate(admission, obj)
    return obj


def check(admission: Admission) -> None:
    """Run the checks of all plugins. Raises StatusError if a plugin refuses the request, and VerdictsNeededError if webhooks
    have to be called first.
    """
    for plugin in concerned(admission.operation, admission.kind.group_kind):
        if plugin.check is not None:
            plugin.check(admission)


def charge(admission: Admission, backend: Backend) -> None:
    """Let the plugins that count usage (quotas) record this write. Raises StatusError."""
    for plugin in concerned(admission.operation, admission.kind.group_kind):
        if plugin.charge is not None:
            plugin.charge(admission, backend)


@lru_cache(maxsize=1024)
def concerned(operation: Operation, group_kind: str) -> tuple[Plugin, ...]:
    """Return the plugins that handle an operation on a kind."""
    return tuple(
        plugin
        for plugin in PLUGINS
        if operation in plugin.operations and (not plugin.resources or group_kind in plugin.resources)
    )
