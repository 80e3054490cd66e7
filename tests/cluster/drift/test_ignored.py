"""The built-in ignore rules, and the fields that a rule matches."""

import pytest

from wharfinger.cluster.drift.ignored import BUILT_IN, is_ignored
from wharfinger.cluster.fields.owners import NOBODY, Writer
from wharfinger.cluster.objects.drift_policy import IgnoreRule, read_drift_policy
from wharfinger.formats.json.pointers import pointer_steps
from wharfinger.formats.json.value import JsonObject

HPA = Writer("kube-controller-manager", "scale")
ED = Writer("ed")


WEBHOOKS = "admissionregistration.k8s.io/v1"
BUNDLE = "/webhooks/0/clientConfig/caBundle"


def kind(api_version: str, name: str) -> JsonObject:
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("obj", "pointer", "writer", "ignored"),
    [
        (kind("apps/v1", "Deployment"), "/spec/replicas", HPA, True),
        (kind("x.test/v1", "Thing"), "/spec/replicas", Writer("keda-operator", "scale"), True),
        (kind("apps/v1", "Deployment"), "/spec/replicas", Writer("kubectl", "scale"), False),
        (kind("apps/v1", "Deployment"), "/spec/replicas", Writer("k9s", "scale"), False),
        (kind("apps/v1", "Deployment"), "/spec/replicas", Writer("kube-controller-manager"), False),
        (kind("apps/v1", "Deployment"), "/spec/paused", HPA, False),
        (
            kind(WEBHOOKS, "MutatingWebhookConfiguration"),
            "/webhooks/3/clientConfig/caBundle",
            ED,
            True,
        ),
        (
            kind(WEBHOOKS, "ValidatingWebhookConfiguration"),
            BUNDLE,
            NOBODY,
            True,
        ),
        (
            kind(WEBHOOKS, "ValidatingWebhookConfiguration"),
            "/webhooks/0/clientConfig",
            ED,
            False,
        ),
        (
            kind(WEBHOOKS, "ValidatingAdmissionPolicy"),
            BUNDLE,
            ED,
            False,
        ),
        (kind("x.test/v1", "MutatingWebhookConfiguration"), BUNDLE, ED, False),
        (
            kind(WEBHOOKS, "MutatingWebhookConfiguration"),
            "/webhooks/0/namespaceSelector",
            Writer("admissionsenforcer"),
            True,
        ),
        (
            kind(WEBHOOKS, "MutatingWebhookConfiguration"),
            "/webhooks/0/namespaceSelector",
            ED,
            False,
        ),
        (kind("apiregistration.k8s.io/v1", "APIService"), "/spec/caBundle", ED, True),
        (
            kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            "/spec/conversion/webhook/clientConfig/caBundle",
            ED,
            True,
        ),
        (
            kind("rbac.authorization.k8s.io/v1", "ClusterRole"),
            "/rules",
            Writer("clusterrole-aggregation-controller"),
            True,
        ),
        (kind("rbac.authorization.k8s.io/v1", "ClusterRole"), "/rules", Writer("kubectl-edit"), False),
        (kind("v1", "ConfigMap"), "/data/a", ED, False),
    ],
)
def test_built_in_rules_ignore_the_expected_fields(
    obj: JsonObject, pointer: str, writer: Writer, *, ignored: bool
) -> None:
    assert is_ignored(pointer_steps(pointer), writer, obj, BUILT_IN) is ignored


@pytest.mark.parametrize(
    ("path", "pointer", "ignored"),
    [
        ("", "/a", True),
        ("/a", "/a", True),
        ("/a", "/a/b", True),
        ("/a/b", "/a", False),
        ("/a/*/c", "/a/b/c/d", True),
        ("/a/*/c", "/a/b/d", False),
        ("/a~1b", "/a~1b/0", True),
    ],
)
def test_a_rules_pointer_matches_the_expected_fields(path: str, pointer: str, *, ignored: bool) -> None:
    assert is_ignored(pointer_steps(pointer), ED, kind("v1", "ConfigMap"), [IgnoreRule((path,))]) is ignored


def test_built_in_rules_can_be_written_as_user_rules() -> None:
    for rule in BUILT_IN:
        names = ("group", "version", "kind", "name", "namespace")
        target: JsonObject = {name: getattr(rule, name) for name in names}
        said: JsonObject = {"ignore": [{"paths": list(rule.paths), "target": target}]}
        assert read_drift_policy(said, "x").ignore[0].paths == rule.paths
