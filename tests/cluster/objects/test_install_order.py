"""The order of kinds in which Helm installs objects."""

import pytest

from wharfinger.cluster.objects.install_order import INSTALL_ORDER, Wave, in_install_order, rank, wave_of
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import kind_of, name_of


def obj(kind: str, name: str = "x") -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def test_dependencies_are_installed_first() -> None:
    kinds = ["Widget", "Deployment", "CustomResourceDefinition", "Namespace", "ServiceAccount", "Service", "Gadget"]
    assert [kind_of(one)[1] for one in in_install_order(map(obj, kinds))] == [
        "Namespace",
        "ServiceAccount",
        "CustomResourceDefinition",
        "Service",
        "Deployment",
        "Gadget",
        "Widget",
    ]


def test_objects_of_a_known_kind_retain_their_order() -> None:
    known = in_install_order([obj("Secret", "b"), obj("Secret", "a")])
    unknown = in_install_order([obj("Widget", "b"), obj("Widget", "a")])
    assert [name_of(one) for one in known] == ["b", "a"]
    assert [name_of(one) for one in unknown] == ["a", "b"]


def test_every_kind_of_helms_order_has_a_wave_and_only_those() -> None:
    assert {kind for kind in INSTALL_ORDER if wave_of("", kind) is Wave.CUSTOM} == set()
    assert wave_of("", "Widget") is Wave.CUSTOM
    assert wave_of("rbac.authorization.k8s.io", "Role") is Wave.DATA
    assert wave_of("serving.knative.dev", "Service") is Wave.CUSTOM
    assert wave_of("cluster.x-k8s.io", "Role") is Wave.CUSTOM


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("Namespace", "ServiceAccount"),
        ("PriorityClass", "Deployment"),
        ("StorageClass", "PersistentVolume"),
        ("PersistentVolume", "PersistentVolumeClaim"),
        ("ResourceQuota", "ConfigMap"),
        ("LimitRange", "PersistentVolumeClaim"),
        ("ServiceAccount", "Secret"),
        ("ServiceAccount", "Pod"),
        ("Role", "RoleBinding"),
        ("ClusterRole", "ClusterRoleBinding"),
        ("ConfigMap", "Deployment"),
        ("Service", "Deployment"),
        ("RoleBinding", "Job"),
        ("Service", "APIService"),
        ("Deployment", "ValidatingWebhookConfiguration"),
        ("IngressClass", "Ingress"),
        ("Ingress", "MutatingWebhookConfiguration"),
        ("CustomResourceDefinition", "Widget"),
        ("ValidatingWebhookConfiguration", "Widget"),
    ],
)
def test_dependencies_are_in_an_earlier_wave(first: str, then: str) -> None:
    assert wave_of("", first) < wave_of("", then)


def test_ranks_follow_helms_order() -> None:
    assert rank("PriorityClass") == 0
    assert rank("Widget") == len(INSTALL_ORDER)
    assert len(set(INSTALL_ORDER)) == len(INSTALL_ORDER)
