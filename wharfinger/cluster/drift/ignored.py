"""Fields that other writers rightly change: the built-in rules, and the check whether a rule covers a field.

A comment at each built-in rule names the programs for which the rule exists. There are few rules on purpose: a field that only a
controller owns needs no rule, because only fields that we applied can drift. Besides, a user's mistake in an ignored field is
never corrected.
"""

from collections.abc import Sequence
from typing import Final

from wharfinger.cluster.fields.owners import Writer
from wharfinger.cluster.objects.drift_policy import ANY, IgnoreRule
from wharfinger.formats.json.pointers import pointer_steps
from wharfinger.formats.json.value import JsonObject

PEOPLE: Final = "kubectl.*|k9s|lens.*|headlamp.*|dashboard.*|Mozilla"
"""A pattern for the names of managers that are tools of users. A write by such a tool through a subresource is a user's change,
and not the work of a controller."""

BUILT_IN: Final[tuple[IgnoreRule, ...]] = (
    # HorizontalPodAutoscaler, KEDA, Knative: autoscalers write through the scale subresource; kubectl does, too.
    IgnoreRule(("/spec/replicas",), subresource="scale", not_by=PEOPLE),
    # Certificates put in by cert-manager's cainjector, OpenShift's service-ca, kube-webhook-certgen and charts' own jobs.
    IgnoreRule(
        ("/webhooks/*/clientConfig/caBundle",),
        group=r"admissionregistration\.k8s\.io",
        kind="(Mutating|Validating)WebhookConfiguration",
    ),
    IgnoreRule(("/spec/caBundle",), group=r"apiregistration\.k8s\.io", kind="APIService"),
    IgnoreRule(
        ("/spec/conversion/webhook/clientConfig/caBundle",),
        group=r"apiextensions\.k8s\.io",
        kind="CustomResourceDefinition",
    ),
    # The rules of an aggregated role are put together by the controller manager.
    IgnoreRule(("/rules",), group=r"rbac\.authorization\.k8s\.io", kind="ClusterRole", by="clusterrole-aggregation-.*"),
    # AKS keeps its own namespaces out of every webhook.
    IgnoreRule(
        ("/webhooks/*/namespaceSelector",),
        group=r"admissionregistration\.k8s\.io",
        kind="(Mutating|Validating)WebhookConfiguration",
        by="admissionsenforcer",
    ),
)


def is_ignored(segments: Sequence[str], writer: Writer, obj: JsonObject, rules: Sequence[IgnoreRule]) -> bool:
    """Return whether a rule leaves a field of the object to the writer. ``segments`` is the JSON pointer to the field."""
    return any(
        rule.matches_writer(writer.manager, writer.subresource)
        and any(_is_below(segments, pointer_steps(path)) for path in rule.paths)
        and rule.matches_object(obj)
        for rule in rules
    )


def _is_below(segments: Sequence[str], prefix: Sequence[str]) -> bool:
    """Return whether the field with these segments is the field at the pointer ``prefix``, or lies inside that field."""
    return len(segments) >= len(prefix) and all(
        said in {ANY, segment} for said, segment in zip(prefix, segments, strict=False)
    )
